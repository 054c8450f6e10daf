import type { EndParts } from '../end-checks.ts'
import { actuators } from '../nodes/actuators.ts'
import { agentNode, type AgentNode } from '../nodes/agent-node.ts'
import { cloudNode, type CloudNode } from '../nodes/cloud-node.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import { merchant, type Merchant } from '../nodes/merchant.ts'
import { receiver, type Receiver } from '../nodes/receiver.ts'
import { answerOracle } from '../oracles/answer-oracle.ts'
import { cloudOracle, type CloudOracle } from '../oracles/cloud-oracle.ts'
import { ledgerOracle, type LedgerOracle } from '../oracles/ledger-oracle.ts'
import { rulesOracle, type RulesOracle } from '../oracles/rules-oracle.ts'
import type { Core } from '../virtual/core.ts'
import { newLan, type Lan } from '../virtual/lan.ts'
import { newWire } from '../virtual/wire.ts'
import { AGENTS, READER } from './day-shop.ts'
import { gateReader, type GateReader } from '../nodes/gate-reader.ts'
import { dayTills, type DayTills } from './day-tills.ts'
import { newGoods, shelves, type Good } from './goods.ts'
import { shoppers, type Shoppers } from './shoppers.ts'
import { newTally } from './tally.ts'
import type { Shopper } from './timetable.ts'

/** Number of goods beyond the demand of the shoppers, so that the shelves never become empty. */
const SPARE_GOODS = 50

/** `reported`: most sales are sales of tills, which report them. `silent`: those tills report nothing. */
export type DayOptionsOfTills = 'reported' | 'silent' | undefined

/** Cloud, three agents, goods and oracles of a store day. Nothing runs yet. */
export class DayStore {
  readonly core: Core
  readonly shop: Shop
  readonly cloud: CloudNode
  readonly agents: readonly AgentNode[]
  readonly station: AgentNode
  readonly detacher: AgentNode
  readonly ledgers = new Map<string, LedgerOracle>()
  /** API client of the shop. */
  readonly system: Merchant
  readonly stock: readonly Good[]
  readonly rules: RulesOracle
  readonly tally = newTally()
  readonly crowd: Shoppers
  /** Undefined on a day without tills. */
  readonly tills: DayTills | undefined
  readonly end: EndParts
  readonly #cloudWatch: CloudOracle
  readonly #receiver: Receiver
  readonly #reader: GateReader
  readonly #lan: Lan
  #powerCuts = 0

  constructor(core: Core, shop: Shop, people: readonly Shopper[], tills: DayOptionsOfTills) {
    this.core = core
    this.shop = shop
    const { ledgers, tally } = this
    this.#cloudWatch = cloudOracle(core)
    this.#receiver = receiver(core, () => this.#powerCuts)
    this.cloud = this.#newCloud()
    const devices = actuators({ ...core, onRelease: (name, deviceId) => ledgers.get(name)?.released(deviceId) })
    this.#reader = gateReader(devices, AGENTS.gate, READER, core.scheduler)
    this.#lan = newLan(core)
    this.agents = shop.agents.map((agent, n) => this.#newAgent(`agent-${n + 1}`, agent, shop.templates.agents[n] ?? ''))
    const [station, detacher, gate] = this.agents
    if (!station || !detacher || !gate) throw new Error('the shop of the day has three agents')
    this.station = station
    this.detacher = detacher
    const shopWire = newWire('shop', core)
    this.system = merchant({ core, server: this.cloud, wire: shopWire, name: 'merchant', apiKey: shop.key })
    this.tills =
      tills === undefined
        ? undefined
        : dayTills({
            core,
            lan: this.#lan,
            merchant: this.system,
            station,
            storeId: shop.storeId,
            isReporting: tills === 'reported',
          })
    const units = people.reduce((sum, shopper) => sum + shopper.units, 0)
    this.stock = newGoods(shop.products, units + SPARE_GOODS)
    this.rules = rulesOracle({ core, reading: () => this.cloud.disk.reading, isCalm: true })
    this.crowd = shoppers({
      core,
      rules: this.rules,
      shop,
      merchant: this.system,
      agents: { station, detacher, gate },
      reader: this.#reader,
      ...(this.tills && { tills: this.tills }),
      isSilent: tills === 'silent',
      goods: shelves(this.stock, core.chance.fork('shelves')),
      tally,
    })
    this.end = this.#newEnd()
  }

  /** Cuts the power of the detacher's agent. */
  cutPower(): void {
    this.#powerCuts++
    this.detacher.crash({ powerCut: true })
  }

  /** Ends every process and closes the disks. */
  close(): void {
    for (const node of [this.cloud, ...this.agents]) {
      node.machine.process?.kill()
      node.disk.close()
    }
  }

  #newCloud(): CloudNode {
    return cloudNode({
      core: this.core,
      keyFiles: this.shop.keyFiles,
      outgoing: this.#receiver.outgoing,
      template: this.shop.templates.cloud,
      onCommit: this.#cloudWatch.committed,
      onAnswer: answerOracle(this.core).answered,
    })
  }

  #newAgent(name: string, { identity, config }: Shop['agents'][number], template: string): AgentNode {
    const { core, tally } = this
    const ledger = ledgerOracle(name, core, {
      ...this.#cloudWatch,
      lostWith: () => undefined,
      isClockSure: () => node.hasRecentCloudTime,
      onRow: ({ body }) => tally.row(body, core.scheduler.nowMs),
    })
    this.ledgers.set(name, ledger)
    const node = agentNode({
      core,
      name,
      identity,
      config: () => config,
      template,
      cloud: this.cloud,
      wire: newWire(name, core),
      actuators: this.#reader,
      lan: this.#lan,
      onCommit: ledger.committed,
      onStart: ledger.processEnded,
      onTillNotice: (how, body) =>
        how === 'sent' ? this.tills?.book.noticeSent(name, body) : this.tills?.book.noticeAcknowledged(name, body),
    })
    return node
  }

  #newEnd(): EndParts {
    const { core, cloud, agents, ledgers, crowd, shop } = this
    const people = { ...crowd, resold: new Set<string>() }
    return { core, cloud, agents, ledgers, people, receiver: this.#receiver, money: undefined, tills: this.tills, shop }
  }
}
