import { decodeUnverifiedClaims } from '../../../policy/documents/unverified-claims.ts'
import { HomeRequest } from '../../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { currentAndFormerKeys } from '../agent-identity/agent-keys.ts'
import { findAgent } from '../agent-identity/sessions.ts'
import type { EvidenceScope } from './evidence-scope.ts'

/** Signed outcome report to a receipt home about delegated rights: a home request (`ask+jwt`) with an outcome. */
export type OutcomeReport = HomeRequest

/** Receipt home that forwards the report. */
interface Forwarder {
  agentId: string | null
  storeId: string
}

/**
 * Verifies an outcome report. The report must match the row, and name this receipt home and one of its epochs. An agent
 * of the store must have signed the report with a current or former key. Returns undefined if the report is invalid, or
 * if it comes from a revoked agent without a successor.
 */
export async function openOutcomeReport(
  { db, facts, tenant, nowMs }: EvidenceScope,
  home: Forwarder,
  { redemptionId, outcome, report }: { redemptionId: string; outcome: string; report?: string | undefined },
): Promise<OutcomeReport | undefined> {
  if (report === undefined) return undefined
  const { iss, aud } = decodeUnverifiedClaims(report)
  if (typeof iss !== 'string' || typeof aud !== 'string') return undefined
  const agent = await findAgent(db, iss)
  if (agent?.tenant !== tenant || agent.store_id !== home.storeId) return undefined
  if (agent.revoked_ms !== null && agent.replaced_by === null) return undefined
  // A re-enrolled receipt home forwards reports that its predecessor received.
  if (!(await facts.isOwn(aud, home))) return undefined
  // Does not check times, because the receipt home may forward a report long after it was signed.
  const opened = openDocument<HomeRequest>(report, DOCUMENT_KINDS.homeRequest, {
    keys: await currentAndFormerKeys(db, agent, nowMs),
    audience: aud,
  })
  const claims = opened.ok ? HomeRequest.safeParse(opened.claims).data : undefined
  if (claims?.redemptionId !== redemptionId || claims.outcome !== outcome) return undefined
  return (await facts.isHomeIn(claims.homeEpoch, home)) ? claims : undefined
}
