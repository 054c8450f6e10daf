import type { z } from 'zod'
import { answerAssistanceRequest, fetchAssistanceRequests } from '../../shop/assistance/operations.ts'
import { MESSAGE_LENGTH } from '../../shop/assistance/queries.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { StoreOfRow, storesToRead, StoresRead } from '../components/all-stores.tsx'
import { Badge, Card, EmptyState } from '../components/card.tsx'
import { Confirm, ActionButton, ActionForm, Submit } from '../components/form.tsx'
import { TextArea } from '../components/fields.tsx'
import { Live } from '../components/live.tsx'
import { List, Moment } from '../components/table.tsx'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'
import { LANGUAGES } from '../../../policy/page-language.ts'
import { consoleTexts } from '../texts/catalogue.ts'

type Request = z.output<typeof fetchAssistanceRequests.response>['requests'][number]

/** What the page shows: lists of requests, and the chat that is open. */
interface HelpView {
  readonly open: readonly Request[]
  readonly answered: readonly Request[]
  readonly closed: readonly Request[]
  readonly chat: Request | undefined
}

const OPEN_LIMIT = 100
const CLOSED_LIMIT = 20
/** Messages of each request among which the list looks for the shopper's last one. */
const MESSAGES_LISTED = 5

/** Requests for help with their chats. */
export const helpPage = page<HelpView>({
  path: '/console/help',
  roles: rolesFrom('viewer'),
  scope: 'stores',
  navigation: { group: 'work', icon: 'chat', tasks: ['alarmHelp', 'help'] },
  live: ['assistance'],
  title: (texts) => texts.help.title,
  lead: (at) => (at.has(rolesFrom('associate')) ? at.texts.help.lead : at.texts.help.leadOfViewer),
  actions: {
    answer: {
      operation: answerAssistanceRequest,
      roles: rolesFrom('associate'),
      input: (form) => ({ requestId: form.text('requestId'), message: form.text('message') ?? '' }),
      done: (texts) => texts.help.sent,
    },
    close: {
      operation: answerAssistanceRequest,
      roles: rolesFrom('associate'),
      input: (form) => ({ requestId: form.text('requestId'), status: 'closed' }),
      done: (texts) => texts.help.closed,
      next: (_, at) => at.path,
    },
  },
  async load(at) {
    const storeIds = storesToRead(at, ['alarmHelp', 'help'])
    const list = async (status: Request['status'], limit: number) => {
      const requests: Request[] = []
      for (const storeId of storeIds) {
        const asked = { storeId, status, limit, lastMessages: MESSAGES_LISTED }
        requests.push(...((await at.runIfAllowed(fetchAssistanceRequests, asked))?.requests ?? []))
      }
      // Ids begin with the time.
      return requests.toSorted((a, b) => (a.requestId < b.requestId ? 1 : -1)).slice(0, limit)
    }
    const [open, answered] = [await list('open', OPEN_LIMIT), await list('answered', OPEN_LIMIT)]
    const closed = await list('closed', CLOSED_LIMIT)
    const chosen = at.query.get('request')
    const listed = [...open, ...answered, ...closed].find(({ requestId }) => requestId === chosen)
    const whole = listed && { storeId: listed.storeId, requestId: listed.requestId }
    const chat = whole && (await at.runIfAllowed(fetchAssistanceRequests, whole))?.requests[0]
    // The oldest first, but a colleague at an alarm does not wait.
    const byUrgency = open.toReversed().toSorted((a, b) => Number(isUrgent(b)) - Number(isUrgent(a)))
    return { open: byUrgency, answered, closed, chat }
  },
  view: (at) => (
    <>
      {at.data.chat === undefined ? null : <Chat at={at} request={at.data.chat} />}
      <Live at={at} id="requests">
        <Requests at={at} title={at.texts.help.states.open} requests={at.data.open} isFirst />
        <Requests at={at} title={at.texts.help.states.answered} requests={at.data.answered} />
        <Requests at={at} title={at.texts.help.states.closed} requests={at.data.closed} />
        <StoresRead at={at} />
      </Live>
      {at.opens('/console/help/zones') ? (
        <div>
          <a class="button" href="/console/help/zones">
            {at.texts.help.zones.title}
          </a>
        </div>
      ) : null}
    </>
  ),
})

