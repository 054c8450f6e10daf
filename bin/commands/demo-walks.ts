import { pause, type Platform } from '../../policy/platform.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { Shopper } from '../../simulators/services/shopper.ts'
import type { DemoDevices } from './demo-devices.ts'
import { somethingUnpaid } from './demo-goods.ts'
import type { RunningEdge } from './edge.ts'

export interface DemoWalksParts {
  platform: Platform
  api: Shopper
  storeId: string
  edge: RunningEdge
  devices: DemoDevices
  say(line: string): void
}

/** People who carry tagged goods past the antennas of the gate. */
export interface DemoWalks {
  /** With something that is not paid; `isCut`: the gate can learn of nothing new. */
  unpaid(isCut: boolean): Promise<void>
  /** With something that is paid; answers whether the gate let it pass, and the purchase. */
  paid(): Promise<{ hasPassed: boolean; transactionId: string }>
  /** Resolves when the purchase is UNLOADED, or with false when that takes too long. */
  untilUnloaded(transactionId: string): Promise<boolean>
  /** Has something ready that the gate knows, for when the network is cut. */
  prepare(): Promise<void>
}

type Goods = Awaited<ReturnType<typeof somethingUnpaid>>

const LOOK_MS = 20
const WITHIN_MS = 10_000
const ASK_EVERY_MS = 2_000
/** Half a minute until a tag is gone, and some more. */
const UNLOADED_WITHIN_MS = 60_000

/** Nobody walks yet. */
export function demoWalks({ platform, api, storeId, edge, devices, say }: DemoWalksParts): DemoWalks {
  const { timers } = platform
  const { agent } = edge
  const { gate } = devices.lanes
  let ready: Goods | undefined

  /** The gate decides by its own copy of the store's items. */
  const untilKnown = (epc: string, status: ItemStatus) => until(() => agent.items.find('epc', epc)?.status === status)

  async function until(condition: () => boolean): Promise<boolean> {
    for (let ms = 0; ms < WITHIN_MS && !condition(); ms += LOOK_MS) await pause(timers, LOOK_MS)
    return condition()
  }

  /** Right after the start the reader may still be on its way. */
  async function walkOut(epc: string): Promise<void> {
    await until(() => agent.status().devices.every(({ state }) => state === 'ready'))
    await devices.walkOut(epc)
  }

  async function newGoods(): Promise<Goods> {
    const goods = await somethingUnpaid(api, storeId)
    await until(() => agent.link.isOnline)
    await untilKnown(goods.epc, 'sellable')
    return goods
  }

  const passed = () => agent.gates.counts().get(gate.deviceId)?.passed ?? 0

  return {
    async unpaid(isCut) {
      const goods = isCut && ready ? ready : await newGoods()
      say(`somebody carries an unpaid "${goods.name}" out, past the antennas of the gate`)
      await walkOut(goods.epc)
    },
    async paid() {
      const { epc, ean, name } = await newGoods()
      const { transactionId } = await api.buy({ storeId, items: [{ ean, quantity: 1, epcs: [epc] }] })
      await untilKnown(epc, 'paid')
      say(`a shopper pays "${name}" with the phone and carries it out, past the antennas of the gate`)
      const before = passed()
      await walkOut(epc)
      return { hasPassed: await until(() => passed() > before), transactionId }
    },
    async untilUnloaded(transactionId) {
      for (let ms = 0; ms < UNLOADED_WITHIN_MS; ms += ASK_EVERY_MS) {
        await pause(timers, ASK_EVERY_MS)
        if ((await api.call('fetchPurchase', { transactionId }))['status'] === 'UNLOADED') return true
      }
      return false
    },
    async prepare() {
      ready = await newGoods()
    },
  }
}
