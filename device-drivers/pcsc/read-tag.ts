import type { TagTechnology } from '../../policy/vocabulary.ts'
import { GET_UID, goodData, readBinary, splitAnswer, statusText } from './protocol/apdu.ts'
import { tagTechnology } from './protocol/atr.ts'
import { readType2, readType5 } from './protocol/ndef-memory.ts'
import type { NdefRead } from './protocol/ndef-memory.ts'
import { ndefTexts } from './protocol/ndef.ts'
import { readUid } from './protocol/uid.ts'
import type { Card } from './card.ts'
import { PcscRefusal } from './pcscd.ts'

/** The tag on the reader, or why it has no usable UID. */
export type SeenTag = { readonly uid: string; readonly technology?: TagTechnology } | { readonly refused: string }

/** Reads the UID. Rejects if the reader cannot read the UID. */
export async function readTag(card: Card, atr: Uint8Array): Promise<SeenTag> {
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
export async function readTexts(card: Card, technology: TagTechnology | undefined): Promise<string[]> {
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
