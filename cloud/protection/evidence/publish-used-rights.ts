import type { ReceiptPurchase } from './evidence-facts.ts'
import type { EvidenceScope } from './evidence-scope.ts'
import type { UnitKey } from '../rights/rights.ts'

/** After a receipt's end by somebody else's clock. */
const GUARD_SECONDS = 60

/** Agents of the store that do not know it themselves honour no receipt for these rights any more. `isKnown`: the witness knows which rights of the receipt it used. */
export async function publishUsedRights(
  { facts, due }: EvidenceScope,
  witness: { agentId: string | null; storeId: string },
  purchase: ReceiptPurchase | undefined,
  used: readonly UnitKey[],
  isKnown: boolean,
): Promise<void> {
  const [first] = used
  if (!first || !purchase?.cti || !purchase.receipt_exp) return
  if ((await facts.agentsOf(witness.storeId)).every((agentId) => isKnown && agentId === witness.agentId)) return
  const units = await facts.unitsOf(purchase.purchase_id)
  const ordinals = used.flatMap(
    ({ lineId, unitNo }) =>
      units.find((unit) => unit.line_id === lineId && unit.unit_no === unitNo)?.receipt_index ?? [],
  )
  if (ordinals.length === 0) return
  const denials = due.denials.get(purchase.store_id) ?? []
  due.denials.set(purchase.store_id, denials)
  denials.push({
    kind: 'right',
    cti: purchase.cti,
    rightClass: first.rightClass,
    ordinals,
    until: purchase.receipt_exp + GUARD_SECONDS,
  })
}
