import { answerBench } from '../child.ts'
import { buyAll, type JourneyQuestion } from './buy-all.ts'

/** Runs the shoppers in a separate process. */
answerBench((question) => buyAll(question as JourneyQuestion))
