import { pause, type Platform } from '../../policy/platform.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { Shopper } from '../../simulators/services/shopper.ts'
import type { DemoDevices } from './demo-devices.ts'
import { newUnpaidItem } from './demo-store.ts'
import type { RunningEdge } from './edge.ts'
import { hashSecret, newSecret } from '../../edge-agent/identity/identity.ts'
import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { SimulatedTill } from '../../simulators/services/till.ts'
import { tillAtAgent } from './simulate-till.ts'

interface DemoWalksParts {
  platform: Platform
  api: Shopper
  storeId: string
  edge: RunningEdge
  devices: DemoDevices
  say(line: string): void
}

/** Walks of shoppers with tagged goods past the antennas of the gate. */
export interface DemoWalks {
  /** A shopper carries an unpaid item out. If `isCut`, this is the item that `prepare` registered. */
  unpaid(isCut: boolean): Promise<void>
  /** A shopper pays for an item and carries it out. `hasPassed` is true if the gate stayed silent. */
  paid(): Promise<{ hasPassed: boolean; transactionId: string }>
  /** A shopper pays for an item at the till and carries it out. If `isCut`, this is another item of `prepare`. */
  paidAtTill(isCut: boolean, till: DemoTill): Promise<boolean>
  /** Waits until the purchase is UNLOADED. Resolves with false after 60 s. */
  untilUnloaded(transactionId: string): Promise<boolean>
  /** Lets people carry unpaid items out, and waits until the cloud has the alarms: they wait for a cause at the gate, too. */
  leaveAlarms(count: number): Promise<void>
  /** Registers an item before the network is cut, so that the gate's replica contains it. */
  prepare(): Promise<void>
}

type Goods = Awaited<ReturnType<typeof newUnpaidItem>>

const LOOK_MS = 20
const WITHIN_MS = 10_000
const ASK_EVERY_MS = 2_000
/** Maximum wait, ms. The agent reports a tag as gone after about 30 s. */
const UNLOADED_WITHIN_MS = 60_000

/** Creates the walks of one demonstration. */
export function demoWalks({ platform, api, storeId, edge, devices, say }: DemoWalksParts): DemoWalks {
  const { timers } = platform
  const { agent } = edge
  const { gate } = devices.lanes
  let ready: Goods | undefined
  /** Goods for the till while the network is cut. */
  let forTill: Goods[] = []

  /** Waits until the agent's replica has the item with this status, because the gate decides by the replica. */
  const untilKnown = (epc: string, status: ItemStatus) => until(() => agent.items.find('epc', epc)?.status === status)

  async function until(condition: () => boolean): Promise<boolean> {
    for (let ms = 0; ms < WITHIN_MS && !condition(); ms += LOOK_MS) await pause(timers, LOOK_MS)
    return condition()
  }

  /** First waits for the gate and its reader, which may still connect. Other devices may fail meanwhile. */
  async function walkOut(epc: string): Promise<void> {
    const ofGate = () => agent.status().devices.filter((each) => [each.deviceId, each.feeds].includes(gate.deviceId))
    await until(() => ofGate().every(({ state }) => state === 'ready'))
    await devices.walkOut(epc)
  }

  async function newGoods(): Promise<Goods> {
    const goods = await newUnpaidItem(api, storeId)
    await until(() => agent.link.isOnline)
    await untilKnown(goods.epc, 'sellable')
    return goods
  }

  const passed = () => agent.gates.counts().get(gate.deviceId)?.passed ?? 0

  return {
    async unpaid(isCut) {
      const goods = isCut && ready ? ready : await newGoods()
      say(`A person carries an unpaid "${goods.name}" out, past the antennas of the gate.`)
      await walkOut(goods.epc)
    },
    async paid() {
      const { epc, ean, name } = await newGoods()
      const { transactionId } = await api.buy({ storeId, items: [{ ean, quantity: 1, epcs: [epc] }] })
      await untilKnown(epc, 'paid')
      say(`A shopper pays for "${name}" with the phone and carries it out, past the antennas of the gate.`)
      const before = passed()
      await walkOut(epc)
      return { hasPassed: await until(() => passed() > before), transactionId }
    },
    async paidAtTill(isCut, till) {
      const goods = isCut ? forTill.pop() : await newGoods()
      if (!goods) {
        say('The agent knows no more goods of this visit: press o to restore the network first.')
        return true
      }
      say(`A shopper pays for "${goods.name}" at the till and carries it out, past the antennas of the gate.`)
      for (const line of await till.sell(goods)) say(`  ${line}`)
      const before = passed()
      await walkOut(goods.epc)
      return until(() => passed() > before)
    },
    async untilUnloaded(transactionId) {
      for (let ms = 0; ms < UNLOADED_WITHIN_MS; ms += ASK_EVERY_MS) {
        await pause(timers, ASK_EVERY_MS)
        if ((await api.call('fetchPurchase', { transactionId }))['status'] === 'UNLOADED') return true
      }
      return false
    },
    async leaveAlarms(count) {
      for (let n = 0; n < count; n++) {
        const { epc } = await newGoods()
        await walkOut(epc)
      }
      await until(() => agent.gates.alarms.request().size >= count && agent.status().queueDepth === 0)
    },
    async prepare() {
      ready = await newGoods()
      forTill = [await newGoods(), await newGoods(), await newGoods()]
    },
  }
}

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
