/**
 * Groups the alarms of people who leave a gate together. An incident starts with an alarm. The incident ends when each
 * of its tags is resolved (paid, or covered by a receipt or release), or 10 s after its last alarm.
 */
export interface Incidents {
  /** Adds an alarm. */
  raise(tag: string, isBulk: boolean, atMs: number): void
  /**
   * Removes and returns the tags of the last 10 s that `isResolved` accepts. `isOver`: all tags of the incident are
   * resolved.
   */
  resolve(isResolved: (tag: string) => boolean, atMs: number): { tags: string[]; isOver: boolean }
  /** Tags that caused an alarm within the last 10 s and are still unresolved. */
  tags(atMs: number): string[]
  /**
   * Ends the incident 10 s after its last alarm. If the ended incident was a bulk alarm, returns its number of tags and
   * its duration.
   */
  tidy(atMs: number): { count: number; seconds: number } | undefined
  /** Earliest time at which `tidy` ends the incident, ms. */
  readonly endsMs: number | undefined
}

/** Time after an alarm in which a payment, receipt or release ends the alarm, ms. */
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
    resolve(isResolved, atMs) {
      if (!current) return { tags: [], isOver: false }
      const tags = [...current.open].flatMap(([tag, at]) =>
        atMs - at <= RESOLVABLE_MS && isResolved(tag) ? [tag] : [],
      )
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
