import type { Clock } from '../../../policy/platform.ts'

/** Time after which a transaction takes no further row, ms: meanwhile other writers wait. */
const TRANSACTION_MS = 100

/**
 * Returns a function that is true once a transaction over rows of unequal work should end, and leave the rest to the
 * next one. Call it after each row, so that each transaction has one.
 */
export function endsSoon(clock: Pick<Clock, 'elapsed'>): () => boolean {
  const endMs = clock.elapsed() + TRANSACTION_MS
  return () => clock.elapsed() >= endMs
}
