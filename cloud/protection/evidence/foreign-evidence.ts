import type { EventScope } from '../records/record-event.ts'
import { countException } from '../records/exceptions.ts'

/** A report that only another agent may send: kind of evidence row, or event type. */
export interface ForeignReport {
  kind: string
  /** Token, redemption or event that the report names. */
  about: string
  detail: string
  deviceId?: string
}

/** Agents choose these ids, and may choose long ones. */
const ABOUT_LIMIT = 128

/**
 * Raises `foreign_evidence` once per agent and kind of row, and counts further rows: a lying agent may send any
 * number of them. The rows stay in its journal.
 */
export async function raiseForeignEvidence(
  scope: EventScope,
  { agentId, storeId }: { agentId: string | null; storeId: string },
  { kind, about, detail, deviceId }: ForeignReport,
): Promise<void> {
  await countException(scope, {
    storeId,
    kind: 'foreign_evidence',
    subject: `${agentId ?? storeId}/${kind}`,
    detail: `${detail}: ${about.slice(0, ABOUT_LIMIT)}`,
    deviceId,
  })
}
