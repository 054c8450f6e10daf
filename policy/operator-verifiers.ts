import { createHmac, hash, scryptSync } from 'node:crypto'
import type { Verifier } from './documents/store-documents.ts'
import type { Randomness } from './platform.ts'
import { secretsEqual } from './secrets-equal.ts'

/** PINs have few possible values, so the derivation from a PIN is slow. Badges contain 128 random bits. */
const PIN_COST = { n: 16_384, r: 8, p: 1 }
const BADGE_COST = { n: 1_024, r: 8, p: 1 }
export const DERIVED_KEY_BYTES = 32
const SALT_BYTES = 16
const STORE_KEY_BYTES = 32
const STORE_KEY_ID_BYTES = 12
/** Maximum number of card salts to try. All cards of a store share one salt. */
const SALTS_LIMIT = 2
/** Maximum scrypt cost of a published verifier: about 64 MiB. */
const MAX_COST = 65_536

/**
 *   secret ──scrypt──▶ base verifier ──HMAC with the store key──▶ published verifier
 *
 * The cloud stores base verifiers encrypted. The policy contains published verifiers and the id of the store key.
 * Agents receive the store key at login, so a copy of the policy alone does not allow a search for PINs. The cloud can
 * replace the store key without knowing the PINs.
 */

/** Parameters of a derivation. */
export type KeyDerivation = Omit<Verifier, 'key'>

/** Parameters for a PIN. */
export function pinDerivation(random: Randomness): KeyDerivation {
  return derivation(PIN_COST, random.bytes(SALT_BYTES))
}

/**
 * Parameters for a staff card; slow, because card numbers are short. A card does not name its operator. All cards of a
 * store share one salt, so one derivation finds the operator.
 */
export function cardDerivation(storeId: string): KeyDerivation {
  return derivation(PIN_COST, hash('sha256', `untag/card/1\0${storeId}`, 'buffer').subarray(0, SALT_BYTES))
}

/** Creates the verifier of a PIN. Blocks during the derivation. */
export function newPinVerifier(pin: string, random: Randomness): Verifier {
  return verifierWith(pin, pinDerivation(random))
}

/** Creates the verifier of a badge. */
export function newBadgeVerifier(secret: string, random: Randomness): Verifier {
  return verifierWith(secret, derivation(BADGE_COST, random.bytes(SALT_BYTES)))
}

/** Card number in upper-case hex, without colons, dashes and spaces. Undefined if the text is no card number. */
export function parseCardNumber(text: string): string | undefined {
  const hex = text.replace(/[\s:-]/g, '').toUpperCase()
  return /^(?:[0-9A-F]{2}){4,16}$/.test(hex) ? hex : undefined
}

/** Creates a store key: 256 random bits in base64url. */
export function newStoreKey(random: Randomness): string {
  return Buffer.from(random.bytes(STORE_KEY_BYTES)).toString('base64url')
}

/** Returns the id by which the policy refers to a store key. The id reveals nothing about the key. */
export function storeKeyId(storeKey: string): string {
  return hash('sha256', `untag/store-key-id/1\0${storeKey}`, 'buffer')
    .subarray(0, STORE_KEY_ID_BYTES)
    .toString('base64url')
}

/** Converts a base verifier into the verifier that the policy publishes under this store key. */
export function publishedVerifier(base: Verifier, storeKey: string): Verifier {
  return { ...base, key: keyed(Buffer.from(base.key, 'base64url'), storeKey).toString('base64url') }
}

function keyed(derived: Uint8Array, storeKey: string): Buffer {
  return createHmac('sha256', Buffer.from(storeKey, 'base64url')).update('untag/verifier/1\0').update(derived).digest()
}

/** Index of the published verifier of this card, or -1. Each salt costs one derivation. */
export function findCardIndex(verifiers: readonly (Verifier | undefined)[], card: string, storeKey: string): number {
  const derived = new Map<string, Buffer | undefined>()
  const keyBy = ({ salt, n, r, p }: Verifier) => {
    const parameters = [salt, n, r, p].join()
    if (!derived.has(parameters) && derived.size < SALTS_LIMIT)
      derived.set(parameters, derive(card, { salt, n, r, p }, storeKey))
    return derived.get(parameters)
  }
  return verifiers.findIndex(
    (verifier) => verifier !== undefined && secretsEqual(Buffer.from(verifier.key, 'base64url'), keyBy(verifier)),
  )
}

function derivation(cost: { n: number; r: number; p: number }, salt: Uint8Array): KeyDerivation {
  return { salt: Buffer.from(salt).toString('base64url'), ...cost }
}

function verifierWith(secret: string, parameters: KeyDerivation): Verifier {
  const { salt, n, r, p } = parameters
  const key = scryptSync(secret, Buffer.from(salt, 'base64url'), DERIVED_KEY_BYTES, { N: n, r, p })
  return { ...parameters, key: key.toString('base64url') }
}

/** Compares a secret with a published verifier in constant time. */
export function matchesVerifier({ key, ...parameters }: Verifier, secret: string, storeKey: string): boolean {
  return secretsEqual(Buffer.from(key, 'base64url'), derive(secret, parameters, storeKey))
}

/** Returns undefined if the derivation would cost more than in any release of untag. */
function derive(secret: string, { salt, n, r, p }: KeyDerivation, storeKey: string): Buffer | undefined {
  if (n > MAX_COST || r > 16 || p > 4) return undefined
  const salted = Buffer.from(salt, 'base64url')
  return keyed(scryptSync(secret, salted, DERIVED_KEY_BYTES, { N: n, r, p, maxmem: 128 * 1024 * 1024 }), storeKey)
}

const BADGE_PREFIX = 'UNTAGOP'
const OPERATOR_PREFIX = 'op_'

/** Text of a badge: only letters and digits, which every keyboard-wedge scanner types. */
export function badgeCode(operatorId: string, secret: string): string {
  return BADGE_PREFIX + operatorId.slice(OPERATOR_PREFIX.length) + secret
}

/**
 * Possible readings of a scanned badge: as scanned, and with Y and Z swapped. Scanners set to the other keyboard layout
 * (German or English) swap these letters. Empty if the text is no badge.
 */
export function parseBadge(text: string): { operatorId: string; secret: string }[] {
  const read = text.trim().toUpperCase()
  const swapped = read.replace(/[YZ]/g, (c) => (c === 'Y' ? 'Z' : 'Y'))
  return [...new Set([read, swapped])].flatMap((candidate) => {
    const match = /^UNTAGOP([0-9A-HJKMNP-TV-Z]{26})([A-Z2-7]{26})$/.exec(candidate)
    return match?.[1] && match[2] ? [{ operatorId: OPERATOR_PREFIX + match[1], secret: match[2] }] : []
  })
}
