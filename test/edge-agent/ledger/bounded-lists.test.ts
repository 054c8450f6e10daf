import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { decisionLimit, DECIDING_LIMIT, DECIDING_OF_CALLER } from '../../../edge-agent/http/routes/decision-routes.ts'
import { refusedCallers } from '../../../edge-agent/http/fail.ts'
import { laneStates, STATES_LIMIT } from '../../../edge-agent/lanes/lane-states.ts'
import { watchReleases } from '../../../edge-agent/devices/release-watch.ts'
import { rateLimitedLog, LINES_PER_MINUTE } from '../../../policy/rate-limited-log.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { waitFor } from '../../support/wait-for.ts'

/** docs/reference/limits.md lists all lists and tables of the agent that callers fill. */
describe('bounded lists of the agent', () => {
  it('queues 200 requests for decisions, 100 of one caller, and answers the next with 503 and Retry-After', async () => {
    const app = new Hono()
    let waiting = 0
    let decide = () => undefined as void
    const decided = new Promise<void>((resolve) => (decide = resolve))
    const few = decisionLimit({
      callerOf: (c) => ({ kind: 'program', id: c.req.header('x-caller') ?? '', name: 'till', rights: [] }) as never,
    })
    for (const path of ['/v1/authorize', '/v1/scan']) app.post(path, few)
    app.post('/v1/*', async (c) => {
      waiting++
      await decided
      return c.text('decided')
    })
    const post = async (path: string, caller = 'a') =>
      app.request(path, { method: 'POST', headers: { 'x-caller': caller } })
    const ofOne = Array.from({ length: DECIDING_OF_CALLER }, (_, n) =>
      post(n % 2 === 0 ? '/v1/authorize' : '/v1/scan', 'greedy'),
    )
    await waitFor(() => expect(waiting).toBe(DECIDING_OF_CALLER))
    expect((await post('/v1/scan', 'greedy')).status).toBe(503)
    const ofOthers = Array.from({ length: DECIDING_LIMIT - DECIDING_OF_CALLER }, () => post('/v1/scan', 'b'))
    const all = [...ofOne, ...ofOthers]
    await waitFor(() => expect(waiting).toBe(DECIDING_LIMIT))
    const refused = await post('/v1/authorize')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await refused.json()).toMatchObject({ code: 'too_many_requests', fix: expect.any(String) })
    decide()
    for (const each of await Promise.all(all)) expect(each.status).toBe(200)
    expect((await post('/v1/scan')).status).toBe(200)
  })

  it('stores state of 1,000 devices that programs name, and always of those of the policy', () => {
    const states = laneStates((deviceId) => deviceId === 'dev_ours')
    states.of('dev_ours').operatorSession = 'session'
    for (let n = 0; n < 5_000; n++) states.of(`dev_${n}`)
    expect(states.size).toBe(STATES_LIMIT)
    expect(states.find('dev_ours')).toEqual({ operatorSession: 'session' })
    expect(states.find('dev_4999')).toBeDefined()
    expect(states.find('dev_0')).toBeUndefined()
  })

  it('expects few movements if a contact never moves', async () => {
    const world = virtualPlatform()
    const releases = watchReleases({
      platform: world,
      execute: () => Promise.resolve({ outcome: 'confirmed', commanded: true, detail: '' }),
      confirmInputOf: () => 1,
      onAnomaly: () => undefined,
    })
    for (let n = 0; n < 1_000; n++) {
      await releases.execute('dev_1', { kind: 'release' }, new AbortController().signal)
      await world.advance(60_000)
    }
    expect(releases.pending).toBe(1)
  })

  it('logs few forged requests between agents, and counts the rest', async () => {
    const world = virtualPlatform()
    const lines: string[] = []
    const callers = refusedCallers(
      world.clock,
      rateLimitedLog((fields, message) => void lines.push(`${message} ${JSON.stringify(fields)}`), world),
    )
    for (let n = 0; n < 1_000; n++) if (callers.waitSeconds('10.0.0.9') === 0) callers.refuse('10.0.0.9', 'not_home')
    expect(callers.waitSeconds('10.0.0.9')).toBeGreaterThan(0)
    expect(callers.waitSeconds('10.0.0.8')).toBe(0)
    expect(lines).toHaveLength(LINES_PER_MINUTE)
    await world.advance(60_000)
    expect(lines.at(-1)).toMatch(/^a request between agents was refused \{.*"suppressed":\d+\}$/)
  })
})
