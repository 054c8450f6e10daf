import { sql } from 'kysely'
import type { Db, Database } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { newId } from '../../../policy/ids.ts'
import { systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import type { Call, Operation, Services, StepContext } from '../../platform/operations/operation.ts'
import { performTask } from '../../platform/operations/perform.ts'

/**
 * Runs work that needs several transactions with requests to a provider between them. Its callers are operations with
 * several transactions, notifications of providers, and jobs.
 */
export interface Runner {
  readonly services: Services
  /** Reads committed data. */
  read<T>(look: (db: Db) => Promise<T>): Promise<T>
  /** One transaction with its events. */
  step<T>(change: (call: Call) => Promise<T>): Promise<T>
}

/** Runs the work within an operation of several transactions. */
export function runnerOf(work: StepContext): Runner {
  return {
    services: work.services,
    read: (look) => work.read((call) => look(call.db)),
    step: (change) => work.step(change),
  }
}

/** Thrown to roll back a step that changed nothing. */
class NothingChanged extends Error {
  override name = 'NothingChanged'
}

/**
 * Runs work without a caller, for this tenant and under the name of this operation. Rolls back a step that returns
 * undefined.
 */
export function taskRunner(operation: Operation, tenant: Tenant, database: Database, services: Services): Runner {
  const caller = systemCaller(tenant, 'payments')
  return {
    services,
    read: (look) => look(database.reads),
    async step<T>(change: (call: Call) => Promise<T>): Promise<T> {
      let made: T | undefined
      try {
        await performTask(
          { operation, caller, requestId: newId('req', services.platform) },
          database,
          services,
          async (call) => {
            made = await change(call)
            if (made === undefined) throw new NothingChanged()
          },
        )
      } catch (error) {
        if (!(error instanceof NothingChanged)) throw error
      }
      return made as T
    },
  }
}

/**
 * Maximum number of configurations that may verify a notification: the current configuration and the configurations
 * that were replaced last.
 */
const CONFIGS_LIMIT = 10

/** Current provider configuration of a store. */
export function currentConfig(db: Db, storeId: string): Promise<Row<'psp_config'> | undefined> {
  return db
    .selectFrom('psp_config')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('is_current', '=', 1)
    .executeTakeFirst()
}

/** Current and replaced configurations whose notifications may still arrive, the newest first. */
export function configsOf(db: Db, storeId: string, provider: string): Promise<Row<'psp_config'>[]> {
  return db
    .selectFrom('psp_config')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('provider', '=', provider)
    .orderBy('is_current', 'desc')
    .orderBy('created_ms', 'desc')
    .limit(CONFIGS_LIMIT)
    .execute()
}

/** Configuration by id. */
export function readConfig(db: Db, configId: string): Promise<Row<'psp_config'>> {
  return db.selectFrom('psp_config').selectAll().where('config_id', '=', configId).executeTakeFirstOrThrow()
}

/** Replaces the configuration of a store. Deletes old configurations that have no payments. */
export async function replaceConfig(db: Db, row: Row<'psp_config'>): Promise<void> {
  await db
    .deleteFrom('psp_config')
    .where('store_id', '=', row.store_id)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('payment').select('payment.payment_id').whereRef('payment.config_id', '=', 'psp_config.config_id'),
        ),
      ),
    )
    .execute()
  await db.updateTable('psp_config').set({ is_current: 0 }).where('store_id', '=', row.store_id).execute()
  await db.insertInto('psp_config').values(row).execute()
}

/** Payment by id. */
export function findPayment(db: Db, paymentId: string): Promise<Row<'payment'> | undefined> {
  return db.selectFrom('payment').selectAll().where('payment_id', '=', paymentId).executeTakeFirst()
}

/** Payment of a notification, by session id or payment id of the notification. */
export async function findPaymentOfNotice(
  db: Db,
  configId: string,
  notice: { sessionId: string | null; paymentId: string | null },
): Promise<Row<'payment'> | undefined> {
  const ours = db.selectFrom('payment').selectAll().where('config_id', '=', configId)
  if (notice.sessionId === null)
    return notice.paymentId === null ? undefined : ours.where('payment_id', '=', notice.paymentId).executeTakeFirst()
  const bySession = await ours.where('provider_ref', '=', notice.sessionId).executeTakeFirst()
  if (bySession || notice.paymentId === null) return bySession
  // The stored payment may lack its session id, because the provider's response was lost or has not arrived yet.
  return ours.where('payment_id', '=', notice.paymentId).where('provider_ref', 'is', null).executeTakeFirst()
}

