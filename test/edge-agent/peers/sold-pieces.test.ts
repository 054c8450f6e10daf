import { expect, it } from 'vitest'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import { encodeSgtin, splitGtin14 } from '../../../policy/gs1/sgtin.ts'
import { productHash } from '../../../policy/sold-pieces.ts'
import { saleKeyOf } from '../../../policy/till-sale.ts'
import type { Json } from '../../support/cloud.ts'
import { lanStore, type LanAgent } from '../../support/lan-store.ts'
import { until } from '../../support/receiver.ts'

/** Pieces that tills sold without naming their tags, at several agents without the cloud (`tillSales.passByProduct`). */
const s = lanStore()

let serial = 0
/** Registers tags whose EPC names the first product. Then the cloud is cut. */
async function openGates(count: number): Promise<string[]> {
  const { products } = s.shop
  const epcs: string[] = []
  for (let i = 0; i < count; i++) {
    const parts = splitGtin14(`0${products[0].ean}`, 7)
    const encoded = parts && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...parts, serial: String(++serial) })
    if (!encoded?.ok) throw new Error('no SGTIN')
    await s.shop.newItem(products[0], { epc: encoded.hex })
    epcs.push(encoded.hex)
  }
  await setAgents(s.nodes.map((node) => node.agent.identity.agentId))
  for (const node of s.nodes)
    await until('the items', async () => {
      await node.agent.link.poll()
      return epcs.every((epc) => node.agent.items.find('epc', epc) !== undefined)
    })
  await s.cutCloud()
  return epcs
}

async function setAgents(agents: string[]): Promise<void> {
  const { storeId } = s.shop
  const { policy } = await s.shop.ok('fetchProtectionPolicy', { storeId })
  const tillSales = { agents, passByProduct: 15 }
  await s.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } })
  for (const node of s.nodes)
    await until('the policy', async () => {
      await node.agent.link.poll()
      return node.agent.trust.policy?.policy.tillSales.agents.length === agents.length
    })
}

/** Carries a tag past the gate of an agent. Returns true if the gate is silent. */
async function passes(node: LanAgent, epc: string): Promise<boolean> {
  const counts = () => ({ passed: 0, alarms: 0, ...node.agent.gates.counts().get(node.deviceId) })
  const before = counts()
  const tag = { tag: { epc }, rssiDbm: -50, seenAtMs: s.platform.clock.elapsed() }
  node.agent.gates.onReads(node.deviceId, node.deviceId, [tag])
  await until('a decision', async () => counts().passed + counts().alarms > before.passed + before.alarms)
  return counts().alarms === before.alarms
}

async function post(node: LanAgent, path: string, body: Json): Promise<Json> {
  const credential = newSecret('pair', s.platform.random)
  node.agent.ledger.pairings.addProgram(hashSecret(credential), 'till', s.platform.clock.wall(), ['sales', 'returns'])
  const answer = await fetch(`http://127.0.0.1:${node.port}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${credential}` },
    body: JSON.stringify(body),
  })
  return (await answer.json()) as Json
}

let number = 0
const sale = (quantity: number) => ({
  saleId: `q${++number}`,
  occurredAt: new Date(s.platform.clock.wall()).toISOString(),
  lines: [{ ean: s.shop.products[0].ean, quantity, priceUnit: 990, vat: 19 as const }],
})
const product = () => productHash(s.shop.storeId, `0${s.shop.products[0].ean}`)
const leftAt = ({ agent }: LanAgent) => {
  const agents = agent.trust.policy?.policy.tillSales.agents ?? []
  const free = agent.ledger.till.pieces.free(product(), Math.floor(s.platform.clock.wall() / 1_000), agents)
  return free.reduce((sum, { left }) => sum + left, 0)
}
const knows = (node: LanAgent, left: number) => until(`${left} pieces`, async () => leftAt(node) === left)

it('pass once, at whichever gate, if the agents reach each other', async () => {
  const [a = '', b = '', c = ''] = await openGates(3)
  await post(s.home, 'sales', sale(2))
  await knows(s.other, 2)
  expect(await passes(s.other, a)).toBe(true)
  await knows(s.home, 1)
  expect(s.home.agent.items.find('epc', a)?.status).toBe('paid')
  expect(await passes(s.home, b)).toBe(true)
  await knows(s.other, 0)
  expect([await passes(s.other, c), await passes(s.home, c)]).toEqual([false, false])
})

