import type { Call } from '../../../../cloud/platform/operations/operation.ts'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { AckClaims } from '../../../../policy/documents/agent-messages.ts'
import { retryUnapplied } from '../../../../cloud/protection/agents/journal/retry-unapplied.ts'
import { pruneDelegated } from '../../../../cloud/protection/rights/delegated-rights.ts'
import type { ProtectionEvent } from '../../../../policy/protection-events.ts'
import type { Evidence } from '../../../../policy/journal.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { makeHome, outcomeReport } from '../../../support/outcome-report.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/** Journal batches of agents, and how the cloud applies their rows. */
onEveryDatabase('the journal of an agent', (kind) => {
  let agent: TestAgent
  let gate: Shop
  beforeAll(async () => {
    gate = await openShop(kind)
    agent = await enrolTestAgent(gate)
    await agent.call('reportDeviceHeartbeat', { deviceId: gate.devices.pos_deactivator })
  })
  afterAll(() => gate.stop())

  const ackOf = (body: Json) => AckClaims.parse(decodeJwt(body.ack))
  const claim = (nonce: string, redemptionId: string, ordinals = [0]): Evidence => ({
    kind: 'claim',
    redemptionId,
    nonce,
    source: 'token',
    rightClass: 'release',
    ordinals,
    deviceId: gate.devices.pos_deactivator,
  })
  const grant = async () => {
    const purchase = await gate.buy([{ ean: gate.products[0].ean, quantity: 1 }])
    const { body } = await agent.call('verifySecurityTagDeactivation', {
      purchaseId: purchase.transactionId,
      deviceId: gate.devices.pos_deactivator,
    })
    return { purchase, nonce: body.replayProtectedNonce as string, rights: body.receiptRights }
  }

  it('binds a token to the agent’s ledger and names the release rights that it covers', async () => {
    const { rights, nonce } = await grant()
    expect(rights).toMatchObject({ rightClass: 'release', ordinals: [0] })
    const row = await gate.cloud.db.database.reads
      .selectFrom('protection_authorization')
      .select('ledger')
      .where('nonce', '=', nonce)
      .executeTakeFirst()
    expect(row?.ledger).toBe(`${agent.ledgerId}.1`)
  })

  it('stores a batch once, in order, with an ack that is signed for this ledger', async () => {
    const { purchase, nonce } = await grant()
    const rows = [
      agent.row({ evidence: claim(nonce, 'red-1') }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-1', outcome: 'confirmed' } }),
    ]
    const first = await agent.report(rows)
    expect(first.body).toMatchObject({ accepted: 2, duplicates: 0 })
    expect(ackOf(first.body)).toMatchObject({
      aud: agent.agentId,
      ledger: agent.ledgerId,
      generation: 1,
      seq: 2,
      head: rows[1]?.hash,
    })
    const again = await agent.report(rows)
    expect(again.body).toMatchObject({ accepted: 0, duplicates: 2 })
    expect(await gate.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
  })

  it('blocks delegated rights until the agent reports the redemption or returns the right', async () => {
    const other = await enrolTestAgent(gate)
    const { transactionId: purchaseId } = await gate.buy([{ ean: gate.products[0].ean, quantity: 1 }])
    const { deviceId } = await gate.ok('registerDevice', { storeId: gate.storeId, deviceType: 'pos_deactivator' })
    await other.call('reportDeviceHeartbeat', { deviceId })
    const { cti: nonce } = await gate.cloud.db.database.reads
      .selectFrom('purchase')
      .select('cti')
      .where('purchase_id', '=', purchaseId)
      .executeTakeFirstOrThrow()
    const homeEpoch = await makeHome(gate, agent)
    const delegation = (redemptionId: string): Evidence => ({
      kind: 'delegated',
      redemptionId,
      nonce: nonce ?? '',
      rightClass: 'release',
      ordinals: [0],
      agentId: other.agentId,
      homeEpoch,
    })
    const delegationReturned = (redemptionId: string, outcome: 'failed' | 'unknown'): Evidence => ({
      kind: 'delegation_returned',
      redemptionId,
      outcome,
      report: outcomeReport(other, { aud: agent.agentId, redemptionId, cti: nonce ?? '', homeEpoch, outcome }),
    })
    const report = async (from: TestAgent, ...all: Evidence[]) =>
      expect((await from.report(all.map((evidence) => from.row({ evidence })))).body).toMatchObject({
        accepted: all.length,
      })
    const verifyPurchase = async (by: TestAgent, at: string) =>
      (await by.call('verifySecurityTagDeactivation', { purchaseId, deviceId: at })).body
    const verifyAtReceiptHome = () => verifyPurchase(agent, gate.devices.pos_deactivator)

    // The lease of the first agent is revoked, because the receipt home has delegated the right.
    const leasedNonce = (await verifyAtReceiptHome()).replayProtectedNonce
    await report(agent, delegation('delegation-1'))
    expect(
      await gate.cloud.db.database.reads
        .selectFrom('protection_authorization')
        .select('void_asked_ms')
        .where('nonce', '=', leasedNonce)
        .executeTakeFirst(),
    ).toMatchObject({ void_asked_ms: expect.any(Number) })
    await report(agent, { kind: 'void', nonce: leasedNonce })
    expect(await verifyAtReceiptHome()).toMatchObject({
      authorizationToken: null,
      reason: 'already_redeemed',
      items: [{ openUnits: 0 }],
    })
    await report(agent, delegationReturned('delegation-1', 'unknown'))
    expect(await verifyAtReceiptHome()).toMatchObject({
      authorizationToken: null,
      reason: 'manual_assistance_required',
    })
    await report(
      agent,
      delegationReturned('delegation-1', 'failed'),
      delegationReturned('delegation-1', 'unknown'),
      delegation('delegation-2'),
    )
    expect(await verifyAtReceiptHome()).toMatchObject({ reason: 'already_redeemed' })
    // The agent with the delegated right may request the unit at its own device, because it knows the outcome.
    const own = await verifyPurchase(other, deviceId)
    expect(own.authorizationToken).toBeTypeOf('string')
    await report(other, { kind: 'void', nonce: own.replayProtectedNonce })
    // The agent’s own report settles the right. A later report of the receipt home changes nothing.
    await report(
      other,
      {
        kind: 'claim',
        redemptionId: 'delegation-2',
        nonce: nonce ?? '',
        source: 'receipt',
        rightClass: 'release',
        ordinals: [0],
        deviceId,
      },
      { kind: 'outcome', redemptionId: 'delegation-2', outcome: 'failed' },
    )
    await report(agent, delegation('delegation-2'))
    const granted = await verifyAtReceiptHome()
    expect(granted.authorizationToken).toBeTypeOf('string')
    await report(agent, { kind: 'void', nonce: granted.replayProtectedNonce }, delegation('delegation-3'))
    expect(await verifyAtReceiptHome()).toMatchObject({ reason: 'already_redeemed' })
    // After the receipt expires, the cloud deletes rights with an outcome. A right without an outcome needs staff.
    const { database } = gate.cloud.db
    const storedRedemptionIds = async () =>
      (
        await database.reads.selectFrom('delegated_right').select('redemption_id').orderBy('redemption_id').execute()
      ).map((row) => row.redemption_id)
    const { until_s: untilS } = await database.reads
      .selectFrom('delegated_right')
      .select('until_s')
      .where('redemption_id', '=', 'delegation-3')
      .executeTakeFirstOrThrow()
    await database.write((db) => pruneDelegated(db, untilS * 1_000 - 1))
    expect(await storedRedemptionIds()).toEqual(['delegation-1', 'delegation-2', 'delegation-3'])
    await database.write((db) => pruneDelegated(db, untilS * 1_000))
    expect(await storedRedemptionIds()).toEqual(['delegation-3'])
    await database.write((db) => db.updateTable('delegated_right').set({ until_s: 1_000_000_000 }).execute())
    expect(await verifyAtReceiptHome()).toMatchObject({
      authorizationToken: null,
      reason: 'manual_assistance_required',
    })
    await database.write((db) => db.updateTable('delegated_right').set({ until_s: untilS }).execute())
    // The cloud ignores reports of a revoked agent.
    await gate.ok('revokeAgent', { agentId: other.agentId })
    expect(await verifyAtReceiptHome()).toMatchObject({ reason: 'manual_assistance_required' })
    await report(agent, delegationReturned('delegation-3', 'failed'))
    const { exceptions } = await gate.ok('fetchExceptions', { storeId: gate.storeId, kind: 'double_redeem' })
    expect(exceptions).toEqual([])
  })

  it('raises an exception for delegated rights of an unknown receipt or of another store', async () => {
    const raised = async (kind: string) =>
      (await gate.ok('fetchExceptions', { storeId: gate.storeId, kind })).exceptions.map((e: Json) => e.subject)
    const stranger = await enrolTestAgent(gate)
    const { transactionId } = await gate.buy([{ ean: gate.products[0].ean, quantity: 1 }])
    const { cti } = await gate.cloud.db.database.reads
      .selectFrom('purchase')
      .select('cti')
      .where('purchase_id', '=', transactionId)
      .executeTakeFirstOrThrow()
    const { storeId } = await gate.ok('insertStore', {
      companyName: 'a',
      tradingName: 'b',
      address: { street: 's', city: 'c', zip: '12345', country: 'DE' },
      phone: '+4940555010',
    })
    await gate.cloud.db.database.write((db) =>
      db.updateTable('purchase').set({ store_id: storeId }).where('purchase_id', '=', transactionId).execute(),
    )
    const homeEpoch = await makeHome(gate, stranger)
    const delegatedRow = (redemptionId: string, nonce: string) =>
      stranger.row({
        evidence: {
          kind: 'delegated',
          redemptionId,
          nonce,
          rightClass: 'exit',
          ordinals: [0],
          agentId: agent.agentId,
          homeEpoch,
        },
      })
    expect(
      (
        await stranger.report([
          delegatedRow('delegation-nowhere', 'ab'.repeat(16)),
          delegatedRow('delegation-elsewhere', cti ?? ''),
        ])
      ).body,
    ).toMatchObject({ accepted: 2 })
    expect(await raised('unapplied')).toContain('delegation-nowhere')
    expect(await raised('foreign_evidence')).toContain(`${stranger.agentId}/delegated`)
    expect(
      await gate.cloud.db.database.reads
        .selectFrom('delegated_right')
        .selectAll()
        .where('redemption_id', 'like', 'delegation-%where')
        .execute(),
    ).toEqual([])
  })

  it('does not acknowledge rows after a gap', async () => {
    const [one, two] = [agent.row({}), agent.row({})]
    const early = await agent.report([two])
    expect(early.body).toMatchObject({ accepted: 0 })
    expect(ackOf(early.body).seq).toBe(one.seq - 1)
    expect((await agent.report([one, two])).body).toMatchObject({ accepted: 2 })
  })

  it('rejects an altered row, another chain, another agent’s batch and another generation', async () => {
    const row = agent.row({})
    expect((await agent.report([{ ...row, body: { ...row.body, atMs: row.body.atMs + 1 } }])).status).toBe(400)
    expect((await agent.report([row], 'x'.repeat(43))).status).toBe(400)
    const stranger = await enrolTestAgent(gate)
    const batch = agent.messages.batch(agent.hashBefore(row.seq), [row], Date.now())
    expect((await stranger.call('reportProtectionEvents', { batch })).status).toBe(400)
    expect((await gate.call('reportProtectionEvents', { batch })).status).toBe(403)
    expect((await agent.report([row])).body).toMatchObject({ accepted: 1 })
  })

  it('detects a second copy of the ledger', async () => {
    const one = await enrolTestAgent(gate)
    await one.report([one.row({})])
    const last = one.row({})
    await one.report([last])
    const copy = { ...last, body: { atMs: 7 } }
    const { rowHash } = await import('../../../../policy/journal.ts')
    const forged = { ...copy, hash: rowHash(one.hashBefore(last.seq), last.seq, JSON.stringify(copy.body)) }
    expect(await one.report([forged])).toMatchObject({ status: 409, body: { reason: 'ledger_fork' } })
    const { events } = await gate.ok('fetchProtectionEvents', {
      storeId: gate.storeId,
      type: 'protection.exception.raised',
    })
    expect(events.map((e: Json) => e.reason)).toContain('agent_fork')
  })

  it('detects a second copy by a row before the newest stored row', async () => {
    const one = await enrolTestAgent(gate)
    const { rowHash, genesisHash } = await import('../../../../policy/journal.ts')
    const rows = [one.row({}), one.row({}), one.row({})]
    expect((await one.report(rows)).body).toMatchObject({ accepted: 3 })
    const body = { atMs: 7 }
    const copyOf = (seq: number) => ({
      seq,
      body,
      hash: rowHash(seq === 1 ? genesisHash(one.ledgerId, 1) : one.hashBefore(seq), seq, JSON.stringify(body)),
    })
    // Repeated rows count as duplicates.
    expect((await one.report(rows.slice(0, 2))).body).toMatchObject({ accepted: 0, duplicates: 2 })
    for (const seq of [1, 2])
      expect(
        await one.report([copyOf(seq)], seq === 1 ? genesisHash(one.ledgerId, 1) : one.hashBefore(seq)),
      ).toMatchObject({ status: 409, body: { reason: 'ledger_fork' } })
  })

  it('stores and acknowledges rows that it cannot apply, so that no row blocks another', async () => {
    const { purchase, nonce } = await grant()
    const rows = [
      agent.row({ evidence: claim('A'.repeat(22), 'red-unknown') }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-nobody', outcome: 'confirmed' } }),
      agent.row({ evidence: claim(nonce, 'red-2') }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-2', outcome: 'confirmed' } }),
    ]
    expect((await agent.report(rows)).body).toMatchObject({ accepted: 4 })
    expect(await gate.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
    const unapplied = await gate.cloud.db.database.reads
      .selectFrom('journal_row')
      .select('seq')
      .where('agent_id', '=', agent.agentId)
      .where('applied', '=', 0)
      .execute()
    expect(unapplied.map((r) => r.seq)).toEqual([rows[0]?.seq, rows[1]?.seq])
  })

  /** Retries the agent's unapplied rows and returns the number of applied ones. */
  async function retryOf(agentId: string): Promise<number> {
    let applied = 0
    const call = {
      services: gate.cloud.cloud.services,
      nowMs: Date.now(),
      emit: () => undefined,
      afterCommit: () => undefined,
    }
    await retryUnapplied(agentId, (work) =>
      gate.cloud.db.database.write(async (db) => void (applied += await work({ ...call, db } as unknown as Call))),
    )
    return applied
  }

  it('stores and acknowledges partly readable rows, and reads them again after an upgrade', async () => {
    const { database } = gate.cloud.db
    const { purchase, nonce } = await grant()
    const exceptionEvent = (change: Json) =>
      ({
        type: 'protection.exception.raised',
        eventId: `evt-${nonce}-${JSON.stringify(change).length}`,
        occurredAt: new Date().toISOString(),
        storeId: gate.storeId,
        reason: 'gate_alarm',
        ...change,
      }) as ProtectionEvent
    // One retry is not enough for all rows.
    for (let batch = 0; batch < 6; batch++) {
      const strange = Array.from({ length: 100 }, () => agent.row({ event: exceptionEvent({ epc: 'AB'.repeat(75) }) }))
      expect((await agent.report(strange)).body).toMatchObject({ accepted: 100 })
    }
    const rows = [
      agent.row({ event: exceptionEvent({ epc: 'AB'.repeat(75) }) }),
      agent.row({
        evidence: claim(nonce, 'red-unread'),
        event: exceptionEvent({ colour: 'a field of a newer release' }),
      }),
      agent.row({ event: exceptionEvent({ detail: 'half a \ud83d character, and \0' }) }),
      agent.row({ evidence: { kind: 'forgotten' } as never }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-unread', outcome: 'confirmed' } }),
      agent.row({ event: exceptionEvent({ epc: 'AB'.repeat(62) }) }),
    ]
    expect((await agent.report(rows)).body).toMatchObject({ accepted: 6 })
    expect((await agent.report(rows)).body).toMatchObject({ accepted: 0, duplicates: 6 })
    expect(await gate.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
    const storedRows = () =>
      database.reads
        .selectFrom('journal_row')
        .select(['seq', 'body', 'applied'])
        .where('agent_id', '=', agent.agentId)
        .where('seq', '>=', rows[0]?.seq ?? 0)
        .orderBy('seq')
        .execute()
    expect((await storedRows()).map((row) => [row.body, Boolean(row.applied)])).toEqual(
      rows.map((row, i) => [JSON.stringify(row.body), i > 3]),
    )
    const openUnapplied = async (subject: string) =>
      (
        (await gate.ok('fetchExceptions', { storeId: gate.storeId, kind: 'unapplied', state: 'open' }))
          .exceptions as Json[]
      ).filter((each) => each.subject === subject)
    expect(await openUnapplied('red-unread')).toEqual([
      expect.objectContaining({ detail: expect.stringContaining('colour') }),
    ])
    expect(await openUnapplied(agent.agentId)).toEqual([
      expect.objectContaining({ detail: expect.stringContaining('epc') }),
    ])

    const retry = () => retryOf(agent.agentId)
    expect(await retry()).toBe(0)
    // Simulates a newer release that can read the field.
    const { colour: _, ...event } = (rows[1]?.body.event ?? {}) as Json
    await database.write((db) =>
      db
        .updateTable('journal_row')
        .set({ body: JSON.stringify({ ...rows[1]?.body, event }) })
        .where('agent_id', '=', agent.agentId)
        .where('seq', '=', rows[1]?.seq ?? 0)
        .execute(),
    )
    expect(await retry()).toBe(1)
    expect(await openUnapplied('red-unread')).toEqual([])
    const redeemed = await database.reads
      .selectFrom('redemption')
      .select('redemption_id')
      .where('nonce', '=', nonce)
      .execute()
    expect(redeemed).toEqual([{ redemption_id: 'red-unread' }])
    expect(
      (await gate.ok('fetchProtectionEvents', { storeId: gate.storeId, limit: 500 })).events.filter(
        (each: Json) => each.eventId === event.eventId,
      ),
    ).toHaveLength(1)
  })

  it('stores evidence whose ids the database cannot store, and applies the rows after it', async () => {
    const { purchase, nonce } = await grant()
    const rows = [
      agent.row({ evidence: { kind: 'void', nonce: 'a\0b' } }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'a\0b', outcome: 'failed' } }),
      agent.row({ evidence: claim(nonce, 'red-\0') }),
      agent.row({ evidence: claim(nonce, 'red-behind') }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-behind', outcome: 'confirmed' } }),
    ]
    expect((await agent.report(rows)).body).toMatchObject({ accepted: 5 })
    expect(await gate.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
  })

  it('keeps the exception about unreadable rows open until all rows are readable', async () => {
    const { database } = gate.cloud.db
    const other = await enrolTestAgent(gate)
    await other.report([
      other.row({ evidence: { kind: 'forgotten' } as never }),
      other.row({ evidence: { kind: 'forgotten too' } as never }),
    ])
    const open = async () =>
      (
        (await gate.ok('fetchExceptions', { storeId: gate.storeId, kind: 'unapplied', state: 'open' }))
          .exceptions as Json[]
      ).filter(({ subject }) => subject === other.agentId)
    const retry = () => retryOf(other.agentId)
    // Simulates a newer release that can read the rows: one has no effect, the other is about a token.
    const replaceBody = (seq: number, body: Json) =>
      database.write((db) =>
        db
          .updateTable('journal_row')
          .set({ body: JSON.stringify({ atMs: Date.now(), ...body }) })
          .where('agent_id', '=', other.agentId)
          .where('seq', '=', seq)
          .execute(),
      )
    expect(await open()).toHaveLength(1)
    await replaceBody(1, {})
    expect(await retry()).toBe(1)
    expect(await open()).toHaveLength(1)
    await replaceBody(2, { evidence: { kind: 'void', nonce: (await grant()).nonce } })
    expect(await retry()).toBe(1)
    expect(await open()).toEqual([])
  })

  it('stores late, double and foreign redemptions and raises exceptions', async () => {
    const reasons = async () =>
      (
        await gate.ok('fetchProtectionEvents', {
          storeId: gate.storeId,
          type: 'protection.exception.raised',
          limit: 500,
        })
      ).events.map((e: Json) => e.reason)
    const late = await grant()
    await agent.report([agent.row({ evidence: claim(late.nonce, 'red-late'), atMs: Date.now() + 400_000 })])
    expect(await reasons()).toContain('late_redeem')
    const double = await grant()
    await agent.report([
      agent.row({ evidence: claim(double.nonce, 'red-a') }),
      agent.row({ evidence: claim(double.nonce, 'red-b') }),
    ])
    expect(await reasons()).toContain('double_redeem')
    const foreign = await grant()
    const other = await enrolTestAgent(gate)
    await other.report([other.row({ evidence: claim(foreign.nonce, 'red-foreign') })])
    expect(await reasons()).toContain('foreign_evidence')
    const state = await gate.cloud.db.database.reads
      .selectFrom('redemption')
      .select('redemption_id')
      .where('nonce', '=', foreign.nonce)
      .execute()
    expect(state).toEqual([])
  })

  it('keeps a right used after a failed first try if another redemption used it', async () => {
    const { purchase, nonce } = await grant()
    await agent.report([
      agent.row({ evidence: claim(nonce, 'red-first') }),
      agent.row({ evidence: claim(nonce, 'red-second') }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-second', outcome: 'confirmed' } }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-first', outcome: 'failed' } }),
    ])
    const { body } = await agent.call('verifySecurityTagDeactivation', {
      purchaseId: purchase.transactionId,
      deviceId: gate.devices.pos_deactivator,
    })
    expect(body).toMatchObject({ deactivationAuthorized: false, authorizationToken: null, reason: 'already_redeemed' })
  })

  it('frees the lease of a token that the agent voids', async () => {
    const { purchase, nonce } = await grant()
    const kiosk = await gate.ok('registerDevice', { storeId: gate.storeId, deviceType: 'pos_deactivator' })
    const elsewhere = () =>
      gate.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: kiosk.deviceId })
    expect(await elsewhere()).toMatchObject({
      deactivationAuthorized: false,
      reason: 'authorization_outstanding',
      retryAfter: expect.any(Number),
    })
    await agent.report([agent.row({ evidence: { kind: 'void', nonce } })])
    expect(await elsewhere()).toMatchObject({ deactivationAuthorized: true })
  })

  it('adds the purchase and other facts of the cloud to an agent’s event', async () => {
    const { purchase, nonce } = await grant()
    const event = {
      type: 'protection.action.completed' as const,
      eventId: `evt-${nonce}`,
      occurredAt: new Date().toISOString(),
      storeId: 'st_elsewhere',
      deviceId: gate.devices.pos_deactivator,
      replayProtectedNonce: nonce,
    }
    await agent.report([agent.row({ evidence: claim(nonce, 'red-3') }), agent.row({ event })])
    const { events } = await gate.ok('fetchProtectionEvents', {
      storeId: gate.storeId,
      purchaseId: purchase.transactionId,
      type: 'protection.action.completed',
    })
    expect(events).toEqual([
      expect.objectContaining({
        eventId: event.eventId,
        storeId: gate.storeId,
        laneId: 'lane_1',
        deviceType: 'pos_deactivator',
        processedAt: expect.any(String),
      }),
    ])
  })

  it('retries a row that can now be applied, even if many earlier rows cannot', async () => {
    const { database } = gate.cloud.db
    const other = await enrolTestAgent(gate)
    const unknown = (n: number) => other.row({ evidence: { kind: 'void', nonce: `nobody-knows-${n}` } })
    for (let page = 0; page < 6; page++)
      await other.report(Array.from({ length: 100 }, (_, n) => unknown(page * 100 + n)))
    const last = other.row({ evidence: { kind: 'forgotten' } as never })
    await other.report([last])
    const body = JSON.stringify({ atMs: Date.now(), evidence: { kind: 'void', nonce: (await grant()).nonce } })
    await database.write((db) =>
      db
        .updateTable('journal_row')
        .set({ body })
        .where('agent_id', '=', other.agentId)
        .where('seq', '=', last.seq)
        .execute(),
    )
    expect(await retryOf(other.agentId)).toBe(1)
    const unapplied = await database.reads
      .selectFrom('journal_row')
      .select('seq')
      .where('agent_id', '=', other.agentId)
      .where('applied', '=', 0)
      .execute()
    expect(unapplied).toHaveLength(600)
    expect(unapplied.map(({ seq }) => seq)).not.toContain(last.seq)
  })
})
