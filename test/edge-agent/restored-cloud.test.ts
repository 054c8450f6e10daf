import { copyFileSync, rmSync } from 'node:fs'
import { afterEach, expect, it } from 'vitest'
import { noteRestore } from '../../cloud/restore/note-restore.ts'
import type { Json } from '../support/cloud.ts'
import { LANES, openStore, type TestStore } from '../support/store.ts'

let store: TestStore
afterEach(() => store.stop())

const station = () => store.shop.devices[LANES.station]
const file = () => (store.shop.cloud.db.location as { file: string }).file
const call = (operation: string, body: object): Promise<Json> => store.drive(store.shop.call(operation, body))
const ok = (operation: string, body: object): Promise<Json> => store.drive(store.shop.ok(operation, body))
const product = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]
const buy = () => store.buy([{ ean: product().ean, quantity: 1 }])
const release = (receipt: string) => store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', receipt })
const synced = () => store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0 && !store.agent.trust.isBehind)
const status = async (purchase: Json) => (await ok('fetchPurchase', { transactionId: purchase.transactionId })).securityTagStatus
const raised = async (kind: string): Promise<Json[]> => (await ok('fetchExceptions', { storeId: store.shop.storeId, kind })).exceptions
const resync = async (): Promise<string | null> => (await store.shop.cloud.db.database.reads.selectFrom('agent').select('resync').executeTakeFirstOrThrow()).resync
const network = async (isUp: boolean) => {
  store.network(isUp)
  await store.until(isUp ? 'online' : 'offline', () => store.agent.link.isOnline === isUp)
}

/** The state that a backup holds: the file alone, with nothing in the log beside it. */
async function backUp(): Promise<void> {
  await synced()
  await store.drive(store.shop.cloud.restart(() => copyFileSync(file(), `${file()}.backup`)))
  await store.until('online again', () => store.agent.link.isOnline)
}

/** The cloud and all that it has done since the backup are gone; another goes on from the backup. */
async function restore(): Promise<void> {
  store.network(false)
  await store.drive(
    store.shop.cloud.restart(async () => {
      for (const suffix of ['-wal', '-shm']) rmSync(file() + suffix, { force: true })
      copyFileSync(`${file()}.backup`, file())
      const database = await store.shop.cloud.db.again()
      await database.write((db) => noteRestore(db, store.world.clock.wall()))
      await database.close()
    }),
  )
}

it('what was used after the backup is used in the restored cloud, each thing once', async () => {
  store = await openStore()
  const [online, offline, untouched] = [await buy(), await buy(), await buy()]
  await backUp()
  // Claims with a token of the cloud that is then lost, and with receipts alone; all are acknowledged.
  expect(await release(online.receipt)).toMatchObject({ authorized: true, offline: false })
  await network(false)
  expect(await release(offline.receipt)).toMatchObject({ authorized: true, offline: true })
  await network(true)
  await synced()
  expect([await status(online.purchase), await status(offline.purchase)]).toEqual(['deactivated', 'deactivated'])
  const { head } = store.agent.ledger.journal

  await restore()
  expect([await status(online.purchase), await status(offline.purchase)]).toEqual(['pending', 'pending'])
  const refused = await call('verifySecurityTagDeactivation', { purchaseId: online.purchase.transactionId, deviceId: station() })
  expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable', reason: 'resyncing' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await call('verifySecurityTagDeactivation', { purchaseId: untouched.purchase.transactionId })).toMatchObject({ status: 503 })

  await network(true)
  await synced()
  await store.until('the word that all was told', async () => (await resync()) === null)
  expect([await status(online.purchase), await status(offline.purchase)]).toEqual(['deactivated', 'deactivated'])
  for (const { purchase, receipt } of [online, offline]) {
    expect(await ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: station() })).toMatchObject({ deactivationAuthorized: false, authorizationToken: null })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  }
  expect(await release(untouched.receipt)).toMatchObject({ authorized: true, offline: false })
  expect(store.pulses('station')).toBe(3)
  for (const kind of ['double_redeem', 'unapplied', 'foreign_evidence', 'agent_fork', 'ledger_gap', 'refused_document', 'redeemed_after_revocation']) expect([kind, await raised(kind)]).toEqual([kind, []])
  expect(store.agent.ledger.generation).toBe(1)
  // Told again once: a restart begins nothing anew.
  await store.restart()
  await synced()
  const rows = await store.shop.cloud.db.database.reads.selectFrom('journal_row').select('seq').orderBy('seq').execute()
  expect(rows.map((row) => row.seq)).toEqual(Array.from({ length: store.agent.ledger.journal.head.seq }, (_, i) => i + 1))
  expect(store.agent.ledger.journal.head.seq).toBeGreaterThan(head.seq)
})

it('numbers go on above all that were given: agents take policy, denials and items of the restored cloud', async () => {
  store = await openStore()
  const { storeId } = store.shop
  const [doomed, other] = [await buy(), await buy()]
  const { epc } = await store.drive(store.shop.newItem(product()))
  await backUp()
  // Far more has happened since than will happen next.
  for (let i = 0; i < 4; i++) await ok('updateProtectionPolicy', { storeId, policy: { requiresManualOverrideAboveValue: 900 + i } })
  for (let i = 0; i < 3; i++) {
    const { purchase } = await buy()
    await ok('markPurchaseCancelled', { transactionId: purchase.transactionId })
  }
  const { epc: forgotten } = await store.drive(store.shop.newItem(product()))
  await ok('updateItemStatus', { storeId, epc, itemStatus: 'exception_hold', operatorId: 'op-1' })
  await store.until('all of it at the agent', () => store.agent.items.find('epc', epc)?.status === 'exception_hold' && store.agent.items.find('epc', forgotten)?.status === 'sellable' && !store.agent.trust.isBehind)
  const before = { policy: store.agent.trust.policy, have: store.agent.trust.have() }

  await restore()
  await network(true)
  await synced()
  await store.until('the items', () => store.agent.items.find('epc', forgotten) === undefined)
  expect(store.agent.items.find('epc', epc)).toMatchObject({ status: 'sellable' })
  expect(store.agent.trust.policy?.policy.requiresManualOverrideAboveValue).not.toBe(before.policy?.policy.requiresManualOverrideAboveValue)
  await ok('updateProtectionPolicy', { storeId, policy: { requiresManualOverrideAboveValue: 700 } })
  await ok('markPurchaseCancelled', { transactionId: doomed.purchase.transactionId })
  await ok('updateItemStatus', { storeId, epc, itemStatus: 'transfer_in_transit', operatorId: 'op-1' })
  await store.until('all of it', () => store.agent.trust.policy?.policy.requiresManualOverrideAboveValue === 700 && store.agent.items.find('epc', epc)?.status === 'transfer_in_transit')
  await synced()
  await network(false)
  expect(await release(doomed.receipt)).toMatchObject({ authorized: false, reason: 'token_revoked', offline: true })
  expect(await release(other.receipt)).toMatchObject({ authorized: true, offline: true })
  await network(true)
  // The refund went once the denial was confirmed: by the numbers of now.
  await store.until('the refund', async () => (await store.shop.cloud.db.database.reads.selectFrom('purchase').select('refund_status').where('purchase_id', '=', doomed.purchase.transactionId).executeTakeFirst())?.refund_status === 'done', 120_000)
  expect(await raised('refused_document')).toEqual([])
  // The same backup once more: the time of the restore tells the two apart.
  await restore()
  await network(true)
  await synced()
  await store.until('the items of the backup again', () => store.agent.items.find('epc', epc)?.status === 'sellable')
  expect(await raised('refused_document')).toEqual([])
})
