import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import { faultsOf, type Credentials } from '../../sales/integrations/connection.ts'
import { findConnector } from '../../sales/integrations/connectors.ts'
import { fetchIntegrations } from '../../sales/integrations/read-operations.ts'
import { syncERP, syncPOS } from '../../sales/integrations/sync-operations.ts'
import { ERP_SYSTEMS, POS_SYSTEMS, type Side, type SystemName } from '../../sales/integrations/connector.ts'
import { configurePSP } from '../../sales/payments/configure-psp.ts'
import { PROVIDER_NAMES, providerNamed } from '../../sales/payments/providers.ts'
import { resolveReference, schemaWriter } from '../../../policy/json-schema.ts'
import { Badge, Card, EmptyState, Pairs } from '../components/card.tsx'
import { Select, TextArea, TextField } from '../components/fields.tsx'
import { ActionButton, ActionForm, Submit } from '../components/form.tsx'
import { Notice } from '../components/notice.tsx'
import { List } from '../components/table.tsx'
import { jsonOf, NO_FORM, type FormFields, type FormState } from '../frame/form.ts'
import { page, type ConsolePage, type ViewContext } from '../frame/page.ts'

type Integrations = z.output<typeof fetchIntegrations.response>
type System = Integrations['systems'][number]
type Synced = z.output<typeof syncPOS.response>

const PATH = '/console/integrations'
const MANAGERS = rolesFrom('manager')
const ADMINS = rolesFrom('admin')
/** Errors of a round that the page shows. */
const ERRORS_SHOWN = 50
/** `custom` is a synonym of `generic`. */
const SYSTEMS = { pos: POS_SYSTEMS, erp: ERP_SYSTEMS }
const namesOf = (side: Side) => SYSTEMS[side].filter((name) => name !== 'custom')

interface Setting {
  readonly name: string
  readonly isRequired: boolean
  readonly isText: boolean
  /** The values that it may have; empty if any. */
  readonly choices: readonly string[]
}

/** The settings of a provider or system, from its schema. Those for tests of untag are left out. */
function settingsIn(schema: z.ZodType, leftOut: readonly string[] = []): Setting[] {
  const { components, write } = schemaWriter()
  const whole = resolveReference(write(schema, 'input'), components)
  return Object.entries(whole.properties ?? {}).flatMap(([name, field]) => {
    const isRequired = whole.required?.includes(name) === true
    if (leftOut.includes(name) && !isRequired) return []
    const { type, enum: choices = [] } = resolveReference(field, components)
    return { name, isRequired, isText: type === 'string', choices: choices.map(String) }
  })
}

/** True for settings that a person must not see again. */
const isSecret = ({ name }: Setting) => /secret|password|token|key$/i.test(name)

const inputName = (name: string) => `s.${name}`
/** The field of the form to which the path of an error belongs. */
const fieldOf = (path: string) => path.replace(/^(?:config|credentials)\.(\w+).*$/, 's.$1')

/**
 * Settings of a system, checked before they are sent: the sandbox takes all of them. Throws 400 with the names of the
 * wrong ones.
 */
function credentialsIn(form: FormFields): Record<string, unknown> {
  const [kind, name] = [form.text('kind') ?? null, form.text('name') ?? null]
  const credentials = valuesOf(form, setUpIn(kind, name)?.settings ?? [])
  const connector = name === null ? undefined : findConnector(name as SystemName, sideIn(kind ?? undefined))
  const details = connector ? faultsOf(connector, credentials as Credentials) : []
  if (details.length === 0) return credentials
  const marked = details.map((detail) =>
    /^credentials\.mapping\b/.test(detail.path) ? { ...detail, code: 'mapping' } : detail,
  )
  throw new Failure('invalid-argument', 'check the settings of the system', { details: marked })
}

/** The form with an error about all settings at the secret ones: a system does not say which of them is wrong. */
function markSecrets(form: FormState, settings: readonly Setting[]): FormState {
  const error = form.errors['credentials']
  if (error === undefined) return form
  const secrets = settings.filter((setting) => isSecret(setting) && setting.isRequired)
  const wrong = secrets.length > 0 ? secrets : settings.filter(isSecret)
  const errors = Object.fromEntries(wrong.map(({ name }) => [inputName(name), error]))
  return { ...form, errors: { ...errors, ...form.errors } }
}

function valuesOf(form: FormFields, settings: readonly Setting[]): Record<string, unknown> {
  return Object.fromEntries(
    settings.flatMap(({ name, isText }) => {
      const text = form.text(inputName(name))
      return text === undefined ? [] : [[name, isText ? text : jsonOf(text)]]
    }),
  )
}

const sideIn = (text: string | undefined): Side => (text === 'erp' ? 'erp' : 'pos')
const syncOf = (side: Side) => (side === 'pos' ? syncPOS : syncERP)

