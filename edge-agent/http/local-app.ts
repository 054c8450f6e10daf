import { Hono, type Context } from 'hono'
import type { PushPort } from '../../device-drivers/transports/memory.ts'
import { rateLimitedLog } from '../../policy/rate-limited-log.ts'
import { LedgerFailure, LedgerFull } from '../ledger/file/commit.ts'
import type { Log } from '../log.ts'
import { pageRoutes } from '../pages/pages.tsx'
import { errorPages } from '../pages/page-renderer.tsx'
import type { Agent } from '../runtime.ts'
import { openAccess, type Access, isLoopback } from './access.ts'
import { fail, failRights, failUnpaired, refuseAddress, refuseHost, reply } from './fail.ts'
import { isShortBody, readBody } from './read-request.ts'
import { PairRequest } from './request-schemas.ts'
import { alarmRoutes, decisionRoutes } from './routes/decision-routes.ts'
import { INGEST_PATH, ingestRoutes } from './routes/ingest-routes.ts'
import { operatorRoutes } from './routes/operator-routes.ts'
import { peerRoutes } from './routes/peer-routes.ts'
import { saleRoutes } from './routes/sale-routes.ts'
import { setupRoutes } from './routes/setup-routes.ts'
import { statusRoutes } from './routes/status-routes.ts'

interface LocalAppOptions {
  /** Values of the header `Host` that this agent accepts, `host:port`. */
  hosts: () => readonly string[]
  log: Log
  /** As in `AccessParts`. */
  credential: () => string | undefined
  /** The agent's data folder. The pages show this folder in the pairing command, to browsers on the agent's machine. */
  dataDir?: string
  /** Passes reads to the drivers, for readers that send their reads by HTTP. */
  pushes?: PushPort
  /** Returns the number of log lines that were dropped since the start. Default: 0. */
  lostLogLines?: () => number
}

/**
 * The agent's HTTP server: API and pages, for the station's browser and for programs. Checks host, origin and pairing
 * before a handler in `routes/` receives a request.
 */
export function localApp(
  agent: Agent,
  { hosts, log, credential, dataDir, pushes, lostLogLines = () => 0 }: LocalAppOptions,
): Hono {
  const app = new Hono()
  const access = openAccess({ agent, log, credential })
  const refusals = rateLimitedLog((fields, message) => log.warn(fields, message), agent.platform)

  /** Answers a caller that may not send this request. */
  const refuse = (c: Context): Response | undefined => {
    const may = access.mayCall(c)
    if (may === 'yes') return undefined
    return may === 'unpaired' ? failUnpaired(c) : failRights(c)
  }

  app.use('*', errorPages(agent))
  allowOwnNames(app, hosts)
  app.use('/v1/*', async (c, next) => {
    const refused = refuse(c)
    if (refused) return refused
    // A pairing may end while the body is on its way. Hono keeps the text for the handler.
    if (isShortBody(c)) await c.req.text().catch(() => '')
    return refuse(c) ?? next()
  })
  answerErrors(app, log)

  decisionRoutes(app, agent, access)
  saleRoutes(app, agent, access)
  peerRoutes(app, agent, refusals)
  pairRoute(app, access)
  operatorRoutes(app, agent, access)
  alarmRoutes(app, agent, access)
  statusRoutes(app, agent, access, { log, lostLogLines })
  if (pushes)
    ingestRoutes(app, { devices: () => agent.config.devices, port: pushes, hosts, platform: agent.platform, refusals })
  setupRoutes(app, agent)
  pageRoutes(app, agent, { mayOpen: access.mayOpenPages, isLoopback, renewCookie: access.renewCookie }, dataDir)
  return app
}

/** Rejects requests with an unknown host name or a foreign origin (DNS rebinding, CSRF). */
function allowOwnNames(app: Hono, hosts: () => readonly string[]): void {
  app.use('*', async (c, next) => {
    // Pages and their assets set their own cache headers.
    c.header('cache-control', 'no-store')
    c.header('x-content-type-options', 'nosniff')
    // Readers prove themselves by their secret, and the state of the device shows a wrong host name.
    if (!c.req.path.startsWith(INGEST_PATH) && !hosts().includes(c.req.header('host') ?? '')) return refuseHost(c)
    const origin = c.req.header('origin')
    if (origin !== undefined && !hosts().some((name) => origin === `http://${name}` || origin === `https://${name}`))
      return fail(c, 403, 'origin_not_allowed', 'requests from pages of another origin are rejected')
    return next()
  })
}

function answerErrors(app: Hono, log: Log): void {
  app.onError((error, c) => {
    if (error instanceof LedgerFull)
      return fail(c, 503, 'ledger_full', 'the disk is full: nothing is released until there is room')
    if (error instanceof LedgerFailure)
      return fail(c, 503, 'ledger_unavailable', 'the ledger cannot be trusted: nothing is released')
    log.error({ err: error, path: c.req.path }, 'a local request failed')
    return fail(c, 500, 'internal', 'the agent failed unexpectedly')
  })
  app.notFound(refuseAddress)
}

/** Pairs the browser that opened a one-time link. Scripts cannot read the cookie of the pairing. */
function pairRoute(app: Hono, access: Access): void {
  app.post('/v1/pair', async (c) => {
    const body = await readBody(c, PairRequest)
    if (body instanceof Response) return body
    if (await access.redeemLink(c, body.code)) return reply(c, 'pair', { success: true })
    return fail(c, 403, 'pairing_link_invalid', 'this link was already used, or is older than 15 minutes')
  })
}
