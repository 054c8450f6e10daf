/** Deaths of workers are counted over this time, ms. */
const WINDOW_MS = 600_000
/** Maximum number of deaths in this time. */
const DEATHS_LIMIT = 20
const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 30_000

/** Decides when the primary process replaces a worker that ended by itself. */
export interface Restarts {
  /** Counts a death. Returns the delay before the replacement, ms; undefined if too many workers died. */
  afterDeath(nowMs: number): number | undefined
}

/** The first dead worker is replaced at once. Each further death within ten minutes doubles the delay. */
export function restarts(): Restarts {
  let deaths: number[] = []
  return {
    afterDeath(nowMs) {
      deaths = [...deaths.filter((atMs) => atMs > nowMs - WINDOW_MS), nowMs]
      if (deaths.length > DEATHS_LIMIT) return undefined
      return deaths.length === 1 ? 0 : Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (deaths.length - 2))
    },
  }
}
