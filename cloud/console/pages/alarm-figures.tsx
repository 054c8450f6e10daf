import type { z } from 'zod'
import { ALARM_DISPOSITIONS, GATE_ALARMS } from '../../../policy/vocabulary.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { iso } from '../../platform/operations/fields.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { ALARM_STATES } from '../../protection/records/alarm-queries.ts'
import { fetchProtectionEvents } from '../../protection/records/event-operations.ts'
import { fetchOfflineFigures } from '../../protection/records/offline-figures.ts'
import { addDays, clockOf, dayOf, daysBetween, isDay, startOfDay } from '../../shop/analytics/store-days.ts'
import { BarTable, ColumnChart, type Bar } from '../components/bars.tsx'
import { Card, EmptyState, Figures } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { Notice } from '../components/notice.tsx'
import { OfflineCost, offlineRows } from '../components/offline-cost.tsx'
import { FilterBar, Results } from '../components/table.tsx'
import { csvFile } from '../frame/download.ts'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'
import { namesIn } from './purchase-history.ts'

type Event = z.output<typeof fetchProtectionEvents.response>['events'][number]

/** Days of the choice, and whether the address named others that cannot be shown. */
interface Days {
  readonly from: string
  readonly to: string
  readonly isWrong: boolean
}

/** What the page shows. */
interface AlarmNumbers {
  readonly days: Days
  readonly alarms: number
  readonly needless: number
  readonly late: number
  /** Time of the last event that is counted, ms; undefined if all are. */
  readonly cutMs: number | undefined
  /** `more` of gates: needless alarms and late reports. */
  readonly byGate: readonly Bar[]
  readonly byHour: readonly Bar[]
  readonly byCategory: readonly Bar[]
  readonly byCause: readonly Bar[]
  /** Alarms whose category is counted. */
  readonly categorized: number
  /** Undefined if the package of the store does not have it. */
  readonly offline: z.output<typeof fetchOfflineFigures.response> | undefined
}

type View = ViewContext<AlarmNumbers>

/** Events per request, and requests. Each page of the console reads a bounded number of events. */
const [EVENTS_PAGE, EVENT_PAGES] = [500, 6]
/** Alarms per request and state, for their categories. Each needs a search for its goods. */
const ALARMS_LIMIT = 50
const DAYS_LIMIT = 92
const DEFAULT_DAYS = 7
const CATEGORIES_SHOWN = 20

/** Alarms by gate, hour, category and cause; late and needless ones. */
export const alarmFiguresPage = page<AlarmNumbers>({
  path: '/console/alarm-figures',
  roles: rolesFrom('manager'),
  scope: 'store',
  title: (texts) => texts.alarmFigures.title,
  lead: (at) => at.texts.alarmFigures.lead,
  file: { name: (at) => `alarm-figures-${dayOf(at.nowMs)}.csv`, text: async (at) => fileOf(at, await load(at)) },
  load,
  view(at) {
    const t = at.texts.alarmFigures
    const { days } = at.data
    const query = new URLSearchParams(at.query)
    return (
      <div class="stack wide">
        <FilterBar at={at}>
          <TextField form={NO_FORM} name="from" type="date" label={t.from} value={days.from} />
          <TextField form={NO_FORM} name="to" type="date" label={t.to} value={days.to} />
        </FilterBar>
        <Results>
          {days.isWrong ? <Notice tone="warn" title={t.wrongDays} /> : null}
          <Numbers at={at} />
          {at.data.offline ? <OfflineCost at={at} figures={at.data.offline} days={days} /> : null}
          <p>
            <a class="button" href={`${at.path}?${query}${query.size === 0 ? '' : '&'}file`} download>
              {t.export}
            </a>
          </p>
        </Results>
      </div>
    )
  },
})

