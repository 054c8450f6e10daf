import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { AGENT_OPERATIONS, type AgentOperation } from '../../../edge-agent/http/operations.ts'
import { localApp } from '../../../edge-agent/http/local-app.ts'
import type { Json } from '../../support/cloud.ts'
import { AUTHORIZATION, CREDENTIAL } from '../../support/credential.ts'
import { lateBody } from '../../support/form-body.ts'
import { endlessBody, endlessRequest } from '../../support/endless-body.ts'
import { openStore, type TestStore } from '../../support/store.ts'

describe('the agent’s local HTTP', () => {
  let store: TestStore
  let operator: Json
  let deviceId: string
  beforeAll(async () => {
    store = await openStore()
    deviceId = store.shop.devices.pos_deactivator
    operator = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }),
    )
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
  })
  afterAll(() => store.stop())

  const post = (path: string, body: Json, headers?: Record<string, string>) =>
    store.local(path, { method: 'POST', body, ...(headers && { headers }) })
  const good = () => ({ deviceId, protectionAction: 'deactivate_label', receipt: 'x' })

  it.each([
    ['a foreign host name', { host: 'evil.example' }, 403],
    ['a page of another origin', { origin: 'https://evil.example' }, 403],
    ['its own page', { origin: 'http://127.0.0.1:8090' }, 200],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['plain text', { 'content-type': 'text/plain' }, 415],
  ])('answers %s with %s', async (_name, headers, status) => {
    expect((await post('/v1/authorize', good(), headers as unknown as Record<string, string>)).status).toBe(status)
  })

  it.each<[string, Json]>([
    ['no JSON', '{'],
    ['an array', []],
    ['nothing', {}],
    ['an unknown field', { a: 1 }],
    ['an unknown action', { deviceId: 'd', protectionAction: 'fly', receipt: 'x' }],
    [
      'an operator in the body',
      { deviceId: 'd', protectionAction: 'deactivate_label', receipt: 'x', operatorId: 'op_1' },
    ],
    ['nothing presented', { deviceId: 'd', protectionAction: 'deactivate_label' }],
    ['an invalid EPC', { deviceId: 'd', protectionAction: 'detach_hard_tag', epc: 'zz' }],
    ['a body that is too large', { deviceId: 'd', protectionAction: 'deactivate_label', receipt: 'x'.repeat(20_000) }],
  ])('refuses %s with a 4xx and an error text', async (_name, body) => {
    const answer = await post('/v1/authorize', body)
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
    expect(answer.body).toMatchObject({ error: expect.any(String), code: expect.any(String) })
  })

  it('rejects a body without Content-Length at every address, without reading it', async () => {
    const app = localApp(store.agent, {
      hosts: () => ['127.0.0.1:8090'],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      credential: () => CREDENTIAL,
    })
    const paths = [...new Set(app.routes.filter(({ method }) => method === 'POST').map(({ path }) => path))]
    expect(paths).toEqual(
      expect.arrayContaining([
        '/v1/authorize',
        '/v1/home/redeem',
        '/v1/scan',
        '/v1/operator',
        '/v1/setup/search',
        '/v1/setup/devices',
        '/v1/setup/check',
      ]),
    )
    for (const path of paths) {
      const { body, sent } = endlessBody(1024 * 1024)
      const { status } = await app.request(
        `http://127.0.0.1:8090${path}`,
        endlessRequest(body, { host: '127.0.0.1:8090', ...AUTHORIZATION, 'content-type': 'application/json' }),
      )
      expect([path, status, sent()]).toEqual([path, 413, 0])
    }
  })

  it.each(
    Object.values<AgentOperation>(AGENT_OPERATIONS).filter(
      ({ method, needsCredential }) => method === 'POST' && needsCredential,
    ),
  )('$path refuses a program whose credential ended while its body was on the way', async ({ path, example }) => {
    let credential = CREDENTIAL
    const app = localApp(store.agent, {
      hosts: () => ['127.0.0.1:8090'],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      credential: () => credential,
    })
    const body = JSON.stringify(example ?? {})
    const headers = {
      host: '127.0.0.1:8090',
      ...AUTHORIZATION,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
    }
    const end = async () => (credential = 'another credential, made meanwhile')
    const request = new Request(`http://127.0.0.1:8090${path}`, {
      method: 'POST',
      headers,
      body: lateBody(body, end),
      duplex: 'half',
    } as RequestInit)
    const { status } = await app.fetch(request)
    expect([credential === CREDENTIAL, status]).toEqual([false, 401])
  })

  it.each<[string, Json, string]>([
    ['/v1/authorize', { deviceId: 'd', protectionAction: 'deactivate_label', foo: 1 }, 'unknown field "foo"'],
    ['/v1/authorize', { protectionAction: 'deactivate_label' }, 'deviceId is missing: expected a text'],
    ['/v1/operator', {}, 'the body: needs badge, or operatorId and pin'],
    ['/v1/operator', { foo: 1 }, 'the body: needs badge, or operatorId and pin'],
    ['/v1/operator', [], 'the body: must be an object'],
    ['/v1/operator', { badge: 5 }, 'badge: must be a text, not a number'],
    ['/v1/operator', { operatorId: 'op_1' }, 'pin is missing: expected a text'],
    ['/v1/operator', { badge: 'x', foo: 1 }, 'unknown field "foo"'],
  ])('%s %j names the expected fields', async (path, body, error) => {
    expect(await post(path, body)).toMatchObject({ status: 400, body: { code: 'invalid-argument', error } })
  })

  it('denies with 200 and a reason', async () => {
    expect((await post('/v1/authorize', good())).body).toMatchObject({
      authorized: false,
      reason: 'token_invalid',
      outcome: null,
      remaining: 0,
    })
    expect((await post('/v1/authorize', { ...good(), deviceId: 'dev_nobody' })).body).toMatchObject({
      authorized: false,
      reason: 'device_unknown',
    })
    expect(
      (
        await post('/v1/authorize', {
          ...good(),
          deviceId: store.shop.devices.cabinet_unlocker,
          protectionAction: 'unlock_fixture',
          receipt: undefined,
          epc: 'AAAA',
        })
      ).body,
    ).toMatchObject({ authorized: false })
  })

  it('discloses no secret and no data of the customer', async () => {
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    const { body } = await post('/v1/authorize', { ...good(), receipt })
    expect(Object.keys(body).sort()).toEqual([
      'action',
      'authorized',
      'eventId',
      'expiresAt',
      'itemCount',
      'offline',
      'outcome',
      'remaining',
    ])
    const status = await store.local('/v1/status')
    expect(JSON.stringify(status.body)).not.toMatch(/2KCE3IQBE4CE|untag_|secret|4711/)
    const operators = await store.local('/v1/operators')
    expect(operators.body).toEqual({
      operators: [{ operatorId: operator.operatorId, name: 'Frau Petersen', hasPin: true }],
    })
  })

  it('opens an operator’s session by PIN or badge, which approves requests until it is closed or idle', async () => {
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    await store.drive(
      store.shop.ok('updateProtectionPolicy', {
        storeId: store.shop.storeId,
        policy: { ...policy, requiresManualOverrideAboveValue: 0 },
      }),
    )
    const ver = store.agent.trust.policy?.ver ?? 0
    await store.until('the policy', () => (store.agent.trust.policy?.ver ?? 0) > ver)
    for (const proof of [
      { operatorId: operator.operatorId, pin: '471108' },
      { badge: operator.badge },
      { badge: operator.badge.toLowerCase() },
    ]) {
      const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
      expect((await post('/v1/authorize', { ...good(), receipt })).body).toMatchObject({
        reason: 'manual_assistance_required',
      })
      const { body } = await post('/v1/operator', proof)
      expect(body).toMatchObject({ operatorId: operator.operatorId, name: 'Frau Petersen' })
      const headers = { 'x-untag-operator': body.session }
      expect((await post('/v1/authorize', { ...good(), receipt }, headers)).body).toMatchObject({ authorized: true })
      await store.local('/v1/operator', { method: 'DELETE', headers })
      const { receipt: next } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
      expect((await post('/v1/authorize', { ...good(), receipt: next }, headers)).body).toMatchObject({
        reason: 'manual_assistance_required',
      })
    }
    const { body } = await post('/v1/operator', { operatorId: operator.operatorId, pin: '471108' })
    store.world.sleep(15 * 60_000 + 1_000)
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    await store.until('online', () => store.agent.link.isOnline)
    expect(
      (await post('/v1/authorize', { ...good(), receipt }, { 'x-untag-operator': body.session })).body,
    ).toMatchObject({ authorized: false })
  })

  it('applies the operator’s sign-in at a device to its own scanner until sign-out', async () => {
    await store.until('online', () => store.agent.link.isOnline)
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    await store.drive(
      store.shop.ok('updateProtectionPolicy', {
        storeId: store.shop.storeId,
        policy: { ...policy, requiresManualOverrideAboveValue: 0 },
      }),
    )
    await store.until('the policy', () => store.agent.trust.policy?.policy.requiresManualOverrideAboveValue === 0)
    const { deviceId } = good()
    const name = async () => (await store.local(`/v1/operator?deviceId=${deviceId}`)).body.name
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 2 }])
    expect(await name()).toBeNull()
    expect((await post('/v1/operator', { operatorId: operator.operatorId, pin: '471108', deviceId })).status).toBe(200)
    expect(await name()).toBe('Frau Petersen')
    const before = store.pulses('station')
    await store.drive(store.scanners.station.scan(receipt))
    await store.until('the release', () => store.pulses('station') === before + 1)
    await store.local(`/v1/operator?deviceId=${deviceId}`, { method: 'DELETE' })
    expect(await name()).toBeNull()
    expect((await post('/v1/scan', { deviceId, text: receipt })).body).toMatchObject({
      answer: { reason: 'manual_assistance_required' },
    })
    // The operator approves requests of an unpaired program only if they name the session.
    const { body } = await post('/v1/operator', { operatorId: operator.operatorId, pin: '471108', deviceId })
    const typed = { deviceId, text: receipt, byHand: true }
    const config = store.agent.config as { requirePairing: boolean }
    config.requirePairing = false
    for (const headers of [{ authorization: '' }, { authorization: '', 'x-untag-operator': 'made up' }])
      expect((await post('/v1/scan', typed, headers as unknown as Record<string, string>)).body).toMatchObject({
        answer: { reason: 'manual_assistance_required' },
      })
    const { receipt: second } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    const vouched = { authorization: '', 'x-untag-operator': String(body.session) }
    expect((await post('/v1/scan', { ...typed, text: second }, vouched)).body).toMatchObject({
      answer: { authorized: true },
    })
    config.requirePairing = true
    expect((await post('/v1/scan', typed)).body).toMatchObject({ answer: { authorized: true } })
    // The operator can also sign in with a badge that the page scans.
    await store.local(`/v1/operator?deviceId=${deviceId}`, { method: 'DELETE' })
    const { receipt: third } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    expect((await post('/v1/scan', { deviceId, text: operator.badge })).body).toMatchObject({ kind: 'operator' })
    expect((await post('/v1/scan', { ...typed, text: third })).body).toMatchObject({ answer: { authorized: true } })
    await store.local(`/v1/operator?deviceId=${deviceId}`, { method: 'DELETE' })
    // Reading the operator does not restart the idle time.
    await post('/v1/operator', { operatorId: operator.operatorId, pin: '471108', deviceId })
    for (let minutes = 0; minutes < 16; minutes += 4) {
      expect(await name()).toBe('Frau Petersen')
      store.world.sleep(4 * 60_000)
    }
    expect(await name()).toBeNull()
  })

  it('locks a name after five wrong PINs, for longer each time, and checks no PIN meanwhile', async () => {
    const pin = (digits: string) => post('/v1/operator', { operatorId: operator.operatorId, pin: digits })
    for (let i = 0; i < 5; i++) expect((await pin('0000')).status).toBe(401)
    expect(await pin('471108')).toMatchObject({ status: 429, body: { code: 'locked' } })
    store.world.sleep(61_000)
    for (let i = 0; i < 5; i++) expect((await pin('0000')).status).toBe(401)
    store.world.sleep(61_000)
    expect((await pin('471108')).status).toBe(429)
    store.world.sleep(60_000)
    expect((await pin('471108')).status).toBe(200)
    expect((await post('/v1/operator', { operatorId: 'op_nobody', pin: '1234' })).status).toBe(401)
    const forged = operator.badge.replace(/.(?=.{9}$)/, (c: string) => (c === 'A' ? 'B' : 'A'))
    expect((await post('/v1/operator', { badge: forged })).status).toBe(401)
  })

  it('reports health, readiness and metrics', async () => {
    expect((await store.local('/healthz')).body).toMatchObject({ ok: true, ledger: 'ok' })
    expect((await store.local('/readyz')).body).toMatchObject({ ready: true, policyVersion: expect.any(Number) })
    const metrics = (await store.local('/metrics')).body as string
    expect(metrics).toContain('# TYPE untag_queue_depth gauge')
    expect(metrics).toMatch(/untag_device_state\{device="dev_[0-9A-Z]+",state="ready"\} 1/)
  })
})

