import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { PROVIDERS } from '../../../../cloud/sales/payments/providers.ts'
import { PSP_NAMES } from '../../../../simulators/services/psp-books.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase, type DatabaseKind } from '../../../support/databases.ts'
import { EXTENDED } from '../../../support/extended.ts'
import { openPaidStore, PRODUCT, type PaidStore } from '../../../support/paid-store.ts'

/** Common tests of all providers, each against a simulator that follows its public documentation. */

/** How a provider differs from others. Absent: false. */
interface Traits {
  /** Its notifications are not signed and lack our payment id. The cloud queries the payment. */
  isUnsigned?: true
  /** It sends no notification when a page ends without payment. The cloud queries the session. */
  endsSilently?: true
  /** Its page stays open after a cancellation, so that the shopper may pay there until it expires. */
  staysOpen?: true
  /** It sends no notification about refunds in its dashboard. */
  refundsSilently?: true
  /** It reports disputes with their amount. */
  reportsDisputes?: true
  /** A shopper may pay twice on its page. */
  takesSecondCharges?: true
  /** It does not list refunds, and its idempotency keys expire. */
  forgetsRefunds?: true
  /** It lists refunds. */
  listsRefunds?: true
  /**
   * Its tests run on every database: one provider with signed notifications, one with unsigned ones, and one with none
   * when a page ends. The others differ from these in their messages, not in their use of the database.
   */
  runsOnEveryDatabase?: true
}

/** Each provider of the cloud has a row, also one without traits. */
const TRAITS: Readonly<Record<keyof typeof PROVIDERS, Traits>> = {
  custom: { reportsDisputes: true, takesSecondCharges: true },
  stripe: { staysOpen: true, reportsDisputes: true, listsRefunds: true, runsOnEveryDatabase: true },
  mollie: { isUnsigned: true, reportsDisputes: true, listsRefunds: true, runsOnEveryDatabase: true },
  adyen: {
    endsSilently: true,
    staysOpen: true,
    reportsDisputes: true,
    takesSecondCharges: true,
    forgetsRefunds: true,
    runsOnEveryDatabase: true,
  },
  paypal: { endsSilently: true, reportsDisputes: true, forgetsRefunds: true },
  klarna: { isUnsigned: true, refundsSilently: true, listsRefunds: true },
  sumup: { isUnsigned: true, staysOpen: true, refundsSilently: true, listsRefunds: true },
  worldline: { endsSilently: true, takesSecondCharges: true, listsRefunds: true },
}

it('each provider has a simulator', () => {
  expect(PSP_NAMES.toSorted()).toEqual(Object.keys(PROVIDERS).toSorted())
})

