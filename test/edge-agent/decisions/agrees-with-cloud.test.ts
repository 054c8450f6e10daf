import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { explainPolicy } from '../../../policy/policy-explanation.ts'
import { DEFAULT_POLICY, ProtectionPolicy } from '../../../policy/store-policy.ts'
import type { TillSale } from '../../../policy/till-sale.ts'
import { ITEM_STATUSES, type ItemStatus } from '../../../policy/vocabulary.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { EXTENDED } from '../../support/extended.ts'
import { anyPolicy, RULED_BRANDS, RULED_CATEGORIES } from '../../support/random-policies.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { anyTypedText, anyVariantOf } from '../../support/text-variants.ts'

/**
 * Compares decisions of the cloud with offline decisions of the agent, for random policies, goods, devices and
 * operators. The cloud decides by item and by purchase. The agent decides by receipt: once with its replica, once
 * without. The decisions must be equal, or the agent's must be stricter and name the missing fact. Each of the four
 * decisions has its own purchase, because a decision uses up the right. The fifth path are goods that a till sold at the
 * agent: before and after the cloud has the sale.
 */

const ACTION = {
  detacher: 'detach_hard_tag',
  station: 'deactivate_label',
  gate: 'authorize_exit',
  cabinet: 'unlock_fixture',
} as const
/** Text that is too long for the QR code, so that the receipt lacks the facts. */
const LONG = 'x'.repeat(100)

interface Goods {
  category: string
  brand: string
  isExpensive: boolean
}
interface Case {
  lane: keyof typeof ACTION
  goods: Goods[]
  isWithOperator: boolean
}

const anyGoods: fc.Arbitrary<Goods> = fc.record({
  category: fc.oneof(fc.constantFrom('hemden', ...RULED_CATEGORIES).chain(anyVariantOf), fc.constant(`hemden ${LONG}`)),
  brand: fc.oneof(fc.constantFrom('Nordhof', ...RULED_BRANDS).chain(anyVariantOf), fc.constant(`Nordhof ${LONG}`)),
  isExpensive: fc.boolean(),
})
const anyCase: fc.Arbitrary<Case> = fc.record({
  lane: fc.constantFrom('detacher', 'detacher', 'station', 'gate', 'cabinet'),
  goods: fc.array(anyGoods, { minLength: 1, maxLength: 2 }),
  isWithOperator: fc.constantFrom(false, false, true),
})

let store: TestStore
let operatorId: string
let badge: string
let tags = 0
let sales = 0
const { device: laneDevice, offline } = atLanes(() => store)
const device = (lane: Case['lane']) => (lane === 'cabinet' ? store.shop.devices.cabinet_unlocker : laneDevice(lane))
const ok = (operation: string, body: Json): Promise<Json> => store.drive(store.shop.ok(operation, body))

beforeAll(async () => {
  store = await openStore({
    extra: async (shop, world) => {
      const { serve } = new RelayBoard({ platform: world, locks: [{ coil: 0, input: 0, openMs: 30, closeMs: 30 }] })
      const deviceId = shop.devices.cabinet_unlocker
      await shop.ok('updateDevice', { deviceId, workflowType: 'self_service', canReadUhfRfid: true })
      const entry = { deviceId, driver: 'modbus', link: { tcp: '10.0.0.7:502' }, output: 0, confirmInput: 0 }
      return { entries: [entry], ports: { '10.0.0.7:502': serve } }
    },
  })
  const { storeId } = store.shop
  ;({ operatorId, badge } = await ok('registerOperator', { storeId, name: 'Frau Petersen', pin: '471108' }))
  await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
})
afterAll(() => store.stop())

async function online(): Promise<void> {
  store.network(true)
  await store.until('online', () => store.agent.link.isOnline && !store.agent.items.isBehind)
}

