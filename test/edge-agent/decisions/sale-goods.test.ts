import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TillReturn, TillSale } from '../../../policy/till-sale.ts'
import { newId } from '../../../policy/ids.ts'
import { GATE_BEHAVIOUR } from '../../../policy/item-status.ts'
import { unusedRights } from '../../../edge-agent/lanes/unused-rights.ts'
import type { Agent } from '../../../edge-agent/runtime.ts'
import type { Json } from '../../support/cloud.ts'
import { addAgent, announceTills, type SecondAgent } from '../../support/second-agent.ts'
import { newEan } from '../../support/shop.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/**
 * Each way in which goods of a sale must stay, however the sale is presented, in the cloud and at an agent without it
 * (ADR till-sales, ADR releases). Cloud and agent must both refuse.
 */

/** Who recorded the sale: the cloud alone, the agent of the devices, or another agent, which announced it. */
type Source = 'cloud' | 'here' | 'peer'
const SOURCES: readonly Source[] = ['cloud', 'here', 'peer']

/** A way to ask for the goods of a sale. */
const ASKS = [
  'receipt at a barrier',
  'receipt with tag',
  'receipt without tag',
  'code at a barrier',
  'code with tag',
  'tag at a gate',
  'tag at a pad',
] as const
type Ask = (typeof ASKS)[number]

interface Sold {
  source: Source
  sale: TillSale
  epc: string
  tagId: string
  ean: string
  code: string
  receipt: string
  purchaseId: string
}

interface Way {
  /** Makes the goods stay. The agents are offline, if `where` is not the cloud. */
  end(sold: Sold): Promise<unknown>
  /** Where it happens. What agents report also reaches the cloud. */
  where: 'cloud' | 'here' | 'peer'
  /** Ways to ask that it stops; default: all. */
  asks?: readonly Ask[]
  /** Of the item. */
  fields?: Json
  /** Age of the sale, ms. */
  ageMs?: number
}

