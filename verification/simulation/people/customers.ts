import type { AgentNode } from '../nodes/agent-node.ts'
import type { Unseen } from './ask-agent.ts'
import { atDevices, type Bought } from './at-devices.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Shop } from '../nodes/genesis.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import type { Pace } from '../virtual/pace.ts'
import { probe } from './probe.ts'
import type { RulesOracle } from '../oracles/rules-oracle.ts'
import type { Till } from './till.ts'

/**
 *   basket ─ check in ─ check out ─ pay ─┬─ station · token at the station · detacher · device without agent ─┬─ gate
 *                                        └─ (perhaps) cancelled, or brought back and bought by the next      ┘
 *
 * People in the shop. Each does some of this, in haste or slowly, twice where nobody should, and remembers
 * what they were told.
 */
export interface Customers {
  /** One customer's whole visit; resolves when they have left, one way or the other. */
  visit(name: string): Promise<void>
  /** Buys and has it released, as on any day; answers what does not work. */
  probe(): Promise<string | undefined>
  /** Purchases that somebody was told are paid. */
  readonly paid: ReadonlySet<string>
  /** Purchases that somebody was told are cancelled. */
  readonly cancelled: ReadonlySet<string>
  /** Things that were brought back, each with the purchase of who has bought it then: `EPC purchaseId`. */
  readonly resold: ReadonlySet<string>
  /** Events that somebody was told of at an agent: they must arrive. */
  readonly told: ReadonlySet<string>
  /** A backup is made: what it answers, called when the cloud is put back to it, forgets what people were told since. */
  backUp(): () => void
  /** Events of tokens that a cloud gave which was lost: somebody may be told of them still. */
  lose(events: readonly string[]): void
  /** The same for what agents alone have told. */
  copyTold(): () => void
}

export interface CustomerParts {
  core: Core
  shop: Shop
  merchant: Merchant
  /** A program of the other tenant, that tries what it should not. */
  stranger: Merchant
  agents: readonly AgentNode[]
  pace: Pace
  /** People show the same receipt at both agents, tag by tag: where it matters which of them is asked. */
  isTrying: boolean
  till: Till
  /** Staff say that they have the goods of this purchase in hand. */
  vouch(purchaseId: string): void
  unseen: Unseen
  rules: Pick<RulesOracle, 'answered'>
}

/** A category and a brand that policies have rules for. */
const RULED_CATEGORY = 'schmuck'
const RULED_BRAND = 'Luxus'

