import { STORE_TIME_ZONE } from '../../policy/store-time-zone.ts'
import type { Child } from 'hono/jsx'
import { MESSAGE_LENGTH, MESSAGES_LIMIT, type AssistanceRequest } from '../assistance/schema.ts'
import type { Texts } from '../texts/texts.ts'
import { Page, type PageContext } from './page.tsx'

export interface ZoneView {
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
  /** The form is sent by the script, so that the text stays if the cloud does not answer. */
  isLive?: boolean
}) {
  const live = isLive ? { 'hx-post': view.path, 'hx-target': 'main', 'hx-select': 'main', 'hx-swap': 'outerHTML' } : {}
  return (
    <form class="stack" method="post" action={view.path} {...live}>
      <label for="message">{label}</label>
      <textarea id="message" name="message" rows={3} maxlength={MESSAGE_LENGTH} required={required}></textarea>
      {ticket === undefined ? null : <input type="hidden" name="ticket" value={ticket} />}
      <button class="main">{button}</button>
    </form>
  )
}

/** What the page says while the cloud does not answer (browser/connection.ts). */
function ConnectionLost({ view }: { view: ZoneView }) {
  const t = view.reader.texts.zone
  return (
    <div id="connection" class="lost" role="alert" hidden data-zone={STORE_TIME_ZONE} data-old={t.old}>
      <strong>{t.lost}</strong> <span data-text></span>{' '}
      <span data-sent hidden>
        {t.notConfirmed}
      </span>
    </div>
  )
}

/**
 * The page behind a zone's QR code. If the browser sends the form twice with one `ticket`, the cloud opens one request.
 */
export function ZonePage({ view, ticket }: { view: ZoneView; ticket: string }) {
  const t = view.reader.texts.zone
  return (
    <Frame view={view} title={t.title}>
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
export function versionOf({ status, messages }: AssistanceRequest): string {
  return `${messages.length}-${status}`
}

/**
 * One conversation. With scripts, the list of messages updates by itself, and typed text stays; without scripts, the
 * reader follows the link.
 */
export function ConversationPage({
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
      <ConnectionLost view={view} />
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
export function NoZonePage({
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
