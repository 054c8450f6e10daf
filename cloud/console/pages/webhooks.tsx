import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import {
  fetchWebhookDeliveries,
  fetchWebhookEvents,
  redeliverWebhook,
  sendTestWebhook,
} from '../../platform/webhooks/delivery-operations.ts'
import { EVENT_TYPES } from '../../platform/webhooks/event-types.ts'
import {
  deleteWebhook,
  fetchWebhooks,
  registerWebhook,
  rollWebhookSecret,
  updateWebhook,
} from '../../platform/webhooks/operations.ts'
import { DELIVERY_STATUSES } from '../../platform/webhooks/schema.ts'
import { Badge, Card, EmptyState, Pairs, type Tone } from '../components/card.tsx'
import { Json, SecretOnce } from '../components/code.tsx'
import { Checkbox, Select, TextArea, TextField } from '../components/fields.tsx'
import { ActionButton, ActionForm, Confirm, formId, Submit } from '../components/form.tsx'
import { storeName } from '../components/all-stores.tsx'
import { FilterBar, List, Moment, Pagination, Results, Table } from '../components/table.tsx'
import { NO_FORM, type FormFields, type FormState } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Webhook = z.output<typeof fetchWebhooks.response>['webhooks'][number]
type Deliveries = z.output<typeof fetchWebhookDeliveries.response>
type Delivery = Deliveries['deliveries'][number]
type Status = Delivery['status']

const PAGE_SIZE = 25
/** Deliveries of one event that a page looks through for the chosen one, and events for its content. */
const LOOKED_AT = 200
const TONES: Readonly<Record<Status, Tone>> = { pending: 'info', delivered: 'ok', failed: 'warn' }

const eventsOf = (form: FormFields) => (form.text('events') ?? '').split(/[\s,]+/).filter((name) => name !== '')

/** Addresses that receive events. */
export const webhooksPage = page<readonly Webhook[]>({
  path: '/console/webhooks',
  roles: rolesFrom('admin'),
  scope: 'account',
  navigation: { group: 'developers', icon: 'hook' },
  title: (texts) => texts.developers.webhooks.title,
  lead: (at) => at.texts.developers.webhooks.lead,
  actions: {
    add: {
      operation: registerWebhook,
      input: (form) => ({ url: form.text('url'), events: eventsOf(form), storeId: form.text('store_id') }),
      done: (texts) => texts.developers.webhooks.made,
      show: (result, at) => <Secret at={at} title={at.texts.developers.webhooks.made} result={result} />,
    },
  },
  load: async (at) => (await at.run(fetchWebhooks, {})).webhooks,
  view(at) {
    const t = at.texts.developers.webhooks
    return (
      <div class="stack wide">
        <Card title={t.title} flush>
          {at.data.length === 0 ? (
            <EmptyState icon="hook" title={t.nothing}>
              {t.nothingText}
            </EmptyState>
          ) : (
            <List>
              {at.data.map((webhook) => (
                <li>
                  <div>
                    <a href={`${at.path}/${webhook.webhookId}`}>
                      <strong>{webhook.url}</strong>
                    </a>
                    <span class="sub">
                      {storeOf(at, webhook)} · {webhook.events.join(', ')}
                    </span>
                  </div>
                  <State at={at} webhook={webhook} />
                </li>
              ))}
            </List>
          )}
        </Card>
        <Card title={t.add}>
          <ActionForm at={at} action="add">
            <WebhookFields at={at} form={at.form} />
            <Select
              form={at.form}
              name="store_id"
              label={t.store}
              value=""
              choices={[
                { value: '', label: at.texts.developers.allStores },
                ...at.stores.map(({ storeId, tradingName }) => ({ value: storeId, label: tradingName })),
              ]}
            />
            <div>
              <Submit>{t.make}</Submit>
            </div>
          </ActionForm>
        </Card>
      </div>
    )
  },
})

function Secret({ at, title, result }: { at: ViewContext; title: string; result: Record<string, unknown> }) {
  const t = at.texts.developers.webhooks
  return (
    <SecretOnce at={at} title={title} secret={String(result['secret'] ?? at.texts.developers.none)} back={t.title}>
      {t.secretText}
    </SecretOnce>
  )
}

function WebhookFields({ at, form: sent, webhook }: { at: PageContext; form: FormState; webhook?: Webhook }) {
  const t = at.texts.developers.webhooks
  const { errors } = sent
  const form = errors['url'] === undefined ? sent : { ...sent, errors: { ...errors, url: t.urlRule } }
  return (
    <>
      <TextField
        form={form}
        name="url"
        label={t.url}
        hint={t.urlHint}
        value={webhook?.url}
        maxlength={2_000}
        required
      />
      <TextArea
        form={form}
        name="events"
        label={t.events}
        hint={t.eventsHint}
        value={(webhook?.events ?? ['*']).join('\n')}
        required
      />
      <details>
        <summary>{t.allEvents}</summary>
        <p class="small">
          <code>{[...EVENT_TYPES.keys()].join(' ')}</code>
        </p>
      </details>
    </>
  )
}