/** What the store is connected to: its payment provider, its till and ERP systems, and how the last rounds went. */
export const integrationsPage = page<Integrations | undefined>({
  path: PATH,
  roles: MANAGERS,
  scope: 'store',
  navigation: { group: 'settings', icon: 'hook' },
  title: (texts) => texts.integrations.title,
  lead: (at) => at.texts.integrations.lead,
  actions: {
    syncPos: {
      operation: syncPOS,
      input: (form) => ({ storeId: form.text('storeId'), system: form.text('system') }),
      done: (texts) => texts.integrations.synced,
      show: (result, at) => <Result at={at} result={result as Synced} />,
    },
    syncErp: {
      operation: syncERP,
      input: (form) => ({ storeId: form.text('storeId'), system: form.text('system') }),
      done: (texts) => texts.integrations.synced,
      show: (result, at) => <Result at={at} result={result as Synced} />,
    },
  },
  load: (at) => at.runIfAllowed(fetchIntegrations, { storeId: at.store?.storeId ?? '' }),
  view(at) {
    const t = at.texts.integrations
    const { data } = at
    if (!data)
      return (
        <Card>
          <EmptyState icon="info" title={t.needsPackage} />
        </Card>
      )
    return (
      <div class="stack wide">
        {at.mode === 'test' ? <Notice tone="info" title={t.sandbox} /> : null}
        <Provider at={at} provider={data.provider} />
        {(['pos', 'erp'] as const).map((side) => (
          <Systems at={at} side={side} systems={data.systems.filter((system) => system.side === side)} />
        ))}
      </div>
    )
  },
})

function Provider({ at, provider }: { at: ViewContext; provider: Integrations['provider'] }) {
  const t = at.texts.integrations
  const names: Readonly<Record<string, string>> = t.names
  return (
    <Card title={t.provider}>
      <div class="stack">
        {provider ? (
          <Pairs
            pairs={[
              [t.name, <strong>{names[provider.provider] ?? provider.provider}</strong>],
              [t.since, at.formats.moment(Date.parse(provider.configuredAt))],
              [t.notificationUrl, <code>{provider.notificationUrl}</code>],
            ]}
          />
        ) : (
          <p>{t.noProvider}</p>
        )}
        {at.has(ADMINS) ? (
          <Chosen at={at} label={provider ? t.changeProvider : t.setUp} kind="psp" names={PROVIDER_NAMES} />
        ) : null}
      </div>
    </Card>
  )
}

/** Chooses what is set up. A form without scripts that leads to the page of the settings. */
function Chosen({
  at,
  label,
  kind,
  names,
}: {
  at: ViewContext
  label: string
  kind: string
  names: readonly string[]
}) {
  const t = at.texts.integrations
  const known: Readonly<Record<string, string>> = t.names
  return (
    <form class="filters" method="get" action={`${PATH}/set-up`}>
      <input type="hidden" name="kind" value={kind} />
      <Select
        form={NO_FORM}
        id={`choose-${kind}`}
        name="name"
        label={label}
        value={names[0] ?? ''}
        choices={names.map((value) => ({ value, label: known[value] ?? value }))}
      />
      <button type="submit" class="button">
        {t.next}
      </button>
    </form>
  )
}

function Systems({ at, side, systems }: { at: ViewContext; side: Side; systems: readonly System[] }) {
  const t = at.texts.integrations
  return (
    <Card title={t.sides[side]}>
      <div class="stack">
        {systems.length === 0 ? <p>{t.noSystem[side]}</p> : null}
        <List>
          {systems.map((system) => (
            <SystemRow at={at} system={system} />
          ))}
        </List>
        <Chosen at={at} label={t.setUp} kind={side} names={namesOf(side)} />
      </div>
    </Card>
  )
}

function SystemRow({ at, system }: { at: ViewContext; system: System }) {
  const t = at.texts.integrations
  const names: Readonly<Record<string, string>> = t.names
  const about = { storeId: at.store?.storeId ?? '', system: system.system }
  return (
    <li>
      <div>
        <strong>{names[system.system] ?? system.system}</strong>
        {system.rounds.length === 0 ? <span class="sub">{t.never}</span> : null}
        {system.rounds.map(({ dataType, updatedAt, isComplete, taken, failed }) => (
          <span class="sub">
            {t.types[dataType]}: {at.formats.moment(Date.parse(updatedAt))}, {t.taken(at.formats.number(taken))}{' '}
            {failed > 0 ? <Badge tone="warn">{t.failed(at.formats.number(failed))}</Badge> : null}
            {isComplete ? null : <Badge tone="info">{t.unfinished}</Badge>}
          </span>
        ))}
      </div>
      {system.hasCredentials ? (
        <ActionButton at={at} action={system.side === 'pos' ? 'syncPos' : 'syncErp'} about={about}>
          {t.syncNow}
        </ActionButton>
      ) : null}
      <a class="button" href={`${PATH}/set-up?kind=${system.side}&name=${system.system}`}>
        {system.hasCredentials ? t.changeSettings : t.setUp}
      </a>
    </li>
  )
}

