import { createHash } from 'node:crypto'
import { z } from 'zod'
import { JournalRow, UncheckedRow } from '../journal.ts'

/** What passes between one agent and the cloud, each signed by its sender. */

const Seconds = z.int().min(0)
const Common = { aud: z.string(), iat: Seconds, exp: Seconds }

/** The audience of what agents sign for the cloud. */
export const CLOUD_AUDIENCE = 'cloud'

/** Rows in one batch at most, so that it stays below the size of a bundle. */
export const BATCH_LIMIT = 100

/** `pevt+jwt`: a stretch of an agent's journal. */
export const EventBatchClaims = z.strictObject({
  ...Common,
  iss: z.string(),
  ledger: z.string().max(64),
  generation: z.int().min(1),
  seqFrom: z.int().min(1),
  seqTo: z.int().min(1),
  /** Hash of the row before the first. */
  after: z.string().length(43),
  events: z.array(JournalRow).min(1).max(BATCH_LIMIT),
  /** The agent tells the cloud again what it still has, from row `oldest` on: it was restored, or the acknowledgement is doubted. */
  resync: z.strictObject({ cloudGeneration: z.int().min(1), oldest: z.int().min(1) }).optional(),
})
export type EventBatchClaims = z.infer<typeof EventBatchClaims>

/** The same as the cloud opens it: a row that it cannot read is kept all the same (P3). */
export const UncheckedBatchClaims = EventBatchClaims.extend({ events: z.array(UncheckedRow).min(1).max(BATCH_LIMIT) })
export type UncheckedBatchClaims = z.infer<typeof UncheckedBatchClaims>

/** `ack+jwt`: every row up to `seq` is durably applied. Only this lets an agent prune. */
export const AckClaims = z.strictObject({
  ...Common,
  ledger: z.string(),
  generation: z.int().min(1),
  seq: z.int().min(0),
  head: z.string(),
  /** Left out while it is 1. What a cloud acknowledged that was then restored from a backup counts for nothing. */
  cloudGeneration: z.int().min(1).optional(),
})
export type AckClaims = z.infer<typeof AckClaims>

/** `cmd+jwt`: something the cloud wants of an agent now. */
export const CommandClaims = z.strictObject({
  ...Common,
  jti: z.string(),
  command: z.enum(['sync', 'revoke', 'void', 'locate', 'restart-driver', 'diagnose']),
  nonce: z.string().optional(),
  deviceId: z.string().optional(),
})
export type CommandClaims = z.infer<typeof CommandClaims>

/** `assert+jwt`: a login over HTTP, or the password at the broker. */
export const AssertionClaims = z.strictObject({
  ...Common,
  iss: z.string(),
  challenge: z.string(),
  ledger: z.string(),
  generation: z.int().min(1),
  /** The end of the ledger as it was at the start, and from the first login on as it is: shows one that was put back. */
  seq: z.int().min(0).optional(),
  head: z.string().length(43).optional(),
  /** The agent itself has found that its ledger was restored: rows are lost that the cloud may never have received. */
  restored: z.literal(true).optional(),
})
export type AssertionClaims = z.infer<typeof AssertionClaims>

/** `enrol+jwt`: proof that the key which asks to be enrolled is held by who has the code. */
export const EnrolmentClaims = z.strictObject({
  ...Common,
  codeHash: z.string(),
  ledger: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
})
export type EnrolmentClaims = z.infer<typeof EnrolmentClaims>

/** How long the proof of a new key counts, seconds. */
export const ROTATION_LIFE = 300

/** `rotate+jwt`: the new key of an agent says that it is held by who had the former. */
export const RotationClaims = z.strictObject({ ...Common, formerKid: z.string().length(8) })
export type RotationClaims = z.infer<typeof RotationClaims>

/** The retained `state` of an agent; unsigned, a hint for people only. */
export const AgentState = z.strictObject({
  online: z.boolean(),
  observedAt: z.iso.datetime(),
  policyVersion: z.int().min(0).optional(),
  queueDepth: z.int().min(0).optional(),
  devices: z
    .array(
      z.strictObject({
        deviceId: z.string().max(128),
        state: z.string().max(40),
        detail: z.string().max(300).optional(),
      }),
    )
    .max(200)
    .optional(),
})
export type AgentState = z.infer<typeof AgentState>

/** An enrolment code without dashes and in upper case, as it is hashed and compared. */
export function normaliseEnrolmentCode(code: string): string {
  // Crockford: what people read as O, I and L are digits.
  return code.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1')
}

/** What the cloud keeps of a one-time code: a hash, base64url, that no other use of SHA-256 here can give. */
export function enrolmentCodeHash(code: string): string {
  return createHash('sha256')
    .update(`untag/enrol/1\0${normaliseEnrolmentCode(code)}`)
    .digest('base64url')
}
