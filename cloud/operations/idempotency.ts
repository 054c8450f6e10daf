import { hash } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../persistence/database.ts'
import { fieldsOf, prepared } from '../persistence/prepared.ts'
import type { IdempotencyRow } from '../persistence/tables/accounts.ts'
import { MAX_CLOCK_SKEW_MS } from './clock-skew.ts'
import { Failure } from '../foundation/failure.ts'

/** Answers kept so that the same request is executed once (decisions §9, P5). */

/** In place of a status: the request is being carried out. */
const RUNNING = 0

/** How long an answer is kept, ms. */
export const IDEMPOTENCY_WINDOW_MS = 24 * 3_600_000

/** How long work of several transactions is believed to go on without a word, ms. */
export const RUNNING_LEASE_MS = 60_000

/** What makes two requests the same. */
export interface RequestIdentity {
  tenant: string
  operation: string
  keyHash: string
  requestHash: string
}

export interface StoredResponse {
  status: number
  body: string
}

/** 1–255 visible characters, bare or as a quoted structured-field string. */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  const message = 'Idempotency-Key must be 1 to 255 visible ASCII characters'
  throw new Failure('invalid-argument', message, { details: [{ path: 'Idempotency-Key', code: 'invalid', message }] })
}

/** SHA-256, base64url. */
export function hashOf(text: string): string {
  return hash('sha256', text, 'base64url')
}

/** SHA-256 of bytes, base64url. */
export function hashOfBytes(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64url')
}

/** JSON with sorted names, so that the same request written otherwise is the same. The depth was bounded at reading. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([name, v]) => `${JSON.stringify(name)}:${canonicalJson(v)}`).join(',')}}`
}

const byIdentity = prepared((db, p: { tenant: string; operation: string; keyHash: string }) =>
  db
    .selectFrom('idempotency')
    .select(['request_hash', 'status', 'body', 'valid_until_ms', 'created_ms'])
    .where('tenant', '=', p.tenant)
    .where('operation', '=', p.operation)
    .where('key_hash', '=', p.keyHash),
)

const insertResponse = prepared((db, p: IdempotencyRow) => {
  const kept = fieldsOf(p, ['request_hash', 'status', 'body', 'valid_until_ms', 'created_ms'])
  return db
    .insertInto('idempotency')
    .values({ ...kept, ...fieldsOf(p, ['tenant', 'operation', 'key_hash']) })
    .onConflict((c) => c.columns(['tenant', 'operation', 'key_hash']).doUpdateSet(kept))
})

/** The kept answer to the same request within the window; throws when the key was used for another one. */
export async function findStoredResponse(
  db: Db,
  request: RequestIdentity,
  nowMs: number,
): Promise<StoredResponse | undefined> {
  const [row] = await byIdentity(db, { tenant: request.tenant, operation: request.operation, keyHash: request.keyHash })
  if (!row || row.created_ms <= nowMs - IDEMPOTENCY_WINDOW_MS) return undefined
  if (row.request_hash !== request.requestHash) {
    throw new Failure('already-exists', 'this Idempotency-Key was used for another request', {
      reason: 'idempotency_key_reused',
    })
  }
  if (row.status === RUNNING) {
    const leftMs = (row.valid_until_ms ?? 0) - nowMs
    if (leftMs <= 0 || leftMs > RUNNING_LEASE_MS + MAX_CLOCK_SKEW_MS) return undefined
    const retryAfter = Math.ceil(leftMs / 1_000)
    throw new Failure('already-exists', 'the same request is being carried out', {
      reason: 'idempotency_in_progress',
      retryAfter: Math.min(retryAfter, 5),
    })
  }
  return { status: row.status, body: row.body }
}

