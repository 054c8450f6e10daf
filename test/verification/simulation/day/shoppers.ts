import type { AuthorizeRequest } from '../../../../edge-agent/decisions/request.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import { releaseRequester, type RequestRelease } from '../people/request-release.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import type { RulesOracle } from '../oracles/rules-oracle.ts'
import type { GateReader } from '../nodes/gate-reader.ts'
import type { DayTills } from './day-tills.ts'
import { needsStaff, type Good, type Goods } from './goods.ts'
import type { Tally } from './tally.ts'
import type { Shopper } from './timetable.ts'

/**
 * Shoppers of a store day. They take goods and pay, release the tags at the station or the detacher, and leave through
 * the gate. Thieves go to the gate without paying. Some shoppers bring goods back. A shopper repeats a request that got
 * no answer.
 */
export interface Shoppers {
  /** Runs the visit of one shopper. Resolves when the shopper has left. */
  visit(shopper: Shopper): Promise<void>
  readonly paid: ReadonlySet<string>
  readonly cancelled: ReadonlySet<string>
  readonly reportedEvents: ReadonlySet<string>
}

export interface ShopperParts {
  core: Core
  shop: Shop
  merchant: Merchant
  agents: { readonly station: AgentNode; readonly detacher: AgentNode; readonly gate: AgentNode }
  reader: GateReader
  goods: Goods
  rules: Pick<RulesOracle, 'answered' | 'statusesAt'>
  tally: Tally
  /** Undefined on a day without tills. */
  tills?: Pick<DayTills, 'sell' | 'takeBack' | 'book'>
  /** True if tills do not report their sales, so the gate alarms for their goods. */
  isSilent: boolean
}

interface Bag {
  readonly goods: readonly Good[]
  readonly purchaseId: string
  readonly receipt: string
}

/** Share of the buyers who pay at a till, on a day with tills. */
const TILL_SHARE = 0.8

const SECOND_MS = 1_000
/**
 * Attempts of a shopper and the pause between them, ms. A shopper who has no success after these attempts is a
 * violation.
 */
const PATIENCE = { tries: 40, pauseMs: 15 * SECOND_MS }
/** Failed attempts at the detacher after which shoppers go to the station. */
const DETACHER_TRIES = 3
/**
 * Maximum time from the passage of a tag to the journal row of its alarm, ms. This time includes the 250 ms for which
 * the agent collects events before each commit (edge-agent/devices/device-journal.ts).
 */
const ALARM_WITHIN_MS = 3 * SECOND_MS

/** Creates the shoppers of the day. */
export function shoppers(parts: ShopperParts): Shoppers {
  return new DayShoppers(parts)
}

class DayShoppers implements Shoppers {
  readonly #core: ShopperParts['core']
  readonly #shop: ShopperParts['shop']
  readonly #merchant: ShopperParts['merchant']
  readonly #agents: ShopperParts['agents']
  readonly #reader: ShopperParts['reader']
  readonly #goods: ShopperParts['goods']
  readonly #tally: ShopperParts['tally']
  readonly #tills: ShopperParts['tills']
  readonly #isSilent: boolean
  readonly #chance: Chance
  readonly paid = new Set<string>()
  readonly cancelled = new Set<string>()
  readonly reportedEvents = new Set<string>()
  readonly #requestRelease: RequestRelease

