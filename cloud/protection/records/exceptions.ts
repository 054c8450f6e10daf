import type { ProtectionEvent } from '../../../policy/events.ts'
import { newId } from '../../../policy/ids.ts'
import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { ProtectionExceptionRow } from '../../persistence/tables/protection.ts'
import { recordEvent, type EventScope } from './record-event.ts'

/**
 *   evidence that should not be ─▶ raiseException ─┐
 *                                                  ├─▶ one row for each (store, kind, subject) ─▶ acknowledgeException
 *   event of an agent or a device ─▶ noteReported ─┘
 *
 * What people must look at.
 */
/** Who acknowledges what later evidence has put right; it is raised again when evidence says so again. */
export const WITHDRAWN = 'later evidence'

export interface NewException {
  storeId: string
  /** A word of docs/reference/errors.md, such as `double_redeem`. */
  kind: string
  /** What it is about: raised once for each. */
  subject: string
  detail: string
  deviceId?: string | undefined
  purchaseId?: string | undefined
  nonce?: string | undefined
}

/** Raises something that people must look at: a row in the list of exceptions and an event, once for each subject. */
export async function raiseException(scope: EventScope, exception: NewException): Promise<void> {
  const row = rowOf(scope, exception)
  const inserted = await scope.db
    .insertInto('protection_exception')
    .values(row)
    .onConflict((c) =>
      c
        .columns(['store_id', 'kind', 'subject'])
        .doUpdateSet({ acknowledged_ms: null, acknowledged_by: null, event_id: row.event_id, last_ms: scope.nowMs })
        .where('protection_exception.acknowledged_by', '=', WITHDRAWN),
    )
    .executeTakeFirst()
  if (inserted.numInsertedOrUpdatedRows === 0n) return
  await recordRaised(scope, exception, row.event_id)
}

/**
 * Raises an exception like `raiseException`, and counts what comes about the same subject. While it is open there is no
 * other event. After people have acknowledged it, the next one opens it again, with an event.
 */
export async function countException(scope: EventScope, exception: NewException): Promise<void> {
  const row = rowOf(scope, exception)
  const kept = await scope.db
    .insertInto('protection_exception')
    .values(row)
    .onConflict((c) =>
      c.columns(['store_id', 'kind', 'subject']).doUpdateSet((eb) => ({
        detail: row.detail,
        last_ms: scope.nowMs,
        times: eb('protection_exception.times', '+', 1),
        event_id: eb
          .case()
          .when('protection_exception.acknowledged_ms', 'is', null)
          .then(eb.ref('protection_exception.event_id'))
          .else(row.event_id)
          .end(),
        acknowledged_ms: null,
        acknowledged_by: null,
      })),
    )
    .returning('event_id')
    .executeTakeFirstOrThrow()
  if (kept.event_id === row.event_id) await recordRaised(scope, exception, row.event_id)
}

function rowOf({ tenant, platform, nowMs }: EventScope, exception: NewException) {
  return {
    exception_id: newId('exc', platform),
    tenant,
    store_id: exception.storeId,
    kind: exception.kind,
    subject: exception.subject,
    device_id: exception.deviceId ?? null,
    purchase_id: exception.purchaseId ?? null,
    detail: exception.detail,
    raised_ms: nowMs,
    event_id: newId('evt', platform),
    times: 1,
  }
}

async function recordRaised(scope: EventScope, exception: NewException, eventId: string): Promise<void> {
  await recordEvent(scope, {
    eventId,
    type: 'protection.exception.raised',
    storeId: exception.storeId,
    deviceId: exception.deviceId ?? null,
    purchaseId: exception.purchaseId ?? null,
    replayProtectedNonce: exception.nonce ?? null,
    reason: exception.kind,
    detail: exception.detail,
  })
}

/**
 * Puts an exception that somebody else saw on the list. Told again about the same thing it is counted, and open again.
 * `reporter`: the agent; its word never stands in the way of what the cloud itself finds.
 */
export async function recordReportedException(
  { db, tenant, platform, nowMs }: EventScope,
  event: ProtectionEvent,
  reporter?: string,
): Promise<void> {
  if (event.type !== 'protection.exception.raised') return
  const about =
    event.replayProtectedNonce ??
    event.epc ??
    event.tagUid ??
    event.tagId ??
    event.itemLineId ??
    event.deviceId ??
    event.eventId
  const told = { event_id: event.eventId, last_ms: nowMs, detail: event.detail ?? '' }
  await db
    .insertInto('protection_exception')
    .values({
      exception_id: newId('exc', platform),
      tenant,
      store_id: event.storeId,
      kind: event.reason ?? 'unnamed',
      subject: `${reporter ?? event.storeId}/${about}`,
      device_id: event.deviceId ?? null,
      purchase_id: event.purchaseId ?? null,
      raised_ms: nowMs,
      times: 1,
      ...told,
    })
    .onConflict((c) =>
      c.columns(['store_id', 'kind', 'subject']).doUpdateSet((eb) => ({
        ...told,
        times: eb('protection_exception.times', '+', 1),
        acknowledged_ms: null,
        acknowledged_by: null,
      })),
    )
    .execute()
}

/** The tenant's exception with this id. */
export function findException(
  db: Db,
  tenant: string,
  exceptionId: string,
): Promise<ProtectionExceptionRow | undefined> {
  return db
    .selectFrom('protection_exception')
    .selectAll()
    .where('exception_id', '=', exceptionId)
    .where('tenant', '=', tenant)
    .executeTakeFirst()
}

/** Somebody has seen it. */
export async function writeAcknowledged(
  db: Db,
  row: ProtectionExceptionRow,
  seen: { by: string; atMs: number; note: string | null },
): Promise<ProtectionExceptionRow> {
  const change = { acknowledged_ms: seen.atMs, acknowledged_by: seen.by, note: seen.note }
  await db.updateTable('protection_exception').set(change).where('exception_id', '=', row.exception_id).execute()
  return { ...row, ...change }
}

/** Subjects may be ids that devices made up: what another store calls the same is another matter. */
interface Acknowledgement {
  storeId: string
  kind: string
  subject: string
  by: string
  atMs: number
}

const acknowledge = prepared((db, p: Acknowledgement) =>
  db
    .updateTable('protection_exception')
    .set({ acknowledged_ms: p.atMs, acknowledged_by: p.by })
    .where('store_id', '=', p.storeId)
    .where('kind', '=', p.kind)
    .where('subject', '=', p.subject)
    .where('acknowledged_ms', 'is', null),
)

/** What was wrong has been put right: its exception, if it is still open, needs nobody any more. */
export async function acknowledgeOpenException(db: Db, seen: Acknowledgement): Promise<void> {
  await acknowledge(db, seen)
}
