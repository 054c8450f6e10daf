import { hash } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { sql } from 'kysely'
import type { Db } from '../persistence/database.ts'
import { fieldsOf, prepared } from '../persistence/prepared.ts'
import type { Row } from '../persistence/schema.ts'
import { Failure } from '../foundation/failure.ts'
import { deleteSome } from '../persistence/delete-some.ts'

/** Stored responses, so that a repeated request is executed once (promise P5, ADR requests). */

/** Sentinel for `status`: the request is still running. */
const RUNNING = 0

/** Retention of a stored response, ms. */
const IDEMPOTENCY_WINDOW_MS = 24 * 3_600_000

/**
 * Life of the lease of a running request, ms. If the request does not renew the lease in time, the cloud treats the
 * request as crashed.
 */
const RUNNING_LEASE_MS = 60_000

/** Two requests with equal values are the same request. */
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

/**
 * JSON with sorted names, so that field order does not matter. Recursion is safe, because `parseJsonBody` limits the
 * depth.
 */
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

const insertResponse = prepared((db, p: Row<'idempotency'>) => {
  const columns = fieldsOf(p, ['request_hash', 'status', 'body', 'valid_until_ms', 'created_ms'])
  return db
    .insertInto('idempotency')
    .values({ ...columns, ...fieldsOf(p, ['tenant', 'operation', 'key_hash']) })
    .onConflict((c) => c.columns(['tenant', 'operation', 'key_hash']).doUpdateSet(columns))
})

/**
 * The stored response to this request. Throws 409 if the key belongs to another request, or if the request still
 * runs.
 */
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
    throw new Failure('already-exists', 'the same request is still running: try again after Retry-After', {
      reason: 'idempotency_in_progress',
      retryAfter: Math.min(retryAfter, 5),
    })
  }
  return { status: row.status, body: unpacked(row.body) }
}

/**
 * Marks a request of several transactions as running until the lease of the request ends. Keeps the checkpoint of an
 * earlier attempt.
 */
export async function claimRequest(db: Db, request: RequestIdentity, nowMs: number): Promise<void> {
  const [row] = await byIdentity(db, { tenant: request.tenant, operation: request.operation, keyHash: request.keyHash })
  const isSame =
    row?.status === RUNNING &&
    row.request_hash === request.requestHash &&
    row.created_ms > nowMs - IDEMPOTENCY_WINDOW_MS
  await writeResponse(db, request, { status: RUNNING, body: isSame ? row.body : '' }, nowMs, nowMs + RUNNING_LEASE_MS)
}

/**
 * Reads and locks the checkpoint of this request: '' if there is none. Returns undefined if another attempt has ended
 * the request. The lock prevents a slow attempt from doing the same work in parallel.
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

/** Stores the checkpoint from which a later attempt continues. Call it in the transaction of the work itself. */
export async function storeCheckpoint(db: Db, request: RequestIdentity, checkpoint: string): Promise<void> {
  await whereRunning(db.updateTable('idempotency').set({ body: checkpoint }), request).execute()
}

/** Extends the lease of a running request. */
export async function renewRequestLease(db: Db, request: RequestIdentity, nowMs: number): Promise<void> {
  await whereRunning(db.updateTable('idempotency').set({ valid_until_ms: nowMs + RUNNING_LEASE_MS }), request).execute()
}

/** Ends the lease of a failed request, so that the client may retry with the same key at once. Keeps the checkpoint. */
export async function releaseRequest(db: Db, request: RequestIdentity, nowMs: number): Promise<void> {
  await whereRunning(db.deleteFrom('idempotency'), request).where('body', '=', '').execute()
  await whereRunning(db.updateTable('idempotency').set({ valid_until_ms: nowMs }), request).execute()
}

/**
 * Ends the leases of all running requests and keeps their checkpoints. Call it only at the start of a process that
 * alone uses its database, because the attempts with these leases ended with the previous process.
 */
export async function releaseAbandonedRequests(db: Db): Promise<void> {
  // The status is a literal, because SQLite does not use the partial index with a parameter.
  const isRunning = sql<boolean>`status = ${sql.lit(RUNNING)}`
  await db.deleteFrom('idempotency').where(isRunning).where('body', '=', '').execute()
  await db.updateTable('idempotency').set({ valid_until_ms: 0 }).where(isRunning).execute()
}

/** Limits a query to the row of this request while it runs. */
function whereRunning<
  Q extends { where(column: 'tenant' | 'operation' | 'key_hash' | 'status', op: '=', value: string | number): Q },
>(query: Q, request: RequestIdentity): Q {
  return query
    .where('tenant', '=', request.tenant)
    .where('operation', '=', request.operation)
    .where('key_hash', '=', request.keyHash)
    .where('status', '=', RUNNING)
}

/**
 * Stores the response. Call it in the transaction of the work, so that a power cut cannot leave the work without its
 * response.
 */
export async function storeResponse(
  db: Db,
  request: RequestIdentity,
  answer: StoredResponse,
  nowMs: number,
): Promise<void> {
  await writeResponse(db, request, { ...answer, body: packed(answer.body) }, nowMs, null)
}

/** Longer bodies are stored compressed: a list of errors shrinks to a twentieth. */
const PLAIN_LIMIT = 8_192
/** Begins a compressed body. No body begins with it: they are JSON, sealed texts or CSV. */
const PACKED = '~'

function packed(body: string): string {
  return body.length <= PLAIN_LIMIT ? body : PACKED + deflateRawSync(body, { level: 1 }).toString('base64')
}

function unpacked(body: string): string {
  return body.startsWith(PACKED) ? inflateRawSync(Buffer.from(body.slice(PACKED.length), 'base64')).toString() : body
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

/** Deletes responses older than the retention. */
export function pruneStoredResponses(db: Db, nowMs: number): Promise<number> {
  const key = ['tenant', 'operation', 'key_hash'] as const
  return deleteSome(db, 'idempotency', key, sql`created_ms <= ${nowMs - IDEMPOTENCY_WINDOW_MS}`)
}

/**
 * Maximum difference between the clocks of processes that share a database, ms. A stored time further in the future
 * came from a wrong clock.
 */
export const MAX_CLOCK_SKEW_MS = 60_000
