import { bodyRoom, type TakeRoom } from './body.ts'
import { Hono, type Context } from 'hono'
import { routePath } from 'hono/route'
import { PROGRAM_HEADER, programHeader } from '../../../policy/version.ts'
import { Failure, invalid } from '../../platform/foundation/failure.ts'
import type { Operation, Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { OperationLimits } from './operation-limits.ts'
import { apiHandler, type ApiHandler } from './api.ts'
import { asFailure } from './as-failure.ts'
import { assistanceRoutes } from './assistance.tsx'
import { answerPreflight } from './cors.ts'
import { clientAddress, JSON_HEADERS, PublicAccess } from './public-access.ts'
import { brokerLoginRoute } from './broker-login.ts'
import { checkoutRoutes } from './checkout.tsx'
import { apiDocuments } from './docs/documents.ts'
import { iconRoutes } from './static-document.ts'
import { loyaltyCardRoute } from './loyalty-card.tsx'
import { notificationRoutes } from './payment-notifications.ts'
import type { Allowance } from './rate-limit.ts'
import { pageRenderer } from './page.tsx'
import { ReceiptRoutes } from './receipts.tsx'
import { publicJwk } from '../../../policy/documents/keys.ts'
import { isIdShaped } from '../../../policy/ids.ts'
import { originOf } from '../../platform/foundation/config.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { TimeClaims } from '../../../policy/documents/store-documents.ts'
import { IMAGE_NAME, IMAGE_TYPES, type ImageStore } from '../../platform/foundation/ports.ts'
import { csvTemplate, xlsxTemplate } from '../../shop/catalogue/import/template.ts'

const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

/** Routes for product file templates, for anyone. */
function templateRoutes(app: Hono): void {
  const csv = csvTemplate()
  let xlsx: Promise<Uint8Array> | undefined
  const headers = (name: string, type: string) => ({
    'content-type': type,
    'content-disposition': `attachment; filename="${name}"`,
    'cache-control': 'public, max-age=3600',
  })
  app.get('/templates/products.csv', (c) => c.body(csv, 200, headers('products.csv', 'text/csv; charset=utf-8')))
  app.get('/templates/products.xlsx', async (c) => {
    xlsx ??= xlsxTemplate()
    return c.body((await xlsx) as Uint8Array<ArrayBuffer>, 200, headers('products.xlsx', XLSX))
  })
}

/** Serves images by their content hash. Images never change, so caches may keep them forever. */
function imageRoutes(app: Hono, images: ImageStore, isTooFast: (c: Context) => boolean): void {
  app.get('/images/:name', async (c) => {
    if (isTooFast(c)) return c.text('too many requests', 429, { 'retry-after': '1' })
    const name = c.req.param('name')
    if (!IMAGE_NAME.test(name)) return c.notFound()
    const etag = `"${name}"`
    const headers = {
      'cache-control': 'public, max-age=31536000, immutable',
      etag,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'cross-origin',
    }
    if (c.req.header('if-none-match') === etag) return c.body(null, 304, headers)
    const bytes = await images.get(name)
    if (!bytes) return c.notFound()
    return c.body(bytes as Uint8Array<ArrayBuffer>, 200, {
      ...headers,
      'content-type': IMAGE_TYPES[name.slice(44)] ?? 'application/octet-stream',
    })
  })
}

/** Route for signed time, for anyone (ADR trusted-time). The nonce proves that the response is fresh. */
function signedTimeRoute(
  app: Hono,
  base: string,
  { authority }: Pick<Services, 'authority'>,
  access: PublicAccess,
): void {
  app.get(`${base}/time`, async (c: Context) => {
    if (access.isTooFast(c)) return access.refuseTooFast(c)
    const nonce = c.req.query('nonce') ?? ''
    if (!/^[A-Za-z0-9_-]{16,64}$/.test(nonce))
      return access.refuse(c, invalid('nonce', 'must be 16 to 64 characters of base64url'))
    await authority.refresh()
    const why = authority.clock.untrustedReason()
    if (why) return access.refuse(c, new Failure('unavailable', why))
    const timeMs = authority.clock.nowMs()
    const iat = Math.floor(timeMs / 1_000)
    const claims: TimeClaims = { aud: nonce, iat, exp: iat + 60, timeMs, timeEpoch: authority.timeEpoch }
    const time = signDocument(DOCUMENT_KINDS.time, claims, authority.freshnessSigner)
    return c.json({ success: true, time }, 200, JSON_HEADERS)
  })
}

/** Validity of one answer, ms. RFC 9116 asks for less than a year. */
const VALID_MS = 180 * 86_400_000

/** Route with the contact for security reports (RFC 9116). Without a contact there is no such page. */
function securityTxtRoute(app: Hono, { config, platform }: Services, access: PublicAccess): void {
  const { securityContact } = config
  if (securityContact === undefined) return
  const path = '/.well-known/security.txt'
  app.get(path, (c) => {
    if (access.isTooFast(c, 'security ')) return access.refuseTooFast(c)
    const expires = new Date(platform.clock.wall() + VALID_MS).toISOString()
    const lines = [
      `Contact: ${new URL(securityContact).href}`,
      `Expires: ${expires}`,
      'Preferred-Languages: de, en',
      `Canonical: ${originOf(config)}${path}`,
    ]
    return c.text(`${lines.join('\n')}\n`, 200, { 'cache-control': 'public, max-age=3600' })
  })
}

/** Route for the public keys of the tokens and receipts of one issuer. */
function jwksRoute(app: Hono, database: Database, access: PublicAccess): void {
  app.get('/.well-known/jwks/:file', async (c) => {
    if (access.isTooFast(c, 'jwks ')) return access.refuseTooFast(c)
    const iss = c.req.param('file').replace(/\.json$/, '')
    const headers = { ...JSON_HEADERS, 'access-control-allow-origin': '*' }
    // A text without the form of an id cannot be an issuer, and PostgreSQL rejects texts with NUL.
    if (!isIdShaped(iss)) return c.json({ keys: [] }, 200, headers)
    const rows = await database.reads
      .selectFrom('signing_key')
      .select(['kid', 'x', 'key_use'])
      .where('iss', '=', iss)
      .where('key_use', 'in', ['token', 'receipt'])
      .where('state', 'in', ['next', 'active', 'retiring'])
      .orderBy('kid')
      .execute()
    const keys = rows.map((row) => ({ ...publicJwk(row.x), kid: row.kid, use: 'sig', alg: 'EdDSA' }))
    return c.json({ keys }, 200, { ...headers, 'cache-control': 'public, max-age=60' })
  })
}

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
  takeRoom: TakeRoom = bodyRoom(),
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
    takeRoom: (c, bytes) => takeRoom(clientAddress(c, config.trustedProxies), bytes),
  })
  operationRoutes(app, base, operations, apiHandler(operations, database, services, readers, limits, takeRoom))
  for (const [path, document] of Object.entries(apiDocuments(operations, config)))
    app.get(path, (c) => document.answer(c))
  // Staff may type only the host. The sign-in page leads developers to the reference.
  app.get('/', (c) => c.redirect('/console'))
  app.get('/docs/', (c) => c.redirect('/docs', 308))
  iconRoutes(app)
  healthRoutes(app, services)
  jwksRoute(app, database, access)
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
