import { describe, expect, it } from 'vitest'
import {
  AgentError,
  createAgentClient,
  type AgentEvent,
  type ClientPlatform,
} from '../../../clients/typescript/agent-client.ts'
import { pagesBench, servePages } from '../../edge-agent/pages/pages-agent.ts'
import { CREDENTIAL } from '../../support/credential.ts'

const BASE_URL = 'http://127.0.0.1:8090'

/** A stream into which the test writes chunks. */
function stream() {
  let own: ReadableStreamDefaultController<Uint8Array>
  const body = new ReadableStream<Uint8Array>({ start: (controller) => void (own = controller) })
  return {
    response: new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
    send: (event: object) => own.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`)),
    text: (text: string) => own.enqueue(new TextEncoder().encode(text)),
    close: () => own.close(),
    error: (error: Error) => own.error(error),
  }
}

/** A platform whose timers the test fires. */
function world(replies: (Response | Error | 'never')[]) {
  const timers: { ms: number; task: () => void }[] = []
  const urls: string[] = []
  const signals: (AbortSignal | null | undefined)[] = []
  const platform: ClientPlatform = {
    fetch(url, init) {
      urls.push(url.replace(BASE_URL, ''))
      signals.push(init.signal)
      const reply = replies.shift() ?? new Error('no reply left')
      const aborted = new Promise<never>((_, reject) =>
        init.signal?.addEventListener('abort', () => reject(new Error('aborted'))),
      )
      aborted.catch(() => undefined)
      if (reply === 'never') return aborted
      return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply)
    },
    now: () => 0,
    after(ms, task) {
      const timer = { ms, task }
      timers.push(timer)
      return () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1))
    },
    random: () => 0.5,
    unique: () => 'x',
  }
  return {
    urls,
    signals,
    timers,
    client: createAgentClient({ baseUrl: BASE_URL, credential: 'c', platform }),
    /** Waits until there is one timer, and fires it. */
    async fire(ms: number) {
      for (let turns = 0; turns < 1_000 && timers[0]?.ms !== ms; turns++)
        await new Promise((resolve) => setImmediate(resolve))
      expect(timers.map((timer) => timer.ms)).toEqual([ms])
      timers.splice(0)[0]?.task()
    },
  }
}

const person = (count: number): AgentEvent => ({ type: 'person', deviceId: 'dev_1', direction: 'in', count })
const down = () => Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } })
async function take(events: AsyncGenerator<AgentEvent>, count: number): Promise<AgentEvent[]> {
  const taken: AgentEvent[] = []
  while (taken.length < count) taken.push((await events.next()).value as AgentEvent)
  return taken
}

describe('events of an agent', () => {
  it('arrive in order over a reconnection with growing delays, which is reported once', async () => {
    const [first, second] = [stream(), stream()]
    const { client, fire, urls } = world([first.response, down(), down(), second.response])
    const events = client.events()
    first.send(person(1))
    first.send(person(2))
    expect(await take(events, 3)).toEqual([{ type: 'connected' }, person(1), person(2)])
    first.close()
    expect(await take(events, 1)).toMatchObject([{ type: 'disconnected', error: { code: 'network' } }])
    for (const ms of [1_000, 2_000, 4_000]) await fire(ms)
    second.send(person(3))
    expect(await take(events, 2)).toEqual([{ type: 'connected' }, person(3)])
    await events.return()
    expect(urls).toEqual(Array(4).fill('/v1/events'))
  })

  it('report an unreachable agent with its address', async () => {
    const { client } = world([down()])
    const events = client.events()
    const [event] = await take(events, 1)
    expect(event).toMatchObject({ type: 'disconnected', error: { code: 'network', status: 0 } })
    expect(event?.type === 'disconnected' && event.error.message).toBe(`${BASE_URL} cannot be reached: ECONNREFUSED`)
    await events.return()
  })

  it('end with an error if the agent rejects the request, and continue if it has too many listeners', async () => {
    const body = { error: 'pair this program', code: 'unauthenticated', fix: 'Send a credential.' }
    const full = { error: 'full', code: 'too_many_listeners', fix: 'Close one.' }
    const { client, fire } = world([Response.json(full, { status: 503 }), Response.json(body, { status: 401 })])
    const events = client.events()
    expect(await take(events, 1)).toMatchObject([{ type: 'disconnected', error: { code: 'too_many_listeners' } }])
    const next = events.next()
    await fire(1_000)
    await expect(next).rejects.toMatchObject({ code: 'unauthenticated', fix: 'Send a credential.' })
  })

  it('drop and count the oldest for a slow reader', async () => {
    const { response, send, close } = stream()
    const { client } = world([response])
    const events = client.events({ bufferLimit: 3 })
    expect(await take(events, 1)).toEqual([{ type: 'connected' }])
    for (let n = 1; n <= 6; n++) send(person(n))
    close()
    await new Promise((resolve) => setImmediate(resolve))
    const rest = await take(events, 4)
    expect(rest).toMatchObject([{ type: 'missed', count: 4 }, person(5), person(6), { type: 'disconnected' }])
    await events.return()
  })

  it('check a silent agent: continue if it answers, and reconnect if not', async () => {
    const [first, second] = [stream(), stream()]
    const { client, fire, urls } = world([first.response, Response.json({}), 'never', second.response])
    const events = client.events({ silenceMs: 40_000, timeoutMs: 5_000 })
    await take(events, 1)
    await fire(40_000)
    await fire(40_000)
    await fire(5_000)
    expect(await take(events, 1)).toMatchObject([{ type: 'disconnected', error: { code: 'network' } }])
    await fire(1_000)
    expect(await take(events, 1)).toEqual([{ type: 'connected' }])
    expect(urls).toEqual(['/v1/events', '/v1/status', '/v1/status', '/v1/events'])
    await events.return()
  })

  it('reconnect after a missing response, a response that is no stream, and invalid events', async () => {
    const garbled = stream()
    const { client, fire } = world(['never', Response.json({}), garbled.response])
    const events = client.events({ timeoutMs: 5_000 })
    const first = events.next()
    await fire(5_000)
    expect((await first).value).toMatchObject({ type: 'disconnected', error: { code: 'timeout' } })
    await fire(1_000)
    await fire(2_000)
    expect(await take(events, 1)).toEqual([{ type: 'connected' }])
    garbled.text('data: {\n\n')
    expect(await take(events, 1)).toMatchObject([{ type: 'disconnected', error: { code: 'network' } }])
    await events.return()
  })

  it('close the connection and all timers when the reader stops or its signal aborts', async () => {
    const [first, second] = [stream(), stream()]
    const { client, signals, timers } = world([first.response, second.response])
    for await (const event of client.events()) if (event.type === 'connected') break
    const ending = new AbortController()
    const events = client.events({ signal: ending.signal })
    await take(events, 1)
    const next = events.next()
    ending.abort()
    expect(await next).toEqual({ done: true, value: undefined })
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true])
    expect(timers).toEqual([])
    expect(await client.events({ signal: ending.signal }).next()).toMatchObject({ done: true })
  })

  it('continue over a restart of the agent', async () => {
    const bench = pagesBench()
    let served = await servePages(bench)
    const platform = { after: (ms: number, task: () => void) => clearing(setTimeout(task, ms > 6_000 ? ms : 20)) }
    const events = createAgentClient({ baseUrl: served.url, credential: CREDENTIAL, platform }).events({
      timeoutMs: 60_000,
      silenceMs: 60_000,
    })
    const [connected, status] = await take(events, 2)
    expect([connected?.type, status?.type]).toEqual(['connected', 'status'])
    await served.close()
    expect((await take(events, 1))[0]).toMatchObject({ type: 'disconnected', error: expect.any(AgentError) })
    served = await servePages(bench, Number(new URL(served.url).port))
    expect((await take(events, 2)).map(({ type }) => type)).toEqual(['connected', 'status'])
    bench.feed.publish(person(7) as Parameters<typeof bench.feed.publish>[0])
    expect(await take(events, 1)).toEqual([person(7)])
    await events.return()
    await served.close()
  })
})

function clearing(timer: NodeJS.Timeout): () => void {
  return () => clearTimeout(timer)
}
