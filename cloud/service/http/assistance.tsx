import type { Context, Hono } from 'hono'
import { isIdShaped, newId } from '../../../policy/ids.ts'
import { zoneOfCaller, requestAssistance } from '../../shop/assistance/operations.ts'
import {
  findRequestOfTicket,
  findZone,
  messagesOf,
  Message,
  MESSAGE_LENGTH,
  MESSAGES_LIMIT,
  type AssistanceRequest,
} from '../../shop/assistance/queries.ts'
import { addMessage, newTicket, openRequest, toRequest } from '../../shop/assistance/requests.ts'
import type { KeyCaller, Mode, Tenant } from '../../platform/foundation/caller.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import { openCall } from '../../platform/operations/call-context.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { performTask } from '../../platform/operations/perform.ts'
import type { Database } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { isTest } from '../../shop/purchases/present.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { readBytes } from './body.ts'
import {
  type PageContext,
  Page,
  LIVE_PAGE_HEADERS,
  type PageRenderer,
  CONNECTION_SCRIPT,
  ConnectionLost,
  ConnectionScript,
} from './page.tsx'
import { clientAddress } from './public-access.ts'
import { sharedRateLimiter, type Allowance, type RateLimiter } from './rate-limit.ts'
import { ownScript, packageFile, staticDocument } from './static-document.ts'
import type { Child } from 'hono/jsx'
import type { Texts } from '../../platform/texts/texts.ts'

interface ZoneView {
  reader: PageContext
  sandbox: boolean
  /** Path of this page, without a query. */
  path: string
  storeName: string
  zoneName: string
}

interface FrameParts {
  view: ZoneView
  title: string
  head?: Child
  children?: Child
}

function Frame({ view, title, head, children }: FrameParts) {
  return (
    <Page title={title} reader={view.reader} sandbox={view.sandbox} head={head}>
      <p class="soft">
        {view.storeName} · {view.zoneName}
      </p>
      {children}
    </Page>
  )
}

function MessageForm({
  view,
  label,
  button,
  ticket,
  required,
  isLive = false,
}: {
  view: ZoneView
  label: string
  button: string
  ticket?: string
  required: boolean
  /** htmx sends the form, and the page stays. */
  isLive?: boolean
}) {
  const live = isLive
    ? { 'hx-post': view.path, 'hx-target': 'main', 'hx-select': 'main', 'hx-swap': 'outerHTML' }
    : { 'data-guarded': true }
  return (
    <form class="stack" method="post" action={view.path} {...live}>
      <label for="message">{label}</label>
      <textarea id="message" name="message" rows={3} maxlength={MESSAGE_LENGTH} required={required}></textarea>
      {ticket === undefined ? null : <input type="hidden" name="ticket" value={ticket} />}
      <button class="main">{button}</button>
    </form>
  )
}

/**
 * The page behind a zone's QR code. If the browser sends the form twice with one `ticket`, the cloud opens one request.
 */
function ZonePage({ view, ticket }: { view: ZoneView; ticket: string }) {
  const t = view.reader.texts.zone
  return (
    <Frame view={view} title={t.title} head={<ConnectionScript />}>
      <ConnectionLost texts={view.reader.texts} />
      <h1>{t.title}</h1>
      <p>{t.intro}</p>
      <MessageForm view={view} label={t.label} button={t.call} ticket={ticket} required={false} />
    </Frame>
  )
}

/** Interval at which an open conversation asks for new messages, s. */
const POLL_S = 4
/** Settings of htmx: no `eval`, no inline styles, only requests to this origin. */
const HTMX_CONFIG = JSON.stringify({ allowEval: false, allowScriptTags: false, includeIndicatorStyles: false })

/** What a browser has of a conversation. It changes with each message and each status. */
function versionOf({ status, messages }: AssistanceRequest): string {
  return `${messages.length}-${status}`
}

/**
 * One conversation. With scripts, the list of messages updates by itself, and typed text stays; without scripts, the
 * reader follows the link.
 */
function ConversationPage({
  view,
  request,
  zonePath,
  scripts,
}: {
  view: ZoneView
  request: AssistanceRequest
  zonePath: string
  /** Addresses of its scripts. */
  scripts: readonly string[]
}) {
  const t = view.reader.texts.zone
  const isOver = request.status === 'closed'
  const isFull = request.messages.length >= MESSAGES_LIMIT
  const poll = isOver
    ? {}
    : {
        'hx-get': `${view.path}?seen=${versionOf(request)}`,
        'hx-trigger': `every ${POLL_S}s`,
        'hx-select': '#talk',
        'hx-select-oob': '#state:innerHTML',
        'hx-swap': 'outerHTML',
      }
  const head = (
    <>
      <meta name="htmx-config" content={HTMX_CONFIG} />
      {scripts.map((script) => (
        <script src={script} defer></script>
      ))}
    </>
  )
  return (
    <Frame view={view} title={t.chat} head={head}>
      <ConnectionLost texts={view.reader.texts} />
      <h1>{t.chat}</h1>
      <p id="state" role="status">
        {t[request.status]}
      </p>
      <ol id="talk" class="talk" {...poll}>
        {request.messages.map((message) => (
          <li class={message.author}>
            <strong>{t[message.author]}</strong>
            <span class="soft"> {view.reader.formats.clock(Date.parse(message.at))}</span>
            <p>{message.text}</p>
          </li>
        ))}
      </ol>
      <p>
        <a href={view.path}>{t.refresh}</a>
      </p>
      {isOver ? null : isFull ? (
        <p>{t.full}</p>
      ) : (
        <MessageForm view={view} label={t.reply} button={t.send} required isLive />
      )}
      <p class="soft">{t.keep}</p>
      {isOver || isFull ? (
        <p>
          <a href={zonePath}>{t.again}</a>
        </p>
      ) : null}
    </Frame>
  )
}