function Requests({
  at,
  title,
  requests,
  isFirst = false,
}: {
  at: PageContext
  title: string
  requests: readonly Request[]
  isFirst?: boolean
}) {
  const t = at.texts.help
  if (requests.length === 0 && !isFirst) return null
  return (
    <Card title={title} flush>
      {requests.length === 0 ? (
        <EmptyState title={t.nothing}>{t.nothingText}</EmptyState>
      ) : (
        <List>
          {requests.map((request) => (
            <li>
              <div>
                <strong>{nameOf(at, request)}</strong>{' '}
                {isUrgent(request) ? <Badge tone="alarm">{t.urgent}</Badge> : null}
                <StoreOfRow at={at} storeId={request.storeId} />
                {goodsOf(at, request) === '' ? null : <span class="sub strong">{goodsOf(at, request)}</span>}
                <span class="sub">{questionOf(request) ?? causeOf(at, request)}</span>
                <span class="sub">{at.formats.ago(Date.parse(request.updatedAt), at.nowMs)}</span>
              </div>
              <a
                class="button"
                href={`/console/help?request=${request.requestId}`}
                aria-label={`${t.open}: ${nameOf(at, request)}, ${at.formats.moment(Date.parse(request.createdAt))}`}
                {...(at.query.get('request') === request.requestId && { 'aria-current': 'true' as const })}
              >
                {t.open}
              </a>
            </li>
          ))}
        </List>
      )}
    </Card>
  )
}

function isUrgent({ reason, status }: Request): boolean {
  return reason === 'alarm' && status === 'open'
}

/** What the customer wrote last. */
function questionOf({ messages }: Request): string | undefined {
  return messages.findLast(({ author }) => author === 'shopper')?.text
}

/** Where help is needed. */
function nameOf(at: PageContext, { zoneName, deviceName, reason }: Request): string {
  const t = at.texts.help
  if (reason === 'alarm') return t.alarmAt(deviceName ?? t.exit)
  if (reason === 'shopper') return zoneName ?? t.noPlace
  const what = reason === 'exception_hold' ? t.held : t.tag
  return deviceName === undefined ? what : `${what}: ${deviceName}`
}

/** Why help is needed; undefined if a customer asked, whose messages say it. */
function causeOf(at: PageContext, { reason, requestedByName }: Request): string | undefined {
  const t = at.texts.help
  if (reason === 'shopper') return undefined
  if (reason === 'manual_assistance_required') return t.tagText
  if (reason === 'exception_hold') return t.heldText
  return requestedByName === undefined ? t.alarmTextOfSomebody : t.alarmText(requestedByName)
}

/** The products and the tag that the call is about, as far as they are known. */
function goodsOf(at: PageContext, { products = [], tag }: Request): string {
  return [...products, ...(tag === undefined ? [] : [at.texts.alarms.tag(tag)])].join(' · ')
}

function Chat({ at, request }: { at: ViewContext; request: Request }) {
  const t = at.texts.help
  const { requestId, status, messages, reason } = request
  const isOfShopper = reason === 'shopper'
  const mayWrite = at.has(rolesFrom('associate')) && status !== 'closed'
  return (
    <section class="card stack chat-card">
      <Live at={at} id="chat">
        <header class="row between">
          <h2>{nameOf(at, request)}</h2>
          <Badge tone={status === 'open' ? 'warn' : 'plain'}>{t.states[status]}</Badge>
        </header>
        <StoreOfRow at={at} storeId={request.storeId} />
        {goodsOf(at, request) === '' ? null : <p class="strong">{goodsOf(at, request)}</p>}
        {isOfShopper ? null : <p class="soft">{causeOf(at, request)}</p>}
        {reason === 'alarm' && at.opens('/console/alarms') ? (
          <a class="button" href="/console/alarms">
            {t.toAlarm}
          </a>
        ) : null}
        <ol class="chat" aria-label={t.messages} aria-live="polite">
          {messages.map(({ author, text, at: time }) => (
            <li class={author}>
              <span class="sub">
                {author === 'staff' ? t.staff : t.shopper} ·{' '}
                <Moment ms={Date.parse(time)} text={at.formats.clock(Date.parse(time))} />
              </span>
              <p>{text}</p>
            </li>
          ))}
        </ol>
      </Live>
      {mayWrite ? <Answer at={at} requestId={requestId} /> : null}
      <div class="form-foot">
        {mayWrite ? (
          <Confirm
            at={at}
            action="close"
            about={{ requestId }}
            label={t.close}
            question={t.closeQuestion}
            explanation={isOfShopper ? t.closeText : t.closeStaffText}
            confirm={t.closeConfirm}
          />
        ) : null}
        <a class="button quiet" href="/console/help">
          {t.back}
        </a>
      </div>
    </section>
  )
}

function Answer({ at, requestId }: { at: ViewContext; requestId: string }) {
  const t = at.texts.help
  return (
    <>
      <p class="small soft">{t.quickHint}</p>
      <div class="row">
        {[at.language, ...LANGUAGES.filter((other) => other !== at.language)].flatMap((language) => {
          const { coming, moment } = consoleTexts(language).help.quick
          return [coming, moment].map((message) => (
            <span lang={language}>
              <ActionButton at={at} action="answer" about={{ requestId, message }}>
                {message}
              </ActionButton>
            </span>
          ))
        })}
      </div>
      <ActionForm at={at} action="answer" about={{ requestId }}>
        <TextArea form={at.form} name="message" label={t.answer} maxlength={MESSAGE_LENGTH} rows={2} required />
        <div>
          <Submit>{t.send}</Submit>
        </div>
      </ActionForm>
    </>
  )
}
