import { afterEach, describe, expect, it } from 'vitest'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import { WAITING_BYTES_LIMIT } from '../../../edge-agent/decisions/queue-shares.ts'
import type { TillRight } from '../../../edge-agent/ledger/pairings.ts'
import type { Json } from '../../support/cloud.ts'
import { fakeReader } from '../../support/fake-reader.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { saleTagHash } from '../../../policy/till-sale.ts'

describe('a till at an agent', () => {
  let store: TestStore
  let reader: ReturnType<typeof fakeReader>
  let till: Record<string, string>
  afterEach(async () => {
    expect(store.shop.cloud.errors).toEqual([])
    await store.stop()
  })

  function pair(...rights: TillRight[]): Record<string, string> {
    const credential = newSecret('pair', store.world.random)
    store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till 3', store.world.clock.wall(), rights)
    return { authorization: `Bearer ${credential}` }
  }

  async function open(): Promise<void> {
    reader = fakeReader()
    store = await openStore({ reader: { device: reader.device, antennas: { inside: [1, 2], outside: [3] } } })
    till = pair('sales', 'returns')
    await allow([store.agent.identity.agentId])
  }
  async function allow(agents: string[], limits: Json = {}): Promise<void> {
    const { storeId } = store.shop
    const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
    await store.drive(
      store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales: { agents, ...limits } } }),
    )
    const current = () => store.agent.trust.policy?.policy.tillSales
    await store.until(
      'the policy',
      () =>
        JSON.stringify(current()?.agents) === JSON.stringify(agents) &&
        Object.entries(limits).every(([name, value]) => (current() as Json)[name] === value),
    )
  }
  const product = () => store.shop.products[0]
  const newItem = async (fields: Json = {}) => {
    const { epc } = await store.drive(store.shop.newItem(product(), fields))
    await store.until(
      'the replica',
      () => store.agent.items.find('epc', epc) !== undefined && store.agent.items.confirmedMs > 0,
    )
    return epc
  }
  const see = (epc: string, antenna: number) =>
    reader.see([{ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() }])
  const carryOut = async (epc: string) => {
    see(epc, 1)
    for (let i = 0; i < 3; i++) {
      await store.world.advance(260)
      see(epc, 3)
    }
    await store.world.advance(60)
  }
  const sirens = () => store.boards.gate.log.filter((change) => change.coil === 1 && change.on).length
  const cut = async () => {
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
  }
  const join = async (limitMs?: number) => {
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline, limitMs)
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
  }
  let number = 0
  const sale = (epcs: string[], fields: Json = {}): Json => ({
    saleId: String(++number),
    tillId: 'till-3',
    occurredAt: new Date(store.world.clock.wall()).toISOString(),
    lines: epcs.map((epc) => ({ ean: product().ean, quantity: 1, priceUnit: 4_990, vat: 19, epcs: [epc] })),
    ...fields,
  })
  const post = (path: string, body: Json, headers = till) => store.local(path, { method: 'POST', body, headers })
  const purchases = async () => {
    const rows = store.shop.cloud.db.database.reads.selectFrom('till_sale').selectAll().execute()
    return store.drive(rows)
  }

  it('sells ten tagged items without the cloud; they leave silently, one comes back and alarms', async () => {
    await open()
    const epcs: string[] = []
    for (let i = 0; i < 10; i++) epcs.push(await newItem())
    await cut()
    const answer = await post('/v1/sales', sale(epcs))
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ synced: false, warnings: [] })
    expect(answer.body.items.map((item: Json) => item.itemStatus)).toEqual(epcs.map(() => 'paid'))
    for (const epc of epcs) await carryOut(epc)
    expect(sirens()).toBe(0)
    const back = await post('/v1/returns', { returnId: 'R1', epcs: [epcs[3]], resellable: false })
    expect(back.body).toMatchObject({ items: [{ tag: epcs[3], itemStatus: 'returned' }] })
    await store.world.advance(60_000)
    await carryOut(epcs[3] ?? '')
    expect(sirens()).toBe(1)
    await join()
    const [sold] = await purchases()
    expect(sold).toMatchObject({ state: 'paid', till_id: 'till-3', agent_id: store.agent.identity.agentId })
    const status = async (epc: string) =>
      (await store.drive(store.shop.ok('fetchProtectedItem', { storeId: store.shop.storeId, epc }))).itemStatus
    expect([await status(epcs[0] ?? ''), await status(epcs[3] ?? '')]).toEqual(['paid', 'returned'])
    const again = await post('/v1/sales', { ...sale(epcs), saleId: sold?.sale_id })
    expect(again.status).toBe(409)
  })

  it.each(['online', 'offline'])('rings goods up again whose sale was void in the cloud: %s', async (how) => {
    await open()
    const { storeId } = store.shop
    const epc = await newItem()
    const sent = sale([epc])
    const status = (wanted: string) => store.until(wanted, () => store.agent.items.find('epc', epc)?.status === wanted)
    await store.drive(store.shop.ok('recordSales', { storeId, sales: [sent] }))
    await status('paid')
    await store.drive(store.shop.ok('voidSale', { storeId, saleId: sent.saleId, tillId: 'till-3' }))
    await status('cancelled')
    if (how === 'offline') await cut()
    const { body } = await post('/v1/sales', sale([epc]))
    expect(body).toMatchObject({ warnings: [], items: [{ itemStatus: 'paid' }] })
    await carryOut(epc)
    expect(sirens()).toBe(0)
  })

  it.each(['void', 'return'])(
    'a NUL in a %s is refused before it is in the journal, as in the cloud',
    async (where) => {
      await open()
      const a = await newItem()
      const sent = sale([a])
      await post('/v1/sales', sent)
      const answer =
        where === 'void'
          ? await post('/v1/sales/void', { saleId: sent.saleId, tillId: 'till-3', reason: 'x\u0000' })
          : await post('/v1/returns', { returnId: 'R', purchaseId: 'p\u0000', epcs: [a] })
      expect(answer.status).toBe(400)
    },
  )

  it.each([
    ['purchaseId', { purchaseId: 'pur_x' }],
    ['code', { code: '4711' }],
    ['lines', { lines: [{ lineId: '1', quantity: 1 }], epcs: ['30395DFA8340A000000ABCDE'] }],
  ])('a return that names its sale twice is refused, as in the cloud: %s', async (path, more) => {
    await open()
    const sent = sale([await newItem()])
    await post('/v1/sales', sent)
    const request = { returnId: 'R', saleId: sent.saleId, tillId: 'till-3', ...more }
    const answer = await post('/v1/returns', request)
    expect(answer).toMatchObject({ status: 400, body: { details: [{ path }] } })
    await join()
    const { storeId } = store.shop
    const { errors } = await store.drive(store.shop.ok('recordReturns', { storeId, returns: [request] }))
    expect(errors).toMatchObject([{ field: expect.stringContaining(path) }])
  })

  it('takes goods back that were sold while the clock of the machine was ahead', async () => {
    await open()
    const epc = await newItem()
    await cut()
    const wall = store.world.clock.wall()
    await store.restart(() => {
      store.world.setWall(wall + 3_600_000)
      store.world.reboot()
    })
    expect((await post('/v1/sales', sale([epc]))).body).toMatchObject({ items: [{ itemStatus: 'paid' }] })
    store.world.setWall(wall + 60_000)
    await join(3_600_000)
    await store.world.advance(600_000)
    await post('/v1/returns', { returnId: 'R1', epcs: [epc], resellable: true })
    await join(3_600_000)
    await store.world.advance(60_000)
    expect(store.agent.items.find('epc', epc)?.status).toBe('sellable')
  })

  it('takes goods back after a restart without a clock: the cloud, which sold them later by its clock, agrees', async () => {
    await open()
    const epc = await newItem()
    await store.world.advance(60_000)
    await cut()
    await store.world.advance(300_000)
    const sales = [sale([epc])]
    await store.drive(store.shop.ok('recordSales', { storeId: store.shop.storeId, sales }))
    const wall = store.world.clock.wall()
    await store.restart(() => {
      store.world.setWall(wall - 30 * 86_400_000)
      store.world.reboot()
    })
    expect(store.agent.clock.now()).toMatchObject({ trust: 'none' })
    expect(store.agent.clock.now().nowMs).toBeLessThan(wall - 120_000)
    await post('/v1/returns', { returnId: 'R1', epcs: [epc], resellable: true })
    store.world.setWall(wall + 60_000)
    await join(3_600_000)
    const { itemStatus } = await store.drive(store.shop.ok('fetchProtectedItem', { storeId: store.shop.storeId, epc }))
    expect(itemStatus).toBe('sellable')
  })

  it('survives a restart between sale and cloud, and reaches it once', async () => {
    await open()
    const epc = await newItem()
    await cut()
    const sent = sale([epc])
    await post('/v1/sales', sent)
    await store.restart()
    expect(store.agent.items.find('epc', epc)?.status).toBe('paid')
    await join()
    expect(await purchases()).toHaveLength(1)
    expect((await post('/v1/sales', sent)).body).toMatchObject({ synced: true })
    const { repeated } = await store.drive(store.shop.ok('recordSales', { storeId: store.shop.storeId, sales: [sent] }))
    expect(repeated).toBe(1)
  })

  it('hands the tag over to the cloud: a later change there counts', async () => {
    await open()
    const epc = await newItem()
    await post('/v1/sales', sale([epc]))
    await store.until('the sale in the cloud', async () => (await purchases()).length === 1)
    await store.drive(
      store.shop.ok('updateItemStatus', { storeId: store.shop.storeId, epc, itemStatus: 'exception_hold' }),
    )
    await store.until('the hold', () => store.agent.items.find('epc', epc)?.status === 'exception_hold')
  })

  it('knows the other names of a tag: sold by its printed number, silent by its EPC', async () => {
    await open()
    const epc = await newItem({ tagId: 'HT-9001' })
    await store.world.advance(1_000)
    await cut()
    const { body } = await post(
      '/v1/sales',
      sale([], { lines: [{ name: 'Jacke', quantity: 1, priceUnit: 4_990, vat: 19, tagIds: ['ht-9001'] }] }),
    )
    expect(body.items).toEqual([{ lineId: '1', tag: 'ht-9001', itemStatus: 'paid' }])
    await carryOut(epc)
    expect(sirens()).toBe(0)
  })

  it('ends the alarm of goods that are paid while it sounds', async () => {
    await open()
    const epc = await newItem()
    await carryOut(epc)
    const sounds = () => store.boards.gate.log.findLast((change) => change.coil === 1)?.on
    expect(sounds()).toBe(true)
    await post('/v1/sales', sale([epc]))
    await store.world.advance(100)
    expect(sounds()).toBe(false)
  })

  it('voids a sale: its tags alarm, and a void before its sale waits', async () => {
    await open()
    const [first, second] = [await newItem(), await newItem()]
    await cut()
    const [one, two] = [sale([first]), sale([second])]
    await post('/v1/sales', one)
    const { saleId, tillId } = one
    expect((await post('/v1/sales/void', { saleId, tillId })).body).toMatchObject({
      waiting: false,
      items: [{ tag: first, itemStatus: 'cancelled' }],
    })
    await carryOut(first)
    expect(sirens()).toBe(1)
    expect((await post('/v1/sales/void', { saleId: two.saleId, tillId })).body.waiting).toBe(true)
    await post('/v1/sales', two)
    expect(store.agent.items.find('epc', second)?.status).toBe('cancelled')
    await join()
    expect((await purchases()).map((row) => row.sale_id).sort()).toEqual([saleId, two.saleId].sort())
    const { purchases: shown } = await store.drive(
      store.shop.ok('fetchPurchaseHistory', { storeId: store.shop.storeId }),
    )
    expect(shown.filter((p: Json) => p.receipt.till !== undefined).map((p: Json) => p.status)).toEqual([
      'CANCELLED',
      'CANCELLED',
    ])
  })

  it('ends a sale that is open here for all agents when it is voided, and records the paid one as void', async () => {
    await open()
    const epc = await newItem()
    await cut()
    const sent = sale([epc])
    await post('/v1/sales', { ...sent, state: 'open' })
    await post('/v1/sales', { ...sent, state: 'void' })
    const announced = () => store.agent.ledger.till.changesAfter(0).tags.map(({ name }) => name)
    expect(announced().some((name) => name.startsWith('R'))).toBe(true)
    await post('/v1/sales', { ...sent, state: 'open' })
    const { seq } = store.agent.ledger.journal.head
    const paid = await post('/v1/sales', sent)
    expect(paid.body.warnings).toMatchObject([{ code: 'sale_is_void' }])
    expect(paid.body.receiptToken).toBeUndefined()
    expect(store.agent.ledger.journal.head.seq).toBe(seq + 1)
    expect(store.agent.items.find('epc', epc)?.status).toBe('cancelled')
  })

  it('takes back tags of lines with a negative price, and refuses receipts that it cannot verify', async () => {
    await open()
    const [sold, other] = [await newItem(), await newItem()]
    const line = (epc: string, priceUnit: number) => ({ name: 'Hose', quantity: 1, priceUnit, vat: 19, epcs: [epc] })
    const voided = await post('/v1/sales', sale([], { lines: [line(sold, 990), line(sold, -990)] }))
    expect([voided.body.warnings, voided.body.receiptToken]).toEqual([[], undefined])
    expect(store.agent.items.find('epc', sold)?.status).toBe('sellable')
    await post('/v1/sales', sale([other]))
    await post('/v1/sales', sale([], { lines: [line(other, -990)] }))
    expect(store.agent.items.find('epc', other)?.status).toBe('returned')
    const refused = await post('/v1/returns', { returnId: 'unknown', receipt: 'HTTPS://SHOP.EXAMPLE/R/2KCE3IQBE4CE' })
    expect(refused).toMatchObject({ status: 400, body: { details: [{ path: 'receipt' }] } })
  })

  it('outranks what other agents know of a tag that it has forgotten', async () => {
    await open()
    const { till } = store.agent.ledger
    const nowMs = store.world.clock.wall()
    for (let n = 0; n < 5; n++) till.saveTag('Eforgotten', n % 2 === 0 ? 'paid' : 'sellable', nowMs, 1)
    const before = till.tag('Eforgotten')?.rank ?? 0
    till.acknowledge(1, [1, 1])
    const later = nowMs + 14 * 86_400_000
    till.prune(later, later, 1, later)
    expect(till.tag('Eforgotten')).toBeUndefined()
    till.saveTag('Eforgotten', 'returned', later, 2)
    expect(till.tag('Eforgotten')?.rank).toBeGreaterThan(before)
  })

  it('lets a return of goods whose sale it does not know outrank what other agents reported of them', async () => {
    await open()
    const [unseen, seen] = [await newItem(), await newItem()]
    await cut()
    const { till } = store.agent.ledger
    await post('/v1/sales', sale([seen]))
    await post('/v1/returns', { returnId: 'seen', epcs: [seen] })
    await post('/v1/returns', { returnId: 'unseen', epcs: [unseen], resellable: true })
    const rank = (epc: string) => till.tag(`E${epc}`)?.rank ?? 0
    expect(rank(unseen) - rank(seen)).toBeGreaterThan(900)
  })

  it('records a sale that was voided while it was open, and then paid', async () => {
    await open()
    const epc = await newItem()
    await cut()
    const sent = sale([epc])
    await post('/v1/sales', { ...sent, state: 'open' })
    const { saleId, tillId } = sent
    expect((await post('/v1/sales/void', { saleId, tillId })).body.waiting).toBe(true)
    expect((await post('/v1/sales', { ...sent, totalCent: 4_990 })).status).toBe(200)
    expect(store.agent.items.find('epc', epc)?.status).toBe('cancelled')
    await join()
    expect(await purchases()).toMatchObject([{ sale_id: saleId, state: 'void', purchase_id: expect.any(String) }])
  })

  it('sells goods again whose sale it voided, also without network', async () => {
    await open()
    const epc = await newItem()
    await cut()
    const [first, second] = [sale([epc]), sale([epc])]
    await post('/v1/sales', first)
    await post('/v1/sales/void', { saleId: first.saleId, tillId: first.tillId })
    expect(store.agent.items.find('epc', epc)?.status).toBe('cancelled')
    expect((await post('/v1/sales', second)).body.warnings).toEqual([])
    expect(store.agent.items.find('epc', epc)?.status).toBe('paid')
    await join()
    expect(store.agent.items.find('epc', epc)?.status).toBe('paid')
  })

  it('leaves goods of a sale that came back and were sold again, when the first sale is void or returned', async () => {
    await open()
    const epc = await newItem()
    await cut()
    const [first, second] = [sale([epc]), sale([epc])]
    await post('/v1/sales', first)
    await post('/v1/returns', { returnId: 'r1', epcs: [epc], resellable: true })
    await post('/v1/sales', second)
    // The cloud may get this row before that of the return, from another agent.
    const rows = store.agent.ledger.journal.unsent(100).rows.map((row) => row.body.evidence)
    expect(rows.flatMap((row) => (row?.kind === 'sale' ? [row.resold] : []))).toEqual([
      undefined,
      [saleTagHash({ kind: 'epc', id: epc, isValid: true })],
    ])
    const { saleId, tillId } = first
    await post('/v1/returns', { returnId: 'r2', saleId, tillId })
    expect((await post('/v1/sales/void', { saleId, tillId })).body.items).toEqual([])
    expect(store.agent.items.find('epc', epc)?.status).toBe('paid')
    await join()
    expect(store.agent.items.find('epc', epc)?.status).toBe('paid')
  })

  it('applies a return that came before its sale', async () => {
    await open()
    const [a, b] = [await newItem(), await newItem()]
    await cut()
    const [whole, part] = [sale([a]), sale([b])]
    await post('/v1/returns', { returnId: 'r1', saleId: whole.saleId, tillId: 'till-3' })
    await post('/v1/returns', { returnId: 'r2', saleId: part.saleId, tillId: 'till-3', epcs: [b], resellable: true })
    await post('/v1/sales', whole)
    await post('/v1/sales', part)
    const statuses = () => [a, b].map((epc) => store.agent.items.find('epc', epc)?.status)
    expect(statuses()).toEqual(['returned', 'sellable'])
    await carryOut(a)
    expect(sirens()).toBe(1)
    await join()
    expect(statuses()).toEqual(['returned', 'sellable'])
  })

  it('applies a return by code to the sale before it, and not to one that prints the code again', async () => {
    await open()
    const [a, b] = [await newItem(), await newItem()]
    await cut()
    const occurredAt = new Date(store.world.clock.wall()).toISOString()
    expect(await post('/v1/returns', { returnId: 'r1', code: 'printed-code' })).toMatchObject({
      body: { waiting: true },
    })
    const status = (epc: string) => store.agent.items.find('epc', epc)?.status
    await store.world.advance(120_000)
    await post('/v1/sales', sale([b], { receiptCodes: ['printed-code'] }))
    expect(status(b)).toBe('paid')
    await post('/v1/sales', sale([a], { occurredAt, receiptCodes: ['printed-code'] }))
    expect(status(a)).toBe('returned')
    await join()
    expect([status(a), status(b)]).toEqual(['returned', 'paid'])
  })

  it('takes ten returns before their sale, and moves each tag once when it comes', async () => {
    await open()
    await cut()
    const sent = sale(['3034257BF7194E4000001A85'])
    const back = (returnId: string) =>
      post('/v1/returns', { returnId, saleId: sent.saleId, tillId: 'till-3', resellable: true })
    for (let n = 1; n <= 10; n++) expect((await back(`w${n}`)).status).toBe(200)
    expect(await back('w11')).toMatchObject({ status: 409, body: { code: 'too_many_waiting_returns' } })
    // A repetition is not a further one.
    expect((await back('w10')).status).toBe(200)
    await post('/v1/sales', sent)
    const [key = ''] = store.agent.items.keysOf('epc', '3034257BF7194E4000001A85')
    expect(store.agent.ledger.till.tag(key)).toMatchObject({ status: 'sellable' })
  })

  it('takes no sales while too many bytes wait for the cloud', async () => {
    await open()
    const { journal } = store.agent.ledger
    Object.defineProperty(journal, 'waitingBytes', { get: () => WAITING_BYTES_LIMIT, configurable: true })
    const sent = sale([], { lines: [{ name: 'Jacke', quantity: 1, priceUnit: 100, vat: 19 }] })
    expect(await post('/v1/sales', sent)).toMatchObject({ status: 503, body: { code: 'sale_queue_full' } })
    Reflect.deleteProperty(journal, 'waitingBytes')
    expect((await post('/v1/sales', sent)).status).toBe(200)
  })

  it('takes 2,000 tags in a return', async () => {
    await open()
    const lines = (count: number) =>
      [0, 1, 2].map((n) => ({ lineId: `${n}`, tagIds: Array.from({ length: count }, (_, k) => `T${n}-${k}`) }))
    const of = { saleId: '4711' }
    const answer = await post('/v1/returns', { returnId: 'many', ...of, lines: lines(700) })
    expect(answer).toMatchObject({ status: 400, body: { details: [{ path: 'lines' }] } })
    expect((await post('/v1/returns', { returnId: 'few', ...of, lines: lines(600) })).status).toBe(200)
  })

  it('counts the limits of a till by the hour of its sales, as the cloud does', async () => {
    await open()
    const [a, b, c] = [await newItem(), await newItem(), await newItem()]
    await allow([store.agent.identity.agentId], { salesPerHour: 1 })
    const occurredAt = new Date(store.world.clock.wall() - 2 * 3_600_000).toISOString()
    const warnings = async (sent: Json) => (await post('/v1/sales', sent)).body.warnings.map(({ code }: Json) => code)
    expect(await warnings(sale([a]))).toEqual([])
    expect(await warnings(sale([b], { occurredAt })), 'of another hour').toEqual([])
    expect(await warnings(sale([c], { occurredAt }))).toEqual(['sale_over_limit'])
    await join()
    const rows = await purchases()
    const codes = rows.map(({ result }) => (JSON.parse(result ?? '{}') as Json).warnings.map((w: Json) => w.code))
    expect(codes).toEqual([[], [], ['sale_over_limit']])
  })

  it('warns of a tag in two lines, and gives the cloud the same sale', async () => {
    await open()
    const epc = await newItem()
    const sent = sale([epc, epc])
    const { body } = await post('/v1/sales', sent)
    expect(body).toMatchObject({
      warnings: [{ code: 'item_already_paid', lineId: '2', tag: epc }],
      items: [{ itemStatus: 'paid' }, { itemStatus: 'paid' }],
    })
    await join()
    const [row] = await purchases()
    expect((JSON.parse(row?.result ?? '{}') as Json).warnings).toMatchObject([
      { code: 'item_already_paid', lineId: '2' },
    ])
  })

  it('takes goods back in a sale, and leaves those that one sale sells and takes back', async () => {
    await open()
    const [old, fresh] = [await newItem(), await newItem()]
    await post('/v1/sales', sale([old]))
    await cut()
    const [sold] = sale([fresh]).lines as Json[]
    const [given, again] = [
      { ...sold, epcs: [old], quantity: -1 },
      { ...sold, quantity: -1 },
    ]
    const { body } = await post('/v1/sales', sale([], { lines: [given, sold, again] }))
    expect(body).toMatchObject({
      warnings: [],
      items: [
        { tag: old, itemStatus: 'returned' },
        { tag: fresh, itemStatus: 'sellable' },
        { tag: fresh, itemStatus: 'sellable' },
      ],
    })
    const statuses = () => [old, fresh].map((epc) => store.agent.items.find('epc', epc)?.status)
    expect(statuses()).toEqual(['returned', 'sellable'])
    await carryOut(old)
    expect(sirens()).toBe(1)
    await join()
    expect(statuses()).toEqual(['returned', 'sellable'])
  })

  it('records what is doubtful with a warning, and leaves that tag as it is', async () => {
    await open()
    const [held, sold] = [await newItem(), await newItem()]
    const { storeId } = store.shop
    await store.drive(store.shop.ok('updateItemStatus', { storeId, epc: held, itemStatus: 'exception_hold' }))
    await store.until('the hold', () => store.agent.items.find('epc', held)?.status === 'exception_hold')
    await post('/v1/sales', sale([sold]))
    const { body } = await post('/v1/sales', sale([held, sold, 'E2801190200050000000ABCD'], { totalCent: 1 }))
    expect(body.warnings.map((w: Json) => w.code).sort()).toEqual([
      'item_already_paid',
      'sale_of_held_item',
      'sale_tag_unknown',
      'sale_total_differs',
    ])
    expect(store.agent.items.find('epc', held)?.status).toBe('exception_hold')
  })

  it('needs the right, the policy, and its limits', async () => {
    await open()
    const [a, b] = [await newItem(), await newItem()]
    expect((await post('/v1/sales', sale([a]), pair())).body.code).toBe('right_missing')
    expect((await post('/v1/sales', sale([a]), pair('returns'))).body.code).toBe('right_missing')
    const draft = sale([await newItem()], { state: 'open' })
    const sells = pair('sales')
    await post('/v1/sales', draft, sells)
    expect((await post('/v1/sales', { ...draft, state: 'void' }, sells)).status, 'an open sale').toBe(200)
    const paid = sale([await newItem()])
    await post('/v1/sales', paid, sells)
    expect((await post('/v1/sales', { ...paid, state: 'void' }, sells)).body.code).toBe('right_missing')
    expect((await post('/v1/returns', { returnId: 'x', epcs: [a] }, pair('sales'))).body.code).toBe('right_missing')
    expect((await store.local('/v1/sales', { method: 'POST', body: sale([a]) })).body.code).toBe('right_missing')
    // The credential of a till only reports: it moves no device.
    const detach = { deviceId: store.shop.devices.self_checkout_detacher, protectionAction: 'detach_hard_tag', epc: a }
    for (const [path, body] of [
      ['/v1/authorize', detach],
      ['/v1/scan', { deviceId: detach.deviceId, text: 'x' }],
      ['/v1/alarms', {}],
    ] as const)
      expect((await post(path, body, sells)).body.code, path).toBe('right_missing')
    for (const path of ['/setup', '/gate', `/station?device=${detach.deviceId}`, '/pictures/0'])
      expect((await store.local(path, { headers: sells })).status, path).not.toBe(200)
    await allow([store.agent.identity.agentId], { salesPerHour: 1 })
    await post('/v1/sales', sale([a]))
    const over = await post('/v1/sales', sale([b]))
    expect(over.body.warnings).toMatchObject([{ code: 'sale_over_limit' }])
    expect(store.agent.items.find('epc', b)?.status).toBe('sellable')
    await allow([])
    expect((await post('/v1/sales', sale([b]))).body.code).toBe('sales_not_allowed')
  })

  it('counts the value of goods by their own price, and keeps a program to the till that it is paired as', async () => {
    await open()
    const [a, b] = [await newItem(), await newItem()]
    const credential = newSecret('pair', store.world.random)
    const rights = ['sales', 'returns'] as const
    store.agent.ledger.pairings.addProgram(hashSecret(credential), 'one', store.world.clock.wall(), rights, 'till-9')
    const one = { authorization: `Bearer ${credential}` }
    for (const tillId of [undefined, 'till-3'])
      expect((await post('/v1/sales', { ...sale([b]), tillId }, one)).body.code).toBe('till_missing')
    expect((await post('/v1/sales/void', { saleId: '1', tillId: 'till-3' }, one)).body.code).toBe('till_missing')
    expect((await post('/v1/sales', { ...sale([b]), tillId: 'till-9' }, one)).body.warnings).toEqual([])
    expect((await post('/v1/returns', { returnId: 'other', epcs: [b] }, one)).status).toBe(200)
    await allow([store.agent.identity.agentId], { valuePerHour: 10 })
    await store.until('the limit', () => store.agent.trust.policy?.policy.tillSales.valuePerHour === 10)
    const free = sale([a], { lines: [{ name: 'x', quantity: 1, priceUnit: 0, vat: 19, epcs: [a] }] })
    expect((await post('/v1/sales', free)).body.warnings).toMatchObject([{ code: 'sale_over_limit' }])
  })

  it('takes back no tags for a program without the right, and says so', async () => {
    await open()
    const epc = await newItem()
    await post('/v1/sales', sale([epc]))
    const back = sale([], { lines: [{ name: 'x', quantity: -1, priceUnit: 4_990, vat: 19, epcs: [epc] }] })
    const { body } = await post('/v1/sales', back, pair('sales'))
    expect(body).toMatchObject({
      items: [{ tag: epc, itemStatus: 'paid' }],
      warnings: [{ code: 'right_missing', tag: epc }],
    })
    await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
    const { storeId } = store.shop
    expect((await store.drive(store.shop.ok('fetchProtectedItem', { storeId, epc }))).itemStatus).toBe('paid')
    expect(store.agent.items.find('epc', epc)?.status).toBe('paid')
  })

  it('takes no goods off hold, and warns of a sale that was voided before it came', async () => {
    await open()
    const held = await newItem()
    await store.drive(
      store.shop.ok('updateItemStatus', { storeId: store.shop.storeId, epc: held, itemStatus: 'exception_hold' }),
    )
    await store.until('the hold', () => store.agent.items.find('epc', held)?.status === 'exception_hold')
    const back = sale([], { lines: [{ name: 'x', quantity: -1, priceUnit: 100, vat: 19, epcs: [held] }] })
    expect((await post('/v1/sales', back)).body.warnings).toMatchObject([{ code: 'sale_of_held_item' }])
    const epc = await newItem()
    const late = sale([epc])
    await post('/v1/sales/void', { saleId: late.saleId, tillId: late.tillId, series: late.series })
    expect((await post('/v1/sales', late)).body.warnings).toMatchObject([{ code: 'sale_is_void' }])
    await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
    expect(store.agent.items.find('epc', held)?.status).toBe('exception_hold')
  })

  it('leaves out returned tags that no item has, so that they cost no later decision', async () => {
    await open()
    const epc = await newItem()
    const made = ['3034257BF7194E4000FFFF01', '3034257BF7194E4000FFFF02']
    await post('/v1/sales', sale([made[0] ?? '', epc]))
    await post('/v1/returns', { returnId: 'made', epcs: [...made, epc] })
    const names = (store.agent.items.namesIn(new Set(['returned'] as const)) ?? []).map(({ name }) => name)
    expect(new Set(names)).toEqual(new Set([epc]))
    expect(store.agent.ledger.till.tag(`E${made[1]}`)).toBeUndefined()
  })

  it('releases nothing for a till that the cloud has revoked', async () => {
    await open()
    const epc = await newItem()
    const code = 'code-of-a-revoked-till'
    await store.drive(store.shop.ok('revokeTill', { storeId: store.shop.storeId, tillId: 'till-3' }))
    await store.until(
      'the revocation',
      () => store.agent.trust.policy?.revokedTills?.some(({ tillId }) => tillId === 'till-3') === true,
    )
    await cut()
    const sold = await post('/v1/sales', { ...sale([epc]), tillId: 'till-3', receiptCodes: [code] })
    expect(sold.body.warnings).toMatchObject([{ code: 'sale_of_revoked_till' }])
    expect(store.agent.items.find('epc', epc)?.status).toBe('sellable')
    expect((await store.agent.lanes.saleOfCode('gate', code, true)).kind).toBe('none')
  })

  it('names the field of a malformed sale, and refuses customers', async () => {
    await open()
    const wrong = await post('/v1/sales', sale([], { lines: [{ quantity: 0, priceUnit: 1, vat: 19 }] }))
    expect([wrong.status, wrong.body.details[0].path]).toEqual([400, 'lines[0].quantity'])
    expect((await post('/v1/sales', { ...sale([]), userId: 'u' })).status).toBe(400)
    expect((await post('/v1/returns', { returnId: 'y' })).body.details[0].path).toBe('saleId')
  })
})