  constructor({ core, shop, merchant, agents, reader, goods, rules, tally, tills, isSilent }: ShopperParts) {
    this.#core = core
    this.#shop = shop
    this.#merchant = merchant
    this.#agents = agents
    this.#reader = reader
    this.#goods = goods
    this.#tally = tally
    this.#tills = tills
    this.#isSilent = isSilent
    this.#chance = this.#core.chance.fork('shoppers')
    this.#requestRelease = releaseRequester(
      this.#core,
      (eventId) => void this.reportedEvents.add(eventId),
      undefined,
      rules,
    )
  }

  async visit(shopper: Shopper): Promise<void> {
    const chance = this.#chance.fork(shopper.name)
    this.#tally.came++
    await this.#linger(chance, 60, 900)
    const taken = this.#goods.take(shopper.units)
    if (shopper.kind === 'thief') {
      this.#tally.thieves++
      await this.#steal(shopper, taken)
      return void this.#tally.left++
    }
    if (this.#tills && shopper.kind === 'buyer' && chance.fork('till').happens(TILL_SHARE))
      return this.#payAtTill(shopper, taken, this.#tills, chance)
    const bag = await this.#buy(shopper, taken, chance)
    if (!bag) return void this.#tally.left++
    await this.#linger(chance, 5, 60)
    if (shopper.kind === 'changes-mind') {
      await this.#changeMind(bag)
      return void this.#tally.left++
    }
    const left = shopper.releasedAt === 'detacher' ? await this.#atDetacher(bag) : taken.length
    if ((await this.#atStation(bag, left)) > 0)
      this.#core.violate('liveness', `${shopper.name} has paid, but some tags are not released`)
    this.#tally.bought++
    await this.#linger(chance, 5, 30)
    await this.#leave(shopper, bag)
    this.#tally.left++
    if (shopper.returnsAfterMs === undefined) return
    await this.#core.scheduler.pause(shopper.returnsAfterMs)
    await this.#bringBack(bag)
  }

  /** Pays at a till. The tags stay on: the gate knows from the till that the goods are paid. */
  async #payAtTill(
    shopper: Shopper,
    goods: readonly Good[],
    tills: NonNullable<ShopperParts['tills']>,
    chance: Chance,
  ): Promise<void> {
    await tills.sell(goods, chance)
    this.#tally.bought++
    await this.#linger(chance, 10, 60)
    const epcs = goods.map(({ epc }) => epc)
    const alarmed = await this.#throughGate(epcs)
    this.#tally.unitsSold += epcs.length
    this.#tally.unitsOfTills += epcs.length
    this.#tally.left++
    if (alarmed.length > 0) {
      this.#tally.needlessAlarms++
      this.#tally.staffCalls++
      if (!this.#isSilent)
        this.#core.violate('silence', `${shopper.name} has paid at a till, but the gate alarmed for ${alarmed.join()}`)
    }
    if (shopper.returnsAfterMs === undefined) return
    await this.#core.scheduler.pause(shopper.returnsAfterMs)
    await this.#reader.carry(epcs, 'in')
    await tills.takeBack(goods, chance)
    this.#tally.returned++
    this.#goods.putBack(goods)
  }

  #linger(chance: Chance, fromS: number, toS: number) {
    return this.#core.scheduler.pause(chance.between(fromS * SECOND_MS, toS * SECOND_MS))
  }

  async #measuredRequest(node: AgentNode, request: AuthorizeRequest) {
    const before = process.cpuUsage()
    const answer = await this.#requestRelease(node, request)
    const { user, system } = process.cpuUsage(before)
    if (!answer) {
      this.#tally.unanswered++
      return undefined
    }
    this.#tally.decisions++
    this.#tally.decisionMs.push((user + system) / 1_000)
    if (answer.authorized) this.#tally.granted++
    if (answer.offline) this.#tally.offline++
    if (answer.reason === 'manual_assistance_required') this.#tally.staffCalls++
    return answer
  }

  /**
   * Calls the cloud from the shop's system or a phone. Such calls must succeed, because they do not use the
   * connection of the store.
   */
  async #call(operation: string, body: Json): Promise<Json> {
    const answer = await this.#merchant.call(operation, body)
    if (answer?.ok) return answer.body
    throw new Error(`${operation}: ${answer ? `${answer.status} ${answer.reason}` : 'no answer'}`)
  }

  async #buy(shopper: Shopper, taken: readonly Good[], chance: Chance): Promise<Bag | undefined> {
    const { sessionId } = await this.#call('checkIn', { storeId: this.#shop.storeId, userId: shopper.name })
    const eans = [...new Set(taken.map(({ ean }) => ean))]
    const items = eans.map((ean) => {
      const epcs = taken.filter((good) => good.ean === ean).map(({ epc }) => epc)
      return { ean, quantity: epcs.length, epcs }
    })
    const { transactionId } = await this.#call('startCheckout', { sessionId, items })
    const purchaseId = String(transactionId)
    await this.#linger(chance, 10, 60)
    if (shopper.kind === 'declined') {
      await this.#call('completeTestCheckout', { transactionId, result: 'declined' })
      this.#goods.putBack(taken)
      return undefined
    }
    await this.#call('completeTestCheckout', { transactionId })
    // A till may have sold these goods before.
    this.#tills?.book.doubt(taken.map(({ epc }) => epc))
    this.paid.add(purchaseId)
    const { url } = await this.#call('generateReceiptQR', { purchaseId })
    return { goods: taken, purchaseId, receipt: String(url) }
  }

  /**
   * Releases unit by unit with the receipt. Returns the number of unreleased tags. A detacher without power still
   * holds leases for minutes, so the station must retry until these leases end.
   */
  async #atStation({ receipt }: Bag, units: number): Promise<number> {
    let left = units
    let staff = {}
    for (let n = 0; n < PATIENCE.tries && left > 0; n++) {
      const answer = await this.#measuredRequest(this.#agents.station, {
        deviceId: this.#shop.devices.station,
        action: 'deactivate_label',
        receipt,
        identifiers: {},
        ...staff,
      })
      if (answer?.outcome === 'confirmed') left--
      // If the agent requires staff, for example because a power cut made the outcome unknown, staff check the tag and
      // approve the next attempt.
      staff = answer?.reason === 'manual_assistance_required' ? { operatorId: this.#shop.operatorId } : {}
      await this.#core.scheduler.pause(answer?.authorized ? SECOND_MS : PATIENCE.pauseMs)
    }
    return left
  }

  /** Releases tag by tag with tokens from the phone. Returns the number of unreleased tags. */
  async #atDetacher({ goods: bag }: Bag): Promise<number> {
    // Begins with the items that only staff may release. The station later releases as many units as tags are left,
    // because a receipt names units and not tags.
    const left = bag.toSorted((a, b) => Number(needsStaff(b)) - Number(needsStaff(a))).map(({ epc }) => epc)
    for (let failed = 0; failed < DETACHER_TRIES && left.length > 0;) {
      const verified = await this.#merchant.call('verifyProtectedItem', {
        epc: left[0],
        deviceId: this.#shop.devices.detacher,
        protectionAction: 'detach_hard_tag',
      })
      const token = verified?.ok ? verified.body['authorizationToken'] : undefined
      const answer =
        typeof token === 'string'
          ? await this.#measuredRequest(this.#agents.detacher, {
              deviceId: this.#shop.devices.detacher,
              action: 'detach_hard_tag',
              token,
              identifiers: {},
            })
          : undefined
      if (answer?.outcome === 'confirmed') left.shift()
      else failed++
      await this.#core.scheduler.pause(answer ? 2 * SECOND_MS : PATIENCE.pauseMs)
    }
    return left.length
  }

  /** Carries all goods through the gate. Returns the tags that alarmed. */
  async #throughGate(epcs: readonly string[]): Promise<string[]> {
    const fromMs = this.#core.scheduler.nowMs
    await this.#reader.carry(epcs, 'out')
    await this.#core.scheduler.pause(ALARM_WITHIN_MS)
    return epcs.filter((epc) => (this.#tally.alarms.get(epc)?.atMs ?? 0) >= fromMs)
  }

  async #showAtGate({ receipt }: Bag): Promise<void> {
    await this.#measuredRequest(this.#agents.gate, {
      deviceId: this.#shop.devices.gate,
      action: 'authorize_exit',
      receipt,
      identifiers: {},
    })
  }

  async #leave(shopper: Shopper, bag: Bag): Promise<void> {
    const epcs = bag.goods.map(({ epc }) => epc)
    if (shopper.showsReceipt) await this.#showAtGate(bag)
    const alarmed = await this.#throughGate(epcs)
    this.#tally.unitsSold += epcs.length
    if (alarmed.length === 0) return
    // The purchase is paid and all tags are released, so the gate must stay silent.
    this.#core.violate(
      'liveness',
      `${shopper.name} has paid and every tag was released, but the gate alarmed: ${this.#tally.alarms.get(alarmed[0] ?? '')?.detail}`,
    )
  }

  async #steal(shopper: Shopper, taken: readonly Good[]): Promise<void> {
    const alarmed = await this.#throughGate(taken.map(({ epc }) => epc))
    this.#tally.unitsStolen += taken.length
    this.#tally.alarmsOfThieves += alarmed.length
    if (alarmed.length < taken.length)
      this.#core.violate(
        'liveness',
        `${shopper.name} carried ${taken.length} unpaid goods out, but only ${alarmed.length} alarmed`,
      )
  }

  /** The shopper returns the goods. Staff put the goods back on the shelves. */
  async #bringBack(bag: Bag): Promise<void> {
    await this.#reader.carry(
      bag.goods.map(({ epc }) => epc),
      'in',
    )
    for (const { epc } of bag.goods) {
      for (const itemStatus of ['returned', 'sellable'])
        await this.#call('updateItemStatus', { storeId: this.#shop.storeId, epc, itemStatus })
    }
    this.#tally.returned++
    this.#goods.putBack(bag.goods)
  }

  async #changeMind({ purchaseId, goods: bag }: Bag): Promise<void> {
    await this.#call('markPurchaseCancelled', { purchaseId })
    this.cancelled.add(purchaseId)
    this.#tally.cancelled++
    for (const { epc } of bag)
      await this.#call('updateItemStatus', { storeId: this.#shop.storeId, epc, itemStatus: 'sellable' })
    this.#goods.putBack(bag)
  }
}
