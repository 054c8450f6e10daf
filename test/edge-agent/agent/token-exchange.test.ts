import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

/**
 * An agent with a restored ledger decides nothing offline for 11 minutes. Online, shoppers and staff notice no
 * difference.
 */

let store: TestStore
afterEach(() => store.stop())

const station = () => store.shop.devices[LANES.station]
const detacher = () => store.shop.devices[LANES.detacher]
const ok = (operation: string, body: Json) => store.drive(store.shop.ok(operation, body))
const synced = () =>
  store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
const product = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]
const buy = (quantity = 1) => store.buy([{ ean: product().ean, quantity }])
const authorization = (nonce: string) =>
  store.shop.cloud.db.database.reads
    .selectFrom('protection_authorization')
    .selectAll()
    .where('nonce', '=', nonce)
    .executeTakeFirstOrThrow()
const verify = ({ transactionId }: Json, more: Json = {}) =>
  ok('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId: station(), ...more })
const show = (shown: Json) => store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', ...shown })
const exceptions = async () =>
  ((await ok('fetchExceptions', { storeId: store.shop.storeId })).exceptions as Json[]).map(({ kind }) => kind)

/** Restores the ledger to a state before its last row, and waits until the cloud has detected that. */
async function putBack(): Promise<void> {
  const file = (name: string) => join(store.dataDir, name)
  await synced()
  await store.restart(() => copyFileSync(file('ledger.db'), file('backup.db')))
  const { receipt } = await buy()
  expect(await show({ receipt })).toMatchObject({ authorized: true })
  await synced()
  await store.restart(() => {
    for (const suffix of ['-wal', '-shm']) rmSync(file(`ledger.db${suffix}`), { force: true })
    copyFileSync(file('backup.db'), file('ledger.db'))
  })
  await synced()
  expect(store.agent.ledger.generation).toBe(2)
}

it('an untrusted agent exchanges a program’s token at the cloud, and releases each unit once', async () => {
  store = await openStore()
  await putBack()
  const { purchase } = await buy(2)
  const { authorizationToken: token, replayProtectedNonce: nonce } = await verify(purchase)
  expect(await authorization(nonce)).toMatchObject({ ledger: 'cloud', agent_id: null })
  // A repeated request of the program returns the same token.
  expect((await verify(purchase)).replayProtectedNonce).toBe(nonce)
  const pulses = store.pulses('station')
  expect(await show({ token })).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
  expect(await show({ token })).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
  await synced()
  expect(await show({ token })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(store.pulses('station')).toBe(pulses + 2)
  await store.until(
    'deactivated',
    async () =>
      (await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).securityTagStatus ===
      'deactivated',
  )
  expect(await exceptions()).toEqual(['ledger_rollback'])
})

it('accepts the receipt in place of such a token, for every unit', async () => {
  store = await openStore()
  await putBack()
  const { purchase, receipt } = await buy(3)
  const { authorizationToken: token } = await verify(purchase)
  for (let n = 0; n < 3; n++) expect(await show({ receipt })).toMatchObject({ authorized: true, outcome: 'confirmed' })
  await synced()
  for (const shown of [{ receipt }, { token }])
    expect(await show(shown)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(await exceptions()).toEqual(['ledger_rollback'])
})

it('accepts a token for one tag with or without that tag, and for no other tag', async () => {
  store = await openStore()
  await putBack()
  const epcs = ['E28000000000000000000001', 'E28000000000000000000002']
  await ok('registerProtectedItems', {
    storeId: store.shop.storeId,
    items: epcs.map((epc) => ({ epc, ean: product().ean, protectionTechnology: 'uhf_rfid' })),
  })
  const { purchase } = await store.buy([{ ean: product().ean, quantity: 2, epcs }])
  const tokenOf = async (epc: string | undefined) =>
    (
      await ok('verifyProtectedItem', {
        purchaseId: purchase.transactionId,
        deviceId: detacher(),
        protectionAction: 'detach_hard_tag',
        epc,
      })
    ).authorizationToken
  const [first, second] = [await tokenOf(epcs[0]), await tokenOf(epcs[1])]
  const detach = (shown: Json) =>
    store.authorize({ deviceId: detacher(), protectionAction: 'detach_hard_tag', ...shown })
  expect(await detach({ token: first, epc: epcs[1] })).toMatchObject({ authorized: false, reason: 'token_invalid' })
  expect(await detach({ token: first, epc: epcs[0] })).toMatchObject({ authorized: true, outcome: 'confirmed' })
  expect(await detach({ token: second })).toMatchObject({ authorized: true, outcome: 'confirmed' })
  await synced()
  expect(await detach({ token: second })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(await exceptions()).toEqual(['ledger_rollback'])
})

it('rejects a revoked, expired or foreign token, and leaves it to staff offline', async () => {
  store = await openStore()
  await putBack()
  const { purchase } = await buy()
  const { authorizationToken: token, replayProtectedNonce } = await verify(purchase)
  expect(await show({ token, deviceId: detacher(), protectionAction: 'detach_hard_tag' })).toMatchObject({
    reason: 'token_invalid',
  })
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  expect(await show({ token })).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  store.network(true)
  await synced()
  await ok('revokeProtectionAuthorization', { replayProtectedNonce })
  expect(await show({ token })).toMatchObject({ authorized: false, reason: 'token_revoked' })

  const other = await buy()
  const { authorizationToken: old } = await verify(other.purchase)
  await store.world.advance(301_000)
  expect(await show({ token: old })).toMatchObject({ authorized: false, reason: 'token_expired' })
})

it('a program receives a normal token once the ledger is trusted again', async () => {
  store = await openStore()
  await putBack()
  const { purchase } = await buy()
  await store.world.advance(10 * 60_000)
  await synced()
  const before = await verify(purchase)
  await store.world.advance(2 * 60_000)
  await synced()
  const after = await verify(purchase)
  expect(after.replayProtectedNonce).not.toBe(before.replayProtectedNonce)
  expect(await authorization(after.replayProtectedNonce)).toMatchObject({ ledger: `${store.agent.ledger.ledgerId}.2` })
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  expect(await show({ token: after.authorizationToken })).toMatchObject({ authorized: true, offline: true })
})

it('only the device’s agent may exchange a token, and the program cannot redeem the exchanged one again', async () => {
  store = await openStore()
  await putBack()
  const { purchase } = await buy()
  const { authorizationToken: token, replayProtectedNonce } = await verify(purchase)
  const ask = { deviceId: station(), protectionAction: 'deactivate_label', authorizationToken: token }
  const refused = await store.drive(store.shop.call('verifyProtectedItem', ask))
  expect(refused.status).toBe(400)
  expect(refused.body.error).toMatch(/^authorizationToken: is for agents/)
  expect(await show({ token })).toMatchObject({ authorized: true })
  const redeemed = await store.drive(
    store.shop.call('redeemProtectionAuthorization', {
      replayProtectedNonce,
      deviceId: station(),
      redemptionId: 'r-1',
    }),
  )
  expect(redeemed.status).toBe(409)

  const other = await buy()
  const given = await verify(other.purchase)
  expect(
    (
      await store.drive(
        store.shop.call('redeemProtectionAuthorization', {
          authorizationToken: given.authorizationToken,
          deviceId: station(),
          redemptionId: 'r-2',
          outcome: 'confirmed',
        }),
      )
    ).status,
  ).toBe(200)
  expect(await show({ token: given.authorizationToken })).toMatchObject({
    authorized: false,
    reason: 'already_redeemed',
  })
})

it('a forked agent exchanges tokens too, until staff resolve the fork', async () => {
  store = await openStore()
  await synced()
  const [tables, { purchase }, early] = [store.shop.cloud.db.database, await buy(2), await buy()]
  const before = await verify(early.purchase)
  await store.drive(tables.write((db) => db.updateTable('agent').set({ fork_ms: store.world.clock.wall() }).execute()))
  await store.restart()
  await synced()
  const { authorizationToken: token } = await verify(purchase)
  for (let n = 0; n < 2; n++)
    expect(await show({ token })).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
  // The other one may have used it.
  expect(await show({ token: before.authorizationToken })).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
  })
  await synced()
  expect(await show({ token })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
})

it('keeps the approval of an operator for an exchanged token', async () => {
  store = await openStore()
  await putBack()
  const { storeId } = store.shop
  const { policy } = await ok('fetchProtectionPolicy', { storeId })
  await ok('updateProtectionPolicy', { storeId, policy: { ...policy, requiresManualOverrideAboveValue: 1 } })
  const { operatorId } = await ok('registerOperator', { storeId, name: 'Ada', pin: '482913' })
  const { purchase } = await buy()
  expect(await verify(purchase)).toMatchObject({ deactivationAuthorized: false, reason: 'manual_assistance_required' })
  const { authorizationToken: token } = await verify(purchase, { operatorId })
  expect(await show({ token })).toMatchObject({ authorized: true, outcome: 'confirmed' })
})
