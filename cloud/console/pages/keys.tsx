import type { z } from 'zod'
import { createApiKey, fetchApiKeys, revokeApiKey, rollApiKey } from '../../platform/accounts/key-operations.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { addDays, isDay, startOfDay } from '../../shop/analytics/store-days.ts'
import { Badge, Card, EmptyState, type Tone } from '../components/card.tsx'
import { SecretOnce } from '../components/code.tsx'
import { Choices, Select, TextField } from '../components/fields.tsx'
import { ActionForm, Confirm, formId, Submit } from '../components/form.tsx'
import { List, Pagination, rowsOfPage } from '../components/table.tsx'
import { storeNames } from '../components/all-stores.tsx'
import { NO_FORM, type FormFields } from '../frame/form.ts'
import { page, type ViewContext } from '../frame/page.ts'

type Key = z.output<typeof fetchApiKeys.response>['keys'][number]
type View = ViewContext<readonly Key[]>

const TONES: Readonly<Record<Key['status'], Tone>> = { active: 'ok', expired: 'plain', revoked: 'plain' }

/** The end of the last day in the store's time zone. A text that is no day stays, so that the operation rejects it. */
function endOf(form: FormFields): string | undefined {
  const day = form.text('expiresAt')
  return day !== undefined && isDay(day) ? new Date(startOfDay(addDays(day, 1))).toISOString() : day
}

/** Keys of programs: made, replaced and revoked here. Each secret is shown once. */
export const keysPage = page<readonly Key[]>({
  path: '/console/keys',
  roles: rolesFrom('admin'),
  scope: 'account',
  navigation: { group: 'developers', icon: 'key' },
  title: (texts) => texts.developers.keys.title,
  lead: (at) => at.texts.developers.keys.lead,
  actions: {
    create: {
      operation: createApiKey,
      input: (form) => ({
        kind: form.text('kind'),
        name: form.text('name'),
        expiresAt: endOf(form),
        ...(form.text('store_id') !== undefined && { storeIds: [form.text('store_id')] }),
      }),
      done: (texts) => texts.developers.keys.made,
      show: (result, at) => <Made at={at} result={result} title={at.texts.developers.keys.made} />,
    },
    roll: {
      operation: rollApiKey,
      input: (form) => ({ keyId: form.text('keyId'), overlapHours: form.number('overlapHours') }),
      done: (texts) => texts.developers.keys.rolled,
      show: (result, at) => <Made at={at} result={result} title={at.texts.developers.keys.rolled} />,
    },
    revoke: {
      operation: revokeApiKey,
      input: (form) => ({ keyId: form.text('keyId') }),
      done: (texts) => texts.developers.keys.revoked,
    },
  },
  load: async (at) => (await at.run(fetchApiKeys, {})).keys,
  view(at) {
    const t = at.texts.developers.keys
    const ofState = (isActive: boolean) => at.data.filter(({ status }) => (status === 'active') === isActive)
    const shown = rowsOfPage(at, [...ofState(true), ...ofState(false)])
    return (
      <div class="stack wide">
        <Card title={t.title} flush>
          {at.data.length === 0 ? (
            <EmptyState icon="key" title={t.nothing}>
              {t.nothingText}
            </EmptyState>
          ) : (
            <List>
              {shown.rows.map((key) => (
                <KeyRow at={at} apiKey={key} />
              ))}
            </List>
          )}
          <Pagination at={at} shown={shown.rows.length} total={at.data.length} nextCursor={shown.nextCursor} />
        </Card>
        <NewKey at={at} />
      </div>
    )
  },
})

function Made({ at, result, title }: { at: ViewContext; result: Record<string, unknown>; title: string }) {
  return <SecretOnce at={at} title={title} secret={String(result['key'])} back={at.texts.developers.keys.title} />
}

function KeyRow({ at, apiKey }: { at: View; apiKey: Key }) {
  const t = at.texts.developers.keys
  const { keyId, name, kind, shown, status, storeIds, createdAt, lastUsedAt, expiresAt } = apiKey
  const ago = (time: string) => at.formats.ago(Date.parse(time), at.nowMs)
  const facts = [
    t.created(ago(createdAt)),
    lastUsedAt === null ? t.unused : t.used(ago(lastUsedAt)),
    ...(expiresAt === undefined ? [] : [t.ends(at.formats.moment(Date.parse(expiresAt)))]),
  ]
  const form = at.form.id === formId('roll', { keyId }) ? at.form : NO_FORM
  return (
    <li>
      <div>
        <strong>{name}</strong> <Badge>{t.kinds[kind]}</Badge> <Badge tone={TONES[status]}>{t.states[status]}</Badge>
        <span class="sub">
          <code>{shown}</code> · {storeIds ? storeNames(at, storeIds) : at.texts.developers.allStores}
        </span>
        <span class="sub">{facts.join(' · ')}</span>
      </div>
      {status === 'active' ? (
        <div class="row">
          <Confirm
            at={at}
            action="roll"
            about={{ keyId }}
            label={t.roll}
            question={t.rollQuestion(name)}
            explanation={t.rollText}
            confirm={t.roll}
          >
            <TextField
              form={form}
              id={`overlap-${keyId}`}
              name="overlapHours"
              label={t.overlap}
              value="24"
              inputmode="numeric"
              required
            />
          </Confirm>
          <Confirm
            at={at}
            action="revoke"
            about={{ keyId }}
            label={t.revoke}
            question={t.revokeQuestion(name)}
            explanation={t.revokeText}
            confirm={t.revoke}
          />
        </div>
      ) : null}
    </li>
  )
}

function NewKey({ at }: { at: View }) {
  const t = at.texts.developers.keys
  const form = at.form.id === 'create' ? at.form : NO_FORM
  const stores = at.stores.map(({ storeId, tradingName }) => ({ value: storeId, label: tradingName }))
  return (
    <Card title={t.add}>
      <ActionForm at={at} action="create">
        <TextField form={form} name="name" label={t.name} hint={t.nameHint} maxlength={120} required />
        <Choices
          form={form}
          name="kind"
          label={t.kind}
          value="secret"
          choices={(['secret', 'publishable'] as const).map((value) => ({
            value,
            label: t.kinds[value],
            hint: t.kindHints[value],
          }))}
        />
        <Select
          form={form}
          name="store_id"
          label={t.store}
          value=""
          choices={[{ value: '', label: at.texts.developers.allStores }, ...stores]}
        />
        <TextField
          form={form}
          name="expiresAt"
          type="date"
          label={at.texts.developers.optional(t.expires)}
          hint={t.expiresHint}
        />
        <div>
          <Submit>{t.make}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}
