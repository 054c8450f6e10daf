import type { AgentNode } from '../nodes/agent-node.ts'
import type { HiddenState } from './request-release.ts'
import { deviceVisits, type DeviceVisits, type OwnedPurchase } from './device-visits.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import type { Pace } from '../virtual/pace.ts'
import { changePolicy, holdItem, recallItem, RULED_BRAND, RULED_CATEGORY, type Staff } from './managers.ts'
import { probe } from './probe.ts'
import type { RulesOracle } from '../oracles/rules-oracle.ts'
import type { Payment } from './payment.ts'

/**
 * Customers of a run. Each customer takes goods, pays, and visits some devices and perhaps the gate. Some customers
 * cancel, return goods or repeat a request. Customers remember the answers.
 */
export interface Customers {
  /** Runs the visit of one customer. Resolves when the customer has left the shop. */
  visit(name: string): Promise<void>
  /** A shopper of a till shows the receipt of its sale at a device. */
  showReceipt(bought: OwnedPurchase): Promise<void>
  /** Runs a simple purchase with its release. Returns a description of the step that failed. */
  probe(): Promise<string | undefined>
  /** Purchases that the cloud reported as paid. */
  readonly paid: ReadonlySet<string>
  /** Purchases that the cloud reported as cancelled. */
  readonly cancelled: ReadonlySet<string>
  /** Items that were returned and sold again, each as `EPC purchaseId` with the id of the new purchase. */
  readonly resold: ReadonlySet<string>
  /** Event ids in answers of agents. The cloud must receive all of these events. */
  readonly reportedEvents: ReadonlySet<string>
  /**
   * Records the sets at a backup. Call the returned function after the restore. This function removes all entries that
   * were added since the backup.
   */
  backUp(): () => void
  /** From now on ignores the events of tokens that a restored cloud lost, even if an agent reports them later. */
  excuseLostEvents(events: readonly string[]): void
  /** Like `backUp`, but only for events in answers of agents. */
  backUpReportedEvents(): () => void
}

export interface CustomerParts {
  core: Core
  shop: Shop
  merchant: Merchant
  /**
   * API client of the second tenant. Its calls with ids of the first tenant must fail.
   */
  stranger: Merchant
  agents: readonly AgentNode[]
  pace: Pace
  /** True if customers show the same receipt at both agents. */
  repeatsRequests: boolean
  payment: Payment
  /** Called when staff confirm that they have the goods of this purchase. */
  vouch(purchaseId: string): void
  hidden: HiddenState
  rules: Pick<RulesOracle, 'answered' | 'statusesAt'>
}

/** Creates the customers of a run. */
export function customers(parts: CustomerParts): Customers {
  return new Visits(parts)
}

class Visits implements Customers {
  readonly #core: CustomerParts['core']
  readonly #shop: CustomerParts['shop']
  readonly #merchant: CustomerParts['merchant']
  readonly #stranger: CustomerParts['stranger']
  readonly #agents: CustomerParts['agents']
  readonly #repeatsRequests: CustomerParts['repeatsRequests']
  readonly #payment: CustomerParts['payment']
  readonly #vouch: CustomerParts['vouch']
  readonly #hidden: CustomerParts['hidden']
  readonly #chance: Chance
  readonly paid = new Set<string>()
  readonly cancelled = new Set<string>()
  readonly resold = new Set<string>()
  readonly #devices: DeviceVisits
  readonly #staff: Staff
  #epcs = 0
  readonly #lanes: ((bought: OwnedPurchase) => Promise<void>)[]
  readonly reportedEvents: ReadonlySet<string>

