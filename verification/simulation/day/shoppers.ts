import type { AuthorizeRequest } from '../../../edge-agent/decisions/request.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import { askingAgents } from '../people/ask-agent.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Shop } from '../nodes/genesis.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import type { RulesOracle } from '../oracles/rules-oracle.ts'
import type { GateReader } from './gate-reader.ts'
import { needsStaff, type Good, type Goods } from './goods.ts'
import type { Tally } from './tally.ts'
import type { Shopper } from './timetable.ts'

/**
 *   shelves ─ check in ─ check out ─ pay ─┬─ receipt at the station ─┬─ gate ─ (brings it back)
 *                │                        └─ tokens at the detacher ─┘    ▲
 *                └ thieves ───────────────────────────────────────────────┘
 *
 * The people of one day. They are honest about what they have paid, patient, and ask again when nobody answers.
 */
export interface Shoppers {
  /** The whole visit; resolves when they have left. */
  visit(shopper: Shopper): Promise<void>
  readonly paid: ReadonlySet<string>
  readonly cancelled: ReadonlySet<string>
  readonly told: ReadonlySet<string>
}

export interface ShopperParts {
  core: Core
  shop: Shop
  merchant: Merchant
  agents: { readonly station: AgentNode; readonly detacher: AgentNode; readonly gate: AgentNode }
  reader: GateReader
  goods: Goods
  rules: Pick<RulesOracle, 'answered'>
  tally: Tally
}

interface Bag {
  readonly goods: readonly Good[]
  readonly purchaseId: string
  readonly receipt: string
}

const SECOND_MS = 1_000
/** Somebody who is not served asks again, and after so many times it is a failure of the store. */
const PATIENCE = { tries: 40, pauseMs: 15 * SECOND_MS }
/** After so many times at the detacher people go to the station. */
const DETACHER_TRIES = 3
/** The alarm of a tag is written down within, ms (gate-journal.ts), after the gate may have asked. */
const ALARM_WITHIN_MS = 3 * SECOND_MS

