import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { fetchRegistrations, submitStoreRegistration } from '../../sales/registrations/registration-operations.ts'
import { insertStore, updateStore } from '../../sales/store-operations/write-stores.ts'
import { fetchStore, fetchStores } from '../../sales/store-operations/read-stores.ts'
import { COUNTRY_CODES } from '../../platform/stores/store-input.ts'
import type { Language } from '../../../policy/page-language.ts'
import { SECURITY_TAG_MODES } from '../../../policy/vocabulary.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { Badge, Card, EmptyState, type Tone } from '../components/card.tsx'
import { Checkbox, Select, TextField } from '../components/fields.tsx'
import { ActionForm, Before, isChanged, Submit } from '../components/form.tsx'
import { Notice } from '../components/notice.tsx'
import { FilterBar, List, Pagination, Results, Table } from '../components/table.tsx'
import { NO_FORM, wrongField, type FormFields, type FormState } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Stores = z.output<typeof fetchStores.response>
type Store = z.output<typeof fetchStore.response>
type Registration = z.output<typeof fetchRegistrations.response>['registrations'][number]

const PAGE_SIZE = 50
const REGISTRATIONS = 50
const ADMINS = rolesFrom('admin')
const MANAGERS = rolesFrom('manager')
const LIST = '/console/stores'
const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const
const STATES: Readonly<Record<Registration['status'], Tone>> = { pending: 'info', approved: 'ok', rejected: 'warn' }

/** Fields of a form, with the path of each in the request of an operation. */
const PATHS = {
  tradingName: 'tradingName',
  companyName: 'companyName',
  street: 'address.street',
  zip: 'address.zip',
  city: 'address.city',
  country: 'address.country',
  phone: 'phone',
  email: 'email',
  website: 'website',
  gln: 'gln',
} as const
type FieldName = keyof typeof PATHS
const FIELDS = Object.keys(PATHS) as FieldName[]
const REQUIRED: ReadonlySet<string> = new Set(['tradingName', 'companyName', 'street', 'zip', 'city', 'country'])

/** The field of the form to which the path of an error belongs. */
function fieldOf(path: string): string {
  if (path.startsWith('openingHours.')) return path.slice('openingHours.'.length)
  return FIELDS.find((name) => PATHS[name] === path) ?? path
}

const GERMAN_POSTAL_CODE = /^\d{5}$/

/** Throws 400 if a German postal code cannot be one. The forms of other countries differ too much. */
function checkPostalCode({ country, zip }: { country?: unknown; zip?: unknown }): void {
  if (country === 'DE' && typeof zip === 'string' && zip !== '' && !GERMAN_POSTAL_CODE.test(zip))
    throw wrongField(PATHS.zip, 'postal_code')
}

/** The named fields of a form in the form of the operations. */
function storeInput(form: FormFields, names: readonly FieldName[], empty: null | undefined): Record<string, unknown> {
  const input: Record<string, unknown> = {}
  const address: Record<string, unknown> = {}
  for (const name of names) {
    const value = form.text(name) ?? (REQUIRED.has(name) ? '' : empty)
    const [group, part] = PATHS[name].split('.')
    if (part !== undefined) address[part] = value
    else if (group !== undefined) input[group] = value
  }
  checkPostalCode(address)
  return { ...input, ...(Object.keys(address).length > 0 && { address }) }
}

const countryNames = new Map<Language, readonly { readonly value: string; readonly label: string }[]>()

/** All countries by their names in the language. A stored value that is none of them stays, so that nothing changes it. */
function countriesFor(language: Language, stored = '') {
  let all = countryNames.get(language)
  if (!all) {
    const names = new Intl.DisplayNames(language, { type: 'region' })
    const { compare } = new Intl.Collator(language)
    all = [...COUNTRY_CODES]
      .map((value) => ({ value, label: names.of(value) ?? value }))
      .toSorted((a, b) => compare(a.label, b.label))
    countryNames.set(language, all)
  }
  return COUNTRY_CODES.has(stored) ? all : [{ value: stored, label: stored }, ...all]
}

/** Opening hours as the operation takes them: people also write spaces, a dash, and hours of one digit. */
function hoursOf(form: FormFields, day: string): string | undefined {
  return form
    .text(day)
    ?.replace(/\s*[-–—]\s*/, '-')
    .replaceAll(/(?<!\d)\d:/g, '0$&')
}

interface StoresView {
  readonly list: Stores
  readonly registrations: readonly Registration[]
}

