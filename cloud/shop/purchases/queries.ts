import { saleKeyOf, type SaleName } from '../../../policy/till-sale.ts'
import { assert } from '../../../policy/assert.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { commitPosition } from '../../platform/persistence/positions.ts'
import {
  fieldsOf,
  insertChunks,
  prepared,
  preparedRow,
  preparedRows,
  preparedInsert,
} from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { knownCaller } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { ownStoreOf } from '../../platform/stores/own-store.ts'
import { findStore } from '../../platform/stores/queries.ts'
import type { WholePurchase } from './present.ts'
import { refundsToShow } from './refund-queries.ts'

const sessionById = prepared((db, p: { sessionId: string; tenant: string }) =>
  db.selectFrom('shopping_session').selectAll().where('session_id', '=', p.sessionId).where('tenant', '=', p.tenant),
)

/** Finds a session of the caller. Throws 404 if the session is unknown, or if the caller may not see its store. */
export async function sessionOfCaller(call: Call, sessionId: string): Promise<Row<'shopping_session'>> {
  const { tenant } = knownCaller(call.caller)
  const [session] = await sessionById(call.db, { sessionId, tenant })
  if (!session) throw notFound('session')
  await ownStoreOf(call, session.store_id, 'session')
  return session
}

/** Finds a purchase of the tenant. */
export const findPurchase = preparedRow((db, tenant: string, purchaseId: string) =>
  db.selectFrom('purchase').selectAll().where('purchase_id', '=', purchaseId).where('tenant', '=', tenant),
)

/** Finds the purchase of a receipt by its `cti` in hex. */
export const findPurchaseOfReceipt = preparedRow((db, cti: string) =>
  db.selectFrom('purchase').selectAll().where('cti', '=', cti),
)

/**
 * Ends that the identity of a receipt names this purchase, because a till uses the number of its sale again. The
 * receipts of the purchase expired long ago.
 */
export async function freeIdentity(db: Db, purchaseId: string): Promise<void> {
  await db.updateTable('purchase').set({ cti: null }).where('purchase_id', '=', purchaseId).execute()
}

/** Finds the sale of a till, by the end of its receipt, whose number the till used again since. */
export async function findFormerSale(
  db: Db,
  { storeId, exp, identity }: { storeId: string; exp: number; identity: string },
): Promise<Row<'purchase'> | undefined> {
  const rows = await db
    .selectFrom('purchase')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('receipt_exp', '=', exp)
    .where('cti', 'is', null)
    .where('till', 'is not', null)
    .execute()
  const of = rows.filter(({ till }) => saleKeyOf(storeId, JSON.parse(till ?? '{}') as SaleName) === identity)
  // Two sales with one number are 90 days apart.
  return of.length === 1 ? of[0] : undefined
}

/** Finds the purchase of a checkout page, of any tenant. The id of the page is a secret. */
export const findPurchaseOfCheckout = preparedRow((db, checkoutSessionId: string) =>
  db.selectFrom('purchase').selectAll().where('checkout_session_id', '=', checkoutSessionId),
)

const purchaseNamed = preparedRow((db, purchaseId: string) =>
  db.selectFrom('purchase').selectAll().where('purchase_id', '=', purchaseId),
)

/** Purchase that another row names. */
export async function readPurchase(db: Db, purchaseId: string): Promise<Row<'purchase'>> {
  const purchase = await purchaseNamed(db, purchaseId)
  assert(purchase, `purchase ${purchaseId} is gone`)
  return purchase
}

/** Lines of a purchase in order. */
export const readLines = preparedRows((db, purchaseId: string) =>
  db.selectFrom('purchase_line').selectAll().where('purchase_id', '=', purchaseId).orderBy('line_no'),
)

/** Tagged units, sorted by line and unit number. */
export const readUnits = preparedRows((db, purchaseId: string) =>
  db
    .selectFrom('purchase_unit')
    .selectAll()
    .where('purchase_id', '=', purchaseId)
    .orderBy('line_id')
    .orderBy('unit_no'),
)

const insertRow = preparedInsert((db, rows: readonly Row<'purchase'>[]) => db.insertInto('purchase').values(rows))
const insertLines = preparedInsert((db, rows: readonly Row<'purchase_line'>[]) =>
  db.insertInto('purchase_line').values(rows),
)
const insertUnits = preparedInsert((db, rows: readonly Row<'purchase_unit'>[]) =>
  db.insertInto('purchase_unit').values(rows),
)

