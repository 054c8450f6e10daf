/**
 *   first alarm ─▶ open ─ more alarms join ─▶ 10 s quiet ─▶ over
 *                    └─ every tag turns out to be paid, or covered ─▶ resolved
 *
 * Alarms at one gate that belong together: a person, or a few who leave together.
 */
export interface Incidents {
  /** A tag alarms. */
  raise(tag: string, isBulk: boolean, atMs: number): void
  /** Looks at the tags that alarmed within the last 10 s; answers those that are all right now. */
  resolve(isRight: (tag: string) => boolean, atMs: number): { tags: string[]; isOver: boolean }
  /** Tags that alarmed within the last 10 s and were not all right. */
  tags(atMs: number): string[]
  /** Ends what has been quiet for long enough; answers a bulk alarm that is over. */
  tidy(atMs: number): { count: number; seconds: number } | undefined
  /** When `tidy` has something to do, ms. */
  readonly endsMs: number | undefined
}

/** Within so long after an alarm a payment ends it (contracts §4, "Gate freshness"), ms. */
export const RESOLVABLE_MS = 10_000
const TAGS_LIMIT = 1_000

interface Incident {
  startedMs: number
  lastMs: number
  isBulk: boolean
  /** Tags that alarmed and are not all right, with when. */
  open: Map<string, number>
  count: number
}

/** The incidents of one gate, one after the other. */
export function incidents(): Incidents {
  let current: Incident | undefined
  return {
    raise(tag, isBulk, atMs) {
      current ??= { startedMs: atMs, lastMs: atMs, isBulk: false, open: new Map(), count: 0 }
      current.lastMs = atMs
      current.isBulk ||= isBulk
      if (!current.open.has(tag)) current.count++
      if (current.open.size < TAGS_LIMIT) current.open.set(tag, atMs)
    },
    resolve(isRight, atMs) {
      if (!current) return { tags: [], isOver: false }
      const tags = [...current.open].flatMap(([tag, at]) => (atMs - at <= RESOLVABLE_MS && isRight(tag) ? [tag] : []))
      for (const tag of tags) current.open.delete(tag)
      const isOver = tags.length > 0 && current.open.size === 0
      if (isOver) current = undefined
      return { tags, isOver }
    },
    tags: (atMs) => [...(current?.open ?? [])].flatMap(([tag, at]) => (atMs - at <= RESOLVABLE_MS ? [tag] : [])),
    tidy(atMs) {
      if (!current || atMs - current.lastMs < RESOLVABLE_MS) return undefined
      const { isBulk, count, startedMs, lastMs } = current
      current = undefined
      return isBulk ? { count, seconds: (lastMs - startedMs) / 1_000 } : undefined
    },
    get endsMs() {
      return current && current.lastMs + RESOLVABLE_MS
    },
  }
}
