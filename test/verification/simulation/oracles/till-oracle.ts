import type { Database as Connection } from 'better-sqlite3'
import type { Core } from '../virtual/core.ts'
import { CLOUD, type TillBook, type TrackedReport } from './till-book.ts'

/**
 * What the contract of till sales promises (docs/adr/till-sales.md), from what the tills posted and what was
 * acknowledged. It judges a tag only if the effect of all reports about it is certain.
 */
export interface TillOracle {
  /** What a gate of this agent must do with the tag now; undefined if the contract leaves it open. */
  expected(agent: string, epc: string): 'silent' | 'alarm' | undefined
  /** Reports that this agent should have announced to the other one, which has not acknowledged them. */
  unannounced(from: string, to: string, beforeMs: number): string[]
  /** Compares the cloud with the acknowledged reports, when all rows have arrived. */
  checkEnd(db: Connection): void
  /** Number of gate passages that were judged, by what was expected, and of barriers that opened. */
  readonly judged: Record<'silent' | 'alarm' | 'opened', number>
}

export interface TillOracleParts {
  core: Core
  book: TillBook
  /** True if no clock has faults, so the times of agents and cloud are comparable. */
  isClockSure: boolean
  /** Sales of one till in an hour that may release goods. */
  salesPerHour: number
  /** True if all messages between the agents arrive at once. */
  isLanSure: boolean
}

const HOUR_MS = 3_600_000

/** Creates the oracle of a run. */
export function tillOracle(parts: TillOracleParts): TillOracle {
  return new Judge(parts)
}

class Judge implements TillOracle {
  readonly #core: Core
  readonly #book: TillBook
  readonly #parts: TillOracleParts
  readonly judged = { silent: 0, alarm: 0, opened: 0 }

  constructor(parts: TillOracleParts) {
    this.#core = parts.core
    this.#book = parts.book
    this.#parts = parts
  }

  expected(agent: string, epc: string): 'silent' | 'alarm' | undefined {
    const book = this.#book
    const reports = book.certain(epc)
    if (!reports || book.byStaff.has(epc) || isRacing(reports)) return undefined
    const all = this.#effective(reports, epc)
    if (!all) return undefined
    const last = all.at(-1)
    if (!last) return 'alarm'
    const nowMs = this.#core.scheduler.nowMs
    const place = last.acks.has(agent) ? agent : book.sourceOf(agent, last, epc, nowMs)
    if (place === undefined) return undefined
    const before = all.slice(0, -1)
    const postedMs = last.posted.get(place) ?? 0
    const unknown = before.filter((report) => !book.knows(place, report, epc, postedMs))
    if (last.kind === 'sale') return this.#afterSale(last, before, { agent, place, epc, unknown })
    // A return by tag counts also where the sale is not known yet. A return or void by sale needs the sale.
    if (last.sale === undefined)
      return unknown.length === 0 || (unknown.length === 1 && place === agent) ? 'alarm' : undefined
    const sold = before.findLast(({ kind, sale }) => kind === 'sale' && sale === last.sale)
    const isPlain = sold && ![...sold.acks.values()].some(({ warned }) => warned.has(epc))
    return isPlain && unknown.length === 0 ? 'alarm' : undefined
  }

