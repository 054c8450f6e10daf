import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { PSP_NAMES } from '../../../simulators/services/psp-books.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase, type DatabaseKind } from '../../support/databases.ts'
import { openPaidStore, PRODUCT, type PaidStore } from '../../support/paid-store.ts'

/** Common tests of all providers, each against a simulator that follows its public documentation. */

/** Providers whose notifications are not signed. The cloud queries the payment. */
const UNSIGNED = new Set(['mollie', 'klarna', 'sumup'])
/** Providers that send no notification when a page ends without payment. The cloud queries the session. */
const SILENT_END = new Set(['adyen', 'paypal', 'worldline'])
/**
 * Providers whose notifications do not contain our payment id. The cloud cannot find a session whose id it never
 * received.
 */
const NAMES_NO_PAYMENT = UNSIGNED

/**
 * One provider of each kind: signed notifications, unsigned ones, and none when a page ends. The other providers run on
 * SQLite only, because they differ from these in their messages, not in their use of the database.
 */
const ON_EVERY_DATABASE = new Set(['stripe', 'mollie', 'adyen'])

for (const provider of PSP_NAMES) {
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
      expect(await store.psp.end(session, 'expired')).toEqual(SILENT_END.has(provider) ? [] : [200])
      await store.wait('the end', async () => (await store.statusOf(transactionId)) === 'CANCELLED', 10_000)
      expect(givenBack(session)).toBe(0)
    })

    it('reject forged notifications', async () => {
      const { transactionId, session } = await opened()
      const entries = async () =>
        (await store.cloud.db.database.reads.selectFrom('audit_entry').select('entry_id').execute()).length
      const before = await entries()
      expect(await store.psp.forge(session)).toBe(UNSIGNED.has(provider) ? 200 : 400)
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
      expect(await store.psp.end(made, 'paid')).toEqual([NAMES_NO_PAYMENT.has(provider) ? 400 : 200])
      if (!NAMES_NO_PAYMENT.has(provider)) await store.wait('the refund', () => givenBack(made) === PRODUCT.priceCent)
    })

    it('are restored after a rejected refund, and are refunded when requested again', async () => {
      const { transactionId, session } = await paid()
      store.psp.switches.status = 403
      expect(await refund(transactionId)).toMatchObject({ status: 'SUCCESS', refundStatus: 'failed' })
      store.psp.switches.status = undefined
      expect(await refund(transactionId)).toMatchObject({ status: 'CANCELLED', refundStatus: 'done' })
      expect(refundsOf(session)).toHaveLength(1)
    })

    it('are refunded once if the response is lost, the cloud gives up, and a repeated refund is rejected', async () => {
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
          ).every(({ state }) => state === 'failed'),
        10_000,
      )
      store.psp.switches.status = undefined
      for (let n = 0; (await refundStatus()) !== 'done' && n < 5; n++) {
        await withoutResponse(store.call('refundPayment', { purchaseId: transactionId }))
        await store.pass(5 * 60_000)
      }
      expect([await refundStatus(), givenBack(session), refundsOf(session).length]).toEqual(['done', 9_980, 2])
    })

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

    it('are refunded once if the response is lost and idempotency keys expire', async () => {
      const { session, refundStatus } = await refundWithoutResponse()
      store.psp.switches.status = 503
      await store.pass(2 * 3_600_000, 5 * 60_000)
      store.psp.switches.status = undefined
      await store.wait('the refund', async () => (await refundStatus()) === 'done', 10 * 60_000)
      expect([refundsOf(session).length, givenBack(session)]).toEqual([1, PRODUCT.priceCent])
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
  if (ON_EVERY_DATABASE.has(provider)) onEveryDatabase(title, suite)
  else describe(`${title} on SQLite`, () => suite('sqlite'))
}
