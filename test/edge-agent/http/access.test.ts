import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AGENT_OPERATIONS } from '../../../edge-agent/http/operations.ts'
import { localApp } from '../../../edge-agent/http/local-app.ts'
import { BROWSER_LIFE_MS, BROWSER_LIMIT, LINK_LIFE_MS } from '../../../edge-agent/ledger/pairings.ts'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import type { Json } from '../../support/cloud.ts'
import { AUTHORIZATION, CREDENTIAL } from '../../support/credential.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const WRONG = 'Bearer untag_pair_yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'
const MINUTE = 60_000

describe('access to the agent’s local API', () => {
  let store: TestStore
  let deviceId: string
  let operator: Json
  beforeAll(async () => {
    store = await openStore()
    deviceId = store.shop.devices.pos_deactivator
    operator = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }),
    )
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
  })
  afterAll(() => store.stop())

  const UNPAIRED = { authorization: '' }
  type Call = [string, string, () => Json | undefined]
  const none = () => undefined
  /** Calls that unpaired programs on the agent's machine may make with `requirePairing: false`. */
  const FOR_PROGRAMS: Call[] = [
    ['POST', '/v1/authorize', () => ({ deviceId, protectionAction: 'verify_item_status', epc: 'AAAA' })],
    ['POST', '/v1/scan', () => ({ deviceId, text: 'E280FFFFFFFFFFFFFFFFFFFF' })],
    ['GET', '/v1/operator?deviceId=dev_a', none],
    ['GET', '/v1/operators', none],
    ['GET', '/v1/status', none],
  ]
  const ALWAYS_CLOSED: Call[] = [
    ['POST', '/v1/operator', () => ({ operatorId: operator.operatorId, pin: '471108' })],
    ['DELETE', '/v1/operator?deviceId=dev_a', none],
    ['POST', '/v1/setup/check', () => ({ deviceId })],
    ['GET', '/setup', none],
    ['GET', '/station', none],
    ['GET', '/gate', none],
  ]
  const call = ([method, path, body]: Call, headers: Record<string, string> = UNPAIRED) =>
    store.local(path, { method, headers, ...(body() && { body: body() }) })
  const setPairing = (isRequired: boolean) =>
    void ((store.agent.config as { requirePairing: boolean }).requirePairing = isRequired)

  /** Sends a request from an address, as a browser or another machine does. */
  function request(path: string, init: Json = {}, peer = '127.0.0.1'): Promise<Response> {
    const app = localApp(store.agent, {
      hosts: () => ['kasse'],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      credential: () => CREDENTIAL,
    })
    const options = { ...init, headers: { host: 'kasse', ...init.headers } }
    return store.drive(Promise.resolve(app.request(path, options, { incoming: { socket: { remoteAddress: peer } } })))
  }
  function pair(code: string, headers: Json = {}): Promise<Response> {
    const body = JSON.stringify({ code })
    const sent = { 'content-type': 'application/json', 'content-length': String(body.length), ...headers }
    return request('/v1/pair', { method: 'POST', body, headers: sent })
  }
  function newLink(): string {
    const code = newSecret('link', store.world.random)
    store.agent.ledger.pairings.addLink(hashSecret(code), store.world.clock.wall())
    return code
  }
  async function pairedBrowser(): Promise<{ cookie: string }> {
    const answer = await pair(newLink())
    expect(answer.status).toBe(200)
    return { cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' }
  }

  it.each([...FOR_PROGRAMS, ...ALWAYS_CLOSED])('%s %s requires a credential', async (...one) => {
    for (const authorization of ['', 'Bearer', WRONG, `Basic ${btoa(`a:${CREDENTIAL}`)}`])
      expect((await call(one, { authorization })).status).toBe(401)
    expect((await call(one, { ...UNPAIRED, 'x-untag-operator': 'made up' })).status).toBe(401)
    expect((await call(one, { ...UNPAIRED, cookie: `untag_${store.identity.agentId}=${CREDENTIAL}` })).status).toBe(401)
    expect((await call(one, AUTHORIZATION)).status).toBe(200)
    expect((await call(one, { authorization: `bearer ${CREDENTIAL}` })).status).toBe(200)
  })

  it('an operator’s session is no credential', async () => {
    const { body } = await store.local('/v1/operator', {
      method: 'POST',
      body: { operatorId: operator.operatorId, pin: '471108' },
    })
    for (const one of FOR_PROGRAMS)
      expect((await call(one, { ...UNPAIRED, 'x-untag-operator': String(body.session) })).status).toBe(401)
  })

  it('names the fix in every 401', async () => {
    const answer = await request('/v1/status')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(await answer.json()).toEqual({
      code: 'unauthenticated',
      error: expect.stringContaining('credential'),
      fix: expect.stringMatching(/untag edge credential --data DIR.*Authorization: Bearer.*untag edge link/),
    })
  })

  it('opens nothing for the scan of an unpaired caller, and discloses nothing', async () => {
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    const scan = { method: 'POST', body: { deviceId, text: receipt }, headers: UNPAIRED }
    expect((await store.local('/v1/scan', scan)).status).toBe(401)
    expect((await store.local('/v1/events', { headers: UNPAIRED })).status).toBe(401)
    expect(store.pulses('station')).toBe(0)
    for (const path of ['/healthz', '/readyz', '/metrics'])
      expect((await store.local(path, { headers: UNPAIRED })).status).toBe(200)
    expect(
      (await store.local('/v1/home/redeem', { method: 'POST', body: { question: 'x' }, headers: UNPAIRED })).status,
    ).toBe(403)
  })

  it('tells without a credential only states, counts and ids of devices', async () => {
    const product = store.shop.products[0]
    const { epc } = await store.drive(store.shop.newItem(product))
    const { receipt } = await store.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    await store.local('/v1/scan', { method: 'POST', body: { deviceId, text: receipt } })
    const { policy } = store.agent.trust
    const { name, badge } = operator
    const hidden = [receipt, epc, product.name, name, badge, CREDENTIAL, store.shop.storeId, policy?.storeName]
    const open = ['/healthz', '/readyz', '/metrics']
    for (const path of open) {
      const { status, body } = await store.local(path, { headers: UNPAIRED })
      const text = JSON.stringify(body)
      expect([path, status]).toEqual([path, 200])
      expect(hidden.filter((secret) => typeof secret !== 'string' || text.includes(secret))).toEqual([])
    }
    // Every other address for programs needs one, but that of the document of the API.
    const free = Object.values(AGENT_OPERATIONS).filter(
      ({ callers, needsCredential }) => callers === 'programs' && !needsCredential,
    )
    expect(free.map(({ path }) => path)).toEqual([...open, '/openapi.json'])
  })

  it('allows requests, scans and status to unpaired programs only on this machine, and only if pairing is not required', async () => {
    setPairing(false)
    for (const one of FOR_PROGRAMS) expect((await call(one)).status).toBe(200)
    for (const one of ALWAYS_CLOSED) expect((await call(one)).status).toBe(401)
    expect((await store.local('/v1/events', { headers: UNPAIRED })).status).toBe(401)
    expect((await request('/v1/status', {}, '192.168.1.20')).status).toBe(401)
    // Unpaired callers cannot sign in by badge.
    const badge = { method: 'POST', body: { deviceId, text: operator.badge }, headers: UNPAIRED }
    expect((await store.local('/v1/scan', badge)).status).toBe(401)
    expect(store.agent.lanes.operatorAt(deviceId)).toBeUndefined()
    setPairing(true)
  })

  it('accepts a named credential until it is revoked', async () => {
    const { pairings } = store.agent.ledger
    const credential = newSecret('pair', store.world.random)
    const headers = { authorization: `Bearer ${credential}` }
    pairings.addProgram(hashSecret(credential), 'till 3', store.world.clock.wall())
    expect((await request('/v1/status', { headers }, '192.168.1.20')).status).toBe(200)
    const id = pairings.list().find(({ name }) => name === 'till 3')?.id ?? ''
    expect(pairings.revoke(id)).toBe(true)
    expect(pairings.revoke(id)).toBe(false)
    expect((await request('/v1/status', { headers })).status).toBe(401)
  })

  it('pairs one browser with a one-time link, also from another machine', async () => {
    const code = newLink()
    const answer = await pair(code)
    expect(answer.headers.get('set-cookie')).toMatch(
      /^untag_agt_\w+=untag_browser_[\w-]{32}; Max-Age=34560000; Path=\/; HttpOnly; SameSite=Strict$/,
    )
    const headers = { cookie: answer.headers.get('set-cookie')?.split(';')[0] }
    for (const path of ['/station', '/setup', '/v1/status', '/v1/operators'])
      expect((await request(path, { headers })).status).toBe(200)
    expect((await request('/station', { headers }, '192.168.1.20')).status).toBe(200)
    const again = await pair(code)
    expect(again.status).toBe(403)
    expect(await again.json()).toMatchObject({
      code: 'pairing_link_invalid',
      fix: expect.stringContaining('untag edge link'),
    })
    expect(again.headers.get('set-cookie')).toBeNull()
    // A paired browser that opens a link does not use it up.
    const next = newLink()
    expect((await pair(next, headers)).status).toBe(200)
    expect((await pair(next)).status).toBe(200)
  })

  it('refuses an expired link, a link from the future and an unknown link', async () => {
    const [old, fresh] = [newLink(), newLink()]
    store.world.sleep(LINK_LIFE_MS - 1)
    expect((await pair(fresh)).status).toBe(200)
    store.world.sleep(1)
    expect((await pair(old)).status).toBe(403)
    const future = newSecret('link', store.world.random)
    store.agent.ledger.pairings.addLink(hashSecret(future), store.world.clock.wall() + MINUTE)
    expect((await pair(future)).status).toBe(403)
    expect((await pair(newSecret('link', store.world.random))).status).toBe(403)
    await store.until('online', () => store.agent.link.isOnline)
  })

  it('refuses pairing from a page of another site', async () => {
    const code = newLink()
    expect((await pair(code, { origin: 'http://evil.example' })).status).toBe(403)
    expect((await pair(code, { origin: 'http://kasse' })).status).toBe(200)
  })

  it('keeps at most 32 browsers and drops the one that was unused for longest', async () => {
    const { pairings } = store.agent.ledger
    for (const { id } of pairings.list()) pairings.revoke(id)
    const first = await pairedBrowser()
    store.world.sleep(MINUTE)
    const second = await pairedBrowser()
    store.world.sleep(25 * 60 * MINUTE)
    // A page request after a day counts as use and renews the cookie.
    const page = await request('/station', { headers: first })
    expect(page.headers.get('set-cookie')).toContain('Max-Age=34560000')
    expect((await request('/station', { headers: first })).headers.get('set-cookie')).toBeNull()
    for (let i = 0; i < BROWSER_LIMIT - 1; i++) await pairedBrowser()
    expect(pairings.list()).toHaveLength(BROWSER_LIMIT)
    expect((await request('/station', { headers: first })).status).toBe(200)
    expect((await request('/station', { headers: second })).status).toBe(401)
    await store.until('online', () => store.agent.link.isOnline)
  })

  it('drops a browser that was unused for 400 days', async () => {
    const { pairings } = store.agent.ledger
    const hash = hashSecret(newSecret('browser', store.world.random))
    const link = hashSecret(newLink())
    const nowMs = store.world.clock.wall()
    pairings.redeemLink(link, hash, nowMs)
    expect(pairings.find('browser', hash, nowMs + BROWSER_LIFE_MS)).toBeDefined()
    expect(pairings.find('browser', hash, nowMs + BROWSER_LIFE_MS + 1)).toBeUndefined()
  })

  it('ends the events of a browser whose pairing was revoked', async () => {
    const { pairings } = store.agent.ledger
    const headers = await pairedBrowser()
    const id = pairings.list().at(0)?.id ?? ''
    const events = (await request('/v1/events', { headers })).body?.getReader()
    expect((await events?.read())?.done).toBe(false)
    for (const each of pairings.list()) pairings.revoke(each.id)
    expect(id).not.toBe('')
    const ended = (async () => {
      while (!(await events?.read())?.done);
    })()
    store.agent.feed.publish({ type: 'status', status: store.agent.status() })
    await store.drive(ended)
  })

  it('stores no secret in the ledger', async () => {
    const { cookie } = await pairedBrowser()
    const secret = cookie.split('=')[1] ?? ''
    expect(secret).toMatch(/^untag_browser_/)
    expect(JSON.stringify(store.agent.ledger.pairings.list())).not.toContain('untag_')
    expect(store.agent.ledger.pairings.find('browser', secret, store.world.clock.wall())).toBeUndefined()
  })
})