  #afterSale(
    sold: TrackedReport,
    before: readonly TrackedReport[],
    { agent, place, epc, unknown }: { agent: string; place: string; epc: string; unknown: readonly TrackedReport[] },
  ): 'silent' | 'alarm' | undefined {
    const isEarly = ({ kind, sale }: TrackedReport) => kind !== 'sale' && sale === sold.sale
    const early = before.filter(isEarly)
    if (sold.acks.get(place)?.warned.has(epc) !== false) return undefined
    if (this.#isOverLimit(sold))
      return place === agent && before.length === 0 && this.#isSurelyOver(sold, place) ? 'alarm' : undefined
    if (unknown.some((report) => !isEarly(report))) return undefined
    if (early.length === 0) return 'silent'
    // A void or return that came before its sale counts where both are acknowledged.
    const isHere = early.some(({ acks }) => acks.has(agent)) && sold.acks.has(agent)
    // Another agent that did not hear of the void announces the sale.
    const isElsewhere = [...sold.posted.keys()].some((other) => other !== agent && other !== CLOUD)
    const isVoid = early.some(({ kind, acks }) => kind === 'void' && acks.has(agent))
    return isHere && (isVoid || !isElsewhere || this.#parts.isLanSure) ? 'alarm' : undefined
  }

  /**
   * The reports that change the tag. A void or return of a sale does not change goods that were sold again. Undefined if
   * a place did not know that they were sold again.
   */
  #effective(reports: readonly TrackedReport[], epc: string): TrackedReport[] | undefined {
    const all: TrackedReport[] = []
    const hasSale = (of: string | undefined) => reports.some(({ kind, sale }) => kind === 'sale' && sale === of)
    for (const report of reports) {
      // It waits for its sale.
      if (report.sale !== undefined && !hasSale(report.sale)) continue
      const sold = all.findLast(({ kind }) => kind === 'sale')
      const isOfAnother = report.kind !== 'sale' && report.sale !== undefined && sold && sold.sale !== report.sale
      if (!isOfAnother) all.push(report)
      else if (![...report.acks.keys()].every((place) => this.#book.knows(place, sold, epc, report.startedMs)))
        return undefined
    }
    return all
  }

  /** True if the till may have sold more in this hour than the policy allows. */
  #isOverLimit(sold: TrackedReport): boolean {
    return this.#book.salesOfTill(sold).length > this.#parts.salesPerHour
  }

  /** True if the place had as many sales of this till and hour as the policy allows before this one. */
  #isSurelyOver(sold: TrackedReport, place: string): boolean {
    const postedMs = sold.posted.get(place) ?? 0
    const all = this.#book.salesOfTill(sold)
    const isOneHour = new Set(all.map(({ startedMs }) => Math.floor(startedMs / HOUR_MS))).size === 1
    const before = all.filter(
      ({ acks, unsure }) => !unsure.has(place) && (acks.get(place)?.atMs ?? Infinity) <= postedMs,
    )
    // Each agent counts for itself.
    return isOneHour && sold.posted.size === 1 && before.length >= this.#parts.salesPerHour
  }

  unannounced(from: string, to: string, beforeMs: number): string[] {
    const epcs = new Set(this.#book.reports.flatMap((report) => report.epcs))
    return [...epcs].filter((epc) => {
      const reports = this.#book.certain(epc)
      const last = reports && this.#effective(reports, epc)?.at(-1)
      if (!reports || !last || reports.length > 2 || last.isConflict || isRacing(reports)) return false
      // Later reports replace earlier ones, so only tags whose reports one agent took are compared.
      const isOwn = reports.every(({ acks, posted }) => acks.has(from) && posted.size === 1)
      const ack = last.acks.get(from)
      const isOld = ack !== undefined && ack.atMs < beforeMs
      const isPlain = reports[0]?.kind === 'sale' && !reports[0].acks.get(from)?.warned.has(epc)
      const isOver = reports[0] !== undefined && this.#isOverLimit(reports[0])
      const nowMs = this.#core.scheduler.nowMs
      return isOwn && isOld && isPlain && !isOver && !this.#book.knows(to, last, epc, nowMs)
    })
  }

  checkEnd(db: Connection): void {
    const rows = db
      .prepare<[], { till: string; totalCent: number }>(
        'SELECT till, total_cent AS totalCent FROM purchase WHERE till IS NOT NULL',
      )
      .all()
    const bySale = new Map<string, number[]>()
    for (const { till, totalCent } of rows) {
      const { tillId = '', series = '', saleId } = JSON.parse(till) as Record<string, string>
      const sale = `${tillId} ${series} ${saleId}`
      bySale.set(sale, [...(bySale.get(sale) ?? []), totalCent])
    }
    for (const [sale, totals] of bySale)
      if (totals.length > 1) this.#core.violate('sales', `the cloud has the sale ${sale} ${totals.length} times`)
    const conflicts = new Set<string | undefined>()
    for (const { isConflict, sale } of this.#book.reports) if (isConflict) conflicts.add(sale)
    this.#checkConflicts(db)
    for (const { kind, sale = '', acks, unsure, totalCent, isConflict } of this.#book.reports) {
      const isSure = [...acks.keys()].some((place) => !unsure.has(place))
      if (kind !== 'sale' || !isSure || isConflict) continue
      const [total] = bySale.get(sale) ?? []
      if (total === undefined)
        this.#core.violate(
          'sales',
          `${[...acks.keys()].join(', ')} acknowledged the sale ${sale}, which the cloud lacks`,
        )
      else if (total !== totalCent && !conflicts.has(sale))
        this.#core.violate('sales', `the sale ${sale} of ${totalCent} cents has ${total} cents in the cloud`)
    }
    this.#checkStatuses(db)
  }

  /** If agents acknowledged different sales with the same names, an exception must name them. */
  #checkConflicts(db: Connection): void {
    const raised = db
      .prepare<[], { detail: string }>("SELECT detail FROM protection_exception WHERE kind = 'sale_conflict'")
      .all()
    const isSure = ({ acks, unsure }: TrackedReport) =>
      [...acks.keys()].some((place) => place !== CLOUD && !unsure.has(place))
    const sales = this.#book.reports.filter(({ kind }) => kind === 'sale')
    for (const second of sales.filter((report) => report.isConflict && isSure(report))) {
      const first = sales.find((report) => report.sale === second.sale && report !== second)
      const number = second.sale?.split(' ').at(-1) ?? ''
      if (first && isSure(first) && !raised.some(({ detail }) => detail.includes(`the number ${number};`)))
        this.#core.violate('sales', `two agents recorded different sales ${second.sale}, and no exception reports it`)
    }
  }

  /** Compares the statuses of tags whose reports one agent acknowledged in their order, or that staff changed last. */
  #checkStatuses(db: Connection): void {
    const statusOf = db.prepare<[string], { status: string }>(
      'SELECT item_status AS status FROM protected_item WHERE epc = ?',
    )
    for (const epc of new Set(this.#book.reports.flatMap(({ epcs }) => epcs))) {
      const expected = this.#statusAtEnd(epc)
      const status = statusOf.get(epc)?.status
      // A void of goods that were released puts them on hold.
      const isRight = expected === status || (expected === 'cancelled' && status === 'exception_hold')
      if (expected !== undefined && !isRight)
        this.#core.violate(
          'sales',
          `the last report about ${epc} makes it ${expected}, but it is ${status} in the cloud`,
        )
    }
  }

  #statusAtEnd(epc: string): string | undefined {
    const reports = this.#book.certain(epc)
    if (!reports || reports.length === 0 || reports.some(({ isConflict }) => isConflict)) return undefined
    const staff = this.#book.byStaff.get(epc)
    if (staff === undefined && isRacing(reports)) return undefined
    if (staff !== undefined) return this.#parts.isClockSure ? staff : undefined
    const all = this.#effective(reports, epc)
    const last = all?.at(-1)
    if (!all || !last) return undefined
    const agents = [...last.acks.keys()].filter((place) => place !== CLOUD)
    const isAll = (place: string) =>
      reports.every(({ acks }) => acks.has(place) && !acks.get(place)?.warned.has(epc)) && isInOrder(reports, place)
    if (!agents.some(isAll) || reports.some((report) => report.kind === 'sale' && this.#isOverLimit(report)))
      return undefined
    if (last.kind !== 'sale') return last.status
    const early = all.filter(({ kind, sale }) => kind !== 'sale' && sale === last.sale)
    return early.some(({ kind }) => kind === 'void') ? 'cancelled' : (early.at(-1)?.status ?? 'paid')
  }
}

/**
 * True if a report of several was stored at more than one place. The cloud gets them in an order that it cannot restore
 * exactly: by times of clocks, which differ by up to a minute (ADR trusted-time).
 */
function isRacing(reports: readonly TrackedReport[]): boolean {
  return reports.length > 1 && reports.some(({ acks }) => acks.size > 1 || acks.has(CLOUD))
}

function isInOrder(reports: readonly TrackedReport[], place: string): boolean {
  const times = reports.map(({ acks }) => acks.get(place)?.atMs ?? 0)
  return times.every((atMs, n) => n === 0 || atMs >= (times[n - 1] ?? 0))
}
