import { decodeUnverifiedClaims } from '../../../../policy/documents/signed-document.ts'

/** Where a report of a till can be acknowledged: an agent, by its name, or the cloud. */
export const CLOUD = 'cloud'

/** What a till reports: a sale, its void, or goods that came back. */
export interface Report {
  readonly kind: 'sale' | 'void' | 'return'
  /** Identity of the sale that it is, voids or returns: till, series and number. Undefined for a return by tags. */
  readonly sale: string | undefined
  /** Tags that it names, or those of its sale. */
  readonly epcs: readonly string[]
  /** Status that it gives these tags. */
  readonly status: 'paid' | 'cancelled' | 'returned' | 'sellable'
  /** Cents, for a sale. */
  readonly totalCent?: number
  /** True for a second sale with the names of another one. */
  readonly isConflict?: boolean
}

interface Acknowledgement {
  readonly atMs: number
  /** Tags that the till was warned of: they keep their status. */
  readonly warned: ReadonlySet<string>
}

/** A report with what the till knows of its delivery. */
export interface TrackedReport extends Report {
  readonly startedMs: number
  /** First post by place. A place without acknowledgement or refusal may still store it. */
  readonly posted: Map<string, number>
  readonly refused: Set<string>
  readonly acks: Map<string, Acknowledgement>
  /** Acknowledgements that a restore of a disk may have lost. */
  readonly unsure: Set<string>
}

const tillOf = ({ sale = '' }: Report) => sale.split(' ', 1).join('')

interface Notice {
  readonly from: string
  readonly status: string
  readonly sentMs: number
  readonly atMs: number
}

/** What tills posted, and which places acknowledged it. It knows nothing of the product but its answers. */
export class TillBook {
  readonly reports: TrackedReport[] = []
  /** Status that staff gave a tag after its sale, in the cloud. */
  readonly byStaff = new Map<string, string>()
  /** Tags of which the contract promises nothing any more, for example after a restore of a disk. */
  readonly #doubted = new Set<string>()
  /** Tags whose reports a restored disk may have lost, after other agents heard of them. */
  readonly lost = new Set<string>()
  /** Places whose disk was restored: it forgot notices that they had acknowledged. */
  readonly restoredPlaces = new Set<string>()
  readonly #ofTag = new Map<string, TrackedReport[]>()
  readonly #ofTill = new Map<string, TrackedReport[]>()
  readonly #sent = new Map<string, { from: string; atMs: number }>()
  readonly #notices = new Map<string, Notice[]>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  add(report: Report): TrackedReport {
    const startedMs = this.#nowMs()
    const none = { posted: new Map(), refused: new Set<string>(), acks: new Map(), unsure: new Set<string>() }
    const added: TrackedReport = { ...report, startedMs, ...none }
    this.reports.push(added)
    for (const epc of report.epcs) this.#ofTag.set(epc, [...(this.#ofTag.get(epc) ?? []), added])
    const till = tillOf(report)
    if (report.kind === 'sale' && report.isConflict !== true)
      if (this.#ofTill.get(till)?.push(added) === undefined) this.#ofTill.set(till, [added])
    return added
  }

  /** The sales of the till that made this report. */
  salesOfTill(report: Report): readonly TrackedReport[] {
    return this.#ofTill.get(tillOf(report)) ?? []
  }

  posted(report: TrackedReport, place: string): void {
    if (!report.posted.has(place)) report.posted.set(place, this.#nowMs())
  }

  /** The post reached no process. */
  undelivered(report: TrackedReport, place: string): void {
    report.posted.delete(place)
  }

  acknowledged(report: TrackedReport, place: string, warned: ReadonlySet<string>): void {
    // A repetition is answered like the first time.
    if (!report.acks.has(place) || report.unsure.has(place)) report.acks.set(place, { atMs: this.#nowMs(), warned })
    report.unsure.delete(place)
  }

  refused(report: TrackedReport, place: string): void {
    report.refused.add(place)
  }

  doubt(epcs: readonly string[]): void {
    for (const epc of epcs) this.#doubted.add(epc)
  }

  /** Staff changed the status of a tag in the cloud: gates are not judged any more, the end is. */
  staffSet(epc: string, status: string): void {
    this.byStaff.set(epc, status)
  }

  /** A disk was restored: what this place acknowledged may be lost. */
  restored(place: string): void {
    this.restoredPlaces.add(place)
    for (const report of this.reports) {
      if (!report.acks.has(place)) continue
      report.unsure.add(place)
      this.doubt(report.epcs)
      for (const epc of report.epcs) this.lost.add(epc)
    }
    for (const key of this.#notices.keys()) if (key.startsWith(`${place} `)) this.#notices.delete(key)
    if (place === CLOUD) this.doubt([...this.byStaff.keys()])
  }

  noticeSent(from: string, body: string): void {
    this.#sent.set(body, { from, atMs: this.#nowMs() })
  }

  noticeAcknowledged(by: string, body: string): void {
    const sent = this.#sent.get(body)
    if (!sent) return
    const { notice } = JSON.parse(body) as { notice: string }
    const { tags } = decodeUnverifiedClaims(notice) as { tags: { name: string; status: string }[] }
    for (const { name, status } of tags) {
      const key = `${by} ${name}`
      const known = { from: sent.from, status, sentMs: sent.atMs, atMs: this.#nowMs() }
      this.#notices.set(key, [...(this.#notices.get(key) ?? []), known])
    }
  }

  /** The reports of a tag that a place may have stored, the oldest first. Undefined if their effect is not certain. */
  certain(epc: string): TrackedReport[] | undefined {
    if (this.#doubted.has(epc)) return undefined
    const all = (this.#ofTag.get(epc) ?? []).filter(
      ({ posted, refused }) => posted.size > 0 && [...posted.keys()].some((place) => !refused.has(place)),
    )
    const isCertain = ({ posted, refused, acks }: TrackedReport) =>
      acks.size > 0 && [...posted.keys()].every((place) => acks.has(place) || refused.has(place))
    return all.every(isCertain) ? all : undefined
  }

  /** True if a place has acknowledged a void of this sale, and no restore of its disk may have lost it. */
  isVoidAt(place: string, { sale }: Report): boolean {
    return this.reports.some(
      (report) => report.kind === 'void' && report.sale === sale && report.acks.has(place) && !report.unsure.has(place),
    )
  }

  /** Number of changes of what is known of a tag. */
  versionOf(epc: string): string {
    const all = this.#ofTag.get(epc) ?? []
    return JSON.stringify([
      this.#doubted.has(epc),
      this.byStaff.get(epc),
      all.map(({ posted, refused, acks }) => [[...posted.keys()], refused.size, acks.size]),
    ])
  }

  /** True if a place acknowledged the report, or a notice of its effect on the tag, before `byMs`. */
  knows(place: string, report: TrackedReport, epc: string, byMs: number): boolean {
    const own = report.acks.get(place)
    return (own !== undefined && own.atMs <= byMs) || this.sourceOf(place, report, epc, byMs) !== undefined
  }

  /** The place from which a notice of the report's effect on the tag came. */
  sourceOf(place: string, report: TrackedReport, epc: string, byMs: number): string | undefined {
    const notices = this.#notices.get(`${place} E${epc}`) ?? []
    for (const [from] of report.acks) {
      const postedMs = report.posted.get(from) ?? Number.POSITIVE_INFINITY
      const isOf = (n: Notice) =>
        n.from === from && n.sentMs >= postedMs && n.status === report.status && n.atMs <= byMs
      if (notices.some(isOf)) return from
    }
    return undefined
  }
}
