import type { Database as Connection, Statement } from 'better-sqlite3'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { freshnessDocument } from '../../../cloud/protection/agents/documents/freshness-and-denials.ts'
import { openSqlite, openConnection } from '../../../cloud/platform/persistence/sqlite.ts'
import { findStore } from '../../../cloud/platform/stores/queries.ts'
import { openLedgerFile } from '../../../edge-agent/ledger/file/ledger-file.ts'
import { openReceipt } from '../../../policy/receipts/receipt-token.ts'
import { storeTopic } from '../../../policy/mqtt-topics.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { fakeReader } from '../../support/fake-reader.ts'

/** Returns a connection whose COMMIT fails with the code that `code` returns, if any. */
function failing(connection: Connection, code: () => string | undefined): Connection {
  const prepare = connection.prepare.bind(connection) as (sql: string) => Statement
  const watched = (sql: string) => {
    const statement = prepare(sql)
    if (sql !== 'COMMIT') return statement
    const run = statement.run.bind(statement)
    const fail = () => {
      const wanted = code()
      if (wanted === undefined) return run()
      // After some errors SQLite has already rolled the transaction back.
      if (wanted.startsWith('SQLITE_IOERR')) connection.exec('ROLLBACK')
      throw Object.assign(new Error('as planned'), { code: wanted })
    }
    Object.defineProperty(statement, 'run', { value: fail })
    return statement
  }
  Object.defineProperty(connection, 'prepare', { value: watched })
  return connection
}

describe('an agent with a broker', () => {
  let store: TestStore
  afterEach(() => store.stop())

  it('survives a message on a full disk, and processes the next one when there is room', async () => {
    let isFull = false
    let tell: (topic: string, payload: string) => void = () => undefined
    const line = { publish: () => undefined, subscribe: () => undefined, close: () => undefined }
    store = await openStore({
      parts: {
        openLedgerFile: (file) => failing(openLedgerFile(file), () => (isFull ? 'SQLITE_FULL' : undefined)),
        openLine: (options) => {
          tell = options.onMessage
          return Promise.resolve(line)
        },
      },
    })
    const { database } = store.shop.cloud.db
    const fresh = async () => {
      const row = await findStore(database.reads, store.shop.storeId)
      if (!row) throw new Error('no store')
      return freshnessDocument(database.reads, row, store.shop.cloud.cloud.services)
    }
    const topic = storeTopic(store.shop.storeId, 'fresh')
    await store.world.advance(1_000)
    const before = store.agent.trust.lastContactMs
    isFull = true
    const first = await fresh()
    expect(() => tell(topic, first)).not.toThrow()
    isFull = false
    await store.world.advance(1_000)
    tell(topic, await fresh())
    expect(store.agent.trust.lastContactMs).toBeGreaterThan(before)
  })

  it('requests the time again while it stays online', async () => {
    const line = { publish: () => undefined, subscribe: () => undefined, close: () => undefined }
    store = await openStore({ parts: { openLine: () => Promise.resolve(line) } })
    const asked = vi.spyOn(store.shop.cloud.cloud.app, 'request')
    store.world.sleep(11 * 60_000)
    await store.world.advance(20_000)
    const times = asked.mock.calls.filter(([url]) => String(url).includes('/time?'))
    expect(store.agent.link.isOnline).toBe(true)
    expect(times.length).toBe(1)
  })
})