let store: TestStore
let peer: SecondAgent
let number = 0
beforeAll(async () => {
  store = await openStore()
  const { devices, storeId } = store.shop
  const { deviceId } = await call('registerDevice', {
    storeId,
    deviceType: 'exit_gate',
    workflowType: 'automatic_exit',
    name: 'peer',
    canReadUhfRfid: true,
  })
  peer = await addAgent(store, [deviceId])
  const { policy } = await call('fetchProtectionPolicy', { storeId })
  const tillSales = {
    agents: [store.identity.agentId, peer.agent.identity.agentId],
    salesPerHour: 10_000,
    valuePerHour: 1_000_000,
  }
  const allowedActionsByCategory = { ...policy.allowedActionsByCategory, gesperrt: {} }
  await call('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales, allowedActionsByCategory } })
  await call('updateDevice', {
    deviceId: devices.self_checkout_detacher,
    workflowType: 'pos_integrated',
    tillId: 'till-1',
  })
  await store.until('the policy', () => {
    const isNamed = ({ trust }: Agent) => trust.policy?.policy.tillSales.agents.length === 2
    const pad = store.agent.trust.policy?.devices.find((each) => each.deviceId === devices.self_checkout_detacher)
    return isNamed(store.agent) && isNamed(peer.agent) && pad?.tillId === 'till-1'
  })
})
afterAll(async () => {
  await peer.stop()
  await store.stop()
})

const call = (operation: string, body: Json): Promise<Json> => store.drive(store.shop.ok(operation, body))
const atStore = (operation: string, body: Json) => call(operation, { storeId: store.shop.storeId, ...body })
const agents = () => [store.agent, peer.agent]

async function online(isOnline: boolean): Promise<void> {
  store.network(isOnline)
  peer.network(isOnline)
  await store.until('the network', () => agents().every(({ link }) => link.isOnline === isOnline))
  if (!isOnline) return
  await store.until('the reports', () => agents().every(({ ledger }) => ledger.journal.waiting === 0))
  for (const { link } of agents()) await store.drive(link.refreshDocuments())
  await store.until('the items', () => agents().every(({ items, trust }) => !items.isBehind && !trust.isBehind))
}

const announce = (from: Agent, to: Agent) => announceTills(store, from, to)

/** Sells one tagged piece of a product of its own. The cloud has the sale, and the agents know its items. */
async function sell(source: Source, { fields = {}, ageMs = 0 }: Partial<Way> = {}): Promise<Sold> {
  await online(true)
  const ean = newEan()
  const id = `E2${String(++number).padStart(22, '0')}`
  const [epc, tagId] = [id, `HT-${id}`]
  const category = fields.category ?? 'bekleidung'
  await call('bulkImportProducts', {
    storeId: store.shop.storeId,
    products: [{ ean, name: 'Jacke', price: 20, vat: 19, category }],
  })
  await atStore('registerProtectedItems', { items: [{ epc, tagId, ean, ...fields }] })
  const find = ({ items }: Agent, status: string) => items.find('epc', epc)?.status === status
  await store.until('the item', () => agents().every((agent) => find(agent, 'sellable')))
  const code = newId('x', store.world)
  const sale: TillSale = {
    saleId: `g${number}`,
    tillId: 'till-1',
    occurredAt: new Date(store.world.clock.wall() - ageMs).toISOString(),
    receiptCodes: [code],
    lines: [{ ean, quantity: 1, priceUnit: 2_000, vat: 19, epcs: [epc] }],
  }
  if (source !== 'cloud') {
    const [from, to] = source === 'here' ? [store.agent, peer.agent] : [peer.agent, store.agent]
    const { warnings } = await store.drive(from.sales.sell(sale))
    expect(warnings.map((warning) => warning.code)).toEqual(ageMs > 0 ? ['sale_too_old'] : [])
    await announce(from, to)
    await store.until('the report', () => from.ledger.journal.waiting === 0)
  }
  const { results } = await atStore('recordSales', { sales: [sale] })
  await store.until('the paid item', () => agents().every((agent) => find(agent, 'paid')))
  const [{ purchaseId, receiptToken: receipt }] = results
  return { source, sale, epc, tagId, ean, code, receipt, purchaseId }
}

const back = (fields: Partial<TillReturn>): TillReturn => ({ returnId: `r${++number}`, ...fields })
const named = ({ sale: { saleId, tillId } }: Sold) => ({ saleId, tillId })
const agentAt = (where: 'here' | 'peer') => (where === 'here' ? store.agent : peer.agent)
const takeBack = (where: 'here' | 'peer', of: (sold: Sold) => Partial<TillReturn>): Way => ({
  where,
  end: (sold) => store.drive(agentAt(where).sales.takeBack(back(of(sold)))),
})
const voidAt = (where: 'here' | 'peer'): Way => ({
  where,
  end: (sold) => store.drive(agentAt(where).sales.void({ saleId: sold.sale.saleId, tillId: 'till-1' }, undefined)),
})
const inCloud = (operation: string, of: (sold: Sold) => Json, fields: Json = {}): Way => ({
  where: 'cloud',
  fields,
  end: (sold) => call(operation, of(sold)),
})
const storeId = () => store.shop.storeId
const recall = (fields: Json): Way =>
  inCloud('recallProducts', ({ ean }) => ({ ean, reason: 'Bruch', ...fields }), fields)
const hold = (of: (sold: Sold) => Json): Way =>
  inCloud('updateItemStatus', (sold) => ({ storeId: storeId(), ...of(sold), itemStatus: 'exception_hold' }))

const STAYING: Record<string, Way> = {
  'recalled product': recall({}),
  'recalled lot': recall({ lot: 'L-7' }),
  'recalled item': recall({ serial: 'S-7' }),
  'hold of the item': hold(({ epc }) => ({ epc })),
  'hold by another name of the tag': hold(({ tagId }) => ({ tagId })),
  'returned by tag in the cloud': inCloud('recordReturns', ({ epc }) => ({
    storeId: storeId(),
    returns: [back({ epcs: [epc], resellable: true })],
  })),
  'returned by tag here': takeBack('here', ({ epc }) => ({ epcs: [epc] })),
  'returned by tag here for sale': takeBack('here', ({ tagId }) => ({ tagIds: [tagId], resellable: true })),
  'returned by tag at another agent': takeBack('peer', ({ epc }) => ({ epcs: [epc] })),
  'returned by tag at another agent for sale': takeBack('peer', ({ epc }) => ({ epcs: [epc], resellable: true })),
  'returned by line here': takeBack('here', (sold) => ({ ...named(sold), lines: [{ lineId: '1', epcs: [sold.epc] }] })),
  'returned whole in the cloud': inCloud('recordReturns', (sold) => ({
    storeId: storeId(),
    returns: [back({ ...named(sold), resellable: true })],
  })),
  'returned whole here': takeBack('here', named),
  'returned whole at another agent': takeBack('peer', named),
  'void in the cloud': inCloud('voidSale', (sold) => ({ storeId: storeId(), ...named(sold) })),
  'void here': voidAt('here'),
  'void at another agent': voidAt('peer'),
}

const BY_SALE = ASKS.filter((ask) => !ask.startsWith('tag'))
const NOT_AT_GATE = ASKS.filter((ask) => ask !== 'tag at a gate')
const WAYS: Record<string, Way> = {
  ...STAYING,
  // Paid goods leave a gate in silence, whatever the rules of their category are.
  'a rule forbids the category': {
    where: 'cloud',
    end: async () => undefined,
    fields: { category: 'gesperrt' },
    asks: NOT_AT_GATE,
  },
  'sold more than a day ago': { where: 'cloud', end: async () => undefined, ageMs: 25 * 3_600_000, asks: NOT_AT_GATE },
  'its receipt was used at a barrier': {
    where: 'here',
    end: async ({ receipt }) =>
      expect(
        await store.authorize({
          deviceId: store.shop.devices.exit_gate,
          protectionAction: 'authorize_exit',
          receipt,
        }),
      ).toMatchObject({ authorized: true }),
    asks: ['receipt at a barrier', 'code at a barrier'],
  },
  // The last one: time passes.
  expired: { where: 'here', end: async () => store.world.sleep(25 * 3_600_000), asks: BY_SALE },
}

/** Ways that name the sale, and not its tags: an agent that knows the sale only by its receipt knows no tags of it. */
const OF_SALE = new Set([
  'returned whole here',
  'returned whole at another agent',
  'void here',
  'void at another agent',
])

/** What the agent answers. A text that it does not understand is refused. */
async function askAgent(ask: Ask, { receipt, epc, tagId, code }: Sold): Promise<Json> {
  const { exit_gate: gate, pos_deactivator: station, self_checkout_detacher: pad } = store.shop.devices
  const exit = { deviceId: gate, protectionAction: 'authorize_exit' }
  const release = { deviceId: station, protectionAction: 'deactivate_label' }
  if (ask === 'receipt at a barrier') return store.authorize({ ...exit, receipt })
  if (ask === 'receipt with tag') return store.authorize({ ...release, receipt, tagId })
  if (ask === 'receipt without tag') return store.authorize({ ...release, receipt })
  if (ask === 'code at a barrier') return store.authorize({ ...exit, scan: code })
  if (ask === 'code with tag') return store.authorize({ ...release, scan: code, tagId })
  if (ask === 'tag at a gate') {
    const { status = 'sellable' } = store.agent.items.find('epc', epc) ?? {}
    return { authorized: GATE_BEHAVIOUR[status] === 'pass', reason: status }
  }
  return store.authorize({ deviceId: pad, protectionAction: 'detach_hard_tag', epc })
}

/** What the cloud answers, to an agent that asks. */
async function askCloud(ask: Ask, { receipt, epc, tagId, code }: Sold): Promise<Json> {
  const { exit_gate: gate, pos_deactivator: station, self_checkout_detacher: pad } = store.shop.devices
  const exit = { deviceId: gate, protectionAction: 'authorize_exit' }
  const release = { deviceId: station, protectionAction: 'deactivate_label' }
  const item = (body: Json) => call('verifyProtectedItem', body)
  let receiptToken = receipt
  if (ask.startsWith('code')) {
    const found = await store.drive(store.shop.call('getReceiptFromCode', { storeId: storeId(), code }))
    if (found.status !== 200) return { authorized: false, reason: found.body.code }
    receiptToken = found.body.token
  }
  if (ask.endsWith('at a barrier')) return item({ ...exit, receiptToken })
  if (ask === 'tag at a gate') return item({ ...exit, epc })
  if (ask === 'tag at a pad') return item({ deviceId: pad, protectionAction: 'detach_hard_tag', epc })
  if (ask !== 'receipt without tag') return item({ ...release, receiptToken, tagId })
  const { deactivationAuthorized, ...answer } = await call('verifySecurityTagDeactivation', {
    deviceId: station,
    receiptToken,
  })
  return { ...answer, authorized: deactivationAuthorized }
}

const told = ({ authorized, reason }: Json): string => (authorized ? 'allowed' : String(reason))
async function table(asks: readonly Ask[], of: (ask: Ask) => Promise<Json>): Promise<Record<string, string>> {
  const answers: Record<string, string> = {}
  for (const ask of asks) answers[ask] = told(await of(ask))
  return answers
}
const allowedIn = (answers: Record<string, string>) => Object.keys(answers).filter((ask) => answers[ask] === 'allowed')

/** What an agent without the cloud knows enough for. */
const KNOWN: Record<Source, readonly Ask[]> = {
  cloud: ['receipt at a barrier', 'receipt with tag', 'receipt without tag', 'tag at a gate'],
  here: ASKS,
  peer: ['receipt at a barrier', 'receipt with tag', 'receipt without tag', 'code at a barrier', 'tag at a gate'],
}

/** Makes the goods stay, and lets the agents know. Then they are without the cloud. */
async function end({ where, end: make }: Way, sold: Sold): Promise<void> {
  if (where !== 'cloud') await online(false)
  await make(sold)
  if (where === 'cloud') await online(true)
  await online(false)
  await announce(store.agent, peer.agent)
  await announce(peer.agent, store.agent)
}

/** Ways to ask that a way stops at the agent: it learns the tags of a sale in the cloud with the items. */
function asksOf(source: Source, name: string, { asks = ASKS }: Way): readonly Ask[] {
  return source === 'cloud' && OF_SALE.has(name) ? asks.filter((ask) => BY_SALE.includes(ask)) : asks
}

describe.each(SOURCES)('goods of a sale, recorded by %s', (source) => {
  it('leave, while nothing stops them, as far as they are known', async () => {
    const allowed: Record<'agent' | 'cloud', Ask[]> = { agent: [], cloud: [] }
    for (const ask of ASKS) {
      const [atAgent, inCloud] = [await sell(source), await sell(source)]
      if ((await askCloud(ask, inCloud)).authorized) allowed.cloud.push(ask)
      await online(false)
      if ((await askAgent(ask, atAgent)).authorized) allowed.agent.push(ask)
    }
    expect(allowed).toEqual({ agent: KNOWN[source], cloud: ASKS })
  })

  it.each(Object.entries(WAYS))('stay, in the cloud and without it: %s', async (name, way) => {
    const sold = await sell(source, way)
    await end(way, sold)
    const atAgent = await table(asksOf(source, name, way), (ask) => askAgent(ask, sold))
    expect(allowedIn(atAgent), `agent: ${JSON.stringify(atAgent)}`).toEqual([])
    await online(true)
    const answers = await table(way.asks ?? ASKS, (ask) => askCloud(ask, sold))
    expect(allowedIn(answers), `cloud: ${JSON.stringify(answers)}`).toEqual([])
  })

  it.each(Object.entries(STAYING).filter(([, { where }]) => where !== 'cloud'))(
    'stay, while the report is on its way to the cloud: %s',
    async (name, way) => {
      const sold = await sell(source, way)
      let arrive = (_isArrived: boolean): void => undefined
      const onItsWay = new Promise<boolean>((resolve) => (arrive = resolve))
      store.onFetch((url) => !url.includes('reportProtectionEvents') || onItsWay)
      if (way.where === 'peer') {
        peer.network(false)
        await store.until('the network', () => !peer.agent.link.isOnline)
      }
      await way.end(sold)
      await announce(store.agent, peer.agent)
      await announce(peer.agent, store.agent)
      const answers = await table(asksOf(source, name, way), (ask) => askAgent(ask, sold))
      const { isOnline } = store.agent.link
      store.onFetch(() => true)
      arrive(true)
      expect(isOnline).toBe(true)
      expect(allowedIn(answers), JSON.stringify(answers)).toEqual([])
    },
  )
})

it('a gate lets no goods pass that came back since their release, or with the receipt of their sale', async () => {
  const sold = await sell('cloud')
  const { epc, receipt } = sold
  await online(false)
  const { agent, shop } = store
  const proof = { kind: 'token', aud: 'd', jti: 'release', ith: 'i' } as const
  agent.gates.onReleased({ proof, untilMs: store.world.clock.wall() + 3_600_000, tag: epc })
  const isReleased = () => agent.gates.isReleased(shop.devices.exit_gate, { epc })
  const unused = () => unusedRights({ ...agent, storeId: storeId() }, receipt, 'exit')?.unused
  expect([isReleased(), unused()]).toEqual([true, [0]])
  await store.world.advance(1_000)
  await store.drive(agent.sales.takeBack(back({ epcs: [epc], resellable: true })))
  expect([isReleased(), unused()]).toEqual([false, []])
})

it('a token that was issued before the goods came back releases nothing', async () => {
  const { epc } = await sell('cloud')
  const deviceId = store.shop.devices.exit_gate
  const action = { deviceId, protectionAction: 'authorize_exit', epc }
  const { authorizationToken: token } = await call('verifyProtectedItem', action)
  await online(false)
  await store.world.advance(1_000)
  await store.drive(store.agent.sales.takeBack(back({ epcs: [epc], resellable: true })))
  expect(await store.authorize({ ...action, token })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
})

it('goods of another store leave by no receipt, code or tag', async () => {
  await online(true)
  const [ean, epc, code] = [newEan(), `E3${String(++number).padStart(22, '0')}`, newId('x', store.world)]
  const at = { storeId: store.shop.otherStoreId }
  await call('bulkImportProducts', { ...at, products: [{ ean, name: 'Jacke', price: 20, vat: 19 }] })
  await call('registerProtectedItems', { ...at, items: [{ epc, tagId: `HT-${epc}`, ean }] })
  const lines = [{ ean, quantity: 1, priceUnit: 2_000, vat: 19 as const, epcs: [epc] }]
  const occurredAt = new Date(store.world.clock.wall()).toISOString()
  const sale: TillSale = { saleId: 'other', tillId: 'till-1', occurredAt, receiptCodes: [code], lines }
  const { results } = await call('recordSales', { ...at, sales: [sale] })
  const [{ purchaseId, receiptToken: receipt }] = results
  const sold: Sold = { source: 'cloud', sale, epc, tagId: `HT-${epc}`, ean, code, receipt, purchaseId }
  expect(allowedIn(await table(ASKS, (ask) => askCloud(ask, sold)))).toEqual([])
  await online(false)
  expect(allowedIn(await table(ASKS, (ask) => askAgent(ask, sold)))).toEqual([])
})