function storeOf(at: PageContext, { storeId }: Webhook): string {
  return storeId === undefined ? at.texts.developers.allStores : storeName(at, storeId)
}

function State({ at, webhook: { enabled, failingSince } }: { at: PageContext; webhook: Webhook }) {
  const { states } = at.texts.developers.webhooks
  if (!enabled) return <Badge>{states.off}</Badge>
  return failingSince === undefined ? <Badge tone="ok">{states.on}</Badge> : <Badge tone="warn">{states.failing}</Badge>
}

interface OneWebhook {
  readonly webhook: Webhook | undefined
  readonly deliveries: Deliveries
  /** The chosen delivery and what was sent. */
  readonly chosen: { delivery: Delivery; envelope: unknown } | undefined
}

type View = ViewContext<OneWebhook>

/** One webhook: its settings, and each delivery with its attempts. */
export const webhookPage = page<OneWebhook>({
  path: '/console/webhooks/:webhookId',
  roles: rolesFrom('admin'),
  scope: 'account',
  title: (texts) => texts.developers.webhooks.title,
  lead: (at) => at.data.webhook?.url,
  actions: {
    change: {
      operation: updateWebhook,
      input: (form, at) => ({
        webhookId: at.params['webhookId'],
        url: form.text('url'),
        events: eventsOf(form),
        enabled: form.isSet('enabled'),
      }),
      done: (texts) => texts.developers.webhooks.saved,
    },
    test: {
      operation: sendTestWebhook,
      input: (_, at) => ({ webhookId: at.params['webhookId'] }),
      done: (texts) => texts.developers.webhooks.tested,
    },
    roll: {
      operation: rollWebhookSecret,
      input: (_, at) => ({ webhookId: at.params['webhookId'] }),
      done: (texts) => texts.developers.webhooks.rolled,
      show: (result, at) => <Secret at={at} title={at.texts.developers.webhooks.rolled} result={result} />,
    },
    remove: {
      operation: deleteWebhook,
      input: (_, at) => ({ webhookId: at.params['webhookId'] }),
      done: (texts) => texts.developers.webhooks.removed,
      next: () => '/console/webhooks',
    },
    redeliver: {
      operation: redeliverWebhook,
      input: (form) => ({ deliveryId: form.text('deliveryId') }),
      done: (texts) => texts.developers.webhooks.redelivered,
      next: (_, at) => at.path,
    },
  },
  async load(at) {
    const { webhooks } = await at.run(fetchWebhooks, {})
    const webhook = webhooks.find(({ webhookId }) => webhookId === at.params['webhookId'])
    if (!webhook) return { webhook, deliveries: { success: true, deliveries: [] }, chosen: undefined }
    const { webhookId } = webhook
    const status = DELIVERY_STATUSES.find((each) => each === at.query.get('status'))
    const cursor = at.query.get('cursor') ?? undefined
    const deliveries = await at.run(fetchWebhookDeliveries, {
      webhookId,
      limit: PAGE_SIZE,
      ...(status && { status }),
      ...(cursor !== undefined && { cursor }),
    })
    return { webhook, deliveries, chosen: await chosenDelivery(at, webhookId) }
  },
  view(at) {
    const t = at.texts.developers.webhooks
    const { webhook, chosen } = at.data
    if (!webhook)
      return (
        <Card>
          <EmptyState icon="info" title={t.unknown} />
          <div class="empty">
            <a class="button" href="/console/webhooks">
              {t.back}
            </a>
          </div>
        </Card>
      )
    return (
      <div class="stack wide">
        {chosen ? <ChosenDelivery at={at} delivery={chosen.delivery} envelope={chosen.envelope} /> : null}
        <Settings at={at} webhook={webhook} />
        <DeliveryList at={at} />
      </div>
    )
  },
})

/** The delivery in the address, with the event as it was sent, if both are still stored. */
async function chosenDelivery(at: PageContext, webhookId: string): Promise<OneWebhook['chosen']> {
  const eventId = at.query.get('event') ?? ''
  const deliveryId = at.query.get('delivery') ?? ''
  if (!/^\w{1,128}$/.test(eventId) || deliveryId === '') return undefined
  const { deliveries } = await at.run(fetchWebhookDeliveries, { webhookId, eventId, limit: LOOKED_AT })
  const delivery = deliveries.find((each) => each.deliveryId === deliveryId)
  if (!delivery) return undefined
  const since = new Date(Date.parse(deliveries.at(-1)?.createdAt ?? delivery.createdAt) - 60_000).toISOString()
  const { events } = await at.run(fetchWebhookEvents, { since, events: [delivery.event], limit: LOOKED_AT })
  return { delivery, envelope: events.find(({ id }) => id === eventId) }
}

