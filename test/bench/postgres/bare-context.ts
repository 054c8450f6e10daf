import { createHash, sign, type KeyObject } from 'node:crypto'
import pg from 'pg'
import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Row } from '../../../cloud/platform/persistence/schema.ts'
import type { Statement } from './statements.ts'

/** The API key that sends a request, and its tenant. */
export interface BareCaller {
  readonly key_id: string
  readonly tenant: string
}

/** One request to the bare routes. */
export interface BareCall {
  readonly caller: BareCaller
  readonly nowMs: number
  readonly platform: Platform
  readonly key: KeyObject
  /** Sends one statement, prepared once per connection, and waits for its rows. */
  ask<R extends object>(statement: Statement, values: readonly unknown[]): Promise<R[]>
}

/** The route responds with status 409. The bare routes send no detailed reason. */
export class Refused extends Error {
  override name = 'Refused'
}

/** Number of connections, as in the cloud (cloud/platform/persistence/postgres-pool.ts). */
const POOL_SIZE = 12

/** Creates a pool that returns counts and times as numbers, because all of them are below 2^53. */
export function barePool(url: string): pg.Pool {
  const { INT8, NUMERIC } = pg.types.builtins
  for (const type of [INT8, NUMERIC]) pg.types.setTypeParser(type, Number)
  const pool = new pg.Pool({ connectionString: url, max: POOL_SIZE })
  // Without a listener, a lost connection would end the process.
  pool.on('error', () => undefined)
  return pool
}

/** Sends statements over any free connection of the pool. */
export function askPool(pool: pg.Pool): BareCall['ask'] {
  return async <R extends object>({ name, text }: Statement, values: readonly unknown[]) =>
    (await pool.query<R>({ name, text, values: [...values] })).rows
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** Signs claims. Returns the text `claims.signature`, with both parts in base64url. */
export function signed(claims: object, key: KeyObject): string {
  const text = Buffer.from(JSON.stringify(claims)).toString('base64url')
  return `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`
}

/** The audit row of a change, as JSON. */
export function auditRow({ caller, nowMs, platform }: BareCall, operation: string, entity: string | null): string {
  const row: Omit<Row<'audit_entry'>, 'seq' | 'prev_hash' | 'hash'> = {
    entry_id: newId('aud', platform),
    tenant: caller.tenant,
    at_ms: nowMs,
    actor: caller.key_id,
    operation,
    entity_id: entity,
    request_id: newId('req', platform),
  }
  return JSON.stringify(row)
}

/** The outbox row of an event, as JSON. */
export function outboxRow({ caller, nowMs, platform }: BareCall, storeId: string, type: string, data: object): string {
  const row: Omit<Row<'outbox_event'>, 'seq' | 'webhook_id'> = {
    event_id: newId('whe', platform),
    tenant: caller.tenant,
    store_id: storeId,
    type,
    at_ms: nowMs,
    data: JSON.stringify(data),
  }
  return JSON.stringify(row)
}
