import { keyId, keyRing } from '../../../policy/documents/keys.ts'
import { claimedReceipts, openReceipt, type OpenedReceipt } from '../../../policy/receipts/receipt-token.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'

/**
 * Verifies a receipt that an agent signed for a sale of a till (ADR till-sales). Its rights are those of the sale, as
 * the cloud has it. Undefined if the text is no such receipt, if the policy does not name the agent, or if the sale has
 * not arrived. A receipt of a revoked agent is `key_revoked`. Does not check the expiry.
 */
export async function openAgentReceipt(db: Db, text: string): Promise<OpenedReceipt | undefined> {
  const claimed = claimedReceipts(text)
  if (claimed.length === 0) return undefined
  const rows = await db
    .selectFrom('till_sale as s')
    .innerJoin('store', 'store.store_id', 's.store_id')
    .innerJoin('agent as a', 'a.store_id', 's.store_id')
    .leftJoin('agent_former_key as f', 'f.agent_id', 'a.agent_id')
    .select(['s.store_id', 'store.policy', 'a.agent_id', 'a.revoked_ms', 'a.x', 'a.next_x', 'f.x as former_x'])
    .where(
      's.sale_key',
      'in',
      claimed.map(({ cti }) => cti),
    )
    .execute()
  for (const { store_id: storeId, policy, agent_id: iss, revoked_ms: revokedMs, ...keys } of rows) {
    const kids = [keys.x, keys.next_x, keys.former_x].flatMap((x) => (x === null ? [] : [{ x, kid: keyId(x) }]))
    const key = kids.find(({ kid }) => claimed.some((each) => each.kid === kid))
    if (!key || !policyOf({ store_id: storeId, policy }).tillSales.agents.includes(iss)) continue
    const state = revokedMs === null ? 'active' : 'revoked'
    return openReceipt(text, {
      keys: new Map(),
      agents: keyRing([{ ...key, alg: 'EdDSA', use: 'agent', iss, state }]),
      storeId,
    })
  }
  return undefined
}
