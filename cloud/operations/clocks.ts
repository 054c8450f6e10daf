/** How far the clocks of processes that share a database may lie apart, ms: what lies further ahead was written by a clock that was wrong. */
export const CLOCKS_DIFFER_MS = 60_000
