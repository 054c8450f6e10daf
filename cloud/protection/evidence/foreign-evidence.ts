import type { EventScope } from '../records/record-event.ts'
import { countException } from '../records/exceptions.ts'

/**
 * A report about something of another agent or store, which the sender was not allowed to report. `kind`: kind of
 * evidence, or type of event.
 */
export interface ForeignReport {
  kind: string
  /** Token, redemption or event that the report names. */
  about: string
  detail: string
  deviceId?: string
}

/** Maximum length of an id in the exception text, characters. Agents choose these ids. */
const ABOUT_LIMIT = 128

/**
 * Raises `foreign_evidence` once per agent and kind of report, because a lying agent may send any number of reports.
 * Further reports only increase the count of the exception. The cloud stores all rows of the journal.
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
