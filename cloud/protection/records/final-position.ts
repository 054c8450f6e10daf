import { pause } from '../../../policy/platform.ts'
import type { Call } from '../../operations/operation.ts'
import { isHeldBack, readFrontier } from '../../persistence/positions.ts'

/** Waits between looks, ms. Transactions last a few milliseconds; a list waits for one that is stuck for at most their sum. */
const WAITS_MS = [2, 4, 8, 16, 32, 64, 128, 256]

/**
 * Entries of this store below this position are final. A caller expects to see what was acknowledged before: where a row of the store
 * is held back by an older transaction, waits a moment for that to end.
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