async function setPolicy({ home: _home, homeEpoch: _epoch, ...policy }: ProtectionPolicy): Promise<void> {
  const { storeId } = store.shop
  const tillSales = { ...policy.tillSales, agents: [store.identity.agentId] }
  await ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } })
  const rulesOf = (known?: ProtectionPolicy) =>
    JSON.stringify([
      known?.allowedActionsByCategory,
      known?.requiresManualOverrideAboveValue,
      known?.requiresStaffForBrand,
    ])
  await store.until(
    'the policy',
    () =>
      rulesOf(store.agent.trust.policy?.policy) === rulesOf(policy as ProtectionPolicy) &&
      store.agent.trust.policy?.policy.tillSales.agents.length === 1,
  )
}

interface Bought {
  purchaseId: string
  receipt: string
  /** Tag numbers in other case. */
  names: Json[]
}

/** Registers new goods, each with a name that the lane's device can read. */
async function register({ lane, goods }: Case): Promise<{ ean: string; price: number; name: Json }[]> {
  const bySize = store.shop.products.toSorted((a, b) => a.price - b.price)
  const items = goods.map(({ category, brand, isExpensive }) => {
    const id = `E281${String(++tags).padStart(20, '0')}`
    const name = lane === 'station' ? { tagId: `HT-${id}` } : { epc: id }
    const { ean, price } = (isExpensive ? bySize.at(-1) : bySize[0]) ?? { ean: '', price: 0 }
    return { ean, price, name, category, brand }
  })
  const { storeId } = store.shop
  const rows = items.map(({ name, price: _price, ...item }) => ({ ...item, ...name }))
  await ok('registerProtectedItems', { storeId, items: rows })
  return items
}

const inOtherCase = (name: Json): Json => ('epc' in name ? name : { tagId: ` ${String(name.tagId).toLowerCase()}` })
const listOf = (name: Json): Json => ('epc' in name ? { epcs: [name.epc] } : { tagIds: [name.tagId] })

/** Waits until the agent has these goods in this status. */
async function untilKnown(names: readonly Json[], status: ItemStatus): Promise<void> {
  await store.until('the replica', () =>
    names.every(
      (name) => store.agent.items.find('epc' in name ? 'epc' : 'tagId', name.epc ?? name.tagId)?.status === status,
    ),
  )
}

/** Registers and buys new goods. */
async function buy(each: Case): Promise<Bought> {
  const items = await register(each)
  const { purchase, receipt } = await store.buy(items.map(({ ean, name }) => ({ ean, quantity: 1, ...listOf(name) })))
  const names = items.map(({ name }) => inOtherCase(name))
  await untilKnown(names, 'paid')
  return { purchaseId: purchase.transactionId, receipt, names }
}

/** A till sells goods at the agent. */
async function sellAtTill(items: readonly { ean: string; price: number; name: Json }[]): Promise<TillSale> {
  const lines = items.map(({ ean, price, name }) => ({
    ean,
    quantity: 1,
    priceUnit: Math.round(price * 100),
    vat: 19 as const,
    ...listOf(name),
  }))
  const sale = { saleId: `s${++sales}`, occurredAt: new Date(store.world.clock.wall()).toISOString(), lines }
  const { warnings } = await store.drive(store.agent.sales.sell(sale))
  expect(warnings).toEqual([])
  return sale
}

/** A till sells goods at the agent, and the cloud gets the sale. */
async function buyAtTill(each: Case): Promise<Bought> {
  const items = await register(each)
  const names = items.map(({ name }) => inOtherCase(name))
  await untilKnown(names, 'sellable')
  const sale = await sellAtTill(items)
  await store.until('the sale in the cloud', () => store.agent.ledger.journal.waiting === 0)
  const { repeated, results } = await ok('recordSales', { storeId: store.shop.storeId, sales: [sale] })
  expect(repeated).toBe(1)
  const { purchaseId } = results[0]
  const { url } = await ok('generateReceiptQR', { purchaseId })
  return { purchaseId, receipt: url, names }
}