it('pass at an isolated gate up to hardCount', async () => {
  const [a = '', b = '', c = '', d = ''] = await openGates(4)
  await post(s.home, 'sales', sale(2))
  await knows(s.other, 2)
  s.onLan = () => 'cut'
  expect([await passes(s.other, a), await passes(s.other, b)]).toEqual([true, false])
  // The receipt home has no such limit.
  expect([await passes(s.home, c), await passes(s.home, d)]).toEqual([true, true])
  s.onLan = () => 'pass'
  s.home.agent.tillNotices.send()
  await until('the use there', async () => s.home.agent.items.find('epc', a)?.status === 'paid')
  expect(leftAt(s.home)).toBe(0)
})

it('end at all agents when goods of their sale come back at any, also before it is announced', async () => {
  const [a = '', b = ''] = await openGates(2)
  const [first, second] = [sale(2), sale(2)]
  await post(s.home, 'sales', first)
  await knows(s.other, 2)
  const back = (sold: { saleId: string }) => ({
    returnId: `b${sold.saleId}`,
    lines: [{ lineId: '1', quantity: 1 }],
    saleId: sold.saleId,
  })
  await post(s.other, 'returns', back(first))
  await knows(s.home, 0)
  expect([await passes(s.home, a), await passes(s.other, a)]).toEqual([false, false])
  await post(s.other, 'returns', back(second))
  await post(s.home, 'sales', second)
  await until(
    'the sale there',
    async () => s.other.agent.ledger.till.tag(`S${saleKeyOf(s.shop.storeId, second)}`) !== undefined,
  )
  await knows(s.home, 0)
  expect([leftAt(s.other), await passes(s.other, b)]).toEqual([0, false])
})

it('end when a tag that passed comes back at an agent that does not know its sale', async () => {
  const [a = '', b = ''] = await openGates(2)
  await post(s.home, 'sales', sale(3))
  s.onLan = () => 'cut'
  expect(await passes(s.home, a)).toBe(true)
  await post(s.other, 'returns', { returnId: 'unknown', epcs: [a], resellable: true })
  s.onLan = () => 'pass'
  await knows(s.home, 0)
  expect(await passes(s.home, b)).toBe(false)
})

it('count only while the policy names the agent that announced them, and never for longer than it says', async () => {
  await openGates(0)
  await post(s.home, 'sales', sale(1))
  await knows(s.other, 1)
  const { till } = s.other.agent.ledger
  const nowS = Math.floor(s.platform.clock.wall() / 1_000)
  expect(till.pieces.free(product(), nowS, ['agt_x'])).toEqual([])
  const announced = { sale: 'f'.repeat(32), product: 'e'.repeat(32), tag: '', count: 5, exp: nowS + 86_400 }
  s.other.agent.ledger.commits.now(() => till.pieces.receive([announced], 'agt_x', nowS, 60))
  expect(till.pieces.free(announced.product, nowS + 59, ['agt_x'])).toHaveLength(1)
  expect(till.pieces.free(announced.product, nowS + 60, ['agt_x'])).toEqual([])
})

it('leave paid tags, although the cloud has the report of the gate and lacks the sale', async () => {
  const [a = ''] = await openGates(1)
  const sold = sale(1)
  await post(s.home, 'sales', sold)
  await knows(s.other, 1)
  s.home.isCutOff = true
  s.isUp = true
  const { items, ledger, link } = s.other.agent
  const statusIn = (node: LanAgent) => node.agent.items.find('epc', a)?.status
  const cloudHasIt = () =>
    until('the cloud has the row', async () => {
      await link.poll()
      return link.isOnline && ledger.journal.waiting === 0
    })
  await cloudHasIt()
  expect(await passes(s.other, a)).toBe(true)
  await cloudHasIt()
  expect((await s.shop.ok('fetchProtectedItem', { storeId: s.shop.storeId, epc: a })).itemStatus).toBe('sellable')
  expect(statusIn(s.other)).toBe('paid')
  s.home.isCutOff = false
  await until('the items contain it', async () => {
    await s.home.agent.link.poll()
    await link.poll()
    return ledger.till.tag(`E${a}`)?.ver !== null
  })
  const { storeId } = s.shop
  await s.shop.ok('recordReturns', { storeId, returns: [{ returnId: 'I', saleId: sold.saleId }] })
  await until('the return', async () => {
    await link.poll()
    return items.find('epc', a)?.status === 'returned'
  })
})