describe('the operator’s session', () => {
  let store: TestStore
  afterEach(() => store.stop())

  async function signedIn(at: 'pos_deactivator' | 'self_checkout_detacher' = 'pos_deactivator'): Promise<{
    deviceId: string
    session: string
    receipt: string
    name: () => string | undefined
  }> {
    store = await openStore()
    const { operatorId } = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }),
    )
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
    const deviceId = store.shop.devices[at]
    const { body } = await store.local('/v1/operator', {
      method: 'POST',
      body: { operatorId, pin: '471108', deviceId },
    })
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    return {
      deviceId,
      session: body.session,
      receipt,
      name: () => store.agent.lanes.operatorAt(deviceId),
    }
  }

  it('ends after 15 minutes in which only shoppers scan and pages read', async () => {
    const { deviceId, session, receipt, name } = await signedIn('self_checkout_detacher')
    for (let minutes = 0; minutes < 20; minutes += 4) {
      expect(name()).toBe(minutes < 16 ? 'Frau Petersen' : undefined)
      store.world.sleep(4 * 60_000)
      await store.local('/v1/operator', { headers: { 'x-untag-operator': session } })
      await store.local('/v1/scan', {
        method: 'POST',
        body: { deviceId, text: 'E280FFFFFFFFFFFFFFFFFFFF' },
      })
      await store.local('/v1/scan', { method: 'POST', body: { deviceId, text: receipt } })
    }
    expect(name()).toBeUndefined()
  })

  it.each<[string, (deviceId: string, session: string) => [string, Json]]>([
    [
      'an operator presses a button on the page',
      (deviceId) => [
        '/v1/scan',
        { method: 'POST', body: { deviceId, text: 'E280FFFFFFFFFFFFFFFFFFFF', byHand: true } },
      ],
    ],
    [
      'a scan arrives at a staff device',
      (deviceId) => ['/v1/scan', { method: 'POST', body: { deviceId, text: 'E280FFFFFFFFFFFFFFFFFFFF' } }],
    ],
    [
      'a request names the session',
      (deviceId, session) => [
        '/v1/authorize',
        {
          method: 'POST',
          body: { deviceId, protectionAction: 'deactivate_label', epc: 'AAAA' },
          headers: { 'x-untag-operator': session },
        },
      ],
    ],
  ])('does not end if %s within the idle time', async (_name, act) => {
    const { deviceId, session, name } = await signedIn()
    for (let minutes = 0; minutes < 40; minutes += 10) {
      store.world.sleep(10 * 60_000)
      expect((await store.local(...act(deviceId, session))).status).toBe(200)
      expect(name()).toBe('Frau Petersen')
    }
  })
})
