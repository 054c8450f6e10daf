import { scryptSync, timingSafeEqual } from 'node:crypto'
import type { Verifier } from './documents/store-documents.ts'
import type { Randomness } from './platform.ts'

/** A PIN has little to guess, so guessing is made slow; a badge holds 128 random bits and needs no slowness. */
const PIN_COST = { n: 16_384, r: 8, p: 1 }
const BADGE_COST = { n: 1_024, r: 8, p: 1 }
const KEY_BYTES = 32
/** What a verifier from outside may ask for: about 64 MiB. */
const MAX_COST = 65_536

/** Verifier of a PIN: slow, because a PIN has few values. */
export function newPinVerifier(pin: string, random: Randomness): Verifier {
  return newVerifier(pin, PIN_COST, random)
}

/** Verifier of a badge: fast, because its secret cannot be guessed. */
export function newBadgeVerifier(secret: string, random: Randomness): Verifier {
  return newVerifier(secret, BADGE_COST, random)
}

function newVerifier(secret: string, { n, r, p }: { n: number; r: number; p: number }, random: Randomness): Verifier {
  const salt = Buffer.from(random.bytes(16))
  const key = scryptSync(secret, salt, KEY_BYTES, { N: n, r, p })
  return { salt: salt.toString('base64url'), key: key.toString('base64url'), n, r, p }
}

/** Whether this is the secret, in constant time. */
export function isVerifiedBy({ salt, key, n, r, p }: Verifier, secret: string): boolean {
  if (n > MAX_COST || r > 16 || p > 4) return false
  const wanted = Buffer.from(key, 'base64url')
  const given = scryptSync(secret, Buffer.from(salt, 'base64url'), KEY_BYTES, { N: n, r, p, maxmem: 128 * 1024 * 1024 })
  return wanted.length === given.length && timingSafeEqual(wanted, given)
}

const BADGE_PREFIX = 'UNTAGOP'
const OPERATOR_PREFIX = 'op_'

/** What a badge's code says: letters and digits only, which every keyboard-wedge scanner types. */
export function badgeText(operatorId: string, secret: string): string {
  return BADGE_PREFIX + operatorId.slice(OPERATOR_PREFIX.length) + secret
}

/** What a scanned badge may mean: as read, and with Y and Z swapped, as scanners on German hosts do. Empty: no badge. */
export function readBadge(text: string): { operatorId: string; secret: string }[] {
  const read = text.trim().toUpperCase()
  const swapped = read.replace(/[YZ]/g, (c) => (c === 'Y' ? 'Z' : 'Y'))
  return [...new Set([read, swapped])].flatMap((candidate) => {
    const match = /^UNTAGOP([0-9A-HJKMNP-TV-Z]{26})([A-Z2-7]{26})$/.exec(candidate)
    return match?.[1] && match[2] ? [{ operatorId: OPERATOR_PREFIX + match[1], secret: match[2] }] : []
  })
}
