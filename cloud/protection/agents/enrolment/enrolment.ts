import { sql } from 'kysely'
import { crockford } from '../../../../policy/base32.ts'
import { EnrolmentClaims, enrolmentCodeHash } from '../../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { keyId, keyRing, publicKeyWeakness } from '../../../../policy/documents/keys.ts'
import { openDocument } from '../../../../policy/documents/signed-document.ts'
import { newId } from '../../../../policy/ids.ts'
import { genesisHash } from '../../../../policy/journal.ts'
import { secretsEqual } from '../../../../policy/secrets-equal.ts'
import { raiseDocumentVersion, findStore } from '../../../platform/stores/queries.ts'
import { isKeyTaken, agentKeys } from '../../agent-identity/agent-keys.ts'
import { keyCaller, actorOf } from '../../../platform/foundation/caller.ts'
import { invalid, notFound, precondition } from '../../../platform/foundation/failure.ts'
import { mayStillManage } from '../../../platform/users/user-queries.ts'
import type { Call } from '../../../platform/operations/operation.ts'
import type { Db } from '../../../platform/persistence/database.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { inheritHome, inheritTills, reassignHome, cancelMovesTo } from '../../devices/move-device.ts'
import { waitForSuccessor, cancelWaitForAgent } from '../../receipt-home/home-move.ts'
import { policyOf, storeDocumentChanged } from '../../../platform/stores/parsed-policy.ts'
import { findAgent } from '../../agent-identity/sessions.ts'
import { acknowledgeOpenException } from '../../records/exceptions.ts'
import { replaceStoreKey, storeKeyParts } from '../../operators/store-keys.ts'
import { forkKey, writeRevoked } from '../../agent-identity/agent-queries.ts'
import { deleteSome } from '../../../platform/persistence/delete-some.ts'

/**
 * A re-enrolled agent continues the ledger of its predecessor. At the first login of this successor the cloud revokes
 * the predecessor. The successor then owns the predecessor's devices and unsent rows, and is the receipt home if the
 * predecessor was the receipt home.
 *
 * The predecessor stays valid until that login, because the response to the enrolment may be lost. If staff revoke the
 * predecessor before that login, the cloud still records the successor.
 */
interface Replacement {
  agentId: string
  /** enrol+jwt signed with the predecessor's key, for the same code and the new ledger. */
  proof: string
}

/**
 * Finds the first predecessor whose proof is valid. Skips predecessors that are revoked or unknown: a restored cloud may
 * know only an older predecessor.
 */
async function findPredecessor(
  call: Call,
  code: Row<'enrolment_code'>,
  {
    replaces,
    predecessors = [],
  }: { replaces?: Replacement | undefined; predecessors?: readonly Replacement[] | undefined },
  ledger: string,
): Promise<Row<'agent'> | undefined> {
  for (const replacement of [...(replaces ? [replaces] : []), ...predecessors]) {
    const found = await provenPredecessor(call, code, replacement, ledger)
    if (found) return found
  }
  return undefined
}

