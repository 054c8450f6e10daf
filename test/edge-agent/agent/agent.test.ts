import { afterEach, describe, expect, it } from 'vitest'
import { openReceipt } from '../../../policy/receipts/receipt-token.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const HOUR = 3_600_000

describe('an agent at a station', () => {
  let store: TestStore
  afterEach(() => store.stop())
  const { device, release, leave, detach, synced, offline, events, product } = atLanes(() => store)

  it('releases a paid tag online: requests, claims, pulses, reads the confirm input, reports', async () => {
    store = await openStore()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const answer = await release(receipt)
    expect(answer).toMatchObject({
      authorized: true,
      action: 'deactivate_label',
      offline: false,
      outcome: 'confirmed',
      itemCount: 1,
      remaining: 0,
    })
    expect(store.pulses('station')).toBe(1)
    const reported = await events({ purchaseId: purchase.transactionId })
    expect(reported.map((e) => e.type)).toEqual(
      expect.arrayContaining(['protection.authorization.granted', 'protection.action.completed']),
    )
    expect(reported.some((e) => e.eventId === answer.eventId)).toBe(true)
    expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', outcome: null })
    expect(store.pulses('station')).toBe(1)
  })

  it('releases several units with one pulse each', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 3 }])
    for (const remaining of [2, 1, 0])
      expect(await release(receipt)).toMatchObject({ authorized: true, itemCount: 3, remaining })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(3)
  })

  it('releases nothing by a receipt without tagged goods, but opens the barrier with it once, online and offline', async () => {
    store = await openStore()
    const untagged = { ean: '4044713104064' }
    const [first, second] = [
      await store.buy([{ ean: untagged.ean, quantity: 1 }]),
      await store.buy([{ ean: untagged.ean, quantity: 1 }]),
    ]
    const nothing = { authorized: false, reason: 'no_tagged_goods' }
    expect(await release(first.receipt)).toMatchObject({ ...nothing, offline: false })
    expect(await leave({ receipt: first.receipt })).toMatchObject({ authorized: true, itemCount: 1, offline: false })
    const used = { authorized: false, reason: 'already_redeemed' }
    expect(await leave({ receipt: first.receipt })).toMatchObject({ ...used, offline: false })
    await offline()
    expect(await release(second.receipt)).toMatchObject({ ...nothing, offline: true })
    expect(await leave({ receipt: second.receipt })).toMatchObject({ authorized: true, itemCount: 1, offline: true })
    expect(await leave({ receipt: second.receipt })).toMatchObject({ ...used, offline: true })
    expect(await leave({ receipt: first.receipt })).toMatchObject({ ...used, offline: true })
  })

  it('reads receipts from its scanner despite garbage and partial lines', async () => {
    store = await openStore()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const scanner = store.scanners.station
    await store.drive(scanner.garbage(300))
    await store.drive(scanner.halfLine(receipt.slice(0, 40)))
    await store.drive(scanner.scan(receipt, 'Q1'))
    const status = async () =>
      (await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).securityTagStatus
    await store.until('deactivated', async () => (await status()) === 'deactivated')
    expect(store.pulses('station')).toBe(1)
  })

  it('accepts a receipt offline once, also after a crash and restart', async () => {
    store = await openStore()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    await offline()
    expect(store.agent.status()).toMatchObject({ online: false, offlineSince: expect.any(String) })
    expect(await release(receipt)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
    expect(store.agent.status().queueDepth).toBeGreaterThan(0)
    await store.restart()
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(1)
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    const reported = await events({ purchaseId: purchase.transactionId })
    expect(reported.filter((e) => e.type === 'protection.device.offline')).toHaveLength(1)
    expect(reported.filter((e) => e.type === 'protection.action.completed')).toHaveLength(1)
    expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: false })
  })

  it.each([
    ['with a broker', true],
    ['without', false],
  ])('shows in fetchAgents when the policy has arrived and the backlog is sent: %s', async (_name, broker) => {
    store = await openStore({ broker })
    const agent = async () =>
      (await store.drive(store.shop.ok('fetchAgents', { storeId: store.shop.storeId }))).agents[0] as Json
    const receipts: string[] = []
    for (let i = 0; i < 4; i++) receipts.push((await store.buy([{ ean: product().ean, quantity: 1 }])).receipt)
    const before = store.agent.trust.policy?.ver ?? 0
    await offline()
    for (const receipt of receipts) expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
    const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId }))
    await store.drive(
      store.shop.ok('updateProtectionPolicy', {
        storeId: store.shop.storeId,
        policy: { ...policy, spotCheckRate: 0.5 },
      }),
    )
    await store.world.advance(2 * 60_000)
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await synced()
    await store.world.advance(31_000)
    const { ver } = store.agent.trust.policy ?? { ver: 0 }
    expect(ver).toBeGreaterThan(before)
    const shown = await agent()
    expect(shown).toMatchObject({ policyVersion: ver, queueDepth: 0, ...(broker && { online: true }) })
    expect(store.world.clock.wall() - Date.parse(shown['stateAt'])).toBeLessThan(32_000)
    // The agent publishes its state again without a change, so that a recent state shows that it is online.
    await store.world.advance(2 * 60_000)
    expect(store.world.clock.wall() - Date.parse((await agent())['stateAt'])).toBeLessThan(80_000)
  })

  it('accepts a receipt once, online first and then offline', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 2 }])
    await release(receipt)
    await offline()
    expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(2)
  })

  it('accepts a token that was fetched before the network failed, once', async () => {
    store = await openStore()
    const { purchase } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const { authorizationToken: token } = await store.shop.ok('verifySecurityTagDeactivation', {
      purchaseId: purchase.transactionId,
      deviceId: device('station'),
    })
    await offline()
    const ask = () => store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', token })
    expect(await ask()).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
    expect(await ask()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await store.restart()
    expect(await ask()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(1)
  })

  it('rejects a token that is expired, for another device, for another action, altered or revoked', async () => {
    store = await openStore()
    const { purchase } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const { authorizationToken: token, replayProtectedNonce } = await store.shop.ok('verifySecurityTagDeactivation', {
      purchaseId: purchase.transactionId,
      deviceId: device('station'),
    })
    const ask = (fields: Json) =>
      store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', token, ...fields })
    expect(await ask({ deviceId: device('detacher'), protectionAction: 'detach_hard_tag' })).toMatchObject({
      reason: 'token_invalid',
    })
    expect(await ask({ protectionAction: 'detach_hard_tag' })).toMatchObject({ reason: 'token_invalid' })
    expect(await ask({ token: `${token.slice(0, -8)}AAAAAAAA` })).toMatchObject({ reason: 'token_invalid' })
    expect(await ask({ token: 'a.b.c' })).toMatchObject({ reason: 'token_invalid' })
    await store.drive(store.shop.ok('revokeProtectionAuthorization', { replayProtectedNonce }))
    await store.until('the denial', () => store.agent.ledger.claims.isDenied(replayProtectedNonce))
    expect(await ask({})).toMatchObject({ reason: 'token_revoked' })
    const { purchase: second } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const fresh = await store.shop.ok('verifySecurityTagDeactivation', {
      purchaseId: second.transactionId,
      deviceId: device('station'),
    })
    store.world.sleep(301_000)
    expect(await ask({ token: fresh.authorizationToken })).toMatchObject({ reason: 'token_expired' })
    expect(store.pulses('station')).toBe(0)
  })

  it.each(['online', 'offline'])('names the reason of a receipt of another store, %s', async (mode) => {
    store = await openStore()
    const { ok, otherStoreId } = store.shop
    const { sessionId } = await ok('checkIn', { storeId: otherStoreId })
    const { transactionId } = await ok('startCheckout', { sessionId, items: [{ ean: product().ean, quantity: 1 }] })
    await ok('completeTestCheckout', { transactionId })
    const { url } = await ok('generateReceiptQR', { purchaseId: transactionId })
    if (mode === 'offline') await offline()
    const elsewhere = { authorized: false, reason: 'store_mismatch', outcome: null }
    expect(await release(url)).toMatchObject(elsewhere)
    expect(await release(url, { tagId: 'T-1' })).toMatchObject(elsewhere)
    expect(await leave({ receipt: url })).toMatchObject(elsewhere)
  })

  it('rejects a forged, foreign, old or cancelled receipt', async () => {
    store = await openStore()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    expect(await release(`${receipt.slice(0, -8)}AAAAAAAA`)).toMatchObject({ reason: 'token_invalid' })
    expect(await release('HTTPS://SHOP.EXAMPLE/R/NONSENSE')).toMatchObject({ reason: 'token_invalid' })
    await store.drive(store.shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId }))
    expect(await release(receipt)).toMatchObject({ reason: 'token_revoked' })
    await store.until('the denial', () => store.agent.trust.heldVersions().deny?.[1] !== 0)
    await offline()
    expect(await release(receipt)).toMatchObject({ reason: 'token_revoked', offline: true })
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    const { receipt: second } = await store.buy([{ ean: product().ean, quantity: 1 }])
    await offline()
    store.world.sleep(25 * HOUR)
    expect(await release(second)).toMatchObject({ reason: 'token_expired' })
    expect(store.pulses('station')).toBe(0)
  })

  it('accepts a receipt whose Y and Z a scanner has swapped', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    await offline()
    expect(await release(receipt.toLowerCase().replace(/[yz]/g, (c) => (c === 'y' ? 'z' : 'y')))).toMatchObject({
      authorized: true,
    })
  })

  it('detaches a hard tag online by every identifier of the item', async () => {
    store = await openStore()
    const tagUid = '04A2B3C4D5E680'
    const { epc } = await store.drive(store.shop.newItem(product(), { tagUid, tagId: 'HT-1' }))
    await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    expect(await detach({ epc: 'E280FFFFFFFFFFFFFFFFFFFF' })).toMatchObject({
      authorized: false,
      reason: 'item_unknown',
    })
    expect(await detach({ tagUid })).toMatchObject({ authorized: true, outcome: 'confirmed', itemStatus: 'paid' })
    expect(await detach({ epc })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('detacher')).toBe(1)
  })

  it('detaches offline only items on the receipt, by EPC, if the policy allows self service', async () => {
    store = await openStore()
    const { epc } = await store.drive(store.shop.newItem(product()))
    const { epc: other } = await store.drive(store.shop.newItem(product()))
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    await store.drive(
      store.shop.ok('updateProtectionPolicy', {
        storeId: store.shop.storeId,
        policy: { ...policy, requiresManualOverrideAboveValue: null },
      }),
    )
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    await store.until('the policy', () => store.agent.trust.policy?.policy.requiresManualOverrideAboveValue === null)
    await offline()
    expect(await detach({ epc: other, receipt })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    expect(await detach({ epc, receipt })).toMatchObject({ authorized: true, offline: true })
    expect(await detach({ epc, receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    // The replica shows that the item is paid, but not whether its right is used.
    expect(await detach({ epc })).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
      itemStatus: 'paid',
    })
    expect(await detach({ epc: 'E280FFFFFFFFFFFFFFFFFFFF' })).toMatchObject({
      authorized: false,
      reason: 'item_unknown',
    })
    expect(store.pulses('detacher')).toBe(1)
  })

  it('uses up no right while the relay board is offline', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const off = store.boards.station.faults.on({ kind: 'dead' })
    await store.until('the loss', () => store.agent.status().devices.some((d) => d.state !== 'ready'))
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'failed' })
    off()
    await store.until('the board', () => store.agent.status().devices.every((d) => d.state === 'ready'))
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  })

  it('voids a token that the cloud issued without recent ledger rows, and requests a new one', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const opened = openReceipt(receipt, { keys: store.agent.trust.keys })
    const cti = opened.ok ? Buffer.from(opened.claims.cti).toString('hex') : ''
    // To an agent of which the cloud believes that it knows itself what it was given.
    const { agentId } = store.agent.identity
    store.agent.ledger.commits.now(() =>
      store.agent.ledger.homeGrants.grant({
        agentId,
        redemptionId: 'rdm_x',
        homeEpoch: store.agent.trust.policy?.policy.homeEpoch ?? 0,
        cti,
        rightClass: 'release',
        candidates: [0],
        all: false,
        exp: 4_000_000_000,
        nowMs: store.agent.clock.now().nowMs,
      }),
    )
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: false })
    await synced()
    const tokens = await store.shop.cloud.db.database.reads
      .selectFrom('protection_authorization')
      .select('voided_ms')
      .execute()
    expect(tokens.map(({ voided_ms }) => voided_ms !== null)).toEqual([true, true])
    store.agent.ledger.commits.now(() =>
      store.agent.ledger.homeGrants.noteOutcome({
        agentId,
        redemptionId: 'rdm_x',
        outcome: 'failed',
        candidates: [0],
        report: 'not signed',
        isOwnEpoch: true,
        exp: 4_000_000_000,
        nowMs: store.agent.clock.now().nowMs,
      }),
    )
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  })
})
