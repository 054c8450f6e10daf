/** Maximum difference between the clocks of processes that share a database, ms. A time further ahead came from a wrong clock. */
export const MAX_CLOCK_SKEW_MS = 60_000
