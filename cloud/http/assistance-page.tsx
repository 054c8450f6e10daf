import type { Child } from 'hono/jsx'
import { MESSAGE_LENGTH, MESSAGES_LIMIT, type AssistanceRequest } from '../assistance/schema.ts'
import { ZONE_TEXTS, type Language, type ZoneText } from './assistance-texts.ts'
import { Page } from './page.tsx'

export interface ZoneView {
  language: Language
  sandbox: boolean
  /** Path of this page, without a query. */
  path: string
  storeName: string
  zoneName: string
}

function Frame({ view, title, children }: { view: ZoneView; title: string; children?: Child }) {
  const { language } = view
  const other = language === 'de' ? 'en' : 'de'
  return (
    <Page title={title} language={language} sandbox={view.sandbox}>
      <p class="soft">
        {view.storeName} · {view.zoneName}
      </p>
      {children}
      <p>
        <a href={`${view.path}?lang=${other}`} lang={other} hreflang={other}>
          {ZONE_TEXTS[language].other}
        </a>
      </p>
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
    <form class="stack" method="post" action={`${view.path}?lang=${view.language}`}>
      <label for="message">{label}</label>
      <textarea id="message" name="message" rows={3} maxlength={MESSAGE_LENGTH} required={required}></textarea>
      {ticket === undefined ? null : <input type="hidden" name="ticket" value={ticket} />}
      <button class="main">{button}</button>
    </form>
  )
}

/** The page behind a zone's QR code. `ticket` makes a form that is sent twice one request. */
export function ZonePage({ view, ticket }: { view: ZoneView; ticket: string }) {
  const t = ZONE_TEXTS[view.language]
  return (
    <Frame view={view} title={t.title}>
      <h1>{t.title}</h1>
      <p>{t.intro}</p>
      <MessageForm view={view} label={t.label} button={t.call} ticket={ticket} required={false} />
    </Frame>
  )
}

/** One conversation. It is renewed by hand: a page that reloads by itself would take away what is being typed. */
export function ConversationPage({
  view,
  request,
  zonePath,
}: {
  view: ZoneView
  request: AssistanceRequest
  zonePath: string
}) {
  const t = ZONE_TEXTS[view.language]
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
            <span class="soft"> {time(message.at, view.language)}</span>
            <p>{message.text}</p>
          </li>
        ))}
      </ol>
      <p>
        <a href={`${view.path}?lang=${view.language}`}>{t.refresh}</a>
      </p>
      {isOver ? null : isFull ? <p>{t.full}</p> : <MessageForm view={view} label={t.reply} button={t.send} required />}
      <p class="soft">{t.keep}</p>
      {isOver || isFull ? (
        <p>
          <a href={`${zonePath}?lang=${view.language}`}>{t.again}</a>
        </p>
      ) : null}
    </Frame>
  )
}

/** Why there is nothing to see or nothing was sent. */
export function NoZonePage({
  language,
  text,
  back,
}: {
  language: Language
  text: ZoneText
  back?: string | undefined
}) {
  const t = ZONE_TEXTS[language]
  return (
    <Page title={t.title} language={language}>
      <h1>{t.title}</h1>
      <p role="alert">{t[text]}</p>
      {back === undefined ? null : (
        <p>
          <a href={`${back}?lang=${language}`}>{t.back}</a>
        </p>
      )}
    </Page>
  )
}

const CLOCKS = {
  de: new Intl.DateTimeFormat('de-DE', { timeStyle: 'short', timeZone: 'Europe/Berlin' }),
  en: new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'Europe/Berlin' }),
}

function time(iso: string, language: Language): string {
  return CLOCKS[language].format(new Date(iso))
}
