import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../../../cloud/service/http/app.ts'
import { Failure, precondition } from '../../../../cloud/platform/foundation/failure.ts'
import { operation, type Operation, type StepContext } from '../../../../cloud/platform/operations/operation.ts'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'

/** Work that the test controls. */
type Course = (work: StepContext) => Promise<void>

inFullSizeOnEveryDatabase('operations in steps', (kind) => {
  let cloud: TestCloud
  let platform: VirtualPlatform
  let key: string
  let course: Course
  let runs = 0
  let app: ReturnType<typeof createApp>
  let long: Operation

  beforeAll(async () => {
    platform = virtualPlatform({ startMs: Date.parse('2026-11-20T09:00:00Z') })
    cloud = await startTestCloud(kind, { platform })
    key = await cloud.key('secret')
    long = operation({
      name: 'long',
      area: 'catalogue',
      minimumPackage: 'DISCOVER',
      roles: [],
      summary: 'Takes its time.',
      emits: ['product.bulk_imported'],
      changes: true,
      request: z.strictObject({ n: z.int().optional() }),
      response: z.strictObject({ success: z.literal(true), runs: z.int() }),
      example: {},
      async steps(work) {
        runs++
        await course(work)
        return { success: true as const, runs }
      },
    })
    app = createApp(new Map([['long', long]]), cloud.db.database, cloud.cloud.services)
  })
  afterAll(() => cloud.stop())

  const call = (headers: Record<string, string> = {}, body: object = {}) =>
    app.request('/api/v1/long', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const step = (work: StepContext, n: number) =>
    work.step(async (c) => {
      c.emit({ type: 'product.bulk_imported', storeId: null, data: { storeId: 'st_x', imported: n } })
      c.changed(`entity_${n}`)
    })
  const events = async () => (await cloud.db.database.reads.selectFrom('outbox_event').selectAll().execute()).length

  it('commit every step with its events, and write one audit row for all', async () => {
    course = async (work) => {
      await step(work, 1)
      expect(await events()).toBe(1)
      await step(work, 2)
    }
    expect(await (await call()).json()).toEqual({ success: true, runs: 1 })
    expect(await events()).toBe(2)
    const audit = await cloud.db.database.reads
      .selectFrom('audit_entry')
      .selectAll()
      .where('operation', '=', 'long')
      .execute()
    expect(audit.map((row) => row.entity_id)).toEqual(['entity_2'])
  })

  it('stream progress, then the result, to clients that accept events', async () => {
    course = async (work) => {
      work.progress({ done: 1 })
      await step(work, 3)
      work.progress({ done: 2 })
    }
    const answer = await call({ accept: 'text/event-stream' })
    expect(answer.headers.get('content-type')).toBe('text/event-stream')
    const text = await answer.text()
    expect(text.split('\n\n').filter(Boolean)).toEqual([
      'event: progress\ndata: {"done":1}',
      'event: progress\ndata: {"done":2}',
      expect.stringMatching(/^event: result\ndata: \{"success":true,"runs":\d+\}$/),
    ])
  })

  it('report an internal error as an event without details', async () => {
    course = async (work) => {
      work.progress({ done: 1 })
      throw new Error('SELECT secret')
    }
    const text = await (await call({ accept: 'text/event-stream' })).text()
    expect(text).toContain('event: error')
    expect(text).toContain('"code":"internal"')
    expect(text).not.toContain('secret')
  })

  it('continue when the client disconnects', async () => {
    let finish: () => void = () => undefined
    const done = new Promise<void>((resolve) => (finish = resolve))
    let proceed: () => void = () => undefined
    const left = new Promise<void>((resolve) => (proceed = resolve))
    course = async (work) => {
      work.progress({ done: 1 })
      await left
      await step(work, 4)
      work.progress({ done: 2 })
      finish()
    }
    const before = await events()
    const answer = await call({ accept: 'text/event-stream' })
    await answer.body?.cancel()
    proceed()
    await done
    expect(await events()).toBe(before + 1)
  })

  it('block the same Idempotency-Key, store the response, and let a successor start after a crash', async () => {
    let proceed: () => void = () => undefined
    let begun: () => void = () => undefined
    const started = new Promise<void>((resolve) => (begun = resolve))
    course = () => {
      begun()
      return new Promise<void>((resolve) => (proceed = resolve))
    }
    const before = runs
    const headers = { 'idempotency-key': 'k1' }
    const first = call(headers)
    await started
    const meanwhile = await call(headers)
    expect([meanwhile.status, meanwhile.headers.get('retry-after')]).toEqual([409, '5'])
    expect(await meanwhile.json()).toMatchObject({ reason: 'idempotency_in_progress' })
    expect((await call(headers, { n: 1 })).status).toBe(409)
    proceed()
    const text = await (await first).text()
    const again = await call(headers)
    expect([await again.text(), again.headers.get('idempotency-replayed')]).toEqual([text, 'true'])
    expect(runs).toBe(before + 1)

    // The process has crashed. Its lease ends after a minute.
    course = () => new Promise<void>(() => undefined)
    void call({ 'idempotency-key': 'k2' })
    while (runs === before + 1) await new Promise((resolve) => setImmediate(resolve))
    expect((await call({ 'idempotency-key': 'k2' })).status).toBe(409)
    await platform.advance(61_000)
    course = async () => undefined
    expect((await call({ 'idempotency-key': 'k2' })).status).toBe(200)
  })

  it('return the successor’s response to a slow first caller, and repeat it', async () => {
    const headers = { 'idempotency-key': 'k5' }
    let proceed: () => void = () => undefined
    course = () => new Promise<void>((resolve) => (proceed = resolve))
    const before = runs
    const slow = call(headers)
    while (runs === before) await new Promise((resolve) => setImmediate(resolve))
    await platform.advance(61_000)
    course = async () => undefined
    const successor = await (await call(headers)).text()
    await call()
    proceed()
    expect(await (await slow).text()).toBe(successor)
    expect(await (await call(headers)).text()).toBe(successor)
  })

  it(`let a successor start ${kind === 'sqlite' ? 'at once after a restart' : 'when the lease has expired'}`, async () => {
    course = () => new Promise<void>(() => undefined)
    const before = runs
    void call({ 'idempotency-key': 'k4' })
    while (runs === before) await new Promise((resolve) => setImmediate(resolve))
    expect((await call({ 'idempotency-key': 'k4' })).status).toBe(409)
    await cloud.restart()
    app = createApp(new Map([['long', long]]), cloud.db.database, cloud.cloud.services)
    course = async () => undefined
    expect((await call({ 'idempotency-key': 'k4' })).status).toBe(kind === 'sqlite' ? 200 : 409)
  })

  it('store no error except a rejected state change', async () => {
    const headers = { 'idempotency-key': 'k3' }
    course = () => Promise.reject(new Failure('unavailable', 'not now'))
    expect((await call(headers)).status).toBe(503)
    course = () => Promise.reject(precondition('illegal_move', 'not from here'))
    const refused = await call(headers)
    expect(refused.status).toBe(409)
    course = async () => undefined
    expect(await (await call(headers)).text()).toBe(await refused.text())
  })
})
