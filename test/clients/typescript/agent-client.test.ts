import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import {
  AgentError,
  createAgentClient,
  type AgentAnswer,
  type AgentClient,
  type AgentClientOptions,
} from '../../../clients/typescript/agent-client.ts'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import { localApp } from '../../../edge-agent/http/local-app.ts'
import { CREDENTIAL } from '../../support/credential.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { docstringExamples } from './docstring-examples.ts'

const BASE_URL = 'http://127.0.0.1:8090'
const PIN = '482913'
const EXAMPLES = docstringExamples('clients/typescript/agent-client.ts')

describe('untag/agent-client', () => {
  let store: TestStore
  let agent: AgentClient
  let deviceId: string
  let operatorId: string
  let options: AgentClientOptions
  /** The client of a till: a program that may report sales and returns. */
  async function pairTill(): Promise<AgentClient> {
    const { storeId } = store.shop
    const credential = newSecret('pair', store.world.random)
    store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till', store.world.clock.wall(), [
      'sales',
      'returns',
    ])
    const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
    const agents = [store.identity.agentId]
    await store.drive(
      store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales: { agents } } }),
    )
    await store.until('the policy', () => store.agent.trust.policy?.policy.tillSales.agents.length === 1)
    return createAgentClient({ ...options, credential })
  }
  beforeAll(async () => {
    store = await openStore()
    deviceId = store.shop.devices.pos_deactivator
    operatorId = (
      await store.drive(
        store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: PIN }),
      )
    ).operatorId
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
    const app = localApp(store.agent, {
      hosts: () => [new URL(BASE_URL).host],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      credential: () => CREDENTIAL,
    })
    options = {
      baseUrl: `${BASE_URL}/`,
      credential: CREDENTIAL,
      platform: { after: (ms, task) => store.world.timers.after(ms, task) },
      // Headers that Node's fetch adds.
      fetch: async (url, init) =>
        app.request(url, {
          ...init,
          headers: {
            host: new URL(url).host,
            ...(typeof init.body === 'string' && { 'content-length': String(Buffer.byteLength(init.body)) }),
            ...(init.headers as Record<string, string>),
          },
        }),
    }
    agent = createAgentClient(options)
  })
  afterAll(() => store.stop())

  const receiptOf = async () => (await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])).receipt
  const failed = async (call: Promise<unknown>): Promise<AgentError> => {
    const error: unknown = await store.drive(call.catch((thrown: unknown) => thrown))
    expect(error).toBeInstanceOf(AgentError)
    return error as AgentError
  }

  it('releases a paid tag once, and returns the reason of the second denial', async () => {
    const request = { deviceId, protectionAction: 'deactivate_label', receipt: await receiptOf() } as const
    const first = await store.drive(agent.authorize(request))
    expect(first).toMatchObject({ authorized: true, outcome: 'confirmed', remaining: 0 })
    expect(await store.drive(agent.authorize(request))).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expectTypeOf(first).toEqualTypeOf<AgentAnswer<'authorize'>>()
    expectTypeOf(first.outcome).toEqualTypeOf<'confirmed' | 'failed' | 'unknown' | null>()
  })

  it('throws code, field and fix of a rejected request', async () => {
    const wrong = { deviceId, protectionAction: 'fly' } as unknown as Parameters<AgentClient['authorize']>[0]
    expect(await failed(agent.authorize(wrong))).toMatchObject({
      status: 400,
      code: 'invalid-argument',
      field: 'protectionAction',
      fix: expect.stringContaining('details'),
      details: [
        { path: 'protectionAction', code: expect.any(String), message: expect.stringContaining('unlock_fixture') },
      ],
    })
    const tag = { deviceId, protectionAction: 'deactivate_label', tagUid: 'xyz' } as const
    expect(await failed(agent.authorize(tag))).toMatchObject({ code: 'invalid-argument', field: 'tagUid' })
    const nothing = { deviceId, protectionAction: 'deactivate_label' } as const
    expect(await failed(agent.authorize(nothing))).toMatchObject({ code: 'invalid-argument', field: 'receipt' })
    expect(await failed(agent.signIn({ operatorId, pin: '999999' }))).toMatchObject({ code: 'wrong_credentials' })
    expect(await failed(createAgentClient({ ...options, baseUrl: 'http://evil.example' }).status())).toMatchObject({
      code: 'host_not_allowed',
    })
  })

  it('signs operators in and out, in a session and at a device', async () => {
    const { session, name } = await store.drive(agent.signIn({ operatorId, pin: PIN }))
    expect(name).toBe('Frau Petersen')
    expect(await store.drive(agent.signedIn({}, { session }))).toEqual({ name })
    await store.drive(agent.signOut({}, { session }))
    expect(await store.drive(agent.signedIn({}, { session }))).toEqual({ name: null })
    await store.drive(agent.signIn({ operatorId, pin: PIN, deviceId }))
    expect(await store.drive(agent.signedIn({ deviceId }))).toEqual({ name })
    await store.drive(agent.signOut({ deviceId }))
    expect(await store.drive(agent.signedIn({ deviceId }))).toEqual({ name: null })
  })

  it('returns the state of the agent, its devices and the operators', async () => {
    expect(await store.drive(agent.status())).toMatchObject({ online: true, agentId: store.identity.agentId })
    expect((await store.drive(agent.devices())).find((device) => device.deviceId === deviceId)?.state).toBe('ready')
    expect(await store.drive(agent.operators())).toMatchObject([{ operatorId, hasPin: true }])
    expect(await store.drive(agent.health())).toMatchObject({ ok: true })
    expect(await store.drive(agent.readiness())).toMatchObject({ ready: true })
  })

  it('returns health and readiness of an agent that answers 503', async () => {
    const body = { ok: false, ledger: 'the disk failed', clock: 'none' }
    const sick = createAgentClient({ ...options, fetch: () => Promise.resolve(Response.json(body, { status: 503 })) })
    expect(await sick.health()).toEqual(body)
    expect(await failed(sick.status())).toMatchObject({ status: 503, code: 'bad-answer' })
  })

  it('ends a call at its timeout, at its signal, without a connection, and if no agent answers', async () => {
    const never = createAgentClient({
      ...options,
      fetch: (_, { signal }) =>
        new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted')))),
    })
    expect(await failed(never.status({ timeoutMs: 3_000 }))).toMatchObject({
      code: 'timeout',
      message: 'no answer within 3000 ms',
      fix: expect.stringContaining('may have moved'),
    })
    const ending = new AbortController()
    const ended = never.status({ signal: ending.signal })
    ending.abort(new Error('closing time'))
    await expect(ended).rejects.toThrow('closing time')
    await expect(agent.status({ signal: ending.signal })).rejects.toThrow('closing time')
    const down = createAgentClient({ ...options, fetch: () => Promise.reject(new TypeError('fetch failed')) })
    expect(await failed(down.status())).toMatchObject({
      code: 'network',
      status: 0,
      fix: expect.stringContaining('baseUrl'),
    })
    const page = createAgentClient({ ...options, fetch: () => Promise.resolve(new Response('<html>')) })
    expect(await failed(page.status())).toMatchObject({ code: 'bad-answer' })
    const proxy = createAgentClient({ ...options, fetch: () => Promise.resolve(new Response('', { status: 403 })) })
    expect(await failed(proxy.status())).toMatchObject({ code: 'bad-answer', status: 403 })
  })

  it('sends every request once, with the credential', async () => {
    const sent: Headers[] = []
    const body = { error: 'full', code: 'ledger_full', fix: 'Make room.' }
    const counting = createAgentClient({
      ...options,
      fetch: (_, init) => (sent.push(new Headers(init.headers)), Promise.resolve(Response.json(body, { status: 503 }))),
    })
    expect(await failed(counting.scan({ deviceId, text: 'x' }, { session: 's' }))).toMatchObject({
      code: 'ledger_full',
      fix: 'Make room.',
    })
    expect(sent.map((headers) => [headers.get('authorization'), headers.get('x-untag-operator')])).toEqual([
      [`Bearer ${CREDENTIAL}`, 's'],
    ])
  })

  it('has an example for every method', () => {
    expect(Object.keys(agent).filter((name) => !EXAMPLES.some((example) => example.name === name))).toEqual([])
    expect(EXAMPLES.length).toBeGreaterThan(Object.keys(agent).length)
  })

  it.each(EXAMPLES)('runs the example of $name: $code', async ({ code }) => {
    const logged: unknown[][] = []
    const names = {
      agent: /recordSale|voidSale|recordReturn/.test(code) ? await pairTill() : agent,
      createAgentClient: (own: AgentClientOptions) => createAgentClient({ ...options, ...own }),
      AgentError,
      deviceId,
      operatorId,
      pin: PIN,
      credential: CREDENTIAL,
    }
    const all = { ...names, receipt: await receiptOf(), console: { log: (...words: unknown[]) => logged.push(words) } }
    const run = new Function(...Object.keys(all), `return (async () => {\n${code}\n})()`) as (
      ...values: unknown[]
    ) => Promise<void>
    await store.drive(run(...Object.values(all)))
    if (code.includes("console.log('released')")) expect(logged).toEqual([['released']])
    if (code.includes('error.field')) expect(logged).toEqual([['invalid-argument', 'epc', expect.any(String)]])
  })
})
