import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEan, newEpc } from '../../../support/shop.ts'
import { liveStores } from '../../../support/live-store.ts'
import { simulatedPsp } from '../../../../simulators/services/psp.ts'
import { until } from '../../../support/receiver.ts'
import { openPaidStore, PRODUCT, type PaidStore } from '../../../support/paid-store.ts'

onEveryDatabase('payments', (kind) => {
  let store: PaidStore
  beforeAll(async () => {
    store = await openPaidStore(kind)
  })
  afterAll(() => store.stop())
  afterEach(() => {
    store.psp.release()
    Object.assign(store.psp.switches, { hang: false, hangAfterwards: false, status: undefined, keep: false, copies: 1 })
  })

  async function paid(quantity = 1): Promise<Json> {
    const started = await store.start(quantity)
    await store.psp.end(await store.sessionOf(started.transactionId), 'paid')
    return started
  }
  const events = async (type: string, transactionId: string) => {
    const rows = await store.cloud.db.database.reads
      .selectFrom('outbox_event')
      .select(['type', 'data'])
      .where('type', '=', type)
      .execute()
    return rows.map((row) => JSON.parse(row.data)).filter((data: Json) => data.transactionId === transactionId)
  }
  const refundsOf = (session: string) => store.psp.refunds.filter((refund) => refund.sessionId === session)

  it('completes a live purchase from checkout to receipt', async () => {
    const started = await store.start(2)
    expect(started).toMatchObject({
      status: 'PENDING_PAYMENT',
      total: 99.8,
      checkoutUrl: expect.stringContaining(`${store.psp.baseUrl}/pay/`),
    })
    const { transactionId } = started
    const session = await store.sessionOf(transactionId)
    expect(store.psp.sessions.get(session)).toMatchObject({
      amountCent: 9_980,
      currency: 'EUR',
      key: expect.stringMatching(/^pay_/),
    })
    expect(await events('payment.created', transactionId)).toEqual([
      expect.objectContaining({ provider: 'custom', amountCent: 9_980 }),
    ])
    const page = `/checkout/${started.receipt.checkoutSessionId}`
    expect((await store.cloud.get(page)).headers.get('location')).toBe(started.checkoutUrl)
    expect(await store.psp.end(session, 'paid')).toEqual([200])
    const bought = await store.ok('fetchPurchase', { transactionId })
    expect(bought).toMatchObject({ status: 'SUCCESS', receipt: { receiptUrl: expect.any(String), tse: null } })
    expect((await store.ok('generateReceiptQR', { purchaseId: transactionId })).url).toBe(bought.receipt.receiptUrl)
    expect((await store.cloud.get(`${page}?returned=1`)).text).toContain('To the receipt')
    expect((await store.cloud.get(`${page}?returned=1&lang=en`)).text).toContain('To the receipt')
    expect(await events('checkout.completed', transactionId)).toHaveLength(1)
    expect(await store.call('processPayment', { purchaseId: transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'already_paid' },
    })
  })

  it('refunds a payment of a checkout that a new checkout of the session replaced', async () => {
    const { sessionId } = await store.ok('checkIn', { storeId: store.storeId })
    const start = () => store.ok('startCheckout', { sessionId, items: [{ ean: PRODUCT.ean, quantity: 1 }] })
    const [former, present] = [await start(), await start()]
    const [late, paid] = [await store.sessionOf(former.transactionId), await store.sessionOf(present.transactionId)]
    await store.psp.end(paid, 'paid')
    await store.psp.end(late, 'paid')
    expect([await store.statusOf(former.transactionId), await store.statusOf(present.transactionId)]).toEqual([
      'CANCELLED',
      'SUCCESS',
    ])
    await store.wait('the refund', () => refundsOf(late).length === 1)
    expect(refundsOf(paid)).toEqual([])
    expect(await store.exceptions('late_payment')).toContainEqual(
      expect.objectContaining({ purchase_id: former.transactionId }),
    )
  })

  it('refuses to start a payment for a sold item, and raises an exception if the payment had started', async () => {
    const { storeId } = store
    const epc = newEpc()
    await store.ok('updateStore', { storeId, securityTagMode: 'rfid' })
    await store.ok('registerProtectedItems', { storeId, items: [{ epc, ean: PRODUCT.ean }] })
    const start = async () => {
      const { sessionId } = await store.ok('checkIn', { storeId })
      return store.ok('startCheckout', { sessionId, items: [{ epcs: [epc], quantity: 1 }] })
    }
    const [first, second] = [await start(), await start()]
    await store.psp.end(await store.sessionOf(first.transactionId), 'paid')
    expect(await store.call('processPayment', { purchaseId: second.transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'item_already_paid' },
    })
    const page = await store.cloud.get(`/checkout/${second.receipt.checkoutSessionId}?lang=en`)
    expect([page.headers.get('location'), page.text]).toEqual([null, expect.stringContaining('sold meanwhile')])
    await store.psp.end(await store.sessionOf(second.transactionId), 'paid')
    expect(await store.statusOf(second.transactionId)).toBe('SUCCESS')
    expect(await store.exceptions('item_already_paid')).toContainEqual(
      expect.objectContaining({ purchase_id: second.transactionId }),
    )
    await store.ok('updateStore', { storeId, securityTagMode: 'none' })
  })

  it('names the recalled unit of a payment that had started for the agents', async () => {
    const { storeId } = store
    await store.ok('updateStore', { storeId, securityTagMode: 'rfid' })
    const ean = newEan()
    await store.ok('insertProduct', { storeId, ean, name: 'Glas', price: 4, vat: 7, tagged: true })
    const { sessionId } = await store.ok('checkIn', { storeId })
    const items = [{ ean, quantity: 1, lot: 'L-1' }]
    const { transactionId } = await store.ok('startCheckout', { sessionId, items })
    const session = await store.sessionOf(transactionId)
    const { recallId } = await store.ok('recallProducts', { ean, lot: 'L-1', reason: 'Splitter' })
    await store.psp.end(session, 'paid')
    expect(await store.statusOf(transactionId)).toBe('SUCCESS')
    const { database } = store.cloud.db
    const { cti } = await database.reads
      .selectFrom('purchase')
      .select('cti')
      .where('purchase_id', '=', transactionId)
      .executeTakeFirstOrThrow()
    const entries = async () =>
      (await database.reads.selectFrom('deny_entry').select('body').where('store_id', '=', storeId).execute())
        .map(({ body }) => JSON.parse(body))
        .filter((entry) => entry.kind === 'recall' && entry.cti === cti)
    expect(await entries()).toEqual([{ kind: 'recall', cti, ordinals: [0, 100_000], until: expect.any(Number) }])
    await store.ok('endRecall', { recallId })
    expect(await entries()).toMatchObject([{ ordinals: [0, 100_000], ended: true }])
    await store.ok('updateStore', { storeId, securityTagMode: 'none' })
  })

  it('never returns credentials', async () => {
    const { database } = store.cloud.db
    const rows = await database.reads.selectFrom('psp_config').selectAll().execute()
    const shown = JSON.stringify([
      rows,
      store.cloud.errors,
      await store.ok('fetchAuditLog', {}),
      await store.ok('fetchStore', { storeId: store.storeId }),
    ])
    for (const secret of [store.config['apiKey'], store.config['webhookSecret']]) expect(shown).not.toContain(secret)
  })

  it('rejects invalid settings', async () => {
    const configure = (body: Json) =>
      store.call('configurePSP', { storeId: store.storeId, provider: 'custom', config: store.config, ...body })
    expect((await configure({ provider: 'nobody' })).status).toBe(400)
    const wrong = await configure({ config: { ...store.config, webhookSecret: 'short-secret!', colour: 'red' } })
    expect(wrong.body.details.map((d: Json) => d.path).sort()).toEqual(['config.colour', 'config.webhookSecret'])
    expect(wrong.text).not.toContain('short-secret!')
    const { body } = await configure({ config: { ...store.config, webhookSecret: 'whsec_abcdefghijklmnopqrstuvwxyz' } })
    expect(body.error).toBe(
      'config: config.webhookSecret must be 16 to 128 visible characters, and base64 after whsec_',
    )
    expect(await configure({ config: { ...store.config, baseUrl: 'ftp://psp.example' } })).toMatchObject({
      status: 400,
      body: { details: [{ code: 'url_refused' }] },
    })
    expect((await configure({ storeId: 'st_x' })).status).toBe(404)
  })

  it('creates one session for repeated requests', async () => {
    const { transactionId, checkoutUrl } = await store.start()
    const before = store.psp.sessions.size
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => store.ok('processPayment', { purchaseId: transactionId, method: 'card' })),
    )
    expect(new Set(answers.map((a) => a.checkoutUrl))).toEqual(new Set([checkoutUrl]))
    expect(store.psp.sessions.size).toBe(before)
    expect(answers[0]).toMatchObject({ status: 'PENDING_PAYMENT', amount: 49.9, currency: 'EUR', provider: 'custom' })
  })

  it('fails with 503 and ends the purchase if the provider fails, hangs, or hangs after creating the session', async () => {
    const { sessionId } = await store.ok('checkIn', { storeId: store.storeId })
    for (const fault of [{ status: 500 }, { status: 401 }, { hang: true }, { hangAfterwards: true }]) {
      Object.assign(store.psp.switches, { status: undefined, hang: false, hangAfterwards: false, ...fault })
      let answer: Json
      const checkout = store
        .call('startCheckout', { sessionId, items: [{ ean: PRODUCT.ean, quantity: 1 }] })
        .then((a) => (answer = a))
      await store.wait('an answer', () => answer !== undefined)
      await checkout
      expect(answer).toMatchObject({ status: 503, body: { code: 'unavailable', reason: 'psp_unavailable' } })
      const [newest] = await store.cloud.db.database.reads
        .selectFrom('purchase')
        .selectAll()
        .orderBy('created_ms', 'desc')
        .orderBy('purchase_id', 'desc')
        .limit(1)
        .execute()
      expect(newest?.status).toBe('CANCELLED')
      store.psp.release()
    }
    // A shopper pays on the created session. The cloud refunds this payment.
    Object.assign(store.psp.switches, { hangAfterwards: false })
    const made = [...store.psp.sessions.keys()].at(-1) ?? ''
    expect(await store.psp.end(made, 'paid')).toEqual([200])
    await store.wait('the refund', () => refundsOf(made).length === 1)
  })

  it('refuses a session id that the provider gave before, so that no notification counts twice', async () => {
    const { transactionId } = await store.start()
    const session = await store.sessionOf(transactionId)
    const next = `cs_${Number(session.slice(3)) + 1}`
    await store.cloud.db.database.write((db) =>
      db.updateTable('payment').set({ provider_ref: next }).where('provider_ref', '=', session).execute(),
    )
    const { sessionId } = await store.ok('checkIn', { storeId: store.storeId })
    const items = [{ ean: PRODUCT.ean, quantity: 1 }]
    expect(await store.call('startCheckout', { sessionId, items })).toMatchObject({
      status: 503,
      body: { reason: 'psp_unavailable' },
    })
    expect([...store.psp.sessions.keys()]).toContain(next)
    expect(await store.statusOf(transactionId)).toBe('PENDING_PAYMENT')
  })

  it('ends an opening that crashed', async () => {
    const { transactionId } = await store.start()
    await store.cloud.db.database.write(async (db) => {
      await db.updateTable('purchase').set({ status: 'CREATED' }).where('purchase_id', '=', transactionId).execute()
      await db
        .updateTable('payment')
        .set({ state: 'asking', provider_ref: null, url: null })
        .where('purchase_id', '=', transactionId)
        .execute()
    })
    await store.wait('the end', async () => (await store.statusOf(transactionId)) === 'CANCELLED', 10_000)
  })

  it('handles duplicate, reordered and forged notifications', async () => {
    const { transactionId } = await store.start()
    const session = await store.sessionOf(transactionId)
    const count = async () =>
      (await store.cloud.db.database.reads.selectFrom('audit_entry').select('entry_id').execute()).length
    const before = await count()
    const body = JSON.stringify({ sessionId: session, status: 'paid', amountCent: 4_990, currency: 'EUR' })
    const post = (url: string, headers: Record<string, string>) =>
      fetch(url, { method: 'POST', body, headers }).then((r) => r.status)
    const stamp = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(store.platform.clock.wall() / 1_000)),
    }
    const forged = [
      {},
      stamp,
      { ...stamp, 'webhook-signature': 'v1,AAAA' },
      { ...stamp, 'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}` },
    ]
    for (const headers of forged) expect(await post(store.notifyUrl, headers)).toBe(400)
    for (const path of ['custom/st_x', 'stripe', 'adyen'])
      expect(
        await post(
          store.notifyUrl.replace(/custom.*$/, path.includes('/') ? path : `${path}/${store.storeId}`),
          forged[3] ?? {},
        ),
      ).toBe(400)
    expect([await count(), await store.statusOf(transactionId)]).toEqual([before, 'PENDING_PAYMENT'])
    store.psp.switches.copies = 3
    expect(await store.psp.end(session, 'paid')).toEqual([200, 200, 200])
    expect(await store.psp.end(session, 'expired')).toEqual([200, 200, 200])
    expect(await store.statusOf(transactionId)).toBe('SUCCESS')
    expect(await events('checkout.completed', transactionId)).toHaveLength(1)
    expect(refundsOf(session)).toEqual([])
  })

  it('rejects invalid notifications like other requests', async () => {
    const notify = (body: string) =>
      store.cloud.cloud.app.request(new URL(store.notifyUrl).pathname, { method: 'POST', body })
    for (const [body, status, code] of [
      ['{}', 400, 'invalid-argument'],
      ['x'.repeat(300_000), 413, 'payload-too-large'],
    ] as const) {
      const answer = await notify(body)
      const { requestId, ...error } = (await answer.json()) as Json
      expect([answer.status, error]).toEqual([status, { error: expect.any(String), code }])
      expect(answer.headers.get('x-request-id')).toBe(requestId)
    }
  })

  it('completes once if the same notification arrives concurrently', async () => {
    const { transactionId } = await store.start()
    const session = await store.sessionOf(transactionId)
    expect((await Promise.all(Array.from({ length: 4 }, () => store.psp.end(session, 'paid')))).flat()).toEqual([
      200, 200, 200, 200,
    ])
    expect(await store.statusOf(transactionId)).toBe('SUCCESS')
    expect(await events('checkout.completed', transactionId)).toHaveLength(1)
  })

  it('refunds a payment after the end of its purchase, and raises an exception', async () => {
    for (const end of ['declined', 'cancelled by the merchant'] as const) {
      const { transactionId } = await store.start()
      const session = await store.sessionOf(transactionId)
      store.psp.switches.keep = true
      await store.psp.end(session, 'paid')
      store.psp.switches.keep = false
      if (end === 'declined') await store.psp.end(session, 'cancelled')
      else await store.ok('markPurchaseCancelled', { purchaseId: transactionId })
      expect(await store.statusOf(transactionId)).toBe('CANCELLED')
      if (end === 'declined') await store.psp.end(session, 'paid')
      else await store.psp.sendKept()
      await store.wait('the refund', async () => (await events('payment.refunded', transactionId)).length === 1)
      expect(refundsOf(session)).toEqual([expect.objectContaining({ amountCent: 4_990 })])
      expect((await store.exceptions('late_payment')).filter((e) => e.purchase_id === transactionId)).toHaveLength(1)
      expect(await store.statusOf(transactionId)).toBe('CANCELLED')
      await store.psp.sendKept()
      expect(refundsOf(session)).toHaveLength(1)
    }
  })

  it('repeats a late refund in doubt under its own id, even after an earlier rejection', async () => {
    const { transactionId } = await store.start()
    const session = await store.sessionOf(transactionId)
    await store.psp.end(session, 'cancelled')
    store.psp.switches.status = 403
    await store.psp.end(session, 'paid')
    const states = async () =>
      (await store.ok('fetchPurchase', { transactionId })).refunds.map((refund: Json) => [
        refund.status,
        refund.inDoubt ?? false,
      ])
    await store.wait('the refusal', async () => (await states())[0]?.[0] === 'failed')
    Object.assign(store.psp.switches, { status: undefined, hangAfterwards: true })
    let isAnswered = false
    const pending = store.ok('refundPayment', { transactionId }).finally(() => (isAnswered = true))
    await store.wait('an answer', () => isAnswered)
    expect(await pending).toMatchObject({ refund: { status: 'pending' } })
    store.psp.release()
    Object.assign(store.psp.switches, { status: 500, hangAfterwards: false })
    await store.wait('the end of the tries', async () => (await states())[1]?.[0] === 'failed', 20 * 60_000)
    expect(await states()).toEqual([
      ['failed', false],
      ['failed', true],
    ])
    store.psp.switches.status = undefined
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({ refund: { status: 'done' } })
    expect([await states(), refundsOf(session).length]).toEqual([
      [
        ['failed', false],
        ['done', false],
      ],
      1,
    ])
    expect(await store.call('refundPayment', { transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'already_refunded' },
    })
  })

  it('queries the provider if no notification arrives, so that no payment is lost', async () => {
    const { transactionId } = await store.start()
    const session = await store.sessionOf(transactionId)
    store.psp.switches.keep = true
    await store.psp.end(session, 'paid')
    await store.wait('the question', async () => (await store.statusOf(transactionId)) === 'SUCCESS', 10_000)
    await store.psp.sendKept()
    expect([await events('checkout.completed', transactionId), refundsOf(session)]).toEqual([[expect.anything()], []])
  })

  it('rejects a payment with another amount', async () => {
    const { transactionId } = await store.start()
    await store.psp.end(await store.sessionOf(transactionId), 'paid', 1)
    expect(await store.statusOf(transactionId)).toBe('PENDING_PAYMENT')
    expect((await store.exceptions('payment_mismatch')).map((e) => e.purchase_id)).toContain(transactionId)
  })

  it('uses the old credentials for payments that were opened with them', async () => {
    const open = await store.start()
    const before = await paid()
    const rotated = { ...store.config, webhookSecret: 'another-secret-of-theirs' }
    await store.ok('configurePSP', { storeId: store.storeId, provider: 'custom', config: rotated })
    expect(await store.psp.end(await store.sessionOf(open.transactionId), 'paid')).toEqual([200])
    expect(await store.statusOf(open.transactionId)).toBe('SUCCESS')
    expect(await store.ok('refundPayment', { purchaseId: before.transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
    })
    // Notifications signed with the old secret cannot change newer payments.
    const fresh = await store.start()
    await store.psp.end(await store.sessionOf(fresh.transactionId), 'paid')
    expect(await store.statusOf(fresh.transactionId)).toBe('PENDING_PAYMENT')
    await store.ok('configurePSP', { storeId: store.storeId, provider: 'custom', config: store.config })
  })

  it('a whole refund cancels the purchase and pays once', async () => {
    const { transactionId } = await paid()
    const session = await store.sessionOf(transactionId)
    const answer = await store.ok('refundPayment', { purchaseId: transactionId, reason: 'wrong size' })
    expect(answer).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
      refund: { amount: 49.9, status: 'done' },
    })
    expect(await events('payment.refunded', transactionId)).toEqual([
      expect.objectContaining({ refundId: answer.refund.refundId, amountCent: 4_990 }),
    ])
    expect(await store.call('refundPayment', { purchaseId: transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'already_refunded' },
    })
    const cancelled = await paid()
    expect(await store.ok('markPurchaseCancelled', { purchaseId: cancelled.transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'pending',
    })
    await store.wait(
      'the refund',
      async () => (await store.ok('fetchPurchase', { transactionId: cancelled.transactionId })).refundStatus === 'done',
    )
    expect(
      [refundsOf(session), refundsOf(await store.sessionOf(cancelled.transactionId))].map((r) => r.length),
    ).toEqual([1, 1])
  })

  it('holds a whole refund until the store’s agents have acknowledged the denial', async () => {
    const { database } = store.cloud.db
    const { transactionId } = await paid()
    const nowMs = store.platform.clock.wall()
    const { tenant } = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', store.storeId)
      .executeTakeFirstOrThrow()
    const agent = {
      agent_id: 'agt_1',
      tenant,
      store_id: store.storeId,
      name: 'Kasse',
      x: 'x',
      ledger_id: 'l',
      generation: 1,
      last_seq: 0,
      head_hash: '',
      deny_seq: 0,
      item_seq: 0,
      enrolled_ms: nowMs,
      last_seen_ms: nowMs,
      revoked_ms: null,
    }
    await database.write((db) => db.insertInto('agent').values(agent).execute())
    expect(await store.ok('refundPayment', { purchaseId: transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'pending',
      refund: { status: 'pending' },
    })
    for (let minute = 0; minute < 5; minute++) await store.platform.advance(60_000)
    expect(refundsOf(await store.sessionOf(transactionId))).toEqual([])
    await database.write((db) =>
      db.updateTable('agent').set({ deny_seq: 1_000 }).where('agent_id', '=', 'agt_1').execute(),
    )
    await store.wait(
      'the refund',
      async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus === 'done',
      30_000,
    )
    expect(refundsOf(await store.sessionOf(transactionId))).toHaveLength(1)
    await database.write((db) => db.deleteFrom('agent').execute())
  })

  it('a notification of the custom protocol reverses a refund that fails later', async () => {
    const { transactionId } = await paid()
    const { refund } = await store.ok('refundPayment', { purchaseId: transactionId })
    expect(refund).toMatchObject({ status: 'done' })
    const [{ id = '' } = {}] = refundsOf(await store.sessionOf(transactionId))
    const notify = async (notification: object, secret = store.config['webhookSecret'] ?? '') => {
      const body = JSON.stringify(notification)
      const atMs = store.platform.clock.wall()
      const headers = {
        'content-type': 'application/json',
        'webhook-id': 'msg_r',
        'webhook-timestamp': String(Math.floor(atMs / 1_000)),
        'webhook-signature': new Webhook(secret).sign('msg_r', new Date(atMs), body),
      }
      return (await store.cloud.cloud.app.request(new URL(store.notifyUrl).pathname, { method: 'POST', headers, body }))
        .status
    }
    const state = async () => {
      const { status, refundStatus } = await store.ok('fetchPurchase', { transactionId })
      return [status, refundStatus]
    }
    expect(await notify({ refundId: id, status: 'failed' }, 'whsec_c29tZWJvZHktZWxzZXMtc2VjcmV0')).toBe(400)
    for (const notification of [
      { refundId: id, status: 'pending' },
      { refundId: id, status: 'refunded' },
      { refundId: 're_unknown', status: 'failed' },
      { refundId: id, sessionId: 'x', status: 'succeeded' },
    ])
      expect(await notify(notification)).toBe(200)
    expect(await state()).toEqual(['CANCELLED', 'done'])
    for (let times = 0; times < 2; times++)
      expect(await notify({ refundId: id, reference: refund.refundId, status: 'failed' })).toBe(200)
    expect(await state()).toEqual(['SUCCESS', 'failed'])
    expect((await store.exceptions('refund_failed')).filter((each) => each.purchase_id === transactionId)).toHaveLength(
      1,
    )
  })

  it('responds with 503 to a notification if the disk is full, and accepts it later', async () => {
    const { database } = store.cloud.db
    const started = await store.start()
    const sessionId = await store.sessionOf(started.transactionId)
    const write = database.write
    database.write = () => Promise.reject(Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' }))
    expect(await store.psp.end(sessionId, 'paid')).toEqual([503])
    database.write = write
    expect(await store.statusOf(started.transactionId)).toBe('PENDING_PAYMENT')
    expect(await store.psp.end(sessionId, 'paid')).toEqual([200])
    expect(await store.statusOf(started.transactionId)).toBe('SUCCESS')
  })

  it('releases a held refund when staff confirm', async () => {
    const { database } = store.cloud.db
    const first = await paid()
    const second = await paid()
    const nowMs = store.platform.clock.wall()
    const { tenant } = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', store.storeId)
      .executeTakeFirstOrThrow()
    const agent = {
      agent_id: 'agt_1',
      tenant,
      store_id: store.storeId,
      name: 'Kasse',
      x: 'x',
      ledger_id: 'l',
      generation: 1,
      last_seq: 0,
      head_hash: '',
      deny_seq: 0,
      item_seq: 0,
      enrolled_ms: nowMs,
      last_seen_ms: nowMs,
      revoked_ms: null,
    }
    await database.write((db) => db.insertInto('agent').values(agent).execute())
    const { operatorId: confirmedBy } = await store.ok('registerOperator', {
      storeId: store.storeId,
      name: 'Frau Petersen',
    })
    const { operatorId: gone } = await store.ok('registerOperator', { storeId: store.storeId, name: 'Herr Ohlsen' })
    await store.ok('removeOperator', { operatorId: gone })
    await store.ok('markPurchaseCancelled', { purchaseId: first.transactionId })
    expect((await store.call('refundPayment', { purchaseId: first.transactionId, confirmedBy: gone })).status).toBe(404)
    expect(
      await store.call('refundPayment', { purchaseId: second.transactionId, amount: 1, confirmedBy }),
    ).toMatchObject({ status: 400, body: { details: [{ path: 'confirmedBy' }] } })
    // The first purchase was cancelled before; the confirmation cancels the second. A repeated call changes nothing.
    for (const { transactionId } of [first, second]) {
      expect(await store.ok('refundPayment', { purchaseId: transactionId, confirmedBy })).toMatchObject({
        status: 'CANCELLED',
        refundStatus: 'done',
        refund: { status: 'done' },
      })
      expect((await store.call('refundPayment', { purchaseId: transactionId, confirmedBy })).body).toMatchObject({
        reason: 'already_refunded',
      })
      expect(refundsOf(await store.sessionOf(transactionId))).toHaveLength(1)
    }
    await database.write((db) => db.deleteFrom('agent').execute())
  })

  it('finishes a cancellation after complete partial refunds when the agents acknowledge the denial, or staff confirm', async () => {
    const { database } = store.cloud.db
    const gone = await paid()
    const underWay = await paid()
    const nowMs = store.platform.clock.wall()
    const { tenant } = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', store.storeId)
      .executeTakeFirstOrThrow()
    const agent = {
      agent_id: 'agt_1',
      tenant,
      store_id: store.storeId,
      name: 'Kasse',
      x: 'x',
      ledger_id: 'l',
      generation: 1,
      last_seq: 0,
      head_hash: '',
      deny_seq: 0,
      item_seq: 0,
      enrolled_ms: nowMs,
      last_seen_ms: nowMs,
      revoked_ms: null,
    }
    await database.write((db) => db.insertInto('agent').values(agent).execute())
    const { operatorId: confirmedBy } = await store.ok('registerOperator', {
      storeId: store.storeId,
      name: 'Frau Brandt',
    })
    await store.ok('refundPayment', { purchaseId: gone.transactionId, amount: 49.9 })
    const cancelled = await store.ok('refundPayment', { purchaseId: gone.transactionId })
    expect(cancelled).toMatchObject({ status: 'CANCELLED', refundStatus: 'pending' })
    expect(cancelled).not.toHaveProperty('refund')
    store.psp.switches.status = 500
    await store.ok('refundPayment', { purchaseId: underWay.transactionId, amount: 49.9 })
    expect(await store.ok('refundPayment', { purchaseId: underWay.transactionId, confirmedBy })).toMatchObject({
      refundStatus: 'pending',
      refund: { status: 'pending' },
    })
    store.psp.switches.status = undefined
    await store.wait(
      'the part',
      async () => refundsOf(await store.sessionOf(underWay.transactionId)).length > 0,
      10_000,
    )
    await store.platform.advance(60_000)
    for (const { transactionId } of [gone, underWay])
      expect((await store.ok('fetchPurchase', { transactionId })).refundStatus).toBe('pending')
    expect(await store.ok('refundPayment', { purchaseId: gone.transactionId, confirmedBy })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
    })
    await database.write((db) =>
      db.updateTable('agent').set({ deny_seq: 1_000 }).where('agent_id', '=', 'agt_1').execute(),
    )
    await store.wait(
      'the agent',
      async () => (await store.ok('fetchPurchase', { transactionId: underWay.transactionId })).refundStatus === 'done',
      10_000,
    )
    for (const { transactionId } of [gone, underWay]) {
      expect((await store.call('refundPayment', { purchaseId: transactionId })).body).toMatchObject({
        reason: 'already_refunded',
      })
      expect(refundsOf(await store.sessionOf(transactionId))).toHaveLength(1)
      expect(await events('payment.refunded', transactionId)).toHaveLength(1)
    }
    await database.write((db) => db.deleteFrom('agent').execute())
  })

  it('refunds lines or an amount, never more than was paid', async () => {
    const started = await paid(3)
    const { transactionId } = started
    const [line] = started.items
    expect(await store.ok('refundPayment', { purchaseId: transactionId, amount: 10.5 })).toMatchObject({
      status: 'SUCCESS',
      refund: { amount: 10.5, status: 'done' },
    })
    const ofLine = (fields: Json) =>
      store.call('refundPayment', { purchaseId: transactionId, lines: [{ itemLineId: line.itemLineId, ...fields }] })
    expect(await store.call('refundPayment', { purchaseId: transactionId, amount: 140 })).toMatchObject({
      status: 409,
      body: { reason: 'refund_too_high' },
    })
    expect(
      (await store.call('refundPayment', { purchaseId: transactionId, lines: [{ itemLineId: 'lin_x' }] })).status,
    ).toBe(404)
    expect(
      await store.call('refundPayment', {
        purchaseId: transactionId,
        lines: [{ itemLineId: line.itemLineId, quantity: 2 }],
        amount: 99,
      }),
    ).toMatchObject({ status: 400, body: { details: [{ path: 'amount' }] } })
    expect((await ofLine({ quantity: 2 })).body).toMatchObject({
      status: 'SUCCESS',
      refund: { amount: 99.8, lines: [{ itemLineId: line.itemLineId, quantity: 2 }] },
    })
    expect(await ofLine({ quantity: 2 })).toMatchObject({ status: 409, body: { reason: 'already_refunded' } })
    // The last shirt cost 49.90, but 10.50 were refunded before.
    expect(await store.ok('refundPayment', { purchaseId: transactionId })).toMatchObject({
      status: 'CANCELLED',
      refund: { amount: 39.4, status: 'done' },
    })
    const sum = refundsOf(await store.sessionOf(transactionId)).reduce((cent, refund) => cent + refund.amountCent, 0)
    expect(sum).toBe(14_970)
  })

  it('never pays twice for concurrent refunds', async () => {
    const { transactionId } = await paid()
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => store.call('refundPayment', { purchaseId: transactionId, amount: 49.9 })),
    )
    expect(answers.map((a) => a.status).sort()).toEqual([200, 409, 409, 409])
    expect(refundsOf(await store.sessionOf(transactionId))).toHaveLength(1)
  })

  it('restores SUCCESS if the provider rejects a refund; a repeat tries again', async () => {
    const { transactionId } = await paid()
    store.psp.switches.status = 403
    expect(await store.ok('refundPayment', { purchaseId: transactionId })).toMatchObject({
      status: 'SUCCESS',
      refundStatus: 'failed',
      refund: { status: 'failed' },
    })
    expect((await store.exceptions('refund_failed')).filter((e) => e.purchase_id === transactionId)).toHaveLength(1)
    const { total, ...failed } = await store.ok('fetchPurchase', { transactionId })
    expect(failed).toMatchObject({
      refunded: 0,
      refunds: [{ kind: 'whole', amount: total, status: 'failed' }],
      receipt: { refundStatus: 'failed', refundedCent: 0 },
    })
    expect([failed.refunds[0].inDoubt, failed.refunds[0].completedAt]).toEqual([undefined, undefined])
    store.psp.switches.status = undefined
    const done = await store.ok('refundPayment', { purchaseId: transactionId })
    expect(done).toMatchObject({ status: 'CANCELLED', refundStatus: 'done', refunded: total })
    expect(done.refunds.map((refund: Json) => refund.status).sort()).toEqual(['done', 'failed'])
    expect(refundsOf(await store.sessionOf(transactionId))).toHaveLength(1)
  })

  it('pays once if the provider’s response to a refund is lost', async () => {
    const { transactionId } = await paid()
    const session = await store.sessionOf(transactionId)
    store.psp.switches.hangAfterwards = true
    let answer: Json
    const pending = store.ok('refundPayment', { purchaseId: transactionId }).then((a) => (answer = a))
    await store.wait('an answer', () => answer !== undefined)
    await pending
    expect(answer).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'pending',
      refunded: 0,
      refunds: [{ status: 'pending' }],
      refund: { status: 'pending' },
    })
    store.psp.release()
    store.psp.switches.hangAfterwards = false
    await store.wait(
      'the next try',
      async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus === 'done',
      10_000,
    )
    expect(refundsOf(session)).toHaveLength(1)
    expect(store.psp.requests.filter((r) => r === 'POST /refunds').length).toBeGreaterThan(1)
  })

  it('gives up a refund after half a day without response, and still cannot pay twice', async () => {
    const { transactionId } = await paid()
    const session = await store.sessionOf(transactionId)
    store.psp.switches.status = 500
    expect(await store.ok('refundPayment', { purchaseId: transactionId })).toMatchObject({ refundStatus: 'pending' })
    await store.wait(
      'the end of the tries',
      async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus === 'failed',
      20 * 60_000,
    )
    expect(await store.ok('fetchPurchase', { transactionId })).toMatchObject({
      status: 'SUCCESS',
      refunded: 0,
      refunds: [{ status: 'failed', inDoubt: true }],
    })
    store.psp.switches.status = undefined
    expect(await store.ok('refundPayment', { purchaseId: transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
    })
    expect(refundsOf(session)).toHaveLength(1)
  })

  it('opens the payment only after staff approval', async () => {
    const { database } = store.cloud.db
    const { policy } = await store.ok('fetchProtectionPolicy', { storeId: store.storeId })
    await store.ok('updateProtectionPolicy', { storeId: store.storeId, policy: { ...policy, spotCheckRate: 1 } })
    const sessions = store.psp.sessions.size
    const waiting = await store.start()
    expect(waiting).toMatchObject({ status: 'CREATED', awaitingApproval: true })
    expect(store.psp.sessions.size).toBe(sessions)
    const page = new URL(waiting.checkoutUrl).pathname
    expect((await store.cloud.get(page)).text).toContain('Please wait')
    const { transactionId } = waiting
    expect(await store.call('processPayment', { transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'awaiting_approval' },
    })
    const { operatorId } = await store.ok('registerOperator', { storeId: store.storeId, name: 'Herr Asmussen' })
    expect(await store.ok('approveCheckout', { transactionId, operatorId })).toMatchObject({
      status: 'PENDING_PAYMENT',
    })
    const { checkoutUrl } = await store.ok('processPayment', { transactionId })
    expect((await store.cloud.get(page)).headers.get('location')).toBe(checkoutUrl)
    await store.psp.end(await store.sessionOf(transactionId), 'paid')
    expect(await store.statusOf(transactionId)).toBe('SUCCESS')

    const unlucky = await store.start()
    store.psp.switches.status = 500
    expect(await store.call('approveCheckout', { transactionId: unlucky.transactionId, operatorId })).toMatchObject({
      status: 503,
      body: { reason: 'psp_unavailable' },
    })
    expect(await store.statusOf(unlucky.transactionId)).toBe('CANCELLED')
    await store.ok('updateProtectionPolicy', { storeId: store.storeId, policy })
    expect(
      await database.reads.selectFrom('payment').select('payment_id').where('state', '=', 'asking').execute(),
    ).toEqual([])
  })

  it('opens one payment for concurrent calls', async () => {
    const { policy } = await store.ok('fetchProtectionPolicy', { storeId: store.storeId })
    await store.ok('updateProtectionPolicy', { storeId: store.storeId, policy: { ...policy, spotCheckRate: 1 } })
    const { transactionId } = await store.start()
    await store.ok('updateProtectionPolicy', { storeId: store.storeId, policy })
    await store.cloud.db.database.write((db) =>
      db.updateTable('purchase').set({ approval: 'approved' }).where('purchase_id', '=', transactionId).execute(),
    )
    const before = store.psp.sessions.size
    const answers = await Promise.all(Array.from({ length: 5 }, () => store.ok('processPayment', { transactionId })))
    expect(new Set(answers.map((a) => a.paymentId)).size).toBe(1)
    expect(new Set(answers.map((a) => a.checkoutUrl)).size).toBe(1)
    expect(store.psp.sessions.size).toBe(before + 1)
    expect(await events('payment.created', transactionId)).toHaveLength(1)
  })

  it('creates one purchase per Idempotency-Key', async () => {
    const { sessionId } = await store.ok('checkIn', { storeId: store.storeId })
    const checkout = () =>
      store.call(
        'startCheckout',
        { sessionId, items: [{ ean: PRODUCT.ean, quantity: 1 }] },
        { 'idempotency-key': 'basket-1' },
      )
    const before = store.psp.sessions.size
    const answers = await Promise.all([checkout(), checkout(), checkout()])
    expect(answers.map((a) => a.status).sort()).toEqual([200, 409, 409])
    expect((await checkout()).text).toBe(answers.find((a) => a.status === 200)?.text)
    expect(store.psp.sessions.size).toBe(before + 1)
  })

  it('refunds for one account at once while the provider of another does not answer', async () => {
    const { cloud, platform } = store
    const silent = await Promise.all(Array.from({ length: 12 }, () => store.start()))
    const key = await cloud.key('secret', 'live', { account: 'Bergmann' })
    const [storeId = ''] = await liveStores(cloud, key, { products: [PRODUCT] })
    const notifyUrl = store.notifyUrl.replace(store.storeId, storeId)
    const psp = await simulatedPsp({
      dialect: 'custom',
      notifyUrl: () => notifyUrl,
      nowMs: () => platform.clock.wall(),
    })
    await cloud.ok(key, 'configurePSP', { storeId, provider: 'custom', config: psp.config() })
    const { sessionId } = await cloud.ok(key, 'checkIn', { storeId })
    const start = () => cloud.ok(key, 'startCheckout', { sessionId, items: [{ ean: PRODUCT.ean, quantity: 1 }] })
    const [former] = [await start(), await start()]
    const late = await store.sessionOf(former.transactionId)
    store.psp.switches.hang = true
    await store.wait('queries of the silent provider', () => store.psp.unanswered > 0)
    await until('its share of queries', () => store.psp.unanswered === 5)
    await psp.end(late, 'paid')
    await until('the refund', () => psp.refunds.length === 1)
    expect([silent.length, store.psp.unanswered]).toEqual([12, 5])
    await psp.close()
  })

  it('requires a provider in live mode, and none in the sandbox', async () => {
    const { database } = store.cloud.db
    await database.write((db) => db.updateTable('psp_config').set({ is_current: 0 }).execute())
    const { sessionId } = await store.ok('checkIn', { storeId: store.storeId })
    const basket = { sessionId, items: [{ ean: PRODUCT.ean, quantity: 1 }] }
    expect(await store.call('startCheckout', basket)).toMatchObject({
      status: 409,
      body: { reason: 'psp_not_configured' },
    })
    await store.ok('configurePSP', { storeId: store.storeId, provider: 'custom', config: store.config })
    expect((await store.call('startCheckout', basket)).status).toBe(200)
  })
})

onEveryDatabase('payments through mollie', (kind) => {
  let store: PaidStore
  beforeAll(async () => {
    store = await openPaidStore(kind, 'mollie')
  })
  afterAll(() => store.stop())

  it('send no query for invented ids, and trust no unsigned notification', async () => {
    const { transactionId } = await store.start()
    const session = await store.sessionOf(transactionId)
    const countQueries = () => store.psp.requests.filter((request) => request.startsWith('GET')).length
    const before = countQueries()
    const post = (body: string) => fetch(store.notifyUrl, { method: 'POST', body }).then((r) => r.status)
    expect([await post('id=tr_made_up'), await post('id=../x'), await post('')]).toEqual([400, 400, 400])
    expect(countQueries()).toBe(before)
    expect([await post(`id=${session}`), await store.statusOf(transactionId)]).toEqual([200, 'PENDING_PAYMENT'])
    store.psp.switches.status = 500
    expect(await post(`id=${session}`)).toBe(503)
    store.psp.switches.status = undefined
  })
})
