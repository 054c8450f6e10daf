import { answerBench } from './child.ts'
import { sendAll, type LoadQuestion } from './http-load.ts'

/** The side that asks, in a process of its own. */
answerBench((question) => sendAll(question as LoadQuestion))
