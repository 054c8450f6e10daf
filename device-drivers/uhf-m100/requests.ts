import type { M100Frame } from './protocol/frame.ts'
import { M100, NO_TAG, refusalOf } from './protocol/messages.ts'
import type { Exchange, ExchangeAnswer } from '../kit/exchange.ts'

/** Sends a command. `pollMany` has no answer, because the reader sends tags instead. */
export type SendM100 = (
  frame: M100Frame,
  options?: { signal?: AbortSignal; onSend?: () => void },
) => Promise<ExchangeAnswer<M100Frame>>

/**
 * True if `frame` answers `command`: it has the same code, or is a refusal. A refusal "no tag" answers a running poll
 * instead. A refusal never answers `stop`. Firmware answers `setSelectMode` with the code of `setSelect`.
 */
export function isM100Answer(frame: M100Frame, command: number): boolean {
  if (frame.type !== 'answer') return false
  if (frame.command === command) return true
  if (command === M100.setSelectMode && frame.command === M100.setSelect) return true
  const refusal = refusalOf(frame)
  return refusal !== null && refusal !== NO_TAG && command !== M100.stop
}

/** Sends commands on an exchange, and calls `onAnswer` for each answer. */
export function m100Requests(exchange: Exchange<M100Frame>, timeoutMs: number, onAnswer: () => void): SendM100 {
  return async (frame, options = {}) => {
    const waits = frame.command !== M100.pollMany
    const isAnswer = waits ? { isAnswer: (reply: M100Frame) => isM100Answer(reply, frame.command) } : {}
    const answer = await exchange.request({ frame, target: 'the reader', timeoutMs, ...isAnswer, ...options })
    if (answer.kind === 'answered') onAnswer()
    return answer
  }
}
