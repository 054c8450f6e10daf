import { hex } from './hex.ts'

/** Commands to the reader about its tag: PC/SC part 3, supplement for contactless cards. */
export const GET_UID = Uint8Array.of(0xff, 0xca, 0x00, 0x00, 0x00)

/** Reads `length` bytes from page or block `address` (0 to 255) of a storage card. */
export function readBinary(address: number, length: number): Uint8Array {
  return Uint8Array.of(0xff, 0xb0, 0x00, address, length)
}

/** An answer: data, then a status. */
export interface ApduAnswer {
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