function Result({ at, result }: { at: ViewContext; result: Synced }) {
  const t = at.texts.integrations
  const { errors, errorCount, hasMore, synced } = result
  const counts: Readonly<Record<string, string>> = t.counts
  return (
    <Card title={t.synced}>
      <div class="stack">
        <Pairs
          pairs={Object.entries(synced).map(
            ([name, count]) => [counts[name] ?? name, at.formats.number(count)] as const,
          )}
        />
        {hasMore ? <Notice tone="info" title={t.hasMore} /> : null}
        {errorCount === 0 ? null : (
          <>
            <Notice tone="warn" title={t.failed(at.formats.number(errorCount))} />
            <List>
              {errors.slice(0, ERRORS_SHOWN).map(({ ean, externalId, field, message }) => (
                <li>
                  <span>
                    {ean ?? externalId ?? ''}{' '}
                    <span class="sub" lang="en">
                      {field}: {message}
                    </span>
                  </span>
                </li>
              ))}
            </List>
          </>
        )}
        <div>
          <a class="button" href={PATH}>
            {t.back}
          </a>
        </div>
      </div>
    </Card>
  )
}

interface SetUp {
  readonly kind: 'psp' | Side
  readonly name: string
  readonly settings: readonly Setting[]
}

/** What the address names; undefined for an unknown name. */
function setUpIn(kind: string | null, name: string | null): SetUp | undefined {
  if (name === null) return undefined
  if (kind === 'psp') {
    const provider = providerNamed(name)
    return provider && { kind, name, settings: settingsIn(provider.config, ['baseUrl']) }
  }
  if (kind !== 'pos' && kind !== 'erp') return undefined
  const connector = namesOf(kind).some((each) => each === name) ? findConnector(name as SystemName, kind) : undefined
  return connector && { kind, name, settings: settingsIn(connector.credentials) }
}

/** Settings of a provider or system. They are stored sealed, and never shown again. */
export const integrationSetUpPage: ConsolePage = page<SetUp | undefined>({
  path: `${PATH}/set-up`,
  roles: MANAGERS,
  scope: 'store',
  title: (texts) => texts.integrations.setUp,
  lead: (at) => at.store?.tradingName,
  actions: {
    provider: {
      operation: configurePSP,
      roles: ADMINS,
      input: (form, at) => ({
        storeId: at.store?.storeId,
        provider: form.text('name'),
        config: valuesOf(form, setUpIn('psp', form.text('name') ?? null)?.settings ?? []),
      }),
      fieldOf,
      done: (texts) => texts.integrations.saved,
      next: () => PATH,
    },
    connect: {
      operation: (at) => syncOf(sideIn(at.query.get('kind') ?? undefined)),
      input: (form, at) => ({
        storeId: at.store?.storeId,
        system: form.text('name'),
        credentials: credentialsIn(form),
      }),
      fieldOf,
      done: (texts) => texts.integrations.synced,
      show: (result, at) => <Result at={at} result={result as Synced} />,
    },
  },
  load: (at) => Promise.resolve(setUpIn(at.query.get('kind'), at.query.get('name'))),
  view(at) {
    const t = at.texts.integrations
    const { data } = at
    const names: Readonly<Record<string, string>> = t.names
    const back = (
      <a class="button" href={PATH}>
        {t.back}
      </a>
    )
    if (!data)
      return (
        <Card>
          <EmptyState icon="info" title={t.unknown} />
          <div class="empty">{back}</div>
        </Card>
      )
    const { kind, name, settings } = data
    if (kind === 'psp' && !at.has(ADMINS))
      return (
        <Card>
          <EmptyState icon="info" title={t.adminsOnly} />
          <div class="empty">{back}</div>
        </Card>
      )
    return (
      <Card title={names[name] ?? name}>
        <ActionForm at={at} action={kind === 'psp' ? 'provider' : 'connect'} about={{ kind, name }}>
          <p class="soft">{kind === 'psp' ? t.providerText : t.systemText}</p>
          {kind !== 'psp' && at.mode === 'test' ? <Notice tone="info" title={t.notStored} /> : null}
          {settings.map((setting) => (
            <SettingField at={at} form={markSecrets(at.form, settings)} setting={setting} />
          ))}
          <div class="form-foot">
            <Submit>{kind === 'psp' ? t.save : t.connect}</Submit>
            {back}
          </div>
        </ActionForm>
      </Card>
    )
  },
})

function SettingField({ at, form, setting }: { at: ViewContext; form: FormState; setting: Setting }) {
  const t = at.texts.integrations
  const { name, isRequired, isText, choices } = setting
  const known: Readonly<Record<string, string>> = t.settings
  const label = `${known[name] ?? name}${isRequired ? '' : ` (${t.optional})`}`
  const props = { form, name: inputName(name), label, required: isRequired }
  if (!isText) return <TextArea {...props} hint={t.mappingHint} rows={4} />
  const words: Readonly<Record<string, string>> = t.choices
  if (choices.length > 0)
    return (
      <Select
        {...props}
        value=""
        choices={[
          ...(isRequired ? [] : [{ value: '', label: t.notChosen }]),
          ...choices.map((value) => ({ value, label: words[value] ?? value })),
        ]}
      />
    )
  return <TextField {...props} type={isSecret(setting) ? 'password' : 'text'} autocomplete="off" />
}
