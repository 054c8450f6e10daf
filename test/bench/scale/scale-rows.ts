import type { Result, Row } from '../figure.ts'

/** The figures of the table, in the order of a run. */
export const SCALE_FIGURES = [
  'postgres',
  'verify-protected-item',
  'checkout-journey',
  'drain',
  'catalogue-size',
] as const

type Figures = Readonly<Record<string, Result>>

/** One aim with its measured value. */
export interface ScaleRow {
  readonly what: string
  readonly comparedWith: string
  readonly measured: string
  readonly aim: string
  readonly met: boolean
  /** What limits the value, measured in the same run. */
  readonly limit: string
}

const OPERATIONS = ['verifyProtectedItem', 'purchase', 'insertProduct', 'fetchProducts'] as const
const WRITES = OPERATIONS.slice(0, 3)
/** Minimum share of the rate of bare `pg`. */
const PG_SHARE = 0.6
/** Maximum share of busy connections that wait for a lock, percent. */
const LOCK_WAITS = 5
/** Maximum number of repeated transactions per 100 operations. */
const CONFLICTS = 1
/** A core that is busier than this counts as full. */
const FULL_CORE = 0.9
/** Maximum ratio of the cost of a search to the cost in the smallest store. */
const SEARCH = 1.5

/** Shares of the rate of the bare route on SQLite: figure, measured row, bare row, aim. */
const SQLITE = [
  ['verify-protected-item', 'verifyProtectedItem', 'bare Hono route, group commit', 0.5],
  ['checkout-journey', 'checkIn, startCheckout, paid', 'bare Hono, three commits', 0.6],
  ['drain', 'an agent drains its journal', 'bare ingest transaction', 0.6],
  ['drain', 'reportProtectionEvents', 'bare ingest transaction', 0.6],
] as const

/** All aims of the table whose figures were measured. */
export function scaleRows(figures: Figures): ScaleRow[] {
  return [...postgresRows(figures), ...writeRows(figures), ...sqliteRows(figures), ...searchRows(figures)]
}

const percent = (share: number) => `${Math.round(share * 100)} %`
const rowOf = (figures: Figures, figure: string, name: string): Row | undefined =>
  figures[figure]?.rows.find((row) => row.name === name)

/** Share of a core that the server used. */
function coreOf(row: Row): number | undefined {
  const cpu = row.also['server CPU µs']
  return cpu === undefined ? undefined : cpu / row.microseconds
}

function coreText(row: Row): string {
  const core = coreOf(row)
  return core === undefined
    ? 'CPU time of one thread, see "Hot paths"'
    : `core of the cloud ${percent(Math.min(core, 1))} busy`
}

function postgresRows(figures: Figures): ScaleRow[] {
  return OPERATIONS.flatMap((operation) =>
    ['1', '4', '16'].flatMap((inFlight): ScaleRow[] => {
      const row = rowOf(figures, 'postgres', `${operation}, ${inFlight} in flight: PostgreSQL`)
      if (!row) return []
      const { statements = 0, 'round trips': trips = 0 } = row.also
      return [
        {
          what: `\`${operation}\` on PostgreSQL, ${inFlight} in flight`,
          comparedWith: 'bare `pg`',
          measured: `${percent(1 / row.ratio)} of the rate (${rate(row)})`,
          aim: `≥ ${percent(PG_SHARE)}`,
          met: 1 / row.ratio >= PG_SHARE,
          limit: `${coreText(row)}, ${Math.round(statements)} statements, ${Math.round(trips)} round trips`,
        },
      ]
    }),
  )
}

function rate({ perSecond }: Row): string {
  return `${Math.round(perSecond).toLocaleString('en')}/s`
}

function writeRows(figures: Figures): ScaleRow[] {
  return WRITES.flatMap((operation): ScaleRow[] => {
    const rows = ['1', '4', '16'].map((inFlight) =>
      rowOf(figures, 'postgres', `${operation}, ${inFlight} in flight: PostgreSQL`),
    )
    const [one, four, sixteen] = rows
    if (!one || !four || !sixteen) return []
    const { 'lock waits %': waits = 0, 'conflicts %': conflicts = 0 } = sixteen.also
    const isFull = (coreOf(sixteen) ?? 0) >= FULL_CORE
    const what = `\`${operation}\` of one store on PostgreSQL`
    return [
      {
        what: `${what}, 1, 4 and 16 in flight`,
        comparedWith: 'fewer in flight',
        measured: [one, four, sixteen].map(rate).join(', '),
        aim: 'rises until a core is full',
        met: four.perSecond > one.perSecond && (sixteen.perSecond > four.perSecond || isFull),
        limit: coreText(sixteen),
      },
      {
        what: `${what}: waits for locks, 16 in flight`,
        comparedWith: 'busy connections',
        measured: `${waits.toFixed(1)} %`,
        aim: `< ${LOCK_WAITS} %`,
        met: waits < LOCK_WAITS,
        limit: '',
      },
      {
        what: `${what}: repeated transactions, 16 in flight`,
        comparedWith: 'operations',
        measured: `${conflicts.toFixed(1)} %`,
        aim: `< ${CONFLICTS} %`,
        met: conflicts < CONFLICTS,
        limit: '',
      },
    ]
  })
}

function sqliteRows(figures: Figures): ScaleRow[] {
  return SQLITE.flatMap(([figure, name, bare, aim]): ScaleRow[] => {
    const [row, base] = [rowOf(figures, figure, name), rowOf(figures, figure, bare)]
    if (!row || !base) return []
    const share = base.microseconds / row.microseconds
    return [
      {
        what: `${name} (SQLite)`,
        comparedWith: bare,
        measured: `${percent(share)} of the rate (${rate(row)})`,
        aim: `≥ ${percent(aim)}`,
        met: share >= aim,
        limit: coreText(row),
      },
    ]
  })
}

function searchRows(figures: Figures): ScaleRow[] {
  const name = 'searchProducts, two words, '
  const rows = figures['catalogue-size']?.rows.filter((row) => row.name.startsWith(name)) ?? []
  const [base, ...larger] = rows
  if (!base) return []
  const answer = (row: Row) => (row.also['products in the answer'] ?? 0).toFixed(0)
  return larger.map((row) => ({
    what: `search by two words in ${row.name.slice(name.length)} products (SQLite)`,
    comparedWith: `${base.name.slice(name.length)} products`,
    measured: `${row.ratio.toFixed(2)} × the cost (${(row.microseconds / 1_000).toFixed(2)} ms)`,
    aim: `≤ ${SEARCH}`,
    met: row.ratio <= SEARCH,
    limit: `${answer(row)} products in the answer instead of ${answer(base)}`,
  }))
}
