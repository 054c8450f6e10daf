import { addDays, dayOf } from '../../shop/analytics/store-days.ts'
import { csvCell } from '../../shop/analytics/export-operations.ts'
import type { z } from 'zod'
import { closeStoreDay, fetchClosings } from '../../shop/analytics/operations.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { Card, Figures, EmptyState, PrintButton } from '../components/card.tsx'
import { Confirm } from '../components/form.tsx'
import { Pagination, Table } from '../components/table.tsx'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Listing = z.output<typeof fetchClosings.response>
type Closing = Listing['closings'][number]

const PAGE = 20

/** Closings of the days of a store. */
export const closingsPage = page<Partial<Listing>>({
  path: '/console/closings',
  roles: rolesFrom('viewer'),
  scope: 'store',
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
    csv: async (at) => csvOf(await allClosings(at)),
  },
  async load(at) {
    const cursor = at.query.get('cursor') ?? undefined
    const found = await at.runIfAllowed(fetchClosings, {
      storeId: at.store?.storeId ?? '',
      limit: PAGE,
      ...(cursor !== undefined && { cursor }),
    })
    return found ?? {}
  },
  view(at) {
    const t = at.texts.closings
    const { closings = [], nextCursor } = at.data
    const latest = at.query.has('cursor') ? undefined : closings[0]
    return (
      <div class="stack wide">
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
        {latest ? <Latest at={at} closing={latest} /> : null}
        <div class="row no-print">
          {closings.length === 0 ? null : (
            <>
              <PrintButton label={t.print} />
              <a class="button" href={`${at.path}?file`} download>
                {t.export}
              </a>
            </>
          )}
        </div>
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

/** Maximum number of pages in the file: the closings of 27 years. */
const FILE_PAGES = 20

/** All closings of the store, the oldest first. */
async function allClosings(at: PageContext): Promise<Closing[]> {
  const all: Closing[] = []
  let cursor: string | undefined
  for (let n = 0; n < FILE_PAGES; n++) {
    const about = { storeId: at.store?.storeId ?? '', limit: 500, ...(cursor !== undefined && { cursor }) }
    const found = await at.run(fetchClosings, about)
    all.push(...found.closings)
    cursor = found.nextCursor
    if (cursor === undefined) break
  }
  return all.toReversed()
}

/** One row for each closing, with the amounts in cents. Two columns for each rate of the VAT follow. */
function csvOf(closings: readonly Closing[]): string {
  const rates = [...new Set(closings.flatMap(({ vatBreakdown }) => Object.keys(vatBreakdown)))].toSorted(
    (a, b) => Number(a) - Number(b),
  )
  const columns = ['number', 'from', 'date', 'closedAt', 'currency', 'receiptCount', 'salesCent'] as const
  const others = ['refundCount', 'refundCent', 'totalCent'] as const
  const names = [...columns, ...others, ...rates.flatMap((rate) => [`net${rate}Cent`, `tax${rate}Cent`])]
  const rows = closings.map((closing) => [
    ...[...columns, ...others].map((name) => csvCell(closing[name])),
    ...rates.flatMap((rate) => {
      const { net = 0, tax = 0 } = closing.vatBreakdown[rate] ?? {}
      return [net, tax]
    }),
  ])
  return [names, ...rows].map((cells) => `${cells.join(',')}\r\n`).join('')
}

/** True if a day that is over is not closed. */
function isOpenDay(at: ViewContext, latest: Closing | undefined): boolean {
  return latest === undefined || at.query.has('cursor') || latest.date < addDays(dayOf(at.nowMs), -1)
}

function daysOf(at: ViewContext, { from, date }: Closing): string {
  const day = (text: string) => at.formats.date(Date.parse(`${text}T12:00:00Z`))
  return from === date ? day(date) : `${day(from)} – ${day(date)}`
}

function Latest({ at, closing }: { at: ViewContext; closing: Closing }) {
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

function Closings({ at, closings }: { at: ViewContext; closings: readonly Closing[] }) {
  const t = at.texts.closings
  const money = (cents: number) => at.formats.money(cents / 100)
  return (
    <Table
      caption={t.all}
      rows={closings}
      columns={[
        { label: t.days, kind: 'head', cell: (closing) => daysOf(at, closing) },
        { label: t.number, kind: 'number', cell: ({ number }) => at.formats.number(number) },
        { label: t.sales, kind: 'number', cell: ({ salesCent }) => money(salesCent) },
        { label: t.refunds, kind: 'number', cell: ({ refundCent }) => money(refundCent) },
        { label: t.total, kind: 'number', cell: ({ totalCent }) => money(totalCent) },
        { label: t.closedAt, cell: ({ closedAt }) => at.formats.moment(Date.parse(closedAt)) },
      ]}
    />
  )
}
