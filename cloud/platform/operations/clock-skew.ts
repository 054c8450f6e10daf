/**
 * Maximum difference between the clocks of processes that share a database, ms. A stored time further in the future
 * came from a wrong clock.
 */
export const MAX_CLOCK_SKEW_MS = 60_000
