import { z } from 'zod'
import { isIdShaped } from './ids.ts'
import {
  AUTHORIZATION_STATES,
  DENY_REASONS,
  DEVICE_TYPES,
  ITEM_FACT_NAMES,
  ITEM_STATUSES,
  OUTCOMES,
  PROTECTION_ACTIONS,
  PROTECTION_TECHNOLOGIES,
  SCAN_SOURCES,
  TAG_TECHNOLOGIES,
  WORKFLOW_TYPES,
} from './vocabulary.ts'
import { isStorableText, UNSTORABLE_TEXT } from './untrusted-json.ts'

export const PROTECTION_EVENT_TYPES = [
  'protection.authorization.requested',
  'protection.authorization.granted',
  'protection.authorization.denied',
  'protection.action.completed',
  'protection.action.failed',
  'protection.device.offline',
  'protection.exception.raised',
] as const
export type ProtectionEventType = (typeof PROTECTION_EVENT_TYPES)[number]

const Id = z.string().min(1).max(128).refine(isStorableText, UNSTORABLE_TEXT)
/** Merchants choose event ids, which appear in webhook headers, cursors and requests. */
const EventId = Id.refine(isIdShaped, 'must be 1 to 128 visible characters of ASCII, without spaces')
const Text = z.string().max(300).refine(isStorableText, UNSTORABLE_TEXT)
const ShortReason = z.string().max(60).refine(isStorableText, UNSTORABLE_TEXT)

/**
 * A `protection.*` event with the field names of the specification. Identifiers are upper-case hex. The event contains
 * no customer data.
 */
export const ProtectionEvent = z.strictObject({
  type: z.enum(PROTECTION_EVENT_TYPES),
  eventId: EventId,
  protectionAction: z.enum(PROTECTION_ACTIONS).optional(),
  protectionTechnology: z.enum(PROTECTION_TECHNOLOGIES).optional(),
  /** Time of the event by the clock of its source. */
  occurredAt: z.iso.datetime({ offset: true }),
  /** Time when the cloud received the event; absent before. */
  processedAt: z.iso.datetime({ offset: true }).optional(),
  storeId: Id,
  zoneId: Id.optional(),
  gateId: Id.optional(),
  laneId: Id.optional(),
  deviceId: Id.optional(),
  deviceType: z.enum(DEVICE_TYPES).optional(),
  firmwareVersion: Id.optional(),
  purchaseId: Id.optional(),
  itemLineId: Id.optional(),
  itemStatus: z.enum(ITEM_STATUSES).optional(),
  workflowType: z.enum(WORKFLOW_TYPES).optional(),
  scanSource: z.enum(SCAN_SOURCES).optional(),
  operatorId: Id.optional(),
  epc: Id.optional(),
  tagUid: Id.optional(),
  tagId: Id.optional(),
  tagTechnology: z.enum(TAG_TECHNOLOGIES).optional(),
  authorizationState: z.enum(AUTHORIZATION_STATES).optional(),
  replayProtectedNonce: Id.optional(),
  /** A deny reason, or a short code of a failure or exception. */
  reason: z.union([z.enum(DENY_REASONS), ShortReason]).optional(),
  /** True if the agent decided without a connection to the cloud. */
  offline: z.boolean().optional(),
  /** An alarm of a gate: true if an emergency, such as a fire alarm, was active at the agent. */
  emergency: z.boolean().optional(),
  /** Item facts that an offline decision needed and did not have. The strictest rule then decided. */
  unknownFacts: z.array(z.enum(ITEM_FACT_NAMES)).min(1).max(ITEM_FACT_NAMES.length).optional(),
  outcome: z.enum(OUTCOMES).optional(),
  detail: Text.optional(),
})
export type ProtectionEvent = z.infer<typeof ProtectionEvent>
