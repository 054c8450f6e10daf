import { z } from 'zod'
import { EARNING_EVENTS } from '../../shop/loyalty/ledger.ts'
import { knownCaller, rolesFrom, systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import { Id, Limit, Offset, Success, Timestamp, lines, scanned } from '../../platform/operations/fields.ts'
import { operation, type Call, type Services } from '../../platform/operations/operation.ts'
import { cursorField, pageLimits, toPageWithinLines } from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore, ownStoreOf } from '../../platform/stores/own-store.ts'
import { moveOrder } from './move-order.ts'
import {
  isFinal,
  STATUS_NAMES,
  statusOf,
  countOrders,
  findOrder,
  listOrders,
  orderOfCode,
  type OrderStatus,
  overdueOrders,
} from '../../shop/pickup-orders/queries.ts'
import { toOrders, Order, OrderRequest } from '../../shop/pickup-orders/schema.ts'
import { reservedUntil, submitOrder } from './submit-order.ts'
import { newId } from '../../../policy/ids.ts'
import { accountsDue, processDue } from '../../platform/operations/job-steps.ts'
import { performTask } from '../../platform/operations/perform.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { findStore } from '../../platform/stores/queries.ts'

const DEFAULT_PAGE = 50
const PICKED_LIMIT = 1_000
const AHEAD_LIMIT_MS = 366 * 86_400_000

/** Converts one order to its API form. */
async function toOrder(call: Call, row: Row<'pickup_order'>): Promise<Order> {
  const [order] = await toOrders(call.db, [row])
  if (!order) throw notFound('order')
  return order
}

export const submitClickCollectOrder = operation({
  name: 'submitClickCollectOrder',
  area: 'click and collect',
  minimumPackage: 'GO',
  roles: rolesFrom('associate'),
  summary: 'Orders products for pick-up in a store.',
  description:
    'Uses the prices of the store. Counted stock and tagged items are reserved until 7 days after the estimated ' +
    'pick-up. Only this response contains the pick-up code: show it to the customer, who presents it at the ' +
    'counter.',
  changes: true,
  refusals: ['out_of_stock', 'expired', 'recalled'],
  secretResponse: true,
  request: OrderRequest,
  response: Order.extend({
    ...Success,
    pickupCode: z.string().describe('8 characters. Case does not matter; O is read as 0, I and L as 1.'),
  }),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    userId: 'shopper-17',
    items: [{ productId: 'prd_01KANX6Y7C3V9Q2M8R5T4W6Z1B', quantity: 2 }],
    note: 'Bitte als Geschenk',
  },
  emits: ['clickcollect.order'],
  async run(call, { storeId, ...input }) {
    const store = await ownStore(call, storeId)
    const { order, code } = await submitOrder(call, store, input)
    call.changed(order.order_id)
    return { success: true as const, ...(await toOrder(call, order)), pickupCode: code }
  },
})

const Picked = z.array(scanned(200)).max(PICKED_LIMIT).optional()

export const updateClickCollectStatus = operation({
  name: 'updateClickCollectStatus',
  area: 'click and collect',
  minimumPackage: 'GO',
  roles: rolesFrom('associate'),
  summary: 'Moves an order to its next status.',
  description:
    'pending → confirmed (or `accepted`) → preparing (optional) → ready → picked_up; all but picked_up can move ' +
    'to cancelled. Other moves fail with 409 and `allowedNext`. At pick-up, reserved items become picked_up, ' +
    'stock is subtracted and loyalty points are earned. A cancelled order releases items and stock.',
  changes: true,
  refusals: [
    'illegal_order_move',
    'pickup_code_wrong',
    'item_mismatch',
    'item_not_sellable',
    'expired',
    'recalled',
    'locker_unavailable',
  ],
  request: z.strictObject({
    orderId: Id,
    status: z.enum(STATUS_NAMES),
    pickupCode: scanned(40).optional().describe('Code that the customer presents; checked if sent.'),
    estimatedPickupAt: Timestamp.optional().describe('A new estimate. Goods stay reserved for 7 days after it.'),
    reason: lines(300).optional().describe('With `cancelled`.'),
    paid: z.boolean().optional().describe('True if the customer has paid.'),
    lockerDeviceId: Id.optional().describe(
      'With `ready`: the `cabinet_unlocker` in which the goods wait. The pick-up code opens it if the order is paid.',
    ),
    epcs: Picked.describe('Tagged items that were picked. They replace the reserved items.'),
    tagUids: Picked,
    tagIds: Picked,
  }),
  response: Order.extend(Success),
  example: { orderId: 'ord_01KANX6Y7C3V9Q2M8R5T4W6Z1B', status: 'confirmed' },
  emits: ['clickcollect.status_changed', 'clickcollect.picked_up', ...EARNING_EVENTS],
  async run(call, { orderId, status, estimatedPickupAt, ...rest }) {
    const order = await findOrder(call.db, knownCaller(call.caller).tenant, orderId)
    if (!order) throw notFound('order')
    const store = await ownStoreOf(call, order.store_id, 'order')
    const estimatedMs = estimatedPickupAt === undefined ? undefined : Date.parse(estimatedPickupAt)
    if (estimatedMs !== undefined && estimatedMs > call.nowMs + AHEAD_LIMIT_MS)
      throw invalid('estimatedPickupAt', 'is more than a year ahead')
    if (estimatedMs !== undefined && reservedUntil(estimatedMs) <= call.nowMs && !isFinal(statusOf(status))) {
      throw invalid('estimatedPickupAt', 'is 7 days ago or more, so the order would be cancelled at once')
    }
    if (rest.lockerDeviceId !== undefined && status !== 'ready')
      throw invalid('lockerDeviceId', 'is only for the status ready')
    const moved = await moveOrder(call, order, store, { ...rest, to: statusOf(status), estimatedMs })
    call.changed(orderId)
    return { success: true as const, ...(await toOrder(call, moved)) }
  },
})