describe('an agent whose disk is full for long', () => {
  let store: TestStore
  afterEach(() => store.stop())

  it('is not ready at 0 bytes, also before the first write fails', async () => {
    let free = 4_096
    store = await openStore({ parts: { freeBytes: async () => free } })
    expect(await store.local('/readyz')).toMatchObject({
      status: 503,
      body: {
        ready: false,
        unready: [{ check: 'disk', reason: expect.stringMatching(/^4 KiB are free: free space on the disk/) }],
      },
    })
    free = 5_000_000
    expect(await store.local('/readyz')).toMatchObject({ status: 200, body: { ready: true } })
  })

  it('stays online, alarms at its gate, and reports everything when there is room', async () => {
    let isFull = false
    const reader = fakeReader()
    store = await openStore({
      reader: { device: reader.device, antennas: { inside: [1], outside: [2] } },
      parts: { openLedgerFile: (file) => failing(openLedgerFile(file), () => (isFull ? 'SQLITE_FULL' : undefined)) },
    })
    const { reads } = store.shop.cloud.db.database
    const isKnown = (epc: string) => store.agent.items.find('epc', epc)?.status === 'sellable'
    const see = (epc: string, antenna: number) =>
      reader.see([{ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() }])
    await store.until('the items', () => store.agent.items.confirmedMs > 0)
    isFull = true
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    store.network(true)
    await store.until('a new login', () => store.agent.link.isOnline)
    // Long after what was known would have been too old.
    await store.world.advance(130_000)
    expect(store.agent.link.isOnline).toBe(true)
    expect(await store.local('/readyz')).toMatchObject({
      status: 503,
      body: {
        ready: false,
        unready: [{ check: 'disk', reason: expect.stringMatching(/^the disk is full: free space/) }],
      },
    })
    const { epc } = await store.drive(store.shop.newItem(store.shop.products[0]))
    await store.until('the new item', () => isKnown(epc))
    expect(store.agent.status()).toMatchObject({
      online: true,
      stage: 'fresh',
      items: { ageSeconds: expect.any(Number) },
    })
    expect(store.agent.status().items.ageSeconds).toBeLessThan(90)
    const { receipt } = await store.buy([{ ean: store.shop.products[1].ean, quantity: 1 }])
    expect(
      await store.local('/v1/authorize', {
        method: 'POST',
        body: { deviceId: store.shop.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt },
      }),
    ).toMatchObject({ status: 503, body: { code: 'ledger_full' } })
    see(epc, 1)
    for (let i = 0; i < 3; i++) {
      await store.world.advance(260)
      see(epc, 2)
    }
    await store.world.advance(5_000)
    expect(store.boards.gate.log.some((change) => change.coil === 1 && change.on)).toBe(true)
    expect(store.pulses('station')).toBe(0)
    isFull = false
    await store.world.advance(30_000)
    expect(await store.local('/readyz')).toMatchObject({ status: 200, body: { ready: true, unready: [] } })
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
    const told = await reads
      .selectFrom('protection_event')
      .select('body')
      .where('store_id', '=', store.shop.storeId)
      .execute()
    expect(told.filter(({ body }) => body.includes('gate_alarm') && body.includes(epc))).toHaveLength(1)
  })

  it('rejects requests, sounds for unpaid items, lights amber for receipts, and reports the alarm when there is room', async () => {
    let isFull = false
    store = await openStore({
      parts: { openLedgerFile: (file) => failing(openLedgerFile(file), () => (isFull ? 'SQLITE_FULL' : undefined)) },
    })
    const { shop } = store
    const { epc } = await store.drive(shop.newItem(shop.products[0]))
    await store.until('the item', () => store.agent.items.find('epc', epc) !== undefined)
    const { receipt } = await store.buy([{ ean: shop.products[1].ean, quantity: 1 }])
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    isFull = true
    const lit = (coil: number) => store.boards.gate.log.filter((change) => change.coil === coil && change.on).length
    const leave = (fields: object) =>
      store.local('/v1/authorize', {
        method: 'POST',
        body: { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit', ...fields },
      })
    expect(await leave({ epc })).toMatchObject({
      status: 200,
      body: { authorized: false, reason: 'item_not_paid', eventId: null },
    })
    await store.world.advance(1_000)
    expect([lit(1), lit(2)]).toEqual([1, 0])
    expect(await leave({ receipt })).toMatchObject({ status: 503, body: { code: 'ledger_full' } })
    await store.world.advance(1_000)
    expect([lit(1), lit(2), store.pulses('gate')]).toEqual([1, 1, 0])
    isFull = false
    store.network(true)
    await store.world.advance(10_000)
    await store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
    const { events } = await store.drive(
      shop.ok('fetchProtectionEvents', { storeId: shop.storeId, type: 'protection.exception.raised', limit: 500 }),
    )
    expect(events).toMatchObject([{ reason: 'gate_alarm', epc }])
  })

  it('claims the exits of paid tags when there is room again', async () => {
    let isFull = false
    const reader = fakeReader()
    store = await openStore({
      reader: { device: reader.device, antennas: { inside: [1], outside: [2] } },
      parts: { openLedgerFile: (file) => failing(openLedgerFile(file), () => (isFull ? 'SQLITE_FULL' : undefined)) },
    })
    const see = (epc: string, antenna: number) =>
      reader.see([{ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() }])
    const [product] = store.shop.products
    const epcs: string[] = []
    for (let n = 0; n < 2; n++) epcs.push((await store.drive(store.shop.newItem(product))).epc)
    const { purchase } = await store.buy([{ ean: product.ean, quantity: 2, epcs }])
    await store.until('the payment', () => epcs.every((epc) => store.agent.items.find('epc', epc)?.status === 'paid'))
    isFull = true
    for (const epc of epcs) {
      see(epc, 1)
      for (let i = 0; i < 3; i++) {
        await store.world.advance(260)
        see(epc, 2)
      }
    }
    await store.world.advance(90_000)
    isFull = false
    await store.world.advance(60_000)
    await store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
    expect((await store.drive(store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId }))).status).toBe(
      'UNLOADED',
    )
  })

  it('applies acknowledgements of the cloud, and sends no row twice', async () => {
    let isFull = false
    store = await openStore({
      parts: { openLedgerFile: (file) => failing(openLedgerFile(file), () => (isFull ? 'SQLITE_FULL' : undefined)) },
    })
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    await store.drive(store.agent.ledger.record({ atMs: store.world.clock.wall() }))
    isFull = true
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
    isFull = false
    await store.drive(store.agent.ledger.record({ atMs: store.world.clock.wall() }))
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
  })

  it('stops counting acknowledged isolated claims when there is room', async () => {
    let isFull = false
    store = await openStore({
      parts: { openLedgerFile: (file) => failing(openLedgerFile(file), () => (isFull ? 'SQLITE_FULL' : undefined)) },
    })
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    const { ledger, trust } = store.agent
    const opened = openReceipt(receipt, { keys: trust.keys, storeId: store.shop.storeId })
    if (!opened.ok) throw new Error(opened.fault)
    const nonce = Buffer.from(opened.claims.cti).toString('hex')
    const isolated = {
      redemptionId: 'rdm_alone',
      source: 'receipt' as const,
      nonce,
      rightClass: 'release' as const,
      candidates: [0],
      all: false,
      exp: opened.claims.exp,
      deviceId: store.shop.devices.pos_deactivator,
      isolated: { limit: 1 },
      nowMs: store.world.clock.wall(),
    }
    expect(await store.drive(ledger.claim(isolated, () => undefined))).toMatchObject({ ok: true })
    await store.drive(ledger.settle('rdm_alone', 'confirmed', isolated.nowMs))
    isFull = true
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await store.until('an empty outbox', () => ledger.journal.waiting === 0)
    expect(ledger.claims.isolatedCount).toBe(1)
    isFull = false
    await store.world.advance(20_000)
    expect(ledger.claims.isolatedCount).toBe(0)
  })

  it('postpones the renewal of its key', async () => {
    let isFull = false
    const keepIdentity = vi.fn(() => {
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    })
    store = await openStore({
      parts: {
        keepIdentity,
        openLedgerFile: (file) => failing(openLedgerFile(file), () => (isFull ? 'SQLITE_FULL' : undefined)),
      },
    })
    store.agent.ledger.commits.now(() => store.agent.ledger.metadata.set('rotate_key_asked', '1'))
    isFull = true
    await store.world.advance(120_000)
    expect(keepIdentity).toHaveBeenCalledTimes(1)
    expect(store.agent.link.isOnline).toBe(true)
    isFull = false
  })
})

