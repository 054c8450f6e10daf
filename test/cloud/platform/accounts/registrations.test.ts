import { afterAll, beforeAll, expect, it } from 'vitest'
import { pruneRegistrations } from '../../../../cloud/sales/registrations/registration-queries.ts'
import type { Row } from '../../../../cloud/platform/persistence/schema.ts'
import { NETWORK_REQUESTS, PENDING_REQUESTS } from '../../../../cloud/sales/registrations/registrations.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'

const ADDRESS = { street: 'Schlachte 8', city: 'Bremen', zip: '28195', country: 'DE' }
const NO_KEY: string | null = null
const STORE = { companyName: 'Deichgold GmbH', tradingName: 'Deichgold Bremen', address: ADDRESS }

onEveryDatabase('registrations', (kind) => {
  let cloud: TestCloud
  let admin: string
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    admin = await cloud.key('admin', 'live', { account: 'Operator' })
  })
  afterAll(async () => {
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })

  const anyone = async (operation: string, body: Json, headers?: Record<string, string>) =>
    cloud.call(NO_KEY, operation, body, headers)
  const approve = (registrationId: string, more: Json = {}) =>
    cloud.ok(admin, 'approveStoreRegistration', { registrationId, ...more })
  const keyOf = (claimed: Json, mode: string, keyKind: string): string =>
    claimed.keys.find((k: Json) => k.mode === mode && k.kind === keyKind)?.key
  const newMerchant = async (request: Json, more: Json = {}) => {
    const { body } = await anyone('submitStoreRegistrationRequest', request)
    const store = await approve(body.registrationId, more)
    const claimed = (
      await anyone('claimRegistration', { registrationId: body.registrationId, claimSecret: body.claimSecret })
    ).body
    return { registrationId: body.registrationId as string, claimSecret: body.claimSecret as string, store, claimed }
  }

  it('lead from a request to a live store: request, review, claim, keys', async () => {
    const request = { ...STORE, role: 'Inhaberin', contactEmail: 'info@deichgold.example' }
    const submitted = await anyone('submitStoreRegistrationRequest', request)
    expect(submitted).toMatchObject({
      status: 200,
      body: {
        success: true,
        registrationId: expect.stringMatching(/^reg_/),
        status: 'pending',
        claimSecret: expect.any(String),
      },
    })
    const { registrationId, claimSecret } = submitted.body
    expect(await anyone('claimRegistration', { registrationId, claimSecret })).toMatchObject({
      status: 409,
      body: { code: 'failed-precondition', reason: 'registration_pending' },
    })

    const waiting = await cloud.ok(admin, 'fetchRegistrations', { status: 'pending', limit: 500 })
    expect(waiting.registrations.find((r: Json) => r.registrationId === registrationId)).toMatchObject({
      kind: 'account',
      companyName: 'Deichgold GmbH',
      role: 'Inhaberin',
      address: ADDRESS,
    })
    const store = await approve(registrationId, { package: 'grow' })
    expect(store).toMatchObject({
      success: true,
      storeId: expect.stringMatching(/^st_/),
      ...STORE,
      package: 'GROW',
      hasScanAndGo: true,
      securityTagMode: 'none',
    })
    expect(await cloud.call(admin, 'approveStoreRegistration', { registrationId })).toMatchObject({
      status: 409,
      body: { reason: 'registration_decided' },
    })

    const claimed = await anyone('claimRegistration', { registrationId, claimSecret })
    expect(claimed.body.keys.map((k: Json) => [k.mode, k.kind])).toEqual([
      ['test', 'secret'],
      ['test', 'publishable'],
      ['live', 'secret'],
    ])
    expect(await anyone('claimRegistration', { registrationId, claimSecret })).toMatchObject({
      status: 409,
      body: { reason: 'nothing_to_claim' },
    })
    const live = keyOf(claimed.body, 'live', 'secret')
    expect(live).toMatch(/^untag_live_sk_[0-9A-Za-z]+$/)
    expect((await cloud.ok(live, 'fetchStores')).stores).toMatchObject([
      { storeId: store.storeId, ...STORE, package: 'GROW' },
    ])
    expect(await cloud.ok(live, 'fetchProducts', { storeId: store.storeId })).toMatchObject({ products: [] })
    const test = keyOf(claimed.body, 'test', 'secret')
    expect((await cloud.ok(test, 'fetchStores')).stores.map((s: Json) => s.securityTagMode).sort()).toEqual([
      'rfid',
      'station',
    ])
    expect((await cloud.call(test, 'fetchStore', { storeId: store.storeId })).status).toBe(404)
    expect((await cloud.ok(keyOf(claimed.body, 'test', 'publishable'), 'fetchStores')).total).toBe(2)
  })

  it('return test keys at once, and the live key with the first approved live store', async () => {
    const { registrationId, claimSecret, store, claimed } = await newMerchant({ companyName: 'Nur ein Name' })
    expect(store).toMatchObject({ companyName: 'Nur ein Name', tradingName: 'Nur ein Name', package: 'DISCOVER' })
    expect(claimed.keys.map((k: Json) => k.mode)).toEqual(['test', 'test'])
    const test = keyOf(claimed, 'test', 'secret')
    expect((await cloud.ok(test, 'fetchStores')).total).toBe(3)
    expect((await anyone('claimRegistration', { registrationId, claimSecret })).body.error).toContain(
      'when the first live store is approved',
    )

    const submitted = await cloud.ok(test, 'submitStoreRegistration', STORE)
    expect(submitted).toEqual({ success: true, registrationId: expect.any(String), status: 'pending' })
    const [own] = (await cloud.ok(test, 'fetchRegistrations')).registrations
    expect(own).toMatchObject({ registrationId: submitted.registrationId, status: 'pending', kind: 'store' })
    const live = await approve(submitted.registrationId)
    expect(live).toMatchObject({ package: 'DISCOVER', hasScanAndGo: false })
    const again = await anyone('claimRegistration', { registrationId, claimSecret })
    expect(again.body.keys).toMatchObject([{ mode: 'live', kind: 'secret' }])
    expect((await cloud.ok(again.body.keys[0].key, 'fetchStores')).stores.map((s: Json) => s.storeId)).toEqual([
      live.storeId,
    ])
    expect(
      (await cloud.ok(test, 'fetchAuditLog', { entityId: submitted.registrationId })).entries.map(
        (e: Json) => e.operation,
      ),
    ).toEqual(['submitStoreRegistration', 'approveStoreRegistration'])
  })

  it('treat a wrong secret like an unknown id, and store no secret in clear', async () => {
    const { body } = await anyone('submitStoreRegistrationRequest', { companyName: 'Still GmbH' })
    const registered = await cloud.ok(await cloud.key('secret'), 'submitStoreRegistration', STORE)
    const wrong = await anyone('claimRegistration', { registrationId: body.registrationId, claimSecret: 'claim_wrong' })
    const unknown = await anyone('claimRegistration', { registrationId: 'reg_unknown', claimSecret: body.claimSecret })
    const withoutSecret = await anyone('claimRegistration', {
      registrationId: registered.registrationId,
      claimSecret: 'claim_wrong',
    })
    for (const { status, body: answer } of [wrong, unknown, withoutSecret])
      expect([status, answer.error, answer.code]).toEqual([404, 'no such registration', 'not-found'])
    const { reads } = cloud.db.database
    const dump = JSON.stringify(
      await Promise.all(
        (['registration', 'idempotency', 'audit_entry', 'outbox_event'] as const).map((table) =>
          reads.selectFrom(table).selectAll().execute(),
        ),
      ),
    )
    expect(dump).not.toContain(body.claimSecret)
  })

  it('repeat a lost response only for its Idempotency-Key', async () => {
    const { body } = await anyone('submitStoreRegistrationRequest', STORE)
    const claim = { registrationId: body.registrationId, claimSecret: body.claimSecret }
    const early = await anyone('claimRegistration', claim, { 'idempotency-key': 'early' })
    await approve(body.registrationId, { package: 'PRIME' })
    expect(await anyone('claimRegistration', claim, { 'idempotency-key': 'early' })).toMatchObject({
      status: 409,
      text: early.text,
    })
    const first = await anyone('claimRegistration', claim, { 'idempotency-key': 'k' })
    const second = await anyone('claimRegistration', claim, { 'idempotency-key': 'k' })
    expect([first.status, second.status, second.text, second.headers.get('idempotency-replayed')]).toEqual([
      200,
      200,
      first.text,
      'true',
    ])
    expect(
      (await anyone('claimRegistration', { ...claim, claimSecret: 'claim_other' }, { 'idempotency-key': 'k' })).status,
    ).toBe(404)
    const dump = JSON.stringify(await cloud.db.database.reads.selectFrom('idempotency').selectAll().execute())
    for (const { key } of first.body.keys) expect(dump).not.toContain(key)
  })

  it('return the reason of a rejection', async () => {
    const { body } = await anyone('submitStoreRegistrationRequest', { companyName: 'Luftschloss GmbH' })
    const reason = 'There is no such company.'
    expect(
      await cloud.ok(admin, 'rejectStoreRegistration', { registrationId: body.registrationId, reason }),
    ).toMatchObject({ status: 'rejected', reason })
    const claim = await anyone('claimRegistration', {
      registrationId: body.registrationId,
      claimSecret: body.claimSecret,
    })
    expect(claim).toMatchObject({
      status: 409,
      body: { reason: 'registration_rejected', error: expect.stringContaining(reason) },
    })
    expect((await cloud.call(admin, 'approveStoreRegistration', { registrationId: body.registrationId })).status).toBe(
      409,
    )
    expect((await cloud.call(admin, 'rejectStoreRegistration', { registrationId: 'reg_x', reason })).status).toBe(404)
  })

  it('create two accounts for two companies of the same name', async () => {
    const known = await cloud.key('secret', 'live', { account: 'Zwilling GmbH' })
    const one = await newMerchant({ ...STORE, companyName: 'Zwilling GmbH' })
    const two = await newMerchant({ ...STORE, companyName: 'Zwilling GmbH' })
    expect(one.claimed.accountId).not.toBe(two.claimed.accountId)
    expect((await cloud.ok(known, 'fetchStores')).total).toBe(0)
    expect(
      (await cloud.ok(keyOf(one.claimed, 'live', 'secret'), 'fetchStores')).stores.map((s: Json) => s.storeId),
    ).toEqual([one.store.storeId])
  })

  it('create a demo store with a test key, and a pending store with a live key', async () => {
    const { claimed, store } = await newMerchant({ ...STORE, companyName: 'Filialist GmbH' }, { package: 'Go' })
    const live = keyOf(claimed, 'live', 'secret')
    const wanted = {
      name: { legal: 'Filialist GmbH', trading: 'Filialist Kiel' },
      address: { street: 'Kai 1', city: 'Kiel', postalCode: '24103', countryCode: 'de' },
      phone: '+49431555010',
    }
    const waiting = await cloud.ok(live, 'insertStore', wanted)
    expect(waiting).toEqual({ success: true, registrationId: expect.any(String), status: 'pending' })
    expect((await cloud.ok(live, 'fetchStores')).total).toBe(1)
    const second = await approve(waiting.registrationId, { package: 'assist' })
    expect(second).toMatchObject({
      package: 'ASSIST',
      tradingName: 'Filialist Kiel',
      address: { street: 'Kai 1', city: 'Kiel', zip: '24103', country: 'DE' },
    })
    expect((await cloud.ok(live, 'fetchStores')).stores.map((s: Json) => s.storeId)).toEqual([
      store.storeId,
      second.storeId,
    ])
    const demo = await cloud.ok(keyOf(claimed, 'test', 'secret'), 'insertStore', { ...wanted, package: 'prime' })
    expect(demo).toMatchObject({ storeId: expect.stringMatching(/^st_/), package: 'PRIME', hasScanAndGo: true })
    const master = (
      await cloud.get(`/api/v1/fetchStore?storeId=${demo.storeId}`, {
        authorization: `Bearer ${keyOf(claimed, 'test', 'secret')}`,
      })
    ).body
    expect(master).toMatchObject({
      id: demo.storeId,
      name: wanted.name,
      mode: 'demo',
      package: 'prime',
      phone: wanted.phone,
      rating: 0,
      receiptCount: 0,
      products: [],
    })
  })

  it('grant the requested package if the account includes it', async () => {
    const live = await cloud.key('secret', 'live', { account: 'Grown GmbH', package: 'GROW' })
    for (const [wish, granted] of [
      ['grow', 'GROW'],
      ['assist', 'ASSIST'],
      ['prime', 'DISCOVER'],
    ]) {
      const { registrationId } = await cloud.ok(live, 'insertStore', { ...STORE, phone: '+49401234567', package: wish })
      expect((await approve(registrationId)).package).toBe(granted)
    }
    const request = await anyone('submitStoreRegistrationRequest', { ...STORE, package: 'prime' })
    if (request.status === 200) expect((await approve(request.body.registrationId)).package).toBe('DISCOVER')
  })

  it('check the package of the account, then that of the store', async () => {
    const { claimed, store } = await newMerchant({ ...STORE, companyName: 'Klein GmbH' })
    const live = keyOf(claimed, 'live', 'secret')
    const tooLow = {
      status: 403,
      body: {
        code: 'permission-denied',
        reason: 'package_too_low',
        requiredUpgrade: 'GROW',
        currentPackage: 'DISCOVER',
      },
    }
    const refused = await cloud.call(live, 'fetchDevices', { storeId: store.storeId })
    expect(refused).toMatchObject(tooLow)
    expect(refused.body.error).toMatch(/this account has DISCOVER.*gives one of them GROW with setStorePackage/)
    const { registrationId } = await cloud.ok(live, 'submitStoreRegistration', STORE)
    const big = await approve(registrationId, { package: 'PRIME' })
    expect((await cloud.ok(live, 'fetchDevices', { storeId: big.storeId })).devices).toEqual([])
    const refusedStore = await cloud.call(live, 'fetchDevices', { storeId: store.storeId })
    expect(refusedStore).toMatchObject(tooLow)
    expect(refusedStore.body.error).toContain('setStorePackage {storeId, package: "grow"}')
    expect(await cloud.ok(admin, 'setStorePackage', { storeId: store.storeId, package: 'grow' })).toMatchObject({
      storeId: store.storeId,
      package: 'GROW',
      hasScanAndGo: true,
    })
    expect((await cloud.ok(live, 'fetchDevices', { storeId: store.storeId })).devices).toEqual([])
    for (const storeId of [store.storeId, big.storeId])
      await cloud.ok(admin, 'setStorePackage', { storeId, package: 'discover' })
    expect(await cloud.call(live, 'fetchDevices', { storeId: 'st_x' })).toMatchObject(tooLow)
    const entries = (await cloud.ok(live, 'fetchAuditLog', { entityId: store.storeId })).entries
    expect(entries.map((e: Json) => e.operation)).toEqual(['setStorePackage', 'setStorePackage'])
  })

  it('are hidden from other accounts', async () => {
    const { store } = await newMerchant({ ...STORE, companyName: 'Privat GmbH' }, { package: 'prime' })
    const stranger = await cloud.key('secret', 'live', { account: 'Stranger', package: 'PRIME' })
    const answer = async (operation: string, storeId: string) => {
      const { status, body } = await cloud.call(stranger, operation, { storeId })
      return { status, error: body.error, code: body.code }
    }
    for (const operation of ['fetchStore', 'updateStore', 'fetchDevices']) {
      expect(await answer(operation, store.storeId)).toEqual({
        ...(await answer(operation, 'st_01ZZZZZZZZZZZZZZZZZZZZZZZZ')),
        status: 404,
      })
    }
    expect((await cloud.ok(stranger, 'fetchRegistrations')).registrations).toEqual([])
  })

  it('are decided once and return their keys once, for any number of concurrent requests', async () => {
    const { body } = await anyone('submitStoreRegistrationRequest', { ...STORE, companyName: 'Eilig GmbH' })
    const decided = await Promise.all(
      Array.from({ length: 8 }, () =>
        cloud.call(admin, 'approveStoreRegistration', { registrationId: body.registrationId }),
      ),
    )
    expect(decided.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 7 }, () => 409)])
    const claims = await Promise.all(
      Array.from({ length: 8 }, () =>
        anyone('claimRegistration', { registrationId: body.registrationId, claimSecret: body.claimSecret }),
      ),
    )
    expect(claims.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 7 }, () => 409)])
    const { accountId } = claims.find(({ status }) => status === 200)?.body ?? {}
    const { reads } = cloud.db.database
    expect(await reads.selectFrom('api_key').selectAll().where('account_id', '=', accountId).execute()).toHaveLength(3)
    expect(
      await reads.selectFrom('store').selectAll().where('tenant', '=', `${accountId}.live`).execute(),
    ).toHaveLength(1)
  })

  it('are paged without a gap', async () => {
    const all = (await cloud.ok(admin, 'fetchRegistrations', { limit: 500 })).registrations.map(
      (r: Json) => r.registrationId,
    )
    const seen: string[] = []
    for (let cursor: string | undefined; ;) {
      const page: Json = await cloud.ok(admin, 'fetchRegistrations', { limit: 3, ...(cursor && { cursor }) })
      seen.push(...page.registrations.map((r: Json) => r.registrationId))
      cursor = page.nextCursor
      if (!cursor) break
    }
    expect(seen).toEqual(all)
  })

  it('are limited for each network and day, and expire', async () => {
    const { platform, forward } = movablePlatform()
    const open = await startTestCloud(kind, { platform, config: { trustedProxies: ['127.0.0.1'] } })
    const send = (from: string) =>
      open.cloud.app.request(
        '/api/v1/submitStoreRegistrationRequest',
        {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-forwarded-for': from },
          body: JSON.stringify({ companyName: 'Flut' }),
        },
        { incoming: { socket: { remoteAddress: '127.0.0.1' } } },
      )
    for (let i = 0; i < NETWORK_REQUESTS; i++) expect((await send(`2001:db8:1:2::${i + 1}`)).status).toBe(200)
    const refused = await send('2001:db8:1:2::ff')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '86400'])
    expect(await refused.json()).toMatchObject({ reason: 'too_many_registrations' })
    expect((await send('2001:db8:1:3::1')).status, 'another network').toBe(200)
    forward(24 * 3_600_000)
    expect((await send('2001:db8:1:2::ff')).status, 'the next day').toBe(200)
    const rows = () => open.db.database.reads.selectFrom('registration').selectAll().execute()
    const prune = () => open.db.database.write((db) => pruneRegistrations(db, platform.clock.wall()))
    await prune()
    forward(29 * 24 * 3_600_000)
    await prune()
    expect(await rows(), 'those of the first day have expired').toHaveLength(1)
    await open.stop()
  })

  it('of the users of one account are limited like those of a network', async () => {
    const user = await cloud.user('admin', { account: 'Flut' })
    const statuses = []
    for (let i = 0; i <= NETWORK_REQUESTS; i++)
      statuses.push((await cloud.call(user, 'submitStoreRegistrationRequest', { companyName: 'Flut' })).status)
    expect(statuses).toEqual([...Array.from({ length: NETWORK_REQUESTS }, () => 200), 429])
  })

  it('of one network make room for those of others', async () => {
    const open = await startTestCloud(kind, { config: { trustedProxies: ['127.0.0.1'] } })
    const request = (network: string, n: number): Row<'registration'> => ({
      registration_id: `reg_${String(n).padStart(26, '0')}`,
      kind: 'account',
      account_id: null,
      tenant: null,
      company_name: 'Flut',
      details: '{}',
      claim_hash: `${n}`,
      network,
      status: 'pending',
      reason: null,
      store_id: null,
      submitted_ms: n,
      decided_ms: null,
      test_claimed_ms: null,
      live_claimed_ms: null,
    })
    const merchant = request('merchant', 0)
    await open.db.database.write(async (db) => {
      await db.insertInto('registration').values(merchant).execute()
      for (let from = 1; from < PENDING_REQUESTS; from += 1_000) {
        const last = Math.min(from + 1_000, PENDING_REQUESTS)
        const rows = Array.from({ length: last - from }, (_, i) => request(`flood ${(from + i) % 500}`, from + i))
        await db.insertInto('registration').values(rows).execute()
      }
    })
    await open.ok(NO_KEY as never, 'submitStoreRegistrationRequest', { companyName: 'Laden' })
    const left = await open.db.database.reads.selectFrom('registration').select(['registration_id']).execute()
    const ids = new Set(left.map((row) => row.registration_id))
    expect([ids.size, ids.has(merchant.registration_id)]).toEqual([PENDING_REQUESTS, true])
    await open.stop()
  })

  it('are rate-limited by address and by account', async () => {
    const limited = await startTestCloud(kind, { config: { rateLimit: 50 } })
    const statuses = []
    for (let i = 0; i < 40; i++)
      statuses.push((await limited.call(NO_KEY, 'submitStoreRegistrationRequest', { companyName: `Flut ${i}` })).status)
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0)
    await limited.stop()
    const eager = await cloud.key('secret', 'test', { account: 'Eager' })
    for (let i = 0; i < 100; i++) await cloud.ok(eager, 'submitStoreRegistration', STORE)
    expect(await cloud.call(eager, 'submitStoreRegistration', STORE)).toMatchObject({
      status: 409,
      body: { reason: 'too_many_registrations' },
    })
  })
})
