import { createHash } from 'node:crypto'
import { Hono, type Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { z } from 'zod'
import type { PushPort } from '../../device-drivers/transports/push-port.ts'
import { findingsOf, findingText } from '../../policy/findings.ts'
import { normaliseIdentifiers } from '../../policy/identifiers.ts'
import { PROTECTION_ACTIONS, SCAN_SOURCES } from '../../policy/vocabulary.ts'
import { classify } from '../decisions/scan.ts'
import { metricsText } from '../health/metrics.ts'
import type { Asker } from '../lanes/lane-state.ts'
import { LedgerFailure, LedgerFull } from '../ledger/commit.ts'
import { askingLimit } from '../link/asking-limit.ts'
import type { HomeReply } from '../link/home.ts'
import type { Log } from '../log.ts'
import type { Agent } from '../runtime.ts'
import { liveEvent } from '../pages/live-event.ts'
import { eventStream, LISTENER_LIMIT } from './event-stream.ts'
import { ingestRoutes } from './ingest.ts'
import { pageRoutes } from '../pages/pages.tsx'
import { setupRoutes } from './setup-routes.ts'

/** The agent's own HTTP (contracts §6): for the pages at the station and for programs beside it. */

const BODY_LIMIT = 16 * 1024
/** Questions to the home from one address that turned out to be none. */
const REFUSED_QUESTIONS = { perSecond: 5, burst: 50 }
/** Who asks here proves it by what is asked: other agents by their signature, a browser by the credential that was pasted into its page. */
const OPEN: ReadonlySet<string> = new Set(['/v1/home/redeem', '/v1/home/time', '/v1/releases', '/v1/pair'])
/** As long as browsers keep a cookie, s. */
const COOKIE_LIFE = 400 * 86_400

const Id = z.string().min(1).max(128)
const AuthorizeBody = z.strictObject({
  deviceId: Id,
  protectionAction: z.enum(PROTECTION_ACTIONS),
  token: z.string().max(4_096).optional(),
  receipt: z.string().max(4_096).optional(),
  scan: z.string().max(4_096).optional(),
  epc: z.string().max(200).optional(),
  tagUid: z.string().max(40).optional(),
  tagId: z.string().max(128).optional(),
  itemLineId: z.string().max(128).optional(),
  scanSource: z.enum(SCAN_SOURCES).optional(),
})
const PairBody = z.strictObject({ credential: z.string().trim().max(200) })
const HomeBody = z.strictObject({ question: z.string().max(8_192) })
const NoticeBody = z.strictObject({ notice: z.string().max(4_096) })
const ScanBody = z.strictObject({ deviceId: Id, text: z.string().min(1).max(4_096), byHand: z.boolean().optional() })
const OperatorBody = z.union([
  z.strictObject({ badge: z.string().min(1).max(200), deviceId: Id.optional() }),
  z.strictObject({ operatorId: Id, pin: z.string().regex(/^\d{4,12}$/), deviceId: Id.optional() }),
])

export interface LocalAppOptions {
  /** Names by which this agent may be called, `host:port`. */
  hosts: () => readonly string[]
  log: Log
  /** Where devices that call are handed to their drivers. */
  pushes?: PushPort
  /** Log lines that nobody read, since the start; by default none. */
  lostLogLines?: () => number
}

/** The agent's own HTTP API and pages (contracts §6). */
export function localApp(agent: Agent, { hosts, log, pushes, lostLogLines = () => 0 }: LocalAppOptions): Hono {
  const app = new Hono()
  // Browsers keep one jar for all ports of a machine, and there may be several agents on it.
  const cookieName = `untag_${agent.identity.agentId}`
  const browserCookie = `${cookieName}_browser`
  const events = eventStream(
    agent.feed,
    (event) => liveEvent(event, agent.trust.policy),
    () => ({ type: 'status', status: agent.status() }),
    log,
  )
  const strangers = askingLimit(agent.platform.clock, REFUSED_QUESTIONS)

  app.use('*', async (c, next) => {
    // A page from elsewhere must not reach the agent through the browser that stands beside it.
    // Pages and their assets say themselves how long they may be kept.
    c.header('cache-control', 'no-store')
    c.header('x-content-type-options', 'nosniff')
    const host = c.req.header('host') ?? ''
    if (!hosts().includes(host))
      return fail(
        c,
        403,
        'host_not_allowed',
        `this agent is not called ${host.slice(0, 100)}: add it to hosts in the configuration`,
      )
    const origin = c.req.header('origin')
    if (origin !== undefined && !hosts().some((name) => origin === `http://${name}` || origin === `https://${name}`))
      return fail(c, 403, 'origin_not_allowed', 'requests from other pages are refused')
    return next()
  })
  app.use('/v1/*', async (c, next) => {
    if (!OPEN.has(c.req.path) && !mayUse(c))
      return fail(c, 401, 'unauthenticated', 'pair this program first: untag edge pair')
    return next()
  })
  app.onError((error, c) => {
    if (error instanceof LedgerFull)
      return fail(c, 503, 'ledger_full', 'the disk is full: nothing is released until there is room')
    if (error instanceof LedgerFailure)
      return fail(c, 503, 'ledger_unavailable', 'the ledger cannot be trusted: nothing is released')
    log.error({ err: error, path: c.req.path }, 'a local request failed')
    return fail(c, 500, 'internal', 'internal error')
  })
  app.notFound((c) => fail(c, 404, 'not-found', 'there is nothing at this address'))

  app.post('/v1/authorize', async (c) => {
    const body = await read(c, AuthorizeBody)
    if (body instanceof Response) return body
    const operator = agent.operators.find(sessionOf(c))
    const { deviceId, protectionAction, token, receipt, scan, scanSource } = body
    const { epc: scannedEpc, ...presented } = presentedAs(token, receipt, scan)
    const normal = normaliseIdentifiers({
      epc: body.epc ?? scannedEpc,
      tagUid: body.tagUid,
      tagId: body.tagId,
      itemLineId: body.itemLineId,
    })
    if (!normal.ok) return fail(c, 400, 'invalid-argument', normal.message)
    if (Object.keys(normal.identifiers).length === 0 && Object.keys(presented).length === 0) {
      return fail(
        c,
        400,
        'invalid-argument',
        'nothing is presented: send a token, a receipt, a scan, or one of epc, tagUid, tagId, itemLineId',
      )
    }
    const answer = await agent.lanes.request({
      deviceId,
      action: protectionAction,
      identifiers: normal.identifiers,
      ...presented,
      ...(scanSource && { scanSource }),
      ...(operator && { operatorId: operator.operatorId }),
    })
    return c.json(answer)
  })

  const homeAnswers = (answer: (question: string) => HomeReply | Promise<HomeReply>) => async (c: Context) => {
    // Whoever sends what is not genuine is sent away before its signatures are looked at.
    const from = addressOf(c) ?? ''
    const wait = strangers.wait(from)
    if (wait > 0) return tooMany(c, wait)
    const body = await read(c, HomeBody)
    if (body instanceof Response) return body
    const reply = await answer(body.question)
    if (reply.kind === 'answer') return c.json({ answer: reply.answer })
    if (reply.kind === 'too_many_questions') return tooMany(c, reply.retryAfterSeconds)
    strangers.take(from)
    return fail(
      c,
      403,
      'not_home',
      'this agent is not the home of the receipts that were asked for, or does not know who asks',
    )
  }
  app.post(
    '/v1/home/redeem',
    homeAnswers((question) => agent.home.answer(question)),
  )
  app.post(
    '/v1/home/time',
    homeAnswers((question) => agent.home.answerTime(question)),
  )

  /** What another agent of the store has released. */
  app.post('/v1/releases', async (c) => {
    const from = addressOf(c) ?? ''
    const wait = strangers.wait(from)
    if (wait > 0) return tooMany(c, wait)
    const body = await read(c, NoticeBody)
    if (body instanceof Response) return body
    const reply = agent.notices.take(body.notice)
    if (reply.kind === 'taken') return c.json({ success: true })
    if (reply.kind === 'too_many') return tooMany(c, reply.retryAfterSeconds)
    if (reply.kind === 'refused') return fail(c, 403, 'release_refused', `the gates stay as they are: ${reply.why}`)
    strangers.take(from)
    return fail(c, 403, 'notice_not_genuine', 'no agent that this one knows in its store has signed the notice')
  })

  /** What was typed or read by a keyboard-wedge scanner into the page. */
  app.post('/v1/scan', async (c) => {
    const body = await read(c, ScanBody)
    if (body instanceof Response) return body
    const { deviceId, text, byHand } = body
    const from = askerOf(c)
    const result = await agent.lanes.scan(deviceId, text, {
      operatorId: agent.operators.find(sessionOf(c))?.operatorId,
      byHand,
      from,
    })
    if (result.kind === 'operator') remember(c, from)
    return c.json(result)
  })

  /** The browser of a page keeps the credential where no script reads it. */
  app.post('/v1/pair', async (c) => {
    const body = await read(c, PairBody)
    if (body instanceof Response) return body
    if (!isCredential(body.credential))
      return fail(c, 401, 'unauthenticated', 'this is no credential of this agent: untag edge pair')
    setCookie(c, cookieName, body.credential, { path: '/', httpOnly: true, sameSite: 'Strict', maxAge: COOKIE_LIFE })
    return c.json({ success: true })
  })

  app.post('/v1/operator', async (c) => {
    const body = await read(c, OperatorBody)
    if (body instanceof Response) return body
    const { deviceId, ...proof } = body
    const from = askerOf(c)
    const opened = deviceId === undefined ? agent.operators.open(proof) : agent.lanes.signIn(deviceId, proof, from)
    if (opened.ok && deviceId !== undefined) remember(c, from)
    if (opened.ok)
      return c.json({ session: opened.session, operatorId: opened.operatorId, name: opened.name, idleSeconds: 900 })
    if (opened.reason === 'wrong') return fail(c, 401, 'wrong_credentials', 'badge or PIN is wrong')
    c.header('retry-after', String(opened.retryAfterSeconds))
    return fail(c, 429, 'locked', `too many wrong tries: wait ${opened.retryAfterSeconds} s`)
  })
  /** Who stands at a device: a page that lost the agent looks again. */
  app.get('/v1/operator', (c) => {
    const deviceId = c.req.query('deviceId')
    return c.json({
      name:
        (deviceId === undefined ? agent.operators.look(sessionOf(c))?.name : agent.lanes.operatorAt(deviceId)) ?? null,
    })
  })
  app.delete('/v1/operator', (c) => {
    const session = sessionOf(c)
    if (session) agent.operators.close(session)
    const deviceId = c.req.query('deviceId')
    if (deviceId) agent.lanes.leave(deviceId)
    return c.json({ success: true })
  })
  app.get('/v1/operators', (c) =>
    c.json({
      operators: (agent.trust.policy?.operators ?? []).map(({ operatorId, name, pin }) => ({
        operatorId,
        name,
        hasPin: pin !== undefined,
      })),
    }),
  )

  app.get('/v1/status', (c) => c.json(agent.status()))
  app.get(
    '/v1/events',
    (c) =>
      events.open(() => connectionOf(c)?.destroy()) ??
      fail(c, 503, 'too_many_listeners', `${LISTENER_LIMIT} pages and programs follow this agent already: close one`),
  )

  app.get('/healthz', (c) => {
    const { fault, clock } = agent.status()
    const isWell = fault === null && clock !== 'none'
    return c.json({ ok: isWell, ledger: fault ?? 'ok', clock }, isWell ? 200 : 503)
  })
  app.get('/readyz', (c) => {
    const { fault, policyVersion, devices, online } = agent.status()
    const isReady = fault === null && policyVersion !== null
    return c.json(
      {
        ready: isReady,
        online,
        policyVersion,
        devices: devices.map(({ deviceId, state, detail }) => ({ deviceId, state, detail })),
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
  if (pushes) ingestRoutes(app, { devices: agent.config.devices, port: pushes, platform: agent.platform, log })
  setupRoutes(app, agent, { isLoopback, read, fail })
  pageRoutes(app, agent, { mayUse, isLoopback })

  /** Programs on this machine may, unless they are to be paired, too; an operator's session was opened by one that is. */
  function mayUse(c: Context): boolean {
    const isOpen = isLoopback(c) && (!agent.config.requirePairing || agent.operators.look(sessionOf(c)) !== undefined)
    return isOpen || isPaired(c)
  }

  /** A program of another user on this machine may ask what a page asks, but does not know what the page's browser was given. */
  function askerOf(c: Context): Asker {
    if (isPaired(c)) return 'paired'
    const given = getCookie(c, browserCookie)
    return {
      browser:
        given !== undefined && /^[\w-]{32}$/.test(given)
          ? given
          : Buffer.from(agent.platform.random.bytes(24)).toString('base64url'),
    }
  }

  /** Somebody has signed in here: by this the browser is known again, until it is closed. */
  function remember(c: Context, from: Asker): void {
    if (from !== 'paired') setCookie(c, browserCookie, from.browser, { path: '/', httpOnly: true, sameSite: 'Strict' })
  }

  function isPaired(c: Context): boolean {
    const token = /^Bearer (\S{20,200})$/.exec(c.req.header('authorization') ?? '')?.[1] ?? getCookie(c, cookieName)
    return token !== undefined && isCredential(token)
  }

  function isCredential(token: string): boolean {
    return agent.ledger.marks.isPaired(createHash('sha256').update(token).digest('base64url'))
  }

  function sessionOf(c: Context): string | undefined {
    return c.req.header('x-untag-operator')
  }

  async function read<S extends z.ZodType>(c: Context, schema: S): Promise<z.output<S> | Response> {
    if (!/^application\/json *(;|$)/i.test(c.req.header('content-type') ?? ''))
      return fail(c, 415, 'unsupported-media-type', 'send application/json')
    if (Number(c.req.header('content-length') ?? BODY_LIMIT + 1) > BODY_LIMIT)
      return fail(c, 413, 'payload-too-large', `send a Content-Length of at most ${BODY_LIMIT}`)
    let value: unknown
    try {
      value = await c.req.json()
    } catch {
      return fail(c, 400, 'invalid-argument', 'the body is not valid JSON')
    }
    const parsed = schema.safeParse(value)
    if (parsed.success) return parsed.data
    return fail(
      c,
      400,
      'invalid-argument',
      findingsOf(parsed.error.issues, value).map(findingText).slice(0, 3).join('; '),
    )
  }

  return app
}

/** A scan is whatever it turns out to be; what nobody understands is refused as a receipt would be. */
function presentedAs(
  token: string | undefined,
  receipt: string | undefined,
  scan: string | undefined,
): { token?: string; receipt?: string; epc?: string } {
  if (token !== undefined) return { token }
  if (receipt !== undefined) return { receipt }
  if (scan === undefined) return {}
  const scanned = classify(scan)
  if (scanned.kind === 'token') return { token: scanned.text }
  return scanned.kind === 'epc' ? { epc: scanned.epc } : { receipt: scan }
}

function fail(
  c: Context,
  status: 400 | 401 | 403 | 404 | 413 | 415 | 429 | 500 | 503,
  code: string,
  error: string,
): Response {
  return c.json({ error, code }, status)
}

function tooMany(c: Context, seconds: number): Response {
  c.header('retry-after', String(seconds))
  return fail(c, 429, 'too_many_questions', `too much is asked: wait ${seconds} s`)
}

function incomingOf(c: Context): { socket?: { remoteAddress?: string } } | undefined {
  return (c.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming
}

function addressOf(c: Context): string | undefined {
  return incomingOf(c)?.socket?.remoteAddress
}

function isLoopback(c: Context): boolean {
  // In-process calls of tests have no socket. A socket without an address was reset by whoever sent the request: it may be anybody's.
  if (incomingOf(c) === undefined) return true
  const address = addressOf(c) ?? ''
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}

/** The connection's response, where Node's HTTP server carries the request. */
function connectionOf(c: Context): { destroy(): void } | undefined {
  return (c.env as { outgoing?: { destroy(): void } } | undefined)?.outgoing
}
