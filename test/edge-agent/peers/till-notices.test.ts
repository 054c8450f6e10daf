import { cpSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { expect, it } from 'vitest'
import { newSecret } from '../../../edge-agent/identity/identity.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { createSigner, newKey } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { saleKeyOf, saleTagHash, TillSale } from '../../../policy/till-sale.ts'
import type { Json } from '../../support/cloud.ts'
import { lanStore, type LanAgent } from '../../support/lan-store.ts'
import { lanTills } from '../../support/lan-tills.ts'
import { until } from '../../support/receiver.ts'

const s = lanStore()

const { openTills, post, sale, statusAt, becomes } = lanTills(s)

it('a sale, its return and another sale reach the other gates without the cloud', async () => {
  const [a = '', b = ''] = await openTills(2)
  await post(s.home, 'sales', sale(a, b))
  await becomes(s.other, a, 'paid')
  await becomes(s.other, b, 'paid')
  // Goods may come back at another till, and be sold again at the first one.
  await post(s.other, 'returns', { returnId: 'r1', epcs: [a], resellable: true })
  await becomes(s.home, a, 'sellable')
  expect(statusAt(s.home, b)).toBe('paid')
  expect(await post(s.home, 'sales', sale(a))).toMatchObject({ warnings: [] })
  await becomes(s.other, a, 'paid')
})

it('a sale tells the cloud that its goods came back at another agent, on sale or not', async () => {
  const epcs = await openTills(2)
  for (const [n, epc] of epcs.entries()) {
    await post(s.home, 'sales', sale(epc))
    await becomes(s.other, epc, 'paid')
    await post(s.other, 'returns', { returnId: `mistake${n}`, epcs: [epc], resellable: n === 0 })
    await becomes(s.home, epc, n === 0 ? 'sellable' : 'returned')
    expect(await post(s.home, 'sales', sale(epc))).toMatchObject({ warnings: [] })
  }
  const rows = s.home.agent.ledger.journal.unsent(100).rows.map((row) => row.body.evidence)
  const resold = rows.flatMap((row) => (row?.kind === 'sale' ? [row.resold] : []))
  const hashOf = (epc: string) => [saleTagHash({ kind: 'epc', id: epc, isValid: true })]
  expect(resold).toEqual(epcs.flatMap((epc) => [undefined, hashOf(epc)]))
})

it('an agent whose data folder comes from an older copy learns with the next notice what it had acknowledged', async () => {
  const [a = '', b = '', c = ''] = await openTills(3)
  await s.kill(s.other)
  const copy = `${s.other.folder}-copy`
  cpSync(s.other.folder, copy, { recursive: true })
  await s.run(s.other)
  await s.ready(s.other)
  await post(s.home, 'sales', sale(a, b))
  await post(s.home, 'returns', { returnId: 'r1', epcs: [b] })
  await becomes(s.other, b, 'returned')
  await s.kill(s.other)
  rmSync(s.other.folder, { recursive: true })
  cpSync(copy, s.other.folder, { recursive: true })
  await s.run(s.other)
  await s.ready(s.other)
  expect(statusAt(s.other, a)).toBe('sellable')
  await post(s.home, 'sales', sale(c))
  await becomes(s.other, c, 'paid')
  await becomes(s.other, a, 'paid')
  expect(statusAt(s.other, b)).toBe('returned')
})

it.each(['returned', 'cancelled'] as const)(
  'goods that were %s, are sold here and come back at an agent that hears of the sale later, alarm at both',
  async (status) => {
    const [epc = ''] = await openTills(1)
    const first = sale(epc)
    await post(s.home, 'sales', first)
    await becomes(s.other, epc, 'paid')
    if (status === 'returned') await post(s.home, 'returns', { returnId: 'first', epcs: [epc] })
    else await post(s.home, 'sales/void', { saleId: first.saleId })
    await becomes(s.other, epc, status)
    s.onLan = () => 'cut'
    const again = sale(epc)
    await post(s.home, 'sales', again)
    expect(statusAt(s.home, epc)).toBe('paid')
    await post(s.other, 'returns', { returnId: 'back', epcs: [epc], resellable: true })
    s.onLan = () => 'pass'
    const saleKey = saleKeyOf(s.shop.storeId, TillSale.parse(again))
    await until('both notices', async () => {
      const hasHeard = s.other.agent.ledger.till.tag(`S${saleKey}`) !== undefined
      return hasHeard && statusAt(s.home, epc) !== 'paid'
    })
    expect(statusAt(s.other, epc)).not.toBe('paid')
  },
)

it('a void reaches the other gates, too, and its receipt releases nothing there', async () => {
  const [epc = ''] = await openTills(1)
  const sold = sale(epc)
  await post(s.home, 'sales', sold)
  await becomes(s.other, epc, 'paid')
  await post(s.home, 'sales/void', { saleId: sold.saleId })
  await becomes(s.other, epc, 'cancelled')
  const denied = s.home.agent.ledger.till.changesAfter(0).tags.find(({ name }) => name.startsWith('R'))
  expect(s.other.agent.ledger.claims.isDenied(denied?.name.slice(1) ?? '')).toBe(true)
})

it('a sale sent as void to an agent that did not take it counts at both, also before the notice', async () => {
  const [a = '', b = ''] = await openTills(2)
  const sold = sale(a)
  const { receiptToken } = await post(s.home, 'sales', sold)
  await becomes(s.other, a, 'paid')
  expect(await post(s.other, 'sales', { ...sold, state: 'void' })).toMatchObject({ warnings: [] })
  await becomes(s.home, a, 'cancelled')
  expect(statusAt(s.other, a)).toBe('cancelled')
  const early = sale(b)
  await post(s.other, 'sales', { ...early, state: 'void' })
  await post(s.home, 'sales', early)
  await becomes(s.other, b, 'cancelled')
  await becomes(s.home, b, 'cancelled')
  expect(receiptToken).toEqual(expect.any(String))
})

it('a whole return that another agent announced ends the sale that arrives afterwards', async () => {
  const [epc = ''] = await openTills(1)
  const sold = sale(epc)
  await post(s.home, 'returns', { returnId: 'whole-early', saleId: sold.saleId })
  await until(
    'the return there',
    async () => s.other.agent.ledger.till.tag(`R${saleKeyOf(s.shop.storeId, sold as TillSale)}`) !== undefined,
  )
  await post(s.other, 'sales', sold)
  expect(statusAt(s.other, epc)).toBe('returned')
  expect(statusAt(s.home, epc)).not.toBe('paid')
})

it('a sale beyond the limits gives no rights at another agent that gets it, too', async () => {
  const [epc = ''] = await openTills(1, undefined, { valuePerHour: 1 })
  const sold = { ...sale(epc), receiptCodes: ['code-over-limit'] }
  for (const node of [s.home, s.other, s.other]) {
    const answer = await post(node, 'sales', sold)
    expect(answer.receiptToken).toBeUndefined()
    expect(answer.warnings.map(({ code }: Json) => code)).toContain('sale_over_limit')
  }
  expect([statusAt(s.home, epc), statusAt(s.other, epc)]).toEqual(['sellable', 'sellable'])
})

it('a void or a whole return at an agent that did not take the sale counts at both', async () => {
  const [a = '', b = '', c = ''] = await openTills(3)
  const sold = sale(a, b)
  await post(s.home, 'sales', sold)
  await becomes(s.other, a, 'paid')
  const answer = await post(s.other, 'sales/void', { saleId: sold.saleId })
  expect(answer).toMatchObject({ waiting: false })
  expect(answer.items.map(({ tag }: Json) => tag).sort()).toEqual([a, b].sort())
  expect([statusAt(s.other, a), statusAt(s.other, b)]).toEqual(['cancelled', 'cancelled'])
  await becomes(s.home, a, 'cancelled')
  await becomes(s.home, b, 'cancelled')
  const whole = sale(c)
  await post(s.home, 'sales', whole)
  await becomes(s.other, c, 'paid')
  await post(s.other, 'returns', { returnId: 'whole', saleId: whole.saleId, resellable: true })
  await becomes(s.home, c, 'sellable')
  // Goods that were sold again since belong to the new sale.
  await post(s.home, 'sales', sale(c))
  await becomes(s.other, c, 'paid')
  await post(s.other, 'sales/void', { saleId: whole.saleId })
  expect([statusAt(s.other, c), statusAt(s.home, c)]).toEqual(['paid', 'paid'])
})

it('a void that is announced before its sale ends the sale when its notice comes', async () => {
  const [epc = '', later = ''] = await openTills(2)
  const { till, commits } = s.other.agent.ledger
  const first = sale(epc)
  expect(await post(s.other, 'sales/void', { saleId: first.saleId })).toMatchObject({ waiting: true })
  const key = saleKeyOf(s.shop.storeId, { saleId: first.saleId })
  await until('the void', async () => s.home.agent.ledger.till.tag(`R${key}`) !== undefined)
  // The agent that took the sale alarms at once.
  await post(s.home, 'sales', first)
  expect(statusAt(s.home, epc)).toBe('cancelled')
  // A notice of a paid tag comes to an agent that has the void.
  const second = saleKeyOf(s.shop.storeId, { saleId: 'apart' })
  await post(s.other, 'sales/void', { saleId: 'apart' })
  const notice = { name: `E${later}`, status: 'paid' as const, rank: 1, epoch: 0, ver: null, sale: second }
  commits.now(() => {
    till.receiveTag(notice, s.home.agent.identity.agentId, s.platform.clock.wall(), () => true)
    till.endSale(
      second,
      () => true,
      () => false,
    )
  })
  expect(statusAt(s.other, later)).toBe('cancelled')
  await becomes(s.home, later, 'cancelled')
})

it('the code of a sale whose goods came back at another agent opens no barrier', async () => {
  const [epc = ''] = await openTills(1)
  const code = `C-${newSecret('pair', s.platform.random)}`
  await post(s.home, 'sales', { ...sale(epc), receiptCodes: [code] })
  await becomes(s.other, epc, 'paid')
  await post(s.other, 'returns', { returnId: 'there', epcs: [epc] })
  await becomes(s.home, epc, 'returned')
  for (const node of [s.home, s.other]) {
    const found = await node.agent.lanes.saleOfCode('gate', code, true)
    const request = { deviceId: node.deviceId, action: 'authorize_exit' as const, identifiers: {} }
    const presented = found.kind === 'sale' ? { sale: found.sale } : {}
    expect(await node.agent.lanes.request({ ...request, ...presented })).toMatchObject({ authorized: false })
  }
})

it('a sale that is repeated at another agent does not sell goods again that came back', async () => {
  const [epc = ''] = await openTills(1)
  const sold = sale(epc)
  await post(s.home, 'sales', sold)
  await post(s.home, 'returns', { returnId: 'back', epcs: [epc], resellable: true })
  await becomes(s.other, epc, 'sellable')
  expect((await post(s.other, 'sales', sold)).warnings).toEqual([])
  expect([statusAt(s.other, epc), statusAt(s.home, epc)]).toEqual(['sellable', 'sellable'])
  // A new sale counts.
  await post(s.other, 'sales', sale(epc))
  await becomes(s.home, epc, 'paid')
})

it('neither the highest rank nor what an agent said before it was revoked mutes a later report', async () => {
  const [epc = '', other = ''] = await openTills(2)
  const { till } = s.home.agent.ledger
  const tag = { name: `E${epc}`, status: 'sellable' as const, rank: 2 ** 31, epoch: 0, ver: null, sale: null }
  s.home.agent.ledger.commits.now(() => void till.receiveTag(tag, s.other.agent.identity.agentId, 1, () => true))
  await post(s.home, 'sales', sale(epc))
  await post(s.home, 'sales', sale(other))
  await becomes(s.other, epc, 'paid')
  await becomes(s.other, other, 'paid')
  const known = { ...tag, name: `E${'9'.repeat(24)}`, rank: 1_000 }
  const later = { ...known, status: 'paid' as const, rank: 1 }
  s.home.agent.ledger.commits.now(() => {
    till.receiveTag(known, 'revoked', 1, () => true)
    expect(till.receiveTag(later, 'honest', 2, (sender) => sender !== 'revoked')).toBe(true)
  })
  expect(till.tag(known.name)).toMatchObject({ status: 'paid', sender: 'honest' })
})

it('what the items contained before a sale is older than this sale, although its notice comes later', async () => {
  const [epc = ''] = await openTills(1)
  s.onLan = () => 'cut'
  s.isUp = true
  await post(s.home, 'sales', sale(epc))
  await post(s.home, 'returns', { returnId: 'back', epcs: [epc] })
  await until('the return in the cloud', async () => {
    await s.home.agent.link.poll()
    return s.home.agent.ledger.journal.waiting === 0
  })
  const later = await s.shop.newItem(s.shop.products[0])
  await until('the return, and a later item, there', async () => {
    await s.other.agent.link.poll()
    return statusAt(s.other, epc) === 'returned' && statusAt(s.other, later.epc) === 'sellable'
  })
  await s.cutCloud()
  await post(s.other, 'sales', sale(epc))
  s.onLan = () => 'pass'
  await becomes(s.home, epc, 'paid')
  await until('all notices', async () => s.home.agent.tillNotices.acknowledged >= s.home.agent.ledger.till.lastChange)
  expect(statusAt(s.other, epc)).toBe('paid')
})

it('thousands of tags and their places in the items reach the other agent in portions', async () => {
  await openTills(0)
  const count = 3_000
  const { commits, till } = s.home.agent.ledger
  const name = (n: number) => `E${n.toString(16).toUpperCase().padStart(24, '3')}`
  commits.now(() => {
    for (let n = 0; n < count; n++) till.saveTag(name(n), 'paid', s.platform.clock.wall(), 1)
  })
  s.home.agent.tillNotices.send()
  const there = () => s.other.agent.ledger.till
  await until('the tags', async () => there().tag(name(count - 1)) !== undefined)
  commits.now(() => till.acknowledge(1, [0, 7]))
  s.home.agent.tillNotices.send()
  await until('the places', async () => {
    for (let n = 0; n < count; n++) if (there().tag(name(n))?.ver !== 7) return false
    return true
  })
})

it('the code of a sale opens one barrier of all agents, once, without the cloud', async () => {
  await openTills(0)
  const code = `C-${newSecret('pair', s.platform.random)}`
  await post(s.home, 'sales', {
    ...sale(),
    lines: [{ name: 'Milch', quantity: 1, priceUnit: 99, vat: 7 }],
    receiptCodes: [code],
  })
  const find = (node: LanAgent) => node.agent.lanes.saleOfCode('gate', code, true)
  await until('the code there', async () => (await find(s.other)).kind === 'sale')
  const [here, there] = [await find(s.home), await find(s.other)]
  expect(here).toEqual(there)
  const presented = here.kind === 'sale' ? { sale: here.sale } : {}
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) => {
      const node = n % 2 === 0 ? s.home : s.other
      return node.agent.lanes.request({
        deviceId: node.deviceId,
        action: 'authorize_exit',
        identifiers: {},
        ...presented,
      })
    }),
  )
  // Requests at one gate at the same time share their answer.
  expect(answers.filter(({ authorized }) => authorized)).toHaveLength(4)
  expect(s.home.moved + s.other.moved).toBe(1)
})

