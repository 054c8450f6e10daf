import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { keyId, newKey, publicJwk, createSigner, type Signer } from '../../../../policy/documents/keys.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import type { ProtectionEvent } from '../../../../policy/protection-events.ts'
import type { Evidence } from '../../../../policy/journal.ts'
import { markRestored } from '../../../../cloud/service/mark-restored.ts'
import { keysOf, loadKeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { realPlatform } from '../../../../host/platform.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { makeHome, outcomeReport, paidReceipt } from '../../../support/outcome-report.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('evidence that one agent reports for another', (kind) => {
  let shop: Shop
  /** The receipt home, the agent that requests rights from it, and a third agent. */
  let home: TestAgent
  let requester: TestAgent
  let third: TestAgent
  let epoch: number
  let ids = 0
  beforeAll(async () => {
    shop = await openShop(kind)
    home = await enrolTestAgent(shop)
    requester = await enrolTestAgent(shop)
    third = await enrolTestAgent(shop)
    await third.call('reportDeviceHeartbeat', { deviceId: shop.devices.pos_deactivator })
    epoch = await makeHome(shop, home)
  })
  afterAll(() => shop.stop())

  const newRedemption = () => `rdm-${++ids}`
  const delegation = (
    redemptionId: string,
    cti: string,
    change: Partial<Extract<Evidence, { kind: 'delegated' }>> = {},
  ) =>
    ({
      kind: 'delegated',
      redemptionId,
      nonce: cti,
      rightClass: 'release',
      ordinals: [0],
      agentId: requester.agentId,
      homeEpoch: epoch,
      ...change,
    }) satisfies Evidence
  const delegationReturned = (
    redemptionId: string,
    report: string | undefined,
    outcome: 'failed' | 'unknown' = 'failed',
  ) =>
    ({ kind: 'delegation_returned', redemptionId, outcome, ...(report !== undefined && { report }) }) satisfies Evidence
  const report = async (by: TestAgent, ...rows: Evidence[]) =>
    expect((await by.report(rows.map((evidence) => by.row({ evidence })))).body).toMatchObject({
      accepted: rows.length,
    })
  const storedStates = async (redemptionId: string) =>
    (
      await shop.cloud.db.database.reads
        .selectFrom('delegated_right')
        .select('state')
        .where('redemption_id', '=', redemptionId)
        .execute()
    ).map(({ state }) => state)
  const foreign = async (): Promise<Json[]> =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'foreign_evidence', limit: 200 })).exceptions
  /** Whether this id is the latest of an exception. */
  const isForeign = async (id: string) => (await foreign()).some(({ detail }) => detail.endsWith(`: ${id}`))
  /** Whether the third agent's device is granted the release of the purchase. */
  const isGranted = async (purchaseId: string) =>
    (
      await third.call('verifySecurityTagDeactivation', {
        purchaseId,
        deviceId: shop.devices.pos_deactivator,
      })
    ).body.deactivationAuthorized
  /** Rights that the receipt home has delegated to the requesting agent. */
  const delegateRight = async () => {
    const redemptionId = newRedemption()
    const { purchaseId, cti } = await paidReceipt(shop)
    await report(home, delegation(redemptionId, cti))
    expect(await storedStates(redemptionId)).toEqual(['delegated'])
    const claims = { aud: home.agentId, redemptionId, cti, homeEpoch: epoch, outcome: 'failed' as const }
    return { redemptionId, purchaseId, cti, claims }
  }
  const expectRefused = async (by: TestAgent, row: Evidence & { redemptionId: string }, state: string[]) => {
    await report(by, row)
    expect(await storedStates(row.redemptionId)).toEqual(state)
    expect(await isForeign(row.redemptionId)).toBe(true)
  }

  describe('rows about a token', () => {
    /** A token of the third agent, which has redeemed it. */
    const redeemed = async () => {
      const { purchaseId } = await paidReceipt(shop)
      const deviceId = shop.devices.pos_deactivator
      const { body } = await third.call('verifySecurityTagDeactivation', { purchaseId, deviceId })
      const nonce: string = body.replayProtectedNonce
      const redemptionId = newRedemption()
      const claim = (id: string): Evidence => ({
        kind: 'claim',
        redemptionId: id,
        nonce,
        source: 'token',
        rightClass: 'release',
        ordinals: [0],
        deviceId,
      })
      await report(third, claim(redemptionId))
      return { purchaseId, nonce, redemptionId, claim, deviceId }
    }
    const outcomesOf = (nonce: string) =>
      shop.cloud.db.database.reads
        .selectFrom('redemption')
        .select(['redemption_id', 'outcome'])
        .where('nonce', '=', nonce)
        .execute()

    it('have no effect from an agent that the token does not name', async () => {
      const { nonce, redemptionId, claim } = await redeemed()
      const foreign = newRedemption()
      await report(
        requester,
        claim(foreign),
        { kind: 'outcome', redemptionId, outcome: 'failed' },
        { kind: 'void', nonce },
      )
      expect(await outcomesOf(nonce)).toEqual([{ redemption_id: redemptionId, outcome: null }])
      const row = await shop.cloud.db.database.reads
        .selectFrom('protection_authorization')
        .select('voided_ms')
        .where('nonce', '=', nonce)
        .executeTakeFirstOrThrow()
      expect(row.voided_ms).toBeNull()
      for (const subject of [nonce, redemptionId]) expect(await isForeign(subject)).toBe(true)
    })

    it('have no effect from an agent of another store that names a receipt', async () => {
      const elsewhere = await enrolTestAgent(shop, shop.otherStoreId)
      const { purchaseId, cti } = await paidReceipt(shop)
      const row: Evidence = {
        kind: 'claim',
        redemptionId: newRedemption(),
        nonce: cti,
        source: 'receipt',
        rightClass: 'release',
        ordinals: [0],
        deviceId: shop.devices.pos_deactivator,
      }
      await report(elsewhere, row)
      expect(await outcomesOf(cti)).toEqual([])
      expect(await isGranted(purchaseId)).toBe(true)
    })

    it('store no event about another agent’s token, or a device or receipt of another store', async () => {
      const { nonce, deviceId, purchaseId } = await redeemed()
      const elsewhere = await enrolTestAgent(shop, shop.otherStoreId)
      const { cti } = await paidReceipt(shop)
      const event = (change: Partial<ProtectionEvent>): ProtectionEvent => ({
        type: 'protection.action.completed',
        eventId: `evt-${newRedemption()}`,
        occurredAt: new Date().toISOString(),
        storeId: shop.storeId,
        ...change,
      })
      const foreign = [
        event({ replayProtectedNonce: nonce, deviceId }),
        event({ type: 'protection.action.failed', replayProtectedNonce: nonce }),
      ]
      const ofOtherStore = [event({ deviceId }), event({ replayProtectedNonce: cti })]
      const made = event({ deviceId, replayProtectedNonce: nonce, purchaseId: 'pur_of_nobody' })
      const send = async (by: TestAgent, events: ProtectionEvent[]) =>
        expect((await by.report(events.map((each) => by.row({ event: each })))).body).toMatchObject({
          accepted: events.length,
        })
      await send(requester, foreign)
      await send(elsewhere, ofOtherStore)
      await send(third, [made])
      const known = await shop.cloud.db.database.reads
        .selectFrom('protection_event')
        .select(['event_id', 'purchase_id'])
        .where(
          'event_id',
          'in',
          [...foreign, ...ofOtherStore, made].map(({ eventId }) => eventId),
        )
        .execute()
      expect(known).toEqual([{ event_id: made.eventId, purchase_id: purchaseId }])
      for (const { eventId } of foreign) expect(await isForeign(eventId)).toBe(true)
    })

    it('raise one counted exception per agent and kind, which opens again after acknowledgement', async () => {
      const { nonce, claim } = await redeemed()
      const liar = await enrolTestAgent(shop)
      const subject = `${liar.agentId}/claim`
      const exceptionsOfLiar = async () => (await foreign()).filter((each) => each.subject.startsWith(liar.agentId))
      const events = async () =>
        (
          await shop.cloud.db.database.reads
            .selectFrom('protection_event')
            .select('body')
            .where('type', '=', 'protection.exception.raised')
            .execute()
        ).filter(({ body }) => body.includes('foreign_evidence')).length
      const before = await events()
      for (let n = 0; n < 10; n++) await report(liar, ...Array.from({ length: 100 }, () => claim(newRedemption())))
      await report(liar, { kind: 'void', nonce })
      const [voided, claimed] = await exceptionsOfLiar()
      expect(voided).toMatchObject({ subject: `${liar.agentId}/void`, times: 1, state: 'open' })
      expect(claimed).toMatchObject({ subject, times: 1_000, state: 'open' })
      expect(Date.parse(claimed?.lastRaisedAt)).toBeGreaterThan(Date.parse(claimed?.raisedAt))
      expect(await exceptionsOfLiar()).toHaveLength(2)
      expect(await events()).toBe(before + 2)
      // The cloud stores the rows.
      expect(
        await shop.cloud.db.database.reads
          .selectFrom('journal_row')
          .select('seq')
          .where('agent_id', '=', liar.agentId)
          .execute(),
      ).toHaveLength(1_001)

      await shop.ok('acknowledgeException', { exceptionId: claimed?.exceptionId })
      await report(liar, claim(newRedemption()))
      expect((await exceptionsOfLiar())[1]).toMatchObject({ subject, times: 1_001, state: 'open' })
      expect(await events()).toBe(before + 3)
    })

    it('are accepted in signed batches only', async () => {
      const event = { type: 'protection.action.completed', eventId: 'evt-unsigned', storeId: shop.storeId }
      const events = [{ ...event, occurredAt: new Date().toISOString() }]
      expect(await requester.call('reportProtectionEvents', { events })).toMatchObject({
        status: 403,
        body: { reason: 'batches_only' },
      })
    })
  })

  describe('delegated rights', () => {
    it('block the shopper only when the receipt home of that epoch reports them', async () => {
      const { purchaseId, cti } = await paidReceipt(shop)
      await expectRefused(third, delegation(newRedemption(), cti, { agentId: requester.agentId }), [])
      await expectRefused(third, delegation(newRedemption(), cti, { agentId: third.agentId }), [])
      await expectRefused(third, delegation(newRedemption(), cti, { homeEpoch: epoch + 1 }), [])
      await expectRefused(requester, delegation(newRedemption(), cti), [])
      expect(await isGranted(purchaseId)).toBe(true)
    })

    it('have no effect without an epoch in which the reporting agent was the receipt home', async () => {
      const { purchaseId, cti } = await paidReceipt(shop)
      const { homeEpoch: _, ...bare } = delegation(newRedemption(), cti)
      await expectRefused(home, bare, [])
      await expectRefused(home, delegation(newRedemption(), cti, { homeEpoch: epoch - 1 }), [])
      await expectRefused(home, delegation(newRedemption(), cti, { homeEpoch: epoch + 1 }), [])
      expect(await isGranted(purchaseId)).toBe(true)
    })

    it('have no effect when they name no agent of the store', async () => {
      const { purchaseId, cti } = await paidReceipt(shop)
      const elsewhere = await enrolTestAgent(shop, shop.otherStoreId)
      await expectRefused(home, delegation(newRedemption(), cti, { agentId: 'agt_nobody' }), [])
      await expectRefused(home, delegation(newRedemption(), cti, { agentId: elsewhere.agentId }), [])
      expect(await isGranted(purchaseId)).toBe(true)
    })

    it('are accepted from a former receipt home for its own epoch only, even if they are late', async () => {
      const [late, next] = [await paidReceipt(shop), await paidReceipt(shop)]
      const before = epoch
      const [own, foreign] = [newRedemption(), newRedemption()]
      epoch = await makeHome(shop, third)
      await report(home, delegation(own, late.cti, { homeEpoch: before }))
      expect(await storedStates(own)).toEqual(['delegated'])
      await expectRefused(home, delegation(foreign, next.cti), [])
      await expectRefused(third, delegation(newRedemption(), next.cti, { homeEpoch: before }), [])
      const since = newRedemption()
      await report(third, delegation(since, next.cti))
      expect(await storedStates(since)).toEqual(['delegated'])
      epoch = await makeHome(shop, home)
    })
  })

  describe('the outcome of delegated rights', () => {
    it('frees a unit when the receipt home forwards the agent’s outcome report', async () => {
      const { redemptionId, purchaseId, claims } = await delegateRight()
      expect(await isGranted(purchaseId)).toBe(false)
      await report(
        home,
        delegationReturned(redemptionId, outcomeReport(requester, { ...claims, outcome: 'unknown' }), 'unknown'),
      )
      expect(await storedStates(redemptionId)).toEqual(['unknown'])
      await report(home, delegationReturned(redemptionId, outcomeReport(requester, claims)))
      expect(await storedStates(redemptionId)).toEqual(['failed'])
      expect(await isGranted(purchaseId)).toBe(true)
      expect(await isForeign(redemptionId)).toBe(false)
    })

    it('frees nothing when another agent sends the report instead of the receipt home', async () => {
      const { redemptionId, purchaseId, claims } = await delegateRight()
      await expectRefused(third, delegationReturned(redemptionId, undefined), ['delegated'])
      await expectRefused(third, delegationReturned(redemptionId, outcomeReport(requester, claims)), ['delegated'])
      await expectRefused(
        third,
        delegationReturned(redemptionId, outcomeReport(third, { ...claims, aud: third.agentId })),
        ['delegated'],
      )
      await expectRefused(
        requester,
        delegationReturned(redemptionId, outcomeReport(requester, { ...claims, aud: requester.agentId })),
        ['delegated'],
      )
      expect(await isGranted(purchaseId)).toBe(false)
    })

    it('frees nothing without the report, or with one that another agent signed', async () => {
      const { redemptionId, purchaseId, claims } = await delegateRight()
      await expectRefused(home, delegationReturned(redemptionId, undefined), ['delegated'])
      await expectRefused(home, delegationReturned(redemptionId, 'no report'), ['delegated'])
      await expectRefused(home, delegationReturned(redemptionId, outcomeReport(requester, claims, home.signer)), [
        'delegated',
      ])
      await expectRefused(home, delegationReturned(redemptionId, outcomeReport(home, claims)), ['delegated'])
      await expectRefused(home, delegationReturned(redemptionId, outcomeReport(third, claims)), ['delegated'])
      const stranger: Signer = createSigner(
        newKey(shop.cloud.platform.random).x,
        newKey(shop.cloud.platform.random).secret,
      )
      await expectRefused(home, delegationReturned(redemptionId, outcomeReport(requester, claims, stranger)), [
        'delegated',
      ])
      expect(await isGranted(purchaseId)).toBe(false)
    })

    it.each([
      ['redemption', { redemptionId: 'rdm-another' }],
      ['receipt', { cti: 'ab'.repeat(16) }],
      ['right', { rightClass: 'exit' as const }],
      ['step', { candidates: [1] }],
      ['home', { aud: 'agt_another' }],
      ['epoch', { homeEpoch: 0 }],
      ['outcome', { outcome: 'unknown' as const }],
    ])('frees nothing with a report about another %s', async (_, change) => {
      const { redemptionId, purchaseId, claims } = await delegateRight()
      await expectRefused(home, delegationReturned(redemptionId, outcomeReport(requester, { ...claims, ...change })), [
        'delegated',
      ])
      expect(await isGranted(purchaseId)).toBe(false)
    })

    it('is accepted if the requesting agent has rotated its key since', async () => {
      const { redemptionId, claims } = await delegateRight()
      const signed = outcomeReport(requester, claims)
      const { x, secret } = newKey(shop.cloud.platform.random)
      const next = createSigner(x, secret)
      const iat = Math.floor(Date.now() / 1_000)
      const proof = signDocument(
        DOCUMENT_KINDS.rotation,
        { aud: requester.agentId, iat, exp: iat + 300, formerKid: keyId(requester.x) },
        next,
      )
      expect((await requester.call('rotateAgentKey', { publicJwk: publicJwk(x), proof })).status).toBe(200)
      const { challenge } = (await shop.cloud.call(null, 'agentLogin', { agentId: requester.agentId })).body
      const assertion = requester.messages.assertion(challenge, Date.now(), next)
      const login = await shop.cloud.call(null, 'agentLogin', { agentId: requester.agentId, assertion })
      expect(login.status).toBe(200)
      await report(home, delegationReturned(redemptionId, signed))
      expect(await storedStates(redemptionId)).toEqual(['failed'])
      // The former key allows no login.
      const again = await shop.cloud.call(null, 'agentLogin', { agentId: requester.agentId })
      const old = requester.messages.assertion(again.body.challenge, Date.now())
      expect((await shop.cloud.call(null, 'agentLogin', { agentId: requester.agentId, assertion: old })).status).toBe(
        401,
      )
      requester.signer = next
      requester.token = login.body.accessToken
    })

    it('is accepted from a former receipt home for rights of its own epoch', async () => {
      const { redemptionId, claims } = await delegateRight()
      epoch = await makeHome(shop, third)
      await expectRefused(
        third,
        delegationReturned(redemptionId, outcomeReport(requester, { ...claims, aud: third.agentId })),
        ['delegated'],
      )
      await report(home, delegationReturned(redemptionId, outcomeReport(requester, claims)))
      expect(await storedStates(redemptionId)).toEqual(['failed'])
      epoch = await makeHome(shop, home)
    })

    it('changes no rights that another receipt home delegated under the same redemption id', async () => {
      const { redemptionId, cti } = await delegateRight()
      const before = epoch
      epoch = await makeHome(shop, third)
      const claims = { aud: third.agentId, redemptionId, cti, homeEpoch: epoch, outcome: 'failed' as const }
      await expectRefused(third, delegationReturned(redemptionId, outcomeReport(requester, claims)), ['delegated'])
      await expectRefused(
        third,
        delegationReturned(redemptionId, outcomeReport(requester, { ...claims, homeEpoch: before })),
        ['delegated'],
      )
      epoch = await makeHome(shop, home)
    })

    it('ignores a redemption without delegated rights and raises nothing', async () => {
      const redemptionId = newRedemption()
      const { cti } = await paidReceipt(shop)
      const claims = { aud: home.agentId, redemptionId, cti, homeEpoch: epoch, outcome: 'failed' as const }
      await report(home, delegationReturned(redemptionId, outcomeReport(requester, claims)))
      expect(await storedStates(redemptionId)).toEqual([])
      expect(await isForeign(redemptionId)).toBe(false)
    })

    it('is accepted if the requesting agent or the receipt home has been re-enrolled since', async () => {
      const [byHeir, byFormer, ofHome] = [await delegateRight(), await delegateRight(), await delegateRight()]
      const former = requester
      requester = await enrolTestAgent(shop, shop.storeId, former)
      await report(home, delegationReturned(byHeir.redemptionId, outcomeReport(requester, byHeir.claims)))
      expect(await storedStates(byHeir.redemptionId)).toEqual(['failed'])
      await report(home, delegationReturned(byFormer.redemptionId, outcomeReport(former, byFormer.claims)))
      expect(await storedStates(byFormer.redemptionId)).toEqual(['failed'])
      const formerHome = home
      home = await enrolTestAgent(shop, shop.storeId, formerHome)
      const late = newRedemption()
      const { cti } = await paidReceipt(shop)
      await report(
        home,
        delegation(late, cti),
        delegationReturned(ofHome.redemptionId, outcomeReport(former, ofHome.claims)),
      )
      expect(await storedStates(late)).toEqual(['delegated'])
      expect(await storedStates(ofHome.redemptionId)).toEqual(['failed'])
      const claims = { ...ofHome.claims, aud: home.agentId, redemptionId: late, cti }
      await report(home, delegationReturned(late, outcomeReport(requester, claims)))
      expect(await storedStates(late)).toEqual(['failed'])
      epoch = await makeHome(shop, third)
      epoch = await makeHome(shop, home)
    })

    it('is ignored from a revoked agent', async () => {
      const { redemptionId, claims } = await delegateRight()
      const signed = outcomeReport(requester, claims)
      await shop.ok('revokeAgent', { agentId: requester.agentId })
      await expectRefused(home, delegationReturned(redemptionId, signed), ['delegated'])
      requester = await enrolTestAgent(shop)
    })
  })

  it('is accepted after a restore only from receipt homes of epochs that the restored cloud contains', async () => {
    const { db, keyFolder } = shop.cloud
    const delegated = await delegateRight()
    const platform = realPlatform()
    const files = await loadKeyFiles(keysOf(keyFolder), secretFiles, platform.random)
    await db.database.write((tx) => markRestored(tx, files, platform))
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    expect(policy).toMatchObject({ home: home.agentId })
    expect(policy.homeEpoch).toBeGreaterThan(epoch + 1_000)
    await Promise.all([home, third].map((agent) => agent.login()))
    const [known, forgotten, since] = [newRedemption(), newRedemption(), newRedemption()]
    const { cti } = await paidReceipt(shop)
    await report(
      home,
      delegationReturned(delegated.redemptionId, outcomeReport(requester, delegated.claims)),
      delegation(known, cti),
    )
    expect(await storedStates(delegated.redemptionId)).toEqual(['failed'])
    expect(await storedStates(known)).toEqual(['delegated'])
    // The receipt home may have moved before the restore, so no agent's report about such an epoch counts.
    await expectRefused(third, delegation(forgotten, cti, { homeEpoch: epoch + 1 }), [])
    await report(home, delegation(since, cti, { homeEpoch: policy.homeEpoch }))
    expect(await storedStates(since)).toEqual(['delegated'])
  })
})
