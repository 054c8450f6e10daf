import type { Hono } from 'hono'
import { PROGRAM_HEADER, programHeader } from '../../../policy/version.ts'
import { metricsText } from '../../health/metrics.ts'
import type { Log } from '../../log.ts'
import { liveEvent } from '../../pages/live-event.ts'
import type { Agent } from '../../runtime.ts'
import { type Access, connectionOf } from '../access.ts'
import { fail, reply } from '../fail.ts'
import { agentApiText } from '../openapi.ts'
import type { Feed, FeedEvent } from '../../feed.ts'

/** Maximum concurrent listeners (pages and programs). A shop has only a few screens. */
export const LISTENER_LIMIT = 32
/** Maximum of one paired browser or program. Each screen of a shop is a browser of its own. */
export const LISTENERS_OF_CALLER = 12
/**
 * Maximum unread events of one listener. Above this limit, the agent disconnects the listener. Pages then reconnect. One
 * report of the cloud may end 200 alarms at once.
 */
export const BACKLOG_LIMIT = 500

/** Server-sent events for pages and programs (WHATWG HTML §9.2). */
export interface EventStream {
  /**
   * Returns a stream that begins with the current status of the agent. Undefined above `LISTENER_LIMIT`, or above the
   * share of this caller. If `mayListen` returns false when an event occurs, the stream ends and calls `disconnect`,
   * which closes the connection.
   */
  open(callerId: string, disconnect: () => void, mayListen: () => boolean): Response | undefined
}

/** An event in the form that listeners receive: the type and other fields. */
interface SentEvent {
  type: string
}

interface Listener {
  callerId: string
  controller: ReadableStreamDefaultController<Uint8Array>
  disconnect(): void
  mayListen(): boolean
}

/**
 * Sends each event of the feed in the form that `describe` returns. Each new listener first receives the event that
 * `present` returns.
 */
export function eventStream(
  feed: Feed,
  describe: (event: FeedEvent) => SentEvent,
  present: () => SentEvent,
  log: Log,
): EventStream {
  const listeners = new Set<Listener>()
  const encoder = new TextEncoder()
  const write = (event: SentEvent) => encoder.encode(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

  async function sendAll(): Promise<void> {
    for await (const event of feed.listen(new AbortController().signal)) {
      if (listeners.size === 0) continue
      const text = write(describe(event))
      for (const listener of listeners) {
        if ((listener.controller.desiredSize ?? 0) > 0 && listener.mayListen()) listener.controller.enqueue(text)
        else drop(listener)
      }
    }
    for (const { controller } of listeners) controller.close()
    listeners.clear()
  }

  /** Removes a listener and closes its connection, which unread events would keep open. */
  function drop(listener: Listener): void {
    listeners.delete(listener)
    listener.controller.close()
    listener.disconnect()
  }

  sendAll().catch((error: unknown) => log.error({ err: error }, 'pages and programs get no more events'))
  return {
    open(callerId, disconnect, mayListen) {
      const ofCaller = [...listeners].filter((listener) => listener.callerId === callerId)
      if (listeners.size >= LISTENER_LIMIT || ofCaller.length >= LISTENERS_OF_CALLER) return undefined
      let own: Listener
      const body = new ReadableStream<Uint8Array>(
        {
          start(controller) {
            own = { callerId, controller, disconnect, mayListen }
            listeners.add(own)
            controller.enqueue(write(present()))
          },
          cancel: () => void listeners.delete(own),
        },
        { highWaterMark: BACKLOG_LIMIT },
      )
      return new Response(body, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } })
    },
  }
}

/** Adds the routes for status, events, health, metrics and the OpenAPI document. */
export function statusRoutes(
  app: Hono,
  agent: Agent,
  access: Access,
  { log, lostLogLines }: { log: Log; lostLogLines: () => number },
): void {
  const events = eventStream(
    agent.feed,
    (event) => liveEvent(event, agent.trust.policy),
    () => ({ type: 'status', status: agent.status() }),
    log,
  )

  app.get('/v1/status', (c) => reply(c, 'status', agent.status()))
  app.get(
    '/v1/events',
    // HEAD requests use this route, too. A HEAD request must not open a stream, because the stream would count as a
    // listener.
    (c) =>
      (c.req.method === 'HEAD'
        ? c.body(null)
        : events.open(
            access.callerOf(c)?.id ?? 'this machine',
            () => connectionOf(c)?.destroy(),
            () => access.callerOf(c) !== undefined,
          )) ??
      fail(
        c,
        503,
        'too_many_listeners',
        `${LISTENER_LIMIT} pages and programs, or ${LISTENERS_OF_CALLER} of this one, receive the events of this agent already: close one`,
      ),
  )

  app.get('/healthz', (c) => {
    const { fault, clock } = agent.status()
    const isWell = fault === null && clock !== 'none'
    c.header(PROGRAM_HEADER, programHeader({ program: 'agent', agentId: agent.identity.agentId }))
    return reply(c, 'health', { ok: isWell, ledger: fault ?? 'ok', clock }, isWell ? 200 : 503)
  })
  app.get('/readyz', async (c) => {
    const unready = await agent.unready()
    const { policyVersion, devices, online, emergency } = agent.status()
    const isReady = unready.length === 0
    return reply(
      c,
      'readiness',
      {
        ready: isReady,
        unready,
        online,
        emergency: emergency !== null,
        policyVersion,
        devices: devices.map(({ deviceId, state, detail, findings }) => ({ deviceId, state, detail, findings })),
      },
      isReady ? 200 : 503,
    )
  })
  app.get('/metrics', (c) =>
    c.body(
      metricsText(agent.status(), agent.counters, agent.gates.counts(), lostLogLines(), agent.notices.waiting),
      200,
      {
        'content-type': 'text/plain; version=0.0.4',
      },
    ),
  )
  app.get('/openapi.json', (c) => c.body(agentApiText(), 200, { 'content-type': 'application/json' }))
}