export const verifyPickupCode = operation({
  name: 'verifyPickupCode',
  area: 'click and collect',
  minimumPackage: 'GO',
  roles: rolesFrom('associate'),
  summary: 'Finds the order of a pick-up code and lists the goods to hand over.',
  description:
    'Does not change the order: use `updateClickCollectStatus` with the same code. Returns 404 if no open or ' +
    'recently picked up order of the store has this code. Agents call it for their handheld readers.',
  callers: ['secret', 'agent'],
  changes: false,
  request: z.strictObject({ storeId: Id, pickupCode: scanned(40).describe('As presented or typed.') }),
  response: Order.omit({ userId: true }).extend(Success),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', pickupCode: '7K2M-9XQ4' },
  async run(call, { storeId, pickupCode }) {
    await ownStore(call, storeId)
    const found = await orderOfCode(call.db, knownCaller(call.caller).tenant, storeId, pickupCode)
    if (!found) throw notFound('order')
    const { userId: _, ...order } = await toOrder(call, found)
    return { success: true as const, ...order }
  },
})

export const fetchClickCollectOrders = operation({
  name: 'fetchClickCollectOrders',
  area: 'click and collect',
  minimumPackage: 'GO',
  roles: rolesFrom('viewer'),
  summary: 'Lists the orders of a store, the newest first.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    status: z.enum(['pending', ...STATUS_NAMES]).optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: cursorField('ord').optional(),
  }),
  response: z.strictObject({ ...Success, orders: z.array(Order), total: z.int(), nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', status: 'ready' },
  async run(call, { storeId, status: name, ...paging }) {
    await ownStore(call, storeId)
    const status = name === undefined ? undefined : statusOf(name)
    const page = pageLimits(paging, DEFAULT_PAGE)
    const rows = await listOrders(call.db, storeId, status, { ...page, limit: page.limit + 1 })
    const { items, nextCursor } = await toPageWithinLines(call.db, 'pickup_order_line', rows, page)
    const orders = await toOrders(call.db, items)
    return {
      success: true as const,
      orders,
      total: await countOrders(call.db, storeId, status),
      ...(nextCursor && { nextCursor }),
    }
  },
})

/**
 * Cancels orders that were not picked up in time, each in its own transaction. Several processes may run this at the
 * same time.
 */
export function cancelOverdueOrders(database: Database, services: Services): Promise<boolean> {
  return processDue(database, services, {
    job: 'overdue orders',
    accounts: (db) => accountsDue(db, 'pickup_order', 'expires_ms', services.platform.clock.wall()),
    read: (db, account, page) => overdueOrders(db, account, services.platform.clock.wall(), page),
    process: ({ order_id, tenant }) => cancelOverdue(database, services, order_id, tenant as Tenant),
  })
}

function cancelOverdue(database: Database, services: Services, orderId: string, tenant: Tenant): Promise<void> {
  const who = {
    operation: updateClickCollectStatus,
    caller: systemCaller(tenant, 'pickup-expiry'),
    requestId: newId('req', services.platform),
  }
  return performTask(who, database, services, async (call) => {
    const order = await findOrder(call.db, tenant, orderId)
    const store = order && (await findStore(call.db, order.store_id))
    if (
      !order ||
      !store ||
      isFinal(order.status as OrderStatus) ||
      order.expires_ms === null ||
      order.expires_ms > call.nowMs
    )
      return
    await moveOrder(call, order, store, { to: 'cancelled', reason: 'expired' })
    call.changed(orderId)
  })
}
