import { z } from 'zod'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { AlarmStateReport } from '../../../policy/documents/agent-messages.ts'
import { ALARM_DISPOSITIONS, ITEM_STATUSES, type AlarmDisposition } from '../../../policy/vocabulary.ts'
import { receiptOfAlarm, type FittingReceipt } from './alarm-receipt.ts'
import { openCallsOf } from '../../shop/assistance/queries.ts'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { definedFields, eurosOf, Id, iso, Limit, Success, Timestamp } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { invalidCursor } from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ALL_STORES, ownScopes, Total, type StoreScope } from '../../platform/stores/own-store.ts'
import { shownNames } from '../../platform/stores/make-store.ts'
import { itemsWith } from '../items/item-queries.ts'
import {
  alarmsOfPurchase,
  dispositionsOf,
  ALARM_STATES,
  findAlarm,
  listAlarms,
  raisedBetween,
  RAISED_FIELDS,
  type AlarmPosition,
  Disposition,
  EARLIER_LIMIT,
  earlierOf,
  toDisposition,
} from './alarm-queries.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import { eanOfGtin14 } from '../../../policy/gs1/gtin.ts'

/** Product of an alarm as guards see it. */
interface AlarmProduct {
  readonly productId: string
  readonly ean: string
  readonly name: string
  readonly brand: string | null
  readonly category: string | null
  readonly imageUrl: string | null
  readonly priceCent: number
}

/** The product of the item, else the product whose GTIN the tag contains, with its price in this store. */
async function productOfAlarm(
  db: Db,
  tenant: string,
  storeId: string,
  { item, epc }: { item: Row<'protected_item'> | undefined; epc: string | undefined },
): Promise<AlarmProduct | undefined> {
  const productId = item?.product_id ?? undefined
  const ean = item?.ean ?? eanOfTag(epc)
  if (productId === undefined && ean === undefined) return undefined
  const products = db
    .selectFrom('product as p')
    .leftJoin('store_product as s', (join) =>
      join.onRef('s.product_id', '=', 'p.product_id').on('s.store_id', '=', storeId),
    )
    .select(['p.product_id', 'p.ean', 'p.name', 'p.brand', 'p.category', 'p.image_url'])
    .select((eb) => eb.fn.coalesce('s.price_cent', 'p.price_cent').as('price_cent'))
    .where('p.tenant', '=', tenant)
  const row = await (
    productId === undefined ? products.where('p.ean', '=', ean ?? '') : products.where('p.product_id', '=', productId)
  ).executeTakeFirst()
  return (
    row && {
      productId: row.product_id,
      ean: row.ean,
      name: row.name,
      brand: row.brand,
      category: row.category,
      imageUrl: row.image_url,
      priceCent: item?.price_cent ?? Number(row.price_cent),
    }
  )
}

/** EAN of the GTIN in an EPC. */
function eanOfTag(epc: string | undefined): string | undefined {
  const gtin14 = epc === undefined ? undefined : parseEpc(epc)?.gtin14
  return gtin14 === undefined ? undefined : eanOfGtin14(gtin14)
}

/** What several alarms need, each read with one query. */

