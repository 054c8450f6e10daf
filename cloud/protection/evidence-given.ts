import type { Evidence } from '../../policy/journal.ts'
import { endLease, type Witness } from './evidence.ts'
import type { EvidenceScope } from './evidence-scope.ts'
import { raiseException } from './exceptions.ts'
import { noteGiven, noteGivenBack } from './given-rights.ts'
import type { UnitKey } from './rights.ts'

/** What homes of receipts tell of the rights that they give to other agents. */
export type Given = Extract<Evidence, { kind: 'given' }>
export type GivenBack = Extract<Evidence, { kind: 'given_back' }>

/** After a receipt's end by somebody else's clock. */
const GUARD_SECONDS = 60

/** A home has given rights to another agent. Answers false when the receipt is unknown: kept, and tried again after an upgrade. */
export async function applyGiven(
  scope: EvidenceScope,
  { storeId }: Witness,
  { redemptionId, nonce, rightClass, ordinals, agentId }: Given,
): Promise<boolean> {
  const purchase = await scope.facts.purchaseOfReceipt(nonce)
  if (purchase?.tenant !== scope.tenant) return false
  if (purchase.store_id !== storeId) {
    await raiseException(scope, {
      storeId,
      kind: 'foreign_evidence',
      subject: redemptionId,
      detail: 'rights of a receipt of another store were given away',
    })
    return true
  }
  const untilS = (purchase.receipt_exp ?? Math.floor(scope.nowMs / 1_000)) + GUARD_SECONDS
  const named = new Set(ordinals)
  for (const unit of await scope.facts.unitsOf(purchase.purchase_id)) {
    if (unit.receipt_index === null || !named.has(unit.receipt_index)) continue
    const key: UnitKey = { lineId: unit.line_id, unitNo: unit.unit_no, rightClass, purchaseId: purchase.purchase_id }
    await noteGiven(scope.db, { ...key, redemptionId, storeId, agentId, untilS })
    await endLease(scope, key, nonce, agentId)
    scope.due.subjects.push(key)
  }
  return true
}

/** What the other agent told the home: nothing came of it, or nobody knows. */
export async function applyGivenBack(
  scope: EvidenceScope,
  { storeId }: Witness,
  { redemptionId, outcome }: GivenBack,
): Promise<boolean> {
  scope.due.subjects.push(...(await noteGivenBack(scope.db, { redemptionId, storeId, state: outcome })))
  return true
}
