import { addDays, dayOf } from '../../shop/analytics/store-days.ts'
import type { z } from 'zod'
import { closeStoreDay, fetchClosings } from '../../shop/analytics/operations.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { Card, Figures, EmptyState, PrintButton } from '../components/card.tsx'
import { Confirm } from '../components/form.tsx'
import { Pagination, Table } from '../components/table.tsx'
import { rowsOfStores, storeColumn, type OfStore } from '../components/rows-of-stores.tsx'
import { notFound } from '../../platform/foundation/failure.ts'
import { csvFile } from '../frame/download.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Listing = z.output<typeof fetchClosings.response>
type Closing = Listing['closings'][number]
type ListedClosing = OfStore<Closing>

/** What the page shows. `chosen`: the closing that the address names. */
interface ClosingsView {
  readonly closings?: readonly ListedClosing[]
  readonly nextCursor?: string | undefined
  readonly chosen?: Closing
}

const PAGE = 20

/** Closings of the days of a store. */
export const closingsPage = page<ClosingsView>({
  path: '/console/closings',
  roles: rolesFrom('viewer'),
  scope: 'stores',
  navigation: { group: 'operations', icon: 'chart' },
  title: (texts) => texts.closings.title,
  lead: (at) => at.texts.closings.lead,
  actions: {
    close: {
      operation: closeStoreDay,
      roles: rolesFrom('manager'),
      input: (_, at) => ({ storeId: at.store?.storeId }),
      done: (texts) => texts.closings.closed,
    },
  },
  file: {
    name: (at) => `closings-${dayOf(at.nowMs)}.csv`,
    text: async (at) => fileOf(at, await allClosings(at)),
  },
  async load(at) {
    const cursor = at.query.get('cursor') ?? undefined
    const read = async (about: { storeId: string; limit: number; cursor?: string }) => {
      const found = await at.runIfAllowed(fetchClosings, about)
      return found && { rows: found.closings, nextCursor: found.nextCursor }
    }
    if (!at.store) {
      const { rows: closings, nextCursor } = await rowsOfStores(at, read)
      return { closings, nextCursor }
    }
    const { storeId } = at.store
    const part = await read({ storeId, limit: PAGE, ...(cursor !== undefined && { cursor }) })
    const found = part && {
      closings: part.rows.map((closing) => ({ ...closing, storeId })),
      nextCursor: part.nextCursor,
    }
    const chosen = /^[1-9]\d{0,8}$/.exec(at.query.get('closing') ?? '')?.[0]
    if (chosen === undefined) return found ?? {}
    const before = { storeId, limit: 1, cursor: String(Number(chosen) + 1) }
    const [closing] = (await at.runIfAllowed(fetchClosings, before))?.closings ?? []
    return { ...found, ...(closing?.number === Number(chosen) && { chosen: closing }) }
  },
  view(at) {
    const t = at.texts.closings
    const { closings = [], nextCursor } = at.data
    return (
      <div class="stack wide">
        {at.store ? <OfOneStore at={at} /> : null}
        <Card title={t.all} flush>
          {closings.length === 0 ? (
            <EmptyState icon="chart" title={t.nothing}>
              {t.nothingText}
            </EmptyState>
          ) : (
            <Closings at={at} closings={closings} />
          )}
        </Card>
        <Pagination at={at} shown={closings.length} nextCursor={nextCursor} />
      </div>
    )
  },
})

/** What a person can do in one store, and the chosen closing, or else the latest one. */
function OfOneStore({ at }: { at: ViewContext<ClosingsView> }) {
  const t = at.texts.closings
  const { closings = [], chosen } = at.data
  const latest = at.query.has('cursor') ? undefined : closings[0]
  const shown = chosen ?? latest
  return (
    <>
      <div class="row no-print">
        {at.has(rolesFrom('manager')) && isOpenDay(at, closings[0]) ? (
          <Confirm
            at={at}
            action="close"
            label={t.close}
            question={t.closeQuestion}
            explanation={t.closeText}
            confirm={t.close}
          />
        ) : null}
        {latest && !isOpenDay(at, latest) ? <p>{t.allClosed}</p> : null}
      </div>
      {shown ? <Shown at={at} closing={shown} /> : null}
      {closings.length === 0 ? null : (
        <div class="row no-print">
          <PrintButton label={t.print} />
          <a class="button" href={`${at.path}?file`} download>
            {t.export}
          </a>
        </div>
      )}
    </>
  )
}

/** Maximum number of pages in the file: the closings of 27 years. */
const FILE_PAGES = 20