it('a void that came before its sale counts at the agents that heard of it', async () => {
  const [a = '', b = ''] = await openTills(2)
  const [first, second] = [sale(a), sale(b)]
  for (const { saleId } of [first, second]) await post(s.home, 'sales/void', { saleId })
  await until('the voids there', async () => s.other.agent.ledger.till.tag(denied()) !== undefined)
  expect(await post(s.other, 'sales', first)).toMatchObject({ items: [{ tag: a, itemStatus: 'cancelled' }] })
  await becomes(s.home, a, 'cancelled')
  // The other agent does not hear of the void in time.
  s.onLan = () => 'cut'
  s.other.agent.ledger.till.saveTag(`E${b}`, 'paid', s.platform.clock.wall(), 1)
  await post(s.home, 'sales', second)
  s.onLan = () => 'pass'
  await becomes(s.other, b, 'cancelled')
  expect(statusAt(s.home, b)).toBe('cancelled')
})
const denied = () =>
  s.home.agent.ledger.till.changesAfter(0).tags.findLast(({ name }) => name.startsWith('R'))?.name ?? ''

it('goods that came back at another till stay here, although its agent hears of their sale later', async () => {
  const [epc = ''] = await openTills(1)
  s.onLan = () => 'cut'
  await post(s.home, 'sales', sale(epc))
  expect(await post(s.other, 'returns', { returnId: 'r9', epcs: [epc] })).toMatchObject({
    items: [{ tag: epc, itemStatus: 'returned' }],
  })
  s.onLan = (url) => (url.includes(String(s.home.port)) ? 'cut' : 'pass')
  await until('the sale there', async () => s.sent.some(({ url }) => url.includes('till-notices')))
  expect(statusAt(s.other, epc)).toBe('returned')
  s.onLan = () => 'pass'
  await becomes(s.home, epc, 'returned')
})