async function load(at: PageContext): Promise<AlarmNumbers> {
  const storeId = at.store?.storeId ?? ''
  const days = daysOf(at)
  const [sinceMs, endMs] = [startOfDay(days.from), startOfDay(addDays(days.to, 1))]
  const { events, cutMs } = await eventsBetween(at, storeId, sinceMs, endMs)
  const alarms = events.filter(({ reason = '' }) => GATE_ALARMS.has(reason))
  const ofKind = (kind: string) => events.filter(({ reason }) => reason === kind)
  const [needless, late] = [ofKind('late_status'), ofKind('late_reads')]
  const names = await namesIn(at, storeId)
  const goods = await categoriesBetween(at, storeId, sinceMs, endMs)
  const { noCause, noCategory } = at.texts.alarmFigures
  const perHour = countBy(alarms, ({ occurredAt }) => clockOf(Date.parse(occurredAt)).slice(0, 2))
  const perCause = countBy(alarms, ({ alarm }) => alarm?.disposition ?? '')
  return {
    days,
    alarms: alarms.length,
    needless: needless.length,
    late: late.length,
    cutMs,
    byGate: gatesOf(at, names, [alarms, needless, late]),
    byHour: Array.from({ length: 24 }, (_, hour) => {
      const label = String(hour).padStart(2, '0')
      return { label, value: perHour.get(label) ?? 0 }
    }),
    byCause: [
      ...ALARM_DISPOSITIONS.map((cause) => ({
        label: at.texts.alarms.causes[cause],
        value: perCause.get(cause) ?? 0,
      })),
      { label: noCause, value: perCause.get('') ?? 0 },
    ],
    byCategory: highestFirst(countBy(goods, (category) => category ?? noCategory)).slice(0, CATEGORIES_SHOWN),
    categorized: goods.length,
    offline: await at.runIfAllowed(fetchOfflineFigures, { storeId, since: iso(sinceMs), until: iso(endMs) }),
  }
}

/** Days in the address of the page; by default the last seven. */
function daysOf(at: PageContext): Days {
  const today = dayOf(at.nowMs)
  const last = { from: addDays(today, 1 - DEFAULT_DAYS), to: today }
  const read = (name: string) => {
    const day = at.query.get(name) ?? ''
    return isDay(day) ? day : undefined
  }
  const to = read('to') ?? today
  const from = read('from') ?? addDays(to, 1 - DEFAULT_DAYS)
  const isWrong = to < from || daysBetween(from, to) >= DAYS_LIMIT
  return { ...(isWrong ? last : { from, to }), isWrong }
}

/** Alarms and exceptions that happened between two times, at most `EVENTS_PAGE * EVENT_PAGES`, the oldest first. */
async function eventsBetween(at: PageContext, storeId: string, sinceMs: number, endMs: number) {
  const about = { storeId, type: 'protection.exception.raised', since: iso(sinceMs), limit: EVENTS_PAGE } as const
  const events: Event[] = []
  let cursor: string | undefined
  for (let n = 0; n < EVENT_PAGES; n++) {
    const found = await at.runIfAllowed(fetchProtectionEvents, { ...about, ...(cursor !== undefined && { cursor }) })
    const page = found?.events ?? []
    events.push(...page.filter(({ occurredAt }) => isBetween(occurredAt, sinceMs, endMs)))
    cursor = found?.nextCursor
    const lastMs = Date.parse(page.at(-1)?.processedAt ?? iso(endMs))
    // Agents may report an hour late. What they report later is not counted in a time that is long over.
    if (cursor === undefined || lastMs >= endMs + LATE_MS) return { events, cutMs: undefined }
    if (n === EVENT_PAGES - 1) return { events, cutMs: Math.min(lastMs, endMs) }
  }
  return { events, cutMs: undefined }
}

/** Time after the end of the days during which events may still arrive, ms. */
const LATE_MS = 24 * 3_600_000

function isBetween(time: string, sinceMs: number, endMs: number): boolean {
  const ms = Date.parse(time)
  return ms >= sinceMs && ms < endMs
}

/** Categories of the goods of the newest alarms of each state; undefined: unknown. */
async function categoriesBetween(
  at: PageContext,
  storeId: string,
  sinceMs: number,
  endMs: number,
): Promise<(string | undefined)[]> {
  const categories: (string | undefined)[] = []
  const raised = { raisedFrom: iso(sinceMs), raisedUntil: iso(endMs - 1) }
  for (const state of ALARM_STATES) {
    const found = await at.runIfAllowed(fetchAlarms, { storeId, state, ...raised, limit: ALARMS_LIMIT })
    for (const { product, goods } of found?.alarms ?? []) categories.push(product?.category ?? goods?.category)
  }
  return categories
}

