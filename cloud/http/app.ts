import { Hono, type Context } from 'hono'
import { publicJwk } from '../../policy/documents/keys.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import type { TimeClaims } from '../../policy/documents/store-documents.ts'
import { isIdShaped, newId } from '../../policy/ids.ts'
import { PROGRAM_HEADER, programHeader } from '../../policy/program-header.ts'
import { errorBody } from '../operations/error-body.ts'
import { ERROR_STATUS, Failure, invalid } from '../foundation/failure.ts'
import type { Operation, Services } from '../operations/operation.ts'
import type { Database } from '../persistence/database.ts'
import { readPublicReceipt } from '../receipts/operations.ts'
import { receiptText } from '../receipts/receipt-text.ts'
import { asFailure } from './as-failure.ts'
import { apiHandler } from './api.ts'
import { assistanceRoutes } from './assistance.ts'
import { answerPreflight, readableByPages } from './browsers.ts'
import { checkoutRoutes } from './checkout.ts'
import { clientAddress } from './client-address.ts'
import { apiDocuments } from './docs/documents.ts'
import { JSON_HEADERS } from './json-headers.ts'
import { imageRoutes } from './images.ts'
import { notificationRoutes } from './notify.ts'
import { rateLimiter, type Allowance } from './rate-limit.ts'
import { openReaders, PAGE_HEADERS } from './readers.ts'
import { ReceiptPage } from './receipt-page.tsx'
import { templateRoutes } from './templates.ts'

/** What one address may ask of pages that anyone may open. */
const LOOKING: Allowance = { perSecond: 10, burst: 30 }
/** A page of a catalogue shows many at once. */
const LOOKING_AT_IMAGES: Allowance = { perSecond: 100, burst: 500 }
/** Notifications of payments: providers send many at once from few addresses. */
const NOTIFYING: Allowance = { perSecond: 100, burst: 500 }

