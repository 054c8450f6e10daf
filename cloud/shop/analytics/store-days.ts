import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { assert } from '../../../policy/assert.ts'
import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** The Swedish date format is ISO 8601. */
const inZone = new Intl.DateTimeFormat('sv-SE', { timeZone: STORE_TIME_ZONE, dateStyle: 'short' })

/** Day of a time, ms since 1970. */
export function dayOf(ms: number): string {
  return inZone.format(ms)
}

/** True for a day of the calendar, in plausible years: only such a day has a beginning. */
export function isDay(text: string): boolean {
  return /^2\d{3}-\d\d-\d\d$/.test(text) && Number.isFinite(Date.parse(text)) && addDays(text, 0) === text
}

/** Start of a day (`isDay`), ms since 1970. */
export function startOfDay(day: string): number {
  const utc = Date.parse(`${day}T00:00:00Z`)
  // Central Europe is one or two hours ahead of UTC and never changes its clocks at midnight.
  const start = [utc - 2 * HOUR_MS, utc - HOUR_MS].find((ms) => dayOf(ms) === day && dayOf(ms - 1) !== day)
  assert(start !== undefined, `no beginning of ${day}`)
  return start
}

const clockInZone = new Intl.DateTimeFormat('sv-SE', {
  timeZone: STORE_TIME_ZONE,
  dateStyle: 'short',
  timeStyle: 'short',
})

/** Time of a day on the clock of the stores, for instance `14:05`, of a time, ms since 1970. */
export function clockOf(ms: number): string {
  return clockInZone.format(ms).slice(-5)
}

/**
 * Time, ms since 1970, at which the clock of the stores shows `HH:MM` on a day. Of the hour that comes twice in autumn it
 * is the first; the hour that is left out in spring counts on from the hour before.
 */
export function timeOn(day: string, clock: string): number {
  const utc = Date.parse(`${day}T${clock}:00Z`)
  const [summer, winter] = [utc - 2 * HOUR_MS, utc - HOUR_MS]
  return clockInZone.format(summer) === `${day} ${clock}` ? summer : winter
}

/** Adds days to a date; `days` may be negative. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10)
}

/** Whole days between two dates. */
export function daysBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / DAY_MS
}

export const PERIODS = ['daily', 'weekly', 'monthly'] as const
export type Period = (typeof PERIODS)[number]

/** First day of the period that contains a day: the day itself, its Monday, or the first of its month. */
export function periodOf(day: string, period: Period): string {
  if (period === 'daily') return day
  if (period === 'monthly') return `${day.slice(0, 8)}01`
  return addDays(day, -((new Date(day).getUTCDay() + 6) % 7))
}

/** Store and tenant that the counters belong to. */
export type StoreKey = Pick<Row<'store_day'>, 'store_id' | 'tenant'>

/** Counters of a day; each connection has a row of its own (`slot`), and readers add the rows up. */
export type DayRow = Omit<Row<'store_day'>, 'slot'>
type VatRow = Omit<Row<'store_day_vat'>, 'slot'>
export type DayCounts = Omit<DayRow, 'store_id' | 'tenant' | 'day'>
type VatCounts = Omit<VatRow, 'store_id' | 'tenant' | 'day' | 'rate' | 'is_till'>

/** Counters of a day without events. */
export const EMPTY_DAY: Readonly<DayCounts> = {
  sessions: 0,
  sessions_completed: 0,
  completed_checkouts: 0,
  revenue_cent: 0,
  items_scanned: 0,
  offer_clicks: 0,
  offer_favorites: 0,
  profile_views: 0,
  messages: 0,
  new_followers: 0,
  lost_followers: 0,
  receipts: 0,
  refunds: 0,
  till_sales: 0,
  till_receipts: 0,
  till_refunds: 0,
  till_cent: 0,
  till_items: 0,
}
export const DAY_COLUMNS = Object.keys(EMPTY_DAY) as (keyof DayCounts)[]

const NO_VAT: Readonly<VatCounts> = { sales_cent: 0, sales_tax_cent: 0, refund_cent: 0, refund_tax_cent: 0 }
const VAT_COLUMNS = Object.keys(NO_VAT) as (keyof VatCounts)[]

