import { answerBench } from './child.ts'
import { sendAll, type LoadQuestion } from './http-load.ts'

/** The load program, in a separate process. */
answerBench((question) => sendAll(question as LoadQuestion))
