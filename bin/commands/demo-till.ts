import { hashSecret, newSecret } from '../../edge-agent/identity/identity.ts'
import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Shopper } from '../../simulators/services/shopper.ts'
import type { SimulatedTill } from '../../simulators/services/till.ts'
import type { RunningEdge } from './edge.ts'
import { tillAtAgent } from './simulate-till.ts'

/** The till of the demonstration: a program that reports its sales to the agent, also without network. */
export interface DemoTill {
  /** Sells one tagged piece. Returns what the cashier reads. */
  sell(goods: { epc: string; name: string; price: number }): Promise<readonly string[]>
}

const TILL_ID = 'till-1'

/** Pairs the till with the agent, and lets the policy of the store name the agent. */
export async function openDemoTill({
  api,
  storeId,
  edge,
  platform,
}: {
  api: Shopper
  storeId: string
  edge: RunningEdge
  platform: Platform
}): Promise<DemoTill> {
  const { agent } = edge
  const { policy } = (await api.call('fetchProtectionPolicy', { storeId })) as { policy: ProtectionPolicy }
  const { agentId } = agent.identity
  if (!policy.tillSales.agents.includes(agentId)) {
    const tillSales = { ...policy.tillSales, agents: [...policy.tillSales.agents, agentId] }
    await api.call('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } })
  }
  let till: SimulatedTill | undefined
  // Pairs at the first sale, because the demonstration may start often on one ledger.
  const paired = async () => {
    if (till) return till
    const credential = newSecret('pair', platform.random)
    const nowMs = platform.clock.wall()
    for (const { id, name } of agent.ledger.pairings.list()) if (name === TILL_ID) agent.ledger.pairings.revoke(id)
    await agent.ledger.commits.durably(() =>
      agent.ledger.pairings.addProgram(hashSecret(credential), TILL_ID, nowMs, ['sales', 'returns']),
    )
    return (till = tillAtAgent({ agent: edge.url, credential, tillId: TILL_ID }, platform))
  }
  return {
    sell: async ({ epc, name, price }) => (await paired()).sell([{ name, priceCent: Math.round(price * 100), epc }]),
  }
}
