import { policyOf } from '../../platform/stores/parsed-policy.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { deny, GUARD_SECONDS } from '../../protection/rights/deny-list.ts'

/**
 * Tells the agents that goods of a till's sale came back: no tag passes any more for its pieces, because agents do not
 * know which piece came back (`tillSales.passByProduct`).
 */
export async function endPieces(call: Call, store: Row<'store'>, { cti, receipt_exp: exp }: Row<'purchase'>) {
  if (policyOf(store).tillSales.passByProduct === 0 || cti === null || exp === null) return
  await deny(call, store.store_id, [{ kind: 'pieces', cti, until: exp + GUARD_SECONDS }])
}