async function requestFromCloud({ lane, isWithOperator }: Case, subject: Json): Promise<Json> {
  const deviceId = device(lane)
  const who = isWithOperator ? { operatorId } : {}
  const isWhole = 'purchaseId' in subject && lane === 'station'
  if (!isWhole) return ok('verifyProtectedItem', { deviceId, protectionAction: ACTION[lane], ...subject, ...who })
  const { deactivationAuthorized, ...answer } = await ok('verifySecurityTagDeactivation', {
    deviceId,
    ...subject,
    ...who,
  })
  return { ...answer, authorized: deactivationAuthorized }
}

/** Signs in by the badge, because the derivation from a PIN is slow. */
async function signIn(): Promise<string> {
  return (await store.local('/v1/operator', { method: 'POST', body: { badge } })).body.session
}

async function requestFromAgent({ lane, isWithOperator }: Case, subject: Json): Promise<Json> {
  const headers: Record<string, string> = isWithOperator ? { 'x-untag-operator': await signIn() } : {}
  return store.authorize({ deviceId: device(lane), protectionAction: ACTION[lane], ...subject }, headers)
}

/** Expects the agent's answer to equal the cloud's, or to be stricter and name the missing fact. */
function expectEqualOrStricter(what: Json, cloud: Json, agent: Json): 'same' | 'stricter' {
  const details = JSON.stringify({ ...what, cloud: [cloud.authorized, cloud.reason], agent })
  expect(agent.offline, details).toBe(true)
  if (cloud.authorized === agent.authorized && cloud.reason === agent.reason) return 'same'
  expect(agent.authorized, details).toBe(false)
  expect(agent.unknownFacts, details).toBeDefined()
  return 'stricter'
}

/**
 * Expects the agent's answer about a tag that a till sold, without a receipt, to equal the cloud's. It may need staff:
 * the agent does not know which rights are used.
 */
function expectEqualOrStaff(what: Json, cloud: Json, agent: Json): 'same' | 'stricter' {
  const details = JSON.stringify({ ...what, cloud: [cloud.authorized, cloud.reason], agent })
  expect(agent.offline, details).toBe(true)
  if (cloud.authorized === agent.authorized && cloud.reason === agent.reason) return 'same'
  expect([cloud.authorized, agent.authorized, agent.reason], details).toEqual([
    true,
    false,
    'manual_assistance_required',
  ])
  return 'stricter'
}

/** Statuses in which the table of ADR releases allows the action of each lane. */
const ALLOWED_IN: Record<keyof typeof ACTION, readonly ItemStatus[]> = {
  detacher: ['paid', 'picked_up'],
  station: ['paid', 'picked_up'],
  gate: ['paid', 'picked_up', 'transfer_in_transit'],
  cabinet: ['paid', 'picked_up'],
}

/** Sets the status of a bought item, as staff do: by a hold. Waits until the agent knows it. */
async function setStatus(name: Json, itemStatus: ItemStatus): Promise<void> {
  const { storeId } = store.shop
  await ok('updateItemStatus', { storeId, ...name, itemStatus: 'exception_hold' })
  if (itemStatus !== 'exception_hold') await ok('updateItemStatus', { storeId, ...name, itemStatus })
  const [kind = '', id = ''] = Object.entries(name)[0] as [string, string]
  await store.until('the status', () => store.agent.items.find(kind as 'epc', id)?.status === itemStatus)
}

