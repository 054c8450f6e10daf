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

function Frame({ view, title, children }: { view: ZoneView; title: string; children?: Child }) {
  return (
    <Page title={title} reader={view.reader} sandbox={view.sandbox}>
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
}: {
  view: ZoneView
  label: string
  button: string
  ticket?: string
  required: boolean
}) {
  return (
    <form class="stack" method="post" action={view.path}>
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

/** One conversation. The page does not reload itself, because a reload would discard typed text. */
export function ConversationPage({
  view,
  request,
  zonePath,
}: {
  view: ZoneView
  request: AssistanceRequest
  zonePath: string
}) {
  const t = view.reader.texts.zone
  const isOver = request.status === 'closed'
  const isFull = request.messages.length >= MESSAGES_LIMIT
  return (
    <Frame view={view} title={t.chat}>
      <h1>{t.chat}</h1>
      <p role="status">{t[request.status]}</p>
      <ol class="talk">
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
      {isOver ? null : isFull ? <p>{t.full}</p> : <MessageForm view={view} label={t.reply} button={t.send} required />}
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
