import { v7 } from 'uuid'
import { assert } from './assert.ts'
import { crockford } from './base32.ts'
import type { Clock, Platform } from './platform.ts'

/** The last id that was made with a clock. */
interface LastId {
  ms: number
  seq: number
}

/**
 * The last id of each clock. Simulated machines in one process have separate clocks, so they do not affect each other.
 */
const lastIds = new WeakMap<Clock, LastId>()
const SEQ_LIMIT = 2 ** 32

/**
 * Creates an id such as `pur_01JD…`: a UUID version 7 (RFC 9562) in 26 characters of Crockford Base32, with the time in
 * ms first. Ids that one process makes in the same millisecond are in order. Do not order events by id, because clocks
 * can go back.
 */
export function newId(prefix: string, { clock, random }: Pick<Platform, 'clock' | 'random'>): string {
  // A clock before 1970 is treated as 1970, because the format has no earlier time.
  const msecs = Math.max(0, Math.floor(clock.wall()))
  const bytes = random.bytes(10)
  const seq = nextSeq(clock, msecs, bytes)
  // `v7` uses only the last six of these 16 bytes; `msecs` and `seq` fill the rest of the id.
  const padded = new Uint8Array(16)
  padded.set(bytes.subarray(4), 10)
  return `${prefix}_${crockford.encode(v7({ msecs, seq, random: padded }, new Uint8Array(16)))}`
}

/**
 * Next sequence number. The first number of a millisecond is a random 31-bit number, so that at least half of the
 * 32-bit range stays free. Each further number is 1 higher.
 */
function nextSeq(clock: Clock, ms: number, bytes: Uint8Array): number {
  const last = lastIds.get(clock)
  if (last?.ms === ms) {
    assert(++last.seq < SEQ_LIMIT, 'over 2^31 ids in one millisecond')
    return last.seq
  }
  const seq = Buffer.from(bytes.buffer, bytes.byteOffset, 4).readUInt32BE() >>> 1
  if (last) Object.assign(last, { ms, seq })
  else lastIds.set(clock, { ms, seq })
  return seq
}

/** Lower bound of the ids with this prefix that were made at `ms` or later. */
export function firstIdAt(prefix: string, ms: number): string {
  const bytes = Buffer.alloc(16)
  bytes.writeUIntBE(Math.max(0, Math.floor(ms)), 0, 6)
  return `${prefix}_${crockford.encode(bytes)}`
}

/** True if `text` has the form of an id that `newId` makes with this prefix. */
export function isIdOf(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text.slice(prefix.length + 1))
}

/** True if `text` has the shape of an id. Operations treat other texts as unknown ids (ADR requests). */
export function isIdShaped(text: string): boolean {
  return /^[\x21-\x7e]{1,128}$/.test(text)
}
