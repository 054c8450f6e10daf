import { firstIdAt } from '../../../policy/ids.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { BATCH, deleteFound, type RetentionRule } from './rule.ts'

/** Rules for what the tax law makes merchants keep. */

/** Purchases with everything that belongs to them. A purchase stays while money is still on its way. */
export const oldPurchases: RetentionRule = {
  kind: 'purchases',
  deleteSome: (scope, beforeMs) =>
    deleteFound(
      scope,
      async (db) => (await purchasesBefore(db, beforeMs)).map((row) => row.purchase_id),
      deletePurchases,
    ),
}

function purchasesBefore(db: Db, beforeMs: number) {
  const movesMoney = (table: 'payment' | 'refund') =>
    db.selectFrom(table).select('purchase_id').where('due_ms', 'is not', null)
  return db
    .selectFrom('purchase')
    .select('purchase_id')
    .where('purchase_id', '<', firstIdAt('pur', beforeMs))
    .where('created_ms', '<', beforeMs)
    .where('payment_by_ms', 'is', null)
    .where('purchase_id', 'not in', movesMoney('payment'))
    .where('purchase_id', 'not in', movesMoney('refund'))
    .orderBy('purchase_id')
    .limit(BATCH)
    .execute()
}

async function deletePurchases(db: Db, ids: readonly string[]): Promise<void> {
  const lines = db.selectFrom('purchase_line').select('line_id').where('purchase_id', 'in', ids)
  await db.deleteFrom('redemption').where('line_id', 'in', lines).execute()
  const authorizations = db.selectFrom('protection_authorization').select('nonce').where('purchase_id', 'in', ids)
  await deleteAuthorizations(
    db,
    (await authorizations.execute()).map((row) => row.nonce),
  )
  for (const table of ['unit_right', 'purchase_unit', 'refund', 'payment', 'purchase_line', 'purchase'] as const)
    await db.deleteFrom(table).where('purchase_id', 'in', ids).execute()
}

/** Deletes authorizations with their units and redemptions. */
export async function deleteAuthorizations(db: Db, nonces: readonly string[]): Promise<void> {
  if (nonces.length === 0) return
  for (const table of ['authorization_unit', 'redemption', 'protection_authorization'] as const)
    await db.deleteFrom(table).where('nonce', 'in', nonces).execute()
}

/** Pick-up orders. An order stays while it can still expire. */
export const oldOrders: RetentionRule = {
  kind: 'purchases',
  deleteSome: (scope, beforeMs) =>
    deleteFound(
      scope,
      (db) =>
        db
          .selectFrom('pickup_order')
          .select('order_id')
          .where('order_id', '<', firstIdAt('ord', beforeMs))
          .where('created_ms', '<', beforeMs)
          .where('expires_ms', 'is', null)
          .orderBy('order_id')
          .limit(BATCH)
          .execute(),
      async (db, rows) => {
        const ids = rows.map((row) => row.order_id)
        for (const table of ['pickup_order_item', 'pickup_order_line', 'pickup_order'] as const)
          await db.deleteFrom(table).where('order_id', 'in', ids).execute()
      },
    ),
}

/** Day closings. The latest closing of a store stays, because the next one continues its number and day. */
export const oldClosings: RetentionRule = {
  kind: 'closings',
  deleteSome: (scope, beforeMs) =>
    deleteFound(
      scope,
      (db) =>
        db
          .selectFrom('store_closing as c')
          .select(['store_id', 'number'])
          .where('closed_ms', '<', beforeMs)
          .where(({ eb, selectFrom }) =>
            eb(
              'number',
              '<',
              selectFrom('store_closing as last')
                .select((e) => e.fn.max('last.number').as('number'))
                .whereRef('last.store_id', '=', 'c.store_id'),
            ),
          )
          .orderBy('number')
          .limit(BATCH)
          .execute(),
      async (db, rows) => {
        for (const row of rows)
          await db
            .deleteFrom('store_closing')
            .where('store_id', '=', row.store_id)
            .where('number', '=', row.number)
            .execute()
      },
    ),
}
