import { z } from 'zod'
import { findProduct } from '../catalogue/queries.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { Id, iso, Limit, Offset, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { cursorField, toPage, pageLimits } from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { countStock, findStock, listStock, writeStock } from './queries.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'

const QUANTITY_LIMIT = 1_000_000_000

const Stock = z.strictObject({
  storeId: z.string(),
  productId: z.string(),
  quantity: z.int().nullable().describe('Pieces in the store; null if they are not counted.'),
  reserved: z.int().describe('Pieces that are reserved for orders and open checkouts.'),
  available: z.int().nullable().describe('Pieces that can still be reserved; null if they are not counted.'),
  updatedAt: z.string(),
})

export const setStock = operation({
  name: 'setStock',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('associate'),
  summary: 'Sets how many pieces of a product a store has.',
  description:
    'Stock is optional: before the first call, the pieces of a product are not counted. After it, orders and open ' +
    'checkouts reserve pieces; pick-up and payment subtract them. Orders and checkouts beyond the available pieces ' +
    'fail with 409 `out_of_stock`. `quantity: null` ends the counting.',
  changes: true,
  request: z.strictObject({
    productId: Id,
    storeId: Id,
    quantity: z.int().min(0).max(QUANTITY_LIMIT).nullable(),
    // Sales change them all the time, so they are accepted and ignored (ADR requests).
    ...Stock.pick({ reserved: true, available: true, updatedAt: true }).partial().shape,
  }),
  response: Stock.extend(Success),
  example: { productId: 'prd_01KANX6Y7C3V9Q2M8R5T4W6Z1B', storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', quantity: 12 },
  async run(call, { productId, storeId, quantity }) {
    const store = await ownStore(call, storeId)
    const product = await findProduct(call.db, store.tenant, { productId }, storeId)
    if (!product) throw notFound('product')
    const level = await writeStock(call.db, {
      store_id: storeId,
      product_id: productId,
      on_hand: quantity,
      updated_ms: call.nowMs,
    })
    call.changed(productId)
    return { success: true as const, ...toStock(level) }
  },
})

function toStock({ store_id, product_id, on_hand, reserved, updated_ms }: Row<'stock_level'>): z.infer<typeof Stock> {
  const available = on_hand === null ? null : Math.max(0, on_hand - reserved)
  return {
    storeId: store_id,
    productId: product_id,
    quantity: on_hand,
    reserved,
    available,
    updatedAt: iso(updated_ms),
  }
}

const DEFAULT_PAGE = 50

export const fetchStock = operation({
  name: 'fetchStock',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary: 'Lists the counted products of a store: pieces, reserved pieces and available pieces.',
  description: 'Products without counted stock are not listed.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    productId: Id.optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: cursorField('prd').optional(),
  }),
  response: z.strictObject({ ...Success, stock: z.array(Stock), total: z.int(), nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId, productId, ...paging }) {
    await ownStore(call, storeId)
    const page = pageLimits(paging, DEFAULT_PAGE)
    if (productId !== undefined) {
      const level = await findStock(call.db, storeId, productId)
      const stock = level === undefined || level.on_hand === null ? [] : [toStock(level)]
      return { success: true as const, stock, total: stock.length }
    }
    const { items, nextCursor } = toPage(
      await listStock(call.db, storeId, { ...page, limit: page.limit + 1 }),
      (row) => row.product_id,
      page,
    )
    return {
      success: true as const,
      stock: items.map(toStock),
      total: await countStock(call.db, storeId),
      ...(nextCursor && { nextCursor }),
    }
  },
})
