import type { ReceiptPurchase } from './evidence-facts.ts'
import type { EvidenceScope } from './evidence-scope.ts'
import type { UnitKey } from '../rights/rights.ts'

/** Tolerance for the clock of another machine, s. */
const GUARD_SECONDS = 60

/**
 * Puts used receipt rights on the deny list of the store. `isKnown` is true if the reporter knows which rights it used.
 * If so, and if the reporter is the only agent of the store, adds no entry.
 */
export async function publishUsedRights(
  { facts, due }: EvidenceScope,
  source: { agentId: string | null; storeId: string },
  purchase: ReceiptPurchase | undefined,
  used: readonly UnitKey[],
  isKnown: boolean,
): Promise<void> {
  const [first] = used
  if (!first || !purchase?.cti || !purchase.receipt_exp) return
  if ((await facts.agentsOf(source.storeId)).every((agentId) => isKnown && agentId === source.agentId)) return
  const ordinals: number[] = []
  for (const key of used) {
    const ordinal = (await facts.unitOf(purchase.purchase_id, key))?.receipt_index ?? null
    if (ordinal !== null) ordinals.push(ordinal)
  }
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
