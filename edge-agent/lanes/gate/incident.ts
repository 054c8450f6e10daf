/**
 *   first alarm ─▶ open ─ more alarms join ─▶ 10 s quiet ─▶ over
 *                    └─ every tag turns out to be paid, or covered ─▶ resolved
 *
 * Groups the alarms at one gate that belong to one person or a few who leave together.
 */
export interface Incidents {
  /** A tag alarms. */
  raise(tag: string, isBulk: boolean, atMs: number): void
  /** Removes and returns the tags of the last 10 s that `isRight` accepts. `isOver`: no alarmed tag is left. */
  resolve(isRight: (tag: string) => boolean, atMs: number): { tags: string[]; isOver: boolean }
  /** Tags that alarmed within the last 10 s and are still unresolved. */
  tags(atMs: number): string[]
  /** Ends an incident without new alarms. Returns it if it was a bulk alarm. */
  tidy(atMs: number): { count: number; seconds: number } | undefined
  /** Time of the next `tidy`, ms. */
  readonly endsMs: number | undefined
}

/** Time after an alarm in which a payment ends it, ms. */
export const RESOLVABLE_MS = 10_000
const TAGS_LIMIT = 1_000

interface Incident {
  startedMs: number
  lastMs: number
  isBulk: boolean
  /** Unresolved tags with the time of their alarm, ms. */
  open: Map<string, number>
  count: number
}

/** The incidents of one gate. At most one is open. */
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
