import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Hono } from 'hono'
import { describe, expect, it, vi } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { secretFiles } from '../../../host/secret-files.ts'
import { readIdentity, type Identity } from '../../../edge-agent/identity/identity.ts'
import { storeForked } from '../../../edge-agent/trust/revocation/untrusted-ledger.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { createSigner } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Json } from '../../support/cloud.ts'
import { AUTHORIZATION } from '../../support/credential.ts'
import { lanStore, type LanAgent } from '../../support/lan-store.ts'
import { until } from '../../support/receiver.ts'

const s = lanStore()
const { addAgent, remove, run, ready, kill, leave, receipt, resend, reportsDelivered, cutCloud } = s

it('two offline agents redeem one receipt once, in either order and at the same time', async () => {
  const [first, second, third] = [await receipt(), await receipt(), await receipt()]
  await cutCloud()
  expect(await leave(s.other, first.text)).toMatchObject({
    authorized: true,
    offline: true,
    outcome: 'confirmed',
    itemCount: 1,
  })
  expect(await leave(s.home, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(await leave(s.other, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(await leave(s.home, second.text)).toMatchObject({ authorized: true })
  expect(await leave(s.other, second.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  const both = await Promise.all([leave(s.home, third.text), leave(s.other, third.text), leave(s.other, third.text)])
  expect(both.filter((answer) => answer.authorized)).toHaveLength(1)
  // The agent was never isolated, so no claim counts against that limit.
  expect(s.other.agent.ledger.claims.isolatedCount).toBe(0)
  s.isUp = true
  for (const node of s.nodes)
    await until('an empty outbox', async () => node.agent.link.isOnline && node.agent.ledger.journal.waiting === 0)
  const { events } = await s.shop.ok('fetchProtectionEvents', { storeId: s.shop.storeId, limit: 500 })
  expect(
    events.filter((e: Json) => e.purchaseId === first.purchaseId && e.type === 'protection.action.completed'),
  ).toHaveLength(1)
  expect(events.filter((e: Json) => e.type === 'protection.exception.raised').map((e: Json) => e.reason)).toEqual([])
})

it('a receipt home refuses a recalled unit to an agent that was offline when the recall began', async () => {
  const ean = s.shop.products.toSorted((a: Json, b: Json) => a.price - b.price)[0]?.ean
  const { transactionId: purchaseId } = await s.shop.buy([{ ean, quantity: 1, lot: 'L-1' }])
  const { url } = await s.shop.ok('generateReceiptQR', { purchaseId })
  s.other.isCutOff = true
  await s.other.agent.link.poll()
  await until('offline', async () => !s.other.agent.link.isOnline)
  const before = s.home.agent.trust.heldVersions().deny?.[1] ?? 0
  await s.shop.ok('recallProducts', { ean, lot: 'L-1', reason: 'Splitter' })
  await until(
    'the recall',
    async () => (await s.home.agent.link.poll(), (s.home.agent.trust.heldVersions().deny?.[1] ?? 0) > before),
  )
  await cutCloud()
  for (const node of [s.other, s.home])
    expect(await leave(node, url)).toMatchObject({ authorized: false, reason: 'recalled', offline: true })
})

it('a receipt opens cabinets of two offline agents once for each unit', async () => {
  const { storeId } = s.shop
  const cabinet = { storeId, deviceType: 'cabinet_unlocker', workflowType: 'self_service' }
  const { policy } = await s.shop.ok('fetchProtectionPolicy', { storeId })
  const allowedActionsByCategory = {
    '*': { ...policy.allowedActionsByCategory['*'], unlock_fixture: ['self_service'] },
  }
  await s.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, allowedActionsByCategory } })
  const nodes: LanAgent[] = []
  for (const name of ['Vitrine 1', 'Vitrine 2']) {
    const { deviceId } = await s.shop.ok('registerDevice', { ...cabinet, name })
    nodes.push(await addAgent(deviceId))
  }
  const [first, second] = nodes as [LanAgent, LanAgent]
  for (const node of [s.home, ...nodes])
    await until(
      'known to each other',
      async () => (await node.agent.link.poll(), node.agent.trust.policy?.agents?.filter((a) => a.url).length === 4),
    )
  const open = async ({ port, deviceId }: LanAgent, text: string): Promise<Json> => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/authorize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...AUTHORIZATION },
      body: JSON.stringify({ deviceId, protectionAction: 'unlock_fixture', receipt: text }),
    })
    return answer.json()
  }
  const [bought, other] = [await receipt(), await receipt()]
  await cutCloud()
  for (const node of nodes)
    expect(await open(node, bought.text)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
  for (const node of nodes)
    expect(await open(node, bought.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  const all = await Promise.all([first, second, first, second].map((node) => open(node, other.text)))
  expect(all.filter(({ authorized }) => authorized)).toHaveLength(2)
  expect(first.moved + second.moved).toBe(4)
  // The right to leave is still free.
  expect(await leave(s.home, bought.text)).toMatchObject({ authorized: true, itemCount: 1 })
  s.isUp = true
  for (const node of s.nodes)
    await until('an empty outbox', async () => node.agent.link.isOnline && node.agent.ledger.journal.waiting === 0)
  expect((await s.shop.ok('fetchExceptions', { storeId })).exceptions).toEqual([])
})

it('the home reports a right delegated to an offline agent, so that the cloud grants it to no other', async () => {
  const { deviceId } = await s.shop.ok('registerDevice', { storeId: s.shop.storeId, deviceType: 'exit_gate' })
  const third = await addAgent(deviceId)
  const [used, failed, unclear, free] = [await receipt(), await receipt(), await receipt(), await receipt()]
  const told = async (node: LanAgent) =>
    until('an empty outbox', async () => node.agent.link.isOnline && node.agent.ledger.journal.waiting === 0)
  await until(
    'known to the home',
    async () => (await s.home.agent.link.poll(), s.home.agent.trust.policy?.agents?.length === 3),
  )
  s.other.isCutOff = true
  await s.other.agent.link.poll()
  await until('offline', async () => !s.other.agent.link.isOnline)

  expect(await leave(s.other, used.text)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
  s.other.outcome = 'failed'
  expect(await leave(s.other, failed.text)).toMatchObject({ authorized: true, outcome: 'failed' })
  s.other.outcome = 'unknown'
  expect(await leave(s.other, unclear.text)).toMatchObject({ authorized: true, outcome: 'unknown' })
  s.other.outcome = 'confirmed'
  await reportsDelivered(s.other)
  await told(s.home)
  expect(await leave(third, used.text)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: false })
  expect(await leave(third, failed.text)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
  expect(await leave(third, unclear.text)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: false,
  })
  expect(await leave(third, free.text)).toMatchObject({ authorized: true, offline: false })
  expect([s.other.moved, third.moved]).toEqual([3, 2])

  s.other.isCutOff = false
  await told(s.other)
  const { exceptions } = await s.shop.ok('fetchExceptions', { storeId: s.shop.storeId, state: 'open' })
  expect(exceptions.map((e: Json) => e.kind)).toEqual(['outcome_unknown'])
  expect(await leave(third, used.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
})

it('the home grants one unit to each of two simultaneous requests of a device, and none to a third', async () => {
  const station = await addAgent(s.shop.devices.pos_deactivator)
  await until('its home', async () => (await station.agent.link.poll(), station.agent.home.isElsewhere))
  await until(
    'known to the home',
    async () => (
      await s.home.agent.link.poll(),
      s.home.agent.trust.policy?.agents?.some(({ agentId }) => agentId === station.agent.identity.agentId) === true
    ),
  )
  const { text } = await receipt()
  await cutCloud()
  const release = () =>
    station.agent.lanes.request({
      deviceId: station.deviceId,
      action: 'deactivate_label',
      receipt: text,
      identifiers: {},
    })
  const answers = await Promise.all([release(), release()])
  expect(answers).toMatchObject([{ authorized: true }, { authorized: true }])
  expect(await release()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect([station.moved, station.agent.ledger.claims.isolatedCount]).toEqual([2, 0])
})

it('the home repeats its answer for a redemption after a lost answer and a crash, and frees a failed right', async () => {
  const [first, second] = [await receipt(), await receipt()]
  await cutCloud()
  s.onLan = () => 'lose answer'
  const { policy } = s.other.agent.trust
  expect(policy?.policy.offline.hardCount).toBe(1)
  const wish = {
    cti: 'ab'.repeat(16),
    rightClass: 'exit' as const,
    candidates: [0, 1],
    all: true,
    exp: 4_000_000_000,
    deviceId: s.other.deviceId,
  }
  expect(await s.other.agent.home.request(wish)).toMatchObject({ unreachable: true })
  await kill(s.home)
  await run(s.home)
  await ready(s.home)
  s.onLan = () => 'pass'
  const answer = await s.other.agent.home.request(wish)
  expect(answer).toMatchObject({ ordinals: [0, 1], remaining: 0 })
  expect(await s.other.agent.home.request(wish)).toEqual(answer)
  // A request of another device has another id, and finds the rights used.
  expect(await s.other.agent.home.request({ ...wish, deviceId: 'dev_x' })).toMatchObject({ reason: 'already_redeemed' })
  s.other.outcome = 'failed'
  expect(await leave(s.other, first.text)).toMatchObject({ authorized: true, outcome: 'failed' })
  expect(await leave(s.home, first.text)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  s.other.outcome = 'confirmed'
  // A replayed request or report neither frees a right nor grants one.
  const failed = s.sent.filter(({ body }) => body.includes('question')).map(({ url, body }) => ({ url, body }))
  for (const { url, body } of failed)
    await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  expect(await leave(s.other, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(await leave(s.other, second.text)).toMatchObject({ authorized: true })
})

it('the home receives delayed outcome reports, and then accepts tokens of the cloud for these rights', async () => {
  const [first, second] = [await receipt(), await receipt()]
  await cutCloud()
  s.other.outcome = 'failed'
  let questions = 0
  s.onLan = () => (++questions === 1 ? 'pass' : 'cut')
  expect(await leave(s.other, first.text)).toMatchObject({ authorized: true, outcome: 'failed', offline: true })
  expect(await leave(s.home, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  // The stored report survives a restart of the agent.
  await kill(s.other)
  await run(s.other)
  await ready(s.other)
  s.onLan = () => 'pass'
  await reportsDelivered(s.other)
  s.isUp = true
  await until('all told', async () =>
    s.nodes.every((node) => node.agent.link.isOnline && node.agent.ledger.journal.waiting === 0),
  )
  expect(await leave(s.home, first.text)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
  expect(await leave(s.other, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(await leave(s.home, second.text)).toMatchObject({ authorized: true })
})

it('the agent reports a right as unused if the answer of the home was lost, unless the right was used', async () => {
  const [used, refused, late] = [await receipt(), await receipt(), await receipt()]
  await cutCloud()
  s.onLan = () => 'lose answer'
  expect(await leave(s.other, used.text)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  expect(s.other.agent.ledger.claims.isolatedCount).toBe(1)
  expect(await leave(s.other, refused.text)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
  for (const { text } of [used, refused])
    expect(await leave(s.home, text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  // A request reaches the home after the requester has abandoned it.
  s.onLan = () => 'cut'
  expect(await leave(s.other, late.text)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
  const [question = ''] = s.lost
  s.onLan = () => 'pass'
  await reportsDelivered(s.other)
  expect((await resend(question)).status).toBe(403)
  expect(await leave(s.home, used.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(await leave(s.home, refused.text)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  expect(await leave(s.home, late.text)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  expect([s.other.moved, s.home.moved]).toEqual([1, 2])
})

it('the home leaves a right with an unknown outcome at another agent to staff', async () => {
  const { operatorId } = await s.shop.ok('registerOperator', {
    storeId: s.shop.storeId,
    name: 'Frau Petersen',
    pin: '471108',
  })
  for (const { agent } of s.nodes)
    await until('the operator', async () => (await agent.link.poll(), agent.trust.policy?.operators.length === 1))
  const [{ text }, second] = [await receipt(), await receipt()]
  await cutCloud()
  s.other.outcome = 'unknown'
  expect(await leave(s.other, text)).toMatchObject({ authorized: true, outcome: 'unknown' })
  await reportsDelivered(s.other)
  const signIn = async ({ port }: { port: number }) => {
    const signedIn = await fetch(`http://127.0.0.1:${port}/v1/operator`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...AUTHORIZATION },
      body: JSON.stringify({ operatorId, pin: '471108' }),
    })
    return { 'x-untag-operator': ((await signedIn.json()) as Json).session as string }
  }
  const [staff, theirs] = [await signIn(s.home), await signIn(s.other)]
  expect(await leave(s.home, text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(await leave(s.other, text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(await leave(s.home, text, staff)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  for (const at of [staff, theirs])
    expect(await leave(at === staff ? s.home : s.other, text, at)).toMatchObject({
      authorized: false,
      reason: 'already_redeemed',
    })
  expect(s.home.moved).toBe(1)
  // Staff at the agent with the unknown outcome may try again too. After that the right is used.
  expect(await leave(s.other, second.text)).toMatchObject({ authorized: true, outcome: 'unknown' })
  await reportsDelivered(s.other)
  s.other.outcome = 'confirmed'
  expect(await leave(s.other, second.text, theirs)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  for (const at of [staff, theirs])
    expect(await leave(at === staff ? s.home : s.other, second.text, at)).toMatchObject({
      authorized: false,
      reason: 'already_redeemed',
    })
  expect([s.home.moved, s.other.moved]).toEqual([1, 3])
})

it('the agent rejects the answer of a home that moved during the request', async () => {
  const { text } = await receipt()
  await cutCloud()
  const now = s.other.agent.trust.policy
  if (!now) throw new Error('no policy')
  const moved = vi.spyOn(s.other.agent.trust, 'policy', 'get')
  s.onLan = () => {
    moved.mockReturnValue({
      ...now,
      policy: { ...now.policy, home: s.other.agent.identity.agentId, homeEpoch: now.policy.homeEpoch + 1 },
    })
    return 'pass'
  }
  expect(await leave(s.other, text)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  expect(s.other.moved).toBe(0)
  // The agent that granted the right gets the report, even if it is no longer the home.
  await reportsDelivered(s.other)
  moved.mockRestore()
  expect(await leave(s.home, text)).toMatchObject({ authorized: true })
})

it('the home grants nothing for replayed requests, and does not count them against the rate limit', async () => {
  const [first, second, third] = [await receipt(), await receipt(), await receipt()]
  await cutCloud()
  const question = async (asks: () => Promise<unknown>) => {
    const before = s.sent.length
    await asks()
    return s.sent[before]?.body ?? ''
  }
  const given = await question(() => leave(s.other, first.text))
  const replies = await Promise.all(Array.from({ length: 200 }, () => resend(given)))
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
  expect(await leave(s.other, second.text)).toMatchObject({ authorized: true })
  // The home refuses a request because another agent has the right. After that agent reports `failed`, a replay uses
  // nothing.
  const wish = {
    cti: 'cd'.repeat(16),
    rightClass: 'exit' as const,
    candidates: [0],
    all: true,
    exp: 4_000_000_000,
    deviceId: s.other.deviceId,
  }
  const taken = {
    ...wish,
    homeEpoch: 1,
    agentId: 'agt_x',
    redemptionId: 'rdm_x',
    nowMs: s.home.agent.clock.now().nowMs,
  }
  s.home.agent.ledger.commits.now(() => s.home.agent.ledger.homeGrants.grant(taken))
  const refused = await question(async () =>
    expect(await s.other.agent.home.request(wish)).toMatchObject({ reason: 'already_redeemed' }),
  )
  s.home.agent.ledger.commits.now(() =>
    s.home.agent.ledger.homeGrants.noteOutcome({
      agentId: 'agt_x',
      redemptionId: 'rdm_x',
      outcome: 'failed',
      candidates: [0],
      report: 'not signed',
      isOwnEpoch: true,
      exp: wish.exp,
      nowMs: taken.nowMs,
    }),
  )
  await kill(s.home)
  await run(s.home)
  await ready(s.home)
  expect(await s.home.agent.home.answer(JSON.parse(refused).question)).toMatchObject({ kind: 'answer' })
  expect(s.home.agent.ledger.claims.isFree(wish.cti, 'exit', 0, s.home.agent.clock.now().nowMs, false)).toBe(true)
  // Requests with an old time have their own rate limit. The home answers some of them, and current requests are not
  // delayed.
  const { agentId, x, secret } = readIdentity(s.other.folder, secretFiles) as Identity
  const iat = Math.floor(s.platform.clock.wall() / 1_000) - 7_200
  const claims = {
    aud: s.home.agent.identity.agentId,
    iat,
    exp: iat + 60,
    iss: agentId,
    homeEpoch: 1,
    rightClass: 'exit' as const,
    candidates: [0],
    all: true,
    receiptExp: iat + 86_400,
  }
  const old = Array.from({ length: 100 }, (_, i) => {
    const cti = (5_000 + i).toString(16).padStart(32, '0')
    return signDocument(
      DOCUMENT_KINDS.homeRequest,
      { ...claims, jti: cti, redemptionId: `old-${i}`, cti },
      createSigner(x, Buffer.from(secret, 'base64url')),
    )
  })
  const kinds = (await Promise.all(old.map((text) => s.home.agent.home.answer(text)))).map(({ kind }) => kind)
  expect(kinds.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 'answer'))
  expect(kinds).toContain('too_many_questions')
  expect(await leave(s.other, third.text)).toMatchObject({ authorized: true })
})

it('the agent accepts receipts within the isolated limits if the home is offline, and rejects forged answers', async () => {
  const [first, second, third] = [await receipt(), await receipt(), await receipt()]
  await cutCloud()
  expect(
    (
      await fetch(`http://127.0.0.1:${s.home.port}/v1/home/redeem`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ question: 'a.b.c' }),
      })
    ).status,
  ).toBe(403)
  await leave(s.other, third.text)
  const old = s.sent.at(-1)?.answer ?? ''
  await kill(s.home)
  const rogue = await listen({ host: '127.0.0.1', port: s.home.port, flag: 'port' })
  rogue.serve(new Hono().post('/v1/home/redeem', (c) => c.body(old, 200, { 'content-type': 'application/json' })))
  expect(await leave(s.other, first.text)).toMatchObject({ authorized: true, offline: true })
  expect(s.other.agent.ledger.claims.isolatedCount).toBe(1)
  expect(await leave(s.other, second.text)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
  await rogue.close()
  await run(s.home)
  await ready(s.home)
  expect(await leave(s.other, second.text)).toMatchObject({ authorized: true })
})

it('the agent claims nothing if the cloud reports a fork during a home request', async () => {
  const { text } = await receipt()
  await cutCloud()
  s.onLan = () => {
    storeForked(s.other.agent.ledger, true)
    return 'cut'
  }
  expect(await leave(s.other, text)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  storeForked(s.other.agent.ledger, false)
  s.onLan = () => 'cut'
  expect(await leave(s.other, text)).toMatchObject({ authorized: true, offline: true })
})

it('the home limits the requests of one agent before they cost anything, and never delays its own lanes', async () => {
  const [mine, theirs] = [await receipt(), await receipt()]
  await cutCloud()
  const { agentId, x, secret } = readIdentity(s.other.folder, secretFiles) as Identity
  const iat = Math.floor(s.platform.clock.wall() / 1_000)
  const claims = {
    aud: s.home.agent.identity.agentId,
    iat,
    exp: iat + 60,
    iss: agentId,
    homeEpoch: 1,
    rightClass: 'exit' as const,
    candidates: [0],
    all: true,
    receiptExp: iat + 3_600,
  }
  let asked = 0
  const newQuestions = (length: number) =>
    Array.from({ length }, () => {
      const cti = (asked++).toString(16).padStart(32, '0')
      return signDocument(
        DOCUMENT_KINDS.homeRequest,
        { ...claims, jti: cti, redemptionId: `flood-${cti}`, cti },
        createSigner(x, Buffer.from(secret, 'base64url')),
      )
    })
  const questions = newQuestions(250)
  const flood = Promise.all(questions.map((question) => s.home.agent.home.answer(question)))
  const leaves = leave(s.home, mine.text)
  const kinds = (await flood).map(({ kind }) => kind)
  expect(kinds.slice(0, 60)).toEqual(Array.from({ length: 60 }, () => 'answer'))
  expect(kinds.filter((kind) => kind === 'too_many_questions').length).toBeGreaterThan(100)
  expect(await leaves).toMatchObject({ authorized: true, outcome: 'confirmed' })
  // The requester gets `too many` over HTTP. It does not treat the home as offline, and claims nothing as isolated.
  let round = 0
  await until('the answer `too many`', async () => {
    for (const question of newQuestions(100)) void s.home.agent.home.answer(question)
    const wish = {
      cti: (100_000 + round++).toString(16).padStart(32, '0'),
      rightClass: 'exit' as const,
      candidates: [0],
      all: true,
      exp: iat + 3_600,
      deviceId: s.other.deviceId,
    }
    const told = await s.other.agent.home.request(wish)
    return 'refused' in told && told.refused === 'limit_exceeded'
  })
  expect(s.sent.at(-1)?.answer).toContain('too_many_questions')
  expect(s.other.agent.ledger.claims.isolatedCount).toBe(0)
  await until('a request within the rate limit', async () => (await leave(s.other, theirs.text)).authorized === true)
  // A caller without a key of the store is rejected after some requests.
  const answers: number[] = []
  for (let i = 0; i < 60; i++)
    answers.push(
      (
        await fetch(`http://127.0.0.1:${s.home.port}/v1/home/redeem`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ question: 'a.b.c' }),
        })
      ).status,
    )
  expect(answers.slice(0, 50)).toEqual(Array.from({ length: 50 }, () => 403))
  expect(answers).toContain(429)
})

it('the agent leaves a receipt to staff if the home rejects its role or the requester', async () => {
  const { text } = await receipt()
  await cutCloud()
  await kill(s.home)
  const unaware = await listen({ host: '127.0.0.1', port: s.home.port, flag: 'port' })
  unaware.serve(new Hono().post('/v1/home/redeem', (c) => c.json({ error: 'not the home', code: 'not_home' }, 403)))
  expect(await leave(s.other, text)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  expect(s.other.agent.ledger.claims.isolatedCount).toBe(0)
  await unaware.close()
  await run(s.home)
  await ready(s.home)
  await reportsDelivered(s.other)
  expect(await leave(s.other, text)).toMatchObject({ authorized: true, offline: true })
})

it('a restored home grants nothing until all agents have reported what they used', async () => {
  const [told, given] = [await receipt(), await receipt()]
  const file = (name: string) => join(s.home.folder, name)
  await kill(s.home)
  copyFileSync(file('ledger.db'), file('backup.db'))
  await run(s.home)
  await until('online', () => s.home.agent.link.isOnline)
  expect(await leave(s.home, told.text)).toMatchObject({ authorized: true })
  await until('told', () => s.home.agent.ledger.journal.waiting === 0)
  await cutCloud()
  expect(await leave(s.other, given.text)).toMatchObject({ authorized: true, offline: true })
  // The agent that used the right is off, and has not reported the use.
  await kill(s.other)
  remove(s.other)
  await kill(s.home)
  for (const suffix of ['-wal', '-shm']) rmSync(file(`ledger.db${suffix}`), { force: true })
  copyFileSync(file('backup.db'), file('ledger.db'))
  s.isUp = true
  await run(s.home)
  await until(
    'healed',
    async () => (
      await s.home.agent.link.poll(),
      s.home.agent.ledger.generation === 2 && s.home.agent.link.isOnline && !s.home.agent.trust.isBehind
    ),
  )
  s.home.agent.ledger.commits.now(() => s.home.agent.ledger.metadata.set('online_only_until', '0'))
  await cutCloud()
  expect(await leave(s.home, told.text)).toMatchObject({ authorized: false, offline: true })
  expect(await leave(s.home, given.text)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  expect(s.home.moved).toBe(1)
})

it.each([
  [403, 'not_home', 'manual_assistance_required'],
  [429, 'too_many_questions', 'limit_exceeded'],
])(
  'the agent claims nothing alone if the home answers %i to a pending outcome report',
  async (status, code, reason) => {
    const { text } = await receipt()
    await cutCloud()
    s.other.outcome = 'failed'
    let questions = 0
    s.onLan = () => (++questions === 1 ? 'pass' : 'cut')
    expect(await leave(s.other, text)).toMatchObject({ authorized: true, outcome: 'failed' })
    s.other.outcome = 'confirmed'
    await kill(s.home)
    const other = await listen({ host: '127.0.0.1', port: s.home.port, flag: 'port' })
    const app = new Hono().post('/v1/home/redeem', async (c) => {
      // A connection with an unread body, of the request or of the answer, is no idle one: `close` would wait for it.
      await c.req.text()
      return c.json({ error: 'not now', code }, status as 403, { connection: 'close' })
    })
    other.serve(app)
    s.onLan = () => 'pass'
    expect(await leave(s.other, text)).toMatchObject({ authorized: false, reason, offline: true })
    expect(s.other.agent.ledger.claims.isolatedCount).toBe(0)
    await other.close()
  },
)

it('the home answers a genuine request although a stranger of the same address sends forged ones', async () => {
  const { text } = await receipt()
  await cutCloud()
  const ask = async (n: number) => {
    const answer = await fetch(`http://127.0.0.1:${s.home.port}/v1/home/redeem`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ question: `a.b.${n}` }),
    })
    return ((await answer.json()) as Json).code as string
  }
  const codes = [await ask(0)]
  // At once, because the allowance comes back with time.
  while (!codes.includes('too_many_questions') && codes.length < 1_000)
    codes.push(...(await Promise.all(Array.from({ length: 60 }, (_, n) => ask(n)))))
  expect(new Set(codes)).toEqual(new Set(['not_home', 'too_many_questions']))
  expect(await leave(s.other, text)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
})

it('the home keeps its stored answers despite forged requests', async () => {
  const { text } = await receipt()
  await cutCloud()
  expect(await leave(s.other, text)).toMatchObject({ authorized: true, offline: true })
  const asked = s.sent.findLast(({ url }) => url.endsWith('/v1/home/redeem'))
  const { question } = JSON.parse(asked?.body ?? '{}') as { question: string }
  const { home } = s.home.agent
  const answer = home.answer(question)
  for (let i = 0; i < 1_000; i++) expect(await home.answer(`a.b.${i}`)).toEqual({ kind: 'not_home' })
  expect(home.answer(question)).toBe(answer)
})

describe('an offline agent without a hardware clock, after a power cut', () => {
  /** The platform of a machine after a reboot: its clock starts in the past. */
  const rebooted = (): Platform => {
    const { platform } = s
    return {
      ...platform,
      clock: {
        wall: () => platform.clock.wall() - 3_600_000,
        elapsed: () => platform.clock.elapsed(),
        bootId: 'after the cut',
      },
    }
  }
  async function aSecond(): Promise<void> {
    const endMs = s.platform.clock.elapsed() + 1_100
    await until('a second', () => s.platform.clock.elapsed() >= endMs)
  }
  const clockOf = (node: LanAgent) => node.agent.clock.now().trust
  const markOf = (node: LanAgent) =>
    (JSON.parse(node.agent.ledger.metadata.get('clock') ?? '{}') as { highWaterMs: number }).highWaterMs
  async function powerCut(node: LanAgent): Promise<void> {
    await kill(node)
    node.platform = rebooted()
    await run(node)
    await ready(node)
  }

  it('uses the time of the home, without raising its high-water mark', async () => {
    await cutCloud()
    const mark = markOf(s.other)
    await aSecond()
    const { text } = await receipt()
    await powerCut(s.other)
    await until('the time', () => clockOf(s.other) === 'home')
    expect(Math.abs(s.other.agent.clock.now().nowMs - s.platform.clock.wall())).toBeLessThan(2_000)
    expect(markOf(s.other)).toBe(mark)
    expect(await leave(s.other, text)).toMatchObject({ authorized: true, offline: true })
    expect(s.other.agent.ledger.claims.isolatedCount).toBe(0)
    // A signed time of the cloud replaces the time of the home.
    s.isUp = true
    await until('the cloud', () => clockOf(s.other) === 'signed')
  })

  it('accepts no time of a home without trusted time, of a replayed answer or of another agent', async () => {
    await cutCloud()
    await aSecond()
    await powerCut(s.other)
    await until('the time', () => clockOf(s.other) === 'home')
    const old = s.sent.findLast(({ url }) => url.endsWith('/v1/home/time'))
    await powerCut(s.home)
    const { text } = await receipt()
    await kill(s.other)
    s.other.platform = { ...rebooted(), clock: { ...rebooted().clock, bootId: 'once more' } }
    await run(s.other)
    await ready(s.other)
    await until(
      'asked',
      () =>
        s.sent.filter(({ url, answer }) => url.endsWith('/v1/home/time') && answer.includes('not_home')).length >= 2,
    )
    expect([clockOf(s.other), clockOf(s.home)]).toEqual(['none', 'none'])
    await kill(s.home)
    const rogue = await listen({ host: '127.0.0.1', port: s.home.port, flag: 'port' })
    let asked = 0
    rogue.serve(
      new Hono().post(
        '/v1/home/time',
        (c) => (asked++, c.body(old?.answer ?? '', 200, { 'content-type': 'application/json' })),
      ),
    )
    await until('asked', () => asked >= 2)
    expect(clockOf(s.other)).toBe('none')
    expect(await leave(s.other, text)).toMatchObject({ authorized: false, reason: 'clock_untrusted' })
    await rogue.close()
    await run(s.home)
  })
})
