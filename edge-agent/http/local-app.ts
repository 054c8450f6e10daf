import { Hono, type Context } from 'hono'
import type { PushPort } from '../../device-drivers/transports/push-port.ts'
import { normaliseIdentifiers } from '../../policy/identifiers.ts'
import { limitedLog } from '../../policy/limited-log.ts'
import { PROGRAM_HEADER, programHeader } from '../../policy/program-header.ts'
import { classify } from '../decisions/scan.ts'
import { metricsText } from '../health/metrics.ts'
import { LedgerFailure, LedgerFull } from '../ledger/file/commit.ts'
import type { HomeReply } from '../peers/home-answers.ts'
import type { Log } from '../log.ts'
import type { Agent } from '../runtime.ts'
import { liveEvent } from '../pages/live-event.ts'
import { openAccess } from './access.ts'
import { addressOf, connectionOf } from './connection.ts'
import { decideFew } from './decide-few.ts'
import { eventStream, LISTENER_LIMIT } from './event-stream.ts'
import { fail, failField, failUnpaired, refuseAddress } from './fail.ts'
import { ingestRoutes } from './ingest.ts'
import { refusedCallers } from './refused-callers.ts'
import { pageRoutes } from '../pages/pages.tsx'
import { errorPages } from '../pages/readers.ts'
import { agentApiText } from './openapi.ts'
import { readBody, readQuery } from './read-request.ts'
import { reply } from './reply.ts'
import {
  AuthorizeRequest,
  DeviceQuery,
  HomeRequest,
  NoticeRequest,
  PairRequest,
  ScanRequest,
  SignInRequest,
} from './requests.ts'
import { setupRoutes } from './setup-routes.ts'

/** The agent's own HTTP (contracts §6): for the pages at the station and for programs beside it. */

/** When a sign-in without the store key is worth another try, s: the agent logs in again at once. */
const KEY_RETRY_SECONDS = 5

export interface LocalAppOptions {
  /** Names by which this agent may be called, `host:port`. */
  hosts: () => readonly string[]
  log: Log
  /** The credential of the agent's own file, as `AccessParts` has it. */
  credential: () => string | undefined
  /** The agent's data folder: its own machine's browsers are shown the whole command that pairs them. */
  dataDir?: string
  /** Where devices that call are handed to their drivers. */
  pushes?: PushPort
  /** Log lines that nobody read, since the start; by default none. */
  lostLogLines?: () => number
}

