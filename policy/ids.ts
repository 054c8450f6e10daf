import { crockford } from './base32.ts'
import type { Platform } from './platform.ts'

/**
 * A new id such as `pur_01JD…`: 48 bits of the time in ms and 80 random bits in Crockford Base32
 * (the ULID layout), so that rows made together lie together. The order of events never rests on it.
 */
export function newId(prefix: string, { clock, random }: Pick<Platform, 'clock' | 'random'>): string {
  const bytes = new Uint8Array(16)
  let ms = clock.wall()
  for (let i = 5; i >= 0; i--) {
    bytes[i] = ms % 256
    ms = Math.floor(ms / 256)
  }
  bytes.set(random.bytes(10), 6)
  return `${prefix}_${crockford.encode(bytes)}`
}

/** Whether `text` is an id as `newId` writes it with this prefix. */
export function isIdOf(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text.slice(prefix.length + 1))
}

/** Whether `text` may be an id at all: anything else is simply unknown (decisions §1). */
export function isIdShaped(text: string): boolean {
  return /^[\x21-\x7e]{1,128}$/.test(text)
}
