import { result } from './device.ts'
import type { CommandResult } from './device.ts'

/** Result of writing one output. */
export type WriteAnswer =
  | { readonly kind: 'answered' }
  | { readonly kind: 'refused'; readonly detail: string }
  /** No answer. `possiblySent`: the device may have received the command. */
  | { readonly kind: 'lost'; readonly possiblySent: boolean; readonly detail: string }

/** Result for a siren that an emergency keeps off. */
export const SILENCED = result('failed', false, 'silenced', 'an emergency keeps the siren off')

/**
 * Makes the result of a write that the agent repeats. `until` is a text for a person: how long the agent repeats the
 * write.
 */
export function writeResult(answer: WriteAnswer, until: string): CommandResult {
  if (answer.kind === 'answered') return result('confirmed', true, 'acknowledged')
  if (answer.kind === 'refused') return result('failed', true, 'refused', answer.detail)
  if (answer.possiblySent)
    return result('unknown', true, 'answer_lost', `${answer.detail}; it is written again ${until}`)
  return result('failed', false, 'not_ready', `${answer.detail}; it is written as soon as the device is back ${until}`)
}