/** Events by id, with their stores. */
async function eventsOf(
  db: Db,
  tenant: string,
  eventIds: readonly string[],
): Promise<Map<string, { event: ProtectionEvent; storeId: string }>> {
  if (eventIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('protection_event')
    .select(['event_id', 'store_id', 'body'])
    .where('tenant', '=', tenant)
    .where('event_id', 'in', [...eventIds])
    .execute()
  return new Map(
    rows.map(({ event_id, store_id: storeId, body }) => [
      event_id,
      { event: JSON.parse(body) as ProtectionEvent, storeId },
    ]),
  )
}

/** Exceptions of stores by the event that raised them last. */
async function exceptionsOf(
  db: Db,
  storeIds: readonly string[],
  eventIds: readonly string[],
): Promise<Map<string, Row<'protection_exception'>>> {
  if (storeIds.length === 0 || eventIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('protection_exception')
    .selectAll()
    .where('store_id', 'in', [...storeIds])
    .where('event_id', 'in', [...eventIds])
    .execute()
  return new Map(rows.map((row) => [row.event_id ?? '', row]))
}

const DEFAULT_PAGE = 20
/** Maximum page size. The maximum is low, because each alarm needs a search for its receipt. */
const PAGE_LIMIT = 50
/** Acknowledged alarms without a disposition leave the list after this time, ms. */
const ACKNOWLEDGED_FOR_MS = 24 * 3_600_000

const Alarm = z.strictObject({
  eventId: z.string(),
  storeId: z.string(),
  state: z.enum(ALARM_STATES),
  exceptionId: z
    .string()
    .optional()
    .describe('For `acknowledgeException`. Absent if the tag has caused a newer alarm.'),
  times: z.int().optional().describe('Number of alarms of this tag.'),
  reason: z.string(),
  detail: z.string().optional(),
  deviceId: z.string().optional(),
  gate: z.string().optional().describe('Name of the gate’s device, else its `gateId`.'),
  epc: z.string().optional(),
  tagUid: z.string().optional(),
  tagId: z.string().optional(),
  itemStatus: z.enum(ITEM_STATUSES).optional().describe('Status of the item when the gate alarmed.'),
  emergency: z
    .boolean()
    .optional()
    .describe('True if the gate alarmed during an emergency, such as a fire alarm. Absent otherwise.'),
  occurredAt: z.string(),
  product: z
    .strictObject({
      productId: z.string(),
      name: z.string(),
      brand: z.string().optional(),
      category: z.string().optional(),
      price: z.number().describe('EUR: price of the item, else of the product in this store.'),
      imageUrl: z.string().optional(),
    })
    .optional()
    .describe('Product of the item; of an unregistered tag, the product of the GTIN in its EPC.'),
  goods: z
    .strictObject({ brand: z.string().optional(), category: z.string().optional(), price: z.number().optional() })
    .optional()
    .describe('What is registered of an item that names no product.'),
  receipt: z
    .strictObject({ match: z.enum(['item', 'product']), purchaseId: z.string(), paidAt: z.string() })
    .optional()
    .describe(
      'The newest purchase of the store that was paid in the hour before the alarm and was not cancelled. `item`: it is bound to this tag, and paid at most ten minutes after the alarm. `product`: it contains the product, in a unit that is bound to no other tag, and paid at most a minute after it. Absent if no purchase fits, or if the goods came back since.',
    ),
  acknowledgedAt: z.string().optional(),
  acknowledgedBy: z.string().optional().describe('API key, operator or user.'),
  acknowledgedByName: z.string().optional().describe('Name of the operator or user.'),
  helpRequestId: z.string().optional().describe('The call for help at this alarm that is not closed yet.'),
  handledByName: z.string().optional().describe('Name of the operator or user who acknowledged or disposed last.'),
  ...Disposition.partial().shape,
  earlier: z
    .array(Disposition.extend({ name: z.string().optional().describe('Name of the operator or user.') }))
    .optional()
    .describe(`Dispositions before the present one, the latest first, at most ${EARLIER_LIMIT}.`),
})
type Alarm = z.infer<typeof Alarm>

export const fetchAlarms = operation({
  name: 'fetchAlarms',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Lists alarms of a store or account with product, gate and fitting receipt, the latest first.',
  description:
    `${ALL_STORES} ` +
    '`open`: nobody has acknowledged the alarm. `acknowledged`: somebody takes care of it, for at most 24 hours. `disposed`: its cause is recorded (`disposeAlarm`). An open list contains the latest alarm of each tag; the times of the others are in `fetchProtectionEvents`. A page looks at 10,000 alarms and may have fewer than `limit`: continue while there is a `nextCursor`.',
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    eventId: Id.optional().describe('Only this alarm, in any state. Other filters then have no effect.'),
    purchaseId: Id.optional().describe(
      'Only the latest alarm of each tag of this purchase, in any state. Needs `storeId`. Other filters then have no effect.',
    ),
    state: z.enum(ALARM_STATES).optional().describe('Default: `open`.'),
    disposition: z.enum(ALARM_DISPOSITIONS).optional().describe('Only for `disposed`.'),
    deviceId: Id.optional().describe('Gate.'),
    ...RAISED_FIELDS,
    since: Timestamp.optional().describe('Raised, acknowledged or disposed of at this time or later.'),
    until: Timestamp.optional().describe('Raised, acknowledged or disposed of at this time or earlier.'),
    limit: Limit.optional().describe(`A page contains at most ${PAGE_LIMIT}; use the cursor for more.`),
    cursor: z.string().optional().describe('The `nextCursor` of the previous page.'),
  }),
  response: z.strictObject({
    ...Success,
    alarms: z.array(Alarm),
    total: Total,
    nextCursor: z.string().optional(),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', state: 'open' },
  async run(call, { storeId, eventId, purchaseId, state = 'open', since, until, cursor, ...more }) {
    const scopes = await ownScopes(call, storeId)
    if (scopes.length === 0) return { success: true as const, alarms: [], total: 0 }
    if (eventId !== undefined || purchaseId !== undefined) {
      const alarms = await describeAlarms(call, await namedAlarms(call, scopes, { storeId, eventId, purchaseId }))
      return { success: true as const, alarms, total: alarms.length }
    }
    const { disposition, deviceId, raisedFrom, raisedUntil, ...paging } = more
    const limit = Math.min(paging.limit ?? DEFAULT_PAGE, PAGE_LIMIT)
    const sinceMs = since === undefined ? 0 : Date.parse(since)
    const { rows, next, total } = await listAlarms(call.db, {
      scopes,
      state,
      disposition,
      deviceId,
      raised: raisedBetween(raisedFrom, raisedUntil),
      untilMs: until === undefined ? undefined : Date.parse(until),
      sinceMs: state === 'acknowledged' ? Math.max(sinceMs, call.nowMs - ACKNOWLEDGED_FOR_MS) : sinceMs,
      after: cursor === undefined ? undefined : readCursor(cursor),
      limit,
    })
    const alarms = await describeAlarms(
      call,
      rows.map((row) => row.eventId),
    )
    return {
      success: true as const,
      alarms,
      total,
      ...(next && { nextCursor: writeCursor(next) }),
    }
  },
})

/** Event ids of one alarm, or of the alarms of a purchase. None if the scopes have no such alarm. */
async function namedAlarms(
  { db, caller }: Call,
  scopes: readonly StoreScope[],
  { storeId, eventId, purchaseId }: Record<'storeId' | 'eventId' | 'purchaseId', string | undefined>,
): Promise<string[]> {
  if (eventId !== undefined) {
    const alarm = await findAlarm(db, knownCaller(caller).tenant, eventId, scopes)
    return alarm ? [eventId] : []
  }
  if (storeId === undefined) throw invalid('storeId', 'is required with purchaseId', 'missing')
  return purchaseId === undefined ? [] : alarmsOfPurchase(db, storeId, purchaseId)
}

/** Describes the alarms of these events, in the given order. Leaves out events that were deleted. */
async function describeAlarms({ db, caller }: Call, eventIds: readonly string[]): Promise<Alarm[]> {
  const { tenant } = knownCaller(caller)
  const events = await eventsOf(db, tenant, eventIds)
  const storeIds = [...new Set([...events.values()].map(({ storeId }) => storeId))]
  const dispositions = await dispositionsOf(db, tenant, eventIds)
  const exceptions = await exceptionsOf(db, storeIds, eventIds)
  const { devices, staff } = await shownNames(db, tenant, {
    devices: [...events.values()].map(({ event }) => event.deviceId),
    staff: eventIds.flatMap((id) => [
      dispositions.get(id)?.operator_id,
      exceptions.get(id)?.acknowledged_by,
      ...earlierOf(dispositions.get(id)).map(({ operatorId }) => operatorId),
    ]),
  })
  const calls = await openCallsOf(db, storeIds, eventIds)
  const itemOf = await itemsWith(
    db,
    tenant,
    [...events.values()].map(({ event: { epc, tagUid, tagId } }) => ({
      epcs: epc === undefined ? [] : [epc],
      tagUids: tagUid === undefined ? [] : [tagUid],
      tagIds: tagId === undefined ? [] : [tagId],
    })),
  )
  const alarms: Alarm[] = []
  for (const eventId of eventIds) {
    const found = events.get(eventId)
    if (!found) continue
    const { event, storeId } = found
    const disposition = dispositions.get(eventId)
    const exception = exceptions.get(eventId)
    const by = disposition?.operator_id ?? exception?.acknowledged_by ?? undefined
    alarms.push({
      ...tagOf(event),
      storeId,
      state: disposition ? 'disposed' : exception && exception.acknowledged_ms === null ? 'open' : 'acknowledged',
      ...definedFields({ gate: devices.get(event.deviceId ?? '') ?? event.gateId ?? null }),
      ...(await goodsOf(db, tenant, { event, storeId, item: itemOf(event) })),
      ...handlingOf(exception, disposition),
      ...(disposition?.earlier && {
        earlier: earlierOf(disposition).map((each) => ({
          ...each,
          ...definedFields({ name: staff.get(each.operatorId) ?? null }),
        })),
      }),
      ...definedFields({
        acknowledgedByName: staff.get(exception?.acknowledged_by ?? '') ?? null,
        handledByName: by === undefined ? null : (staff.get(by) ?? null),
        helpRequestId: calls.get(eventId) ?? null,
      }),
    })
  }
  return alarms
}

/** What people did last about these alarms of a store, for the display of their gate. Leaves out open alarms. */
export async function handledAlarms(
  db: Db,
  { tenant, store_id: storeId }: { tenant: string; store_id: string },
  eventIds: readonly string[],
): Promise<AlarmStateReport[]> {
  const dispositions = await dispositionsOf(db, tenant, eventIds)
  const exceptions = await exceptionsOf(db, [storeId], eventIds)
  const { staff } = await shownNames(db, tenant, {
    devices: [],
    staff: eventIds.map((id) => dispositions.get(id)?.operator_id ?? exceptions.get(id)?.acknowledged_by),
  })
  return eventIds.flatMap((eventId): AlarmStateReport[] => {
    const disposed = dispositions.get(eventId)
    if (disposed?.store_id === storeId) {
      const { disposition, operator_id: by } = disposed
      return [{ eventId, step: disposition as AlarmDisposition, by: staff.get(by) ?? by }]
    }
    const { acknowledged_ms: atMs = null, acknowledged_by: by = null } = exceptions.get(eventId) ?? {}
    // The caller of an acknowledgement may be an API key, whose id says nothing to people.
    return atMs === null ? [] : [{ eventId, step: 'acknowledged', by: staff.get(by ?? '') ?? '' }]
  })
}

function tagOf(event: ProtectionEvent) {
  const { eventId, reason, detail, deviceId, epc, tagUid, tagId, itemStatus, emergency, occurredAt } = event
  return {
    eventId,
    reason: reason ?? 'gate_alarm',
    occurredAt,
    ...definedFields({
      detail: detail ?? null,
      deviceId: deviceId ?? null,
      epc: epc ?? null,
      tagUid: tagUid ?? null,
      tagId: tagId ?? null,
      itemStatus: itemStatus ?? null,
      emergency: emergency ?? null,
    }),
  }
}

async function goodsOf(
  db: Db,
  tenant: string,
  { event, storeId, item }: { event: ProtectionEvent; storeId: string; item: Row<'protected_item'> | undefined },
) {
  const product = await productOfAlarm(db, tenant, storeId, { item, epc: event.epc })
  const occurredMs = Date.parse(event.occurredAt)
  const receipt = await receiptOfAlarm(db, storeId, { occurredMs, item, product })
  return {
    ...(product && { product: toProduct(product) }),
    ...(!product && item && { goods: toGoods(item) }),
    ...(receipt && { receipt: toReceipt(receipt) }),
  }
}

function toProduct({ productId, name, brand, category, imageUrl, priceCent }: AlarmProduct) {
  return { productId, name, price: eurosOf(priceCent), ...definedFields({ brand, category, imageUrl }) }
}

function toGoods({ brand, category, price_cent: priceCent }: Row<'protected_item'>) {
  return definedFields({ brand, category, price: priceCent === null ? null : eurosOf(priceCent) })
}

function toReceipt({ match, purchaseId, paidMs }: FittingReceipt) {
  return { match, purchaseId, paidAt: iso(paidMs) }
}

function handlingOf(
  exception: Row<'protection_exception'> | undefined,
  disposition: Row<'alarm_disposition'> | undefined,
) {
  return {
    ...(exception && { exceptionId: exception.exception_id, times: exception.times }),
    ...(exception && exception.acknowledged_ms !== null && { acknowledgedAt: iso(exception.acknowledged_ms) }),
    ...(exception && definedFields({ acknowledgedBy: exception.acknowledged_by })),
    ...(disposition && toDisposition(disposition)),
  }
}

function writeCursor({ atMs, id }: AlarmPosition): string {
  return Buffer.from(`${atMs}/${id}`).toString('base64url')
}

/** Reads a cursor of `writeCursor`. */
function readCursor(cursor: string): AlarmPosition {
  const match = /^(\d{1,16})\/([\x21-\x7e]{1,128})$/.exec(Buffer.from(cursor, 'base64url').toString())
  if (match?.[1] === undefined || match[2] === undefined) throw invalidCursor()
  return { atMs: Number(match[1]), id: match[2] }
}
