import type { Clock } from '../../policy/platform.ts'

/** How a reader queries tags. */
export interface Query {
  /** Gen2 session, 0 to 3. */
  readonly session: number
  /** `A`: the reader queries only tags whose flag is A. `both`: it then also queries those whose flag is B. */
  readonly target: 'A' | 'both'
}

/** The inventoried flags of the tags in a field. */
export interface TagFlags {
  /** True if the tag answers the query. Call it for each tag that the reader's field powers. */
  answers(epc: string, query: Query): boolean
}

/**
 * Time after which an inventoried flag returns from B to A, ms, by session: session 0 without power, session 1 at most
 * (500 to 5,000), sessions 2 and 3 without power, typical (over 2,000). Source: EPC Gen2, persistence of flags.
 */
export const PERSISTENCE_MS: readonly number[] = [0, 5_000, 30_000, 30_000]

/**
 * Models inventoried flags. The carrier pauses between two rounds, so a flag of session 0 is A in each round. A flag of
 * session 1 returns to A after its time, also in the field. Flags of sessions 2 and 3 stay B while the tag has power.
 */
export function tagFlags(clock: Clock, persistenceMs: readonly number[] = PERSISTENCE_MS): TagFlags {
  const flippedAt = new Map<string, number>()

  return {
    answers(epc, { session, target }) {
      const now = clock.elapsed()
      if (target === 'both') return true
      const key = `${session} ${epc}`
      const flipped = flippedAt.get(key)
      const isB = flipped !== undefined && now - flipped < (persistenceMs[session] ?? 0)
      if (!isB || session >= 2) flippedAt.set(key, now)
      return !isB
    },
  }
}
