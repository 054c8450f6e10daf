import type { TagTechnology } from '../../../policy/vocabulary.ts'
import { hex } from './hex.ts'

/** A UID in its printed form, or why it is not usable. */
export type ReadUid = { readonly uid: string } | { readonly refused: string }

/** First byte of an ISO 15693 UID; the maker's number (ISO/IEC 7816-6) follows. */
const ISO15693 = 0xe0
/** Makers of ISO 15693 tags: ST, NXP, Infineon, Texas Instruments, Fujitsu, EM, Maxim, Melexis. */
const MAKERS: ReadonlySet<number | undefined> = new Set([0x02, 0x04, 0x05, 0x07, 0x08, 0x16, 0x2b, 0x1f])
/** First byte of random 4-byte UIDs (ISO 14443-3). */
const RANDOM = 0x08
const LENGTHS: ReadonlySet<number> = new Set([4, 7, 8, 10])

/**
 * Converts a reader's UID to upper-case hex in its printed order. Some readers return ISO 15693 UIDs last byte first,
 * as they are transmitted. Rejects invalid lengths, blank UIDs and random 4-byte UIDs (08…). Phones and some cards show
 * a new random UID each time, so such a UID cannot identify an item.
 */
export function readUid(bytes: Uint8Array, technology: TagTechnology | undefined): ReadUid {
  if (!LENGTHS.has(bytes.length)) return { refused: `a UID of ${bytes.length} bytes` }
  if (bytes.every((byte) => byte === 0) || bytes.every((byte) => byte === 0xff))
    return { refused: `a blank UID ${hex(bytes)}` }
  if (technology === 'NfcV') {
    if (bytes.length !== 8) return { refused: `an ISO 15693 UID of ${bytes.length} bytes` }
    const [isFirst, isLast] = [bytes[0] === ISO15693, bytes[7] === ISO15693]
    if (!isFirst && !isLast) return { refused: `an ISO 15693 UID without E0: ${hex(bytes)}` }
    // One UID in 256 has E0 at both ends. In that case the maker's number decides.
    const isReversed = isFirst && isLast ? !MAKERS.has(bytes[1]) && MAKERS.has(bytes[6]) : isLast
    return { uid: hex(isReversed ? bytes.toReversed() : bytes) }
  }
  if (bytes.length === 4 && bytes[0] === RANDOM) return { refused: `a random UID ${hex(bytes)}` }
  return { uid: hex(bytes) }
}
