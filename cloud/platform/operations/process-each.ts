import { logJobFailure } from '../foundation/log.ts'
import type { Services } from './operation.ts'

/** Lets pending events run. Long computations call it, so that other requests do not wait for them. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * Items per read, and reads per run. The limits keep a run short, because a process waits for running jobs before it
 * ends.
 */
const READ_LIMIT = 100
const ROUNDS = 10

/** Due items that a job processes one at a time, each in its own transaction. */
interface DueItems<T> {
  /** Name of the job in log lines. */
  job: string
  /**
   * Reads at most `limit` due items, oldest first. Must skip the `failed` oldest items, which failed in this run and
   * are still due.
   */
  read(limit: number, failed: number): Promise<readonly T[]>
  /** Processes one item. Must have no effect if another process has already processed the item. */
  process(piece: T): Promise<void>
}

/** Processes due items. A failed item is logged and stays due; processing continues with the next item. */
export async function processEach<T>(
  { log }: Pick<Services, 'log'>,
  { job, read, process }: DueItems<T>,
): Promise<void> {
  let failed = 0
  for (let round = 0; round < ROUNDS; round++) {
    const pieces = await read(READ_LIMIT, failed)
    for (const piece of pieces) {
      try {
        await process(piece)
      } catch (error) {
        failed++
        logJobFailure(log, error, job)
      }
    }
    if (pieces.length < READ_LIMIT) return
  }
}
