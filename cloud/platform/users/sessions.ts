import { sql } from 'kysely'
import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { keyGenerationQuery } from '../authority/key-counters.ts'
import { tenantOf, type Mode, type UserCaller, type UserRole, type Package } from '../foundation/caller.ts'
import type { Database, Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { Row } from '../persistence/schema.ts'
import { modeOf, roleOf, hashOfUserToken, isUserToken, newUserToken } from './user-queries.ts'
import { deleteSome } from '../persistence/delete-some.ts'

/** A session ends this time after its last use, ms. */
export const IDLE_MS = 12 * 3_600_000
/** A session ends this time after the sign-in, ms. */
export const SESSION_MS = 7 * 24 * 3_600_000
/** Time for the second factor after the password, ms. */
const PENDING_MS = 10 * 60_000
/** Maximum number of sessions of one user. A further sign-in ends the oldest one. */
export const SESSIONS_LIMIT = 20
/** Minimum time between two stored uses of a session, ms. */
const SEEN_MS = 5 * 60_000
/** Length of the stored name of a browser, characters. */
const AGENT_LENGTH = 200

/** What a session has begun: changes of credentials in two steps. */
export type Begun = Pick<
  Row<'user_session'>,
  'totp_next' | 'totp_next_expires_ms' | 'passkey_challenge' | 'passkey_challenge_expires_ms'
>

/** The columns of a session that has begun nothing. */
export const NOTHING_BEGUN: Begun = {
  totp_next: null,
  totp_next_expires_ms: null,
  passkey_challenge: null,
  passkey_challenge_expires_ms: null,
}

export interface NewSession {
  readonly state: Row<'user_session'>['state']
  readonly hasSecondFactor: boolean
  readonly mode?: Mode | undefined
  readonly userAgent: string
}

/** True if sessions of this user may use live data: owners only with a second factor. */
export function mayUseLive(
  user: Pick<Row<'console_user'>, 'role' | 'sandbox_only'>,
  hasSecondFactor: boolean,
): boolean {
  return user.sandbox_only === 0 && (roleOf(user) !== 'owner' || hasSecondFactor)
}

/** Starts a session with a new token. The database stores only the hash of the token. */
export async function startSession(
  db: Db,
  user: Row<'console_user'>,
  { state, hasSecondFactor, mode = modeOf(user), userAgent }: NewSession,
  platform: Platform,
): Promise<{ sessionToken: string; sessionId: string; mode: Mode; expiresMs: number }> {
  const nowMs = platform.clock.wall()
  const sessionToken = newUserToken('session', platform.random)
  const expiresMs = nowMs + (state === 'pending' ? PENDING_MS : SESSION_MS)
  await makeRoom(db, user.user_id, state)
  const row: Row<'user_session'> = {
    session_id: newId('ses', platform),
    token_hash: hashOfUserToken(sessionToken),
    user_id: user.user_id,
    mode: mayUseLive(user, hasSecondFactor) ? mode : 'test',
    state,
    second_factor: hasSecondFactor ? 1 : 0,
    user_agent: userAgent.replaceAll(/[^\x20-\x7e]/g, '').slice(0, AGENT_LENGTH),
    created_ms: nowMs,
    seen_ms: nowMs,
    expires_ms: expiresMs,
    ...NOTHING_BEGUN,
  }
  await db.insertInto('user_session').values(row).execute()
  return { sessionToken, sessionId: row.session_id, mode: modeOf(row), expiresMs }
}

/** Ends the oldest sessions of this state. Sign-ins with a stolen password only never end sessions with both factors. */
async function makeRoom(db: Db, userId: string, state: Row<'user_session'>['state']): Promise<void> {
  const sessions = (await listSessions(db, userId)).filter((row) => row.state === state)
  const ids = sessions.map((row) => row.session_id)
  for (const sessionId of ids.slice(0, Math.max(0, ids.length - SESSIONS_LIMIT + 1))) await endSession(db, sessionId)
}

/** Sessions of a user, oldest first. `startSession` limits their number. */
export function listSessions(db: Db, userId: string): Promise<Row<'user_session'>[]> {
  return db.selectFrom('user_session').selectAll().where('user_id', '=', userId).orderBy('session_id').execute()
}

/** Ends one session. */
export async function endSession(db: Db, sessionId: string): Promise<void> {
  await db.deleteFrom('user_session').where('session_id', '=', sessionId).execute()
}

/** Ends all sessions of a user except `keep`. Returns their number. */
export async function endSessionsOf(db: Db, userId: string, keep = '-'): Promise<number> {
  const ended = await db
    .deleteFrom('user_session')
    .where('user_id', '=', userId)
    .where('session_id', '!=', keep)
    .returning('session_id')
    .execute()
  return ended.length
}

/** Deletes expired sessions. */
export function pruneSessions(db: Db, nowMs: number): Promise<number> {
  return deleteSome(db, 'user_session', ['session_id'], sql`(expires_ms <= ${nowMs} OR seen_ms <= ${nowMs - IDLE_MS})`)
}

function sessions(db: Db) {
  return db
    .selectFrom('user_session')
    .innerJoin('console_user', 'console_user.user_id', 'user_session.user_id')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .select(keyGenerationQuery(db).as('generation'))
    .select([
      'session_id',
      'state',
      'second_factor',
      'seen_ms',
      'expires_ms',
      'user_session.mode',
      'console_user.user_id',
      'console_user.account_id',
      'console_user.role',
      'console_user.store_ids',
      'console_user.sandbox_only',
      'account.package',
      'account.status',
    ])
}

const byToken = prepared((db, p: { hash: string }) => sessions(db).where('token_hash', '=', p.hash))
const byId = prepared((db, p: { sessionId: string }) => sessions(db).where('session_id', '=', p.sessionId))

/** The session of a token; undefined if the token is unknown or expired. */
interface FoundSession {
  readonly caller: UserCaller
  readonly state: Row<'user_session'>['state']
  readonly seenMs: number
}

/** Finds the session of a token, also if the second factor is missing. */
export async function findSession(db: Db, token: string, nowMs: number): Promise<FoundSession | undefined> {
  if (!isUserToken('session', token)) return undefined
  const [row] = await byToken(db, { hash: hashOfUserToken(token) })
  return row && sessionOf(row, nowMs)
}

/** The user of a session; undefined if the session has ended or the second factor is missing. */
export async function findSessionCaller(db: Db, sessionId: string, nowMs: number): Promise<UserCaller | undefined> {
  const [row] = await byId(db, { sessionId })
  const found = row && sessionOf(row, nowMs)
  return found?.state === 'active' ? found.caller : undefined
}

function sessionOf(row: Awaited<ReturnType<typeof byToken>>[number], nowMs: number): FoundSession | undefined {
  if (row.status !== 'active') return undefined
  if (row.expires_ms <= nowMs || row.seen_ms + IDLE_MS <= nowMs) return undefined
  const hasSecondFactor = row.second_factor === 1
  const isLiveAllowed = mayUseLive(row, hasSecondFactor)
  const mode = isLiveAllowed ? modeOf(row) : 'test'
  const caller: UserCaller = {
    kind: 'user',
    keyId: row.user_id,
    sessionId: row.session_id,
    role: row.role as UserRole,
    hasSecondFactor,
    mayUseLive: isLiveAllowed,
    accountId: row.account_id,
    mode,
    tenant: tenantOf(row.account_id, mode),
    storeIds: row.store_ids === null ? null : (JSON.parse(row.store_ids) as string[]),
    package: row.package as Package,
    keyGeneration: Number(row.generation ?? 0),
  }
  return { caller, state: row.state, seenMs: row.seen_ms }
}

/** The user of a session token. Stores the use, so that the session does not expire. */
export async function findUserCaller(
  database: Database,
  token: string,
  nowMs: number,
): Promise<UserCaller | undefined> {
  const found = await findSession(database.reads, token, nowMs)
  if (found?.state !== 'active') return undefined
  const { caller, seenMs } = found
  if (nowMs - seenMs >= SEEN_MS) await database.write((db) => writeSeen(db, caller.sessionId, nowMs))
  return caller
}

async function writeSeen(db: Db, sessionId: string, nowMs: number): Promise<void> {
  await db.updateTable('user_session').set({ seen_ms: nowMs }).where('session_id', '=', sessionId).execute()
}

/** Marks a session as confirmed by a second factor. */
export async function writeSecondFactor(db: Db, sessionId: string): Promise<void> {
  await db.updateTable('user_session').set({ second_factor: 1 }).where('session_id', '=', sessionId).execute()
}

/** Sets the mode of a session. */
export async function writeMode(db: Db, sessionId: string, mode: Mode): Promise<void> {
  await db.updateTable('user_session').set({ mode }).where('session_id', '=', sessionId).execute()
}