it.each(ITEM_STATUSES)('all paths give the same answer for %s, set after the receipt was made', async (status) => {
  const goods = [{ category: 'hemden', brand: 'Nordhof', isExpensive: false }]
  const rules = {
    detach_hard_tag: ['self_service'],
    deactivate_label: ['staff_assisted'],
    unlock_fixture: ['self_service'],
  }
  await online()
  await setPolicy({
    ...DEFAULT_POLICY,
    allowedActionsByCategory: { '*': { ...rules, authorize_exit: ['automatic_exit'] } },
  } as ProtectionPolicy)
  const requests = []
  for (const lane of Object.keys(ALLOWED_IN) as (keyof typeof ALLOWED_IN)[]) {
    const each: Case = { lane, goods, isWithOperator: false }
    const bought = []
    for (let n = 0; n < 5; n++) {
      const purchase = n < 4 ? await buy(each) : await buyAtTill(each)
      bought.push({ ...purchase, tag: purchase.names[0] ?? {} })
    }
    for (const { tag } of bought) await setStatus(tag, status)
    const [byItem, byPurchase, byReplica, byReceipt, byTill] = bought as [
      (typeof bought)[0],
      (typeof bought)[0],
      (typeof bought)[0],
      (typeof bought)[0],
      (typeof bought)[0],
    ]
    // A detacher releases nothing by the receipt alone.
    const tagOf = ({ tag }: { tag: Json }) => (lane === 'detacher' ? tag : {})
    const named = await requestFromCloud(each, byItem.tag)
    const whole = await requestFromCloud(each, { purchaseId: byPurchase.purchaseId, ...tagOf(byPurchase) })
    requests.push({ each, lane, named, whole, byReplica, byReceipt, byTill, tagOf })
  }
  await offline()
  for (const { each, lane, named, whole, byReplica, byReceipt, byTill, tagOf } of requests) {
    const tagged = await requestFromAgent(each, { receipt: byReplica.receipt, ...byReplica.tag })
    const receipt = await requestFromAgent(each, { receipt: byReceipt.receipt, ...tagOf(byReceipt) })
    const ofTill = await requestFromAgent(each, { receipt: byTill.receipt, ...byTill.tag })
    const answers = [named, whole, tagged, receipt, ofTill].map(({ authorized }) => authorized)
    const isAllowed = ALLOWED_IN[lane].includes(status)
    expect(answers, `${status} at the ${lane}`).toEqual(answers.map(() => isAllowed))
    // Goods that came back have no rights either, and this reason may come first.
    if (status !== 'sellable') expect(tagged.reason, `${status} at the ${lane}`).toBe(named.reason)
    if (status === 'exception_hold') expect(receipt.reason).toBe(named.reason)
  }
})

/** Compares random cases; returns how often the answers were equal, and how many releases the agent allowed. */
async function compareRandomCases(
  numRuns: number,
): Promise<{ same: number; stricter: number; released: number; tills: number }> {
  const counts = { same: 0, stricter: 0, released: 0, tills: 0 }
  await fc.assert(
    fc.asyncProperty(
      anyPolicy,
      fc.array(anyCase, { minLength: 3, maxLength: 3 }),
      fc.boolean(),
      async (policy, cases, isStale) => {
        await online()
        await setPolicy(policy)
        const requests = []
        for (const each of cases) {
          const [byItem, byPurchase, byReplica, byReceipt] = [
            await buy(each),
            await buy(each),
            await buy(each),
            await buy(each),
          ]
          const [atTill, ofTill] = [await buyAtTill(each), await buyAtTill(each)]
          const forTill = await register(each)
          await untilKnown(
            forTill.map(({ name }) => inOtherCase(name)),
            'sellable',
          )
          // A detacher needs the tag in addition to the purchase.
          const tagOf = (bought: { names: Json[] }) => (each.lane === 'detacher' ? bought.names[0] : {})
          const named = await requestFromCloud(each, byItem.names[0] ?? {})
          const whole = await requestFromCloud(each, { purchaseId: byPurchase.purchaseId, ...tagOf(byPurchase) })
          const sold = await requestFromCloud(each, atTill.names[0] ?? {})
          expect([sold.authorized, sold.reason], JSON.stringify({ each, policy })).toEqual([
            named.authorized,
            named.reason,
          ])
          requests.push({ each, named, whole, byReplica, byReceipt, ofTill, forTill, tagOf })
        }
        await offline()
        for (const { forTill } of requests) await sellAtTill(forTill)
        if (isStale) store.world.sleep(20 * 60_000)
        for (const { each, named, byReplica } of requests) {
          const agent = await requestFromAgent(each, { receipt: byReplica.receipt, ...byReplica.names[0] })
          expect(agent).not.toHaveProperty('unknownFacts')
          expect(expectEqualOrStricter({ each, policy }, named, agent)).toBe('same')
          counts.released += agent.authorized ? 1 : 0
        }
        for (const { each, named, ofTill, forTill } of requests) {
          const known = await requestFromAgent(each, { receipt: ofTill.receipt, ...ofTill.names[0] })
          expect(expectEqualOrStricter({ each, policy }, named, known)).toBe('same')
          const unknown = await requestFromAgent(each, inOtherCase(forTill[0]?.name ?? {}))
          counts.tills += expectEqualOrStaff({ each, policy }, named, unknown) === 'same' ? 1 : 0
        }
        // Without the replica, the agent decides by the receipts alone.
        store.agent.items.reset()
        for (const { each, whole, byReceipt, tagOf } of requests) {
          const agent = await requestFromAgent(each, { receipt: byReceipt.receipt, ...tagOf(byReceipt) })
          counts[expectEqualOrStricter({ each, policy }, whole, agent)]++
        }
      },
    ),
    { numRuns, seed: 7, endOnFailure: true },
  )
  return counts
}