/** All stores, to open and to search; administrators add one, and follow its review. */
export const storesPage = page<StoresView>({
  path: LIST,
  roles: rolesFrom('viewer'),
  scope: 'account',
  navigation: { group: 'settings', icon: 'store' },
  title: (texts) => texts.stores.title,
  lead: (at) => at.texts.stores.lead,
  actions: {
    add: {
      operation: (at) => (at.mode === 'live' ? submitStoreRegistration : insertStore),
      roles: ADMINS,
      input: (form) => storeInput(form, FIELDS, undefined),
      fieldOf,
      done: (texts, mode) => (mode === 'live' ? texts.stores.submittedNow : texts.stores.added),
    },
  },
  async load(at) {
    const [city, cursor] = [at.query.get('city')?.trim() ?? '', at.query.get('cursor')]
    const list = await at.run(fetchStores, {
      limit: PAGE_SIZE,
      ...(city !== '' && { city: city.slice(0, 120) }),
      ...(cursor !== null && { cursor }),
    })
    const found = at.has(ADMINS) ? await at.runIfAllowed(fetchRegistrations, { limit: REGISTRATIONS }) : undefined
    return { list, registrations: found?.registrations ?? [] }
  },
  view: (at) => (
    <div class="stack wide">
      <Found at={at} />
      {at.data.registrations.length === 0 ? null : <Registrations at={at} />}
      {at.has(ADMINS) ? <NewStore at={at} /> : null}
    </div>
  ),
})

function Found({ at }: { at: ViewContext<StoresView> }) {
  const t = at.texts.stores
  const { stores, total, nextCursor } = at.data.list
  return (
    <>
      <FilterBar at={at}>
        <TextField form={NO_FORM} name="city" type="search" label={t.city} value={at.query.get('city') ?? ''} />
      </FilterBar>
      <Results>
        <Card flush>
          {stores.length === 0 ? (
            <EmptyState icon="store" title={t.nothing} />
          ) : (
            <Table
              caption={t.title}
              rows={stores}
              columns={[
                {
                  label: t.store,
                  kind: 'head',
                  cell: ({ storeId, tradingName }) => <a href={`${LIST}/${storeId}`}>{tradingName}</a>,
                },
                {
                  label: t.address,
                  cell: ({ address: { street, zip, city } }) => `${street}, ${zip} ${city}`,
                },
                { label: t.package, cell: (store) => <Badge>{store.package}</Badge> },
                {
                  label: t.show,
                  kind: 'actions',
                  cell: ({ storeId, tradingName }) => (
                    <a class="button" href={`/console?store=${storeId}`} aria-label={`${t.show}: ${tradingName}`}>
                      {t.show}
                    </a>
                  ),
                },
              ]}
            />
          )}
          <Pagination at={at} shown={stores.length} total={total} nextCursor={nextCursor} />
        </Card>
      </Results>
    </>
  )
}

function Registrations({ at }: { at: ViewContext<StoresView> }) {
  const t = at.texts.stores
  return (
    <Card title={t.registrations} flush>
      <List>
        {at.data.registrations.toReversed().map(({ tradingName, companyName, status, reason, submittedAt }) => (
          <li>
            <div>
              <strong>{tradingName ?? companyName}</strong>
              <span class="sub">{t.submitted(at.formats.moment(Date.parse(submittedAt)))}</span>
              {reason === undefined ? null : <span class="sub">{reason}</span>}
            </div>
            <Badge tone={STATES[status]}>{t.states[status]}</Badge>
          </li>
        ))}
      </List>
    </Card>
  )
}

