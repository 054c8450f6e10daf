import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { localApp } from '../../../edge-agent/http/local-app.ts'
import { AGENT_OPERATIONS, type AgentOperation } from '../../../edge-agent/http/operations.ts'
import { PROTECTION_ACTIONS, SCAN_SOURCES } from '../../../policy/vocabulary.ts'
import {
  assertResponseMatchesApi,
  assertEventMatchesApi,
  responseFault,
} from '../../verification/simulation/nodes/agent-response-check.ts'
import type { Json } from '../../support/cloud.ts'
import { AUTHORIZATION, CREDENTIAL } from '../../support/credential.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const HOST = '127.0.0.1:8090'
const LOG = { info: () => undefined, warn: () => undefined, error: () => undefined }
const OPERATIONS = Object.values<AgentOperation>(AGENT_OPERATIONS)
/** Routes that are not operations: pages, their files, and reads that readers send. */
const OTHER_ROUTES =
  /^\/(?:station|gate|setup|pair|icon\.svg|favicon\.ico|manifest\.webmanifest|assets\/.*|pictures\/.*|ingest\/.*|\*)?$|^\/v1\/(?:setup\/)?\*$/

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', ' ', '\0', '\ud800', '__proto__', 'constructor', '🧥', 'x'.repeat(4_096), 'x'.repeat(4_097)),
)
const value = fc.oneof(text, fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(null, -1, 1e308, 2 ** 53, true, [], {}))