describe('cloud and agent give the same answer by item, purchase, replica, receipt and till, or the agent is stricter', () => {
  it('in some cases', async () => {
    const counts = await compareRandomCases(4)
    expect(counts.released).toBeGreaterThan(1)
    expect(counts.tills).toBeGreaterThan(3)
    expect(counts.same).toBeGreaterThan(5)
  })

  it('in many cases', EXTENDED, async () => {
    const counts = await compareRandomCases(12)
    expect(counts.released).toBeGreaterThan(5)
    expect(counts.same).toBeGreaterThan(15)
  })
})

it('a rule applies to every spelling of its category or brand, in cloud, agent and explanation', async () => {
  const anySpelling = anyTypedText.chain((text) => fc.tuple(anyVariantOf(text), anyVariantOf(text)))
  const self = { detach_hard_tag: ['self_service', 'staff_assisted'] }
  const ruleFor = {
    category: (ruled: string) => ({
      allowedActionsByCategory: { '*': self, [ruled]: { detach_hard_tag: ['staff_assisted'] } },
    }),
    brand: (ruled: string) => ({ allowedActionsByCategory: { '*': self }, requiresStaffForBrand: [ruled] }),
  }
  const REASON = { category: 'workflow_not_allowed', brand: 'manual_assistance_required' }
  await fc.assert(
    fc.asyncProperty(anySpelling, fc.constantFrom('category', 'brand'), async ([ruled, typed], kind) => {
      const policy = ProtectionPolicy.parse(ruleFor[kind](ruled))
      await online()
      await setPolicy(policy)
      const goods = { category: 'hemden', brand: 'Nordhof', isExpensive: false, [kind]: typed }
      const each: Case = { lane: 'detacher', goods: [goods], isWithOperator: false }
      const [byItem, byReplica, byReceipt] = [await buy(each), await buy(each), await buy(each)]
      const answers = [await requestFromCloud(each, byItem.names[0] ?? {})]
      await offline()
      answers.push(await requestFromAgent(each, { receipt: byReplica.receipt, ...byReplica.names[0] }))
      store.agent.items.reset()
      answers.push(await requestFromAgent(each, { receipt: byReceipt.receipt, ...byReceipt.names[0] }))
      const facts = store.agent.trust.policy?.devices.find(({ deviceId }) => deviceId === device('detacher'))
      if (!facts) throw new Error('the policy does not list the detacher')
      const scenario = { device: facts, action: ACTION.detacher, priceCent: 100, hasOperator: false, ...goods }
      const { stages } = explainPolicy(scenario, policy)
      answers.push(stages.find(({ stage }) => stage === 'fresh') ?? {})
      const refused = { authorized: false, reason: REASON[kind] }
      expect(answers, JSON.stringify({ ruled, typed })).toMatchObject([refused, refused, refused, refused])
    }),
    { numRuns: 8, seed: 11, endOnFailure: true },
  )
})
