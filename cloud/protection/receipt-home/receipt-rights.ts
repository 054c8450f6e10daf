import type { RightClass } from '../../../policy/vocabulary.ts'
import type { Call } from '../../operations/operation.ts'
import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { unitsOfAuthorization } from '../leases/authorizations.ts'
import { denyRights, receiptOrdinals } from '../rights/deny-list.ts'
import { policyOf } from '../store-documents/parsed-policy.ts'

/** Keeping the receipts' home in step with what is leased and used online (contracts §4). */

const GUARD_SECONDS = 60

/** Without a limit: SQLite prepares a statement anew whenever a bound one might change its plan, which costs five times the few rows. */
const agentsOfStore = prepared((db, p: { storeId: string }) =>
  db.selectFrom('agent').select('agent_id').where('store_id', '=', p.storeId),
)

/** Whether an agent that was not revoked stands in the store. */
export async function hasAgents(db: Db, storeId: string): Promise<boolean> {
  return (await agentsOfStore(db, { storeId })).length > 0
}

/** Which rights of the receipt an authorization covers, for an agent that is the home: it marks them used as it claims. */
export async function receiptRights(db: Db, purchase: PurchaseRow, row: ProtectionAuthorizationRow) {
  if (purchase.cti === null) return {}
  const units = (await unitsOfAuthorization(db, row.nonce)).map((u) => ({ lineId: u.line_id, unitNo: u.unit_no }))
  return {
    receiptRights: {
      cti: purchase.cti,
      rightClass: row.right_class as RightClass,
      ordinals: await receiptOrdinals(db, purchase.purchase_id, units),
    },
  }
}

/**
 * While somebody else than the home holds a lease, the home honours no receipt for the same rights. An agent that asks for itself is
 * told by the answer which rights its token stands for; where a program asks, its agent learns it here, and so does the home.
 */
export async function publishLease(
  call: Call,
  store: StoreRow,
  purchase: PurchaseRow,
  row: ProtectionAuthorizationRow,
): Promise<void> {
  const { agent_id: agentId, nonce } = row
  const isToldByAnswer = call.caller.kind === 'agent' && call.caller.agentId === agentId
  if ((isToldByAnswer && agentId === policyOf(store).home) || !(await hasAgents(call.db, store.store_id))) return
  const units = (await unitsOfAuthorization(call.db, nonce)).map((u) => ({ lineId: u.line_id, unitNo: u.unit_no }))
  const heldBy = isToldByAnswer || agentId === null ? undefined : { nonce, agentId }
  await denyRights(call, purchase, row.right_class as RightClass, units, row.exp + GUARD_SECONDS, heldBy)
}