function Settings({ at, webhook }: { at: View; webhook: Webhook }) {
  const t = at.texts.developers.webhooks
  const { disabledReason, failingSince, missedAt } = webhook
  const moment = (time: string) => at.formats.moment(Date.parse(time))
  const notes = [
    ...(disabledReason === undefined ? [] : [t.reasons[disabledReason]]),
    ...(failingSince === undefined ? [] : [t.failingSince(moment(failingSince))]),
    ...(missedAt === undefined ? [] : [t.missed(moment(missedAt))]),
  ]
  const form = at.form.id === formId('change', {}) ? at.form : NO_FORM
  return (
    <Card title={storeOf(at, webhook)} aside={<State at={at} webhook={webhook} />}>
      <div class="stack">
        {notes.map((note) => (
          <p>
            <strong>{note}</strong>
          </p>
        ))}
        <ActionForm at={at} action="change">
          <WebhookFields at={at} form={form} webhook={webhook} />
          <Checkbox form={form} name="enabled" label={t.enabled} {...(webhook.enabled && { value: 'yes' })} />
          <div>
            <Submit>{t.save}</Submit>
          </div>
        </ActionForm>
        <div class="row">
          {webhook.enabled ? (
            <ActionButton at={at} action="test" about={{}}>
              {t.test}
            </ActionButton>
          ) : null}
          <Confirm
            at={at}
            action="roll"
            label={t.roll}
            question={t.rollQuestion}
            explanation={t.rollText}
            confirm={t.roll}
          />
          <Confirm
            at={at}
            action="remove"
            label={t.remove}
            question={t.removeQuestion(webhook.url)}
            explanation={t.removeText}
            confirm={t.remove}
          />
        </div>
      </div>
    </Card>
  )
}

function DeliveryList({ at }: { at: View }) {
  const t = at.texts.developers.webhooks
  const { deliveries, nextCursor } = at.data.deliveries
  return (
    <>
      <FilterBar at={at}>
        <Select
          form={NO_FORM}
          name="status"
          label={t.status}
          value={at.query.get('status') ?? ''}
          choices={[
            { value: '', label: t.statuses.all },
            ...DELIVERY_STATUSES.map((value) => ({ value, label: t.statuses[value] })),
          ]}
        />
      </FilterBar>
      <Results>
        <Card title={t.deliveries} flush>
          {deliveries.length === 0 ? (
            <EmptyState icon="hook" title={t.noDeliveries} />
          ) : (
            <Table
              caption={t.deliveries}
              rows={deliveries}
              columns={[
                { label: t.event, kind: 'head', cell: (row) => <a href={hrefOf(at, row)}>{row.event}</a> },
                {
                  label: t.time,
                  cell: ({ createdAt }) => (
                    <Moment ms={Date.parse(createdAt)} text={at.formats.moment(Date.parse(createdAt))} />
                  ),
                },
                { label: t.attempts, kind: 'number', cell: ({ attempts }) => at.formats.number(attempts.length) },
                { label: t.result, cell: ({ attempts }) => resultOf(at, attempts.at(-1)) },
                { label: t.status, cell: ({ status }) => <Badge tone={TONES[status]}>{t.statuses[status]}</Badge> },
              ]}
            />
          )}
        </Card>
        <Pagination at={at} shown={deliveries.length} nextCursor={nextCursor} />
      </Results>
    </>
  )
}

function hrefOf(at: PageContext, { deliveryId, eventId }: Delivery): string {
  return `${at.path}?${new URLSearchParams({ event: eventId, delivery: deliveryId })}`
}

function resultOf(at: PageContext, attempt: Delivery['attempts'][number] | undefined): string {
  if (!attempt) return at.texts.developers.none
  return attempt.status === undefined
    ? (attempt.error ?? at.texts.developers.webhooks.noAnswer)
    : String(attempt.status)
}

function ChosenDelivery({ at, delivery, envelope }: { at: View; delivery: Delivery; envelope: unknown }) {
  const t = at.texts.developers.webhooks
  const { deliveryId, event, eventId, status, attempts, nextAttemptAt } = delivery
  const moment = (time: string) => at.formats.moment(Date.parse(time))
  return (
    <Card title={`${t.delivery}: ${event}`} aside={<Badge tone={TONES[status]}>{t.statuses[status]}</Badge>}>
      <div class="stack">
        <Pairs
          pairs={[
            [t.event, <code>{eventId}</code>],
            [t.delivery, <code>{deliveryId}</code>],
          ]}
        />
        {nextAttemptAt === undefined ? null : <p>{t.next(moment(nextAttemptAt))}</p>}
        {attempts.map((attempt) => (
          <div>
            <strong>{t.attempt(attempt.attempt, moment(attempt.at), at.formats.number(attempt.durationMs))}</strong>
            <p>{resultOf(at, attempt)}</p>
            {attempt.answer === undefined ? null : (
              <pre class="json" tabindex={0}>
                <code>{attempt.answer}</code>
              </pre>
            )}
          </div>
        ))}
        <details>
          <summary>{t.request}</summary>
          {envelope === undefined ? <p>{t.requestGone}</p> : <Json text={JSON.stringify(envelope, null, 2)} />}
        </details>
        <div class="form-foot">
          {status === 'pending' ? null : (
            <ActionButton at={at} action="redeliver" about={{ deliveryId }} main>
              {t.redeliver}
            </ActionButton>
          )}
          <a class="button" href={at.path}>
            {at.texts.frame.close}
          </a>
        </div>
      </div>
    </Card>
  )
}
