import { sql } from 'kysely'
import { createHash } from 'node:crypto'
import type { Randomness } from '../../../policy/platform.ts'
import { keyGenerationQuery } from '../../platform/authority/key-counters.ts'
import type { AgentCaller, Mode, Tenant, Package } from '../../platform/foundation/caller.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared, preparedRow } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { deleteSome } from '../../platform/persistence/delete-some.ts'

/**
 *   openChallenge ─▶ the agent signs it ─▶ useChallenge (once) ─▶ openLogin ─▶ access token ─▶ findAgentCaller
 *
 * Logins of agents: short-lived bearer tokens and single-use challenges, stored as hashes only.
 */

/** Life of a login, ms. */
const LOGIN_MS = 15 * 60_000
/** Life of a challenge, ms. */
const CHALLENGE_MS = 2 * 60_000
const TOKEN_PREFIX = 'untag_agent_'

/** True if the text has the form of an agent's access token. */
export function isAgentToken(token: string): boolean {
  return token.startsWith(TOKEN_PREFIX) && token.length === TOKEN_PREFIX.length + 43
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/**
 * Where the agent may present the signed challenge. Another company may run the broker, so a password for the broker
 * must not work for the HTTP API.
 */
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

/** Creates a challenge that works once, either for HTTP or for the broker. */
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

/**
 * Uses up a challenge and returns the time at which it was created. Returns undefined if the challenge is unknown,
 * used, expired, or was created for another agent or for another `where`.
 */
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

/** Creates an access token. Only its hash is stored. */
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
    .select(keyGenerationQuery(db).as('key_generation'))
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

/** Caller with this access token; undefined if the token expired or the agent was revoked. */
export async function findAgentCaller(db: Db, token: string, nowMs: number): Promise<AgentCaller | undefined> {
  const [row] = await callerByToken(db, { hash: hashOf(token) })
  if (!row || row.revoked_ms !== null || row.expires_ms <= nowMs) return undefined
  return { keyGeneration: Number(row.key_generation ?? 0), ...agentCaller(row) }
}

/** The rights of an agent that has proved who it is. */
export function agentCaller(
  agent: Pick<Row<'agent'>, 'agent_id' | 'store_id' | 'ledger_id' | 'generation' | 'tenant'>,
): AgentCaller {
  const [accountId = '', mode = 'test'] = agent.tenant.split('.')
  return {
    kind: 'agent',
    agentId: agent.agent_id,
    storeId: agent.store_id,
    ledgerId: agent.ledger_id,
    generation: agent.generation,
    accountId,
    mode: mode as Mode,
    tenant: agent.tenant as Tenant,
    // Highest package, so that agents pass the check of the account's package. Operations of agents check the package
    // of the agent's store.
    package: 'PRIME' satisfies Package,
  }
}

/** Agent with this id, of any tenant. */
export const findAgent = preparedRow((db, agentId: string) =>
  db.selectFrom('agent').selectAll().where('agent_id', '=', agentId),
)

/** Ends every login of the agent, so that the agent must log in again. */
export async function endLogins(db: Db, agentId: string): Promise<void> {
  await db.deleteFrom('agent_session').where('agent_id', '=', agentId).execute()
}

/** Deletes expired logins and challenges. */
export async function pruneLogins(db: Db, nowMs: number): Promise<number> {
  const sessions = await deleteSome(db, 'agent_session', ['token_hash'], sql`expires_ms <= ${nowMs}`)
  return Math.max(sessions, await deleteSome(db, 'agent_challenge', ['challenge_hash'], sql`expires_ms <= ${nowMs}`))
}
