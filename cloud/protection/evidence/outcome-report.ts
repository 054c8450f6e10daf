import { decodeClaims } from '../../../policy/documents/decode-claims.ts'
import { HomeQuestion } from '../../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { currentAndFormerKeys } from '../../agent-identity/agent-keys.ts'
import { findAgent } from '../../agent-identity/sessions.ts'
import type { EvidenceScope } from './evidence-scope.ts'

/** What an agent reported to a receipt home of the rights that it was given there: `ask+jwt` with an outcome. */
export type OutcomeReport = HomeQuestion

/** The agent that forwards the report. */
interface Forwarder {
  agentId: string | null
  storeId: string
}

/**
 * Opens the report that a home forwards with `given_back`. Undefined unless it says the same, was sent to this home, is about an
 * epoch in which it was the home, and is signed by an agent of the store. That agent may have changed its key since, or may have been
 * enrolled again; the report of an agent that was revoked does not count.
 */
export async function openOutcomeReport(
  { db, facts, tenant, nowMs }: EvidenceScope,
  home: Forwarder,
  { redemptionId, outcome, report }: { redemptionId: string; outcome: string; report?: string | undefined },
): Promise<OutcomeReport | undefined> {
  if (report === undefined) return undefined
  const { iss, aud } = decodeClaims(report)
  if (typeof iss !== 'string' || typeof aud !== 'string') return undefined
  const agent = await findAgent(db, iss)
  if (agent?.tenant !== tenant || agent.store_id !== home.storeId) return undefined
  if (agent.revoked_ms !== null && agent.replaced_by === null) return undefined
  // A home that was enrolled again forwards what its predecessor received.
  if (!(await facts.isOwn(aud, home))) return undefined
  // No look at the times: a report is forwarded whenever the home reaches the cloud.
  const opened = openDocument<HomeQuestion>(report, DOCUMENT_KINDS.homeQuestion, {
    keys: await currentAndFormerKeys(db, agent, nowMs),
    audience: aud,
  })
  const claims = opened.ok ? HomeQuestion.safeParse(opened.claims).data : undefined
  if (claims?.redemptionId !== redemptionId || claims.outcome !== outcome) return undefined
  return (await facts.isHomeIn(claims.homeEpoch, home)) ? claims : undefined
}
