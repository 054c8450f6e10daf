import { markForked } from '../../../../cloud/protection/agent-identity/agent-queries.ts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { AGENTS_LIMIT } from '../../../../cloud/protection/agents/enrolment/enrolment.ts'
import { CLOUD_AUDIENCE } from '../../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import { rowHash } from '../../../../policy/journal.ts'
import { agentTopic } from '../../../../policy/mqtt-topics.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('operations about agents', (kind) => {
  let shop: Shop
  let agent: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind)
    agent = await enrolTestAgent(shop)
    await agent.call('reportDeviceHeartbeat', { deviceId: shop.devices.pos_deactivator })
    await agent.call('reportDeviceHeartbeat', { deviceId: shop.devices.exit_gate })
  })
  afterAll(() => shop.stop())

  const listedAgent = async (agentId = agent.agentId) =>
    (await shop.ok('fetchAgents', { storeId: shop.storeId })).agents.find((a: Json) => a.agentId === agentId)
  const openForks = async () =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'agent_fork', state: 'open' }))
      .exceptions as Json[]
  const fork = async (of: TestAgent) => {
    const last = of.row({})
    await of.report([last])
    const copy = { ...last, body: { atMs: 7 } }
    return of.report([{ ...copy, hash: rowHash(of.hashBefore(last.seq), last.seq, JSON.stringify(copy.body)) }])
  }
  const verifyPurchase = async (purchase: Json) =>
    (
      await agent.call('verifySecurityTagDeactivation', {
        purchaseId: purchase.transactionId,
        deviceId: shop.devices.pos_deactivator,
      })
    ).body

  it('an account has a limited number of agents, with the codes for further ones', async () => {
    const { database } = shop.cloud.db
    const row = await database.reads
      .selectFrom('agent')
      .selectAll()
      .where('agent_id', '=', agent.agentId)
      .executeTakeFirstOrThrow()
    const others = Array.from({ length: AGENTS_LIMIT }, (_, n) => ({
      ...row,
      agent_id: `agt_x${n}`,
      x: `x${n}`,
      ledger_id: `l${n}`,
    }))
    await database.write(async (db) => {
      for (let n = 0; n < others.length; n += 200)
        await db
          .insertInto('agent')
          .values(others.slice(n, n + 200))
          .execute()
    })
    expect((await shop.call('createEnrolmentCode', { storeId: shop.storeId })).body).toMatchObject({
      reason: 'too_many_agents',
    })
    await database.write((db) => db.deleteFrom('agent').where('agent_id', 'like', 'agt_x%').execute())
    expect((await shop.call('createEnrolmentCode', { storeId: shop.storeId })).status).toBe(200)
  })

  it('fetchAgents returns what each agent reported and what the cloud stores about it', async () => {
    const { cloud } = shop.cloud
    const state = { online: true, observedAt: new Date().toISOString(), policyVersion: 7, queueDepth: 3, devices: [] }
    const topic = agentTopic(shop.storeId, agent.agentId, 'state')
    cloud.messages.hooks.onMessage({ storeId: shop.storeId, agentId: agent.agentId }, topic, JSON.stringify(state))
    cloud.messages.hooks.onMessage({ storeId: shop.storeId, agentId: agent.agentId }, topic, '{"online":"yes"}')
    await cloud.messages.settled()
    await agent.report([agent.row({})])
    expect(await listedAgent()).toMatchObject({
      state: 'active',
      online: true,
      policyVersion: 7,
      queueDepth: 3,
      stateAt: state.observedAt,
      ledgerSeq: 1,
      generation: 1,
      lastSeenAt: expect.any(String),
    })
  })

  it('fetchAgents returns the state from requests and broker messages, which the cloud stores at intervals', async () => {
    const { cloud } = shop.cloud
    const other = await enrolTestAgent(shop)
    const fetchDocuments = (ver: number, ledgerSeq: number) =>
      other.call('fetchSignedDocuments', { have: { policy: [0, ver] }, ledgerSeq })
    const publishState = async (state: Json) => {
      cloud.messages.hooks.onMessage(
        { storeId: shop.storeId, agentId: other.agentId },
        agentTopic(shop.storeId, other.agentId, 'state'),
        JSON.stringify(state),
      )
      await cloud.messages.settled()
    }
    const ago = (ms: number) => new Date(shop.cloud.platform.clock.wall() - ms).toISOString()
    const figures = async () => {
      const { online, policyVersion, queueDepth } = await listedAgent(other.agentId)
      return [online, policyVersion, queueDepth]
    }
    expect(await figures()).toEqual([undefined, undefined, undefined])
    // Without a broker.
    await other.report([other.row({}), other.row({})])
    await fetchDocuments(4, 30)
    expect(await figures()).toEqual([undefined, 4, 28])
    // A busy agent requests documents twice a second.
    await fetchDocuments(4, 2)
    expect(await figures()).toEqual([undefined, 4, 28])
    // Whoever publishes a policy sees at once who has it.
    await fetchDocuments(5, 30)
    expect(await figures()).toEqual([undefined, 5, 28])
    await publishState({ online: true, observedAt: ago(14 * 60_000), policyVersion: 3, queueDepth: 40, devices: [] })
    expect(await figures()).toEqual([true, 5, 28])
    await publishState({ online: true, observedAt: ago(-1), policyVersion: 11, queueDepth: 27, devices: [] })
    expect(await figures()).toEqual([true, 11, 27])
    await publishState({ online: true, observedAt: ago(14 * 60_000), policyVersion: 11, queueDepth: 27, devices: [] })
    const before = Date.now()
    await publishState({ online: true, observedAt: ago(-1), policyVersion: 11, queueDepth: 27, devices: [] })
    await publishState({ online: false, observedAt: ago(60_000) })
    // The will was written at connection time, so it contains no figures.
    expect(await figures()).toEqual([false, 11, 27])
    expect(Date.parse((await listedAgent(other.agentId)).stateAt)).toBeGreaterThanOrEqual(before)
    await shop.ok('revokeAgent', { agentId: other.agentId })
  })

  it('a forked agent does not get the same token again before resolveAgentFork', async () => {
    const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    expect(await resolve('trust')).toMatchObject({ status: 409, body: { reason: 'no_fork' } })
    const before = await verifyPurchase(purchase)
    expect((await verifyPurchase(purchase)).replayProtectedNonce).toBe(before.replayProtectedNonce)
    expect(await fork(agent)).toMatchObject({ status: 409, body: { reason: 'ledger_fork' } })
    await fork(agent)
    expect(await listedAgent()).toMatchObject({ state: 'forked' })
    // Both copies receive the fork state.
    expect((await agent.call('fetchSignedDocuments', {})).body).toMatchObject({ forked: true })
    expect((await agent.login()).ledger).toEqual({ denySeq: expect.any(Number), generation: 1, forked: true })
    expect(await openForks()).toHaveLength(1)
    const other = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    expect((await verifyPurchase(other)).authorizationToken).toBeTypeOf('string')
    expect(await verifyPurchase(other)).toMatchObject({ authorizationToken: null, reason: 'authorization_outstanding' })
    // One copy has released by this token. The other one, which answers the recall, does not know of it.
    const nonce = (
      await shop.ok('fetchProtectionEvents', { storeId: shop.storeId, purchaseId: other.transactionId })
    ).events
      .map((e: Json) => e.replayProtectedNonce as string | undefined)
      .find((each: string | undefined) => each !== undefined)
    const row = agent.row({ evidence: { kind: 'void', nonce } })
    expect((await agent.report([row])).body).toMatchObject({ accepted: 1 })
    expect(await verifyPurchase(other)).toMatchObject({ authorizationToken: null, reason: 'authorization_outstanding' })
    // A till’s request for the agent’s device gets a token that neither copy accepts.
    const third = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const forTill = await shop.ok('verifySecurityTagDeactivation', {
      purchaseId: third.transactionId,
      deviceId: shop.devices.pos_deactivator,
    })
    expect(JSON.parse(Buffer.from(forTill.authorizationToken.split('.')[1], 'base64url').toString()).led).toBe('cloud')

    expect(await resolve('trust')).toMatchObject({
      status: 200,
      body: { state: 'active', generation: 2, ledgerSeq: 0 },
    })
    // The remaining copy continues in another generation, and needs the cloud for a while.
    expect((await agent.call('fetchSignedDocuments', {})).status).toBe(401)
    expect((await agent.login()).ledger).toEqual({
      denySeq: expect.any(Number),
      generation: 2,
      onlineOnlyUntil: expect.any(String),
    })
    expect((await agent.call('fetchSignedDocuments', {})).body).not.toHaveProperty('forked')
    expect(await openForks()).toEqual([])
    // The other copy may have used its token.
    expect(await verifyPurchase(other)).toMatchObject({ authorizationToken: null, reason: 'authorization_outstanding' })
    expect(
      (await verifyPurchase(await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }]))).authorizationToken,
    ).toBeTypeOf('string')
    expect((await agent.report([agent.row({})])).body).toMatchObject({ accepted: 1 })
    await fork(agent)
    expect(await openForks()).toHaveLength(1)
  })

  it('a batch of the former generation forks no ledger that staff have trusted meanwhile', async () => {
    const other = await enrolTestAgent(shop)
    const { database } = shop.cloud.db
    const stateOf = async () => (await listedAgent(other.agentId)).state
    const read = await database.reads
      .selectFrom('agent')
      .selectAll()
      .where('agent_id', '=', other.agentId)
      .executeTakeFirstOrThrow()
    const mark = (nowMs: number) => database.write((db) => markForked(db, read, nowMs))
    expect(await mark(5)).toEqual({ forkMs: 5, isNew: true })
    expect(await mark(6)).toEqual({ forkMs: 5, isNew: false })
    await shop.ok('resolveAgentFork', { agentId: other.agentId, decision: 'trust' })
    expect([await mark(7), await stateOf()]).toEqual([undefined, 'active'])
    await shop.ok('revokeAgent', { agentId: other.agentId })
  })

  it('a login with an older head starts a new generation; a login with another hash reveals a second copy', async () => {
    const other = await enrolTestAgent(shop)
    await other.report([other.row({}), other.row({})])
    const login = async (generation: number, seq: number, head: string) => {
      const { challenge } = (await shop.cloud.call(null, 'agentLogin', { agentId: other.agentId })).body
      const iat = Math.floor(Date.now() / 1_000)
      const claims = {
        aud: CLOUD_AUDIENCE,
        iat,
        exp: iat + 60,
        iss: other.agentId,
        challenge,
        ledger: other.ledgerId,
        generation,
        seq,
        head,
      }
      return (
        await shop.cloud.call(null, 'agentLogin', {
          agentId: other.agentId,
          assertion: signDocument(DOCUMENT_KINDS.assertion, claims, other.signer),
        })
      ).body.ledger
    }
    expect(await login(1, 2, other.hashBefore(3))).toEqual({ denySeq: expect.any(Number), generation: 1 })
    const healed = { denySeq: expect.any(Number), generation: 2, onlineOnlyUntil: expect.any(String) }
    expect(await login(1, 1, other.hashBefore(2))).toEqual(healed)
    // The response was lost, so the agent repeats its request.
    expect(await login(1, 1, other.hashBefore(2))).toEqual(healed)
    expect(await listedAgent(other.agentId)).toMatchObject({ state: 'active', generation: 2, ledgerSeq: 0 })
    expect(await login(2, 0, 'x'.repeat(43))).toEqual({ ...healed, forked: true })
    expect(await listedAgent(other.agentId)).toMatchObject({ state: 'forked' })
    // The remaining copy may be two generations behind, because the other one received the last rollback.
    await shop.ok('resolveAgentFork', { agentId: other.agentId, decision: 'trust' })
    expect(await login(1, 2, other.hashBefore(3))).toEqual({ ...healed, generation: 3 })
    expect(await listedAgent(other.agentId)).toMatchObject({ state: 'active', generation: 3 })
  })

  it('revokeAgent ends logins, calls and batches, and frees devices and the receipt home', async () => {
    const { challenge } = (await shop.cloud.call(null, 'agentLogin', { agentId: agent.agentId })).body
    const assertion = agent.messages.assertion(challenge, Date.now())
    expect((await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })).policy.home).toBe(agent.agentId)
    expect(await resolve('revoke')).toMatchObject({
      status: 200,
      body: { state: 'revoked', revokedAt: expect.any(String) },
    })
    expect((await agent.call('fetchSignedDocuments', {})).status).toBe(401)
    expect((await agent.report([agent.row({})])).status).toBe(401)
    expect((await shop.cloud.call(null, 'agentLogin', { agentId: agent.agentId, assertion })).status).toBe(401)
    expect(await shop.cloud.cloud.messages.hooks.authenticate(agent.agentId, assertion)).toBeUndefined()
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    expect(policy).toMatchObject({ home: 'cloud', homeEpoch: 2 })
    expect((await shop.ok('revokeAgent', { agentId: agent.agentId })).state).toBe('revoked')
    expect(await resolve('trust')).toMatchObject({ status: 409, body: { reason: 'agent_revoked' } })
    const next = await enrolTestAgent(shop)
    expect((await next.call('reportDeviceHeartbeat', { deviceId: shop.devices.exit_gate })).status).toBe(200)
  })

  it('revokeAgent acknowledges the agent_fork exception', async () => {
    const other = await enrolTestAgent(shop)
    await fork(other)
    expect((await openForks()).map(({ subject }) => subject)).toContainEqual(expect.stringContaining(other.agentId))
    await shop.ok('revokeAgent', { agentId: other.agentId })
    expect((await openForks()).map(({ subject }) => subject)).not.toContainEqual(expect.stringContaining(other.agentId))
  })

  it('agents of other accounts get 404', async () => {
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
    for (const [operation, body] of [
      ['revokeAgent', {}],
      ['resolveAgentFork', { decision: 'trust' }],
    ] as const) {
      expect((await shop.cloud.call(stranger, operation, { agentId: agent.agentId, ...body })).status).toBe(404)
    }
    expect(shop.cloud.errors).toEqual([])
  })

  function resolve(decision: string) {
    return shop.call('resolveAgentFork', { agentId: agent.agentId, decision })
  }
})
