import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { addDays, dayOf, daysBetween } from '../../shop/analytics/store-days.ts'
import { getManagerOffers } from '../../shop/offers/operations.ts'
import { Badge, Card, EmptyState, type Tone } from '../components/card.tsx'
import { Notice } from '../components/notice.tsx'
import { lastDayOf } from '../components/offer-fields.tsx'
import { Pagination, Table } from '../components/table.tsx'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Listed = z.output<typeof getManagerOffers.response>['offers'][number]

interface Offers {
  readonly list: z.output<typeof getManagerOffers.response>
  /** The newest offers of the month, for the calendar. */
  readonly newest: z.output<typeof getManagerOffers.response>
}

const PAGE_SIZE = 25
/** Offers of a month that the calendar shows. */
const CALENDAR_LIMIT = 50
const FILTERS = ['active', 'scheduled', 'expired'] as const
const TONES: Readonly<Record<Listed['status'], Tone>> = {
  DRAFT: 'info',
  ACTIVE: 'ok',
  EXPIRED: 'plain',
  ARCHIVED: 'plain',
}

/** Page of an offer. */
export const offerHref = (offerId: string) => `/console/offers/${offerId}`

/** Offers by state, and the months in which they run. */
export const offersPage = page<Offers>({
  path: '/console/offers',
  roles: rolesFrom('viewer'),
  scope: 'account',
  navigation: { group: 'goods', icon: 'offer' },
  title: (texts) => texts.offers.title,
  lead: (at) => at.texts.offers.lead,
  async load(at) {
    const status = filterOf(at)
    const cursor = at.query.get('cursor') ?? undefined
    const list = await at.run(getManagerOffers, {
      limit: PAGE_SIZE,
      ...(status && { status }),
      ...(cursor !== undefined && { cursor }),
    })
    const first = monthOf(at)
    const month = { from: first, to: addDays(nextMonth(first), -1) }
    return { list, newest: await at.run(getManagerOffers, { ...month, limit: CALENDAR_LIMIT }) }
  },
  view(at) {
    const t = at.texts.offers
    const { list, newest } = at.data
    const status = filterOf(at)
    return (
      <div class="stack wide">
        {at.opens('/console/offers/new') ? (
          <div>
            <a class="button main" href="/console/offers/new">
              {t.add}
            </a>
          </div>
        ) : null}
        {at.mode === 'test' ? <Notice title={t.sandbox}>{t.sandboxText}</Notice> : null}
        <nav class="row" aria-label={t.filter}>
          {[undefined, ...FILTERS].map((each) => (
            <a
              class="button"
              href={hrefWith(at, { status: each, cursor: undefined })}
              aria-current={each === status ? 'true' : undefined}
            >
              {each === undefined ? t.all : t.filters[each]}
            </a>
          ))}
        </nav>
        <Card title={t.title} flush>
          {list.offers.length === 0 ? (
            <EmptyState icon="offer" title={t.nothing}>
              {t.nothingText}
            </EmptyState>
          ) : (
            <OfferTable at={at} offers={list.offers} />
          )}
        </Card>
        <Pagination at={at} shown={list.offers.length} total={list.total} nextCursor={list.nextCursor} />
        <Calendar at={at} offers={newest.offers} total={newest.total} />
      </div>
    )
  },
})

const filterOf = (at: PageContext) => FILTERS.find((each) => each === at.query.get('status'))

function hrefWith(at: PageContext, change: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams(at.query)
  for (const [name, value] of Object.entries(change))
    if (value === undefined) query.delete(name)
    else query.set(name, value)
  return query.size === 0 ? at.path : `${at.path}?${query}`
}

/** State of an offer in a word. */
export function OfferState({ at, status }: { at: PageContext; status: Listed['status'] }) {
  return <Badge tone={TONES[status]}>{at.texts.offers.states[status]}</Badge>
}

/** First and last day of an offer. */
export function periodOf(at: PageContext, offer: Pick<Listed, 'validFrom' | 'validTo'>): string {
  const { date } = at.formats
  return at.texts.offers.period(date(Date.parse(offer.validFrom)), date(Date.parse(offer.validTo) - 1))
}