it('is repeated until the other agent has it, also after restarts of both', async () => {
  const [a = '', b = ''] = await openTills(2)
  await s.kill(s.other)
  await post(s.home, 'sales', sale(a))
  await s.kill(s.home)
  await s.run(s.home)
  await s.run(s.other)
  await becomes(s.other, a, 'paid')
  s.onLan = (url) => (url.includes('till-notices') ? 'lose answer' : 'pass')
  await post(s.home, 'sales', sale(b))
  await becomes(s.other, b, 'paid')
  s.onLan = () => 'pass'
})

it('is announced after a restart, although others have reported the tags of all earlier notices', async () => {
  const [a = '', b = ''] = await openTills(2)
  await post(s.home, 'sales', sale(a))
  await becomes(s.other, a, 'paid')
  await post(s.other, 'returns', { returnId: 'r5', epcs: [a] })
  await becomes(s.home, a, 'returned')
  const { ledger } = s.home.agent
  await ledger.commits.durably(() => ledger.metadata.set(`till_notice ${s.other.agent.identity.agentId}`, '1'))
  await s.kill(s.home)
  await s.run(s.home)
  await s.home.agent.sales.sell(TillSale.parse(sale(b)))
  await becomes(s.other, b, 'paid')
})

it('counts until the items of the agent contain it, and then the cloud counts', async () => {
  const [epc = ''] = await openTills(1)
  await post(s.home, 'sales', sale(epc))
  await becomes(s.other, epc, 'paid')
  s.isUp = true
  await until('the sale in the cloud', async () => {
    await s.home.agent.link.poll()
    return s.home.agent.ledger.journal.waiting === 0
  })
  await s.shop.ok('updateItemStatus', { storeId: s.shop.storeId, epc, itemStatus: 'returned' })
  for (const node of s.nodes)
    await until('the return', async () => {
      await node.agent.link.poll()
      return statusAt(node, epc) === 'returned'
    })
  await s.shop.ok('updateItemStatus', { storeId: s.shop.storeId, epc, itemStatus: 'sellable' })
  for (const node of s.nodes)
    await until('on sale again', async () => {
      await node.agent.link.poll()
      return statusAt(node, epc) === 'sellable'
    })
})

