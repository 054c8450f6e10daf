import { hashSecret, newSecret } from '../../edge-agent/identity/identity.ts'
import type { Json } from './cloud.ts'
import type { LanAgent, LanStore } from './lan-store.ts'
import { until } from './receiver.ts'

/** Tills of the agents of a store whose cloud is cut. */
export interface LanTills {
  /** Both agents may record sales; then the cloud is cut. Returns the EPCs of so many new items. */
  openTills(count: number, agents?: string[], limits?: Json): Promise<string[]>
  /** Sends a report of a till to an agent. Returns the answer. */
  post(node: LanAgent, path: string, body: Json): Promise<Json>
  /** A new sale with a line for each tag. */
  sale(...epcs: string[]): Json
  statusAt(node: LanAgent, epc: string): string | undefined
  becomes(node: LanAgent, epc: string, status: string): Promise<void>
}

export function lanTills(s: LanStore): LanTills {
  let number = 0
  const statusAt = (node: LanAgent, epc: string) => node.agent.items.find('epc', epc)?.status
  return {
    async openTills(count, agents, limits = {}) {
      const { storeId } = s.shop
      const epcs: string[] = []
      for (let i = 0; i < count; i++) epcs.push((await s.shop.newItem(s.shop.products[0])).epc)
      const { policy } = await s.shop.ok('fetchProtectionPolicy', { storeId })
      const named = agents ?? s.nodes.map((node) => node.agent.identity.agentId)
      await s.shop.ok('updateProtectionPolicy', {
        storeId,
        policy: { ...policy, tillSales: { agents: named, ...limits } },
      })
      for (const node of s.nodes)
        await until('policy and items', async () => {
          await node.agent.link.poll()
          const isNamed = node.agent.trust.policy?.policy.tillSales.agents.length === named.length
          return isNamed && epcs.every((epc) => node.agent.items.find('epc', epc) !== undefined)
        })
      await s.cutCloud()
      return epcs
    },
    async post(node, path, body) {
      const credential = newSecret('pair', s.platform.random)
      const rights = ['sales', 'returns'] as const
      node.agent.ledger.pairings.addProgram(hashSecret(credential), 'till', s.platform.clock.wall(), [...rights])
      const answer = await fetch(`http://127.0.0.1:${node.port}/v1/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${credential}` },
        body: JSON.stringify(body),
      })
      return (await answer.json()) as Json
    },
    sale: (...epcs) => ({
      saleId: `n${++number}`,
      occurredAt: new Date(s.platform.clock.wall()).toISOString(),
      lines: epcs.map((epc) => ({ name: 'Jacke', quantity: 1, priceUnit: 4_990, vat: 19, epcs: [epc] })),
    }),
    statusAt,
    becomes: (node, epc, status) => until(`${status} there`, async () => statusAt(node, epc) === status),
  }
}
