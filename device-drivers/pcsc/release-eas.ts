import { statusText } from './protocol/apdu.ts'
import { easAlarmFrame, easFrame, tagAnswer } from './protocol/icode-eas.ts'
import {
  END_SESSION,
  START_SESSION,
  SWITCH_TO_ISO15693,
  transceive,
  transparentAnswer,
} from './protocol/transparent.ts'
import { result } from '../kit/device.ts'
import type { CommandResult } from '../kit/device.ts'
import type { Card } from './card.ts'

const lost = (why: string) => result('unknown', true, 'answer_lost', why)
const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Sends a frame to the tag. Returns the tag's answer, null if no complete answer came, or the reader's refusal. */
async function exchange(
  card: Card,
  frame: Uint8Array,
): Promise<{ readonly frame: Uint8Array | null } | { readonly refused: string }> {
  const answer = transparentAnswer(await card.transmit(transceive(frame)))
  if (answer.kind === 'refused') return { refused: statusText(answer.status) }
  return { frame: answer.kind === 'done' ? answer.frame : null }
}

/**
 * True if the tag sends its EAS sequence, which means that its EAS bit is on. Null if the reader refuses the request.
 */
async function isEasOn(card: Card, uid: string): Promise<boolean | null> {
  try {
    const exchanged = await exchange(card, easAlarmFrame(uid))
    return 'refused' in exchanged ? null : exchanged.frame !== null && tagAnswer(exchanged.frame)?.refused === null
  } catch {
    return false
  }
}

async function resetEas(card: Card, uid: string): Promise<CommandResult> {
  const exchanged = await exchange(card, easFrame('reset', uid)).catch((error: unknown) => lost(text(error)))
  if ('outcome' in exchanged) return exchanged
  if ('refused' in exchanged) {
    // If the tag's EAS bit is off, the tag may have received the command before the reader refused.
    const why = `the reader: ${exchanged.refused}`
    return (await isEasOn(card, uid)) === false ? lost(why) : result('failed', true, 'refused', why)
  }
  const answer = exchanged.frame && tagAnswer(exchanged.frame)
  if (answer?.refused) return result('failed', true, 'refused', answer.refused)
  if (await isEasOn(card, uid)) return result('failed', true, 'no_confirmation', 'the EAS bit of the tag is still on')
  return answer
    ? result('confirmed', true, 'acknowledged', 'the tag has switched its EAS bit off')
    : lost('the tag did not answer')
}

/**
 * Switches the EAS bit of an ICODE SLI tag off, in a transparent session of the reader. The outcome is `confirmed` if
 * the tag answers and no longer sends its EAS sequence. Sends the command to the tag once. Rejects only if this command
 * was not sent.
 */
export async function releaseEas(card: Card, uid: string, signal: AbortSignal): Promise<CommandResult> {
  const start = transparentAnswer(await card.transmit(START_SESSION))
  if (start.kind !== 'done') {
    return result(
      'failed',
      false,
      'not_supported',
      'this reader passes no commands through to tags (PC/SC transparent session)',
    )
  }
  try {
    const turned = transparentAnswer(await card.transmit(SWITCH_TO_ISO15693))
    if (turned.kind !== 'done')
      return result('failed', false, 'not_supported', 'this reader passes no ISO 15693 commands through')
    if (signal.aborted) return result('failed', false, 'cancelled')
    return await resetEas(card, uid)
  } finally {
    await card.transmit(END_SESSION).catch(() => {})
  }
}
