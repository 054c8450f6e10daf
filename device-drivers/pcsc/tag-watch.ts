import { pause, type Platform } from '../../policy/platform.ts'
import type { TagTechnology } from '../../policy/vocabulary.ts'
import { type ReaderState, NO_CARD, REMOVED } from './protocol/messages.ts'
import type { DeviceEvent } from '../kit/device.ts'
import { withCard, type Card } from './card.ts'
import { type Pcscd, ConversationOver, PcscRefusal } from './pcscd.ts'
import { GET_UID, goodData, readBinary, splitAnswer, statusText, readUid } from './protocol/apdu.ts'
import { tagTechnology } from './protocol/atr.ts'
import { readType2, readType5, type NdefRead, ndefTexts } from './protocol/ndef.ts'

/** The tag on the reader, or why it has no usable UID. */
type SeenTag = { readonly uid: string; readonly technology?: TagTechnology } | { readonly refused: string }

/** Reads the UID. Rejects if the reader cannot read the UID. */
async function readTag(card: Card, atr: Uint8Array): Promise<SeenTag> {
  const technology = tagTechnology(atr)
  const answer = splitAnswer(await card.transmit(GET_UID))
  const bytes = goodData(answer)
  if (!bytes) throw new Error(`the reader cannot read the UID: ${statusText(answer?.status ?? 0)}`)
  const uid = readUid(bytes, technology)
  return 'uid' in uid && technology ? { ...uid, technology } : uid
}

const NDEF_OF: Partial<Record<TagTechnology, () => NdefRead>> = { MifareUltralight: readType2, NfcV: readType5 }

async function readMemory(card: Card, address: number, length: number): Promise<Uint8Array | null> {
  try {
    return goodData(splitAnswer(await card.transmit(readBinary(address, length))))
  } catch (error) {
    if (error instanceof PcscRefusal) return null
    throw error
  }
}

/** Reads the links and texts of the NDEF message; empty if no message is readable. */
async function readTexts(card: Card, technology: TagTechnology | undefined): Promise<string[]> {
  const reading = technology && NDEF_OF[technology]?.()
  if (!reading) return []
  let step = reading.next()
  while (!step.done) {
    const bytes = await readMemory(card, step.value.address, step.value.length)
    if (!bytes) card.resetOnRelease()
    step = reading.next(bytes)
  }
  return step.value ? ndefTexts(step.value) : []
}

/** The last reported tag that has not left. */
interface PresentTag {
  readonly uid: string
  readonly technology?: TagTechnology
}

/** Tracks the tag on one reader, over all connections to pcscd. */
export interface TagWatch {
  readonly present: PresentTag | null
  /** Applies a reader state, and reads a new card. Rejects when the connection is over. */
  update(pcscd: Pcscd, state: ReaderState, over: AbortSignal): Promise<void>
  /** Makes the next `update` read the card again. If the tag is the same, `update` emits no event. */
  invalidate(): void
  /** Call this function when the reader is gone. It emits `tag_gone`. */
  gone(): void
}

const MAX_TRIES = 3
const TRY_AGAIN_MS = 150

/** Emits an event for each tag that arrives or leaves. `withTexts`: also emits the links and texts on tags. */
export function tagWatch(
  { clock, timers }: Platform,
  withTexts: boolean,
  emit: (event: DeviceEvent) => void,
): TagWatch {
  let present: PresentTag | null = null
  /** Value of `eventCounter` when the last card was read. */
  let handled: number | null = null
  let isStale = false

  function gone(): void {
    handled = null
    isStale = false
    if (!present) return
    emit({ type: 'tag_gone', tag: { tagUid: present.uid } })
    present = null
  }

  function report(seen: SeenTag, mayBeSame: boolean): boolean {
    const isSame = 'uid' in seen && present?.uid === seen.uid
    if (isSame && mayBeSame) return false
    gone()
    if ('refused' in seen) return false
    const technology = seen.technology ? { technology: seen.technology } : {}
    present = { uid: seen.uid, ...technology }
    emit({ type: 'tags', reads: [{ tag: { tagUid: seen.uid }, ...technology, seenAtMs: clock.elapsed() }] })
    return true
  }

  async function read(pcscd: Pcscd, state: ReaderState, mayBeSame: boolean, over: AbortSignal): Promise<void> {
    await withCard(pcscd, state.name, timers, over, async (card) => {
      const seen = await readTag(card, state.atr).catch((error: unknown) => {
        card.resetOnRelease()
        throw error
      })
      if (!report(seen, mayBeSame) || !withTexts) return
      for (const text of await readTexts(card, present?.technology)) emit({ type: 'scan', text })
    })
  }

  async function update(pcscd: Pcscd, state: ReaderState, over: AbortSignal): Promise<void> {
    if (!state.cardPresent) return gone()
    // Without an ATR, the card is starting or does not answer; pcscd reports a later change.
    if (state.atr.length === 0 || (handled === state.eventCounter && !isStale)) return
    const mayBeSame = isStale
    for (let tries = 1; ; tries++) {
      try {
        await read(pcscd, state, mayBeSame, over)
        break
      } catch (error) {
        if (over.aborted || error instanceof ConversationOver) throw error
        if (error instanceof PcscRefusal && (error.rv === NO_CARD || error.rv === REMOVED)) return gone()
        if (tries >= MAX_TRIES) {
          gone()
          emit({
            type: 'fault',
            detail: `the card on ${state.name} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
          })
          break
        }
        await pause(timers, TRY_AGAIN_MS, over)
      }
    }
    handled = state.eventCounter
    isStale = false
  }

  return {
    get present() {
      return present
    },
    update,
    invalidate: () => void (isStale = true),
    gone,
  }
}
