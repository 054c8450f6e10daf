/** One read from a tag: `length` bytes at page or block `address`. */
export interface MemoryRead {
  readonly address: number
  readonly length: number
}

/**
 * Yields each read and receives the bytes, or null if they are unreadable. Returns the message, or null if there is
 * none.
 */
export type NdefRead = Generator<MemoryRead, Uint8Array | null, Uint8Array | null>

/**
 * Maximum length of a message, bytes. Longer messages are neither receipts nor links to items, and would keep the
 * reader busy.
 */
export const MAX_NDEF_BYTES = 1_024

const MAGIC = 0xe1
const NULL_TLV = 0x00
const NDEF_TLV = 0x03
const TERMINATOR_TLV = 0xfe
const CC_BYTES = 4
/** Bytes of a page or block. */
const UNIT_BYTES = 4

interface Layout {
  /** Address of the capability container. */
  readonly first: number
  /** Bytes of one read. */
  readonly each: number
}

/** Pages of 4 bytes, read four at a time. */
const TYPE2: Layout = { first: 3, each: 16 }
/** Blocks of 4 bytes. */
const TYPE5: Layout = { first: 0, each: 4 }

/**
 * Finds the NDEF message of an NFC Forum Type 2 (NTAG, Ultralight) or Type 5 (ISO 15693) tag. The memory of such a tag
 * has a capability container {E1, version, size of the data / 8, access}, then blocks {tag, length, value}. The search
 * never reads beyond the size in the container. Beyond this size, some tags stop answering, and others continue at the
 * first page.
 */
function* readMessage({ first, each }: Layout): NdefRead {
  const held: number[] = []
  let next = first
  let size = CC_BYTES

  function* fetchTo(end: number): Generator<MemoryRead, boolean, Uint8Array | null> {
    while (held.length < end) {
      if (end > size || next > 0xff) return false
      const read = yield { address: next, length: each }
      // Some readers return one page or block for each read, whatever the requested length.
      const units = Math.floor(Math.min(read?.length ?? 0, each) / UNIT_BYTES)
      if (!read || units === 0) return false
      held.push(...read.subarray(0, units * UNIT_BYTES))
      next += units
    }
    return true
  }
  const at = (index: number): number => held[index] ?? 0

  if (!(yield* fetchTo(CC_BYTES)) || at(0) !== MAGIC) return null
  size = CC_BYTES + at(2) * 8
  for (let from = CC_BYTES; ;) {
    if (!(yield* fetchTo(from + 1))) return null
    const tag = at(from++)
    if (tag === TERMINATOR_TLV) return null
    if (tag === NULL_TLV) continue
    if (!(yield* fetchTo(from + 1))) return null
    let length = at(from++)
    if (length === 0xff) {
      if (!(yield* fetchTo(from + 2))) return null
      length = at(from) * 256 + at(from + 1)
      from += 2
    }
    if (length > MAX_NDEF_BYTES || from + length > size) return null
    if (tag === NDEF_TLV)
      return length > 0 && (yield* fetchTo(from + length)) ? Uint8Array.from(held.slice(from, from + length)) : null
    from += length
  }
}

/** Reads the message of a Type 2 tag; addresses are pages. */
export function readType2(): NdefRead {
  return readMessage(TYPE2)
}

/** Reads the message of a Type 5 tag with blocks of 4 bytes and at most 2,040 bytes of data. Addresses count blocks. */
export function readType5(): NdefRead {
  return readMessage(TYPE5)
}
