import type { Call } from '../../../../cloud/platform/operations/operation.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { retryUnapplied } from '../../../../cloud/protection/agents/journal/retry-unapplied.ts'
import { applyClaim } from '../../../../cloud/protection/evidence/apply-claim.ts'
import { applyOutcome } from '../../../../cloud/protection/evidence/apply-outcome.ts'
import { applyVoid } from '../../../../cloud/protection/evidence/apply-delegated.ts'
import {
  finishEvidence,
  openEvidence,
  type EvidenceScope,
} from '../../../../cloud/protection/evidence/evidence-scope.ts'
import type { Evidence } from '../../../../policy/journal.ts'
import type { Outcome } from '../../../../policy/vocabulary.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('reconciliation', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let agent: TestAgent
  let till: string
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    agent = await enrolTestAgent(shop)
    till = shop.devices.pos_deactivator
    await agent.call('reportDeviceHeartbeat', { deviceId: till })
  })
  afterAll(() => shop.stop())

  const operatorId = 'op-1'
  const buy = () => shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
  const grant = async (purchase: Json) =>
    (
      await agent.call('verifySecurityTagDeactivation', {
        purchaseId: purchase.transactionId,
        deviceId: till,
        operatorId,
      })
    ).body.replayProtectedNonce as string
  const claim = (
    nonce: string,
    redemptionId: string,
    source: 'token' | 'receipt' = 'token',
  ): Evidence & { kind: 'claim' } => ({
    kind: 'claim',
    redemptionId,
    nonce,
    source,
    rightClass: 'release',
    ordinals: [0],
    deviceId: till,
  })
  const outcome = (redemptionId: string, newOutcome: Outcome): Evidence => ({
    kind: 'outcome',
    redemptionId,
    outcome: newOutcome,
  })
  const report = (...evidence: Evidence[]) => agent.report(evidence.map((each) => agent.row({ evidence: each })))
  const status = async (purchase: Json) =>
    (await shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).securityTagStatus
  const open = async (what: string): Promise<Json[]> =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: what, state: 'open', limit: 500 })).exceptions
  const openAbout = async (what: string, subject: string) => (await open(what)).filter((e) => e.subject === subject)
  const resolve = (redemptionId: string, newOutcome: string, fields: Json = {}) =>
    shop.call('resolveRedemption', { redemptionId, outcome: newOutcome, operatorId, ...fields })

  it('withdraws the exception about a second release when one of both turns out to have failed', async () => {
    const purchase = await buy()
    const nonce = await grant(purchase)
    await report(claim(nonce, 'twice-1'), outcome('twice-1', 'confirmed'))
    const { cti } = await shop.cloud.db.database.reads
      .selectFrom('purchase')
      .select('cti')
      .where('purchase_id', '=', purchase.transactionId as string)
      .executeTakeFirstOrThrow()
    const ofPurchase = async () =>
      (await open('double_redeem')).filter((each) => each.purchaseId === purchase.transactionId)
    await report(claim(cti ?? '', 'twice-2', 'receipt'))
    expect(await ofPurchase()).toHaveLength(1)
    await report(outcome('twice-2', 'failed'))
    expect(await ofPurchase()).toEqual([])
  })

  describe('a lease of the same device', () => {
    // An agent’s clock may be behind, and it may not have received the revocation yet.
    it('is replaced only after its agent voided it, or a minute after its end', async () => {
      const [ended, voided] = [await buy(), await buy()]
      const former = await grant(ended)
      const granted = await grant(voided)
      expect(await grant(ended)).toBe(former)
      const verifyPurchase = async (purchase: Json) =>
        (
          await agent.call('verifySecurityTagDeactivation', {
            purchaseId: purchase.transactionId,
            deviceId: till,
            operatorId,
          })
        ).body
      forward(301_000)
      await agent.login()
      for (const purchase of [ended, voided])
        expect(await verifyPurchase(purchase)).toMatchObject({
          authorizationToken: null,
          reason: 'authorization_outstanding',
          retryAfter: expect.any(Number),
        })
      await report({ kind: 'void', nonce: granted })
      const again = await verifyPurchase(voided)
      expect(again).toMatchObject({ deactivationAuthorized: true })
      expect(again.replayProtectedNonce).not.toBe(granted)
      forward(60_000)
      expect((await verifyPurchase(ended)).replayProtectedNonce).not.toBe(former)
      expect(await verifyPurchase(ended)).toMatchObject({ deactivationAuthorized: true })
    })
  })

  describe('a revoked lease', () => {
    // The agent may be offline, and its report about one step proves nothing about the others.
    it('keeps its other steps leased until its agent voids it, whatever the agent reports about one step', async () => {
      const [p] = shop.products
      const epcs = [(await shop.newItem(p)).epc, (await shop.newItem(p)).epc]
      const purchase = await shop.buy([{ ean: p.ean, quantity: 2, epcs }])
      const nonce = await grant(purchase)
      const { database } = shop.cloud.db
      // The steps of a token are in the order of the receipt.
      const [first, second] = await database.reads
        .selectFrom('purchase_unit as u')
        .innerJoin('protected_item as i', 'i.item_id', 'u.item_id')
        .select('i.epc')
        .where('u.purchase_id', '=', purchase.transactionId)
        .orderBy('u.receipt_index')
        .execute()
      await shop.ok('updateItemStatus', { storeId: shop.storeId, epc: first?.epc, itemStatus: 'returned' })
      await report(claim(nonce, 'r-taken-back'), outcome('r-taken-back', 'confirmed'))
      const verifyItem = async () =>
        (
          await shop.call('verifyProtectedItem', {
            deviceId: shop.devices.self_checkout_detacher,
            protectionAction: 'detach_hard_tag',
            epc: second?.epc,
          })
        ).body
      expect(await verifyItem()).toMatchObject({ authorized: false, reason: 'authorization_outstanding' })
      await report({ kind: 'void', nonce })
      expect(await verifyItem()).toMatchObject({ authorized: true })
    })
  })

  describe('resolveRedemption', () => {
    it('confirms an unknown outcome, settles the purchase, acknowledges the exception and records the resolver', async () => {
      const purchase = await buy()
      await report(claim(await grant(purchase), 'r-unknown'), outcome('r-unknown', 'unknown'))
      expect(await openAbout('outcome_unknown', 'r-unknown')).toHaveLength(1)
      expect(await status(purchase)).toBe('pending')
      expect(await resolve('r-unknown', 'confirmed')).toMatchObject({
        status: 200,
        body: { authorizationState: 'redeemed' },
      })
      expect(await status(purchase)).toBe('deactivated')
      expect(await openAbout('outcome_unknown', 'r-unknown')).toEqual([])
      const { events } = await shop.ok('fetchProtectionEvents', {
        storeId: shop.storeId,
        purchaseId: purchase.transactionId,
        type: 'protection.action.completed',
      })
      expect(events).toMatchObject([{ operatorId, outcome: 'confirmed', authorizationState: 'redeemed' }])
      expect((await resolve('r-unknown', 'confirmed')).status).toBe(200)
      expect(await resolve('r-unknown', 'failed')).toMatchObject({ status: 409, body: { reason: 'outcome_known' } })
    })

    it('resolves unknown to failed, which frees the unit, and failed to confirmed', async () => {
      const [freed, confirmed] = [await buy(), await buy()]
      await report(
        claim(await grant(freed), 'r-on'),
        outcome('r-on', 'unknown'),
        claim(await grant(confirmed), 'r-off'),
        outcome('r-off', 'failed'),
      )
      await resolve('r-on', 'failed')
      expect(await grant(freed)).toBeTypeOf('string')
      await resolve('r-off', 'confirmed')
      expect(await status(confirmed)).toBe('deactivated')
      expect(await grant(confirmed)).toBeNull()
    })

    it('keeps the staff’s outcome and raises outcome_conflict when the device contradicts it later', async () => {
      const purchase = await buy()
      await report(claim(await grant(purchase), 'r-conflict'), outcome('r-conflict', 'unknown'))
      await resolve('r-conflict', 'confirmed')
      await report(outcome('r-conflict', 'failed'), outcome('r-conflict', 'failed'))
      expect(await openAbout('outcome_conflict', 'r-conflict')).toHaveLength(1)
      expect(await status(purchase)).toBe('deactivated')
    })

    it('requires a five-minute wait, the nonce for an ambiguous id, and the same account', async () => {
      const deviceId = shop.devices.self_checkout_detacher
      const nonces = []
      for (let i = 0; i < 2; i++) {
        const product = shop.products[0]
        const { epc } = await shop.newItem(product)
        await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
        const { replayProtectedNonce } = await shop.ok('verifyProtectedItem', {
          deviceId,
          protectionAction: 'detach_hard_tag',
          epc,
        })
        await shop.ok('redeemProtectionAuthorization', { replayProtectedNonce, deviceId, redemptionId: 'own-id' })
        nonces.push(replayProtectedNonce)
      }
      expect(await resolve('own-id', 'confirmed')).toMatchObject({
        status: 409,
        body: { reason: 'redemption_ambiguous' },
      })
      expect(await resolve('own-id', 'confirmed', { replayProtectedNonce: nonces[0] })).toMatchObject({
        status: 409,
        body: { reason: 'outcome_pending' },
      })
      forward(301_000)
      expect((await resolve('own-id', 'confirmed', { replayProtectedNonce: nonces[0] })).status).toBe(200)
      const rows = await shop.cloud.db.database.reads
        .selectFrom('redemption')
        .select(['nonce', 'outcome'])
        .where('redemption_id', '=', 'own-id')
        .execute()
      expect(Object.fromEntries(rows.map((row) => [row.nonce, row.outcome]))).toEqual({
        [nonces[0]]: 'confirmed',
        [nonces[1]]: null,
      })
      const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
      expect(
        (
          await shop.cloud.call(stranger, 'resolveRedemption', {
            redemptionId: 'own-id',
            outcome: 'failed',
            operatorId,
          })
        ).status,
      ).toBe(404)
    })
  })

  describe('a receipt claim that bypasses a lease', () => {
    const ctiOf = async ({ transactionId }: Json) =>
      (
        await shop.cloud.db.database.reads
          .selectFrom('purchase')
          .select('cti')
          .where('purchase_id', '=', transactionId)
          .executeTakeFirstOrThrow()
      ).cti ?? ''
    const pendingCommands = async () =>
      (await agent.call('fetchSignedDocuments', {})).body.commands as string[] | undefined

    it('grants no second token for the units until the first token is void', async () => {
      const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 2 }])
      const cti = await ctiOf(purchase)
      // The response with this token was lost, so the agent decides by the receipt.
      const lost = await grant(purchase)
      await report(
        { ...claim(cti, 'r-past-1', 'receipt'), ordinals: [0] },
        { ...claim(cti, 'r-past-2', 'receipt'), ordinals: [1] },
      )
      expect(await pendingCommands()).toHaveLength(1)
      await report(outcome('r-past-1', 'confirmed'), outcome('r-past-2', 'failed'))
      expect(await grant(purchase)).toBeNull()
      await report({ kind: 'void', nonce: lost })
      expect(await pendingCommands()).toBeUndefined()
      const next = await agent.call('verifySecurityTagDeactivation', {
        purchaseId: purchase.transactionId,
        deviceId: till,
        operatorId,
      })
      expect(next.body).toMatchObject({ authorizationToken: expect.any(String), itemCount: 1 })
    })
  })

  describe('returned goods', () => {
    const ctiOf = async ({ transactionId }: Json) =>
      (
        await shop.cloud.db.database.reads
          .selectFrom('purchase')
          .select('cti')
          .where('purchase_id', '=', transactionId)
          .executeTakeFirstOrThrow()
      ).cti ?? ''
    /** A refunded purchase of one unit, and the subject of its exception. */
    const refunded = async () => {
      const purchase = await buy()
      await shop.ok('refundPayment', {
        purchaseId: purchase.transactionId,
        lines: [{ itemLineId: purchase.items[0].itemLineId }],
      })
      return { cti: await ctiOf(purchase), subject: `${purchase.items[0].itemLineId}/1/release` }
    }

    it('stay on the exception list if they were released, unless the release failed', async () => {
      const [gone, failed, doubtful] = [await refunded(), await refunded(), await refunded()]
      for (const [{ cti }, id, newOutcome] of [
        [gone, 'r-gone', 'confirmed'],
        [failed, 'r-failed', 'failed'],
        [doubtful, 'r-doubt', 'unknown'],
      ] as const) {
        await report(claim(cti, id, 'receipt'), outcome(id, newOutcome))
      }
      expect(await openAbout('released_after_refund', gone.subject)).toHaveLength(1)
      expect(await openAbout('released_after_refund', failed.subject)).toEqual([])
      expect(await openAbout('released_after_refund', doubtful.subject)).toHaveLength(1)
      await resolve('r-doubt', 'failed')
      expect(await openAbout('released_after_refund', doubtful.subject)).toEqual([])
    })
  })

  describe('evidence', () => {
    it('gives the same result and one exception each, in any order and with repetitions', async () => {
      const other = await enrolTestAgent(shop)
      const outcomeReports = fc.record({
        of: fc.constantFrom('a', 'b', 'c', 'l'),
        newOutcome: fc.constantFrom<Outcome>('confirmed', 'failed', 'unknown'),
      })
      await fc.assert(
        fc.asyncProperty(
          fc.array(outcomeReports, { maxLength: 4 }),
          fc.array(fc.constantFrom('a', 'b', 'c', 'l', 'foreign', 'void', 'strange void'), { maxLength: 6 }),
          fc.infiniteStream(fc.nat()),
          async (outcomes, claims, chance) => {
            const views: unknown[] = []
            // First in the normal order, then in any order with repetitions.
            for (const isShuffled of [false, true]) {
              const purchase = await buy()
              const nonce = await grant(purchase)
              const { database } = shop.cloud.db
              const { cti } = await database.reads
                .selectFrom('purchase')
                .select('cti')
                .where('purchase_id', '=', purchase.transactionId)
                .executeTakeFirstOrThrow()
              const { exp, iat } = await database.reads
                .selectFrom('protection_authorization')
                .select(['exp', 'iat'])
                .where('nonce', '=', nonce)
                .executeTakeFirstOrThrow()
              const id = (name: string) => `${name} of ${nonce}`
              const at = (seconds: number) => (iat + seconds) * 1_000
              const facts: Record<string, (scope: EvidenceScope) => Promise<boolean>> = {
                a: (scope) => applyClaim(scope, by(agent, at(10)), claim(nonce, id('a'))),
                b: (scope) => applyClaim(scope, by(agent, at(20)), claim(nonce, id('b'))),
                c: (scope) => applyClaim(scope, by(other, at(30)), claim(cti ?? '', id('c'), 'receipt')),
                l: (scope) => applyClaim(scope, by(agent, exp * 1_000 + 5), claim(nonce, id('l'))),
                foreign: (scope) => applyClaim(scope, by(other, at(40)), claim(nonce, id('f'))),
                void: (scope) => applyVoid(scope, by(agent, at(15)), ledgerOf(agent), nonce),
                'strange void': (scope) => applyVoid(scope, by(other, at(16)), ledgerOf(other), nonce),
              }
              const all = [
                ...claims.flatMap((name) => facts[name] ?? []),
                ...outcomes.map(
                  ({ of, newOutcome }) =>
                    (scope: EvidenceScope) =>
                      applyOutcome(scope, by(of === 'c' ? other : agent, at(50)), id(of), newOutcome),
                ),
              ]
              const order = isShuffled
                ? [...all, ...all]
                    .map((fact) => ({ fact, key: chance.next().value }))
                    .toSorted((x, y) => x.key - y.key)
                    .map(({ fact }) => fact)
                : all
              await database.write(async (db) => {
                const call = {
                  db,
                  nowMs: platform.clock.wall(),
                  services: shop.cloud.cloud.services,
                  emit: () => undefined,
                  afterCommit: () => undefined,
                }
                const scope = openEvidence(call, purchaseTenant)
                // As rows of one batch, or as single rows.
                if (!isShuffled)
                  await scope.redemptions.prepare(
                    ['a', 'b', 'c', 'l', 'f'].map(id),
                    await scope.facts.prepare([nonce, cti ?? '']),
                  )
                // Rows about unknown tokens wait, as unapplied rows do.
                let waiting = order
                for (let round = 0; round < 2; round++) {
                  const still: typeof order = []
                  for (const fact of waiting) {
                    if (!(await fact(scope))) still.push(fact)
                    // Row by row or once for a whole batch: the result is the same.
                    if (isShuffled) await finishEvidence(scope)
                  }
                  waiting = still
                }
                await finishEvidence(scope)
              })
              views.push(await viewOf(purchase, nonce))
            }
            expect(views[1]).toEqual(views[0])
          },
        ),
        { numRuns: kind === 'sqlite' ? 25 : 8 },
      )
    })

    let purchaseTenant = ''
    beforeAll(async () => {
      purchaseTenant = (
        await shop.cloud.db.database.reads
          .selectFrom('store')
          .select('tenant')
          .where('store_id', '=', shop.storeId)
          .executeTakeFirstOrThrow()
      ).tenant
    })
    const by = ({ agentId }: TestAgent, atMs: number) => ({ agentId, storeId: shop.storeId, atMs, eventId: '' })
    const ledgerOf = ({ ledgerId }: TestAgent) => ({ ledger_id: ledgerId, generation: 1, fork_ms: null })

    async function viewOf(purchase: Json, nonce: string): Promise<unknown> {
      const { reads } = shop.cloud.db.database
      const lines = (purchase.items as Json[]).map((line) => line.itemLineId as string)
      const plain = (text: string) =>
        lines.reduce((known, line) => known.replaceAll(line, 'LINE'), text.replaceAll(nonce, 'NONCE'))
      const rights = await reads
        .selectFrom('unit_right')
        .selectAll()
        .where('purchase_id', '=', purchase.transactionId)
        .execute()
      const exceptions = await reads
        .selectFrom('protection_exception')
        .selectAll()
        .where('acknowledged_ms', 'is', null)
        .execute()
      const mine = exceptions.filter(
        (row) => row.purchase_id === purchase.transactionId || plain(row.subject) !== row.subject,
      )
      const known = new Set(mine.map((row) => `${row.kind} ${row.subject}`))
      expect(known.size).toBe(mine.length)
      return {
        rights: rights.map(({ state, outcome: newOutcome, redemption_id, failures }) => ({
          state,
          newOutcome,
          by: plain(redemption_id ?? ''),
          failures,
        })),
        exceptions: [...known].map(plain).sort(),
        status: await status(purchase),
        state: (
          await reads
            .selectFrom('protection_authorization')
            .select(['voided_ms', 'iat'])
            .where('nonce', '=', nonce)
            .execute()
        ).map((row) => (row.voided_ms === null ? null : row.voided_ms - row.iat * 1_000)),
      }
    }

    it('is applied once its token or receipt is known, and its exception is withdrawn', async () => {
      const purchase = await buy()
      const nonce = await grant(purchase)
      const { database } = shop.cloud.db
      const row = await database.reads
        .selectFrom('protection_authorization')
        .selectAll()
        .where('nonce', '=', nonce)
        .executeTakeFirstOrThrow()
      await database.write((db) => db.deleteFrom('protection_authorization').where('nonce', '=', nonce).execute())
      await report(claim(nonce, 'r-early'), outcome('r-early', 'confirmed'))
      expect(await openAbout('unapplied', 'r-early')).toHaveLength(1)
      await database.write((db) => db.insertInto('protection_authorization').values(row).execute())
      const { services } = shop.cloud.cloud
      let applied = 0
      const call = { services, nowMs: platform.clock.wall(), emit: () => undefined, afterCommit: () => undefined }
      await retryUnapplied(agent.agentId, (work) =>
        database.write(async (db) => void (applied += await work({ ...call, db } as unknown as Call))),
      )
      expect(applied).toBe(2)
      expect(await openAbout('unapplied', 'r-early')).toEqual([])
      expect(await status(purchase)).toBe('deactivated')
    })
  })

  it('leaves no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })

  it('applies the rows around a row that fails an assertion, each once', async () => {
    const [first, broken, last] = [await buy(), await buy(), await buy()]
    const [before, gone, after] = [await grant(first), await grant(broken), await grant(last)]
    const { database } = shop.cloud.db
    await database.write((db) =>
      db.updateTable('protection_authorization').set({ item_id: 'itm_gone' }).where('nonce', '=', gone).execute(),
    )
    const batch = [
      claim(before, 'r-before'),
      outcome('r-before', 'confirmed'),
      claim(gone, 'r-broken'),
      claim(after, 'r-after'),
      outcome('r-after', 'confirmed'),
    ]
    expect((await report(...batch)).body).toMatchObject({ success: true, accepted: 5 })
    expect(shop.cloud.errors).toHaveLength(1)
    expect([await status(first), await status(broken), await status(last)]).toEqual([
      'deactivated',
      'pending',
      'deactivated',
    ])
    expect(await openAbout('unapplied', 'r-broken')).toHaveLength(1)
    const emitted = await database.reads
      .selectFrom('outbox_event')
      .select('data')
      .where('type', '=', 'securityTag.deactivated')
      .execute()
    for (const { transactionId } of [first, last])
      expect(emitted.filter(({ data }) => data.includes(transactionId))).toHaveLength(1)
  })
})
