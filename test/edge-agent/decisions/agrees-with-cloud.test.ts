import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { anyPolicy, RULED_BRANDS, RULED_CATEGORIES } from '../../support/random-policies.ts'
import { openStore, type LaneName, type TestStore } from '../../support/store.ts'

/**
 * Compares decisions of the cloud with offline decisions of the agent, for random policies, goods, devices and
 * operators. The cloud decides by item and by purchase. The agent decides by receipt: once with its replica, once
 * without. The decisions must be equal, or the agent's must be stricter and name the missing fact. Each of the four
 * decisions has its own purchase, because a decision uses up the right.
 */

const ACTION = { detacher: 'detach_hard_tag', station: 'deactivate_label', gate: 'authorize_exit' } as const
/** Text that is too long for the QR code, so that the receipt lacks the facts. */
const LONG = 'x'.repeat(100)

interface Goods {
  category: string
  brand: string
  isExpensive: boolean
}
interface Case {
  lane: LaneName
  goods: Goods[]
  isWithOperator: boolean
}

const anyGoods: fc.Arbitrary<Goods> = fc.record({
  category: fc.oneof(fc.constantFrom('hemden', ...RULED_CATEGORIES), fc.constant(`hemden ${LONG}`)),
  brand: fc.oneof(fc.constantFrom('Nordhof', 'luxus ', ...RULED_BRANDS), fc.constant(`Nordhof ${LONG}`)),
  isExpensive: fc.boolean(),
})
const anyCase: fc.Arbitrary<Case> = fc.record({
  lane: fc.constantFrom('detacher', 'detacher', 'station', 'gate'),
  goods: fc.array(anyGoods, { minLength: 1, maxLength: 2 }),
  isWithOperator: fc.constantFrom(false, false, true),
})

let store: TestStore
let operatorId: string
let tags = 0
const { device, offline } = atLanes(() => store)
const ok = (operation: string, body: Json): Promise<Json> => store.drive(store.shop.ok(operation, body))

beforeAll(async () => {
  store = await openStore()
  const { storeId } = store.shop
  operatorId = (await ok('registerOperator', { storeId, name: 'Frau Petersen', pin: '471108' })).operatorId
  await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
})
afterAll(() => store.stop())

async function online(): Promise<void> {
  store.network(true)
  await store.until('online', () => store.agent.link.isOnline && !store.agent.items.isBehind)
}

async function setPolicy({ home: _home, homeEpoch: _epoch, ...policy }: ProtectionPolicy): Promise<void> {
  const { storeId } = store.shop
  await ok('updateProtectionPolicy', { storeId, policy })
  const rulesOf = (known?: ProtectionPolicy) =>
    JSON.stringify([
      known?.allowedActionsByCategory,
      known?.requiresManualOverrideAboveValue,
      known?.requiresStaffForBrand,
    ])
  await store.until(
    'the policy',
    () => rulesOf(store.agent.trust.policy?.policy) === rulesOf(policy as ProtectionPolicy),
  )
}

/** Registers and buys new goods, each with a name that the lane's device can read. */
async function buy({ lane, goods }: Case): Promise<{ purchaseId: string; receipt: string; names: Json[] }> {
  const bySize = store.shop.products.toSorted((a, b) => a.price - b.price)
  const items = goods.map(({ category, brand, isExpensive }) => {
    const id = `E281${String(++tags).padStart(20, '0')}`
    const name = lane === 'station' ? { tagId: `HT-${id}` } : { epc: id }
    return { ean: (isExpensive ? bySize.at(-1) : bySize[0])?.ean, name, category, brand }
  })
  const { storeId } = store.shop
  await ok('registerProtectedItems', { storeId, items: items.map(({ name, ...item }) => ({ ...item, ...name })) })
  const { purchase, receipt } = await store.buy(
    items.map(({ ean, name }) => ({
      ean,
      quantity: 1,
      ...('epc' in name ? { epcs: [name.epc] } : { tagIds: [name.tagId] }),
    })),
  )
  const names = items.map(({ name }) => name)
  const kind = lane === 'station' ? 'tagId' : 'epc'
  await store.until('the replica', () =>
    names.every((name: Json) => store.agent.items.find(kind, name[kind])?.status === 'paid'),
  )
  return { purchaseId: purchase.transactionId, receipt, names }
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

async function requestFromAgent({ lane, isWithOperator }: Case, subject: Json): Promise<Json> {
  const headers: Record<string, string> = {}
  if (isWithOperator) {
    const { body } = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: '471108' } })
    headers['x-untag-operator'] = body.session
  }
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

it(
  'cloud and agent give the same answer by item, purchase, replica and receipt, or the agent is stricter',
  { timeout: 240_000 },
  async () => {
    const counts = { same: 0, stricter: 0, released: 0 }
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
            // A detacher needs the tag in addition to the purchase.
            const tagOf = (bought: { names: Json[] }) => (each.lane === 'detacher' ? bought.names[0] : {})
            const named = await requestFromCloud(each, byItem.names[0] ?? {})
            const whole = await requestFromCloud(each, { purchaseId: byPurchase.purchaseId, ...tagOf(byPurchase) })
            requests.push({ each, named, whole, byReplica, byReceipt, tagOf })
          }
          await offline()
          if (isStale) store.world.sleep(20 * 60_000)
          for (const { each, named, byReplica } of requests) {
            const agent = await requestFromAgent(each, { receipt: byReplica.receipt, ...byReplica.names[0] })
            expect(agent).not.toHaveProperty('unknownFacts')
            expect(expectEqualOrStricter({ each, policy }, named, agent)).toBe('same')
            counts.released += agent.authorized ? 1 : 0
          }
          // Without the replica, the agent decides by the receipts alone.
          store.agent.items.reset()
          for (const { each, whole, byReceipt, tagOf } of requests) {
            const agent = await requestFromAgent(each, { receipt: byReceipt.receipt, ...tagOf(byReceipt) })
            counts[expectEqualOrStricter({ each, policy }, whole, agent)]++
          }
        },
      ),
      { numRuns: 12, seed: 7, endOnFailure: true },
    )
    expect(counts.released).toBeGreaterThan(5)
    expect(counts.same).toBeGreaterThan(15)
    expect(counts.stricter).toBeGreaterThan(0)
  },
)