/** The people of the day, none of whom has come yet. */
export function shoppers({ core, shop, merchant, agents, reader, goods, rules, tally }: ShopperParts): Shoppers {
  const { scheduler } = core
  const world = core.chance.fork('shoppers')
  const paid = new Set<string>()
  const cancelled = new Set<string>()
  const told = new Set<string>()
  const askAgent = askingAgents(core, (eventId) => void told.add(eventId), undefined, rules)
  const { storeId, devices } = shop

  const linger = (chance: Chance, fromS: number, toS: number) =>
    scheduler.pause(chance.between(fromS * SECOND_MS, toS * SECOND_MS))

  async function ask(node: AgentNode, request: AuthorizeRequest) {
    const before = process.cpuUsage()
    const answer = await askAgent(node, request)
    const { user, system } = process.cpuUsage(before)
    if (!answer) {
      tally.unanswered++
      return undefined
    }
    tally.decisions++
    tally.decisionMs.push((user + system) / 1_000)
    if (answer.authorized) tally.granted++
    if (answer.offline) tally.offline++
    return answer
  }

  /** A call of the shop's own system, which must work all day: telephones are not on the store's line. */
  async function call(operation: string, body: Json): Promise<Json> {
    const answer = await merchant.call(operation, body)
    if (answer?.ok) return answer.body
    throw new Error(`${operation}: ${answer ? `${answer.status} ${answer.reason}` : 'no answer'}`)
  }

  async function buy(shopper: Shopper, taken: readonly Good[], chance: Chance): Promise<Bag | undefined> {
    const { sessionId } = await call('checkIn', { storeId, userId: shopper.name })
    const eans = [...new Set(taken.map(({ ean }) => ean))]
    const items = eans.map((ean) => {
      const epcs = taken.filter((good) => good.ean === ean).map(({ epc }) => epc)
      return { ean, quantity: epcs.length, epcs }
    })
    const { transactionId } = await call('startCheckout', { sessionId, items })
    const purchaseId = String(transactionId)
    await linger(chance, 10, 60)
    if (shopper.kind === 'declined') {
      await call('completeTestCheckout', { transactionId, result: 'declined' })
      goods.putBack(taken)
      return undefined
    }
    await call('completeTestCheckout', { transactionId })
    paid.add(purchaseId)
    const { url } = await call('generateReceiptQR', { purchaseId })
    return { goods: taken, purchaseId, receipt: String(url) }
  }

  /** With the receipt, unit by unit; answers how many tags are still on. What was promised to a detacher that lost power ends in minutes. */
  async function atStation({ receipt }: Bag, units: number): Promise<number> {
    let left = units
    let staff = {}
    for (let n = 0; n < PATIENCE.tries && left > 0; n++) {
      const answer = await ask(agents.station, {
        deviceId: devices.station,
        action: 'deactivate_label',
        receipt,
        identifiers: {},
        ...staff,
      })
      if (answer?.outcome === 'confirmed') left--
      // Nobody knows whether a release worked that a power cut has ended: staff come and look at the tag.
      staff = answer?.reason === 'manual_assistance_required' ? { operatorId: shop.operatorId } : {}
      await scheduler.pause(answer?.authorized ? SECOND_MS : PATIENCE.pauseMs)
    }
    return left
  }

  /** Tag by tag, each with a token that the telephone got for it; answers how many are still on. */
  async function atDetacher({ goods: bag }: Bag): Promise<number> {
    // What the detacher may not release comes first: then all goes to the station, where nobody can tell which tags are off.
    const left = bag.toSorted((a, b) => Number(needsStaff(b)) - Number(needsStaff(a))).map(({ epc }) => epc)
    for (let failed = 0; failed < DETACHER_TRIES && left.length > 0;) {
      const verified = await merchant.call('verifyProtectedItem', {
        epc: left[0],
        deviceId: devices.detacher,
        protectionAction: 'detach_hard_tag',
      })
      const token = verified?.ok ? verified.body['authorizationToken'] : undefined
      const answer =
        typeof token === 'string'
          ? await ask(agents.detacher, {
              deviceId: devices.detacher,
              action: 'detach_hard_tag',
              token,
              identifiers: {},
            })
          : undefined
      if (answer?.outcome === 'confirmed') left.shift()
      else failed++
      await scheduler.pause(answer ? 2 * SECOND_MS : PATIENCE.pauseMs)
    }
    return left.length
  }

  /** Through the gate with all that is in the bag; answers which tags alarmed. */
  async function throughGate(epcs: readonly string[]): Promise<string[]> {
    const fromMs = scheduler.nowMs
    await reader.carry(epcs, 'out')
    await scheduler.pause(ALARM_WITHIN_MS)
    return epcs.filter((epc) => (tally.alarms.get(epc)?.atMs ?? 0) >= fromMs)
  }

  async function showAtGate({ receipt }: Bag): Promise<void> {
    await ask(agents.gate, { deviceId: devices.gate, action: 'authorize_exit', receipt, identifiers: {} })
  }

  async function leave(shopper: Shopper, bag: Bag): Promise<void> {
    const epcs = bag.goods.map(({ epc }) => epc)
    if (shopper.showsReceipt) await showAtGate(bag)
    const alarmed = await throughGate(epcs)
    tally.unitsSold += epcs.length
    if (alarmed.length === 0) return
    // The cloud has said that it is paid, or the agent that released it has.
    core.violate(
      'liveness',
      `${shopper.name} has paid, every tag was released, and the gate alarmed: ${tally.alarms.get(alarmed[0] ?? '')?.detail}`,
    )
  }

  async function steal(shopper: Shopper, taken: readonly Good[]): Promise<void> {
    const alarmed = await throughGate(taken.map(({ epc }) => epc))
    tally.unitsStolen += taken.length
    tally.alarmsOfThieves += alarmed.length
    if (alarmed.length < taken.length)
      core.violate(
        'liveness',
        `${shopper.name} carried ${taken.length} unpaid goods out, and ${alarmed.length} alarmed`,
      )
  }

  /** Back at the counter: staff take the goods and hang them up again. */
  async function bringBack(bag: Bag): Promise<void> {
    await reader.carry(
      bag.goods.map(({ epc }) => epc),
      'in',
    )
    for (const { epc } of bag.goods) {
      for (const itemStatus of ['returned', 'sellable']) await call('updateItemStatus', { storeId, epc, itemStatus })
    }
    tally.returned++
    goods.putBack(bag.goods)
  }

  async function changeMind({ purchaseId, goods: bag }: Bag): Promise<void> {
    await call('markPurchaseCancelled', { purchaseId })
    cancelled.add(purchaseId)
    tally.cancelled++
    for (const { epc } of bag) await call('updateItemStatus', { storeId, epc, itemStatus: 'sellable' })
    goods.putBack(bag)
  }

  return {
    paid,
    cancelled,
    told,
    async visit(shopper) {
      const chance = world.fork(shopper.name)
      tally.came++
      await linger(chance, 60, 900)
      const taken = goods.take(shopper.units)
      if (shopper.kind === 'thief') {
        tally.thieves++
        await steal(shopper, taken)
        return void tally.left++
      }
      const bag = await buy(shopper, taken, chance)
      if (!bag) return void tally.left++
      await linger(chance, 5, 60)
      if (shopper.kind === 'changes-mind') {
        await changeMind(bag)
        return void tally.left++
      }
      const left = shopper.releasedAt === 'detacher' ? await atDetacher(bag) : taken.length
      if ((await atStation(bag, left)) > 0) core.violate('liveness', `${shopper.name} has paid, and the tags stay on`)
      tally.bought++
      await linger(chance, 5, 30)
      await leave(shopper, bag)
      tally.left++
      if (shopper.returnsAfterMs === undefined) return
      await scheduler.pause(shopper.returnsAfterMs)
      await bringBack(bag)
    },
  }
}
