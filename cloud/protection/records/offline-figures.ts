import { sql, type SqlBool } from 'kysely'
import { z } from 'zod'
import type { ExceptionKind } from '../../../policy/vocabulary.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { definedFields, eurosOf, Id, Success, Timestamp } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { positionSince } from '../../platform/persistence/positions.ts'
import { preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { shownNames } from '../../platform/stores/make-store.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { WITHDRAWN } from './exceptions.ts'

/**
 * What it cost that agents were offline, from what the cloud stores:
 *
 *   outages     times in which it did not hear from an agent (agents/watch/incidents.ts)
 *   decisions   releases and refusals that agents decided alone
 *   exceptions  releases that a cloud within reach would have refused, with the value of their goods
 */

/** Exceptions about goods that leave only because agent and cloud cannot reach each other. */
export const OFFLINE_KINDS = [
  'double_redeem',
  'late_redeem',
  'released_after_refund',
  'released_on_hold',
  'redeemed_after_revocation',
  'cancelled_after_release',
  'released_then_voided',
  'lease_overridden',
] as const satisfies readonly ExceptionKind[]

/** Longest period, ms: a quarter of a year, with a change of the clocks. */
const PERIOD_MS = 93 * 86_400_000
/** Outages, exceptions, events of each type, and pieces of goods that one answer counts. */
const [OUTAGES_LIMIT, EXCEPTIONS_LIMIT, EVENTS_LIMIT, UNITS_LIMIT] = [5_000, 1_000, 20_000, 5_000]

interface Period {
  readonly storeId: string
  readonly sinceMs: number
  readonly untilMs: number
}

type Outage = Pick<Row<'agent_outage'>, 'agent_id' | 'began_ms' | 'ended_ms'>

/** The outages that reach into the period, the latest first. */
function outagesIn(db: Db, { storeId, sinceMs, untilMs }: Period): Promise<Outage[]> {
  return db
    .selectFrom('agent_outage')
    .select(['agent_id', 'began_ms', 'ended_ms'])
    .where('store_id', '=', storeId)
    .where('began_ms', '<', untilMs)
    .where((eb) => eb.or([eb('ended_ms', 'is', null), eb('ended_ms', '>', sinceMs)]))
    .orderBy('began_ms', 'desc')
    .limit(OUTAGES_LIMIT)
    .execute()
}

interface AgentOutages {
  readonly agentId: string
  outages: number
  /** Part of the outages that lies in the period. */
  ms: number
  isRunning: boolean
}

/** The outages of each agent, the longest first. */
function byAgent(outages: readonly Outage[], { sinceMs, untilMs }: Period, nowMs: number): AgentOutages[] {
  const agents = new Map<string, AgentOutages>()
  for (const { agent_id: agentId, began_ms: beganMs, ended_ms: endedMs } of outages) {
    const agent = agents.get(agentId) ?? { agentId, outages: 0, ms: 0, isRunning: false }
    agents.set(agentId, agent)
    agent.outages++
    agent.ms += Math.max(0, Math.min(endedMs ?? nowMs, untilMs) - Math.max(beganMs, sinceMs))
    agent.isRunning ||= endedMs === null
  }
  return [...agents.values()].sort((a, b) => b.ms - a.ms)
}

/** Number of events of a type that agents decided alone, and whether there are more than were counted. */
async function decidedAlone(db: Db, { storeId, sinceMs, untilMs }: Period, type: string, position: number) {
  const read = db
    .selectFrom('protection_event')
    .select(['occurred_ms', sql<SqlBool>`body LIKE '%"offline":true%'`.as('alone')])
    .where('store_id', '=', storeId)
    .where('type', '=', type)
    .where('position', '>=', position)
    .orderBy('position')
    .limit(EVENTS_LIMIT)
  const row = await db
    .selectFrom(read.as('read'))
    .select((eb) => [
      eb.fn.countAll<number>().as('looked'),
      sql<number>`COALESCE(SUM(CASE WHEN alone AND occurred_ms >= ${sinceMs} AND occurred_ms < ${untilMs} THEN 1 ELSE 0 END), 0)`.as(
        'counted',
      ),
    ])
    .executeTakeFirstOrThrow()
  return { count: Number(row.counted), isCut: Number(row.looked) >= EVENTS_LIMIT }
}

type Exception = Pick<Row<'protection_exception'>, 'kind' | 'subject' | 'purchase_id'>

/** Exceptions of these kinds that were first raised in the period. Later evidence took none of them back. */
function exceptionsIn(db: Db, { storeId, sinceMs, untilMs }: Period): Promise<Exception[]> {
  return db
    .selectFrom('protection_exception')
    .select(['kind', 'subject', 'purchase_id'])
    .where('store_id', '=', storeId)
    .where('kind', 'in', [...OFFLINE_KINDS])
    .where('raised_ms', '>=', sinceMs)
    .where('raised_ms', '<', untilMs)
    .where((eb) => eb.or([eb('acknowledged_by', 'is', null), eb('acknowledged_by', '<>', WITHDRAWN)]))
    .orderBy('exception_id', 'desc')
    .limit(EXCEPTIONS_LIMIT)
    .execute()
}

/** One piece of goods. `lineId`: its line, or its item if it belongs to no purchase. */
interface Unit {
  readonly lineId: string
  readonly unitNo: number
}

const redeemedOf = {
  nonce: preparedForMany((db, keys, p: { tenant: string }) =>
    db
      .selectFrom('redemption')
      .select(['nonce as key', 'line_id', 'unit_no'])
      .where('nonce', 'in', keys)
      .where('tenant', '=', p.tenant),
  ),
  // Devices choose ids, which another account may have, too.
  id: preparedForMany((db, keys, p: { tenant: string }) =>
    db
      .selectFrom('redemption')
      .select(['redemption_id as key', 'line_id', 'unit_no'])
      .where('redemption_id', 'in', keys)
      .where('tenant', '=', p.tenant),
  ),
}
const usedOf = preparedForMany((db, purchaseIds) =>
  db
    .selectFrom('unit_right')
    .select(['purchase_id as key', 'line_id', 'unit_no'])
    .where('purchase_id', 'in', purchaseIds)
    .where('state', '=', 'used')
    .limit(UNITS_LIMIT),
)
const unitsOf = preparedForMany((db, purchaseIds) =>
  db
    .selectFrom('purchase_unit')
    .select(['purchase_id as key', 'line_id', 'unit_no'])
    .where('purchase_id', 'in', purchaseIds)
    .limit(UNITS_LIMIT),
)
const linePrices = preparedForMany((db, ids) =>
  db.selectFrom('purchase_line').select(['line_id as id', 'price_cent']).where('line_id', 'in', ids),
)
const itemPrices = preparedForMany((db, ids) =>
  db
    .selectFrom('protected_item as i')
    .leftJoin('product as p', 'p.product_id', 'i.product_id')
    .select((eb) => ['i.item_id as id', eb.fn.coalesce('i.price_cent', 'p.price_cent').as('price_cent')])
    .where('i.item_id', 'in', ids),
)

/** Kinds whose subject is a purchase: the goods are those of it that were released. */
const OF_PURCHASE: ReadonlySet<string> = new Set<ExceptionKind>(['cancelled_after_release', 'released_then_voided'])

/** The unit in the subject of an exception about one unit (evidence/apply-outcome.ts). */
function unitIn(subject: string): Unit | undefined {
  const [, lineId, unitNo] = /^([^/]+)\/(\d+)\/[^/]+$/.exec(subject) ?? []
  return lineId === undefined ? undefined : { lineId, unitNo: Number(unitNo) }
}

/** The goods of each exception. */
async function goodsOf(db: Db, tenant: string, exceptions: readonly Exception[]): Promise<Unit[][]> {
  const others = exceptions.filter(({ kind, subject }) => !OF_PURCHASE.has(kind) && !unitIn(subject))
  const named = others.map(({ subject }) => subject)
  const purchases = exceptions.flatMap(({ kind, subject }) => (OF_PURCHASE.has(kind) ? [subject] : []))
  const units = new Map<string, Unit[]>()
  for (const { key, line_id: lineId, unit_no: unitNo } of [
    ...(await redeemedOf.nonce(db, named, { tenant })),
    ...(await redeemedOf.id(db, named, { tenant })),
    ...(await usedOf(db, purchases)),
  ])
    if (lineId !== null && unitNo !== null) units.set(key, [...(units.get(key) ?? []), { lineId, unitNo }])
  const found = exceptions.map(({ subject }) => {
    const unit = unitIn(subject)
    if (unit) return [unit]
    return units.get(subject) ?? (subject.startsWith('itm_') ? [{ lineId: subject, unitNo: 0 }] : [])
  })
  return withGoodsOfPasses(db, found)
}

/** Replaces the right of a receipt that opened a barrier by the goods of the receipt (`passOf`). */
async function withGoodsOfPasses(db: Db, goods: readonly (readonly Unit[])[]): Promise<Unit[][]> {
  const passes = goods.flat().flatMap(({ lineId }) => (lineId.startsWith('pur_') ? [lineId] : []))
  if (passes.length === 0) return goods.map((units) => [...units])
  const units = new Map<string, Unit[]>()
  for (const { key, line_id: lineId, unit_no: unitNo } of await unitsOf(db, passes))
    units.set(key, [...(units.get(key) ?? []), { lineId, unitNo }])
  return goods.map((each) => each.flatMap((unit) => units.get(unit.lineId) ?? [unit]))
}

/** Prices in cents of goods, by line or item. */
async function pricesOf(db: Db, units: readonly Unit[]): Promise<Map<string, number>> {
  const ids = units.map(({ lineId }) => lineId)
  const rows = [...(await linePrices(db, ids)), ...(await itemPrices(db, ids))]
  return new Map(rows.flatMap(({ id, price_cent }) => (price_cent === null ? [] : [[id, Number(price_cent)] as const])))
}

/** Number and value of different pieces: several exceptions may be about one. */
function sumOf(units: readonly Unit[], prices: ReadonlyMap<string, number>) {
  const different = new Map(units.map((unit) => [`${unit.lineId}/${unit.unitNo}`, unit]))
  const known = [...different.values()].flatMap(({ lineId }) => prices.get(lineId) ?? [])
  return {
    pieces: different.size,
    value: eurosOf(known.reduce((sum, cents) => sum + cents, 0)),
    withoutPrice: different.size - known.length,
  }
}

const Goods = {
  pieces: z.int().describe('Different pieces of goods that these exceptions are about.'),
  value: z.number().describe('EUR, by the price that was paid, or by the price of the item.'),
  withoutPrice: z.int().describe('Pieces whose price the cloud does not know. `value` leaves them out.'),
}

export const fetchOfflineFigures = operation({
  name: 'fetchOfflineFigures',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Returns what it cost that the agents of a store were offline.',
  description:
    'The exceptions are those that a cloud within reach would have prevented. Their goods are not always lost: read what staff noted. A piece that several exceptions are about counts once in `goods`.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    since: Timestamp.describe('Start of the period.'),
    until: Timestamp.describe('End of the period, at most 93 days later.'),
  }),
  response: z.strictObject({
    ...Success,
    outages: z.strictObject({
      count: z.int(),
      seconds: z.int().describe('Sum of all agents.'),
      longerThanSeconds: z
        .int()
        .optional()
        .describe('Shorter outages are not stored (`--silent-minutes`). Absent: the cloud stores none.'),
      agents: z.array(
        z.strictObject({
          agentId: z.string(),
          name: z.string().optional(),
          count: z.int(),
          seconds: z.int(),
          isRunning: z.boolean().describe('True if it is offline now.'),
        }),
      ),
    }),
    decisions: z
      .strictObject({ released: z.int(), denied: z.int() })
      .describe('Decisions that agents took alone in the period.'),
    exceptions: z.array(z.strictObject({ kind: z.enum(OFFLINE_KINDS), count: z.int(), ...Goods })),
    goods: z.strictObject(Goods).describe('The goods of all exceptions.'),
    isCut: z
      .boolean()
      .describe(
        `True if there is more than was counted: ${EVENTS_LIMIT} events of a kind since the start, ${EXCEPTIONS_LIMIT} exceptions or ${OUTAGES_LIMIT} outages. Choose a shorter period.`,
      ),
  }),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    since: '2026-11-01T00:00:00Z',
    until: '2026-12-01T00:00:00Z',
  },
  async run(call, { storeId, since, until }) {
    const { db, nowMs, services } = call
    const { tenant } = await ownStore(call, storeId)
    const period = { storeId, sinceMs: Date.parse(since), untilMs: Date.parse(until) }
    if (period.untilMs <= period.sinceMs) throw invalid('until', 'must be after `since`')
    if (period.untilMs - period.sinceMs > PERIOD_MS) throw invalid('until', 'must be at most 93 days after `since`')
    const outages = await outagesIn(db, period)
    const agents = byAgent(outages, period, nowMs)
    const { agents: names } = await shownNames(db, tenant, {
      devices: [],
      staff: [],
      agents: agents.map(({ agentId }) => agentId),
    })
    const position = await positionSince(db, 'protection', storeId, period.sinceMs)
    const released = await decidedAlone(db, period, 'protection.device.offline', position)
    const denied = await decidedAlone(db, period, 'protection.authorization.denied', position)
    const exceptions = await exceptionsIn(db, period)
    const goods = await goodsOf(db, tenant, exceptions)
    const prices = await pricesOf(db, goods.flat())
    const { silentAfterMs } = services.config
    return {
      success: true as const,
      outages: {
        count: outages.length,
        seconds: secondsOf(agents.reduce((sum, { ms }) => sum + ms, 0)),
        ...(silentAfterMs !== undefined && { longerThanSeconds: secondsOf(silentAfterMs) }),
        agents: agents.map(({ agentId, outages: count, ms, isRunning }) => ({
          agentId,
          count,
          seconds: secondsOf(ms),
          isRunning,
          ...definedFields({ name: names.get(agentId) ?? null }),
        })),
      },
      decisions: { released: released.count, denied: denied.count },
      exceptions: OFFLINE_KINDS.flatMap((kind) => {
        const units = goods.filter((_, n) => exceptions[n]?.kind === kind)
        return units.length === 0 ? [] : [{ kind, count: units.length, ...sumOf(units.flat(), prices) }]
      }),
      goods: sumOf(goods.flat(), prices),
      isCut: released.isCut || denied.isCut || exceptions.length >= EXCEPTIONS_LIMIT || outages.length >= OUTAGES_LIMIT,
    }
  },
})

function secondsOf(ms: number): number {
  return Math.round(ms / 1_000)
}
