import { newId } from '../../policy/ids.ts'
import { iso, definedFields } from '../operations/fields.ts'
import { withinLines } from '../operations/within-lines.ts'
import { grouped, personalPage, ROWS_AT_ONCE, type PersonalTable } from './personal-table.ts'
import { ordersOf, purchasesOf } from './queries.ts'

/** Erasure keeps purchases. A random pseudonym replaces the buyer. */

export const purchases: PersonalTable = {
  table: 'purchase',
  name: 'purchases',
  async page(db, who, after) {
    const found = await purchasesOf(db, who, after, ROWS_AT_ONCE)
    const rows = await withinLines(db, 'purchase_line', found)
    const ids = rows.map((row) => row.purchase_id)
    const lines =
      ids.length === 0
        ? []
        : await db.selectFrom('purchase_line').selectAll().where('purchase_id', 'in', ids).orderBy('line_no').execute()
    const items = grouped(ids, lines, (line) => line.purchase_id)
    return personalPage(
      rows,
      (row) => row.purchase_id,
      (row) => ({
        purchaseId: row.purchase_id,
        storeId: row.store_id,
        sessionId: row.session_id,
        status: row.status,
        currency: row.currency,
        totalCent: row.total_cent,
        createdAt: iso(row.created_ms),
        ...definedFields({ completedAt: row.completed_ms === null ? null : iso(row.completed_ms) }),
        items: (items.get(row.purchase_id) ?? []).map((line) => ({
          name: line.name,
          ...definedFields({ ean: line.ean }),
          quantity: line.quantity,
          priceUnit: line.price_cent,
          vat: line.vat,
        })),
      }),
      rows.length < found.length || found.length === ROWS_AT_ONCE,
    )
  },
  async erase({ db, services }, who) {
    const ids = (await purchasesOf(db, who, '', ROWS_AT_ONCE)).map((row) => row.purchase_id)
    if (ids.length === 0) return 0
    const pseudonym = newId('anon', services.platform)
    await db
      .updateTable('purchase')
      .set((eb) => ({ user_id: pseudonym, rev: eb('rev', '+', 1) }))
      .where('purchase_id', 'in', ids)
      .execute()
    return ids.length
  },
}

export const pickupOrders: PersonalTable = {
  table: 'pickup_order',
  name: 'orders',
  async page(db, who, after) {
    const found = await ordersOf(db, who, after, ROWS_AT_ONCE)
    const rows = await withinLines(db, 'pickup_order_line', found)
    const ids = rows.map((row) => row.order_id)
    const lines =
      ids.length === 0
        ? []
        : await db.selectFrom('pickup_order_line').selectAll().where('order_id', 'in', ids).orderBy('line_no').execute()
    const items = grouped(ids, lines, (line) => line.order_id)
    return personalPage(
      rows,
      (row) => row.order_id,
      (row) => ({
        orderId: row.order_id,
        storeId: row.store_id,
        status: row.status,
        currency: row.currency,
        totalCent: row.total_cent,
        ...definedFields({ note: row.note }),
        createdAt: iso(row.created_ms),
        items: (items.get(row.order_id) ?? []).map((line) => ({
          name: line.name,
          ean: line.ean,
          quantity: line.quantity,
          priceUnit: line.price_cent,
          vat: line.vat,
        })),
      }),
      rows.length < found.length || found.length === ROWS_AT_ONCE,
    )
  },
  /** A random pseudonym replaces the customer. An open order can still be picked up with its code. */
  async erase({ db, services }, who) {
    const ids = (await ordersOf(db, who, '', ROWS_AT_ONCE)).map((row) => row.order_id)
    if (ids.length === 0) return 0
    const pseudonym = newId('anon', services.platform)
    await db
      .updateTable('pickup_order')
      .set((eb) => ({ user_id: pseudonym, note: null, rev: eb('rev', '+', 1) }))
      .where('order_id', 'in', ids)
      .execute()
    return ids.length
  },
}
