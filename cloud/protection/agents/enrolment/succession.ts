import { EnrolmentClaims } from '../../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { openDocument } from '../../../../policy/documents/signed-document.ts'
import { secretsEqual } from '../../../../policy/secrets-equal.ts'
import type { Call } from '../../../platform/operations/operation.ts'
import type { AgentRow, EnrolmentCodeRow } from '../../../platform/persistence/tables/agents.ts'
import { inheritHome } from '../../devices/adopt-device.ts'
import { waitForSuccessor } from '../../receipt-home/home-move.ts'
import { policyOf } from '../../store-documents/parsed-policy.ts'
import { findStore } from '../../../platform/stores/queries.ts'
import { agentKeys } from '../../agent-identity/agent-keys.ts'
import { endAgent } from './end-agent.ts'
import { findAgent } from '../../agent-identity/sessions.ts'

/**
 * A re-enrolled agent continues the ledger of its predecessor. At the first login of this successor the cloud revokes
 * the predecessor. The successor then owns the predecessor's devices and unsent rows, and is the receipt home if the
 * predecessor was the receipt home.
 *
 * The predecessor stays valid until that login, because the response to the enrolment may be lost. If staff revoke the
 * predecessor before that login, the cloud still records the successor.
 */
export interface Replacement {
  agentId: string
  /** enrol+jwt signed with the predecessor's key, for the same code and the new ledger. */
  proof: string
}

/**
 * Finds the first predecessor whose proof is valid. Skips predecessors that are revoked or unknown: a restored cloud may
 * know only an older predecessor.
 */
export async function findPredecessor(
  call: Call,
  code: EnrolmentCodeRow,
  {
    replaces,
    predecessors = [],
  }: { replaces?: Replacement | undefined; predecessors?: readonly Replacement[] | undefined },
  ledger: string,
): Promise<AgentRow | undefined> {
  for (const replacement of [...(replaces ? [replaces] : []), ...predecessors]) {
    const found = await provenPredecessor(call, code, replacement, ledger)
    if (found) return found
  }
  return undefined
}

async function provenPredecessor(
  call: Call,
  code: EnrolmentCodeRow,
  { agentId, proof }: Replacement,
  ledger: string,
): Promise<AgentRow | undefined> {
  const predecessor = await findAgent(call.db, agentId)
  if (predecessor?.tenant !== code.tenant || predecessor.store_id !== code.store_id || predecessor.revoked_ms !== null)
    return undefined
  const now = Math.floor(call.services.platform.clock.wall() / 1_000)
  const opened = openDocument<EnrolmentClaims>(proof, DOCUMENT_KINDS.enrolment, {
    keys: agentKeys(predecessor),
    audience: call.services.config.baseUrl,
    now,
  })
  const claims = opened.ok ? EnrolmentClaims.safeParse(opened.claims) : undefined
  return claims?.success && secretsEqual(code.code_hash, claims.data.codeHash) && claims.data.ledger === ledger
    ? predecessor
    : undefined
}

/**
 * Agents that were enrolled for the same predecessor but never logged in, because the enrolment response was lost.
 * Refunds and moves of the receipt home must not wait for these agents.
 */
function unusedEnrolments({ db }: Call, { agent_id, store_id, replaces }: AgentRow): Promise<AgentRow[]> {
  const others = db
    .selectFrom('agent')
    .selectAll()
    .where('store_id', '=', store_id)
    .where('replaces', '=', replaces)
    .where('agent_id', '<>', agent_id)
  return others.where('revoked_ms', 'is', null).whereRef('last_seen_ms', '=', 'enrolled_ms').execute()
}

/** Replaces the predecessor after the first login of its successor. */
export function replacePredecessor(call: Call, agent: AgentRow): Promise<void> {
  return takeOver(call, agent, agent.agent_id)
}

/**
 * Replaces the predecessor of `agent`. `successor` is the agent that logged in; it gets the devices and the role of
 * receipt home.
 */
async function takeOver(call: Call, agent: AgentRow, successor: string): Promise<void> {
  if (agent.replaces === null) return
  const predecessor = await findAgent(call.db, agent.replaces)
  const store = await findStore(call.db, agent.store_id)
  if (!predecessor || !store || predecessor.replaced_by !== null) return
  const { db } = call
  await db
    .updateTable('agent')
    .set({ replaced_by: agent.agent_id })
    .where('agent_id', '=', predecessor.agent_id)
    .execute()
  for (const attempt of await unusedEnrolments(call, agent)) await endAgent(call, attempt, store)
  // If the predecessor never logged in, its own predecessor was not replaced yet.
  await takeOver(call, predecessor, successor)
  // If staff have revoked the predecessor, its devices belong to no agent. The next agent that reports such a device
  // adopts it.
  if (predecessor.revoked_ms !== null) return
  const wasHome = policyOf(store).home === predecessor.agent_id
  await db.updateTable('device').set({ agent_id: successor }).where('agent_id', '=', predecessor.agent_id).execute()
  // A move of the receipt home may wait for the predecessor's rows, which are now in the successor's ledger.
  await waitForSuccessor(call, predecessor.agent_id, successor)
  if (predecessor.resync !== null)
    await db.updateTable('agent').set({ resync: predecessor.resync }).where('agent_id', '=', successor).execute()
  await endAgent(call, predecessor, store, true)
  if (wasHome) await inheritHome(call, agent.store_id, successor)
  call.afterCommit(() => call.services.agents.storeChanged(agent.store_id))
}
