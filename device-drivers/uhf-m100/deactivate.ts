import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import {
  applySelection,
  changeEas,
  killTag,
  refusalOf,
  refusalText,
  selectTag,
  tagOfAnswer,
} from './protocol/messages.ts'
import { result } from '../kit/device.ts'
import type { CommandResult } from '../kit/device.ts'
import type { ContinuousReading } from '../kit/continuous-reading.ts'
import type { TagPresence } from '../kit/tag-presence.ts'
import type { SendM100 } from './requests.ts'
import type { M100Settings } from './settings.ts'

export interface DeactivateOptions {
  readonly request: SendM100
  readonly polling: ContinuousReading
  readonly presence: TagPresence
  readonly platform: Platform
  readonly settings: NonNullable<M100Settings['deactivate']>
  /** Upper-case hex. */
  readonly epc: string
  /** After `signal` aborts, no further command begins. */
  readonly signal: AbortSignal
  onFault(detail: string): void
}

/** Code "no such tag". The reader also reports this code for a tag that died without an answer. */
const KILL_FAILED = 0x12
/** Code for a tag that did not answer the command to change its EAS bit. */
const EAS_FAILED = 0x1b
/** Answer of the reader to a select command that it executed. */
const ACCEPTED = 0
/** Time in which a living tag is read again, ms. */
const REREAD_MS = 500

/**
 * Checks a tag that did not answer the kill command. A tag that is read again is alive; otherwise the outcome is
 * unknown.
 */
async function checkStillAlive(o: DeactivateOptions, sinceMs: number): Promise<CommandResult> {
  await pause(o.platform.timers, REREAD_MS)
  const seen = o.presence.lastSeenMs({ epc: o.epc })
  if (seen !== null && seen > sinceMs) return result('failed', true, 'no_confirmation', 'the tag still answers')
  return result(
    'unknown',
    true,
    'answer_lost',
    'the tag did not answer and is not read any more: killed, or taken away',
  )
}

/** Selects the tag. Returns why that failed, or null. */
async function select(o: DeactivateOptions): Promise<CommandResult | null> {
  // The mode comes first: without it the reader may send the command to any tag in the field.
  for (const frame of [applySelection(), selectTag(o.epc)]) {
    const answer = await o.request(frame, { signal: o.signal })
    if (o.signal.aborted) return result('failed', false, 'cancelled')
    if (answer.kind !== 'answered')
      return result('failed', false, 'not_ready', answer.kind === 'lost' ? answer.detail : 'no answer')
    const refusal = refusalOf(answer.frame)
    if (refusal !== null || answer.frame.parameters[0] !== ACCEPTED) {
      const why = refusal === null ? 'it reports a failure' : refusalText(refusal)
      return result('failed', false, 'not_supported', `the reader does not select this tag: ${why}`)
    }
  }
  return null
}

async function command(o: DeactivateOptions): Promise<CommandResult> {
  const unselected = await select(o)
  if (unselected) return unselected
  const { method, password } = o.settings
  const frame = method === 'kill' ? killTag(password) : changeEas(password, false)
  const answer = await o.request(frame, { signal: o.signal })
  if (answer.kind === 'lost') {
    if (answer.possiblySent) return result('unknown', true, 'answer_lost', answer.detail)
    return result('failed', false, o.signal.aborted ? 'cancelled' : 'not_ready', answer.detail)
  }
  if (answer.kind === 'sent') return result('unknown', true, 'answer_lost', 'no answer')
  const refusal = refusalOf(answer.frame)
  if (refusal === KILL_FAILED && method === 'kill') {
    await o.polling.resume()
    return checkStillAlive(o, o.platform.clock.elapsed()).finally(() => o.polling.suspend())
  }
  if (refusal === EAS_FAILED && method !== 'kill') return result('unknown', true, 'answer_lost', refusalText(refusal))
  if (refusal !== null) return result('failed', true, 'refused', refusalText(refusal))
  const named = tagOfAnswer(answer.frame)
  if (named === o.epc) return result('confirmed', true, 'acknowledged')
  o.onFault(`the reader reports that it changed ${named ?? 'a tag without an EPC'} instead of ${o.epc}`)
  return result('unknown', true, 'answer_lost', `the answer is about ${named ?? 'no tag'}`)
}

/** Kills one tag or clears its EAS bit, once. Never rejects. */
export async function deactivateTag(o: DeactivateOptions): Promise<CommandResult> {
  if (!o.presence.has({ epc: o.epc }))
    return result('failed', false, 'not_ready', `the tag ${o.epc} does not lie on the reader`)
  const isStopped = await o.polling.suspend()
  try {
    if (o.signal.aborted) return result('failed', false, 'cancelled')
    if (!isStopped) return result('failed', false, 'not_ready', 'the reader does not answer')
    return await command(o)
  } finally {
    await o.polling.resume()
  }
}