function NewStore({ at }: { at: ViewContext }) {
  const t = at.texts.stores
  return (
    <Card title={t.add}>
      <Notice tone="info" title={at.mode === 'live' ? t.addLive : t.addTest} />
      <ActionForm at={at} action="add">
        <Fields at={at} form={at.form.id === 'add' ? at.form : NO_FORM} values={{ country: 'DE' }} />
        <div>
          <Submit>{at.mode === 'live' ? t.submit : t.addButton}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}

function Fields({
  at,
  form,
  values,
}: {
  at: PageContext
  form: FormState
  values: Readonly<Partial<Record<FieldName, string>>>
}) {
  const t = at.texts.stores
  const hints: Readonly<Partial<Record<FieldName, string>>> = t.hints
  const field = (name: FieldName, maxlength: number) => (
    <TextField
      form={form}
      name={name}
      label={t.fields[name]}
      {...(hints[name] !== undefined && { hint: hints[name] })}
      value={values[name] ?? ''}
      maxlength={maxlength}
      required={REQUIRED.has(name)}
    />
  )
  return (
    <>
      <div class="grid">
        {field('tradingName', 160)}
        {field('companyName', 160)}
      </div>
      {field('street', 160)}
      <div class="grid">
        {field('zip', 20)}
        {field('city', 120)}
        <Select
          form={form}
          name="country"
          label={t.fields.country}
          value={values.country}
          choices={countriesFor(at.language, values.country)}
          required
        />
      </div>
      <div class="grid">
        {field('phone', 20)}
        {field('email', 254)}
        {field('website', 2_048)}
        {field('gln', 13)}
      </div>
    </>
  )
}

/** One store: its names, address, contact, opening hours and tags. */
export const storePage = page<Store | undefined>({
  path: `${LIST}/:storeId`,
  roles: rolesFrom('viewer'),
  scope: 'account',
  title: (texts) => texts.stores.store,
  lead: (at) => at.data?.tradingName,
  actions: {
    change: {
      operation: updateStore,
      roles: MANAGERS,
      // Only what was changed, so that two people who change different fields do not undo each other.
      input(form, at) {
        const hours = DAYS.some((day) => isChanged(form, day))
        const openingHours = Object.fromEntries(
          DAYS.map((day) => [day, hoursOf(form, day)]).filter(([, time]) => time !== undefined),
        )
        const address = FIELDS.filter((name) => PATHS[name].startsWith('address.'))
        const isAddress = address.some((name) => isChanged(form, name))
        const changed = FIELDS.filter((name) => (address.includes(name) ? isAddress : isChanged(form, name)))
        return {
          storeId: at.params['storeId'],
          ...storeInput(form, changed, null),
          ...(hours && { openingHours }),
          ...(isChanged(form, 'securityTagMode') && { securityTagMode: form.text('securityTagMode') }),
          ...(isChanged(form, 'securityTagHint') && { securityTagHint: form.text('securityTagHint') ?? null }),
          ...(isChanged(form, 'hasScanAndGo') && { hasScanAndGo: form.isSet('hasScanAndGo') }),
        }
      },
      fieldOf,
      done: (texts) => texts.stores.saved,
    },
  },
  async load(at) {
    const storeId = at.params['storeId'] ?? ''
    try {
      return await at.run(fetchStore, { storeId })
    } catch (error) {
      if (!['not-found', 'invalid-argument'].includes(asFailure(error).code)) throw error
      return undefined
    }
  },
  view(at) {
    const t = at.texts.stores
    return (
      <div class="stack wide">
        <nav class="row" aria-label={t.back}>
          <a class="button" href={LIST}>
            {t.back}
          </a>
        </nav>
        {at.data ? (
          <>
            <Change at={at} store={at.data} />
            {at.has(ADMINS) ? <Closing at={at} /> : null}
          </>
        ) : (
          <Card>
            <EmptyState icon="store" title={t.unknown} />
          </Card>
        )}
      </div>
    )
  },
})

/** How a store is closed: no operation removes one, because its records are kept. */
function Closing({ at }: { at: ViewContext }) {
  const t = at.texts.stores.closing
  const steps = [
    ['/console/agents', t.agents],
    ['/console/operators', t.operators],
    ['/console/users', t.users],
    ['/console/keys', t.keys],
  ] as const
  return (
    <Card title={t.title}>
      <div class="stack">
        <p>{t.text}</p>
        <ol class="steps">
          {steps.map(([path, text]) => (
            <li>{at.opens(path) ? <a href={path}>{text}</a> : text}</li>
          ))}
        </ol>
        <p class="soft">{t.kept}</p>
      </div>
    </Card>
  )
}

function Change({ at, store }: { at: ViewContext<Store | undefined>; store: Store }) {
  const t = at.texts.stores
  const mayChange = at.has(MANAGERS)
  const values = {
    tradingName: store.tradingName,
    companyName: store.companyName,
    ...store.address,
    phone: store.phone ?? '',
    email: store.email ?? '',
    website: store.website ?? '',
    gln: store.gln ?? '',
  }
  const hours: Readonly<Record<string, string>> = store.openingHours ?? {}
  const times = Object.fromEntries(DAYS.map((day) => [day, hours[day] ?? '']))
  const tags = {
    securityTagMode: store.securityTagMode,
    securityTagHint: store.securityTagHint ?? '',
    hasScanAndGo: store.hasScanAndGo ? 'yes' : '',
  }
  const wrongDays = DAYS.filter((day) => at.form.errors[day] !== undefined)
  const hoursForm = {
    ...at.form,
    errors: { ...at.form.errors, ...Object.fromEntries(wrongDays.map((day) => [day, t.hoursRule])) },
  }
  return (
    <Card title={store.tradingName} aside={<Badge>{store.package}</Badge>}>
      <ActionForm at={at} action="change">
        <Fields at={at} form={at.form} values={values} />
        <fieldset class="field">
          <legend>{t.hours}</legend>
          <span class="hint">{t.hoursHint}</span>
          <div class="grid">
            {DAYS.map((day) => (
              <TextField form={hoursForm} name={day} label={t.days[day]} value={times[day] ?? ''} />
            ))}
          </div>
        </fieldset>
        <Select
          form={at.form}
          name="securityTagMode"
          label={t.tagMode}
          hint={t.tagModeHint}
          value={tags.securityTagMode}
          choices={SECURITY_TAG_MODES.map((value) => ({ value, label: t.tagModes[value] }))}
        />
        <TextField
          form={at.form}
          name="securityTagHint"
          label={t.tagHint}
          hint={t.tagHintText}
          value={tags.securityTagHint}
          maxlength={300}
        />
        <Checkbox
          form={at.form}
          name="hasScanAndGo"
          label={t.scanAndGo}
          value={tags.hasScanAndGo === 'yes' ? 'yes' : undefined}
        />
        <Before values={{ ...values, ...times, ...tags }} />
        {mayChange ? (
          <div>
            <Submit>{t.save}</Submit>
          </div>
        ) : (
          <Notice tone="info" title={t.readOnly} />
        )}
      </ActionForm>
    </Card>
  )
}