/** All closings of the store, the oldest first. */
async function allClosings(at: PageContext): Promise<Closing[]> {
  if (!at.store) throw notFound('store')
  const { storeId } = at.store
  const all: Closing[] = []
  let cursor: string | undefined
  for (let n = 0; n < FILE_PAGES; n++) {
    const about = { storeId, limit: 500, ...(cursor !== undefined && { cursor }) }
    const found = await at.run(fetchClosings, about)
    all.push(...found.closings)
    cursor = found.nextCursor
    if (cursor === undefined) break
  }
  return all.toReversed()
}

/** One row for each closing. Two columns for each rate of the VAT follow. */
function fileOf(at: PageContext, closings: readonly Closing[]): string {
  const t = at.texts.closings
  const rates = [...new Set(closings.flatMap(({ vatBreakdown }) => Object.keys(vatBreakdown)))].toSorted(
    (a, b) => Number(a) - Number(b),
  )
  const ofRates = rates.flatMap((rate) => [`${t.net} ${rate} %`, `${t.tax} ${rate} %`])
  const head = [t.number, t.firstDay, t.lastDay, t.closedAt, t.currency, t.receiptCount, t.sales, t.refundsCount]
  const rows = closings.map((closing) => [
    closing.number,
    closing.from,
    closing.date,
    { ms: Date.parse(closing.closedAt) },
    closing.currency,
    closing.receiptCount,
    { cents: closing.salesCent },
    closing.refundCount,
    { cents: closing.refundCent },
    { cents: closing.totalCent },
    ...rates.flatMap((rate) => {
      const { net = 0, tax = 0 } = closing.vatBreakdown[rate] ?? {}
      return [{ cents: net }, { cents: tax }]
    }),
  ])
  return csvFile(at.language, [[...head, t.refunds, t.total, ...ofRates], ...rows])
}

/** True if a day that is over is not closed. */
function isOpenDay(at: ViewContext, latest: Closing | undefined): boolean {
  return latest === undefined || at.query.has('cursor') || latest.date < addDays(dayOf(at.nowMs), -1)
}

function daysOf(at: ViewContext, { from, date }: Closing): string {
  const day = (text: string) => at.formats.date(Date.parse(`${text}T12:00:00Z`))
  return from === date ? day(date) : `${day(from)} – ${day(date)}`
}

function Shown({ at, closing }: { at: ViewContext; closing: Closing }) {
  const t = at.texts.closings
  const money = (cents: number) => at.formats.money(cents / 100)
  return (
    <Card title={t.numbered(at.formats.number(closing.number), daysOf(at, closing))}>
      <div class="stack">
        <Figures
          figures={[
            { label: t.total, value: money(closing.totalCent) },
            {
              label: t.sales,
              value: money(closing.salesCent),
              note: t.receipts(at.formats.number(closing.receiptCount)),
            },
            {
              label: t.refunds,
              value: money(closing.refundCent),
              note: t.refundCount(at.formats.number(closing.refundCount)),
            },
          ]}
        />
        <Table
          caption={t.vat}
          isCaptionShown
          rows={Object.entries(closing.vatBreakdown)}
          columns={[
            { label: t.rate, kind: 'head', cell: ([rate]) => at.formats.percent(Number(rate) / 100) },
            { label: t.net, kind: 'number', cell: ([, { net }]) => money(net) },
            { label: t.tax, kind: 'number', cell: ([, { tax }]) => money(tax) },
            { label: t.gross, kind: 'number', cell: ([, { net, tax }]) => money(net + tax) },
          ]}
        />
        <p class="small soft">{t.noEvidence}</p>
      </div>
    </Card>
  )
}

/** The page with this closing in place of the latest. */
function hrefOf(at: ViewContext, { number, storeId }: ListedClosing): string {
  const query = new URLSearchParams(at.store ? at.query : { store: storeId })
  query.set('closing', String(number))
  return `${at.path}?${query}`
}

function Closings({ at, closings }: { at: ViewContext; closings: readonly ListedClosing[] }) {
  const t = at.texts.closings
  const money = (cents: number) => at.formats.money(cents / 100)
  return (
    <Table
      caption={t.all}
      rows={closings}
      columns={[
        {
          label: t.days,
          kind: 'head',
          cell: (closing) => <a href={hrefOf(at, closing)}>{daysOf(at, closing)}</a>,
        },
        ...storeColumn(at),
        { label: t.number, kind: 'number', cell: ({ number }) => at.formats.number(number) },
        { label: t.sales, kind: 'number', cell: ({ salesCent }) => money(salesCent) },
        { label: t.refunds, kind: 'number', cell: ({ refundCent }) => money(refundCent) },
        { label: t.total, kind: 'number', cell: ({ totalCent }) => money(totalCent) },
        { label: t.closedAt, cell: ({ closedAt }) => at.formats.moment(Date.parse(closedAt)) },
      ]}
    />
  )
}
