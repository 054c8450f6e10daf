import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { continueHomeMoves } from '../../../../cloud/protection/receipt-home/home-move.ts'
import { releaseRefunds } from '../../../../cloud/sales/payments/release-refunds.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

inFullSizeOnEveryDatabase('moves of devices, leases and receipt homes between agents', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let one: TestAgent
  let two: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    one = await enrolTestAgent(shop)
    two = await enrolTestAgent(shop)
  })
  afterAll(async () => {
    expect(shop.cloud.errors).toEqual([])
    await shop.stop()
  })

  const claimsOf = (jws: string): Json => JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
  const fetchDocuments = async (agent: TestAgent, body: Json = {}) => {
    await agent.login()
    return (await agent.call('fetchSignedDocuments', body)).body
  }
  const policyOf = async (agent: TestAgent) =>
    claimsOf((await fetchDocuments(agent)).documents.find((jws: string) => claimsOf(jws).policy?.home !== undefined))
  const deviceOf = async (deviceId: string) =>
    (await shop.ok('fetchDevices', { storeId: shop.storeId, limit: 500 })).devices.find(
      (d: Json) => d.deviceId === deviceId,
    )
  const tokenFor = async (deviceId: string, purchaseId?: string) =>
    shop.ok('verifySecurityTagDeactivation', {
      purchaseId: purchaseId ?? (await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])).transactionId,
      deviceId,
    })
  const newDevice = async (agent: TestAgent, deviceType = 'pos_deactivator') => {
    const { deviceId } = await shop.ok('registerDevice', { storeId: shop.storeId, deviceType })
    await agent.login()
    expect((await agent.call('reportDeviceHeartbeat', { deviceId })).status).toBe(200)
    return deviceId as string
  }

  describe('updateDevice with another agentId', () => {
    it('moves the device at once if it has no open token', async () => {
      const deviceId = await newDevice(one)
      expect(await shop.ok('updateDevice', { deviceId, agentId: two.agentId })).toMatchObject({ agentId: two.agentId })
      expect((await policyOf(one)).devices.find((d: Json) => d.deviceId === deviceId)).toMatchObject({
        agentId: two.agentId,
      })
      expect((await one.call('reportDeviceHeartbeat', { deviceId })).body).toMatchObject({
        reason: 'device_of_another_agent',
      })
    })

    it('waits until the agent voids the device’s tokens, and issues no new token', async () => {
      const deviceId = await newDevice(one)
      const leased = await tokenFor(deviceId)
      const other = await tokenFor(deviceId)
      const moving = await shop.ok('updateDevice', { deviceId, agentId: two.agentId })
      expect(moving).toMatchObject({ agentId: one.agentId, movingToAgentId: two.agentId })
      expect(await tokenFor(deviceId)).toMatchObject({
        authorizationToken: null,
        reason: 'authorization_outstanding',
        retryAfter: expect.any(Number),
      })
      // A record sent back unchanged does not cancel the move.
      const { success: _success, ...record } = moving
      expect(await shop.ok('updateDevice', record)).toMatchObject({ movingToAgentId: two.agentId })
      // The target agent may already report the device.
      await two.login()
      expect((await two.call('reportDeviceHeartbeat', { deviceId })).status).toBe(200)
      const { commands } = await fetchDocuments(one)
      expect(commands.map((jws: string) => claimsOf(jws).nonce).toSorted()).toEqual(
        [leased, other].map((each) => each.replayProtectedNonce).toSorted(),
      )
      expect(commands.map((jws: string) => claimsOf(jws).aud)).toEqual([one.agentId, one.agentId])
      await one.report([one.row({ evidence: { kind: 'void', nonce: leased.replayProtectedNonce } })])
      expect(await deviceOf(deviceId)).toMatchObject({ agentId: one.agentId })
      await one.report([one.row({ evidence: { kind: 'void', nonce: other.replayProtectedNonce } })])
      expect(await deviceOf(deviceId)).toMatchObject({ agentId: two.agentId })
      expect(await deviceOf(deviceId)).not.toHaveProperty('movingToAgentId')
      expect(await fetchDocuments(one)).not.toHaveProperty('commands')
      expect(claimsOf((await tokenFor(deviceId)).authorizationToken).led).toBe(`${two.ledgerId}.1`)
    })

    it('waits until a minute after the last token of an offline agent, and can be cancelled', async () => {
      const deviceId = await newDevice(one)
      const { expiresAt } = await tokenFor(deviceId)
      await shop.ok('updateDevice', { deviceId, agentId: two.agentId })
      expect(await shop.ok('updateDevice', { deviceId, agentId: one.agentId })).not.toHaveProperty('movingToAgentId')
      await shop.ok('updateDevice', { deviceId, agentId: two.agentId })
      forward(Date.parse(expiresAt) + 50_000 - platform.clock.wall())
      await fetchDocuments(two)
      expect(await deviceOf(deviceId)).toMatchObject({ agentId: one.agentId, movingToAgentId: two.agentId })
      forward(11_000)
      await fetchDocuments(two)
      expect(await deviceOf(deviceId)).toMatchObject({ agentId: two.agentId })
    })

    it('never moves the device to a revoked agent', async () => {
      const gone = await enrolTestAgent(shop)
      const deviceId = await newDevice(one)
      const { replayProtectedNonce: nonce } = await tokenFor(deviceId)
      await shop.ok('updateDevice', { deviceId, agentId: gone.agentId })
      await shop.ok('revokeAgent', { agentId: gone.agentId })
      await one.report([one.row({ evidence: { kind: 'void', nonce } })])
      expect(await deviceOf(deviceId)).toMatchObject({ agentId: one.agentId })
      expect((await shop.call('updateDevice', { deviceId, agentId: gone.agentId })).status).toBe(404)
    })
  })

  it('a lease is recalled, and reported as outstanding if its agent does not respond', async () => {
    const [mine, theirs] = [await newDevice(one), await newDevice(two)]
    const { transactionId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const leased = await tokenFor(mine, transactionId)
    expect(await tokenFor(theirs, transactionId)).toMatchObject({
      authorizationToken: null,
      reason: 'authorization_outstanding',
    })
    const { commands } = await fetchDocuments(one)
    expect(claimsOf(commands[0])).toMatchObject({
      command: 'void',
      nonce: leased.replayProtectedNonce,
      aud: one.agentId,
    })
    // Its own device gets no new token, because the agent may have released the lease.
    expect(await tokenFor(mine, transactionId)).toMatchObject({
      authorizationToken: null,
      reason: 'authorization_outstanding',
    })
    await one.report([one.row({ evidence: { kind: 'void', nonce: leased.replayProtectedNonce } })])
    expect((await tokenFor(theirs, transactionId)).authorizationToken).toBeTypeOf('string')
  })

  it('a request about a past use neither revokes nor issues a token', async () => {
    const occurredAt = new Date(platform.clock.wall() - 3_600_000).toISOString()
    const [mine, theirs, detacher] = [
      await newDevice(one),
      await newDevice(two),
      await newDevice(one, 'self_checkout_detacher'),
    ]
    const { transactionId: purchaseId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const { epc } = await shop.newItem(shop.products[0])
    await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [epc] }])
    const detach = (deviceId: string, body: Json = {}) =>
      shop.ok('verifyProtectedItem', { deviceId, protectionAction: 'detach_hard_tag', epc, ...body })
    const [whole, item] = [await tokenFor(mine, purchaseId), await detach(detacher)]
    for (const deviceId of [theirs, mine]) {
      expect(await shop.ok('verifySecurityTagDeactivation', { purchaseId, deviceId, occurredAt })).toMatchObject({
        authorizationToken: null,
      })
    }
    expect(await detach(await newDevice(two, 'self_checkout_detacher'), { occurredAt })).toMatchObject({
      authorizationToken: null,
    })
    const recalledNonces = ((await fetchDocuments(one)).commands ?? []).map((jws: string) => claimsOf(jws).nonce)
    for (const { replayProtectedNonce } of [whole, item]) expect(recalledNonces).not.toContain(replayProtectedNonce)
    expect((await tokenFor(mine, purchaseId)).replayProtectedNonce).toBe(whole.replayProtectedNonce)
    expect((await detach(detacher)).replayProtectedNonce).toBe(item.replayProtectedNonce)
  })

  it('a cancelled purchase waits for all agents, unless staff confirm', async () => {
    const { transactionId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    expect(await shop.ok('markPurchaseCancelled', { purchaseId: transactionId })).toMatchObject({
      refundStatus: 'pending',
    })
    const { operatorId: confirmedBy } = await shop.ok('registerOperator', {
      storeId: shop.storeId,
      name: 'Frau Petersen',
    })
    expect(await shop.ok('refundPayment', { purchaseId: transactionId, confirmedBy })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
    })
    expect(await shop.call('refundPayment', { purchaseId: transactionId, confirmedBy })).toMatchObject({
      status: 409,
      body: { reason: 'already_refunded' },
    })
  })

  it('a cancelled purchase does not wait for redeemed tokens or devices without an agent', async () => {
    const { database } = shop.cloud.db
    const refundStatus = async (purchaseId: string) => {
      await releaseRefunds(database, shop.cloud.cloud.services)
      return (await shop.ok('fetchPurchase', { transactionId: purchaseId })).refundStatus
    }
    const [detacher, { deviceId: alone }] = [
      await newDevice(one),
      await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'pos_deactivator' }),
    ]
    const [held, free] = [
      await shop.buy([{ ean: shop.products[0].ean, quantity: 2 }]),
      await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }]),
    ]
    const { replayProtectedNonce: nonce } = await tokenFor(detacher, held.transactionId)
    expect((await tokenFor(alone, free.transactionId)).authorizationToken).toBeTypeOf('string')
    const claim = (ordinal: number) =>
      one.report([
        one.row({
          evidence: {
            kind: 'claim',
            redemptionId: `spent-${ordinal}`,
            nonce,
            source: 'token',
            rightClass: 'release',
            ordinals: [ordinal],
            deviceId: detacher,
          },
        }),
      ])
    await claim(0)
    for (const { transactionId } of [held, free])
      expect(await shop.ok('markPurchaseCancelled', { purchaseId: transactionId })).toMatchObject({
        refundStatus: 'pending',
      })
    // The agents have not received the deny list entry yet.
    expect([await refundStatus(held.transactionId), await refundStatus(free.transactionId)]).toEqual([
      'pending',
      'pending',
    ])
    await database.write((db) =>
      db.updateTable('agent').set({ deny_seq: 1_000_000 }).where('store_id', '=', shop.storeId).execute(),
    )
    expect([await refundStatus(held.transactionId), await refundStatus(free.transactionId)]).toEqual([
      'pending',
      'done',
    ])
    await claim(1)
    expect(await refundStatus(held.transactionId)).toBe('done')
  })

  it('moveReceiptHome waits until all other agents confirmed the policy and reported, or are revoked', async () => {
    const first = await enrolTestAgent(shop, shop.otherStoreId)
    const next = await enrolTestAgent(shop, shop.otherStoreId)
    const last = await enrolTestAgent(shop, shop.otherStoreId)
    const move = (home: TestAgent) => shop.ok('moveReceiptHome', { storeId: shop.otherStoreId, home: home.agentId })
    const isWaiting = async () => (await policyOf(next)).homeMove.denySeq === Number.MAX_SAFE_INTEGER
    const reportLedger = async (agent: TestAgent, ledgerSeq: number) => {
      const { epoch, ver } = await policyOf(agent)
      await fetchDocuments(agent, { have: { policy: [epoch, ver] }, ledgerSeq })
    }
    await move(first)
    // These agents are offline and may have accepted receipts.
    expect(await isWaiting()).toBe(true)
    for (const agent of [next, last]) await reportLedger(agent, 0)
    expect(await isWaiting()).toBe(false)
    const { epoch, ver: before } = await policyOf(first)
    await move(next)
    expect(await isWaiting()).toBe(true)
    const { ver } = await policyOf(first)
    // First the agent has reported everything but has the former policy. Then it has the new policy but unreported
    // rows.
    await fetchDocuments(first, { have: { policy: [epoch, before] }, ledgerSeq: 0 })
    await fetchDocuments(first, { have: { policy: [epoch, ver] }, ledgerSeq: 1 })
    await fetchDocuments(first, { have: { policy: [epoch, ver] } })
    // The former receipt home may have delegated a right to this agent.
    await reportLedger(last, 0)
    expect(await isWaiting()).toBe(true)
    await first.report([first.row({})])
    await reportLedger(first, 1)
    expect(await isWaiting()).toBe(false)
    // The cloud waits for the interim home `last`, and not for `next` itself.
    await move(last)
    expect(await isWaiting()).toBe(true)
    await move(next)
    await reportLedger(first, 1)
    expect(await isWaiting()).toBe(true)
    await shop.ok('revokeAgent', { agentId: last.agentId })
    expect(await isWaiting()).toBe(false)
  })

  it('moveReceiptHome denies many used rights in portions, each once, and waits for the last', async () => {
    const { database } = shop.cloud.db
    const { services } = shop.cloud.cloud
    const { storeId } = shop
    const agent = await enrolTestAgent(shop, storeId)
    const { transactionId } = await shop.buy([{ ean: shop.products[0]!.ean, quantity: 1 }])
    const of = (table: 'purchase' | 'purchase_line' | 'purchase_unit') =>
      database.reads.selectFrom(table).selectAll().where('purchase_id', '=', transactionId).executeTakeFirstOrThrow()
    const [row, line, unit] = [await of('purchase'), await of('purchase_line'), await of('purchase_unit')] as Json[]
    await database.write(async (db) => {
      for (let n = 0; n < 700; n++) {
        const ids = { purchase_id: `${transactionId}${n}`, line_id: `${line!.line_id}${n}` }
        const purchase = { ...row, ...ids, cti: `cti-${n}`, checkout_session_id: `cs-${n}`, line_id: undefined }
        await db
          .insertInto('purchase')
          .values(purchase as never)
          .execute()
        await db
          .insertInto('purchase_line')
          .values({ ...line, ...ids } as never)
          .execute()
        await db
          .insertInto('purchase_unit')
          .values({ ...unit, ...ids } as never)
          .execute()
        const right = { ...ids, unit_no: unit!.unit_no, right_class: 'release', state: 'used', failures: 0 }
        await db
          .insertInto('unit_right')
          .values(right as never)
          .execute()
      }
    })
    const denied = async () =>
      (await database.reads.selectFrom('deny_entry').select('body').where('store_id', '=', storeId).execute()).filter(
        ({ body }) => /"cti":"cti-/.test(body),
      ).length
    const waits = async () =>
      (await database.reads.selectFrom('home_move').selectAll().where('store_id', '=', storeId).execute()).some(
        ({ denied_after }) => denied_after !== null,
      )
    await shop.ok('moveReceiptHome', { storeId, home: agent.agentId })
    const atOnce = await denied()
    expect([atOnce > 0, atOnce <= 500, await waits()]).toEqual([true, true, true])
    expect((await policyOf(agent)).homeMove.denySeq).toBe(Number.MAX_SAFE_INTEGER)
    await continueHomeMoves(database, services)
    expect([await denied(), await waits()]).toEqual([700, false])
    await shop.ok('moveReceiptHome', { storeId, home: 'cloud' })
    await continueHomeMoves(database, services)
    expect(await denied()).toBe(700)
  })

  it('an agent with exit gates becomes the receipt home; after its revocation, the next such agent does', async () => {
    const storeId = shop.otherStoreId
    const homeOf = async () => (await shop.ok('fetchProtectionPolicy', { storeId })).policy.home
    await shop.ok('moveReceiptHome', { storeId, home: 'cloud' })
    const [a, b, c] = [
      await enrolTestAgent(shop, storeId),
      await enrolTestAgent(shop, storeId),
      await enrolTestAgent(shop, storeId),
    ]
    const registerGate = async (agent: TestAgent, deviceType = 'exit_gate') =>
      (await shop.ok('registerDevice', { storeId, deviceType, agentId: agent.agentId })).deviceId
    await registerGate(a, 'pos_deactivator')
    expect(await homeOf()).toBe('cloud')
    const first = await shop.ok('registerDevice', { storeId, deviceType: 'exit_gate', agentId: a.agentId })
    expect(first.agentId).toBe(a.agentId)
    expect(await homeOf()).toBe(a.agentId)
    // One gate of the next agent is decommissioned.
    await shop.ok('decommissionDevice', { deviceId: await registerGate(b) })
    await registerGate(c)
    expect(await homeOf()).toBe(a.agentId)
    await shop.ok('revokeAgent', { agentId: a.agentId })
    expect(await homeOf()).toBe(c.agentId)
    expect((await policyOf(c)).homeMove.denySeq).toBe(Number.MAX_SAFE_INTEGER)
    await shop.ok('revokeAgent', { agentId: c.agentId })
    expect(await homeOf()).toBe('cloud')
  })
})
