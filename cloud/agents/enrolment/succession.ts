import { EnrolmentClaims } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { isSameSecret } from '../../../policy/same-secret.ts'
import type { Call } from '../../operations/operation.ts'
import type { AgentRow, EnrolmentCodeRow } from '../../persistence/tables/agents.ts'
import { inheritHome } from '../../protection/devices/adopt-device.ts'
import { waitForSuccessor } from '../../protection/receipt-home/home-move.ts'
import { policyOf } from '../../protection/store-documents/parsed-policy.ts'
import { findStore } from '../../stores/queries.ts'
import { agentKeys } from '../../agent-identity/agent-keys.ts'
import { endAgent } from './end-agent.ts'
import { findAgent } from '../../agent-identity/sessions.ts'

/**
 *   enrolled, with the word of the former's key ─ first login ─▶ the former is revoked; its devices, the home and what it
 *                                                               still has to tell are the new one's
 *
 * An agent that was enrolled anew on its machine goes on with the same ledger. Until it has come the former counts: the answer
 * to an enrolment may be lost. Revoked meanwhile, it has vouched for the new one all the same.
 */
export interface Replacement {
  agentId: string
  /** enrol+jwt of the former's key, about the same code and the new ledger. */
  proof: string
}

/** The agent of the same store whose key speaks for this enrolment; undefined where none does: a restored cloud may not know it. */
export async function findPredecessor(
  call: Call,
  code: EnrolmentCodeRow,
  { agentId, proof }: Replacement,
  ledger: string,
): Promise<AgentRow | undefined> {
  const former = await findAgent(call.db, agentId)
  if (former?.tenant !== code.tenant || former.store_id !== code.store_id || former.revoked_ms !== null)
    return undefined
  const now = Math.floor(call.services.platform.clock.wall() / 1_000)
  const opened = openDocument<EnrolmentClaims>(proof, DOCUMENT_KINDS.enrolment, {
    keys: agentKeys(former),
    audience: call.services.config.baseUrl,
    now,
  })
  const claims = opened.ok ? EnrolmentClaims.safeParse(opened.claims) : undefined
  return claims?.success && isSameSecret(code.code_hash, claims.data.codeHash) && claims.data.ledger === ledger
    ? former
    : undefined
}

/** Enrolments in the same place that nobody came of, as when an answer was lost: refunds and homes need not wait for them. */
function unusedEnrolments({ db }: Call, { agent_id, store_id, replaces }: AgentRow): Promise<AgentRow[]> {
  const others = db
    .selectFrom('agent')
    .selectAll()
    .where('store_id', '=', store_id)
    .where('replaces', '=', replaces)
    .where('agent_id', '<>', agent_id)
  return others.where('revoked_ms', 'is', null).whereRef('last_seen_ms', '=', 'enrolled_ms').execute()
}

/** The agent has logged in: whose place it takes is over. */
export function replacePredecessor(call: Call, agent: AgentRow): Promise<void> {
  return takeOver(call, agent, agent.agent_id)
}

/** `heir`: who has come, and has all that is left behind. */
async function takeOver(call: Call, agent: AgentRow, successor: string): Promise<void> {
  if (agent.replaces === null) return
  const former = await findAgent(call.db, agent.replaces)
  const store = await findStore(call.db, agent.store_id)
  if (!former || !store || former.replaced_by !== null) return
  const { db } = call
  await db.updateTable('agent').set({ replaced_by: agent.agent_id }).where('agent_id', '=', former.agent_id).execute()
  for (const attempt of await unusedEnrolments(call, agent)) await endAgent(call, attempt, store)
  // One that was itself enrolled anew, and never came: its ledger is that of the one before it.
  await takeOver(call, former, successor)
  // Somebody was quicker: its devices are free, and come with the first report.
  if (former.revoked_ms !== null) return
  const wasHome = policyOf(store).home === former.agent_id
  await db.updateTable('device').set({ agent_id: successor }).where('agent_id', '=', former.agent_id).execute()
  // What others wait for from the former is in the ledger that the heir goes on with.
  await waitForSuccessor(call, former.agent_id, successor)
  if (former.resync !== null)
    await db.updateTable('agent').set({ resync: former.resync }).where('agent_id', '=', successor).execute()
  await endAgent(call, former, store, true)
  if (wasHome) await inheritHome(call, agent.store_id, successor)
  call.afterCommit(() => call.services.agents.storeChanged(agent.store_id))
}
