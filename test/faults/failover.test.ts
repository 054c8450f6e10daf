// @module-tag extended
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  startPostgres,
  whyNoPostgres,
  type PostgresServer,
  type Standby,
} from '../verification/kills/postgres-server.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'
import { badNetwork, type BadNetwork } from '../support/bad-network.ts'
import { cloudUnderLoad, eanOf, UNAVAILABLE, type Answer, type CloudUnderLoad } from '../support/cloud-under-load.ts'

const missing = whyNoPostgres()

/** The cloud uses one database address. It leads first to the primary and then to the promoted standby. */
describe.skipIf(missing)(`a failover to a standby${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let primary: PostgresServer | undefined
  let standby: Standby
  let network: BadNetwork
  let load: CloudUnderLoad

  beforeAll(async () => {
    primary = (await startPostgres()) as PostgresServer
    standby = await primary.startStandby()
    network = await badNetwork(primary.port)
    const url = new URL(primary.url)
    url.port = String(network.port)
    load = await cloudUnderLoad({ databaseUrl: url.href, callers: 4 })
  })
  afterAll(async () => {
    await load?.stop()
    network?.close()
    await standby?.stop()
    await primary?.stop()
  })

  const call = async (operation: string, body: object, key?: string) => {
    const answer = await load.call(operation, body, key)
    expect(answer, operation).toMatchObject({ status: 200 })
    return answer.body
  }

  /** Makes a paid purchase of one tagged product. */
  async function buy(name: string): Promise<string> {
    const { storeId } = load
    const { products } = (await call('fetchProducts', {
      storeId,
      category: 'bekleidung',
      limit: 100,
    })) as unknown as {
      products: { ean: string; price: number; tagged: boolean }[]
    }
    const ean = products.find((p) => p.tagged && p.price < 50)?.ean
    const { sessionId } = await call('checkIn', { storeId, userId: 'shopper' }, `${name}-in`)
    const { transactionId } = await call(
      'startCheckout',
      { sessionId, items: [{ ean, quantity: 1 }] },
      `${name}-checkout`,
    )
    await call('completeTestCheckout', { transactionId }, `${name}-pay`)
    return String(transactionId)
  }

  async function events(limit: number, after?: string): Promise<{ ids: string[]; cursor: string | undefined }> {
    const { storeId } = load
    const page = (await call('fetchProtectionEvents', { storeId, limit, cursor: after })) as {
      events: { eventId: string }[]
      nextCursor?: string
    }
    return { ids: page.events.map(({ eventId }) => eventId), cursor: page.nextCursor }
  }

  it('answers 503 until the standby is promoted, then continues with all confirmed data', async () => {
    const { storeId } = load
    const device = async () => (await call('registerDevice', { storeId, deviceType: 'pos_deactivator' }))['deviceId']
    const [deviceId, otherId] = [await device(), await device()]
    const purchaseId = await buy('before')
    const verify = (id: unknown) =>
      call('verifySecurityTagDeactivation', { purchaseId, deviceId: id }, `verify-${String(id)}`)
    const [token, otherToken] = [await verify(deviceId), await verify(otherId)]
    expect(token).toMatchObject({ authorizationState: 'issued' })
    const { ids: known } = await events(500)
    const followed = await events(known.length - 1)
    await load.confirmed(20)

    await primary?.kill()
    network.target = standby.port
    network.cut()
    const early = [
      await load.call('fetchProducts', { storeId }),
      await load.call('checkIn', { storeId, userId: 'early' }),
    ]
    for (const answer of early) expect(answer).toMatchObject(UNAVAILABLE)
    expect(await load.page('/healthz')).toEqual({ status: 200, body: { ok: true } })
    expect(await load.page('/readyz')).toMatchObject({ status: 503, body: { unready: [{ check: 'database' }] } })

    await standby.promote()
    await load.answersAgain()
    await load.confirmed(20)
    expect(load.process.child.exitCode).toBe(null)

    // Stored responses remain. The right is leased to the last device, and can be redeemed once.
    expect([await verify(deviceId), await verify(otherId)]).toEqual([token, otherToken])
    const redeem = (id: unknown, { authorizationToken }: Answer['body'], redemptionId: string) =>
      load.call('redeemProtectionAuthorization', {
        authorizationToken,
        deviceId: id,
        redemptionId,
        outcome: 'confirmed',
      })
    expect(await redeem(deviceId, token, 'of-former')).toMatchObject({
      status: 409,
      body: { reason: 'token_revoked' },
    })
    expect(await redeem(otherId, otherToken, 'first')).toMatchObject({ status: 200 })
    expect(await redeem(otherId, otherToken, 'second')).toMatchObject({
      status: 409,
      body: { reason: 'already_redeemed' },
    })

    // A client that pages through the events misses none and reads none twice.
    const since = await events(500, followed.cursor)
    const { ids } = await events(500)
    expect([...followed.ids, ...since.ids]).toEqual(ids)
    expect(ids.slice(0, known.length)).toEqual(known)
    expect(ids.length).toBeGreaterThan(known.length)
  })

  it('answers 200 or 503 over a slow network, and recovers when it is fast', async () => {
    const random = seededRandom(20_261_123)
    network.delayMs = () => 5 + (random.bytes(1)[0] ?? 0) / 10
    const [read, write] = await Promise.all([load.call('fetchStores', {}), load.insert(eanOf(900, 0))])
    for (const answer of [read, write]) if (answer.status !== 200) expect(answer).toMatchObject(UNAVAILABLE)
    network.delayMs = () => 0
    await load.answersAgain()
    await load.confirmed(20)
    expect(await load.insert(eanOf(900, 0))).toMatchObject({ status: 200 })
  })

  it('causes no other error, and each repeated insert happens once', async () => {
    await load.endLoad()
    const products = await storedProducts()
    expect(load.stored.filter((ean) => !products.has(ean))).toEqual([])
    for (const { ean, answer } of load.refused) {
      expect(answer).toMatchObject(UNAVAILABLE)
      expect(await load.insert(ean)).toMatchObject({ status: 200 })
    }
    expect(load.process.stderr()).not.toContain('a job failed')
  })

  async function storedProducts(): Promise<Set<string>> {
    const client = new pg.Client({ connectionString: standby.url })
    await client.connect()
    const { rows } = await client.query<{ ean: string }>('SELECT ean FROM product')
    await client.end()
    return new Set(rows.map(({ ean }) => ean))
  }
})