  constructor({
    core,
    shop,
    merchant,
    stranger,
    agents,
    pace,
    repeatsRequests,
    payment,
    vouch,
    hidden,
    rules,
  }: CustomerParts) {
    this.#core = core
    this.#shop = shop
    this.#merchant = merchant
    this.#stranger = stranger
    this.#agents = agents
    this.#repeatsRequests = repeatsRequests
    this.#payment = payment
    this.#vouch = vouch
    this.#hidden = hidden
    this.#chance = this.#core.chance.fork('customers')
    this.#devices = deviceVisits({
      core: this.#core,
      shop: this.#shop,
      merchant: this.#merchant,
      agents: this.#agents,
      pace,
      hidden: this.#hidden,
      rules,
      repeatsRequests: this.#repeatsRequests,
    })
    this.#staff = { shop, merchant, linger: this.#devices.linger }
    this.#lanes = this.#repeatsRequests
      ? [this.#devices.atBothAgents, this.#devices.atBothAgents, this.#devices.withToken, this.#devices.withToken]
      : [this.#devices.atStation, this.#devices.withToken, this.#devices.byItem, this.#devices.withoutAgent]
    this.reportedEvents = this.#devices.reportedEvents
  }

  backUp(): () => void {
    return snapshotSizes(this.paid, this.cancelled, this.resold, this.#devices.reportedEvents)
  }

  excuseLostEvents(events: readonly string[]): void {
    for (const id of events) this.#devices.lostEvents.add(id)
  }

  backUpReportedEvents(): () => void {
    return snapshotSizes(this.#devices.reportedEvents)
  }

  async visit(name: string): Promise<void> {
    const chance = this.#chance.fork(name)
    const bought = await this.#buy(name, chance)
    if (!bought) return
    if (chance.happens(0.3)) await changePolicy(this.#staff, chance)
    if (this.#shop.isLive && chance.happens(0.2))
      await this.#merchant.call('refundPayment', {
        purchaseId: bought.purchaseId,
        amount: chance.between(1, 900) / 100,
      })
    if (chance.fork('hold').happens(0.3)) await holdItem(this.#staff, bought)
    if (chance.fork('recall').happens(0.2)) await recallItem(this.#staff, bought)
    const uses = chance.between(1, 3)
    for (let n = 0; n < uses; n++) {
      await this.#devices.linger(chance)
      const use = chance.one(this.#lanes)(bought)
      if (chance.happens(0.1)) await this.#cancel(bought)
      // Some customers continue their visit before the answer arrives.
      if (chance.happens(0.8)) await use
    }
    if (chance.happens(0.3)) await this.#tryAsStranger(bought)
    if (chance.happens(0.15)) await this.#returnAndResell(bought)
    if (chance.happens(0.7)) await this.#devices.atGate(bought)
    if (!chance.happens(0.15)) return
    await this.#cancel(bought)
    // The customer still has the receipt and shows it again.
    for (let n = 0; n < 3; n++) {
      await this.#devices.linger(chance)
      await this.#devices.atStation(bought)
    }
  }

  showReceipt(bought: OwnedPurchase): Promise<void> {
    return bought.chance.one(this.#lanes)(bought)
  }

  probe(): Promise<string | undefined> {
    return probe(
      {
        shop: this.#shop,
        merchant: this.#merchant,
        agents: this.#agents,
        payment: this.#payment,
        ask: this.#devices.ask,
      },
      this.#chance.fork('probe'),
    )
  }

  async #buy(name: string, chance: Chance): Promise<OwnedPurchase | undefined> {
    const { storeId, products } = this.#shop
    const product = chance.one(products)
    const units = chance.between(1, 3)
    const tagged: string[] = []
    if (chance.happens(this.#repeatsRequests ? 0.9 : 0.5)) {
      for (let n = 0; n < units; n++)
        tagged.push(`E2800000${(++this.#epcs).toString(16).padStart(16, '0').toUpperCase()}`)
      const goods = chance.fork('goods')
      const items = tagged.map((epc) => ({
        epc,
        ean: product.ean,
        protectionTechnology: 'uhf_rfid',
        ...(goods.happens(0.3) && { category: RULED_CATEGORY }),
        ...(goods.happens(0.2) && { brand: RULED_BRAND }),
      }))
      if (!(await this.#merchant.call('registerProtectedItems', { storeId, items }))?.ok) return undefined
    }
    const begun = await this.#begin(name, {
      ean: product.ean,
      quantity: units,
      ...(tagged.length > 0 && { epcs: tagged }),
    })
    if (!begun) return undefined
    const purchaseId = String(begun['transactionId'])
    await this.#devices.linger(chance)
    if (chance.happens(0.1)) {
      await this.#payment.decline(begun, chance)
      // This request must not release anything (I7).
      await this.#merchant.call('verifySecurityTagDeactivation', { purchaseId, deviceId: this.#shop.devices.station })
      // A cancelled purchase cannot be paid (I15).
      await this.#payment.pay(begun, chance)
      return undefined
    }
    // Some customers request the release before they have paid.
    if (chance.happens(0.2))
      await this.#merchant.call('verifySecurityTagDeactivation', { purchaseId, deviceId: this.#shop.devices.alone })
    const receipt = await this.#pay(begun, chance)
    return receipt === undefined
      ? undefined
      : { name, purchaseId, receipt, ean: product.ean, epcs: tagged, units, chance }
  }

  /** Starts a session and a checkout for this line. */
  async #begin(name: string, line: Json): Promise<Json | undefined> {
    const session = await this.#merchant.call('checkIn', { storeId: this.#shop.storeId, userId: name })
    if (!session?.ok) return undefined
    const started = await this.#merchant.call('startCheckout', { sessionId: session.body['sessionId'], items: [line] })
    return started?.ok ? started.body : undefined
  }

  /** Pays and returns the receipt. */
  async #pay(begun: Json, chance: Chance): Promise<string | undefined> {
    const purchaseId = String(begun['transactionId'])
    const before = this.#hidden.restores()
    if (!(await this.#payment.pay(begun, chance))) return undefined
    if (this.#hidden.restores() === before) this.paid.add(purchaseId)
    const receipt = await this.#merchant.call('generateReceiptQR', { purchaseId })
    return receipt?.ok ? String(receipt.body['url']) : undefined
  }

  /**
   * A customer returns one item without a refund. Staff put the item back on the shelf, and the next customer buys it.
   * The first customer still has the receipt of the item.
   */
  async #returnAndResell(former: OwnedPurchase): Promise<void> {
    const { name, ean, epcs: tags, chance } = former
    const epc = tags.length > 0 ? chance.one(tags) : undefined
    if (epc === undefined) return
    for (const itemStatus of ['returned', 'sellable']) {
      const moved = await this.#merchant.call('updateItemStatus', { storeId: this.#shop.storeId, epc, itemStatus })
      if (!moved?.ok) return
      await this.#devices.linger(chance)
    }
    const before = this.#hidden.restores()
    const begun = await this.#begin(`${name}-next`, { ean, quantity: 1, epcs: [epc] })
    const receipt = begun && (await this.#pay(begun, chance))
    if (!begun || receipt === undefined) return
    const purchaseId = String(begun['transactionId'])
    if (this.#hidden.restores() === before) this.resold.add(`${epc} ${purchaseId}`)
    const next: OwnedPurchase = { name: `${name}-next`, purchaseId, receipt, ean, epcs: [epc], units: 1, chance }
    await Promise.all([chance.one(this.#lanes)(next), chance.one(this.#lanes)(former)])
    if (chance.happens(0.5)) await this.#devices.atGate(next)
  }

  async #cancel({ purchaseId, chance }: OwnedPurchase): Promise<void> {
    const before = this.#hidden.restores()
    const answer = await this.#merchant.call('markPurchaseCancelled', { purchaseId })
    // If staff have the goods, they can confirm the refund at once.
    if (this.#shop.isLive && chance.happens(0.3)) {
      this.#vouch(purchaseId)
      await this.#merchant.call('refundPayment', { purchaseId, confirmedBy: this.#shop.operatorId })
    }
    if (answer?.ok && this.#hidden.restores() === before) this.cancelled.add(purchaseId)
  }

  /** The second tenant calls operations with the id of this purchase. */
  async #tryAsStranger({ purchaseId }: OwnedPurchase): Promise<void> {
    const calls: [string, Json][] = [
      ['fetchPurchase', { transactionId: purchaseId }],
      ['markPurchaseCancelled', { purchaseId }],
      ['verifySecurityTagDeactivation', { purchaseId, deviceId: this.#shop.devices.station }],
    ]
    for (const [operation, body] of calls) {
      const answer = await this.#stranger.call(operation, body, { tries: 2 })
      if (answer?.ok) this.#core.violate('I11', `${operation} of another tenant's ${purchaseId} was answered with 200`)
    }
    // If two accounts use the same Idempotency-Key and body, these are two separate requests.
    const key = `shared-${purchaseId.slice(-8)}`
    const own = await this.#merchant.call('checkIn', { storeId: this.#shop.storeId }, { key, tries: 3 })
    const other = await this.#stranger.call('checkIn', { storeId: this.#shop.foreignStoreId }, { key, tries: 3 })
    if (own?.ok && other?.ok && own.body['sessionId'] === other.body['sessionId'])
      this.#core.violate('I11', 'two tenants share the answer to one Idempotency-Key')
    if (other && !other.ok && other.reason === 'idempotency_key_reused')
      this.#core.violate('I11', 'an Idempotency-Key of one tenant blocks another tenant')
  }
}

/** Records the size of each set. The returned function removes all entries that were added later. */
function snapshotSizes(...sets: readonly Set<string>[]): () => void {
  const kept = sets.map((set) => ({ set, size: set.size }))
  return () => {
    for (const { set, size } of kept) for (const id of [...set].slice(size)) set.delete(id)
  }
}
