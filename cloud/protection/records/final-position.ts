import { pause } from '../../../policy/platform.ts'
import type { Call } from '../../operations/operation.ts'
import { isHeldBack, readFrontier } from '../../persistence/positions.ts'

/**
 * Pauses between reads, ms. Transactions usually last milliseconds. The sum of the pauses limits the wait for a slow
 * transaction.
 */
const WAITS_MS = [2, 4, 8, 16, 32, 64, 128, 256]

/**
 * Position below which no transaction can add events of this store. Waits up to half a second for an older running
 * transaction, so that callers see all acknowledged events.
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