async function provenPredecessor(
  call: Call,
  code: Row<'enrolment_code'>,
  { agentId, proof }: Replacement,
  ledger: string,
): Promise<Row<'agent'> | undefined> {
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
function unusedEnrolments({ db }: Call, { agent_id, store_id, replaces }: Row<'agent'>): Promise<Row<'agent'>[]> {
  const others = db
    .selectFrom('agent')
    .selectAll()
    .where('store_id', '=', store_id)
    .where('replaces', '=', replaces)
    .where('agent_id', '<>', agent_id)
  return others.where('revoked_ms', 'is', null).whereRef('last_seen_ms', '=', 'enrolled_ms').execute()
}

/** Replaces the predecessor after the first login of its successor. */
export function replacePredecessor(call: Call, agent: Row<'agent'>): Promise<void> {
  return takeOver(call, agent, agent.agent_id)
}

/**
 * Replaces the predecessor of `agent`. `successor` is the agent that logged in; it gets the devices, the role of
 * receipt home, and the right to record sales of tills.
 */
async function takeOver(call: Call, agent: Row<'agent'>, successor: string): Promise<void> {
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
  await inheritTills(call, agent.store_id, predecessor.agent_id, successor)
  call.afterCommit(() => call.services.agents.storeChanged(agent.store_id))
}

/**
 * Life of an enrolment code, ms. A code has the form `XXXX-XXXX-XXXX-FFFF-FFFF-FFFF-FFFF`. X are 60 random bits, by
 * which the cloud recognizes the code. F are 80 bits of the root key's thumbprint, by which the agent verifies the
 * cloud.
 */
const CODE_MS = 15 * 60_000
const TRIES = 10
const ROOT_BYTES = 10

function grouped(text: string): string {
  return text.replace(/(.{4})(?=.)/g, '$1-')
}

/** Maximum agents of an account, in one mode, with the codes for further ones. */
export const AGENTS_LIMIT = 5_000

/** Throws 409 if the tenant has `AGENTS_LIMIT` agents and codes for further ones. */
async function assertFewAgents({ db, nowMs }: Call, tenant: string): Promise<void> {
  const all = (of: { count: number | string | bigint }) => Number(of.count)
  const agents = await db
    .selectFrom('agent')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('tenant', '=', tenant)
    .where('revoked_ms', 'is', null)
    .executeTakeFirstOrThrow()
  const codes = await db
    .selectFrom('enrolment_code')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('tenant', '=', tenant)
    .where('agent_id', 'is', null)
    .where('expires_ms', '>', nowMs)
    .executeTakeFirstOrThrow()
  if (all(agents) + all(codes) >= AGENTS_LIMIT)
    throw precondition('too_many_agents', `this account has ${AGENTS_LIMIT} agents, which is the most: revoke others`)
}

/** Creates a one-time code for one agent of this store. Only its hash is stored. Throws 409 `too_many_agents`. */
export async function createCode(
  call: Call,
  store: Row<'store'>,
  name: string,
): Promise<{ code: string; expiresMs: number }> {
  await assertFewAgents(call, store.tenant)
  const { platform, authority } = call.services
  const secret = crockford.encode(platform.random.bytes(8)).slice(0, 12)
  const root = crockford.encode(authority.rootThumbprint.subarray(0, ROOT_BYTES))
  const code = grouped(secret + root)
  const expiresMs = call.nowMs + CODE_MS
  await call.db
    .insertInto('enrolment_code')
    .values({
      code_hash: enrolmentCodeHash(code),
      tenant: store.tenant,
      store_id: store.store_id,
      made_by: keyCaller(call.caller).keyId,
      name,
      expires_ms: expiresMs,
      tries: 0,
    })
    .execute()
  return { code, expiresMs }
}

interface EnrolmentRequest {
  code: string
  publicJwk: { kty: 'OKP'; crv: 'Ed25519'; x: string }
  proof: string
  name?: string | undefined
  replaces?: Replacement | undefined
  predecessors?: readonly Replacement[] | undefined
}

/**
 * Enrols an agent. If an agent repeats the request with the same code and key, returns the row that the first request
 * created.
 */
export async function enrol(call: Call, request: EnrolmentRequest): Promise<Row<'agent'>> {
  const { x } = request.publicJwk
  const weakness = publicKeyWeakness(x)
  if (weakness) throw invalid('publicJwk.x', `is a weak key: ${weakness}; generate another one`, 'weak_key')
  const codeHash = enrolmentCodeHash(request.code)
  const code = await call.db
    .selectFrom('enrolment_code')
    .selectAll()
    .where('code_hash', '=', codeHash)
    .executeTakeFirst()
  if (!code || code.expires_ms <= call.nowMs) throw notFound('enrolment code, or it is over 15 minutes old')
  if (!(await mayStillManage(call.db, code.made_by, code, call.nowMs)))
    throw notFound('enrolment code, or who made it may not manage the store any more')
  if (code.tries >= TRIES) throw precondition('code_blocked', 'this code was tried too often: create a new one')
  const proof = openProof(call, request, codeHash)
  if (proof === 'wrong time') {
    const now = new Date(call.services.platform.clock.wall()).toISOString()
    throw invalid(
      'proof',
      `has a wrong time, it is ${now}: set the clock of the agent’s machine and enrol again`,
      'clock_wrong',
    )
  }
  if (proof === undefined) {
    const refusal = invalid('proof', 'is not signed by publicJwk for this code and this address')
    refusal.extras.afterRefusal = (db) => noteFailedTry(db, codeHash)
    throw refusal
  }
  if (code.agent_id !== null) return sameAgent(call, code, x)
  if (await isKeyTaken(call.db, x, ''))
    throw precondition('key_taken', 'another agent already uses this key: generate a new one')
  if (await isLedgerTaken(call.db, proof.ledger))
    throw precondition('ledger_taken', 'another agent uses this ledger: start with a new ledger')
  const predecessor = await findPredecessor(call, code, request, proof.ledger)
  return makeAgent(call, code, request, { ledger: proof.ledger, replaces: predecessor?.agent_id ?? null })
}

/** True if an agent, even a revoked one, has this ledger id. The cloud stores the agent's rows under this id. */
async function isLedgerTaken(db: Db, ledger: string): Promise<boolean> {
  return (
    (await db.selectFrom('agent').select('agent_id').where('ledger_id', '=', ledger).executeTakeFirst()) !== undefined
  )
}

/**
 * Verifies the proof that the agent has the new key. Returns 'wrong time' if the agent's clock is not set, as on
 * machines without a clock battery.
 */
function openProof(
  { services }: Call,
  { publicJwk, proof }: EnrolmentRequest,
  codeHash: string,
): { ledger: string } | 'wrong time' | undefined {
  const keys = keyRing([
    { kid: keyId(publicJwk.x), alg: 'EdDSA', x: publicJwk.x, use: 'agent', iss: 'new', state: 'active' },
  ])
  const now = Math.floor(services.platform.clock.wall() / 1_000)
  const opened = openDocument<EnrolmentClaims>(proof, DOCUMENT_KINDS.enrolment, {
    keys,
    audience: services.config.baseUrl,
    now,
  })
  if (!opened.ok) return opened.fault === 'expired' || opened.fault === 'issued_in_future' ? 'wrong time' : undefined
  const claims = EnrolmentClaims.safeParse(opened.claims)
  return claims.success && secretsEqual(codeHash, claims.data.codeHash) ? claims.data : undefined
}

async function sameAgent({ db }: Call, code: Row<'enrolment_code'>, x: string): Promise<Row<'agent'>> {
  const agent = await db.selectFrom('agent').selectAll().where('agent_id', '=', code.agent_id).executeTakeFirst()
  if (agent?.x !== x) throw precondition('code_used', 'another agent used this code: create a new one')
  return agent
}

async function makeAgent(
  call: Call,
  code: Row<'enrolment_code'>,
  request: EnrolmentRequest,
  { ledger, replaces }: { ledger: string; replaces: string | null },
): Promise<Row<'agent'>> {
  const agent: Row<'agent'> = {
    agent_id: newId('agt', call.services.platform),
    tenant: code.tenant,
    store_id: code.store_id,
    name: request.name ?? code.name,
    x: request.publicJwk.x,
    next_x: null,
    home_url: null,
    ledger_id: ledger,
    generation: 1,
    last_seq: 0,
    head_hash: genesisHash(ledger, 1),
    deny_seq: 0,
    item_seq: 0,
    enrolled_ms: call.nowMs,
    last_seen_ms: call.nowMs,
    revoked_ms: null,
    online_only_until_ms: null,
    fork_ms: null,
    ahead_ms: null,
    state: null,
    device_states: null,
    till_until_ms: null,
    policy_version: null,
    faults: null,
    online: null,
    resync: null,
    replaces,
    replaced_by: null,
  }
  await call.db.insertInto('agent').values(agent).execute()
  await raiseDocumentVersion(call.db, code.store_id)
  await call.db
    .updateTable('enrolment_code')
    .set({ agent_id: agent.agent_id })
    .where('code_hash', '=', code.code_hash)
    .execute()
  return agent
}

/** Deletes expired codes. */
export function pruneCodes(db: Db, nowMs: number): Promise<number> {
  return deleteSome(db, 'enrolment_code', ['code_hash'], sql`expires_ms <= ${nowMs}`)
}

async function noteFailedTry(db: Db, codeHash: string): Promise<void> {
  await db
    .updateTable('enrolment_code')
    .set((eb) => ({ tries: eb('tries', '+', 1) }))
    .where('code_hash', '=', codeHash)
    .execute()
}

/** Revokes an agent and returns its changed row. `hasSuccessor` is true if a successor continues the agent's ledger. */
export async function endAgent(
  call: Call,
  agent: Row<'agent'>,
  store: Row<'store'>,
  hasSuccessor = false,
): Promise<Row<'agent'>> {
  await writeRevoked(call.db, agent.agent_id, call.nowMs)
  await acknowledgeFork(call, agent)
  await cancelMovesTo(call, agent.agent_id)
  await cancelWaitForAgent(call, agent.agent_id)
  await reassignHome(call, store, agent.agent_id, hasSuccessor)
  // The revoked agent knows the store key, so the verifiers in later policies need a new store key.
  await replaceStoreKey(call.db, store.store_id, storeKeyParts(call.services))
  await storeDocumentChanged(call, store.store_id)
  call.changed(agent.agent_id)
  call.afterCommit(() => call.services.agents.agentRevoked({ storeId: agent.store_id, agentId: agent.agent_id }))
  return { ...agent, revoked_ms: call.nowMs }
}

/** Acknowledges the agent's `agent_fork` exception, if there is one. */
export async function acknowledgeFork(
  call: Call,
  { agent_id, store_id: storeId, fork_ms }: Row<'agent'>,
): Promise<void> {
  if (fork_ms === null) return
  await acknowledgeOpenException(call.db, {
    storeId,
    kind: 'agent_fork',
    subject: forkKey(agent_id, fork_ms),
    by: actorOf(call.caller),
    atMs: call.nowMs,
  })
}