/** Everything that the cloud answers over HTTP. */
export function createApp(operations: ReadonlyMap<string, Operation>, database: Database, services: Services): Hono {
  const { config, platform } = services
  const app = new Hono()
  const base = new URL(config.baseUrl).pathname.replace(/\/$/, '')
  const readers = openReaders(config.baseUrl.startsWith('https:'))
  const handle = apiHandler(operations, database, services, readers)
  const limiter = rateLimiter(platform.clock)

  app.get(`${base}/time`, (c) => answerTime(c))
  // {upload_url} of the specification.
  app.post(`${base}/upload`, (c) => handle(c, 'uploadImageToProduct'))
  app.get(`${base}/getReceiptFromToken`, (c, next) => publicReceipt(c, next))
  notificationRoutes(app, base, database, services, { isTooFast: (c) => isTooFast(c, 'notify ', NOTIFYING), refuse })
  app.options(`${base}/:operation`, (c, next) =>
    Promise.resolve(answerPreflight(operations.get(c.req.param('operation'))) ?? next()),
  )
  app.all(`${base}/:operation`, (c) => handle(c, c.req.param('operation')))
  for (const [path, document] of Object.entries(apiDocuments(operations, config)))
    app.get(path, (c) => document.answer(c))
  app.get('/', (c) => c.redirect('/docs'))
  // The process runs and its event loop answers. A lost database must not restart it.
  const mqttPort = Number(new URL(config.mqttUrl).port) || undefined
  const program = programHeader({ program: 'cloud', ...(mqttPort !== undefined && { mqttPort }) })
  app.get('/healthz', (c) => c.json({ ok: true }, 200, { ...JSON_HEADERS, [PROGRAM_HEADER]: program }))
  app.get('/readyz', async (c) => {
    const unready = await services.readiness.check()
    return c.json({ ready: unready.length === 0, unready }, unready.length === 0 ? 200 : 503, JSON_HEADERS)
  })
  app.get('/.well-known/jwks.json', (c) => jwks(c))
  app.get('/.well-known/jwks/:file', (c) => jwks(c, c.req.param('file').replace(/\.json$/, '')))
  app.get('/R/:token', (c) => receiptPage(c, c.req.param('token'), wantedForm(c)))
  app.get('/r/:token', (c) => receiptPage(c, c.req.param('token'), wantedForm(c)))
  imageRoutes(app, services.images, (c) => isTooFast(c, 'image ', LOOKING_AT_IMAGES))
  checkoutRoutes(app, database, services, readers, (c) => isTooFast(c, 'checkout '))
  templateRoutes(app)
  assistanceRoutes(app, database, services, readers)
  app.notFound((c) =>
    refuse(c, new Failure('not-found', 'there is nothing at this address; the API reference is at /docs')),
  )
  app.onError((error, c) => {
    const failure = asFailure(error)
    if (failure.code === 'internal') services.log.error({ err: error, path: c.req.path }, 'a page failed')
    return refuse(c, failure)
  })

  function refuse(c: Context, failure: Failure): Response {
    const requestId = newId('req', platform)
    const page = readers.problemForBrowser(c, failure, requestId)
    if (page) return page
    const { retryAfter } = failure.extras
    const headers = {
      ...JSON_HEADERS,
      'x-request-id': requestId,
      ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    }
    return c.json(errorBody(failure, requestId), ERROR_STATUS[failure.code], headers)
  }

  /** Each `bucket` counts for itself: shoppers who pay are not in the way of agents that ask for the time from the same address. */
  function isTooFast(c: Context, bucket = '', allowance = LOOKING): boolean {
    if (config.rateLimit === 0) return false
    return !limiter.take(`${bucket}${clientAddress(c, config.trustedProxies)}`, allowance).allowed
  }

  /** Signed time for anyone; the nonce shows that the answer is new. */
  async function answerTime(c: Context): Promise<Response> {
    if (isTooFast(c)) return refuse(c, new Failure('resource-exhausted', 'too many requests', { retryAfter: 1 }))
    const nonce = c.req.query('nonce') ?? ''
    if (!/^[A-Za-z0-9_-]{16,64}$/.test(nonce))
      return refuse(c, invalid('nonce', 'must be 16 to 64 characters of base64url'))
    await services.authority.look()
    const why = services.authority.clock.doubt()
    if (why) return refuse(c, new Failure('unavailable', why))
    const timeMs = services.authority.clock.nowMs()
    const iat = Math.floor(timeMs / 1_000)
    const claims: TimeClaims = { aud: nonce, iat, exp: iat + 60, timeMs, timeEpoch: services.authority.timeEpoch }
    return c.json(
      { success: true, time: signDocument(DOCUMENT_KINDS.time, claims, services.authority.freshnessSigner) },
      200,
      JSON_HEADERS,
    )
  }

  async function jwks(c: Context, iss?: string): Promise<Response> {
    if (isTooFast(c, 'jwks '))
      return refuse(c, new Failure('resource-exhausted', 'too many requests', { retryAfter: 1 }))
    // Nobody is called so, and PostgreSQL would not even be asked for a name with a NUL.
    if (iss !== undefined && !isIdShaped(iss))
      return c.json({ keys: [] }, 200, { ...JSON_HEADERS, 'access-control-allow-origin': '*' })
    let query = database.reads
      .selectFrom('signing_key')
      .select(['kid', 'x', 'key_use', 'iss'])
      .where('key_use', 'in', ['token', 'receipt'])
      .where('state', 'in', ['next', 'active', 'retiring'])
    if (iss !== undefined) query = query.where('iss', '=', iss)
    const rows = await query.orderBy('kid').execute()
    const keys = rows.map((row) => ({ ...publicJwk(row.x), kid: row.kid, use: 'sig', alg: 'EdDSA' }))
    return c.json({ keys }, 200, {
      ...JSON_HEADERS,
      'cache-control': 'public, max-age=60',
      'access-control-allow-origin': '*',
    })
  }

  /** The form of a receipt at its own address: a page, unless the client accepts plain text first. */
  function wantedForm(c: Context): 'page' | 'text' {
    return /\btext\/(html|plain)\b/.exec(c.req.header('accept') ?? '')?.[1] === 'plain' ? 'text' : 'page'
  }

  /** The form that is asked for: JSON unless a page or plain text is preferred. */
  function publicReceipt(c: Context, next: () => Promise<void>): Promise<Response | void> {
    const wanted = /\b(?:text\/(html|plain)|application\/(json))\b/.exec(c.req.header('accept') ?? '')
    const token = c.req.query('token')
    if (!wanted || wanted[2] !== undefined || token === undefined || token.length > 4_096) return next()
    for (const [name, value] of Object.entries(
      readableByPages(operations.get('getReceiptFromToken'), c.req.header('authorization')),
    ))
      c.header(name, value)
    return receiptPage(c, token, wanted[1] === 'plain' ? 'text' : 'page')
  }

  async function receiptPage(c: Context, token: string, form: 'page' | 'text' = 'page'): Promise<Response> {
    if (isTooFast(c)) {
      const failure = new Failure('resource-exhausted', 'too many requests', { retryAfter: 1 })
      return form === 'text' ? c.text('too many requests', 429) : readers.problem(c, failure)
    }
    try {
      const receipt = await readPublicReceipt({ db: database.reads, services, nowMs: platform.clock.wall() }, token)
      if (form === 'text') return c.text(receiptText(receipt), 200, PAGE_HEADERS)
      return await readers.show(c, (reader) => ReceiptPage({ receipt, reader }))
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (form === 'text') return c.text('Diesen Beleg gibt es nicht / no such receipt\n', 404, PAGE_HEADERS)
      return readers.problem(c, new Failure('not-found', error.message), undefined, 'noReceipt')
    }
  }

  return app
}