describe('the API of the agent', () => {
  let store: TestStore
  let send: (method: string, path: string, init: RequestInit) => Promise<Response>
  let valid: Record<string, Json[]>
  beforeAll(async () => {
    store = await openStore()
    const app = localApp(store.agent, { hosts: () => [HOST], log: LOG, credential: () => CREDENTIAL })
    send = async (method, path, init) => {
      const answer = await store.drive(Promise.resolve(app.request(`http://${HOST}${path}`, { ...init, method })))
      if (answer.headers.get('content-type') === 'text/event-stream' && answer.body) {
        const reader = answer.body.getReader()
        const event = new TextDecoder().decode((await reader.read()).value)
        assertEventMatchesApi(event.slice(event.indexOf('data: ') + 6))
        await reader.cancel()
        return answer
      }
      assertResponseMatchesApi({
        method,
        path,
        status: answer.status,
        headers: answer.headers,
        text: await answer.clone().text(),
      })
      return answer
    }
    const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
    const deviceId = store.shop.devices.pos_deactivator
    valid = {
      '/v1/authorize': [
        { deviceId, protectionAction: 'deactivate_label', receipt },
        { deviceId, protectionAction: 'detach_hard_tag', epc: '3034257BF7194E4000001A85', scanSource: 'pos' },
      ],
      '/v1/scan': [{ deviceId, text: receipt, byHand: true }],
      '/v1/operator': [{ operatorId: 'op_1', pin: '482913', deviceId }, { badge: 'x'.repeat(30) }],
      '/v1/pair': [{ code: 'x'.repeat(40) }],
      '/v1/setup/search': [{ address: '10.0.0.1:5084' }],
      '/v1/setup/devices': [{ entry: { deviceId: 'dev_9', driver: 'modbus', link: { tcp: '10.0.0.1:1' }, output: 0 } }],
      '/v1/setup/check': [{ deviceId: 'dev_9' }],
      '/v1/setup/test': [{ deviceId: 'dev_9', output: 'siren' }],
      '/v1/home/redeem': [{ question: 'x.y.z' }],
      '/v1/home/time': [{ question: 'x.y.z' }],
      '/v1/home/code': [{ question: 'x.y.z' }],
      '/v1/releases': [{ notice: 'x.y.z' }],
    }
  })
  afterAll(() => store.stop())

  it('describes every route', () => {
    const app = localApp(store.agent, { hosts: () => [HOST], log: LOG, credential: () => CREDENTIAL })
    const known = new Set(OPERATIONS.map(({ method, path }) => `${method} ${path}`))
    const others = app.routes.filter(({ method, path }) => !known.has(`${method} ${path}`) && !OTHER_ROUTES.test(path))
    expect(others.map(({ method, path }) => `${method} ${path}`)).toEqual([])
    const served = new Set(app.routes.map(({ method, path }) => `${method} ${path}`))
    expect([...known].filter((route) => !served.has(route))).toEqual([])
  })

  it('serves its OpenAPI document without a credential and without secrets', async () => {
    const answer = await send('GET', '/openapi.json', { headers: { host: HOST } })
    const document = (await answer.json()) as Json
    expect(document.openapi).toBe('3.0.3')
    expect(Object.keys(document.paths)).toContain('/v1/authorize')
    expect(JSON.stringify(document)).not.toContain(store.identity.agentId)
  })

  it.each([
    ['POST', '/v1/status', 'GET'],
    ['GET', '/v1/authorize', 'POST'],
    ['PUT', '/v1/operator', 'POST, GET, DELETE'],
  ])('answers 405 to %s %s and names the methods', async (method, path, allow) => {
    const headers = { host: HOST, ...AUTHORIZATION }
    const answer = await send(method, path, { headers })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
    expect(((await answer.json()) as Json).code).toBe('method-not-allowed')
  })

  it('answers as described while it starts', async () => {
    const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
    const answer = await fetch(`http://127.0.0.1:${server.port}/v1/status`)
    const { status, headers } = answer
    expect(status).toBe(503)
    assertResponseMatchesApi({ method: 'GET', path: '/v1/status', status, headers, text: await answer.text() })
    await server.close()
  })

  it('uses up no listener for HEAD', async () => {
    const headers = { host: HOST, ...AUTHORIZATION }
    for (let n = 0; n < 40; n++) expect((await send('HEAD', '/v1/events', { headers })).status).toBe(200)
    expect((await send('GET', '/v1/events', { headers })).status).toBe(200)
  })

  it('detects an answer that contradicts its description', () => {
    const answer = (body: object, status = 200, headers = {}) =>
      responseFault({
        method: 'GET',
        path: '/v1/operators?a=1',
        status,
        headers: new Headers({
          'content-type': 'application/json',
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
          ...headers,
        }),
        text: JSON.stringify(body),
      })
    const fault = { error: 'x', code: 'unauthenticated', fix: 'y' }
    expect(answer({ operators: [] })).toBeUndefined()
    expect(answer(fault, 401)).toBeUndefined()
    expect(answer({ operators: [{ operatorId: 'op_1', name: 'x', hasPin: 1 }] })).toContain('operators[0].hasPin')
    expect(answer({ operators: [], secret: 1 })).toBe('unknown field "secret"')
    expect(answer({ operators: [] }, 200, { 'cache-control': 'public' })).toBe('cache-control is public')
    expect(answer(fault, 403)).toBe('unauthenticated has no status 403')
    expect(answer({ ...fault, code: 'busy' }, 429)).toBe('busy is no error of this operation')
    expect(answer({ ...fault, code: 'internal' }, 500)).toBe('an internal error')
    expect(answer({ error: 'x', code: 'unauthenticated' }, 401)).toBe('fix is missing: expected a text')
  })

  it('answers random requests as described, never with 5xx', async () => {
    const place = fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...OPERATIONS).map(({ method, path }) => ({ method, path })) },
      {
        weight: 1,
        arbitrary: fc.record({
          method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'),
          path: fc.oneof(
            fc.constantFrom(...OPERATIONS).map(({ path }) => path),
            fc.webPath(),
          ),
        }),
      },
    )
    const query = fc.oneof(
      { weight: 4, arbitrary: fc.constant('') },
      {
        weight: 1,
        arbitrary: fc
          .dictionary(fc.oneof(fc.constant('deviceId'), text), text, { maxKeys: 2 })
          .map((pairs) => `?${new URLSearchParams(Object.entries(pairs)).toString()}`),
      },
      { weight: 1, arbitrary: fc.constantFrom('?deviceId=%ff%00', '?deviceId=a&deviceId=b', '?%', '?deviceId') },
    )
    const header = (name: string, usual: string, ...others: string[]) =>
      fc.oneof(
        { weight: 8, arbitrary: fc.constant({ [name]: usual }) },
        { weight: 1, arbitrary: fc.constantFrom(...others).map((other) => ({ [name]: other })) },
      )
    const headers = fc
      .tuple(
        header('host', HOST, 'evil.example', '', 'localhost:1'),
        header(
          'content-type',
          'application/json',
          'text/plain',
          'application/json; charset=x',
          'multipart/form-data; boundary=x',
        ),
        header('authorization', `Bearer ${CREDENTIAL}`, 'Bearer x', 'Basic eDp5', `Bearer ${'x'.repeat(300)}`),
        fc.oneof(
          { weight: 8, arbitrary: fc.constant({}) },
          {
            weight: 1,
            arbitrary: fc.constantFrom(
              { origin: 'null' },
              { 'content-length': '1' },
              { 'content-length': '99999999999' },
              { 'content-length': '-1' },
              { 'x-untag-operator': 'x' },
              { cookie: 'untag_x=%; a' },
            ),
          },
        ),
      )
      .map((parts) => Object.assign({}, ...parts) as Record<string, string>)
    const change = fc.oneof(
      { weight: 2, arbitrary: fc.constant((body: Json) => body) },
      {
        weight: 5,
        arbitrary: fc.tuple(fc.nat(5), value).map(([at, other]) => (body: Json) => ({
          ...body,
          [Object.keys(body)[at] ?? 'more']: other,
        })),
      },
      {
        weight: 1,
        arbitrary: fc
          .nat(5)
          .map((at) => (body: Json) => Object.fromEntries(Object.entries(body).filter((_, i) => i !== at))),
      },
      {
        weight: 1,
        arbitrary: fc.tuple(text, value).map(([name, other]) => (body: Json) => ({ ...body, [name]: other })),
      },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom(...PROTECTION_ACTIONS)
          .map((protectionAction) => (body: Json) => ({ ...body, protectionAction })),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom(...SCAN_SOURCES).map((scanSource) => (body: Json) => ({ ...body, scanSource })),
      },
      { weight: 1, arbitrary: value.map((other) => () => other) },
    )
    const written = fc.oneof(
      { weight: 8, arbitrary: fc.constant((body: unknown) => JSON.stringify(body) ?? '') },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom(
            '',
            '{',
            'null',
            '{"a":1,"a":2}',
            '['.repeat(8_000),
            '{"__proto__":{"deviceId":"x"}}',
            '\ufeff{}',
          )
          .map((body) => () => body),
      },
    )
    const statuses = new Map<number, number>()
    await fc.assert(
      fc.asyncProperty(
        place,
        query,
        headers,
        fc.nat(1),
        change,
        written,
        async ({ method, path }, search, sent, n, changed, write) => {
          const choices = valid[path]
          const body = write(changed(choices?.[n % choices.length] ?? {}))
          const hasBody = !['GET', 'HEAD'].includes(method)
          const length: Record<string, string> = hasBody ? { 'content-length': String(Buffer.byteLength(body)) } : {}
          const { status } = await send(method, path + search, {
            headers: { ...length, ...sent },
            ...(hasBody && { body }),
          })
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          expect(status).toBeLessThan(500)
        },
      ),
      { numRuns: 600 },
    )
    // The random requests caused all kinds of answers.
    expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 401, 403, 404, 405, 413, 415]))
  })
})
