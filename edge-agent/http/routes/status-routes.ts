import type { Hono } from 'hono'
import { PROGRAM_HEADER, programHeader } from '../../../policy/program-header.ts'
import { metricsText } from '../../health/metrics.ts'
import type { Log } from '../../log.ts'
import { liveEvent } from '../../pages/live-event.ts'
import type { Agent } from '../../runtime.ts'
import type { Access } from '../access.ts'
import { connectionOf } from '../connection.ts'
import { eventStream, LISTENER_LIMIT } from '../event-stream.ts'
import { fail } from '../fail.ts'
import { agentApiText } from '../openapi.ts'
import { reply } from '../reply.ts'

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
            () => connectionOf(c)?.destroy(),
            () => access.callerOf(c) !== undefined,
          )) ??
      fail(
        c,
        503,
        'too_many_listeners',
        `${LISTENER_LIMIT} pages and programs receive the events of this agent already: close one`,
      ),
  )

  app.get('/healthz', (c) => {
    const { fault, clock } = agent.status()
    const isWell = fault === null && clock !== 'none'
    c.header(PROGRAM_HEADER, programHeader({ program: 'agent' }))
    return reply(c, 'health', { ok: isWell, ledger: fault ?? 'ok', clock }, isWell ? 200 : 503)
  })
  app.get('/readyz', (c) => {
    const { fault, policyVersion, devices, online, emergency } = agent.status()
    const isReady = fault === null && policyVersion !== null
    return reply(
      c,
      'readiness',
      {
        ready: isReady,
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