/** Payment whose money moved, by the charge, else by the payment id or session id. */
export async function findPaymentOfMovement(
  db: Db,
  configId: string,
  { chargeId, ...names }: { chargeId: string | null; sessionId: string | null; paymentId: string | null },
): Promise<Row<'payment'> | undefined> {
  const ours = db.selectFrom('payment').selectAll().where('config_id', '=', configId)
  const byCharge = chargeId === null ? undefined : await ours.where('charge_ref', '=', chargeId).executeTakeFirst()
  if (byCharge || names.paymentId === null) return byCharge ?? findPaymentOfNotice(db, configId, names)
  return ours.where('payment_id', '=', names.paymentId).executeTakeFirst()
}

/** The payment of a purchase, if the payment is being opened or is open. */
export function openPaymentOf(db: Db, purchaseId: string): Promise<Row<'payment'> | undefined> {
  return db
    .selectFrom('payment')
    .selectAll()
    .where('purchase_id', '=', purchaseId)
    .where('state', 'in', ['asking', 'open'])
    .executeTakeFirst()
}

/** Updates a payment if its state and number of checks are unchanged. Returns undefined otherwise. */
export function updatePayment(
  db: Db,
  payment: Row<'payment'>,
  change: Partial<Row<'payment'>>,
): Promise<Row<'payment'> | undefined> {
  return db
    .updateTable('payment')
    .set(change)
    .where('payment_id', '=', payment.payment_id)
    .where('state', '=', payment.state)
    .where('checks', '=', payment.checks)
    .returningAll()
    .executeTakeFirst()
}

/** Maximum wait until the next check or attempt, ms. If a due time is later, it comes from a clock that was ahead. */
const LONGEST_WAIT_MS = 13 * 3_600_000

/** How many due rows to read: in total, of each account, and accounts to leave out. */
interface Share {
  readonly limit: number
  readonly ofAccount: number
  readonly busy: readonly string[]
}

/** Due payments, sorted by due time, some of each account. */
export function duePayments(db: Db, nowMs: number, { limit, ofAccount, busy }: Share): Promise<Row<'payment'>[]> {
  const ranked = db
    .selectFrom('payment')
    .select(['payment_id', sql<number>`row_number() over (partition by tenant order by due_ms)`.as('rank')])
    .where((eb) => eb.or([eb('due_ms', '<=', nowMs), eb('due_ms', '>', nowMs + LONGEST_WAIT_MS)]))
    .$if(busy.length > 0, (rows) => rows.where('tenant', 'not in', busy))
  const share = db.selectFrom(ranked.as('r')).select('payment_id').where('rank', '<=', ofAccount)
  return db.selectFrom('payment').selectAll().where('payment_id', 'in', share).orderBy('due_ms').limit(limit).execute()
}

/** True if a refund with this due time must be sent now. */
export function isDue(dueMs: number, nowMs: number): boolean {
  return dueMs <= nowMs || dueMs > nowMs + LONGEST_WAIT_MS
}

/** Due refunds, like `duePayments`. */
export function dueRefunds(db: Db, nowMs: number, { limit, ofAccount, busy }: Share): Promise<Row<'refund'>[]> {
  const ranked = db
    .selectFrom('refund')
    .select(['refund_id', sql<number>`row_number() over (partition by tenant order by due_ms)`.as('rank')])
    .where((eb) => eb.or([eb('due_ms', '<=', nowMs), eb('due_ms', '>', nowMs + LONGEST_WAIT_MS)]))
    .$if(busy.length > 0, (rows) => rows.where('tenant', 'not in', busy))
  const share = db.selectFrom(ranked.as('r')).select('refund_id').where('rank', '<=', ofAccount)
  return db.selectFrom('refund').selectAll().where('refund_id', 'in', share).orderBy('due_ms').limit(limit).execute()
}

/** Refund by id. */
export function findRefund(db: Db, refundId: string): Promise<Row<'refund'> | undefined> {
  return db.selectFrom('refund').selectAll().where('refund_id', '=', refundId).executeTakeFirst()
}

/** Refund of a notification, by our refund id or the provider's. */
export async function findRefundOfNotice(
  db: Db,
  configId: string,
  { refundRef, refundId }: { refundRef: string; refundId: string | null },
): Promise<Row<'refund'> | undefined> {
  const ours = db
    .selectFrom('refund')
    .innerJoin('payment', 'payment.payment_id', 'refund.payment_id')
    .selectAll('refund')
    .where('payment.config_id', '=', configId)
  const byId = refundId === null ? undefined : await ours.where('refund_id', '=', refundId).executeTakeFirst()
  return byId ?? ours.where('refund.provider_ref', '=', refundRef).executeTakeFirst()
}

/** Other refunds of the same payment. */
export function siblingsOf(db: Db, refund: Row<'refund'>): Promise<Row<'refund'>[]> {
  return db
    .selectFrom('refund')
    .selectAll()
    .where('payment_id', '=', refund.payment_id)
    .where('refund_id', '!=', refund.refund_id)
    .orderBy('created_ms')
    .execute()
}
