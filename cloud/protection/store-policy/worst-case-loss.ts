import { z } from 'zod'
import { worstCaseLoss } from '../../../policy/decide-units.ts'
import type { ProtectionPolicy } from '../../../policy/store-policy.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { deviceFacts } from '../store-facts/device-queries.ts'

/** Field of answers with the maximum loss under a policy. */
export const WorstCaseLoss = z
  .number()
  .nullable()
  .describe(
    'Maximum loss in EUR while every agent is isolated, without what staff approve (`operatorOverridesPerHour` limits that). 0 if isolated agents release nothing without staff; null if there is no limit.',
  )

/** Maximum loss of a store with its present devices under a policy, EUR; null if there is no limit. */
export async function lossUnder(db: Db, store: Row<'store'>, policy: ProtectionPolicy): Promise<number | null> {
  const rows = await db
    .selectFrom('device')
    .selectAll()
    .where('store_id', '=', store.store_id)
    .where('revoked_ms', 'is', null)
    .execute()
  return worstCaseLoss(
    policy,
    rows.map((row) => deviceFacts(row, store)),
  )
}
