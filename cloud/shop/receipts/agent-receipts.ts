import { keyId, keyRing, type KeyRecord } from '../../../policy/documents/keys.ts'
import {
  claimedReceipts,
  openReceipt,
  RECEIPT_LIFE,
  type OpenedReceipt,
} from '../../../policy/receipts/receipt-token.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'

/** Former keys that are compared. An agent rotates its key every 30 days. */
const FORMER_KEYS_LIMIT = 10

/**
 * Verifies a receipt that an agent signed for a sale of a till (ADR till-sales). Its rights are those of the sale, as
 * the cloud has it. Undefined if the text is no such receipt, if the policy does not name the agent, or if the sale has
 * not arrived. A receipt of a revoked agent is `key_revoked`. Does not check the expiry.
 */
export async function openAgentReceipt(db: Db, text: string, nowMs: number): Promise<OpenedReceipt | undefined> {
  const claimed = claimedReceipts(text)
  if (claimed.length === 0) return undefined
  const ctis = claimed.map(({ cti }) => cti)
  const store = await db
    .selectFrom('till_sale')
    .innerJoin('store', 'store.store_id', 'till_sale.store_id')
    .select(['store.store_id', 'store.policy'])
    .where('sale_key', 'in', ctis)
    .executeTakeFirst()
  const agents = store ? policyOf(store).tillSales.agents : []
  if (!store || agents.length === 0) return undefined
  const records = await keysOf(db, store.store_id, agents, nowMs)
  const own = records.filter(({ kid }) => claimed.some((each) => each.kid === kid))
  if (own.length === 0) return undefined
  return openReceipt(text, { keys: new Map(), agents: keyRing(own), storeId: store.store_id })
}

/** Keys of these agents of a store, also those that they used in the life of a receipt. */
async function keysOf(db: Db, storeId: string, agents: readonly string[], nowMs: number): Promise<KeyRecord[]> {
  const rows = await db
    .selectFrom('agent')
    .select(['agent_id', 'revoked_ms', 'x', 'next_x'])
    .where('agent_id', 'in', agents)
    .where('store_id', '=', storeId)
    .execute()
  const former = await db
    .selectFrom('agent_former_key')
    .select(['agent_id', 'x'])
    .where('agent_id', 'in', agents)
    .where('retired_ms', '>', nowMs - RECEIPT_LIFE * 1_000)
    .orderBy('retired_ms', 'desc')
    .limit(FORMER_KEYS_LIMIT)
    .execute()
  return rows.flatMap(({ agent_id: iss, revoked_ms: revokedMs, x, next_x: next }) => {
    const state = revokedMs === null ? 'active' : 'revoked'
    const keys = [
      x,
      ...(next === null ? [] : [next]),
      ...former.filter((key) => key.agent_id === iss).map((key) => key.x),
    ]
    return keys.map((key): KeyRecord => ({ kid: keyId(key), alg: 'EdDSA', x: key, use: 'agent', iss, state }))
  })
}