it('gets its position from the acknowledgement of the cloud, so that a later change there counts', async () => {
  const [epc = ''] = await openTills(1)
  await post(s.home, 'sales', sale(epc))
  await becomes(s.other, epc, 'paid')
  const key = `E${epc}`
  expect(s.other.agent.ledger.till.tag(key)?.ver).toBe(null)
  s.isUp = true
  await until('the sale in the cloud', async () => {
    await s.home.agent.link.poll()
    return s.home.agent.ledger.journal.waiting === 0
  })
  await until('its position there', async () => s.other.agent.ledger.till.tag(key)?.ver !== null)
})

it('is refused from a stranger, and from an agent that the policy does not name', async () => {
  const [epc = ''] = await openTills(1, [s.other.agent.identity.agentId])
  const { storeId } = s.shop
  const nowS = Math.floor(s.platform.clock.wall() / 1_000)
  const claims = {
    aud: storeId,
    iat: nowS,
    exp: nowS + 60,
    iss: s.home.agent.identity.agentId,
    tags: [{ name: `E${epc}`, status: 'paid' as const, rank: 1, epoch: 0, ver: null }],
  }
  const send = async (notice: string) => {
    const answer = await fetch(`http://127.0.0.1:${s.other.port}/v1/till-notices`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ notice }),
    })
    return ((await answer.json()) as Json).code
  }
  const { x, secret } = newKey(s.platform.random)
  expect(await send(signDocument(DOCUMENT_KINDS.tillNotice, claims, createSigner(x, secret)))).toBe(
    'notice_not_genuine',
  )
  const { identity } = s.home.agent
  const unnamed = createSigner(identity.x, Buffer.from(identity.secret, 'base64url'))
  expect(await send(signDocument(DOCUMENT_KINDS.tillNotice, claims, unnamed))).toBe('sales_refused')
  expect((await post(s.home, 'sales', sale(epc))).code).toBe('sales_not_allowed')
  expect(statusAt(s.other, epc)).toBe('sellable')
})

it('are checked a few at a time, and bodies that arrive slowly take no place of others', async () => {
  await openTills(0)
  const body = JSON.stringify({ notice: 'x'.repeat(60_000) })
  const send = async () => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`http://127.0.0.1:${s.home.port}/v1/till-notices`, { method: 'POST', headers, body })
    await answer.text()
    return answer.status
  }
  const unfinished = Array.from({ length: 4 }, () => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const sent = request({ port: s.home.port, path: '/v1/till-notices', method: 'POST', headers })
    sent.on('error', () => undefined)
    sent.write(body.slice(0, 100))
    return sent
  })
  expect(await send()).toBe(403)
  const statuses = await Promise.all(Array.from({ length: 12 }, send))
  for (const status of statuses) expect([403, 429]).toContain(status)
  await until('free places', async () => (await send()) === 403)
  for (const each of unfinished) each.destroy()
})
