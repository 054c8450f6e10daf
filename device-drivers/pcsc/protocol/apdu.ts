import type { TagTechnology } from '../../../policy/vocabulary.ts'

/** Upper-case hex without spaces. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .toUpperCase()
}

/** The bytes of hex digits; spaces are ignored. */
export function unhex(text: string): Uint8Array {
  return Uint8Array.from(text.replaceAll(/\s/g, '').match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

/** A UID in its printed form, or why it is not usable. */
type ReadUid = { readonly uid: string } | { readonly refused: string }

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

/** Commands to the reader about its tag: PC/SC part 3, supplement for contactless cards. */
export const GET_UID = Uint8Array.of(0xff, 0xca, 0x00, 0x00, 0x00)

/** Reads `length` bytes from page or block `address` (0 to 255) of a storage card. */
export function readBinary(address: number, length: number): Uint8Array {
  return Uint8Array.of(0xff, 0xb0, 0x00, address, length)
}

/** An answer: data, then a status. */
interface ApduAnswer {
  readonly data: Uint8Array
  /** Status word; hex 9000 means success. */
  readonly status: number
}

/** Splits an answer; null if it is too short for a status. */
export function splitAnswer(bytes: Uint8Array): ApduAnswer | null {
  const [high, low] = bytes.slice(-2)
  if (high === undefined || low === undefined) return null
  return { data: bytes.slice(0, -2), status: high * 256 + low }
}

/** The data of a successful answer, else null. */
export function goodData(answer: ApduAnswer | null): Uint8Array | null {
  return answer?.status === 0x9000 ? answer.data : null
}

const STATUS: Record<number, string> = {
  0x6300: 'the tag did not answer',
  0x6400: 'the tag did not answer',
  0x6401: 'the tag did not answer',
  0x6581: 'the tag cannot write',
  0x6700: 'the reader wants another length',
  0x6982: 'the tag is protected',
  0x6986: 'the reader does not do this',
  0x6a81: 'the reader does not do this',
  0x6a82: 'no such address on the tag',
  0x6d00: 'the reader does not do this',
  0x6e00: 'the reader does not do this',
}

/** A text of a status, such as `the reader does not do this (6A81)`. */
export function statusText(status: number): string {
  return `${STATUS[status] ?? 'refused'} (${hex(Uint8Array.of(status >> 8, status & 0xff))})`
}
