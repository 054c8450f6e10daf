import { logJobFailure } from '../foundation/log.ts'
import type { Services } from './operation.ts'

/** Read at once, and how often in one run: a job of the clock never keeps a stopping process waiting for long. */
const READ_LIMIT = 100
const ROUNDS = 10

/** Work of the clock that is done piece by piece, each in a transaction of its own. */
export interface DueItems<T> {
  /** Its name in the log. */
  job: string
  /** What is due now, the oldest first, at most `limit`; what was done is no longer among it. `failed`: as many of the oldest have failed in this run, and are not wanted again. */
  read(limit: number, failed: number): Promise<readonly T[]>
  /** Does one piece; must do no harm when another process has done it meanwhile. */
  process(piece: T): Promise<void>
}

/** Carries out what is due. A piece that fails is logged, stays due, and keeps no other from its turn. */
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
