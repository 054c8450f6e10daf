import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashSecret, newSecret } from '../../edge-agent/identity/identity.ts'
import { SimulatedTill, WAITING_LIMIT } from '../../simulators/services/till.ts'
import { openStore, type TestStore } from '../support/store.ts'

let store: TestStore
let till: SimulatedTill
let isAway = false
beforeAll(async () => {
  store = await openStore()
  const { storeId } = store.shop
  const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
  const tillSales = { agents: [store.identity.agentId] }
  await store.drive(store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } }))
  await store.until('the policy', () => store.agent.trust.policy?.policy.tillSales.agents.length === 1)
  const credential = newSecret('pair', store.world.random)
  store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till', 0, ['sales', 'returns'])
  till = new SimulatedTill({
    tillId: 'till-1',
    firstNumber: 1,
    nowMs: () => store.world.clock.wall(),
    send: async (path, body) => {
      if (isAway) throw new Error('connection refused')
      return store.local(`/v1/${path}`, { method: 'POST', body, headers: { authorization: `Bearer ${credential}` } })
    },
  })
})
afterAll(() => store.stop())

const newItem = async () => {
  const { epc } = await store.drive(store.shop.newItem(store.shop.products[0]))
  await store.until('the item', () => store.agent.items.find('epc', epc) !== undefined)
  return epc
}
const piece = (epc?: string) => ({ name: 'Jacke', priceCent: 8_990, epc })

it('sells, takes back and voids at an agent', async () => {
  const [a, b] = [await newItem(), await newItem()]
  expect(await till.sell([piece(a), piece()])).toEqual([`sale 1 recorded, on its way to the cloud: ${a} paid`])
  expect(await till.takeBack([a])).toEqual([`return R-till-1-2 recorded, on its way to the cloud: ${a} sellable`])
  expect(await till.sell([piece(b)])).toEqual([`sale 3 recorded, on its way to the cloud: ${b} paid`])
  expect(await till.voidLast()).toEqual([`void of sale 3 recorded, on its way to the cloud: ${b} cancelled`])
  expect(await till.voidLast()).toEqual([expect.stringMatching(/no sale to void/)])
  expect(await till.sell([piece(b)])).toEqual([expect.stringMatching(`${b} paid`)])
  expect((await till.sell([piece(b)]))[1]).toMatch(/the till warns: .*sold before/)
})

it('keeps what got no answer, and sends it in its order', async () => {
  const [a, b] = [await newItem(), await newItem()]
  await till.cut(true)
  expect(await till.sell([piece(a)])).toEqual([expect.stringMatching(/^sale \d+ waits: the agent did not answer/)])
  await till.voidLast()
  isAway = true
  expect(await till.cut(false)).toHaveLength(2)
  await till.sell([piece(b)])
  expect(till.waiting).toBe(3)
  isAway = false
  expect((await till.cut(false)).filter((line) => line.includes('recorded'))).toHaveLength(3)
  expect(till.waiting).toBe(0)
  expect([a, b].map((epc) => store.agent.items.find('epc', epc)?.status)).toEqual(['cancelled', 'paid'])
})

it('keeps a limited number of reports', async () => {
  await till.cut(true)
  for (let n = 0; n < WAITING_LIMIT; n++) await till.sell([piece()])
  expect(await till.sell([piece()])).toEqual([expect.stringMatching(/1000 reports wait/)])
})