function OfferTable({ at, offers }: { at: ViewContext; offers: readonly Listed[] }) {
  const t = at.texts.offers
  const names = new Map(at.stores.map(({ storeId, tradingName }) => [storeId, tradingName]))
  return (
    <Table
      caption={t.title}
      rows={offers}
      columns={[
        { label: t.offer, kind: 'head', cell: ({ id, title }) => <a href={offerHref(id)}>{title}</a> },
        { label: at.texts.frame.state, cell: ({ status }) => <OfferState at={at} status={status} /> },
        { label: t.runs, cell: (offer) => periodOf(at, offer) },
        {
          label: t.stores,
          cell: ({ storeIds: [first = ''], storeCount }) =>
            storeCount === 1 ? (names.get(first) ?? first) : at.formats.number(storeCount),
        },
        { label: t.products, kind: 'number', cell: ({ productCount }) => at.formats.number(productCount) },
        { label: t.discount, kind: 'number', cell: ({ discountPercent }) => at.formats.percent(discountPercent / 100) },
        { label: t.clicks, kind: 'number', cell: ({ clickCount }) => at.formats.number(clickCount) },
      ]}
    />
  )
}

/** The month of the address, or the present one, as its first day. */
function monthOf(at: PageContext): string {
  const asked = at.query.get('month') ?? ''
  return `${/^20\d\d-(?:0[1-9]|1[0-2])$/.test(asked) ? asked : dayOf(at.nowMs).slice(0, 7)}-01`
}

const nextMonth = (first: string) => `${addDays(first, 31).slice(0, 7)}-01`
const monthBefore = (first: string) => `${addDays(first, -1).slice(0, 7)}-01`

/** One row for each offer of the month, with a bar over the days on which it runs. */
function Calendar({ at, offers, total }: { at: ViewContext; offers: readonly Listed[]; total: number }) {
  const t = at.texts.offers
  const first = monthOf(at)
  const end = nextMonth(first)
  const days = daysBetween(first, end)
  const today = dayOf(at.nowMs)
  const rows = offers.flatMap((offer) => {
    const from = Math.max(0, daysBetween(first, dayOf(Date.parse(offer.validFrom))))
    const to = Math.min(days, daysBetween(first, lastDayOf(offer)) + 1)
    return from < to ? [{ offer, from, to }] : []
  })
  const name = new Intl.DateTimeFormat(at.language, { month: 'long', year: 'numeric', timeZone: 'UTC' })
  const title = name.format(Date.parse(first))
  const numbers = Array.from({ length: days }, (_, i) => i + 1)
  return (
    <Card title={`${t.calendar}: ${title}`} aside={<Months at={at} first={first} end={end} />} flush>
      {rows.length === 0 ? (
        <EmptyState icon="today" title={t.nothingInMonth} />
      ) : (
        <div class="table-wrap calendar" role="region" aria-label={title} tabindex={0}>
          <table>
            <caption class="spoken">{title}</caption>
            <thead>
              <tr>
                <th scope="col">{t.offer}</th>
                {numbers.map((day) => (
                  <th scope="col" aria-current={addDays(first, day - 1) === today ? 'date' : undefined}>
                    {day}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(({ offer, from, to }) => (
                <tr>
                  <th scope="row">
                    <a href={offerHref(offer.id)}>{offer.title}</a>
                  </th>
                  {from === 0 ? null : <td colspan={from} />}
                  <td colspan={to - from}>
                    <span class={`bar ${TONES[offer.status]}`}>{to - from > 1 ? `${from + 1}–${to}` : String(to)}</span>
                  </td>
                  {to === days ? null : <td colspan={days - to} />}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {total > offers.length ? (
        <p class="small soft">{t.newestInCalendar(at.formats.number(offers.length), at.formats.number(total))}</p>
      ) : null}
    </Card>
  )
}

function Months({ at, first, end }: { at: PageContext; first: string; end: string }) {
  const t = at.texts.offers
  const link = (label: string, month: string | undefined) => (
    <a class="button" href={hrefWith(at, { month: month?.slice(0, 7) })}>
      {label}
    </a>
  )
  return (
    <nav class="row months" aria-label={t.months}>
      {link(t.before, monthBefore(first))}
      {link(t.now, undefined)}
      {link(t.after, end)}
    </nav>
  )
}
