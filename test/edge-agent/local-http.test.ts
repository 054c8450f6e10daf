import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { localApp } from '../../edge-agent/http/local-app.ts'
import type { Json } from '../support/cloud.ts'
import { endlessBody, endlessRequest } from '../support/endless-body.ts'
import { openStore, type TestStore } from '../support/store.ts'

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
    ['a name that is not its own', { host: 'evil.example' }, 403],
    ['a page from elsewhere', { origin: 'https://evil.example' }, 403],
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
    ['an EPC that is none', { deviceId: 'd', protectionAction: 'detach_hard_tag', epc: 'zz' }],
    ['a flood', { deviceId: 'd', protectionAction: 'deactivate_label', receipt: 'x'.repeat(20_000) }],
  ])('refuses %s with a 4xx that says why', async (_name, body) => {
    const answer = await post('/v1/authorize', body)
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
    expect(answer.body).toMatchObject({ error: expect.any(String), code: expect.any(String) })
  })

  it('reads nothing of a body whose length nobody says, wherever it is sent', async () => {
    const app = localApp(store.agent, {
      hosts: () => ['127.0.0.1:8090'],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    })
    const paths = [...new Set(app.routes.filter(({ method }) => method === 'POST').map(({ path }) => path))]
    expect(paths).toEqual(
      expect.arrayContaining([
        '/v1/authorize',
        '/v1/home/redeem',
        '/v1/scan',
        '/v1/operator',
        '/v1/setup/llrp',
        '/v1/setup/devices',
        '/v1/setup/check',
      ]),
    )
    for (const path of paths) {
      const { body, sent } = endlessBody(1024 * 1024)
      const { status } = await app.request(
        `http://127.0.0.1:8090${path}`,
        endlessRequest(body, { host: '127.0.0.1:8090', 'content-type': 'application/json' }),
      )
      expect([path, status, sent()]).toEqual([path, 413, 0])
    }
  })

  it.each<[string, Json, string]>([
    ['/v1/authorize', { deviceId: 'd', protectionAction: 'deactivate_label', foo: 1 }, 'unknown field "foo"'],
    ['/v1/authorize', { protectionAction: 'deactivate_label' }, 'deviceId is missing (string)'],
    ['/v1/operator', {}, 'the body: needs badge, or operatorId and pin'],
    ['/v1/operator', { foo: 1 }, 'the body: needs badge, or operatorId and pin'],
    ['/v1/operator', [], 'the body: must be an object'],
    ['/v1/operator', { badge: 5 }, 'badge: expected string, received number'],
    ['/v1/operator', { operatorId: 'op_1' }, 'pin is missing (string)'],
    ['/v1/operator', { badge: 'x', foo: 1 }, 'unknown field "foo"'],
  ])('%s %j says what would be right', async (path, body, error) => {
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

  it('tells nothing secret and nothing of the customer', async () => {
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

  it('opens an operator’s session by PIN or badge, and it stands behind requests until it is closed or idle', async () => {
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

  it('lets whoever signs in at a device stand behind its own scanner, until they leave', async () => {
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
    // What a program beside the page asks is not the operator's; what the page asks is, and so is what a session vouches for.
    const { cookie, body } = await post('/v1/operator', { operatorId: operator.operatorId, pin: '471108', deviceId })
    expect(cookie).toMatch(/^untag_\w+_browser=[\w-]{32}$/)
    const typed = { deviceId, text: receipt, byHand: true }
    const beside = [
      {},
      { cookie: cookie.replace(/.{4}$/, 'AAAA') },
      { cookie: cookie.replace(/=.*/, '=paired') },
      { 'x-untag-operator': 'made up' },
      { authorization: 'Bearer untag_pair_yyyyyyyyyyyyyyyyyyyyyyyy' },
    ]
    for (const headers of beside)
      expect((await post('/v1/scan', typed, headers as unknown as Record<string, string>)).body).toMatchObject({
        answer: { reason: 'manual_assistance_required' },
      })
    expect((await post('/v1/scan', typed, { cookie })).body).toMatchObject({ answer: { authorized: true } })
    const { receipt: second } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    expect(
      (await post('/v1/scan', { ...typed, text: second }, { 'x-untag-operator': body.session })).body,
    ).toMatchObject({ answer: { authorized: true } })
    // With the badge at a scanner that types into the page, too; at the device's own it is no browser's, and any page may.
    const { receipt: third } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 2 }])
    const wedge = await post('/v1/scan', { deviceId, text: operator.badge })
    expect((await post('/v1/scan', { ...typed, text: third }, { cookie })).body).toMatchObject({
      answer: { reason: 'manual_assistance_required' },
    })
    expect((await post('/v1/scan', { ...typed, text: third }, { cookie: wedge.cookie })).body).toMatchObject({
      answer: { authorized: true },
    })
    await store.drive(store.scanners.station.scan(operator.badge))
    await store.drive(store.agent.lanes.settled())
    expect((await post('/v1/scan', { ...typed, text: third }, { cookie })).body).toMatchObject({
      answer: { authorized: true },
    })
    await store.local(`/v1/operator?deviceId=${deviceId}`, { method: 'DELETE' })
    // A page that only looks keeps nobody signed in.
    await post('/v1/operator', { operatorId: operator.operatorId, pin: '471108', deviceId })
    for (let minutes = 0; minutes < 16; minutes += 4) {
      expect(await name()).toBe('Frau Petersen')
      store.world.sleep(4 * 60_000)
    }
    expect(await name()).toBeNull()
  })

  it('locks a name after five wrong PINs, for longer each time, and takes no guess meanwhile', async () => {
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

  it('says how it is: health, readiness, metrics', async () => {
    expect((await store.local('/healthz')).body).toMatchObject({ ok: true, ledger: 'ok' })
    expect((await store.local('/readyz')).body).toMatchObject({ ready: true, policyVersion: expect.any(Number) })
    const metrics = (await store.local('/metrics')).body as string
    expect(metrics).toContain('# TYPE untag_queue_depth gauge')
    expect(metrics).toMatch(/untag_device_state\{device="dev_[0-9A-Z]+",state="ready"\} 1/)
  })
})

describe('an agent that requires pairing', () => {
  const CREDENTIAL = `untag_pair_${'x'.repeat(32)}`
  let store: TestStore
  let deviceId: string
  let operator: Json
  beforeAll(async () => {
    store = await openStore()
    ;(store.agent.config as { requirePairing: boolean }).requirePairing = true
    store.agent.ledger.marks.pair(createHash('sha256').update(CREDENTIAL).digest('base64url'), 'a test', 0)
    deviceId = store.shop.devices.pos_deactivator
    operator = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }),
    )
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
  })
  afterAll(() => store.stop())

  const CALLS: [string, string, () => Json | undefined][] = [
    ['POST', '/v1/authorize', () => ({ deviceId, protectionAction: 'verify_item_status', epc: 'AAAA' })],
    ['POST', '/v1/scan', () => ({ deviceId, text: 'E280FFFFFFFFFFFFFFFFFFFF' })],
    ['POST', '/v1/operator', () => ({ operatorId: operator.operatorId, pin: '471108' })],
    ['GET', '/v1/operator?deviceId=dev_a', () => undefined],
    ['DELETE', '/v1/operator?deviceId=dev_a', () => undefined],
    ['GET', '/v1/operators', () => undefined],
    ['GET', '/v1/status', () => undefined],
    ['POST', '/v1/setup/check', () => ({ deviceId })],
    ['GET', '/setup', () => undefined],
    ['GET', '/station', () => undefined],
    ['GET', '/gate', () => undefined],
  ]
  const call = ([method, path, body]: (typeof CALLS)[number], headers: Record<string, string> = {}) =>
    store.local(path, { method, headers, ...(body() && { body: body() }) })

  it.each(CALLS)('%s %s takes a credential and nothing less', async (...one) => {
    expect((await call(one)).status).toBe(401)
    expect((await call(one, { authorization: 'Bearer untag_pair_yyyyyyyyyyyyyyyyyyyyyyyy' })).status).toBe(401)
    expect((await call(one, { 'x-untag-operator': 'made up' })).status).toBe(401)
    expect((await call(one, { authorization: `Bearer ${CREDENTIAL}` })).status).toBe(200)
  })

  it('opens no gate and no lock for a scan of anybody, and tells nobody what happens', async () => {
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    expect((await store.local('/v1/scan', { method: 'POST', body: { deviceId, text: receipt } })).status).toBe(401)
    expect((await store.local('/v1/events')).status).toBe(401)
    expect(store.pulses('station')).toBe(0)
    for (const path of ['/healthz', '/readyz', '/metrics']) expect((await store.local(path)).status).toBe(200)
  })

  it('lets an operator’s session through, which only who is paired can open', async () => {
    const { body } = await store.local('/v1/operator', {
      method: 'POST',
      body: { operatorId: operator.operatorId, pin: '471108' },
      headers: { authorization: `Bearer ${CREDENTIAL}` },
    })
    for (const one of CALLS.slice(0, 2))
      expect((await call(one, { 'x-untag-operator': body.session })).status).toBe(200)
  })

  it('gives the browser of a page a cookie for the credential that was pasted there', async () => {
    const app = localApp(store.agent, {
      hosts: () => ['kasse'],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    })
    const ask = (path: string, init: Json = {}) =>
      store.drive(Promise.resolve(app.request(path, { ...init, headers: { host: 'kasse', ...init.headers } })))
    const pair = (credential: string) => {
      const body = JSON.stringify({ credential })
      return ask('/v1/pair', {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
      })
    }
    expect((await pair('untag_pair_yyyyyyyyyyyyyyyyyyyyyyyy')).status).toBe(401)
    expect(await (await ask('/station')).text()).toContain('data-slot="pair"')
    const paired = await pair(` ${CREDENTIAL}\n`)
    expect(paired.status).toBe(200)
    const cookie = paired.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/; Path=\/; HttpOnly; SameSite=Strict$/)
    const headers = { cookie: cookie.split(';')[0] }
    for (const path of ['/station', '/setup', '/v1/status', '/v1/operators'])
      expect((await ask(path, { headers })).status).toBe(200)
  })
})

