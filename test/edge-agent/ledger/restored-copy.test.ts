import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { SmallFiles } from '../../../edge-agent/ledger/file/watermark.ts'
import type { Json } from '../../support/cloud.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
afterEach(() => store.stop())

/** Returns a runtime folder in memory. */
function runtimeFolder(): SmallFiles & { texts: Map<string, string> } {
  const texts = new Map<string, string>()
  return { texts, read: (name) => texts.get(name), write: (name, text) => void texts.set(name, text) }
}

const product = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]
const station = () => store.shop.devices[LANES.station]
const release = (shown: Json) =>
  store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', ...shown })
const buy = () => store.buy([{ ean: product().ean, quantity: 1 }])
const tokenOf = async (purchaseId: string) =>
  (await store.drive(store.shop.ok('verifySecurityTagDeactivation', { purchaseId, deviceId: station() })))
    .authorizationToken
const doubt = async () => (await store.local('/v1/status')).body.ledgerDoubt
const synced = () =>
  store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
const cut = async () => {
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
}
const exceptions = async (): Promise<Json[]> =>
  (await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId }))).exceptions

const file = (name: string) => join(store.dataDir, name)
const backUp = () => store.restart(() => copyFileSync(file('ledger.db'), file('backup.db')))
const putBack = () =>
  store.restart(() => {
    for (const suffix of ['-wal', '-shm']) rmSync(file(`ledger.db${suffix}`), { force: true })
    copyFileSync(file('backup.db'), file('ledger.db'))
  })

/**
 * Releases a receipt and a token offline, then restores the ledger from a copy made before. The cloud stays offline.
 */
async function copiedBack(runtime: SmallFiles) {
  store = await openStore({ parts: { watermarkFolders: [runtime] } })
  const [byReceipt, byToken] = [await buy(), await buy()]
  await synced()
  const shown = { receipt: byReceipt.receipt, token: await tokenOf(byToken.purchase.transactionId) }
  await backUp()
  await synced()
  await cut()
  for (const each of [{ receipt: shown.receipt }, { token: shown.token }])
    expect(await release(each)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: true })
  await putBack()
  return shown
}

it('rejects a used receipt and token offline after an old copy of its folder was restored', async () => {
  const { receipt, token } = await copiedBack(runtimeFolder())
  const pulses = store.pulses('station')
  for (let restarts = 0; restarts < 2; restarts++) {
    expect(await doubt()).toBe('put_back')
    for (const each of [{ receipt }, { token }])
      expect(await release(each)).toMatchObject({
        authorized: false,
        reason: 'manual_assistance_required',
        offline: true,
      })
    await store.restart()
  }
  expect(store.pulses('station')).toBe(pulses)
})

it('keeps the restored ledger untrusted after a reboot, which empties the runtime folder', async () => {
  const runtime = runtimeFolder()
  const { receipt } = await copiedBack(runtime)
  await store.restart(() => runtime.texts.clear())
  expect(await doubt()).toBe('put_back')
  expect(await release({ receipt })).toMatchObject({ authorized: false })
})

it('reports the restore to the cloud, which raises ledger_rollback although it never received the lost rows', async () => {
  await copiedBack(runtimeFolder())
  store.network(true)
  await synced()
  const raised = await exceptions()
  expect(raised.map(({ kind }) => kind)).toEqual(['ledger_rollback'])
  expect(raised[0]?.detail).toContain('later releases that the agent had not reported are unknown')
  expect(store.agent.ledger.generation).toBe(2)
  expect(await doubt()).toBe('put_back')
  await store.world.advance(12 * 60_000)
  await synced()
  expect(await doubt()).toBe(null)
  // The cloud has accepted the restored ledger, so it stays trusted after a restart.
  await store.restart()
  await synced()
  expect(await doubt()).toBe(null)
  await cut()
  expect(await release({ receipt: (await buy()).receipt })).toMatchObject({ authorized: true, offline: true })
  expect((await exceptions()).map(({ kind }) => kind)).toEqual(['ledger_rollback'])
})

it('works with a failing runtime folder, but cannot detect the restore', async () => {
  const failing = () => {
    throw new Error('ENOSPC')
  }
  await copiedBack({ read: failing, write: failing })
  expect(await doubt()).toBe(null)
})