/** The people of one world. */
export function customers({
  core,
  shop,
  merchant,
  stranger,
  agents,
  pace,
  isTrying,
  till,
  vouch,
  unseen,
  rules,
}: CustomerParts): Customers {
  const { restores } = unseen
  const world = core.chance.fork('customers')
  const paid = new Set<string>()
  const cancelled = new Set<string>()
  const resold = new Set<string>()
  const devices = atDevices({ core, shop, merchant, agents, pace, unseen, rules, isTrying })
  const { linger } = devices
  let epcs = 0

  async function buy(name: string, chance: Chance): Promise<Bought | undefined> {
    const { storeId, products } = shop
    const product = chance.one(products)
    const units = chance.between(1, 3)
    const tagged: string[] = []
    if (chance.happens(isTrying ? 0.9 : 0.5)) {
      for (let n = 0; n < units; n++) tagged.push(`E2800000${(++epcs).toString(16).padStart(16, '0').toUpperCase()}`)
      const goods = chance.fork('goods')
      const items = tagged.map((epc) => ({
        epc,
        ean: product.ean,
        protectionTechnology: 'uhf_rfid',
        ...(goods.happens(0.3) && { category: RULED_CATEGORY }),
        ...(goods.happens(0.2) && { brand: RULED_BRAND }),
      }))
      if (!(await merchant.call('registerProtectedItems', { storeId, items }))?.ok) return undefined
    }
    const begun = await begin(name, { ean: product.ean, quantity: units, ...(tagged.length > 0 && { epcs: tagged }) })
    if (!begun) return undefined
    const purchaseId = String(begun['transactionId'])
    await linger(chance)
    if (chance.happens(0.1)) {
      await till.decline(begun, chance)
      // Nobody has paid: whoever asks all the same gets nothing (I7).
      await merchant.call('verifySecurityTagDeactivation', { purchaseId, deviceId: shop.devices.station })
      // And nobody pays what has ended (I15).
      await till.pay(begun, chance)
      return undefined
    }
    // Some are impatient, and ask before they have paid.
    if (chance.happens(0.2))
      await merchant.call('verifySecurityTagDeactivation', { purchaseId, deviceId: shop.devices.alone })
    const receipt = await pay(begun, chance)
    return receipt === undefined
      ? undefined
      : { name, purchaseId, receipt, ean: product.ean, epcs: tagged, units, chance }
  }

  /** Checks in and out with this line. */
  async function begin(name: string, line: Json): Promise<Json | undefined> {
    const session = await merchant.call('checkIn', { storeId: shop.storeId, userId: name })
    if (!session?.ok) return undefined
    const started = await merchant.call('startCheckout', { sessionId: session.body['sessionId'], items: [line] })
    return started?.ok ? started.body : undefined
  }

  /** Pays, and answers with the receipt. */
  async function pay(begun: Json, chance: Chance): Promise<string | undefined> {
    const purchaseId = String(begun['transactionId'])
    const before = restores()
    if (!(await till.pay(begun, chance))) return undefined
    if (restores() === before) paid.add(purchaseId)
    const receipt = await merchant.call('generateReceiptQR', { purchaseId })
    return receipt?.ok ? String(receipt.body['url']) : undefined
  }

  /**
   * Somebody brings one of their things back: staff put it on the shelf again by hand, with no refund yet, and the next customer buys
   * it. Who had it before still has the receipt.
   */
  async function bringBack(former: Bought): Promise<void> {
    const { name, ean, epcs: tags, chance } = former
    const epc = tags.length > 0 ? chance.one(tags) : undefined
    if (epc === undefined) return
    for (const itemStatus of ['returned', 'sellable']) {
      const moved = await merchant.call('updateItemStatus', { storeId: shop.storeId, epc, itemStatus })
      if (!moved?.ok) return
      await linger(chance)
    }
    const before = restores()
    const begun = await begin(`${name}-next`, { ean, quantity: 1, epcs: [epc] })
    const receipt = begun && (await pay(begun, chance))
    if (!begun || receipt === undefined) return
    const purchaseId = String(begun['transactionId'])
    if (restores() === before) resold.add(`${epc} ${purchaseId}`)
    const next: Bought = { name: `${name}-next`, purchaseId, receipt, ean, epcs: [epc], units: 1, chance }
    await Promise.all([chance.one(lanes)(next), chance.one(lanes)(former)])
    if (chance.happens(0.5)) await devices.atGate(next)
  }

  async function cancel({ purchaseId, chance }: Bought): Promise<void> {
    const before = restores()
    const answer = await merchant.call('markPurchaseCancelled', { purchaseId })
    // Staff may have the goods in hand, and need not wait for anybody.
    if (shop.isLive && chance.happens(0.3)) {
      vouch(purchaseId)
      await merchant.call('refundPayment', { purchaseId, confirmedBy: shop.operatorId })
    }
    if (answer?.ok && restores() === before) cancelled.add(purchaseId)
  }

  /** The shop's manager thinks anew. */
  async function changePolicy(chance: Chance): Promise<void> {
    const { storeId } = shop
    const now = await merchant.call('fetchProtectionPolicy', { storeId })
    if (!now?.ok) return
    const former = now.body['policy'] as Json
    const rules = chance.fork('rules')
    const policy = {
      ...former,
      requiresManualOverrideAboveValue: chance.between(150, 500),
      allowedActionsByCategory: {
        ...(former['allowedActionsByCategory'] as Json),
        [RULED_CATEGORY]: rules.one([{}, { deactivate_label: ['staff_assisted'], authorize_exit: ['automatic_exit'] }]),
      },
      requiresStaffForBrand: rules.happens(0.5) ? [RULED_BRAND] : [],
    }
    await merchant.call('updateProtectionPolicy', { storeId, policy })
  }

  /** Somebody of another account tries with what they have seen. */
  async function tryAsStranger({ purchaseId }: Bought): Promise<void> {
    const asked: [string, Json][] = [
      ['fetchPurchase', { transactionId: purchaseId }],
      ['markPurchaseCancelled', { purchaseId }],
      ['verifySecurityTagDeactivation', { purchaseId, deviceId: shop.devices.station }],
    ]
    for (const [operation, body] of asked) {
      const answer = await stranger.call(operation, body, { tries: 2 })
      if (answer?.ok) core.violate('I11', `${operation} of another tenant's ${purchaseId} was answered with 200`)
    }
    // The same words under the same key are another request when somebody else says them.
    const key = `shared-${purchaseId.slice(-8)}`
    const own = await merchant.call('checkIn', { storeId: shop.storeId }, { key, tries: 3 })
    const other = await stranger.call('checkIn', { storeId: shop.foreignStoreId }, { key, tries: 3 })
    if (own?.ok && other?.ok && own.body['sessionId'] === other.body['sessionId'])
      core.violate('I11', 'two tenants share the answer to one Idempotency-Key')
    if (other && !other.ok && other.reason === 'idempotency_key_reused')
      core.violate('I11', 'an Idempotency-Key of one tenant is taken for another')
  }

  const lanes = isTrying
    ? [devices.everywhere, devices.everywhere, devices.withToken, devices.withToken]
    : [devices.atStation, devices.withToken, devices.byItem, devices.alone]

  return {
    paid,
    cancelled,
    resold,
    told: devices.told,
    backUp: () => keep(paid, cancelled, resold, devices.told),
    lose(events) {
      for (const id of events) devices.lost.add(id)
    },
    copyTold: () => keep(devices.told),
    async visit(name) {
      const chance = world.fork(name)
      const bought = await buy(name, chance)
      if (!bought) return
      if (chance.happens(0.3)) await changePolicy(chance)
      if (shop.isLive && chance.happens(0.2))
        await merchant.call('refundPayment', { purchaseId: bought.purchaseId, amount: chance.between(1, 900) / 100 })
      const uses = chance.between(1, 3)
      for (let n = 0; n < uses; n++) {
        await linger(chance)
        const use = chance.one(lanes)(bought)
        if (chance.happens(0.1)) await cancel(bought)
        // Some do two things at once.
        if (chance.happens(0.8)) await use
      }
      if (chance.happens(0.3)) await tryAsStranger(bought)
      if (chance.happens(0.15)) await bringBack(bought)
      if (chance.happens(0.7)) await devices.atGate(bought)
      if (!chance.happens(0.15)) return
      await cancel(bought)
      // Somebody has kept the receipt.
      for (let n = 0; n < 3; n++) {
        await linger(chance)
        await devices.atStation(bought)
      }
    },
    probe: () => probe({ shop, merchant, agents, till, ask: devices.ask }, world.fork('probe')),
  }
}

/** Keeps how many there are in each set; what it answers takes out those that came since. */
function keep(...sets: readonly Set<string>[]): () => void {
  const kept = sets.map((set) => ({ set, size: set.size }))
  return () => {
    for (const { set, size } of kept) for (const id of [...set].slice(size)) set.delete(id)
  }
}
