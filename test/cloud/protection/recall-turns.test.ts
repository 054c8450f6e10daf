import { expect, it } from 'vitest'
import { publishInTurns } from '../../../cloud/protection/recalls/publish-recalls.ts'
import { startTestCloud } from '../../support/cloud.ts'

it('accounts take turns with what their recalls publish, active recalls first', async () => {
  const cloud = await startTestCloud('sqlite')
  const { database } = cloud.db
  const recall = (tenant: string, recall_id: string, ended_ms: number | null = null) => ({
    recall_id,
    tenant,
    ended_ms,
    stores: null,
    product_id: 'prd',
    ean: '4012345678901',
    lot: null,
    expiry: null,
    serial: null,
    reason: 'Bruch',
    started_ms: 1,
    started_by: 'key',
    ended_by: null,
    publish_after: '',
    receipts_after: null,
    items: 0,
    sold_items: 0,
  })
  await database.write((db) =>
    db
      .insertInto('product_recall')
      .values([recall('a', 'rcl_1', 5), recall('a', 'rcl_2'), recall('a', 'rcl_3'), recall('b', 'rcl_9')])
      .execute(),
  )
  const turns: string[] = []
  await publishInTurns(database, cloud.cloud.services, {
    job: 'items of recalls',
    column: 'publish_after',
    async publish(recallId) {
      turns.push(recallId)
      await database.write((db) =>
        db.updateTable('product_recall').set({ publish_after: null }).where('recall_id', '=', recallId).execute(),
      )
      return true
    },
  })
  expect(turns).toEqual(['rcl_2', 'rcl_9', 'rcl_3', 'rcl_1'])
  await cloud.stop()
})
