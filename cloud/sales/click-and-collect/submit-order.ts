import type { z } from 'zod'
import { newId } from '../../../policy/ids.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { eurosOf, iso } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { notifyOfOrder } from '../../shop/push/queue.ts'
import { priceLines, type PricedLine } from '../checkout/price-lines.ts'
import { reserveStock } from '../../shop/stock/reserve.ts'
import { reserveItems } from './reserved-items.ts'
import { newPickupCode, pickupCodeHash, insertOrder } from '../../shop/pickup-orders/queries.ts'
import { UNITS_LIMIT, type OrderRequest } from '../../shop/pickup-orders/schema.ts'

/** Time to prepare an order, ms. */
const PREPARATION_MS = 30 * 60_000
/** Time from the estimated pick-up until the order is cancelled, ms. */
const RESERVATION_MS = 7 * 86_400_000
const AHEAD_LIMIT_MS = 366 * 86_400_000

/** End of an order's reservation, ms since 1970. */
export function reservedUntil(estimatedMs: number): number {
  return estimatedMs + RESERVATION_MS
}

/**
 * End of the stock reservation, ms since 1970. This end is one day after the end of the order's reservation, so that
 * the order ends first and releases its stock.
 */
export function stockReservedUntil(estimatedMs: number): number {
  return reservedUntil(estimatedMs) + 86_400_000
}

type Submission = Omit<z.output<typeof OrderRequest>, 'storeId'>

/** Creates an order at the store's prices. Reserves stock and tagged items, or fails without any reservation. */
export async function submitOrder(
  call: Call,
  store: Row<'store'>,
  input: Submission,
): Promise<{ order: Row<'pickup_order'>; code: string }> {
  const { db, nowMs, services } = call
  const lines = merged(await pricedLines(call, store, input.items))
  const units = lines.reduce((sum, line) => sum + line.quantity, 0)
  if (units > UNITS_LIMIT)
    throw invalid('items', `contains ${units} units; the maximum is ${UNITS_LIMIT}`, 'too_many_units')
  const pickupMs = input.pickupTime === undefined ? null : Date.parse(input.pickupTime)
  if (pickupMs !== null && pickupMs > nowMs + AHEAD_LIMIT_MS) throw invalid('pickupTime', 'is more than a year ahead')
  if (pickupMs !== null && pickupMs < nowMs)
    throw invalid('pickupTime', `is in the past: send a time after ${iso(nowMs)}, or omit it`)
  const estimatedMs = Math.max(pickupMs ?? 0, nowMs + PREPARATION_MS)
  const code = newPickupCode(services.platform.random)
  const orderId = newId('ord', services.platform)
  const order: Row<'pickup_order'> = {
    order_id: orderId,
    tenant: store.tenant,
    store_id: store.store_id,
    user_id: input.userId,
    status: 'pending',
    total_cent: lines.reduce((sum, line) => sum + line.priceCent * line.quantity, 0),
    currency: 'EUR',
    note: input.note === undefined || input.note === '' ? null : input.note,
    pickup_ms: pickupMs,
    estimated_ms: estimatedMs,
    code_hash: pickupCodeHash(orderId, code),
    reason: null,
    expires_ms: reservedUntil(estimatedMs),
    created_ms: nowMs,
    updated_ms: nowMs,
    picked_up_ms: null,
    paid: input.paid ? 1 : 0,
    locker_device_id: null,
    rev: 1,
  }
  const rows = lines.map((line, n) => rowOf(orderId, line, n))
  await insertOrder(db, order, rows)
  const stock = lines.map(({ productId, name, quantity, path }) => ({ productId, name, quantity, path }))
  await reserveStock(db, {
    ownerId: orderId,
    tenant: store.tenant,
    storeId: store.store_id,
    lines: stock,
    expiresMs: stockReservedUntil(estimatedMs),
    givesWay: false,
  })
  if (store.security_tag_mode !== 'none')
    await reserveItems(
      call,
      order,
      rows.filter((_, n) => lines[n]?.tagged),
    )
  emitOrder(call, order, rows)
  await notifyOfOrder(call, 'store', order)
  return { order, code }
}

type OrderLine = PricedLine & { productId: string; ean: string; path: string }

async function pricedLines({ db, nowMs }: Call, store: Row<'store'>, items: Submission['items']): Promise<OrderLine[]> {
  for (const [i, { productId, ean }] of items.entries()) {
    if (productId === undefined && ean === undefined) throw invalid(`items[${i}].productId`, 'is missing', 'missing')
  }
  const priced = await priceLines(db, store, items, nowMs)
  return priced.flatMap((line, i) =>
    line.productId === null || line.ean === null
      ? []
      : [{ ...line, productId: line.productId, ean: line.ean, path: `items[${i}]` }],
  )
}

/** Merges lines with the same product and price. Labelled goods of the same product have different prices. */
function merged(lines: readonly OrderLine[]): OrderLine[] {
  const found = new Map<string, OrderLine>()
  for (const line of lines) {
    const key = `${line.productId} ${line.priceCent}`
    const same = found.get(key)
    found.set(key, same ? { ...same, quantity: same.quantity + line.quantity } : line)
  }
  return [...found.values()]
}

function rowOf(orderId: string, line: OrderLine, n: number): Row<'pickup_order_line'> {
  const { productId, ean, name, priceCent, vat, quantity } = line
  return { order_id: orderId, line_no: n, product_id: productId, ean, name, price_cent: priceCent, vat, quantity }
}

function emitOrder({ emit }: Call, order: Row<'pickup_order'>, lines: readonly Row<'pickup_order_line'>[]): void {
  const { order_id: orderId, store_id: storeId, user_id: userId } = order
  emit({
    type: 'clickcollect.order',
    storeId,
    data: {
      orderId,
      storeId,
      userId,
      estimatedPickupAt: iso(order.estimated_ms),
      status: 'pending',
      items: lines.map((line) => ({ productId: line.product_id, quantity: line.quantity })),
      total: eurosOf(order.total_cent),
      currency: order.currency,
    },
  })
}
