import { createHash } from 'node:crypto'
import type { Randomness } from '../../policy/platform.ts'
import type { AgentCaller, Mode, Tenant } from '../foundation/caller.ts'
import type { Package } from '../foundation/packages.ts'
import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { AgentRow } from '../persistence/tables/agents.ts'

/**
 *   openChallenge ─▶ the agent signs it ─▶ useChallenge (once) ─▶ openLogin ─▶ access token ─▶ findAgentCaller
 *
 * Logins of agents: short-lived bearer tokens and single-use challenges, kept as hashes only.
 */

/** Life of a login, ms. */
export const LOGIN_MS = 15 * 60_000
/** How long a challenge may be answered, ms. */
const CHALLENGE_MS = 2 * 60_000
const TOKEN_PREFIX = 'untag_agent_'

/** Whether this looks like an agent's access token rather than an API key. */
export function isAgentToken(token: string): boolean {
  return token.startsWith(TOKEN_PREFIX) && token.length === TOKEN_PREFIX.length + 43
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/** Where a challenge may be answered. Brokers may be anybody's: what one is told as a password must open nothing else. */
export type ChallengeFor = 'http' | 'broker'

const addChallenge = prepared((db, p: { hash: string; agentId: string; expiresMs: number }) =>
  db.insertInto('agent_challenge').values({ challenge_hash: p.hash, agent_id: p.agentId, expires_ms: p.expiresMs }),
)
const endChallenge = prepared((db, p: { hash: string; agentId: string; nowMs: number }) =>
  db
    .deleteFrom('agent_challenge')
    .where('challenge_hash', '=', p.hash)
    .where('agent_id', '=', p.agentId)
    .where('expires_ms', '>', p.nowMs)
    .returning('expires_ms'),
)

/** A challenge that can be answered once, and only where it is meant for. */
export async function openChallenge(
  db: Db,
  agentId: string,
  where: ChallengeFor,
  random: Randomness,
  nowMs: number,
): Promise<string> {
  const challenge = Buffer.from(random.bytes(32)).toString('base64url')
  await addChallenge(db, { hash: hashOf(`${where}:${challenge}`), agentId, expiresMs: nowMs + CHALLENGE_MS })
  return challenge
}

/** Uses a challenge up and answers when it was opened; undefined when it is unknown, another agent's, meant for elsewhere, too old or used. */
export async function useChallenge(
  db: Db,
  agentId: string,
  where: ChallengeFor,
  challenge: string,
  nowMs: number,
): Promise<{ openedMs: number } | undefined> {
  const [used] = await endChallenge(db, { hash: hashOf(`${where}:${challenge}`), agentId, nowMs })
  return used && { openedMs: used.expires_ms - CHALLENGE_MS }
}

const addLogin = prepared((db, p: { hash: string; agentId: string; expiresMs: number }) =>
  db.insertInto('agent_session').values({ token_hash: p.hash, agent_id: p.agentId, expires_ms: p.expiresMs }),
)

/** A new access token for the agent; only its hash is kept. */
export async function openLogin(
  db: Db,
  agentId: string,
  random: Randomness,
  nowMs: number,
): Promise<{ accessToken: string; expiresMs: number }> {
  const accessToken = TOKEN_PREFIX + Buffer.from(random.bytes(32)).toString('base64url')
  const expiresMs = nowMs + LOGIN_MS
  await addLogin(db, { hash: hashOf(accessToken), agentId, expiresMs })
  return { accessToken, expiresMs }
}

const callerByToken = prepared((db, p: { hash: string }) =>
  db
    .selectFrom('agent_session')
    .innerJoin('agent', 'agent.agent_id', 'agent_session.agent_id')
    .select([
      'agent.agent_id',
      'agent.store_id',
      'agent.tenant',
      'agent.ledger_id',
      'agent.generation',
      'agent.revoked_ms',
      'agent_session.expires_ms',
    ])
    .where('token_hash', '=', p.hash),
)

/** Who calls with this access token, unless it has expired or the agent was revoked. */
export async function findAgentCaller(db: Db, token: string, nowMs: number): Promise<AgentCaller | undefined> {
  const [row] = await callerByToken(db, { hash: hashOf(token) })
  if (!row || row.revoked_ms !== null || row.expires_ms <= nowMs) return undefined
  const [accountId = '', mode = 'test'] = row.tenant.split('.')
  return {
    kind: 'agent',
    agentId: row.agent_id,
    storeId: row.store_id,
    ledgerId: row.ledger_id,
    generation: row.generation,
    accountId,
    mode: mode as Mode,
    tenant: row.tenant as Tenant,
    // The package gate looks at the store's own package, which is one of GROW at least where agents are.
    package: 'PRIME' satisfies Package,
  }
}

const agentById = prepared((db, p: { agentId: string }) =>
  db.selectFrom('agent').selectAll().where('agent_id', '=', p.agentId),
)

/** The agent with this id, of any tenant. */
export async function findAgent(db: Db, agentId: string): Promise<AgentRow | undefined> {
  const [row] = await agentById(db, { agentId })
  return row
}

/** Ends every login of the agent: whoever has one must log in anew, and hears what is new. */
export async function endLogins(db: Db, agentId: string): Promise<void> {
  await db.deleteFrom('agent_session').where('agent_id', '=', agentId).execute()
}

/** Forgets logins and challenges that have ended. */
export async function pruneLogins(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('agent_session').where('expires_ms', '<=', nowMs).execute()
  await db.deleteFrom('agent_challenge').where('expires_ms', '<=', nowMs).execute()
}
