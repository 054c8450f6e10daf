import type { EventScope } from '../records/record-event.ts'
import { countException } from '../records/exceptions.ts'

/** What an agent reported that only another one may report: a row of evidence, or the type of an event. */
export interface ForeignReport {
  kind: string
  /** The token, redemption or event that it names. */
  about: string
  detail: string
  deviceId?: string
}

/** Ids that agents make up may be long. */
const ABOUT_LIMIT = 128

/**
 * Raises `foreign_evidence` once for each agent and kind of row, and counts the rows: an agent that lies sends any number of
 * them. The rows themselves are in its journal.
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