/** Page about a failure. */
function NoZonePage({
  reader,
  text,
  back,
}: {
  reader: PageContext
  text: keyof Texts['zone']
  back?: string | undefined
}) {
  const t = reader.texts.zone
  return (
    <Page title={t.title} reader={reader}>
      <h1>{t.title}</h1>
      <p role="alert">{t[text]}</p>
      {back === undefined ? null : (
        <p>
          <a href={back}>{t.back}</a>
        </p>
      )}
    </Page>
  )
}

const FORM_LIMIT = 8 * 1024
/**
 * Limits by client address, which all shoppers of a store may share. The limit for writing is lower, because each
 * request calls staff.
 */
const READ_ALLOWANCE = { perSecond: 10, burst: 30 }
const WRITE_ALLOWANCE = { perSecond: 0.5, burst: 20 }

/** Scripts of open conversations: htmx updates them, and the other says when the cloud does not answer. */
const SCRIPTS = ['/assets/htmx.js', CONNECTION_SCRIPT] as const

const STATUS = { unknown: 404, tooFast: 429, tooLong: 400, busy: 503, full: 409, closed: 409 } as const
const REFUSALS: Record<string, keyof typeof STATUS> = {
  too_many_requests_open: 'busy',
  too_many_messages: 'full',
  request_closed: 'closed',
}

/** Data that all pages of a zone show. */
type View = Omit<ZoneView, 'path' | 'reader'>

/**
 * Routes of the pages behind the QR codes of zones. Everyone who has the address of a conversation may read the
 * conversation.
 */
export function assistanceRoutes(app: Hono, database: Database, services: Services, readers: PageRenderer): void {
  const pages = new AssistancePages(database, services, readers)
  const scripts = [packageFile('htmx.org', 'htmx.min.js'), ownScript('service/http/browser/connection.js')]
  for (const [n, path] of SCRIPTS.entries()) {
    const script = staticDocument(scripts[n] ?? '', 'text/javascript; charset=utf-8', {
      'cache-control': 'public, max-age=3600',
    })
    app.get(path, (c) => script.answer(c))
  }
  app.get('/z/:zoneId', (c) => pages.answer(c, READ_ALLOWANCE, () => pages.showZone(c)))
  app.post('/z/:zoneId', (c) => pages.answer(c, WRITE_ALLOWANCE, () => pages.openConversation(c)))
  app.get('/z/:zoneId/:ticket', (c) => pages.answer(c, READ_ALLOWANCE, () => pages.showConversation(c)))
  app.post('/z/:zoneId/:ticket', (c) => pages.answer(c, WRITE_ALLOWANCE, () => pages.continueConversation(c)))
}

class AssistancePages {
  readonly #database: Database
  readonly #services: Services
  readonly #readers: PageRenderer
  readonly #limiter: RateLimiter

  constructor(database: Database, services: Services, readers: PageRenderer) {
    this.#database = database
    this.#services = services
    this.#readers = readers
    this.#limiter = sharedRateLimiter('assistance', services)
  }

