import { hashSecret, newSecret } from '../../edge-agent/identity/identity.ts'
import type { TestStore } from './store.ts'

/** Lets the agent of a store record sales of tills, and pairs a till. Returns the headers of the till's requests. */
export async function pairTill(store: TestStore): Promise<Record<string, string>> {
  const { agent, identity, shop, world } = store
  const credential = newSecret('pair', world.random)
  agent.ledger.pairings.addProgram(hashSecret(credential), 'till', world.clock.wall(), ['sales', 'returns'])
  const { storeId } = shop
  const { policy } = await store.drive(shop.ok('fetchProtectionPolicy', { storeId }))
  const tillSales = { agents: [identity.agentId] }
  await store.drive(shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } }))
  await store.until('the policy', () => store.agent.trust.policy?.policy.tillSales.agents.length === 1)
  return { authorization: `Bearer ${credential}` }
}
