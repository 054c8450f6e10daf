import { createHash } from 'node:crypto'
import { z } from 'zod'
import { JournalRow, UncheckedRow } from '../journal.ts'
import { ALARM_STEPS } from '../vocabulary.ts'

/** Signed messages between an agent and the cloud. */

const Seconds = z.int().min(0)
const Common = { aud: z.string(), iat: Seconds, exp: Seconds }

/** Audience of documents that agents sign for the cloud. */
export const CLOUD_AUDIENCE = 'cloud'

/** Maximum rows of a batch. This limit keeps a batch below the maximum length of a document. */
export const BATCH_LIMIT = 100

/** `pevt+jwt`: consecutive rows of an agent's journal. */
export const EventBatchClaims = z.strictObject({
  ...Common,
  iss: z.string(),
  ledger: z.string().max(64),
  generation: z.int().min(1),
  seqFrom: z.int().min(1),
  seqTo: z.int().min(1),
  /** Hash of the row before `seqFrom`. */
  after: z.string().length(43),
  events: z.array(JournalRow).min(1).max(BATCH_LIMIT),
  /**
   * Set while the agent resends its rows from `oldest` on. The reason is a restore of the cloud, or a doubtful
   * acknowledgement.
   */
  resync: z.strictObject({ cloudGeneration: z.int().min(1), oldest: z.int().min(1) }).optional(),
})
export type EventBatchClaims = z.infer<typeof EventBatchClaims>

/** A batch as the cloud parses it. The cloud also stores rows that it cannot validate (P3). */
export const UncheckedBatchClaims = EventBatchClaims.extend({ events: z.array(UncheckedRow).min(1).max(BATCH_LIMIT) })
export type UncheckedBatchClaims = z.infer<typeof UncheckedBatchClaims>

/** Maximum rows that an acknowledgement names as not applied. */
export const UNAPPLIED_LIMIT = 200

/** `ack+jwt`: all rows up to `seq` are durable in the cloud. The agent prunes only such rows. */
export const AckClaims = z.strictObject({
  ...Common,
  ledger: z.string(),
  generation: z.int().min(1),
  seq: z.int().min(0),
  head: z.string(),
  /** Absent means 1. After a restore of the cloud, agents ignore acknowledgements of earlier generations. */
  cloudGeneration: z.int().min(1).optional(),
  /** Epoch and number of the item sequence that contains what these rows changed. */
  items: z.tuple([Seconds, Seconds]).optional(),
  /** The newest of these rows that are stored and not applied yet: the items do not contain them. */
  unapplied: z.array(z.int().min(1)).max(UNAPPLIED_LIMIT).optional(),
})
export type AckClaims = z.infer<typeof AckClaims>

/** Maximum alarms whose state an agent asks for at once. */
export const ALARM_STATES_LIMIT = 200

/** What people did last about an alarm, for the display of its gate. */
export const AlarmStateReport = z.strictObject({
  eventId: z.string().max(128),
  step: z.enum(ALARM_STEPS),
  /** Name of the person. Empty if unknown. */
  by: z.string(),
})
export type AlarmStateReport = z.infer<typeof AlarmStateReport>

/** `cmd+jwt`: a command of the cloud to an agent. */
export const CommandClaims = z.strictObject({
  ...Common,
  jti: z.string(),
  command: z.enum(['sync', 'revoke', 'void', 'locate', 'restart-driver', 'diagnose']),
  nonce: z.string().optional(),
  deviceId: z.string().optional(),
})
export type CommandClaims = z.infer<typeof CommandClaims>

/** `assert+jwt`: login over HTTP, or password at the broker. */
export const AssertionClaims = z.strictObject({
  ...Common,
  iss: z.string(),
  challenge: z.string(),
  ledger: z.string(),
  generation: z.int().min(1),
  /**
   * First login: head of the ledger at start. Later logins: current head. From the head the cloud detects a rollback.
   */
  seq: z.int().min(0).optional(),
  head: z.string().length(43).optional(),
  /** Set if the agent detected a rollback of its ledger. Rows that the cloud never received may be lost. */
  restored: z.literal(true).optional(),
})
export type AssertionClaims = z.infer<typeof AssertionClaims>

/** Agents whose ledger an enrolment continues, at most: the one before, and older ones for a restored cloud. */
export const PREDECESSORS_LIMIT = 4

/** `enrol+jwt`: proves possession of both the enrolment code and the new private key. */
export const EnrolmentClaims = z.strictObject({
  ...Common,
  codeHash: z.string(),
  ledger: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
})
export type EnrolmentClaims = z.infer<typeof EnrolmentClaims>

/** Lifetime of the proof of a new key, s. */
export const ROTATION_LIFE = 300

/** `rotate+jwt`: the new key signs the statement that it replaces the key `formerKid`. */
export const RotationClaims = z.strictObject({ ...Common, formerKid: z.string().length(8) })
export type RotationClaims = z.infer<typeof RotationClaims>

/**
 * Whether a device works. `degraded`: it answers, but a person must change something. `absent`: it does not answer.
 */
export const DEVICE_HEALTH = ['ready', 'degraded', 'absent'] as const
export type DeviceHealth = (typeof DEVICE_HEALTH)[number]

/** Maximum number of devices in a report. */
export const REPORTED_DEVICES_LIMIT = 200

/** Health of a device in the reports of its agent. `state`: one of `DEVICE_HEALTH`; older agents send more states. */
export const ReportedDevice = z.strictObject({
  deviceId: z.string().max(128),
  state: z.string().max(40),
  detail: z.string().max(300).optional(),
  /** Time since which it is ready, or since which it is not. Older agents send none. */
  since: z.iso.datetime().optional(),
  /** Of exit gates only. False: no device reads tags there, so that the gate opens, and watches nothing. */
  readsTags: z.boolean().optional(),
})
export type ReportedDevice = z.infer<typeof ReportedDevice>

/** Retained MQTT message `state` of an agent. This message is unsigned and only informs people. */
export const AgentState = z.strictObject({
  online: z.boolean(),
  observedAt: z.iso.datetime(),
  policyVersion: z.int().min(0).optional(),
  queueDepth: z.int().min(0).optional(),
  devices: z.array(ReportedDevice).max(REPORTED_DEVICES_LIMIT).optional(),
})
export type AgentState = z.infer<typeof AgentState>

/** Normalises an enrolment code: upper case, no dashes. */
export function normaliseEnrolmentCode(code: string): string {
  // Crockford: people read 0 as O, and 1 as I or L.
  return code.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1')
}

/** Hash of an enrolment code, base64url. The prefix separates this hash from other uses of SHA-256. */
export function enrolmentCodeHash(code: string): string {
  return createHash('sha256')
    .update(`untag/enrol/1\0${normaliseEnrolmentCode(code)}`)
    .digest('base64url')
}