  /** Applies the rate limit and shows failures as pages. */
  async answer(c: Context, allowance: Allowance, make: () => Promise<Response>): Promise<Response> {
    const { rateLimit, trustedProxies } = this.#services.config
    const bucket = `${allowance === WRITE_ALLOWANCE ? 'ask' : 'read'} ${clientAddress(c, trustedProxies)}`
    if (rateLimit !== 0 && !this.#limiter.take(bucket, allowance).allowed) return this.#refuse(c, 'tooFast')
    try {
      return await make()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (error.code === 'invalid-argument' || error.code === 'payload-too-large') return this.#refuse(c, 'tooLong')
      return this.#refuse(c, REFUSALS[error.extras.reason ?? ''] ?? 'unknown')
    }
  }

  async showZone(c: Context): Promise<Response> {
    const { zone, view } = await this.#viewOf(c)
    const ticket = newTicket(this.#services.platform)
    const page = (reader: PageContext) => ZonePage({ view: { ...view, reader, path: `/z/${zone.zone_id}` }, ticket })
    return this.#readers.show(c, page, 200, LIVE_PAGE_HEADERS)
  }

  async openConversation(c: Context): Promise<Response> {
    const { platform, config } = this.#services
    const { zone } = await this.#viewOf(c)
    const form = await readForm(c)
    const ticket = /^[A-Za-z0-9_-]{22}$/.exec(form.get('ticket') ?? '')?.[0] ?? newTicket(platform)
    const message = messageIn(form)
    const sent = { message, address: clientAddress(c, config.trustedProxies) }
    await this.#task(zone, ({ db, nowMs }) => openRequest({ db, nowMs, platform }, zone, ticket, sent))
    return c.redirect(`/z/${zone.zone_id}/${ticket}`, 303)
  }

  async showConversation(c: Context): Promise<Response> {
    const { zone, view, request } = await this.#conversationOf(c)
    const messages = await messagesOf(this.#database.reads, [request.request_id])
    const zonePath = `/z/${zone.zone_id}`
    const conversation = toRequest(request, { zone: zone.name }, messages.get(request.request_id) ?? [])
    // The browser's page asks for news. 204 leaves it as it is.
    if (c.req.query('seen') === versionOf(conversation)) return c.body(null, 204, LIVE_PAGE_HEADERS)
    const page = (reader: PageContext) =>
      ConversationPage({
        view: { ...view, reader, path: `${zonePath}/${ticketOf(c)}` },
        request: conversation,
        zonePath,
        scripts: SCRIPTS,
      })
    return this.#readers.show(c, page, 200, LIVE_PAGE_HEADERS)
  }

  async continueConversation(c: Context): Promise<Response> {
    const { zone, request } = await this.#conversationOf(c)
    const message = messageIn(await readForm(c))
    if (message !== undefined) {
      await this.#task(zone, async (call) => {
        const current = await findRequestOfTicket(call.db, ticketOf(c))
        if (current?.request_id === request.request_id) await addMessage(call, current, 'shopper', message)
      })
    }
    return c.redirect(`/z/${zone.zone_id}/${ticketOf(c)}`, 303)
  }

  #refuse(c: Context, text: keyof typeof STATUS): Response | Promise<Response> {
    const back = text === 'unknown' ? undefined : c.req.path
    return this.#readers.show(c, (reader) => NoZonePage({ reader, text, back }), STATUS[text])
  }

  async #viewOf(c: Context): Promise<{ zone: Row<'zone'>; view: View }> {
    const db = this.#database.reads
    const zoneId = c.req.param('zoneId') ?? ''
    const known = isIdShaped(zoneId) ? await findZone(db, zoneId) : undefined
    const store = known && (await findStore(db, known.store_id))
    if (!known || !store) throw new Failure('not-found', 'no such zone')
    // Checks the store's package, which may have been lowered.
    const caller = pageCaller(known.tenant as Tenant)
    const request = { operation: requestAssistance, caller, input: {}, isLegacyForm: false, idempotencyKey: undefined }
    const requestId = newId('req', this.#services.platform)
    const zone = await zoneOfCaller(openCall({ ...request, requestId }, db, this.#services).call, zoneId)
    return { zone, view: { sandbox: isTest(zone.tenant), storeName: store.trading_name, zoneName: zone.name } }
  }

  async #conversationOf(c: Context): Promise<{ zone: Row<'zone'>; view: View; request: Row<'assistance_request'> }> {
    const { zone, view } = await this.#viewOf(c)
    const request = await findRequestOfTicket(this.#database.reads, ticketOf(c).slice(0, 64))
    if (request?.zone_id !== zone.zone_id) throw new Failure('not-found', 'no such request')
    return { zone, view, request }
  }

  async #task(zone: Row<'zone'>, work: (call: Call) => Promise<unknown>): Promise<void> {
    const who = {
      operation: requestAssistance,
      caller: pageCaller(zone.tenant as Tenant),
      requestId: newId('req', this.#services.platform),
    }
    await performTask(who, this.#database, this.#services, async (call) => void (await work(call)))
  }
}

function ticketOf(c: Context): string {
  return c.req.param('ticket') ?? ''
}

async function readForm(c: Context): Promise<URLSearchParams> {
  return new URLSearchParams(new TextDecoder().decode(await readBytes(c, FORM_LIMIT)))
}

/** The message of a form; undefined if it is blank. Throws 400 if the message is too long. */
function messageIn(form: URLSearchParams): string | undefined {
  const text = (form.get('message') ?? '').replaceAll('\r\n', '\n').trim()
  if (text === '') return undefined
  const parsed = Message.safeParse(text)
  if (!parsed.success) throw new Failure('invalid-argument', 'the message is too long')
  return parsed.data
}

/** Caller for requests of shoppers, in the tenant of the zone. */
function pageCaller(tenant: Tenant): KeyCaller {
  const [accountId = '', mode] = tenant.split('.')
  return {
    kind: 'publishable',
    keyId: 'zone-page',
    accountId,
    mode: mode as Mode,
    tenant,
    storeIds: null,
    package: 'PRIME',
  }
}
