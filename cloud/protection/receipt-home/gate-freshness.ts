import type { Db } from '../../platform/persistence/database.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'

/**
 * True if every exit gate of the store has received the paid status of the purchase's items, so that no gate alarms
 * (ADR 0021). Returns undefined if the purchase has no tagged unit, or if the store has no gate with an agent.
 */
export async function areGatesUpToDate(
  db: Db,
  purchase: Pick<PurchaseRow, 'purchase_id' | 'store_id'>,
): Promise<boolean | undefined> {
  const units = await db
    .selectFrom('purchase_unit')
    .leftJoin('protected_item', 'protected_item.item_id', 'purchase_unit.item_id')
    .select(['bound', 'item_seq'])
    .where('purchase_unit.purchase_id', '=', purchase.purchase_id)
    .execute()
  const agents = await db
    .selectFrom('device')
    .innerJoin('agent', 'agent.agent_id', 'device.agent_id')
    .select('agent.item_seq')
    .where('device.store_id', '=', purchase.store_id)
    .where('device.device_type', '=', 'exit_gate')
    .where('device.revoked_ms', 'is', null)
    .where('agent.revoked_ms', 'is', null)
    .execute()
  if (units.length === 0 || agents.length === 0) return undefined
  // A gate cannot know the tag of a unit that was bought by barcode.
  if (units.some((unit) => unit.bound === 0 || unit.item_seq === null)) return false
  const needed = units.reduce((most, unit) => Math.max(most, unit.item_seq ?? 0), 0)
  return agents.every((agent) => agent.item_seq >= needed)
}
