import { answerBench } from '../child.ts'
import { buyAll, type JourneyQuestion } from './buy-all.ts'

/** The shoppers, in a process of their own. */
answerBench((question) => buyAll(question as JourneyQuestion))