/** Marks a request of several transactions as being carried out, until its lease ends. What an earlier life of it remembers stays. */
export async function claimRequest(db: Db, request: RequestIdentity, nowMs: number): Promise<void> {
  const [row] = await byIdentity(db, { tenant: request.tenant, operation: request.operation, keyHash: request.keyHash })
  const isSame =
    row?.status === RUNNING &&
    row.request_hash === request.requestHash &&
    row.created_ms > nowMs - IDEMPOTENCY_WINDOW_MS
  await writeResponse(db, request, { status: RUNNING, body: isSame ? row.body : '' }, nowMs, nowMs + RUNNING_LEASE_MS)
}

/**
 * What this request, in whichever life, has noted; '' for nothing, undefined when another life of it has ended it. Takes the row
 * for this transaction, so that a life that was only slow cannot do the same beside it.
 */
export async function lockCheckpoint(db: Db, request: RequestIdentity, nowMs: number): Promise<string | undefined> {
  const row = await whereRunning(
    db.updateTable('idempotency').set({ valid_until_ms: nowMs + RUNNING_LEASE_MS }),
    request,
  )
    .returning('body')
    .executeTakeFirst()
  return row?.body
}

/** Notes, in the transaction of what was done, what a successor must know to go on from there. */
export async function storeCheckpoint(db: Db, request: RequestIdentity, memory: string): Promise<void> {
  await whereRunning(db.updateTable('idempotency').set({ body: memory }), request).execute()
}

/** The work goes on: its lease with it. */
export async function renewRequestLease(db: Db, request: RequestIdentity, nowMs: number): Promise<void> {
  await whereRunning(db.updateTable('idempotency').set({ valid_until_ms: nowMs + RUNNING_LEASE_MS }), request).execute()
}

/** The work has failed: the same key may try again at once. What was done once stays remembered. */
export async function releaseRequest(db: Db, request: RequestIdentity, nowMs: number): Promise<void> {
  await whereRunning(db.deleteFrom('idempotency'), request).where('body', '=', '').execute()
  await whereRunning(db.updateTable('idempotency').set({ valid_until_ms: nowMs }), request).execute()
}

/**
 * Of a database that one process has to itself, when it begins: whoever was at work is gone, and waiting for the end of
 * a lease would keep the same requests from being carried out for nothing. What was done once stays remembered.
 */
export async function releaseAbandonedRequests(db: Db): Promise<void> {
  // Written out: with a parameter SQLite would not see that the index of these rows will do.
  const isRunning = sql<boolean>`status = ${sql.lit(RUNNING)}`
  await db.deleteFrom('idempotency').where(isRunning).where('body', '=', '').execute()
  await db.updateTable('idempotency').set({ valid_until_ms: 0 }).where(isRunning).execute()
}

/** Of this request, while it is being carried out. */
function whereRunning<
  Q extends { where(column: 'tenant' | 'operation' | 'key_hash' | 'status', op: '=', value: string | number): Q },
>(query: Q, request: RequestIdentity): Q {
  return query
    .where('tenant', '=', request.tenant)
    .where('operation', '=', request.operation)
    .where('key_hash', '=', request.keyHash)
    .where('status', '=', RUNNING)
}

/** Keeps the answer in the transaction of the work itself: both are there after a power cut, or neither. */
export async function storeResponse(
  db: Db,
  request: RequestIdentity,
  answer: StoredResponse,
  nowMs: number,
): Promise<void> {
  await writeResponse(db, request, answer, nowMs, null)
}

async function writeResponse(
  db: Db,
  { tenant, operation, keyHash: key_hash, requestHash: request_hash }: RequestIdentity,
  { status, body }: StoredResponse,
  created_ms: number,
  valid_until_ms: number | null,
): Promise<void> {
  await insertResponse(db, { tenant, operation, key_hash, request_hash, status, body, valid_until_ms, created_ms })
}

/** Forgets answers whose window is over. */
export async function pruneStoredResponses(db: Db, nowMs: number): Promise<void> {
  await db
    .deleteFrom('idempotency')
    .where('created_ms', '<=', nowMs - IDEMPOTENCY_WINDOW_MS)
    .execute()
}
