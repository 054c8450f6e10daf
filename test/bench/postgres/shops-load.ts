import { answerBench } from '../child.ts'
import { sendAll, type LoadQuestion } from '../http-load.ts'
import { buyAll, type JourneyQuestion } from '../retail/buy-all.ts'

/** The requests of all accounts, sent at the same time. */
export type ShopsQuestion =
  | { readonly kind: 'send'; readonly parts: readonly LoadQuestion[] }
  | { readonly kind: 'buy'; readonly parts: readonly JourneyQuestion[] }

/** Returns the time from the first request to the last answer, µs. */
async function load(question: ShopsQuestion): Promise<number> {
  const from = performance.now()
  if (question.kind === 'send') await Promise.all(question.parts.map(sendAll))
  else await Promise.all(question.parts.map(buyAll))
  return (performance.now() - from) * 1_000
}

answerBench((question) => load(question as ShopsQuestion))
