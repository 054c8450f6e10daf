import { hash } from 'node:crypto'
import { crockford } from '../../../policy/base32.ts'
import type { Randomness } from '../../../policy/platform.ts'

/**
 *  time 6 │ stores 4 │ branch 2 │ kind 1 │ random 3 │ check 5     bytes, as Crockford Base32
 *
 * Offers of test keys are not stored, so the id itself contains the mock offer. The check bytes bind the id to its
 * tenant, so the ids of other accounts are not found. The check is short, because it protects only mock data.
 */
export interface SandboxId {
  /** ms since 1970 */
  createdMs: number
  /** Bit n is set if the offer is in the tenant's n-th store. */
  stores: number
  branch: number
  /** Index of a preconfigured offer, or `CREATED`. */
  kind: number
  randomPart: number
}

export const CREATED = 255
/** Branch number in the id of a group. */
const GROUP = 0xffff
const PAYLOAD_BYTES = 16
const CHECK_BYTES = 5

function checkOf(tenant: string, payload: Uint8Array): Uint8Array {
  return hash('sha256', Buffer.concat([Buffer.from(`sandbox offer\0${tenant}\0`), payload]), 'buffer').subarray(
    0,
    CHECK_BYTES,
  )
}

function encode(prefix: string, tenant: string, { createdMs, stores, branch, kind, randomPart }: SandboxId): string {
  const payload = Buffer.alloc(PAYLOAD_BYTES)
  payload.writeUIntBE(createdMs, 0, 6)
  payload.writeUInt32BE(stores >>> 0, 6)
  payload.writeUInt16BE(branch, 10)
  payload.writeUInt8(kind, 12)
  payload.writeUIntBE(randomPart, 13, 3)
  return `${prefix}_${crockford.encode(Buffer.concat([payload, checkOf(tenant, payload)]))}`
}

/** Id of a branch document. */
export function branchId(tenant: string, id: SandboxId): string {
  return encode('off', tenant, id)
}

/** True if a text has the form of the ids that `branchId` returns. Ids of live offers are shorter. */
export function isSandboxOfferId(text: string): boolean {
  return /^off_[0-9A-HJKMNP-TV-Z]{34}$/.test(text)
}

/** Id of the group. */
export function groupIdOf(tenant: string, id: SandboxId): string {
  return encode('grp', tenant, { ...id, branch: GROUP })
}

/** Decodes an id of this tenant; undefined for any other text. */
export function readSandboxId(tenant: string, text: string): SandboxId | undefined {
  const match = /^(?:off|grp)_([0-9A-Z]{34})$/.exec(text)
  const bytes = match?.[1] === undefined ? undefined : crockford.decode(match[1])
  if (bytes?.length !== PAYLOAD_BYTES + CHECK_BYTES) return undefined
  const payload = Buffer.from(bytes.subarray(0, PAYLOAD_BYTES))
  if (!checkOf(tenant, payload).every((byte, i) => byte === bytes[PAYLOAD_BYTES + i])) return undefined
  const branch = payload.readUInt16BE(10)
  return {
    createdMs: payload.readUIntBE(0, 6),
    stores: payload.readUInt32BE(6),
    branch: branch === GROUP ? 0 : branch,
    kind: payload.readUInt8(12),
    randomPart: payload.readUIntBE(13, 3),
  }
}

/** Three random bytes, so that two offers that are created at the same time have different ids. */
export function newRandomPart(random: Randomness): number {
  return Buffer.from(random.bytes(3)).readUIntBE(0, 3)
}