/** Inserts a purchase with its lines and tagged units. */
export async function insertPurchase(
  db: Db,
  purchase: Row<'purchase'>,
  lines: readonly Row<'purchase_line'>[],
  units: readonly Row<'purchase_unit'>[],
): Promise<void> {
  await insertRow(db, [purchase])
  for (const chunk of insertChunks(lines)) await insertLines(db, chunk)
  for (const chunk of insertChunks(units)) await insertUnits(db, chunk)
}

/** Finds a tagged unit. */
export const findUnit = preparedRow((db, lineId: string, unitNo: number) =>
  db.selectFrom('purchase_unit').selectAll().where('line_id', '=', lineId).where('unit_no', '=', unitNo),
)

/** Ids of the items that the units are bound to. */
export function boundItemsOf(units: readonly Row<'purchase_unit'>[]): string[] {
  return units.flatMap((unit) => (unit.bound === 1 ? (unit.item_id ?? []) : []))
}

/** Records the status that the cancellation gave to the items of these units; null: it was undone. */
export async function recordCancelledUnits(
  db: Db,
  cancelled: readonly { unit: Row<'purchase_unit'>; status: string | null }[],
): Promise<void> {
  const rows = cancelled.map(({ unit, status }) => ({ ...unit, taken_back: status }))
  for (const chunk of insertChunks(rows)) await writeCancelled(db, chunk)
}

const writeCancelled = preparedInsert((db, rows: readonly Row<'purchase_unit'>[]) =>
  db
    .insertInto('purchase_unit')
    .values(rows)
    .onConflict((c) =>
      c.columns(['line_id', 'unit_no']).doUpdateSet((eb) => ({ taken_back: eb.ref('excluded.taken_back') })),
    ),
)

type Change = Partial<Row<'purchase'>>
/** Compiled updates by the columns that they set. The code sets few different combinations. */
const updates = new Map<string, (db: Db, change: Change & { updated_id: string }) => Promise<Row<'purchase'>[]>>()

function updateOf(columns: readonly (keyof Row<'purchase'>)[], isPaid: boolean) {
  return prepared((db, p: Change & { updated_id: string }) =>
    db
      .updateTable('purchase')
      .set((eb) => ({
        ...fieldsOf(p as Row<'purchase'>, columns),
        ...(isPaid && { completed_position: commitPosition(db) }),
        rev: eb('rev', '+', 1),
      }))
      .where('purchase_id', '=', p.updated_id)
      .returningAll(),
  )
}

/** Updates a purchase and increments its revision. */
export async function updatePurchase(db: Db, purchase: Row<'purchase'>, change: Change): Promise<Row<'purchase'>> {
  const isPaid = typeof change.completed_ms === 'number'
  const isOver = change.status !== undefined && change.status !== 'PENDING_PAYMENT'
  const whole: Change = isOver ? { ...change, payment_by_ms: null } : change
  const columns = Object.keys(whole).sort() as (keyof Row<'purchase'>)[]
  const key = `${String(isPaid)} ${columns.join(' ')}`
  const update = updates.get(key) ?? updateOf(columns, isPaid)
  updates.set(key, update)
  const [updated] = await update(db, { ...whole, updated_id: purchase.purchase_id })
  assert(updated, `purchase ${purchase.purchase_id} is gone`)
  return updated
}

/**
 * Reads the purchase id from its synonyms (ADR requests). Throws 400 if the request has no purchase id, or two that differ.
 */
export function purchaseIdOf(names: {
  transactionId?: string | undefined
  purchaseId?: string | undefined
  id?: string | undefined
}): string {
  const ids = [names.transactionId, names.purchaseId, names.id].filter((id) => id !== undefined)
  const [first] = ids
  if (first === undefined) throw invalid('transactionId', 'is missing', 'missing')
  if (ids.some((id) => id !== first)) throw invalid('transactionId', 'is sent twice with different values')
  return first
}

/** Finds a purchase of the caller. Throws 404 if the purchase is unknown, or if the caller may not see its store. */
export async function purchaseOfCaller(call: Call, purchaseId: string): Promise<WholePurchase> {
  const purchase = await findPurchase(call.db, knownCaller(call.caller).tenant, purchaseId)
  if (!purchase) throw notFound('purchase')
  const store = await ownStoreOf(call, purchase.store_id, 'purchase')
  return {
    purchase,
    store,
    lines: await readLines(call.db, purchaseId),
    refunds: await refundsToShow(call.db, purchase),
  }
}

/** Adds store, lines and refunds to a purchase row. */
export async function wholePurchase(call: Call, purchase: Row<'purchase'>): Promise<WholePurchase> {
  const store = await findStore(call.db, purchase.store_id)
  assert(store, `store ${purchase.store_id} is gone`)
  return {
    purchase,
    store,
    lines: await readLines(call.db, purchase.purchase_id),
    refunds: await refundsToShow(call.db, purchase),
  }
}
