import { afterAll, beforeAll, expect, it } from 'vitest'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('idempotency', (kind) => {
  let shop: Shop
  let world: VirtualPlatform
  beforeAll(async () => {
    world = virtualPlatform({ startMs: Date.now(), seed: 11 })
    shop = await openShop(kind, { platform: world })
  })
  afterAll(() => shop.stop())

  const pay = async () => shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
  const detach = (epc: string, headers: Record<string, string> = {}) =>
    shop.call(
      'verifyProtectedItem',
      { deviceId: shop.devices.self_checkout_detacher, protectionAction: 'detach_hard_tag', epc },
      headers,
    )

  const storedRows = () => shop.cloud.db.database.reads.selectFrom('idempotency').select(['key_hash', 'body']).execute()
  /** The result of `work` and the response that it stored. */
  async function responseStoredBy<T>(
    work: () => Promise<T>,
  ): Promise<{ value: T; row: { key_hash: string; body: string } }> {
    const before = new Set((await storedRows()).map((row) => row.key_hash))
    const value = await work()
    const row = (await storedRows()).find(({ key_hash }) => !before.has(key_hash))
    if (!row) throw new Error('no answer was stored')
    return { value, row }
  }
  const eventsOf = async (epc: string): Promise<string[]> => {
    const { events } = await shop.ok('fetchProtectionEvents', { storeId: shop.storeId, limit: 500 })
    return events.filter((event: Json) => event.epc === epc).map((event: Json) => event.type)
  }

  it('repeats the same bytes for the same key and body, and executes once', async () => {
    const headers = { 'idempotency-key': 'check-in-1' }
    const first = await shop.call('checkIn', { storeId: shop.storeId }, headers)
    const again = await shop.call('checkIn', { storeId: shop.storeId }, headers)
    expect(again.text).toBe(first.text)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
  })

  it('treats the quoted form and another field order as the same request', async () => {
    const first = await shop.call('checkIn', { storeId: shop.storeId, userId: 'u' }, { 'idempotency-key': 'quoted' })
    const again = await shop.call('checkIn', { userId: 'u', storeId: shop.storeId }, { 'idempotency-key': '"quoted"' })
    expect(again.text).toBe(first.text)
  })

  it('rejects the same key with another body', async () => {
    const headers = { 'idempotency-key': 'reused' }
    await shop.call('checkIn', { storeId: shop.storeId }, headers)
    expect(await shop.call('checkIn', { storeId: shop.otherStoreId }, headers)).toMatchObject({
      status: 409,
      body: { code: 'already-exists', reason: 'idempotency_key_reused' },
    })
  })

  it('separates keys by operation and account', async () => {
    const headers = { 'idempotency-key': 'shared' }
    const { sessionId } = (await shop.call('checkIn', { storeId: shop.storeId }, headers)).body
    const other = await shop.call('createEnrolmentCode', { storeId: shop.storeId }, headers)
    expect(other.status).toBe(200)
    const strangerKey = await shop.cloud.key('secret', 'test', { account: 'Stranger' })
    const { stores } = await shop.cloud.ok(strangerKey, 'fetchStores')
    const theirs = await shop.cloud.call(strangerKey, 'checkIn', { storeId: stores[0].storeId }, headers)
    expect(theirs.status).toBe(200)
    expect(theirs.body.sessionId).not.toBe(sessionId)
  })

  it('covers keys of the same kind and stores, and rolled keys, but no narrower key', async () => {
    const headers = { 'idempotency-key': 'visit-4711' }
    const visit = async (key: string) =>
      (await shop.cloud.ok(key, 'checkIn', { storeId: shop.storeId }, headers)).sessionId
    const bound = (...storeIds: string[]) => shop.cloud.key('secret', 'test', { storeIds })
    const whole = await visit(shop.key)
    expect(await visit(await shop.cloud.key('secret'))).toBe(whole)
    const here = await visit(await bound(shop.storeId))
    const both = await visit(await bound(shop.storeId, shop.otherStoreId))
    const app = await visit(await shop.cloud.key('publishable'))
    expect(new Set([whole, here, both, app]).size).toBe(4)
    expect(await visit(await bound(shop.storeId))).toBe(here)
    expect(await visit(await bound(shop.otherStoreId, shop.storeId, shop.otherStoreId))).toBe(both)
    expect(await visit(await shop.cloud.key('publishable'))).toBe(app)
    expect(
      (await shop.cloud.call(await bound(shop.otherStoreId), 'checkIn', { storeId: shop.storeId }, headers)).status,
    ).toBe(404)
  })

  it.each([
    ['without a key', {}],
    ['under the same Idempotency-Key', { 'idempotency-key': 'verify-everywhere' }],
  ])(
    'never returns a token of one store to a key of another store, %s',
    async (_name, headers: Record<string, string>) => {
      const { epc } = await shop.newItem(shop.products[0])
      await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [epc] }])
      const body = { deviceId: shop.devices.self_checkout_detacher, protectionAction: 'detach_hard_tag', epc }
      const grant = await shop.ok('verifyProtectedItem', body, headers)
      expect(grant.authorizationToken).toEqual(expect.any(String))
      for (const other of [
        await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] }),
        (await enrolTestAgent(shop, shop.otherStoreId)).token,
      ]) {
        const theirs = await shop.cloud.call(other, 'verifyProtectedItem', body, headers)
        expect(theirs).toMatchObject({
          status: 200,
          body: { authorized: false, reason: 'device_unknown', authorizationToken: null },
        })
        expect(theirs.headers.get('idempotency-replayed')).toBeNull()
      }
      // Another key of the same store belongs to another till.
      const till = await shop.cloud.key('secret', 'test', { storeIds: [shop.storeId] })
      expect((await shop.cloud.ok(till, 'verifyProtectedItem', body, headers)).replayProtectedNonce).toBe(
        grant.replayProtectedNonce,
      )
    },
  )

  it('stores a rejected state change, but no other error', async () => {
    const purchase = await pay()
    await shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId })
    const refused = await shop.call(
      'markPurchaseCancelled',
      { purchaseId: purchase.transactionId },
      { 'idempotency-key': 'refused' },
    )
    expect(refused.status).toBe(409)
    expect(
      (
        await shop.call(
          'markPurchaseCancelled',
          { purchaseId: purchase.transactionId },
          { 'idempotency-key': 'refused' },
        )
      ).text,
    ).toBe(refused.text)
    const missing = { 'idempotency-key': 'missing' }
    expect((await shop.call('checkIn', { storeId: 'st_nobody' }, missing)).status).toBe(404)
    expect((await shop.call('checkIn', { storeId: shop.storeId }, missing)).status).toBe(200)
  })

  it('executes 32 concurrent calls with one key only once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 32 }, () => shop.call('checkIn', { storeId: shop.storeId }, { 'idempotency-key': 'race' })),
    )
    expect(new Set(answers.map((a) => a.text)).size).toBe(1)
    expect(answers.every((a) => a.status === 200)).toBe(true)
  })

  it('stores a long response compressed, and repeats its bytes', async () => {
    const products = Array.from({ length: 500 }, (_, n) => ({ ean: `wrong ${n}`, name: 'x', price: -1, vat: 8 }))
    const headers = { 'idempotency-key': 'long-answer' }
    const call = () => shop.call('bulkImportProducts', { storeId: shop.storeId, products }, headers)
    const { value: first, row } = await responseStoredBy(call)
    const again = await call()
    expect([again.text === first.text, again.headers.get('idempotency-replayed')]).toEqual([true, 'true'])
    expect(first.text.length).toBeGreaterThan(100_000)
    expect(row.body.length).toBeLessThan(first.text.length / 10)
  })

  it('deletes stored responses after 24 hours', async () => {
    const headers = { 'idempotency-key': 'old' }
    const first = await shop.call('checkIn', { storeId: shop.storeId }, headers)
    // Only the wall clock moves: a real day would run all jobs of that day.
    const begun = world.clock.wall()
    world.setWall(begun + 24 * 3_600_000 - 1_000)
    expect((await shop.call('checkIn', { storeId: shop.storeId }, headers)).text).toBe(first.text)
    world.setWall(begun + 24 * 3_600_000 + 1_000)
    expect((await shop.call('checkIn', { storeId: shop.storeId }, headers)).text).not.toBe(first.text)
    world.setWall(begun)
  })

  it.each(['', 'with space', 'a'.repeat(256), 'ümlaut'])('rejects the key %j', async (key) => {
    const answer = await shop.call(
      'checkIn',
      { storeId: shop.storeId },
      { 'idempotency-key': Buffer.from(key).toString('latin1') },
    )
    expect(answer.status).toBe(400)
  })

  it('seals a response with a secret under its Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'enrol-1' }
    const first = await shop.call('createEnrolmentCode', { storeId: shop.storeId }, headers)
    expect((await shop.call('createEnrolmentCode', { storeId: shop.storeId }, headers)).text).toBe(first.text)
    const rows = await shop.cloud.db.database.reads
      .selectFrom('idempotency')
      .select('body')
      .where('operation', '=', 'createEnrolmentCode')
      .execute()
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.some((row) => row.body.includes(first.body.code))).toBe(false)
  })

  it('stores no authorization token in clear, and repeats it', async () => {
    const headers = { 'idempotency-key': 'token-1' }
    const product = shop.products[1]
    const { epc } = await shop.newItem(product)
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const ask = () => detach(epc, headers)
    const { value: granted, row } = await responseStoredBy(ask)
    expect(granted.body.authorizationToken).toMatch(/^eyJ/)
    expect(row.body).not.toContain(granted.body.authorizationToken)
    const again = await ask()
    expect(again.text).toBe(granted.text)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
  })

  it('without a key: returns the same token to the lease holder, and records nothing new', async () => {
    const product = shop.products[1]
    const { epc } = await shop.newItem(product)
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const before = (await storedRows()).length
    const granted = await detach(epc)
    const events = await eventsOf(epc)
    const again = await detach(epc)
    expect(again.text).toBe(granted.text)
    expect(again.headers.get('idempotency-replayed')).toBeNull()
    expect(await eventsOf(epc)).toEqual(events)
    expect(await storedRows()).toHaveLength(before)
  })

  it('without a key: decides and records each denied request', async () => {
    const product = shop.products[0]
    const { epc } = await shop.newItem(product)
    const denied = await detach(epc)
    expect(denied.body).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    const again = await detach(epc)
    expect(again.body).toEqual({ ...denied.body, eventId: again.body.eventId })
    expect((await eventsOf(epc)).filter((type) => type.endsWith('denied'))).toHaveLength(2)
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const granted = await detach(epc)
    expect(granted.body.authorized).toBe(true)
    await shop.ok('redeemProtectionAuthorization', {
      replayProtectedNonce: granted.body.replayProtectedNonce,
      deviceId: shop.devices.self_checkout_detacher,
      redemptionId: 'r',
    })
    expect((await detach(epc)).body).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  })

  it('without a key: a failed try is followed by a new grant, a confirmed one is not', async () => {
    const product = shop.products[2]
    const { epc } = await shop.newItem(product)
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const first = await detach(epc)
    const redeem = (redemptionId: string, nonce: string, outcome?: string) =>
      shop.ok('redeemProtectionAuthorization', {
        replayProtectedNonce: nonce,
        deviceId: shop.devices.self_checkout_detacher,
        redemptionId,
        ...(outcome && { outcome }),
      })
    await redeem('try-1', first.body.replayProtectedNonce)
    expect((await detach(epc)).body).toMatchObject({ reason: 'already_redeemed' })
    await redeem('try-1', first.body.replayProtectedNonce, 'failed')
    const second = await detach(epc)
    expect(second.body).toMatchObject({ authorized: true })
    await redeem('try-2', second.body.replayProtectedNonce, 'confirmed')
    expect((await detach(epc)).body).toMatchObject({ reason: 'already_redeemed' })
  })

  it('without a key: repeats no expired token and no decision of a changed policy', async () => {
    const product = shop.products[1]
    const { epc } = await shop.newItem(product)
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const first = await detach(epc)
    await world.advance(301_000)
    const second = await detach(epc)
    expect(second.body).toMatchObject({ authorized: true })
    expect(second.body.replayProtectedNonce).not.toBe(first.body.replayProtectedNonce)
    await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { allowedActionsByCategory: {} } })
    expect((await detach(epc)).body).toMatchObject({ authorized: false, reason: 'workflow_not_allowed' })
  })

  it('with a key: repeats even an outdated response, byte for byte', async () => {
    const { epc } = await shop.newItem(shop.products[0])
    const headers = { 'idempotency-key': 'verify-1' }
    const denied = await detach(epc, headers)
    await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [epc] }])
    expect((await detach(epc, headers)).text).toBe(denied.text)
  })

  it('expires an authorization by time alone: a late redemption is rejected', async () => {
    const purchase = await pay()
    const grant = await shop.ok('verifySecurityTagDeactivation', {
      purchaseId: purchase.transactionId,
      deviceId: shop.devices.pos_deactivator,
    })
    await world.advance(300_000)
    const request = {
      replayProtectedNonce: grant.replayProtectedNonce,
      deviceId: shop.devices.pos_deactivator,
      redemptionId: 'late',
    } satisfies Json
    const late = await shop.call('redeemProtectionAuthorization', request)
    expect(late).toMatchObject({ status: 409, body: { reason: 'token_expired' } })
    const accept = 'application/problem+json'
    const problem = await shop.call('redeemProtectionAuthorization', request, { accept })
    expect(problem.headers.get('content-type')).toBe(accept)
    expect(problem.body).toMatchObject({ status: 409, detail: late.body.error, reason: 'token_expired' })
  })

  it('leaves no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
