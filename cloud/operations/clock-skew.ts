/** How far the clocks of processes that share a database may lie apart, ms: what lies further ahead was written by a clock that was wrong. */
export const MAX_CLOCK_SKEW_MS = 60_000
