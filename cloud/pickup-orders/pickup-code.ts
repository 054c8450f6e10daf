import { hash } from 'node:crypto'
import { crockford } from '../../policy/base32.ts'
import type { Randomness } from '../../policy/platform.ts'
import { isSameSecret } from '../../policy/same-secret.ts'

/** 8 characters of Crockford's Base32: 40 random bits, short enough to be read aloud. */
const BYTES = 5

/** A new pick-up code; the customer gets it once, and only its hash is kept. */
export function newPickupCode(random: Randomness): string {
  return crockford.encode(random.bytes(BYTES))
}

/** What is kept of a code. The order's id in it keeps equal codes apart. */
export function pickupCodeHash(orderId: string, code: string): string {
  return hash('sha256', `pickup\0${orderId}\0${normalised(code)}`, 'base64url')
}

/** Whether this is the code of the order, however it was typed: case, spaces and hyphens do not matter, nor O for 0 and I or L for 1. */
export function isPickupCode(order: { order_id: string; code_hash: string }, code: string): boolean {
  return isSameSecret(order.code_hash, pickupCodeHash(order.order_id, code))
}

function normalised(code: string): string {
  return code.toUpperCase().replaceAll(/[\s-]/g, '').replaceAll('O', '0').replaceAll(/[IL]/g, '1')
}
