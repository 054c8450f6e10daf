import {
  addDays,
  daysBetween,
  periodOf,
  type Period,
  DAY_COLUMNS,
  EMPTY_DAY,
  type DayCounts,
  type DayRow,
} from './store-days.ts'
import type { AnalyticsReport } from './schema.ts'

/** First and last day of an offer, both inclusive. */
export interface OfferDays {
  from: string
  to: string
}

interface ReportInput {
  storeId: string
  from: string
  to: string
  period: Period
  /** Days with data, all within from … to. */
  days: readonly DayRow[]
  followersBefore: number
  offers: readonly OfferDays[]
}

/** Makes one report per period, including periods without data. Counts only days within from … to. */
export function makeReports({
  storeId,
  from,
  to,
  period,
  days,
  followersBefore,
  offers,
}: ReportInput): AnalyticsReport[] {
  const sums = new Map<string, { counts: DayCounts; first: string; last: string }>()
  for (let n = 0; n <= daysBetween(from, to); n++) {
    const day = addDays(from, n)
    const sum = sums.get(periodOf(day, period))
    if (sum) sum.last = day
    else sums.set(periodOf(day, period), { counts: { ...EMPTY_DAY }, first: day, last: day })
  }
  for (const row of days) {
    const sum = sums.get(periodOf(row.day, period))
    if (sum) for (const name of DAY_COLUMNS) sum.counts[name] += row[name]
  }
  let followers = followersBefore
  return [...sums].map(([date, { counts, first, last }]) => {
    followers += counts.new_followers - counts.lost_followers
    const activeOffers = offers.filter((offer) => offer.from <= last && offer.to >= first).length
    return toReport({ storeId, date, period }, counts, followers, activeOffers)
  })
}

function toReport(
  head: Pick<AnalyticsReport, 'storeId' | 'date' | 'period'>,
  day: DayCounts,
  followers: number,
  activeOffers: number,
): AnalyticsReport {
  return {
    storeId: head.storeId,
    date: head.date,
    period: head.period,
    scanAndGo: {
      sessions: day.sessions,
      completedCheckouts: day.completed_checkouts,
      abandonedRate: percent(day.sessions - day.sessions_completed, day.sessions),
      revenueCent: day.revenue_cent,
      avgBasketCent: day.completed_checkouts === 0 ? 0 : Math.round(day.revenue_cent / day.completed_checkouts),
      itemsScanned: day.items_scanned,
    },
    tills: {
      sales: day.till_sales,
      revenueCent: day.till_cent,
      avgBasketCent: day.till_sales === 0 ? 0 : Math.round(day.till_cent / day.till_sales),
      itemsSold: day.till_items,
    },
    offers: {
      activeOffers,
      totalClicks: day.offer_clicks,
      totalFavorites: Math.max(0, day.offer_favorites),
      conversionRate: percent(Math.max(0, day.offer_favorites), day.offer_clicks),
    },
    store: {
      profileViews: day.profile_views,
      newFollowers: day.new_followers,
      totalFollowers: followers,
      dmReceived: day.messages,
    },
  }
}

/** Percent with one decimal; 0 if `whole` is 0, at most 100. */
function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(100, Math.round((1_000 * part) / whole) / 10)
}