describe('an agent whose time request was lost', () => {
  let store: TestStore
  afterEach(() => store.stop())

  it('repeats the request with the next poll', async () => {
    const line = { publish: () => undefined, subscribe: () => undefined, close: () => undefined }
    store = await openStore({ parts: { openLine: () => Promise.resolve(line) } })
    const { app } = store.shop.cloud.cloud
    const answer = app.request.bind(app)
    let isAnswered = false
    let times = 0
    vi.spyOn(app, 'request').mockImplementation((url, ...rest) => {
      if (!String(url).includes('/time?')) return answer(url, ...rest)
      times++
      return isAnswered ? answer(url, ...rest) : Promise.reject(new Error('lost'))
    })
    store.world.sleep(11 * 60_000)
    await store.world.advance(20_000)
    expect(times).toBeGreaterThan(0)
    isAnswered = true
    times = 0
    await store.world.advance(60_000)
    expect(times).toBe(1)
  })
})

describe('an agent whose disk fills up after the lock has moved', () => {
  let store: TestStore
  afterEach(() => store.stop())

  it('answers with the outcome, and stores it when there is room', async () => {
    let isFull = false
    store = await openStore({
      parts: { openLedgerFile: (file) => failing(openLedgerFile(file), () => (isFull ? 'SQLITE_FULL' : undefined)) },
    })
    const { shop, agent } = store
    const { purchase, receipt } = await store.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const asked = store.authorize({
      deviceId: shop.devices.pos_deactivator,
      protectionAction: 'deactivate_label',
      receipt,
    })
    await store.until('the lock moves', () => store.pulses('station') === 1)
    isFull = true
    expect(await store.drive(asked)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    await store.world.advance(5_000)
    expect(agent.ledger.claims.unsettled()).toHaveLength(1)
    isFull = false
    await store.until('the outcome is on the disk', () => agent.ledger.claims.unsettled().length === 0)
    const tagStatus = async () =>
      ((await shop.ok('fetchPurchase', { transactionId: purchase.transactionId })) as { securityTagStatus: string })
        .securityTagStatus
    await store.until('the cloud knows', async () => (await tagStatus()) === 'deactivated', 30_000)
  })
})

describe('an agent that starts while its disk is full', () => {
  let store: TestStore
  afterEach(() => store.stop())

  it('starts, accepts nothing twice, and reports its open claims when there is room', async () => {
    let isFull = false
    store = await openStore({
      parts: { openLedgerFile: (file) => failing(openLedgerFile(file), () => (isFull ? 'SQLITE_FULL' : undefined)) },
    })
    const { shop } = store
    const { receipt } = await store.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const opened = openReceipt(receipt, { keys: store.agent.trust.keys, storeId: shop.storeId })
    if (!opened.ok) throw new Error(opened.fault)
    const request = {
      redemptionId: 'rdm_left',
      source: 'receipt' as const,
      nonce: Buffer.from(opened.claims.cti).toString('hex'),
      rightClass: 'release' as const,
      candidates: [0],
      all: false,
      exp: opened.claims.exp,
      deviceId: shop.devices.pos_deactivator,
      nowMs: store.world.clock.wall(),
    }
    expect(await store.drive(store.agent.ledger.claim(request, () => undefined))).toMatchObject({ ok: true })
    await store.restart(() => {
      isFull = true
      store.network(false)
    })
    expect(store.agent.ledger.claims.unsettled()).toHaveLength(1)
    isFull = false
    await store.until('it is told', () => store.agent.ledger.claims.unsettled().length === 0)
    expect(store.agent.ledger.claims.unresolved.isResolvedFor('rdm_left', { operator: true })).toBe(true)
    const answer = await store.authorize({
      deviceId: shop.devices.pos_deactivator,
      protectionAction: 'deactivate_label',
      receipt,
    })
    expect(answer).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(0)
    store.network(true)
    await store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
    const { events } = await store.drive(
      shop.ok('fetchProtectionEvents', { storeId: shop.storeId, type: 'protection.action.failed', limit: 500 }),
    )
    expect(events).toMatchObject([{ outcome: 'unknown', reason: 'power_loss' }])
  })
})

describe('two concurrent releases whose shared commit fails on a full disk', () => {
  let store: TestStore
  afterEach(() => store.stop())

  it('are retried separately, and reported under their stored ids', async () => {
    let fullFor = 0
    store = await openStore({
      parts: {
        openLedgerFile: (file) => failing(openLedgerFile(file), () => (fullFor-- > 0 ? 'SQLITE_FULL' : undefined)),
      },
    })
    const { shop, agent } = store
    // An operator approves tags, because decisions about receipts take turns.
    const { storeId, products } = shop
    const { operatorId } = await store.drive(shop.ok('registerOperator', { storeId, name: 'Jana', pin: '471108' }))
    const epcs: string[] = []
    for (let n = 0; n < 2; n++) epcs.push((await store.drive(shop.newItem(products[0]))).epc)
    await store.buy([{ ean: products[0].ean, quantity: 2, epcs }])
    await store.until('the items', () => epcs.every((epc) => agent.items.find('epc', epc)?.status === 'paid'))
    await store.until('the operator', () => agent.trust.policy?.operators.length === 1)
    const signIn = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: '471108' } })
    await store.world.advance(1_000)
    store.network(false)
    await store.until('it knows that it is alone', () => !agent.link.isOnline, 60_000)
    const device = { deviceId: shop.devices.self_checkout_detacher, protectionAction: 'detach_hard_tag' }
    const ask = (epc: string) => store.authorize({ ...device, epc }, { 'x-untag-operator': signIn.body.session })
    fullFor = 1
    const answers = await store.drive(Promise.all(epcs.map(ask)))
    const written = agent.ledger.journal.unsent(100).rows.map((row) => row.body.event?.eventId)
    for (const answer of answers) expect(written).toContain(answer.eventId)
  })
})

describe('a cloud whose disk fails as it starts', () => {
  it('reports the disk fault, not the failed rollback', async () => {
    const file = `${temporaryFolder('failing')}/cloud.db`
    const opened = openSqlite(
      file,
      () => undefined,
      (name, options) => failing(openConnection(name, options), () => 'SQLITE_IOERR_FSYNC'),
    )
    await expect(opened).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
  })
})
