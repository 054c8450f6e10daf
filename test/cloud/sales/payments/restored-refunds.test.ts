import { afterAll, beforeAll, expect, it } from 'vitest'
import { keysOf, loadKeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { markRestored } from '../../../../cloud/service/mark-restored.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openPaidStore, type PaidStore } from '../../../support/paid-store.ts'

/** The backup contains a pending refund. The cloud sent it after the backup was made. */
onEveryDatabase('a refund in a cloud that was restored from a backup', (kind) => {
  let store: PaidStore
  beforeAll(async () => {
    store = await openPaidStore(kind, 'sumup')
  })
  afterAll(() => store.stop())

  it.each(['due', 'held'] as const)(
    'is searched at a provider without idempotency keys before it is sent (%s)',
    async (state) => {
      const { database } = store.cloud.db
      const { transactionId } = await store.start()
      const session = await store.sessionOf(transactionId)
      await store.psp.end(session, 'paid')
      const { refund } = await store.ok('refundPayment', { purchaseId: transactionId, amount: 10 })
      expect(refund.status).toBe('done')
      const row = { state, attempts: 0, due_ms: null, provider_ref: null, finished_ms: null }
      await database.write((db) => db.updateTable('refund').set(row).where('refund_id', '=', refund.refundId).execute())
      const files = await loadKeyFiles(keysOf(store.cloud.keyFolder), secretFiles, store.platform.random)
      await database.write((db) => markRestored(db, files, store.platform))
      const nowMs = store.platform.clock.wall()
      await database.write((db) =>
        db
          .updateTable('refund')
          .set({ state: 'due', due_ms: nowMs })
          .where('refund_id', '=', refund.refundId)
          .execute(),
      )
      await store.wait('the refund', async () => {
        const { state: now } = await database.reads
          .selectFrom('refund')
          .select('state')
          .where('refund_id', '=', refund.refundId)
          .executeTakeFirstOrThrow()
        return now === 'done'
      })
      expect(store.psp.refunds.filter((each) => each.sessionId === session)).toHaveLength(1)
    },
  )
})