const addDay = prepared((db, p: DayRow) =>
  db
    .insertInto('store_day')
    .values({ store_id: p.store_id, day: p.day, tenant: p.tenant, ...pick(p, DAY_COLUMNS) })
    .onConflict((c) =>
      c
        .columns(['store_id', 'day', 'slot'])
        .doUpdateSet((eb) =>
          Object.fromEntries(
            DAY_COLUMNS.map((name) => [name, eb(`store_day.${name}`, '+', eb.ref(`excluded.${name}`))]),
          ),
        ),
    ),
)

const addVat = prepared((db, p: VatRow) =>
  db
    .insertInto('store_day_vat')
    .values({ ...pick(p, ['store_id', 'day', 'rate', 'is_till', 'tenant']), ...pick(p, VAT_COLUMNS) })
    .onConflict((c) =>
      c
        .columns(['store_id', 'day', 'rate', 'is_till', 'slot'])
        .doUpdateSet((eb) =>
          Object.fromEntries(
            VAT_COLUMNS.map((name) => [name, eb(`store_day_vat.${name}`, '+', eb.ref(`excluded.${name}`))]),
          ),
        ),
    ),
)

function pick<T, K extends keyof T>(row: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, row[name]])) as unknown as Pick<T, K>
}

/** Adds to the counters of a day, in the transaction of the event. */
export async function addToDay(
  db: Db,
  { store_id, tenant }: StoreKey,
  day: string,
  counts: Partial<DayCounts>,
): Promise<void> {
  await addDay(db, { store_id, tenant, day, ...EMPTY_DAY, ...counts })
}

/** Adds to the VAT totals of a day: those of the store's tills with `is_till` 1, else those of untag. */
export async function addToVat(
  db: Db,
  { store_id, tenant }: StoreKey,
  key: Pick<VatRow, 'day' | 'rate' | 'is_till'>,
  counts: Partial<VatCounts>,
): Promise<void> {
  await addVat(db, { store_id, tenant, ...key, ...NO_VAT, ...counts })
}

/** Days of a store with data between two dates, both inclusive, in order. */
export function readDays(db: Db, storeId: string, from: string, to: string): Promise<DayRow[]> {
  return db
    .selectFrom('store_day')
    .select(
      (eb) => ['store_id', 'tenant', 'day', ...DAY_COLUMNS.map((name) => eb.fn.sum<number>(name).as(name))] as const,
    )
    .where('store_id', '=', storeId)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .groupBy(['store_id', 'tenant', 'day'])
    .orderBy('day')
    .execute() as Promise<DayRow[]>
}

/** Totals per VAT rate between two dates, both inclusive, the lowest rate first. */
export async function sumVat(
  db: Db,
  storeId: string,
  from: string,
  to: string,
  isTill: 0 | 1,
): Promise<(VatCounts & { rate: number })[]> {
  const rows = await db
    .selectFrom('store_day_vat')
    .select((eb) => ['rate', ...VAT_COLUMNS.map((name) => eb.fn.sum<number>(name).as(name))] as const)
    .where('store_id', '=', storeId)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .where('is_till', '=', isTill)
    .groupBy('rate')
    .orderBy('rate')
    .execute()
  return rows.map((row) => ({ ...(row as VatCounts & { rate: number }) }))
}

/** Followers of a store at the beginning of a day. */
export async function followersBefore(db: Db, storeId: string, day: string): Promise<number> {
  const { count } = await db
    .selectFrom('store_day')
    .select((eb) => eb.fn.sum<number | null>(eb('new_followers', '-', eb.ref('lost_followers'))).as('count'))
    .where('store_id', '=', storeId)
    .where('day', '<', day)
    .executeTakeFirstOrThrow()
  return count ?? 0
}

/** First day of a store with data. */
export async function firstDay(db: Db, storeId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('store_day')
    .select('day')
    .where('store_id', '=', storeId)
    .orderBy('day')
    .limit(1)
    .executeTakeFirst()
  return row?.day
}
