import type { M100Frame } from '../../protocols/uhf-m100/frame.ts'
import { M100, NO_TAG, refusalOf } from '../../protocols/uhf-m100/messages.ts'
import type { Exchange, ExchangeAnswer } from '../exchange.ts'

/** Asks the reader. A start of many polls is only sent: nothing answers it but the tags. */
export type AskM100 = (
  frame: M100Frame,
  options?: { signal?: AbortSignal; onHanded?: () => void },
) => Promise<ExchangeAnswer<M100Frame>>

/** Whether `frame` answers `command`: the same code, or a refusal that is not the "no tag" of a poll still under way. */
export function answersM100(frame: M100Frame, command: number): boolean {
  if (frame.type !== 'answer') return false
  if (frame.command === command) return true
  const refusal = refusalOf(frame)
  return refusal !== null && refusal !== NO_TAG && command !== M100.stop
}

/** Asking on one exchange. `onHeard` is called for every answer. */
export function askOn(exchange: Exchange<M100Frame>, timeoutMs: number, onHeard: () => void): AskM100 {
  return async (frame, options = {}) => {
    const waits = frame.command !== M100.pollMany
    const answers = waits ? { answers: (said: M100Frame) => answersM100(said, frame.command) } : {}
    const answer = await exchange.ask({ frame, who: 'the reader', timeoutMs, ...answers, ...options })
    if (answer.kind === 'answered') onHeard()
    return answer
  }
}
