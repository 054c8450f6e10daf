import { hash } from 'node:crypto'
import { crockford } from '../../../policy/base32.ts'
import type { Randomness } from '../../../policy/platform.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'

/** 40 random bits: 8 characters in Crockford's Base32, short enough to read aloud. */
const BYTES = 5

/** Creates a pick-up code. Only its hash is stored. */
export function newPickupCode(random: Randomness): string {
  return crockford.encode(random.bytes(BYTES))
}

/** Stored hash of a code. The hash includes the order id, so that equal codes have different hashes. */
export function pickupCodeHash(orderId: string, code: string): string {
  return hash('sha256', `pickup\0${orderId}\0${normalised(code)}`, 'base64url')
}

/** True if the code belongs to the order. Ignores case, spaces and hyphens; reads O as 0, I and L as 1. */
export function isPickupCode(order: { order_id: string; code_hash: string }, code: string): boolean {
  return secretsEqual(order.code_hash, pickupCodeHash(order.order_id, code))
}

function normalised(code: string): string {
  return code.toUpperCase().replaceAll(/[\s-]/g, '').replaceAll('O', '0').replaceAll(/[IL]/g, '1')
}