describe('who stays signed in', () => {
  let store: TestStore
  afterEach(() => store.stop())

  async function signedIn(at: 'pos_deactivator' | 'self_checkout_detacher' = 'pos_deactivator'): Promise<{
    deviceId: string
    session: string
    page: Record<string, string>
    receipt: string
    name: () => string | undefined
  }> {
    store = await openStore()
    const { operatorId } = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }),
    )
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
    const deviceId = store.shop.devices[at]
    const { body, cookie } = await store.local('/v1/operator', {
      method: 'POST',
      body: { operatorId, pin: '471108', deviceId },
    })
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    return {
      deviceId,
      session: body.session,
      page: { cookie },
      receipt,
      name: () => store.agent.lanes.operatorAt(deviceId),
    }
  }

  it('nobody by what shoppers scan, or by who looks, for over 15 minutes', async () => {
    const { deviceId, session, page, receipt, name } = await signedIn('self_checkout_detacher')
    for (let minutes = 0; minutes < 20; minutes += 4) {
      expect(name()).toBe(minutes < 16 ? 'Frau Petersen' : undefined)
      store.world.sleep(4 * 60_000)
      await store.local('/v1/operator', { headers: { 'x-untag-operator': session } })
      await store.local('/v1/scan', {
        method: 'POST',
        body: { deviceId, text: 'E280FFFFFFFFFFFFFFFFFFFF' },
        headers: page,
      })
      await store.local('/v1/scan', { method: 'POST', body: { deviceId, text: receipt }, headers: page })
    }
    expect(name()).toBeUndefined()
  })

  it.each<[string, (deviceId: string, session: string, page: Record<string, string>) => [string, Json]]>([
    [
      'presses a button at the page',
      (deviceId, _session, headers) => [
        '/v1/scan',
        { method: 'POST', body: { deviceId, text: 'E280FFFFFFFFFFFFFFFFFFFF', byHand: true }, headers },
      ],
    ],
    [
      'scans where only staff scan',
      (deviceId, _session, headers) => [
        '/v1/scan',
        { method: 'POST', body: { deviceId, text: 'E280FFFFFFFFFFFFFFFFFFFF' }, headers },
      ],
    ],
    [
      'asks under the session',
      (deviceId, session) => [
        '/v1/authorize',
        {
          method: 'POST',
          body: { deviceId, protectionAction: 'deactivate_label', epc: 'AAAA' },
          headers: { 'x-untag-operator': session },
        },
      ],
    ],
  ])('whoever %s', async (_name, act) => {
    const { deviceId, session, page, name } = await signedIn()
    for (let minutes = 0; minutes < 40; minutes += 10) {
      store.world.sleep(10 * 60_000)
      expect((await store.local(...act(deviceId, session, page))).status).toBe(200)
      expect(name()).toBe('Frau Petersen')
    }
  })
})