/** The agent's own HTTP API and pages (contracts §6). */
export function localApp(
  agent: Agent,
  { hosts, log, credential, dataDir, pushes, lostLogLines = () => 0 }: LocalAppOptions,
): Hono {
  const app = new Hono()
  const access = openAccess({ agent, log, credential })
  const events = eventStream(
    agent.feed,
    (event) => liveEvent(event, agent.trust.policy),
    () => ({ type: 'status', status: agent.status() }),
    log,
  )
  const refusals = limitedLog((fields, message) => log.warn(fields, message), agent.platform)
  const strangers = refusedCallers(agent.platform.clock, refusals)

  app.use('*', errorPages(agent))
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
    if (!access.mayCall(c)) return failUnpaired(c)
    return next()
  })
  const few = decideFew()
  for (const path of ['/v1/authorize', '/v1/scan']) app.post(path, few)
  app.onError((error, c) => {
    if (error instanceof LedgerFull)
      return fail(c, 503, 'ledger_full', 'the disk is full: nothing is released until there is room')
    if (error instanceof LedgerFailure)
      return fail(c, 503, 'ledger_unavailable', 'the ledger cannot be trusted: nothing is released')
    log.error({ err: error, path: c.req.path }, 'a local request failed')
    return fail(c, 500, 'internal', 'internal error')
  })
  app.notFound(refuseAddress)

  app.post('/v1/authorize', async (c) => {
    const body = await readBody(c, AuthorizeRequest)
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
    if (!normal.ok) return failField(c, normal.field, 'invalid', normal.message)
    if (Object.keys(normal.identifiers).length === 0 && Object.keys(presented).length === 0) {
      return failField(
        c,
        'receipt',
        'missing',
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
    return reply(c, 'authorize', answer)
  })

  const homeAnswers = (answer: (question: string) => HomeReply | Promise<HomeReply>) => async (c: Context) => {
    // Whoever sends what is not genuine is sent away before its signatures are looked at.
    const from = addressOf(c) ?? ''
    const wait = strangers.wait(from)
    if (wait > 0) return tooMany(c, wait)
    const body = await readBody(c, HomeRequest)
    if (body instanceof Response) return body
    const answered = await answer(body.question)
    if (answered.kind === 'answer') return reply(c, 'redeemAtHome', { answer: answered.answer })
    if (answered.kind === 'too_many_questions') return tooMany(c, answered.retryAfterSeconds)
    strangers.refuse(from, 'not_home')
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
    const body = await readBody(c, NoticeRequest)
    if (body instanceof Response) return body
    const taken = agent.notices.take(body.notice)
    if (taken.kind === 'taken') return reply(c, 'announceRelease', { success: true })
    if (taken.kind === 'too_many') return tooMany(c, taken.retryAfterSeconds)
    if (taken.kind === 'refused') return fail(c, 403, 'release_refused', `the gates stay as they are: ${taken.why}`)
    strangers.refuse(from, 'notice_not_genuine')
    return fail(c, 403, 'notice_not_genuine', 'no agent that this one knows in its store has signed the notice')
  })

  /** What was typed or read by a keyboard-wedge scanner into the page. */
  app.post('/v1/scan', async (c) => {
    const body = await readBody(c, ScanRequest)
    if (body instanceof Response) return body
    const { deviceId, text, byHand } = body
    const from = access.callerOf(c) ?? 'unpaired'
    // A badge signs its operator in.
    if (from === 'unpaired' && classify(text).kind === 'badge') return failUnpaired(c)
    const operatorId = agent.operators.find(sessionOf(c))?.operatorId
    return reply(c, 'scan', await agent.lanes.scan(deviceId, text, { operatorId, byHand, from }))
  })

  /** Pairs the browser that opened a one-time link. Its cookie is read by no script. */
  app.post('/v1/pair', async (c) => {
    const body = await readBody(c, PairRequest)
    if (body instanceof Response) return body
    if (await access.redeemLink(c, body.code)) return reply(c, 'pair', { success: true })
    return fail(c, 403, 'pairing_link_invalid', 'this link was already used, or is older than 15 minutes')
  })

  app.post('/v1/operator', async (c) => {
    const body = await readBody(c, SignInRequest)
    if (body instanceof Response) return body
    const { deviceId, ...proof } = body
    const caller = access.callerOf(c)
    if (!caller) return failUnpaired(c)
    const opened =
      deviceId === undefined ? agent.operators.open(proof, caller.id) : agent.lanes.signIn(deviceId, proof, caller.id)
    if (opened.ok)
      return reply(c, 'signIn', {
        session: opened.session,
        operatorId: opened.operatorId,
        name: opened.name,
        idleSeconds: 900,
      })
    if (opened.reason === 'wrong') return fail(c, 401, 'wrong_credentials', 'badge or PIN is wrong')
    if (opened.reason === 'no_store_key') {
      c.header('retry-after', String(KEY_RETRY_SECONDS))
      return fail(
        c,
        503,
        'no_store_key',
        'the agent waits for the store’s new key, which the cloud sends with a login: connect the agent to the cloud and try again',
      )
    }
    c.header('retry-after', String(opened.retryAfterSeconds))
    return fail(c, 429, 'locked', `too many wrong tries: wait ${opened.retryAfterSeconds} s`)
  })
  /** Who stands at a device: a page that lost the agent looks again. */
  app.get('/v1/operator', (c) => {
    const query = readQuery(c, DeviceQuery)
    if (query instanceof Response) return query
    const { deviceId } = query
    return reply(c, 'signedIn', {
      name:
        (deviceId === undefined ? agent.operators.look(sessionOf(c))?.name : agent.lanes.operatorAt(deviceId)) ?? null,
    })
  })
  app.delete('/v1/operator', (c) => {
    const query = readQuery(c, DeviceQuery)
    if (query instanceof Response) return query
    const session = sessionOf(c)
    if (session) agent.operators.close(session)
    if (query.deviceId !== undefined) agent.lanes.leave(query.deviceId)
    return reply(c, 'signOut', { success: true })
  })
  app.get('/v1/operators', (c) =>
    reply(c, 'operators', {
      operators: (agent.trust.policy?.operators ?? []).map(({ operatorId, name, pin }) => ({
        operatorId,
        name,
        hasPin: pin !== undefined,
      })),
    }),
  )

  app.get('/v1/status', (c) => reply(c, 'status', agent.status()))
  app.get(
    '/v1/events',
    // HEAD is answered by the same route: a stream without a reader would keep its place.
    (c) =>
      (c.req.method === 'HEAD'
        ? c.body(null)
        : events.open(
            () => connectionOf(c)?.destroy(),
            () => access.callerOf(c) !== undefined,
          )) ??
      fail(c, 503, 'too_many_listeners', `${LISTENER_LIMIT} pages and programs follow this agent already: close one`),
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
  app.get('/openapi.json', (c) => c.body(agentApiText(), 200, { 'content-type': 'application/json' }))
  if (pushes) ingestRoutes(app, { devices: agent.config.devices, port: pushes, platform: agent.platform, refusals })
  setupRoutes(app, agent)
  pageRoutes(app, agent, access, dataDir)

  function sessionOf(c: Context): string | undefined {
    return c.req.header('x-untag-operator')
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

function tooMany(c: Context, seconds: number): Response {
  c.header('retry-after', String(seconds))
  return fail(c, 429, 'too_many_questions', `too much is asked: wait ${seconds} s`)
}
