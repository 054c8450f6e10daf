import { afterEach, describe, expect, it } from 'vitest'
import { openReceipt } from '../../policy/receipts/receipt-token.ts'
import type { Json } from '../support/cloud.ts'
import { LANES, openStore, type LaneName, type TestStore } from '../support/store.ts'

const HOUR = 3_600_000

describe('the agent', () => {
  let store: TestStore
  afterEach(() => store.stop())

  const device = (lane: LaneName) => store.shop.devices[LANES[lane]]
  const release = (receipt: string, fields: Json = {}) => store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', receipt, ...fields })
  const leave = (fields: Json) => store.authorize({ deviceId: device('gate'), protectionAction: 'authorize_exit', ...fields })
  const detach = (fields: Json) => store.authorize({ deviceId: device('detacher'), protectionAction: 'detach_hard_tag', ...fields })
  const synced = () => store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
  const offline = async () => {
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
  }
  const events = async (filter: Json = {}) => {
    await synced()
    return (await store.drive(store.shop.ok('fetchProtectionEvents', { storeId: store.shop.storeId, limit: 500, ...filter }))).events as Json[]
  }
  /** Cheap enough that even several of them stay below every threshold. */
  const product = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]

  it('releases a paid tag online: asks, claims, pulses, sees the input, reports', async () => {
    store = await openStore()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const answer = await release(receipt)
    expect(answer).toMatchObject({ authorized: true, action: 'deactivate_label', offline: false, outcome: 'confirmed', itemCount: 1, remaining: 0 })
    expect(store.pulses('station')).toBe(1)
    const told = await events({ purchaseId: purchase.transactionId })
    expect(told.map((e) => e.type)).toEqual(expect.arrayContaining(['protection.authorization.granted', 'protection.action.completed']))
    expect(told.some((e) => e.eventId === answer.eventId)).toBe(true)
    expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({ securityTagStatus: 'deactivated' })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', outcome: null })
    expect(store.pulses('station')).toBe(1)
  })

  it('counts several units down, one pulse each', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 3 }])
    for (const remaining of [2, 1, 0]) expect(await release(receipt)).toMatchObject({ authorized: true, itemCount: 3, remaining })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(3)
  })

  it('says that there is nothing to release on a receipt without tagged goods, online as offline', async () => {
    store = await openStore()
    const untagged = { ean: '4044713104064' }
    const [first, second] = [await store.buy([{ ean: untagged.ean, quantity: 1 }]), await store.buy([{ ean: untagged.ean, quantity: 1 }])]
    expect(await release(first.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: false })
    await offline()
    expect(await release(second.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
  })

  it('is told by its scanner with real bytes, garbage and half lines between', async () => {
    store = await openStore()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const scanner = store.scanners.station
    await store.drive(scanner.garbage(300))
    await store.drive(scanner.halfLine(receipt.slice(0, 40)))
    await store.drive(scanner.scan(receipt, 'Q1'))
    const status = async () => (await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).securityTagStatus
    await store.until('deactivated', async () => (await status()) === 'deactivated')
    expect(store.pulses('station')).toBe(1)
  })

  it('honours a receipt offline, once, also after it was killed and started again', async () => {
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
    const told = await events({ purchaseId: purchase.transactionId })
    expect(told.filter((e) => e.type === 'protection.device.offline')).toHaveLength(1)
    expect(told.filter((e) => e.type === 'protection.action.completed')).toHaveLength(1)
    expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({ securityTagStatus: 'deactivated' })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: false })
  })

  it.each([['with a broker', true], ['without', false]])('fetchAgents shows when a policy has arrived and the backlog is told: %s', async (_name, broker) => {
    store = await openStore({ broker })
    const agent = async () => (await store.drive(store.shop.ok('fetchAgents', { storeId: store.shop.storeId }))).agents[0] as Json
    const receipts: string[] = []
    for (let i = 0; i < 4; i++) receipts.push((await store.buy([{ ean: product().ean, quantity: 1 }])).receipt)
    const before = store.agent.trust.policy?.ver ?? 0
    await offline()
    for (const receipt of receipts) expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
    const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId }))
    await store.drive(store.shop.ok('updateProtectionPolicy', { storeId: store.shop.storeId, policy: { ...policy, spotCheckRate: 0.5 } }))
    await store.world.advance(2 * 60_000)
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await synced()
    await store.world.advance(31_000)
    const { ver } = store.agent.trust.policy ?? { ver: 0 }
    expect(ver).toBeGreaterThan(before)
    const shown = await agent()
    expect(shown).toMatchObject({ policyVersion: ver, queueDepth: 0, ...(broker && { online: true }) })
    expect(store.world.clock.wall() - Date.parse(shown['stateAt'])).toBeLessThan(31_000)
    // It is said again while nothing changes, so that its age tells whether the agent is there.
    await store.world.advance(2 * 60_000)
    expect(store.world.clock.wall() - Date.parse((await agent())['stateAt'])).toBeLessThan(80_000)
  })

  it('honours a receipt once, whichever way it comes: online first and then offline', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 2 }])
    await release(receipt)
    await offline()
    expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(2)
  })

  it('honours a token that was fetched before the network went, once', async () => {
    store = await openStore()
    const { purchase } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const { authorizationToken: token } = await store.shop.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: device('station') })
    await offline()
    const ask = () => store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', token })
    expect(await ask()).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
    expect(await ask()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await store.restart()
    expect(await ask()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(1)
  })

  it('refuses a token that is expired, for another device, for another action, altered, revoked', async () => {
    store = await openStore()
    const { purchase } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const { authorizationToken: token, replayProtectedNonce } = await store.shop.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: device('station') })
    const ask = (fields: Json) => store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', token, ...fields })
    expect(await ask({ deviceId: device('detacher'), protectionAction: 'detach_hard_tag' })).toMatchObject({ reason: 'token_invalid' })
    expect(await ask({ protectionAction: 'detach_hard_tag' })).toMatchObject({ reason: 'token_invalid' })
    expect(await ask({ token: `${token.slice(0, -8)}AAAAAAAA` })).toMatchObject({ reason: 'token_invalid' })
    expect(await ask({ token: 'a.b.c' })).toMatchObject({ reason: 'token_invalid' })
    await store.drive(store.shop.ok('revokeProtectionAuthorization', { replayProtectedNonce }))
    await store.until('the denial', () => store.agent.ledger.claims.isDenied(replayProtectedNonce))
    expect(await ask({})).toMatchObject({ reason: 'token_revoked' })
    const { purchase: second } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const fresh = await store.shop.ok('verifySecurityTagDeactivation', { purchaseId: second.transactionId, deviceId: device('station') })
    store.world.sleep(301_000)
    expect(await ask({ token: fresh.authorizationToken })).toMatchObject({ reason: 'token_expired' })
    expect(store.pulses('station')).toBe(0)
  })

  it('refuses a forged, foreign, old or cancelled receipt', async () => {
    store = await openStore()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    expect(await release(`${receipt.slice(0, -8)}AAAAAAAA`)).toMatchObject({ reason: 'token_invalid' })
    expect(await release('HTTPS://SHOP.EXAMPLE/R/NONSENSE')).toMatchObject({ reason: 'token_invalid' })
    await store.drive(store.shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId }))
    expect(await release(receipt)).toMatchObject({ reason: 'item_not_paid' })
    await store.until('the denial', () => store.agent.trust.have().deny?.[1] !== 0)
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

  it('takes a receipt whose Y and Z a scanner has swapped', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    await offline()
    expect(await release(receipt.toLowerCase().replace(/[yz]/g, (c) => (c === 'y' ? 'z' : 'y')))).toMatchObject({ authorized: true })
  })

  it('detaches a hard tag by every name of the item, online', async () => {
    store = await openStore()
    const tagUid = '04A2B3C4D5E680'
    const { epc } = await store.drive(store.shop.newItem(product(), { tagUid, tagId: 'HT-1' }))
    await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    expect(await detach({ epc: 'E280FFFFFFFFFFFFFFFFFFFF' })).toMatchObject({ authorized: false, reason: 'item_unknown' })
    expect(await detach({ tagUid })).toMatchObject({ authorized: true, outcome: 'confirmed', itemStatus: 'paid' })
    expect(await detach({ epc })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('detacher')).toBe(1)
  })

  it('detaches offline only what the receipt covers, by EPC, where the policy allows self service', async () => {
    store = await openStore()
    const { epc } = await store.drive(store.shop.newItem(product()))
    const { epc: other } = await store.drive(store.shop.newItem(product()))
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    await store.drive(store.shop.ok('updateProtectionPolicy', { storeId: store.shop.storeId, policy: { ...policy, requiresManualOverrideAboveValue: null } }))
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    await store.until('the policy', () => store.agent.trust.policy?.policy.requiresManualOverrideAboveValue === null)
    await offline()
    expect(await detach({ epc: other, receipt })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    expect(await detach({ epc, receipt })).toMatchObject({ authorized: true, offline: true })
    expect(await detach({ epc, receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    // Its replica knows that it is paid, but not whether its tag was released already.
    expect(await detach({ epc })).toMatchObject({ authorized: false, reason: 'manual_assistance_required', itemStatus: 'paid' })
    expect(await detach({ epc: 'E280FFFFFFFFFFFFFFFFFFFF' })).toMatchObject({ authorized: false, reason: 'item_unknown' })
    expect(store.pulses('detacher')).toBe(1)
  })

  it('knows offline, and after a restart, whether an item is paid: it may leave, or the siren sounds', async () => {
    store = await openStore()
    const [{ epc }, { epc: unpaid }] = [await store.drive(store.shop.newItem(product())), await store.drive(store.shop.newItem(product()))]
    await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    await store.until('the replica', () => store.agent.items.find('epc', epc)?.status === 'paid')
    await store.until('the disk', () => !store.agent.trust.isBehind)
    await offline()
    await store.restart()
    expect(await store.authorize({ deviceId: device('detacher'), protectionAction: 'verify_item_status', epc })).toMatchObject({ authorized: true, itemStatus: 'paid', offline: true })
    expect(await leave({ epc })).toMatchObject({ authorized: true, itemStatus: 'paid', offline: true, outcome: null })
    expect(store.boards.gate.log.some((c) => c.coil === 1 && c.on)).toBe(false)
    expect(await leave({ epc: unpaid })).toMatchObject({ authorized: false, reason: 'item_not_paid', itemStatus: 'sellable', offline: true })
    await store.until('the siren', () => store.boards.gate.log.some((c) => c.coil === 1 && c.on))
    expect(store.pulses('gate')).toBe(0)
  })

  it('sounds the siren for an unpaid item at the gate, and tells', async () => {
    store = await openStore()
    const { epc } = await store.drive(store.shop.newItem(product()))
    expect(await leave({ epc })).toMatchObject({ authorized: false, reason: 'item_not_paid', itemStatus: 'sellable' })
    await store.until('the siren', () => store.boards.gate.log.some((c) => c.coil === 1 && c.on))
    expect(store.pulses('gate')).toBe(0)
    const told = await events()
    expect(told.find((e) => e.type === 'protection.authorization.denied' && e.epc === epc)).toMatchObject({ reason: 'item_not_paid' })
    expect(told.find((e) => e.type === 'protection.exception.raised' && e.epc === epc)).toMatchObject({ reason: 'gate_alarm', itemStatus: 'sellable' })
  })

  it('lights amber for a refused receipt, and for a tag that nobody can know offline', async () => {
    store = await openStore()
    await leave({ receipt: 'HTTPS://SHOP.EXAMPLE/R/2KCE3IQBE4CEAAAA' })
    await store.until('amber', () => store.boards.gate.log.some((c) => c.coil === 2 && c.on))
    await offline()
    await leave({ epc: 'E280FFFFFFFFFFFFFFFFFFFF' })
    expect(store.boards.gate.log.some((c) => c.coil === 1 && c.on)).toBe(false)
  })

  it('lets a whole receipt leave with one actuation and one event, online as offline, refused when none is left', async () => {
    store = await openStore()
    for (const isOnline of [true, false]) {
      const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 3 }])
      if (!isOnline) await offline()
      const before = store.pulses('gate')
      expect(await leave({ receipt })).toMatchObject({ authorized: true, itemCount: 3, remaining: 0, offline: !isOnline })
      expect(await leave({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
      expect(store.pulses('gate')).toBe(before + 1)
      store.network(true)
      await store.until('online', () => store.agent.link.isOnline)
      const told = await events({ purchaseId: purchase.transactionId, type: 'protection.action.completed' })
      expect(told).toHaveLength(1)
      expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({ status: 'UNLOADED' })
    }
  })

  it('repeats the signal on a second look until somebody goes through, under the same redemption', async () => {
    store = await openStore({ passageSensor: true })
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    await leave({ receipt })
    expect(await leave({ receipt })).toMatchObject({ authorized: true })
    await store.until('the second signal', () => store.pulses('gate') === 2)
    store.boards.gate.setInput(1, true)
    await store.world.advance(500)
    expect(await leave({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await events({ purchaseId: purchase.transactionId, type: 'protection.action.completed' })).toHaveLength(1)
  })

  it.each([
    ['failed', { kind: 'exception', code: 4, functions: [5] }, { authorized: true, outcome: 'confirmed' }, 1],
    ['is unknown', { kind: 'mute', functions: [5] }, { authorized: false, reason: 'manual_assistance_required' }, 0],
  ] as const)('opens on a second look under a redemption only: the first that %s leaves none', async (_name, fault, then, pulses) => {
    store = await openStore({ passageSensor: true })
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    store.boards.gate.stick(0, false)
    const off = store.boards.gate.faults.on(fault)
    await leave({ receipt })
    off()
    store.boards.gate.stick(0, null)
    await store.until('the board', () => store.agent.status().devices.every((d) => d.state === 'ready'))
    await synced()
    const before = store.pulses('gate')
    expect(await leave({ receipt })).toMatchObject(then)
    await store.world.advance(1_500)
    store.boards.gate.setInput(1, true)
    await store.world.advance(500)
    expect(await leave({ receipt })).toMatchObject({ authorized: false })
    expect(store.pulses('gate') - before).toBe(pulses)
  })

  it('takes a question about a receipt for no first look, and a question behind it for no second', async () => {
    store = await openStore({ passageSensor: true })
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const ask = () => leave({ receipt, protectionAction: 'verify_item_status' })
    await ask()
    expect(await leave({ receipt })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(await ask()).toMatchObject({ outcome: null })
    await store.world.advance(1_500)
    expect(store.pulses('gate')).toBe(1)
  })

  it('opens once for a receipt that is read twice before it is decided, and not again once somebody went through meanwhile', async () => {
    store = await openStore({ passageSensor: true })
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const shown = [0, 1].map(() => store.agent.lanes.scan(device('gate'), receipt))
    await store.until('the opening', () => store.pulses('gate') === 1)
    store.boards.gate.setInput(1, true)
    const [first, second] = await store.drive(Promise.all(shown))
    expect([first, second]).toEqual([first, first])
    expect(first).toMatchObject({ kind: 'decision', answer: { authorized: true, outcome: 'confirmed' } })
    await store.world.advance(1_000)
    expect(store.boards.gate.log.some((c) => c.coil === 2 && c.on)).toBe(false)
    expect(await leave({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('gate')).toBe(1)
  })

  it.each([
    ['refuses with a Modbus exception', { kind: 'exception', code: 4, functions: [5] }, 'failed'],
    ['is mute after the command', { kind: 'mute', functions: [5] }, 'unknown'],
    ['garbles the answer', { kind: 'garble', functions: [5] }, 'unknown'],
    ['is unplugged between command and answer', { kind: 'cut-before-answer', functions: [5], times: 1 }, 'unknown'],
  ] as const)('when the board %s, the outcome is told and nothing is sent twice', async (_name, fault, outcome) => {
    store = await openStore()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    store.boards.station.stick(0, false)
    const off = store.boards.station.faults.on(fault)
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome })
    off()
    expect(store.pulses('station')).toBeLessThanOrEqual(1)
    const told = await events({ purchaseId: purchase.transactionId, type: 'protection.action.failed' })
    expect(told).toEqual([expect.objectContaining({ outcome })])
    store.boards.station.stick(0, null)
    await store.until('the board', () => store.agent.status().devices.every((d) => d.state === 'ready'))
    const again = await release(receipt)
    expect(again).toMatchObject(outcome === 'failed' ? { authorized: true } : { authorized: false, reason: 'manual_assistance_required' })
  })

  it('moves nothing and uses nothing up for good when the board is away', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const off = store.boards.station.faults.on({ kind: 'dead' })
    await store.until('the loss', () => store.agent.status().devices.some((d) => d.state !== 'ready'))
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'failed' })
    off()
    await store.until('the board', () => store.agent.status().devices.every((d) => d.state === 'ready'))
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  })

  describe('a release of which nobody knows whether it worked', () => {
    /** By token, as a receipt is released online; the board has not answered, or the power was cut. */
    async function unknown(how: 'mute' | 'power cut' = 'mute') {
      store = await openStore()
      const { operatorId } = await store.drive(store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '4711' }))
      await store.until('the operator', () => store.agent.trust.policy?.operators.length === 1)
      const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
      if (how === 'mute') {
        store.boards.station.stick(0, false)
        const off = store.boards.station.faults.on({ kind: 'mute', functions: [5] })
        expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'unknown', offline: false })
        off()
        store.boards.station.stick(0, null)
      } else {
        const { ledger } = store.agent
        // It dies as the board is told.
        ledger.settle = () => new Promise(() => undefined)
        void store.agent.lanes.request({ deviceId: device('station'), action: 'deactivate_label', receipt, identifiers: {} })
        await store.until('the pulse', () => store.pulses('station') === 1)
        await store.world.advance(2_000)
        store.agent.lanes.settled = () => Promise.resolve()
        await store.restart()
      }
      await synced()
      await store.until('the board', () => store.agent.link.isOnline && store.agent.status().devices.every((d) => d.state === 'ready'))
      expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
      const [exception] = (await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId, kind: 'outcome_unknown' }))).exceptions as Json[]
      const staffSay = (outcome: string) => store.drive(store.shop.ok('resolveRedemption', { redemptionId: exception?.subject, outcome, operatorId }))
      const signIn = async () => ({ 'x-untag-operator': (await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: '4711' } })).body.session as string })
      return { purchase, receipt, operatorId, staffSay, signIn }
    }
    const by = (receipt: string, headers: Record<string, string>) => store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', receipt }, headers)

    it.each(['mute', 'power cut'] as const)('is tried again by staff who have signed in, once (%s)', async (how) => {
      const { receipt, signIn } = await unknown(how)
      const staff = await signIn()
      expect(await by(receipt, staff)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
      expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
      await offline()
      expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    })

    it('is tried again by staff without the cloud, and what becomes of it is known there afterwards', async () => {
      const { purchase, receipt, signIn } = await unknown()
      await offline()
      expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
      const staff = await signIn()
      expect(await by(receipt, staff)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: true })
      expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
      store.network(true)
      await store.until('all told', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
      expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({ securityTagStatus: 'deactivated' })
      const { exceptions } = await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId, kind: 'double_redeem' }))
      expect(exceptions).toEqual([])
    })

    it('is free to everybody once staff have said at the cloud that the tag is still on', async () => {
      const { receipt, staffSay } = await unknown()
      await staffSay('failed')
      expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
      expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    })

    it('stays used once staff have said that it is off, for staff without the cloud too', async () => {
      const { receipt, staffSay, signIn } = await unknown()
      await staffSay('confirmed')
      await store.until('the denial', () => !store.agent.trust.isBehind)
      await store.world.advance(20_000)
      const staff = await signIn()
      expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
      await offline()
      expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    })

    it('is released by a token that a program was given on the word of staff', async () => {
      const { purchase, operatorId } = await unknown()
      await store.world.advance(3_000)
      const given = await store.drive(store.shop.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: device('station'), operatorId }))
      expect(await store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', token: given.authorizationToken })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    })
  })

  it('gives up a token at once that the cloud gave without knowing what the ledger knows, and hears from it anew', async () => {
    store = await openStore()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const opened = openReceipt(receipt, { keys: store.agent.trust.keys })
    const cti = opened.ok ? Buffer.from(opened.claims.cti).toString('hex') : ''
    store.agent.ledger.commits.now(() => store.agent.ledger.homeGrants.grant({ agentId: 'agt_x', redemptionId: 'rdm_x', cti, rightClass: 'release', candidates: [0], all: false, exp: 4_000_000_000, nowMs: store.agent.clock.now().nowMs }))
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: false })
    await synced()
    const tokens = await store.shop.cloud.db.database.reads.selectFrom('protection_authorization').select('voided_ms').execute()
    expect(tokens.map(({ voided_ms }) => voided_ms !== null)).toEqual([true, true])
    store.agent.ledger.commits.now(() => store.agent.ledger.homeGrants.hear({ agentId: 'agt_x', redemptionId: 'rdm_x', outcome: 'failed', exp: 4_000_000_000 }))
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  })

  it('works for 72 hours without cloud, and then everything arrives by itself, exactly once', async () => {
    store = await openStore()
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    await store.drive(store.shop.ok('updateProtectionPolicy', { storeId: store.shop.storeId, policy: { ...policy, requiresManualOverrideAboveValue: null } }))
    await store.until('the policy', () => store.agent.trust.policy?.policy.requiresManualOverrideAboveValue === null)
    await offline()
    const bought: Json[] = []
    for (let hour = 0; hour < 72; hour += 6) {
      store.world.sleep(6 * HOUR)
      const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
      expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
      expect(await leave({ receipt })).toMatchObject({ authorized: true, offline: true })
      bought.push(purchase)
    }
    expect(store.agent.status().stage).toBe('stale')
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline, 120_000)
    await synced()
    for (const purchase of bought) {
      expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({ status: 'UNLOADED', securityTagStatus: 'deactivated' })
      expect(await events({ purchaseId: purchase.transactionId, type: 'protection.action.completed' })).toHaveLength(2)
      expect(await events({ purchaseId: purchase.transactionId, type: 'protection.device.offline' })).toHaveLength(2)
    }
    const raised = await events({ type: 'protection.exception.raised' })
    expect(raised.filter((e) => !['gate_alarm'].includes(e.reason))).toEqual([])
  })

  it('leaves receipts to staff with an operator once nothing was heard for over 80 hours', async () => {
    store = await openStore()
    const registered = await store.drive(store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '4711' }))
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
    await offline()
    store.world.sleep(81 * HOUR)
    expect(store.agent.status().stage).toBe('expired')
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    expect(await leave({ receipt })).toMatchObject({ authorized: false, reason: 'policy_stale' })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
    const { body } = await store.local('/v1/operator', { method: 'POST', body: { operatorId: registered.operatorId, pin: '4711' } })
    expect(await store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', receipt }, { 'x-untag-operator': body.session })).toMatchObject({ authorized: true })
  })

  it('bounds what it honours alone when it is not the home', async () => {
    store = await openStore()
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    await store.shop.cloud.db.database.write((db) =>
      db
        .updateTable('store')
        .set({ policy: JSON.stringify({ ...policy, requiresManualOverrideAboveValue: null, home: 'cloud', offline: { ...policy.offline, hardCount: 2, maxRiskClass: 1 } }), document_version: 99 })
        .where('store_id', '=', store.shop.storeId)
        .execute(),
    )
    await store.until('the policy', () => store.agent.trust.policy?.ver === 99)
    const cheap = store.shop.products.find((p) => p.price < 100)
    const receipts = []
    for (let i = 0; i < 3; i++) receipts.push((await store.buy([{ ean: cheap.ean, quantity: 1 }])).receipt)
    const { receipt: dear } = await store.buy([{ ean: cheap.ean, quantity: 6 }])
    await offline()
    expect(await release(dear)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    expect(await release(receipts[0] ?? '')).toMatchObject({ authorized: true })
    expect(await release(receipts[1] ?? '')).toMatchObject({ authorized: true })
    expect(await release(receipts[2] ?? '')).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    await store.restart()
    expect(await release(receipts[2] ?? '')).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await synced()
    await offline()
    expect(await release(receipts[2] ?? '')).toMatchObject({ authorized: true })
  })
})
