import { Hono } from 'hono'
import { routePath } from 'hono/route'
import { PROGRAM_HEADER, programHeader } from '../../../policy/version.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Operation, Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { OperationLimits } from './operation-limits.ts'
import { apiHandler, type ApiHandler } from './api.ts'
import { asFailure } from './as-failure.ts'
import { assistanceRoutes } from './assistance.tsx'
import { answerPreflight } from './cors.ts'
import { brokerLoginRoute } from './broker-login.ts'
import { checkoutRoutes } from './checkout.tsx'
import { apiDocuments } from './docs/documents.ts'
import { iconRoutes } from './icon.ts'
import { imageRoutes } from './images.ts'
import { JSON_HEADERS } from './json-headers.ts'
import { loyaltyCardRoute } from './loyalty-card.tsx'
import { jwksRoutes } from './jwks.ts'
import { notificationRoutes } from './payment-notifications.ts'
import { PublicAccess } from './public-access.ts'
import type { Allowance } from './rate-limit.ts'
import { pageRenderer } from './page-renderer.tsx'
import { ReceiptRoutes } from './receipts.ts'
import { signedTimeRoute } from './signed-time.ts'
import { securityTxtRoute } from './security-txt.ts'
import { templateRoutes } from './templates.ts'

/** Limit for images by address: a catalogue page loads many at once. */
const IMAGE_ALLOWANCE: Allowance = { perSecond: 100, burst: 500 }
/** Limit for notifications by address: payment providers send many from few addresses. */
const NOTIFICATION_ALLOWANCE: Allowance = { perSecond: 100, burst: 500 }

/** Makes the HTTP routes of the cloud. */
export function createApp(
  operations: ReadonlyMap<string, Operation>,
  database: Database,
  services: Services,
  limits = new OperationLimits(services),
): Hono {
  const { config } = services
  const app = new Hono()
  const base = new URL(config.baseUrl).pathname.replace(/\/$/, '')
  const readers = pageRenderer(config.baseUrl.startsWith('https:'))
  const access = new PublicAccess(services, readers)
  const receipts = new ReceiptRoutes(database, services, readers, access)

  if (config.servesTls === true) demandTls(app)

  // Hono takes the first matching route, so specific routes below `base` come before the operations.
  signedTimeRoute(app, base, services, access)
  receipts.addOperation(app, base, operations.get('getReceiptFromToken'))
  notificationRoutes(app, base, database, services, {
    isTooFast: (c) => access.isTooFast(c, 'notify ', NOTIFICATION_ALLOWANCE),
    refuse: (c, failure) => access.refuse(c, failure),
  })
  operationRoutes(app, base, operations, apiHandler(operations, database, services, readers, limits))
  for (const [path, document] of Object.entries(apiDocuments(operations, config)))
    app.get(path, (c) => document.answer(c))
  app.get('/', (c) => c.redirect('/docs'))
  app.get('/docs/', (c) => c.redirect('/docs', 308))
  iconRoutes(app)
  healthRoutes(app, services)
  jwksRoutes(app, database, access)
  securityTxtRoute(app, services, access)
  brokerLoginRoute(app, database, services, access)
  receipts.addPages(app)
  loyaltyCardRoute(app, database, services, readers, access)
  imageRoutes(app, services.images, (c) => access.isTooFast(c, 'image ', IMAGE_ALLOWANCE))
  checkoutRoutes(app, database, services, readers, (c) => access.isTooFast(c, 'checkout '))
  templateRoutes(app)
  assistanceRoutes(app, database, services, readers)
  failureRoutes(app, services, access)
  return app
}

/** Browsers then use only HTTPS for this host. They ignore the header for addresses and bad certificates. */
function demandTls(app: Hono): void {
  app.use('*', async (c, next) => {
    await next()
    c.res.headers.set('strict-transport-security', 'max-age=31536000')
  })
}

function operationRoutes(
  app: Hono,
  base: string,
  operations: ReadonlyMap<string, Operation>,
  handle: ApiHandler,
): void {
  // The specification names this address `{upload_url}`.
  app.post(`${base}/upload`, (c) => handle(c, 'uploadImageToProduct'))
  app.options(`${base}/:operation`, (c, next) =>
    Promise.resolve(answerPreflight(operations.get(c.req.param('operation'))) ?? next()),
  )
  app.all(`${base}/:operation`, (c) => handle(c, c.req.param('operation')))
}

/**
 * `/healthz` responds while the process runs. It does not check the database, because a restart of the cloud would not
 * repair the database.
 */
function healthRoutes(app: Hono, { config, readiness }: Services): void {
  const mqttPort = Number(new URL(config.mqttUrl).port) || undefined
  const program = programHeader({ program: 'cloud', ...(mqttPort !== undefined && { mqttPort }) })
  app.get('/healthz', (c) => c.json({ ok: true }, 200, { ...JSON_HEADERS, [PROGRAM_HEADER]: program }))
  app.get('/readyz', async (c) => {
    const unready = await readiness.check()
    const replica = readiness.replica()
    const status = readiness.certificate()
    const certificate = status && {
      expires: new Date(status.expiresMs).toISOString(),
      ...(status.fault !== undefined && { fault: status.fault }),
    }
    return c.json(
      { ready: unready.length === 0, unready, ...(replica && { replica }), ...(certificate && { certificate }) },
      unready.length === 0 ? 200 : 503,
      JSON_HEADERS,
    )
  })
}

function failureRoutes(app: Hono, { log }: Services, access: PublicAccess): void {
  app.notFound((c) =>
    access.refuse(c, new Failure('not-found', 'there is nothing at this address; the API reference is at /docs')),
  )
  app.onError((error, c) => {
    const failure = asFailure(error)
    // Addresses of receipts, loyalty cards and invitations are secret.
    if (failure.code === 'internal') log.error({ err: error, route: routePath(c, -1) }, 'a page failed')
    return access.refuse(c, failure)
  })
}
