import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApp } from '../../../../cloud/service/http/app.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openPaidStore, PRODUCT, type PaidStore } from '../../../support/paid-store.ts'

/** Maximum number of database writes of one tested operation. */
const WRITES = 8
const LEASE_MS = 61_000

onEveryDatabase('a request that is repeated under its key after its process died (P5)', (kind) => {
  let store: PaidStore
  let keys = 0
  beforeAll(async () => {
    store = await openPaidStore(kind)
  })
  afterAll(() => store.stop())

  /** A process with its own database connection that dies at its n-th write. Returns whether it responded before. */
  async function askOneThatDies(operation: string, body: Json, key: string, writes: number): Promise<boolean> {
    const { database } = store.cloud.db
    let left = writes
    let die: () => void = () => undefined
    const dead = new Promise<'dead'>((resolve) => (die = () => resolve('dead')))
    const dying: Database = {
      ...database,
      write(work) {
        if (left-- > 0) return database.write(work)
        die()
        return new Promise(() => undefined)
      },
    }
    const app = createApp(OPERATION_TABLE, dying, store.cloud.cloud.services)
    const headers = { authorization: `Bearer ${store.key}`, 'content-type': 'application/json', 'idempotency-key': key }
    const answered = Promise.resolve(
      app.request(`/api/v1/${operation}`, { method: 'POST', headers, body: JSON.stringify(body) }),
    ).then(() => 'answered' as const)
    return (await Promise.race([answered, dead])) === 'answered'
  }

  /**
   * Lets a process die at each of its writes in turn, then repeats the request to the running process and checks the
   * response.
   */
  async function atEveryWrite(
    operation: string,
    prepare: () => Promise<Json>,
    check: (answer: Json, body: Json) => Promise<void>,
  ): Promise<void> {
    for (let writes = 0; writes <= WRITES; writes++) {
      const body = await prepare()
      const key = `death-${++keys}`
      const isAnswered = await askOneThatDies(operation, body, key, writes)
      store.platform.setWall(store.platform.clock.wall() + LEASE_MS)
      const again = await store.call(operation, body, { 'idempotency-key': key })
      expect([operation, writes, again.status, again.body.error]).toEqual([operation, writes, 200, undefined])
      await check(again.body, body)
      const replayed = await store.call(operation, body, { 'idempotency-key': key })
      expect([replayed.text, replayed.headers.get('idempotency-replayed')]).toEqual([again.text, 'true'])
      if (isAnswered) return
    }
    throw new Error(`${operation} writes more than ${WRITES} times`)
  }

  const rows = (
    table: 'purchase' | 'payment' | 'refund',
    column: 'session_id' | 'purchase_id',
    id: string,
  ): Promise<Json[]> =>
    store.cloud.db.database.reads
      .selectFrom(table)
      .selectAll()
      .where(column as never, '=', id as never)
      .execute()
  const audits = async (entityId: string, operation: string) =>
    (
      await store.cloud.db.database.reads
        .selectFrom('audit_entry')
        .selectAll()
        .where('entity_id', '=', entityId)
        .where('operation', '=', operation)
        .execute()
    ).length

  async function paid(quantity: number): Promise<string> {
    const { transactionId } = await store.start(quantity)
    await store.psp.end(await store.sessionOf(transactionId), 'paid')
    return transactionId
  }

  it('starts one checkout', async () => {
    const prepare = async () => ({
      sessionId: (await store.ok('checkIn', { storeId: store.storeId })).sessionId,
      items: [{ ean: PRODUCT.ean, quantity: 1 }],
    })
    await atEveryWrite('startCheckout', prepare, async ({ transactionId, checkoutUrl }, { sessionId }) => {
      expect((await rows('purchase', 'session_id', sessionId)).map((row) => row.purchase_id)).toEqual([transactionId])
      expect((await rows('payment', 'purchase_id', transactionId)).map((row) => [row.state, row.url])).toEqual([
        ['open', checkoutUrl],
      ])
      expect(await audits(transactionId, 'startCheckout')).toBe(1)
    })
  })

  it('starts a new checkout if the first purchase was cancelled as unopened meanwhile', async () => {
    const { sessionId } = await store.ok('checkIn', { storeId: store.storeId })
    const body = { sessionId, items: [{ ean: PRODUCT.ean, quantity: 1 }] }
    await askOneThatDies('startCheckout', body, 'left-alone', 2)
    await store.wait(
      'the end of what was never opened',
      async () => (await rows('purchase', 'session_id', sessionId))[0]?.status === 'CANCELLED',
      30_000,
    )
    const again = await store.ok('startCheckout', body, { 'idempotency-key': 'left-alone' })
    expect(again).toMatchObject({ status: 'PENDING_PAYMENT', checkoutUrl: expect.stringContaining('/pay/') })
    expect((await rows('purchase', 'session_id', sessionId)).map((row) => row.status).sort()).toEqual([
      'CANCELLED',
      'PENDING_PAYMENT',
    ])
  })

  it('opens one payment', async () => {
    const prepare = async () => ({ purchaseId: (await store.start()).transactionId })
    await atEveryWrite('processPayment', prepare, async ({ transactionId }) => {
      expect(await rows('payment', 'purchase_id', transactionId)).toHaveLength(1)
    })
  })

  it('approves once and opens one payment', async () => {
    const { policy } = await store.ok('fetchProtectionPolicy', { storeId: store.storeId })
    const { operatorId } = await store.ok('registerOperator', { storeId: store.storeId, name: 'Frau Petersen' })
    await store.ok('updateProtectionPolicy', { storeId: store.storeId, policy: { ...policy, spotCheckRate: 1 } })
    const prepare = async () => ({ transactionId: (await store.start()).transactionId, operatorId })
    await atEveryWrite('approveCheckout', prepare, async ({ transactionId, status }) => {
      expect(status).toBe('PENDING_PAYMENT')
      expect((await rows('payment', 'purchase_id', transactionId)).map((row) => row.state)).toEqual(['open'])
      expect(await audits(transactionId, 'approveCheckout')).toBe(1)
    })
    await store.ok('updateProtectionPolicy', { storeId: store.storeId, policy: { ...policy, spotCheckRate: 0 } })
  })

  it.each([
    ['an amount', (transactionId: string) => Promise.resolve({ purchaseId: transactionId, amount: 10 }), 1_000],
    [
      'a line',
      async (transactionId: string) => ({
        purchaseId: transactionId,
        lines: [{ itemLineId: (await store.ok('fetchPurchase', { transactionId })).items[0].itemLineId }],
      }),
      3 * PRODUCT.priceCent,
    ],
    ['all of it', (transactionId: string) => Promise.resolve({ purchaseId: transactionId }), 3 * PRODUCT.priceCent],
  ])('refunds %s once', async (_what, bodyOf, cents) => {
    await atEveryWrite(
      'refundPayment',
      async () => bodyOf(await paid(3)),
      async (_answer, { purchaseId }) => {
        expect((await rows('refund', 'purchase_id', purchaseId)).map((row) => Number(row.amount_cent))).toEqual([cents])
        const session = await store.sessionOf(purchaseId)
        const sent = store.psp.refunds.filter((refund) => refund.sessionId === session)
        expect(sent.reduce((sum, refund) => sum + refund.amountCent, 0)).toBeLessThanOrEqual(cents)
      },
    )
  })
})
