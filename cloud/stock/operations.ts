import { z } from 'zod'
import { findProduct } from '../catalogue/queries.ts'
import { notFound } from '../operations/failure.ts'
import { Id, iso, Success } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { ownStore } from '../stores/own-store.ts'
import { writeStock } from './queries.ts'

const QUANTITY_LIMIT = 1_000_000_000

const Stock = z.strictObject({
  storeId: z.string(),
  productId: z.string(),
  quantity: z.int().nullable().describe('Pieces in the store; null: not counted.'),
  reserved: z.int().describe('Pieces that orders and open checkouts were promised.'),
  available: z.int().nullable().describe('What may still be promised; null: not counted.'),
  updatedAt: z.string(),
})

export const setStock = operation({
  name: 'setStock',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  summary: 'Says how many pieces of a product a store has.',
  description:
    'Optional: without it nothing is counted. From then on orders and open checkouts reserve pieces, pick-up and payment use them up, ' +
    'and what cannot be promised any more is refused with 409 `out_of_stock`. `quantity: null` ends the counting.',
  changes: true,
  request: z.strictObject({ productId: Id, storeId: Id, quantity: z.int().min(0).max(QUANTITY_LIMIT).nullable() }),
  response: Stock.extend(Success),
  example: { productId: 'prd_01KANX6Y7C3V9Q2M8R5T4W6Z1B', storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', quantity: 12 },
  async run(call, { productId, storeId, quantity }) {
    const store = await ownStore(call, storeId)
    const product = await findProduct(call.db, store.tenant, { productId }, storeId)
    if (!product) throw notFound('product')
    const level = await writeStock(call.db, { store_id: storeId, product_id: productId, on_hand: quantity, updated_ms: call.nowMs })
    call.changed(productId)
    const available = level.on_hand === null ? null : Math.max(0, level.on_hand - level.reserved)
    return { success: true as const, storeId, productId, quantity: level.on_hand, reserved: level.reserved, available, updatedAt: iso(level.updated_ms) }
  },
})