for (const provider of PSP_NAMES) {
  const traits: Traits = TRAITS[provider]
  const suite = (kind: DatabaseKind) => {
    let store: PaidStore
    beforeAll(async () => {
      store = await openPaidStore(kind, provider)
    })
    afterAll(() => store.stop())
    afterEach(() => {
      store.psp.release()
      Object.assign(store.psp.switches, {
        hang: false,
        hangAfterwards: false,
        status: undefined,
        keep: false,
        copies: 1,
      })
    })

    const opened = async (quantity = 1) => {
      const { transactionId } = await store.start(quantity)
      return { transactionId: transactionId as string, session: await store.sessionOf(transactionId) }
    }
    const paid = async (quantity = 1) => {
      const about = await opened(quantity)
      expect(await store.psp.end(about.session, 'paid')).toEqual([200])
      expect(await store.statusOf(about.transactionId)).toBe('SUCCESS')
      return about
    }
    const refundsOf = (session: string) => store.psp.refunds.filter((refund) => refund.sessionId === session)
    const givenBack = (session: string) =>
      refundsOf(session)
        .filter((refund) => refund.status === 'done')
        .reduce((sum, refund) => sum + refund.amountCent, 0)
    const events = async (type: string, transactionId: string) => {
      const rows = await store.cloud.db.database.reads
        .selectFrom('outbox_event')
        .select('data')
        .where('type', '=', type)
        .execute()
      return rows.filter((row) => JSON.parse(row.data).transactionId === transactionId).length
    }
    const refund = (transactionId: string, body: Json = {}): Promise<Json> =>
      store.ok('refundPayment', { purchaseId: transactionId, ...body })
    /** Moves the clock until the call ends, because the provider does not respond. */
    const withoutResponse = async <T>(call: Promise<T>): Promise<T> => {
      let isAnswered = false
      void call.finally(() => (isAnswered = true))
      await store.wait('an answer', () => isAnswered)
      return call
    }

    const isSilent = traits.refundsSilently
    const raised = async (kind: string, transactionId: string) =>
      (await store.exceptions(kind)).filter((each) => each.purchase_id === transactionId)
    const purchaseOf = (transactionId: string) => store.ok('fetchPurchase', { transactionId })

    it('refunded at the provider are not refunded again', async () => {
      const { transactionId, session } = await paid(2)
      store.psp.switches.copies = 2
      const { id, statuses } = await store.psp.moveBack('refund', session, 4_990)
      expect(statuses).toEqual(isSilent ? [] : [200, 200])
      if (!isSilent) {
        expect(await purchaseOf(transactionId)).toMatchObject({
          status: 'SUCCESS',
          refunded: 49.9,
          refunds: [{ kind: 'part', outside: 'refund', amount: 49.9, status: 'done' }],
        })
        const [exception] = await raised('refunded_outside', transactionId)
        expect(exception?.detail).toContain('49.90 EUR')
        expect(exception?.detail).toContain(id)
        expect(await events('payment.refunded', transactionId)).toBe(1)
      }
      // Klarna and SumUp report nothing, so the cloud asks before its own refund.
      expect(await refund(transactionId)).toMatchObject({ status: 'CANCELLED', refundStatus: 'done', refunded: 99.8 })
      expect(givenBack(session)).toBe(9_980)
      expect(await raised('refunded_outside', transactionId)).toHaveLength(1)
      expect(await events('payment.refunded', transactionId)).toBe(2)
    })

    it('refunded at the provider as a whole end their rights, and nothing is left to refund', async () => {
      const { transactionId, session } = await paid()
      await store.psp.moveBack('refund', session, 4_990)
      if (isSilent) await refund(transactionId)
      expect(await purchaseOf(transactionId)).toMatchObject({
        status: 'CANCELLED',
        refundStatus: 'done',
        refunded: 49.9,
      })
      expect(await store.call('refundPayment', { purchaseId: transactionId })).toMatchObject({
        status: 409,
        body: { reason: 'already_refunded' },
      })
      expect([givenBack(session), refundsOf(session)]).toMatchObject([4_990, [{ outside: 'refund' }]])
    })

    if (!isSilent)
      it('refunded at the provider before the payment is reported count once both are known', async () => {
        const { transactionId, session } = await opened(2)
        store.psp.switches.keep = true
        await store.psp.end(session, 'paid')
        if (provider === 'paypal') await store.call('fetchPurchase', { transactionId })
        await store.psp.moveBack('refund', session, 4_990)
        store.psp.switches.keep = false
        // The newest notice first. PayPal names no capture that the cloud does not know yet, and sends the notice again.
        expect(await store.psp.sendKept()).toEqual([200, 200])
        // Stripe's notice names no payment that the cloud knows yet, so the cloud learns of it before its own refund.
        if (provider === 'paypal') return
        expect(await purchaseOf(transactionId)).toMatchObject({
          status: 'SUCCESS',
          refunded: provider === 'stripe' ? 0 : 49.9,
        })
        expect(await refund(transactionId)).toMatchObject({ refunded: 99.8 })
        expect(givenBack(session)).toBe(9_980)
      })

    if (traits.reportsDisputes)
      it('taken back by a bank are booked, and a dispute that is won gives them back', async () => {
        const { transactionId, session } = await paid()
        const { id } = await store.psp.moveBack('dispute', session, 4_990)
        expect(await purchaseOf(transactionId)).toMatchObject({
          status: 'CANCELLED',
          refunded: 49.9,
          refunds: [
            { outside: 'dispute', amount: 49.9 },
            { kind: 'whole', amount: 0 },
          ],
        })
        expect(await raised('payment_disputed', transactionId)).toHaveLength(1)
        // The bank took the money, so nothing is left to refund.
        expect((await store.call('refundPayment', { purchaseId: transactionId })).status).toBe(409)
        if (provider === 'paypal') return
        store.platform.sleep(2_000)
        store.psp.switches.copies = 2
        expect(await store.psp.giveBack(id)).toEqual([200, 200])
        const won = await purchaseOf(transactionId)
        expect(won).toMatchObject({ status: 'SUCCESS', refunded: 0 })
        expect([won.refundStatus, won.refunds.filter((each: Json) => each.status === 'done')]).toEqual([undefined, []])
        const [exception] = await raised('payment_disputed', transactionId)
        expect(exception?.acknowledged_by).toBe('later evidence')
        expect(await refund(transactionId)).toMatchObject({ status: 'CANCELLED', refundStatus: 'done', refunded: 49.9 })
      })

    if (traits.reportsDisputes && provider !== 'paypal' && provider !== 'mollie')
      it('of a dispute whose end is reported before its begin stay paid', async () => {
        const { transactionId, session } = await paid()
        store.psp.switches.keep = true
        const { id } = await store.psp.moveBack('dispute', session, 4_990)
        store.platform.sleep(2_000)
        await store.psp.giveBack(id)
        store.psp.switches.keep = false
        expect(await store.psp.sendKept()).toEqual([200, 200])
        expect(await purchaseOf(transactionId)).toMatchObject({ status: 'SUCCESS', refunded: 0, refunds: [] })
      })

    if (traits.takesSecondCharges)
      it('made twice raise an exception that ends with the refund at the provider', async () => {
        const { transactionId, session } = await paid()
        store.psp.switches.copies = 2
        expect(await store.psp.payAgain(session)).toEqual([200, 200])
        const [exception, ...more] = await raised('second_charge', transactionId)
        expect([exception?.detail.includes('49.90 EUR'), more]).toEqual([true, []])
        expect(await purchaseOf(transactionId)).toMatchObject({ status: 'SUCCESS', refunded: 0 })
        // Only Adyen names the charge of a refund.
        if (provider !== 'adyen') return
        await store.psp.refundSecond(session)
        expect((await raised('second_charge', transactionId))[0]?.acknowledged_by).toBe('later evidence')
        expect(await purchaseOf(transactionId)).toMatchObject({ status: 'SUCCESS', refunded: 0 })
      })

    if (traits.reportsDisputes)
      it('taken back after their refund are not booked, and staff are told', async () => {
        const { transactionId, session } = await paid()
        expect(await refund(transactionId)).toMatchObject({ refundStatus: 'done', refunded: 49.9 })
        await store.psp.moveBack('dispute', session, 4_990)
        expect(await purchaseOf(transactionId)).toMatchObject({ status: 'CANCELLED', refunded: 49.9 })
        expect(await raised('refund_unclear', transactionId)).toHaveLength(1)
      })

    if (!isSilent)
      it('refunded at the provider after they arrived late are not refunded automatically', async () => {
        const { transactionId, session } = await opened()
        await store.ok('markPurchaseCancelled', { transactionId })
        store.psp.switches.status = 500
        await store.psp.end(session, 'paid')
        const isLate = (await raised('late_payment', transactionId)).length > 0
        store.psp.switches.status = undefined
        if (isLate && refundsOf(session).length === 0) await store.psp.moveBack('refund', session, 4_990)
        await store.wait('the result', async () => givenBack(session) > 0, 10_000)
        await store.pass(120_000)
        expect(givenBack(session)).toBe(4_990)
      })

    if (provider === 'custom')
      it('refunded at the provider while the cloud sends a refund are booked when its result is known', async () => {
        const { transactionId, session } = await paid(2)
        store.psp.switches.status = 500
        expect(await refund(transactionId, { amount: 10 })).toMatchObject({ refund: { status: 'pending' } })
        expect((await store.psp.moveBack('refund', session, 4_990)).statuses).toEqual([503])
        store.psp.switches.status = undefined
        await store.wait('the refund', async () => givenBack(session) === 5_990, 10_000)
        await store.wait('its result', async () => (await purchaseOf(transactionId)).refunded === 10)
        expect(await store.psp.sendAgain()).toEqual([200])
        expect(await purchaseOf(transactionId)).toMatchObject({ status: 'SUCCESS', refunded: 59.9 })
      })

    /** Adds an agent that has acknowledged nothing, so that whole refunds wait. Returns how to remove it. */
    async function addAgent() {
      const { database } = store.cloud.db
      const { tenant } = await database.reads
        .selectFrom('store')
        .select('tenant')
        .where('store_id', '=', store.storeId)
        .executeTakeFirstOrThrow()
      const nowMs = store.platform.clock.wall()
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
      return () => database.write((db) => db.deleteFrom('agent').execute())
    }

    it('refunded at the provider reduce a refund that waits', async () => {
      const { transactionId, session } = await paid(2)
      const removeAgent = await addAgent()
      expect(await refund(transactionId)).toMatchObject({ status: 'CANCELLED', refundStatus: 'pending' })
      await store.psp.moveBack('refund', session, 9_980)
      await removeAgent()
      await store.wait('the refund', async () => (await purchaseOf(transactionId)).refundStatus === 'done', 10_000)
      expect([givenBack(session), (await purchaseOf(transactionId)).refunded]).toEqual([9_980, 99.8])
    })

    it('whose refund waited for agents for months are refunded, and repeated if the first attempt has no response', async () => {
      const { transactionId, session } = await paid(2)
      const removeAgent = await addAgent()
      expect(await refund(transactionId)).toMatchObject({ refundStatus: 'pending' })
      store.platform.sleep(46 * 86_400_000)
      store.psp.switches.hang = true
      await removeAgent()
      const requestsBefore = store.psp.requests.length
      await store.wait('an attempt', () => store.psp.requests.length > requestsBefore, 10_000)
      await store.pass(30_000, 5_000)
      store.psp.release()
      store.psp.switches.hang = false
      await store.wait('the refund', async () => (await purchaseOf(transactionId)).refundStatus === 'done', 10_000)
      expect([givenBack(session), await raised('refund_failed', transactionId)]).toEqual([9_980, []])
    })

    it('open the provider’s page, are notified, and are refunded in part and then as a whole', async () => {
      const started = await store.start(2)
      expect(started).toMatchObject({
        status: 'PENDING_PAYMENT',
        checkoutUrl: expect.stringContaining(`${store.psp.baseUrl}/pay/`),
      })
      const session = await store.sessionOf(started.transactionId)
      expect(store.psp.sessions.get(session)).toMatchObject({
        reference: expect.stringMatching(/^pay_/),
        amountCent: 9_980,
        currency: 'EUR',
      })
      expect(await store.psp.end(session, 'paid')).toEqual([200])
      expect(await store.statusOf(started.transactionId)).toBe('SUCCESS')
      expect(await refund(started.transactionId, { amount: 5 })).toMatchObject({
        status: 'SUCCESS',
        refund: { status: 'done' },
      })
      expect(await refund(started.transactionId, { amount: 5 })).toMatchObject({
        status: 'SUCCESS',
        refund: { status: 'done' },
      })
      expect(await refund(started.transactionId)).toMatchObject({ status: 'CANCELLED', refundStatus: 'done' })
      expect(refundsOf(session).map((each) => each.amountCent)).toEqual([500, 500, 8_980])
    })

    it('count once if notifications arrive repeatedly, in the wrong order and at the same time', async () => {
      const { transactionId, session } = await opened()
      store.psp.switches.copies = 3
      expect(await store.psp.end(session, 'paid')).toEqual([200, 200, 200])
      await Promise.all([store.psp.end(session, 'paid'), store.psp.end(session, 'paid')])
      await store.psp.end(session, 'expired')
      expect([
        await store.statusOf(transactionId),
        await events('checkout.completed', transactionId),
        refundsOf(session),
      ]).toEqual(['SUCCESS', 1, []])
    })

    it('end with the page', async () => {
      const { transactionId, session } = await opened()
      expect(await store.psp.end(session, 'expired')).toEqual(traits.endsSilently ? [] : [200])
      await store.wait('the end', async () => (await store.statusOf(transactionId)) === 'CANCELLED', 10_000)
      expect(givenBack(session)).toBe(0)
    })

    it('end as soon as the shopper comes back, although some providers report no cancellation', async () => {
      const { transactionId, session } = await opened()
      await store.psp.end(session, 'cancelled')
      const { checkoutSessionId } = (await store.ok('fetchPurchase', { transactionId })).receipt
      expect((await store.cloud.get(`/checkout/${checkoutSessionId}?returned=1`)).status).toBe(200)
      await store.pass(20_000, 2_000)
      expect(await store.statusOf(transactionId)).toBe(traits.staysOpen ? 'PENDING_PAYMENT' : 'CANCELLED')
    })

    it('reject forged notifications', async () => {
      const { transactionId, session } = await opened()
      const entries = async () =>
        (await store.cloud.db.database.reads.selectFrom('audit_entry').select('entry_id').execute()).length
      const before = await entries()
      expect(await store.psp.forge(session)).toBe(traits.isUnsigned ? 200 : 400)
      const post = (body: string, headers: Record<string, string> = {}) =>
        fetch(store.notifyUrl, { method: 'POST', body, headers }).then((r) => r.status)
      const nonsense = [
        '',
        '{}',
        '[]',
        'null',
        `id=${'x'.repeat(300)}`,
        '{"id":"../x"}',
        '{"session":{"session_id":"made-up"}}',
        '{"notificationItems":[]}',
        '\u0000',
        `{"a":${'['.repeat(5_000)}`,
      ]
      for (const body of nonsense)
        expect([body.slice(0, 40), await post(body, { 'content-type': 'application/json' })]).toEqual([
          body.slice(0, 40),
          400,
        ])
      expect([await entries(), await store.statusOf(transactionId)]).toEqual([before, 'PENDING_PAYMENT'])
    })

    it('send no query for invented ids', async () => {
      const requestsBefore = store.psp.requests.length
      const transmission = {
        'paypal-transmission-id': '1',
        'paypal-transmission-time': '2',
        'paypal-transmission-sig': '3',
        'paypal-auth-algo': 'SHA256withRSA',
        'paypal-cert-url': 'https://api.paypal.com/v1/x',
      }
      for (const id of ['5O190127TN364715T', 'pay_made_up', 'x\u0000']) {
        for (const event of [
          { event_type: 'CHECKOUT.ORDER.APPROVED', resource: { id: 'ABC', purchase_units: [{ custom_id: id }] } },
          { event_type: 'PAYMENT.REFUND.FAILED', resource: { id: 'ABC', status: 'FAILED', custom_id: id } },
        ]) {
          const { status } = await fetch(store.notifyUrl, {
            method: 'POST',
            body: JSON.stringify(event),
            headers: { 'content-type': 'application/json', ...transmission },
          })
          expect(status).toBe(provider === 'paypal' ? 200 : 400)
        }
      }
      expect(store.psp.requests.length).toBe(requestsBefore)
    })

    it('are refunded automatically if they arrive after the cancellation', async () => {
      const { transactionId, session } = await opened()
      await store.ok('markPurchaseCancelled', { purchaseId: transactionId })
      expect(await store.psp.end(session, 'paid')).toEqual([200])
      await store.wait('the refund', () => givenBack(session) === PRODUCT.priceCent)
      await store.psp.end(session, 'paid')
      await store.wait('nothing more', async () => (await events('payment.refunded', transactionId)) === 1)
      expect([await store.statusOf(transactionId), refundsOf(session).length]).toEqual(['CANCELLED', 1])
      expect(
        (await store.exceptions('late_payment')).filter((each) => each.purchase_id === transactionId),
      ).toHaveLength(1)
    })

    it('are not accepted with another amount', async () => {
      const { transactionId, session } = await opened()
      await store.psp.end(session, 'paid', 1)
      expect(await store.statusOf(transactionId)).toBe('PENDING_PAYMENT')
      expect((await store.exceptions('payment_mismatch')).map((each) => each.purchase_id)).toContain(transactionId)
    })

    it('are neither lost nor duplicated if the provider takes the money and stops responding', async () => {
      const taken = await opened()
      store.psp.switches.hangAfterwards = true
      await withoutResponse(store.psp.end(taken.session, 'paid'))
      store.psp.release()
      store.psp.switches.hangAfterwards = false
      await store.wait('the payment', async () => (await store.statusOf(taken.transactionId)) === 'SUCCESS', 10_000)
      expect(await events('checkout.completed', taken.transactionId)).toBe(1)

      const { transactionId, session } = await opened()
      store.psp.switches.keep = true
      await store.psp.end(session, 'paid')
      store.psp.switches.hang = true
      const requestsBefore = store.psp.requests.length
      await store.wait('a query without a response', () => store.psp.requests.length > requestsBefore, 10_000)
      store.psp.release()
      store.psp.switches.hang = false
      await store.wait('the next question', async () => (await store.statusOf(transactionId)) === 'SUCCESS', 10_000)
      await store.psp.sendKept()
      expect([await events('checkout.completed', transactionId), refundsOf(session)]).toEqual([1, []])

      store.psp.switches.keep = false
      for (const amount of [10, 10]) {
        store.psp.switches.hangAfterwards = true
        expect(await withoutResponse(refund(transactionId, { amount }))).toMatchObject({
          status: 'SUCCESS',
          refund: { status: 'pending' },
        })
        store.psp.release()
      }
      store.psp.switches.hangAfterwards = false
      await store.wait('both refunds', async () => (await events('payment.refunded', transactionId)) === 2, 10_000)
      expect(refundsOf(session).map((each) => each.amountCent)).toEqual([1_000, 1_000])
      expect(await refund(transactionId)).toMatchObject({ status: 'CANCELLED', refundStatus: 'done' })
      expect(givenBack(session)).toBe(PRODUCT.priceCent)
    })

    it('fail with 503 if no page can be opened, and are refunded if paid on an unknown page', async () => {
      const { sessionId } = await store.ok('checkIn', { storeId: store.storeId })
      for (const fault of [
        { status: 500 },
        { status: 401 },
        { status: 429 },
        { hang: true },
        { hangAfterwards: true },
      ]) {
        Object.assign(store.psp.switches, { status: undefined, hang: false, hangAfterwards: false, ...fault })
        const answer = await withoutResponse(
          store.call('startCheckout', { sessionId, items: [{ ean: PRODUCT.ean, quantity: 1 }] }),
        )
        expect(answer).toMatchObject({ status: 503, body: { reason: 'psp_unavailable' } })
        store.psp.release()
      }
      Object.assign(store.psp.switches, { hangAfterwards: false })
      const made = [...store.psp.sessions.keys()].at(-1) ?? ''
      expect(await store.psp.end(made, 'paid')).toEqual([traits.isUnsigned ? 400 : 200])
      if (!traits.isUnsigned) await store.wait('the refund', () => givenBack(made) === PRODUCT.priceCent)
    })

    it('are restored after a rejected refund, and are refunded when requested again', async () => {
      const { transactionId, session } = await paid()
      store.psp.switches.status = 403
      expect(await refund(transactionId)).toMatchObject({ status: 'SUCCESS', refundStatus: 'failed' })
      store.psp.switches.status = undefined
      expect(await refund(transactionId)).toMatchObject({ status: 'CANCELLED', refundStatus: 'done' })
      expect(refundsOf(session)).toHaveLength(1)
    })

    it(
      'are refunded once if the response is lost, the cloud gives up, and a repeated refund is rejected',
      EXTENDED,
      async () => {
        const { transactionId, session } = await paid(2)
        const refundStatus = async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus
        store.psp.switches.hangAfterwards = true
        await withoutResponse(refund(transactionId, { amount: 10 }))
        await withoutResponse(refund(transactionId))
        store.psp.release()
        Object.assign(store.psp.switches, { hangAfterwards: false, status: 500 })
        await store.wait('the end of the tries', async () => (await refundStatus()) === 'failed', 20 * 60_000)
        store.psp.switches.status = 403
        expect(await refund(transactionId)).toMatchObject({ status: 'SUCCESS', refundStatus: 'failed' })
        await store.wait(
          'the refusals',
          async () =>
            (
              await store.cloud.db.database.reads
                .selectFrom('refund')
                .select('state')
                .where('purchase_id', '=', transactionId)
                .execute()
            ).every(({ state }) => state === 'failed' || state === 'done'),
          10_000,
        )
        store.psp.switches.status = undefined
        for (let n = 0; (await refundStatus()) !== 'done' && n < 5; n++) {
          await withoutResponse(store.call('refundPayment', { purchaseId: transactionId }))
          await store.pass(5 * 60_000)
        }
        expect([await refundStatus(), givenBack(session), refundsOf(session).length]).toEqual(['done', 9_980, 2])
      },
    )

    /** Makes a refund that the provider carries out without sending a response. */
    async function refundWithoutResponse() {
      const about = await paid()
      store.psp.switches.hangAfterwards = true
      expect(await withoutResponse(refund(about.transactionId))).toMatchObject({
        status: 'CANCELLED',
        refundStatus: 'pending',
      })
      store.psp.release()
      store.psp.switches.hangAfterwards = false
      expect(refundsOf(about.session)).toHaveLength(1)
      return {
        ...about,
        refundStatus: async () =>
          (await store.ok('fetchPurchase', { transactionId: about.transactionId })).refundStatus,
      }
    }

    it('are refunded once if the response is lost and idempotency keys expire', EXTENDED, async () => {
      const { session, refundStatus } = await refundWithoutResponse()
      store.psp.switches.status = 503
      await store.pass(2 * 3_600_000, 5 * 60_000)
      store.psp.switches.status = undefined
      await store.wait('the refund', async () => (await refundStatus()) === 'done', 10 * 60_000)
      expect([refundsOf(session).length, givenBack(session)]).toEqual([1, PRODUCT.priceCent])
    })

    /** Makes a refund of a part that the provider carries out without sending a response. */
    async function partWithoutResponse() {
      const about = await paid(2)
      store.psp.switches.hangAfterwards = true
      expect(await withoutResponse(refund(about.transactionId, { amount: 10 }))).toMatchObject({
        refund: { status: 'pending' },
      })
      store.psp.release()
      store.psp.switches.hangAfterwards = false
      expect(givenBack(about.session)).toBe(1_000)
      return { ...about, entry: async () => (await purchaseOf(about.transactionId)).refunds[0] }
    }

    it('are refunded once if the response is lost and the cloud is off until each idempotency key has expired', async () => {
      const { transactionId, session, entry } = await partWithoutResponse()
      // Virtual time passes, and no job runs.
      store.platform.sleep(46 * 86_400_000)
      await store.wait('the result', async () => (await entry()).status !== 'pending', 10_000)
      const [made] = refundsOf(session)
      const [exception] = await raised('refund_failed', transactionId)
      if (traits.forgetsRefunds) {
        expect(await entry()).toMatchObject({ status: 'failed', inDoubt: true })
        expect(exception?.detail).toContain(made?.key)
        // A repeat by staff is refused too, until the provider reports the refund.
        expect(await refund(transactionId, { amount: 10 })).toMatchObject({ refund: { status: 'failed' } })
        expect(givenBack(session)).toBe(1_000)
        await store.psp.sendRefund(made?.id ?? '')
      } else expect(exception).toBeUndefined()
      expect(await entry()).toMatchObject({ status: 'done', amount: 10 })
      expect([givenBack(session), await purchaseOf(transactionId)]).toMatchObject([1_000, { refunded: 10 }])
    })

    it(
      'are refunded once if the response is lost, the cloud gives up, and staff repeat the refund weeks later',
      EXTENDED,
      async () => {
        const { transactionId, session, entry } = await partWithoutResponse()
        store.psp.switches.status = 503
        await store.wait('the end of the tries', async () => (await entry()).status === 'failed', 20 * 60_000)
        store.psp.switches.status = undefined
        store.platform.sleep(46 * 86_400_000)
        const status = traits.forgetsRefunds ? 'failed' : 'done'
        expect(await refund(transactionId, { amount: 10 })).toMatchObject({ refund: { status } })
        expect(givenBack(session)).toBe(1_000)
      },
    )

    it.each(['before', 'after'])(
      'believe the provider more than staff, who say that it did not pay: %s they refund again',
      async (when) => {
        const { transactionId, session, entry } = await partWithoutResponse()
        store.psp.switches.status = 503
        await store.wait('the end of the tries', async () => (await entry()).status === 'failed', 20 * 60_000)
        const { refundId } = await entry()
        const deny = () => store.call('refundPayment', { purchaseId: transactionId, refundId, notPaid: true })
        const hasList = traits.listsRefunds
        // Nothing is denied before the provider's list was read.
        if (hasList) expect(await deny()).toMatchObject({ status: 503 })
        store.psp.switches.status = undefined
        if (hasList) expect(await deny()).toMatchObject({ status: 409, body: { reason: 'refund_not_in_doubt' } })
        else {
          expect(await deny()).toMatchObject({ status: 200, body: { refund: { status: 'failed' } } })
          const [made] = refundsOf(session)
          if (when === 'after') {
            expect(await refund(transactionId, { amount: 10 })).toMatchObject({ success: true })
            // A refund of the same amount in the provider's dashboard, whose notice names no refund of the cloud.
            await store.psp.moveBack('refund', session, 1_000)
          }
          await store.psp.sendRefund(made?.id ?? '')
        }
        const { refunded } = await purchaseOf(transactionId)
        expect([(await entry()).status, refunded]).toEqual(['done', givenBack(session) / 100])
      },
    )

    it('are refunded by a repeat weeks later if the first attempt did not reach the provider', async () => {
      const { transactionId, session } = await paid(2)
      store.psp.switches.hang = true
      await withoutResponse(refund(transactionId, { amount: 10 }))
      store.psp.release()
      store.psp.switches.hang = false
      store.platform.sleep(46 * 86_400_000)
      const entry = async () => (await purchaseOf(transactionId)).refunds[0]
      await store.wait('the result', async () => (await entry()).status !== 'pending', 10_000)
      if (traits.forgetsRefunds) {
        const { refundId } = await entry()
        expect([(await entry()).inDoubt, givenBack(session)]).toEqual([true, 0])
        // Staff searched at the provider, and found nothing.
        const settled = await refund(transactionId, { refundId, notPaid: true })
        expect([settled.refund, givenBack(session)]).toMatchObject([{ refundId, status: 'failed' }, 0])
        expect(await refund(transactionId, { amount: 10 })).toMatchObject({ refund: { status: 'done' } })
      }
      expect([givenBack(session), (await purchaseOf(transactionId)).refunded]).toEqual([1_000, 10])
      const { refundId } = await entry()
      expect(await store.call('refundPayment', { purchaseId: transactionId, refundId, notPaid: true })).toMatchObject({
        status: 409,
        body: { reason: 'refund_not_in_doubt' },
      })
      for (const body of [{}, { refundId, amount: 10 }])
        expect((await store.call('refundPayment', { purchaseId: transactionId, ...body, notPaid: true })).status).toBe(
          400,
        )
    })

    it('are restored if the bank returns a refund whose response was lost', async () => {
      const { session, refundStatus } = await refundWithoutResponse()
      store.psp.switches.status = 503
      const statuses = await store.psp.failRefund(refundsOf(session)[0]?.id ?? '')
      store.psp.switches.status = undefined
      if (statuses === undefined) return
      await store.psp.failRefund(refundsOf(session)[0]?.id ?? '')
      await store.wait('the failure', async () => (await refundStatus()) === 'failed', 60_000)
      expect([refundsOf(session).length, givenBack(session)]).toEqual([1, 0])
    })

    it('are restored if the bank returns a refund later', async () => {
      const { transactionId, session } = await paid()
      expect(await refund(transactionId)).toMatchObject({ status: 'CANCELLED', refundStatus: 'done' })
      const first = refundsOf(session)[0]?.id ?? ''
      store.psp.switches.copies = 2
      const statuses = await store.psp.failRefund(first)
      if (statuses === undefined) return
      expect(statuses).toEqual([200, 200])
      expect(await store.ok('fetchPurchase', { transactionId })).toMatchObject({
        status: 'SUCCESS',
        refundStatus: 'failed',
      })
      expect(
        (await store.exceptions('refund_failed')).filter((each) => each.purchase_id === transactionId),
      ).toHaveLength(1)
      store.psp.switches.copies = 1
      expect(await refund(transactionId)).toMatchObject({ status: 'CANCELLED', refundStatus: 'done' })
      expect([refundsOf(session).length, givenBack(session)]).toEqual([2, PRODUCT.priceCent])
    })
  }
  const title = `payments through ${provider}`
  if (traits.runsOnEveryDatabase) inFullSizeOnEveryDatabase(title, suite)
  else describe(`${title} on SQLite`, () => suite('sqlite'))
}