function countBy<T>(rows: readonly T[], keyOf: (row: T) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const row of rows) counts.set(keyOf(row), (counts.get(keyOf(row)) ?? 0) + 1)
  return counts
}

function highestFirst(counts: ReadonlyMap<string, number>): Bar[] {
  return [...counts].map(([label, value]) => ({ label, value })).toSorted((a, b) => b.value - a.value)
}

/** Alarms, needless alarms and late reports of each gate. */
function gatesOf(
  at: PageContext,
  names: ReadonlyMap<string, string>,
  kinds: readonly [alarms: readonly Event[], needless: readonly Event[], late: readonly Event[]],
): Bar[] {
  const gateOf = ({ deviceId = '', gateId }: Event) => names.get(deviceId) ?? gateId ?? at.texts.alarms.exit
  const [alarms, ...others] = kinds.map((events) => countBy(events, gateOf))
  const gates = new Set(kinds.flat().map(gateOf))
  return [...gates]
    .map((label) => ({ label, value: alarms?.get(label) ?? 0, more: others.map((counts) => counts.get(label) ?? 0) }))
    .toSorted((a, b) => b.value - a.value)
}

function Numbers({ at }: { at: View }) {
  const t = at.texts.alarmFigures
  const { alarms, needless, late, cutMs, byGate, byHour, byCategory, byCause, categorized } = at.data
  const { number, percent } = at.formats
  if (alarms + needless + late === 0)
    return (
      <Card>
        <EmptyState icon="chart" title={t.nothing}>
          {t.nothingText}
        </EmptyState>
      </Card>
    )
  const share = alarms === 0 ? undefined : t.share(percent(needless / alarms))
  const needlessNote = [share, t.needlessNote].filter((part) => part !== undefined).join('. ')
  const isLimited = categorized < alarms
  const limit = isLimited ? <span class="soft small">{t.categoryLimit(number(categorized))}</span> : null
  return (
    <>
      {cutMs === undefined ? null : <Notice tone="warn" title={t.cut(at.formats.moment(cutMs))} />}
      <Figures
        figures={[
          { label: t.alarms, value: number(alarms) },
          { label: t.needless, value: number(needless), note: needlessNote },
          { label: t.late, value: number(late), note: t.lateNote },
        ]}
      />
      <Card title={t.byGate} flush>
        <BarTable at={at} caption={t.byGate} name={t.gate} value={t.alarms} more={[t.needless, t.late]} bars={byGate} />
      </Card>
      <Card title={t.byHour}>
        <ColumnChart at={at} caption={t.byHour} bars={byHour} />
      </Card>
      <Card title={t.byCause} flush>
        <BarTable at={at} caption={t.byCause} name={t.cause} value={t.alarms} bars={byCause} />
      </Card>
      {byCategory.length === 0 ? null : (
        <Card title={t.byCategory} aside={limit} flush>
          <BarTable at={at} caption={t.byCategory} name={t.category} value={t.alarms} bars={byCategory} />
        </Card>
      )}
    </>
  )
}

/** The numbers of the page as a file, one row for each bar. */
function fileOf(at: PageContext, numbers: AlarmNumbers): string {
  const t = at.texts.alarmFigures
  const tables = [
    [t.byGate, numbers.byGate],
    [t.byHour, numbers.byHour],
    [t.byCause, numbers.byCause],
    [t.byCategory, numbers.byCategory],
  ] as const
  const rows = tables.flatMap(([name, bars]) =>
    bars.map(({ label, value, more }) => [name, label, value, ...(more ?? [])]),
  )
  const offline = numbers.offline ? offlineRows(at, numbers.offline) : []
  return csvFile(at.language, [[t.table, '', t.alarms, t.needless, t.late], ...rows, ...offline])
}
