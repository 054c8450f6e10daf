import { pause } from '../../../policy/platform.ts'
import type { Call } from '../../operations/operation.ts'
import { isHeldBack, readFrontier } from '../../persistence/positions.ts'

/**
 * Pauses between reads, ms. Transactions usually last milliseconds; the sum of the pauses limits the wait for a slow
 * one.
 */
const WAITS_MS = [2, 4, 8, 16, 32, 64, 128, 256]

/**
 * Position below which this store's entries are final. Callers expect to see acknowledged events, so this waits up to
 * half a second for an older transaction that holds back rows of the store.
 */
export async function waitForFinalPosition(
  { db, services }: Pick<Call, 'db' | 'services'>,
  storeId: string,
): Promise<number> {
  const { end, ...first } = await readFrontier(db)
  let { finalBelow } = first
  for (const ms of WAITS_MS) {
    if (!(await isHeldBack(db, storeId, { finalBelow, end }))) break
    await pause(services.platform.timers, ms)
    finalBelow = (await readFrontier(db)).finalBelow
  }
  return finalBelow
}
