import type { Platform } from '../../policy/platform.ts'
import type { Readiness } from '../foundation/readiness.ts'
import type { Db } from '../persistence/database.ts'
import type { PresentValues } from './metrics.ts'
import { readSharedValues } from './shared-values.ts'

/** Reads the values of this process. Without the database, `shared` is undefined. */
export async function readPresentValues(
  db: Db,
  { clock }: Pick<Platform, 'clock'>,
  readiness: Pick<Readiness, 'check' | 'certificate'>,
): Promise<PresentValues> {
  const unready = (await readiness.check()).map(({ check }) => check)
  const beganMs = clock.elapsed()
  const shared = unready.includes('database')
    ? undefined
    : await readSharedValues(db, clock.wall()).catch(() => undefined)
  return {
    unready,
    shared,
    databaseSeconds: shared && (clock.elapsed() - beganMs) / 1_000,
    certificate: readiness.certificate(),
  }
}
