import type { z } from 'zod'
import { PACKAGES, PLATFORM_ROLE } from '../../platform/foundation/caller.ts'
import {
  approveStoreRegistration,
  fetchRegistrations,
  rejectStoreRegistration,
} from '../../sales/registrations/registration-operations.ts'
import { Badge, Card, EmptyState, Pairs, type Tone } from '../components/card.tsx'
import { Select, TextArea } from '../components/fields.tsx'
import { Confirm, formId } from '../components/form.tsx'
import { FilterBar, Pagination, Results } from '../components/table.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Registrations = z.output<typeof fetchRegistrations.response>
type Registration = Registrations['registrations'][number]
type View = ViewContext<Registrations>

const PAGE_SIZE = 50
const REASON_LENGTH = 500
const STATES = ['pending', 'approved', 'rejected'] as const
const TONES: Readonly<Record<Registration['status'], Tone>> = { pending: 'info', approved: 'ok', rejected: 'warn' }

const stateIn = (at: PageContext) => STATES.find((state) => state === at.query.get('status')) ?? 'pending'
const nameOf = ({ tradingName, companyName }: Registration) => tradingName ?? companyName

/** What merchants want of the people who run the cloud: stores and accounts. The oldest that waits is first. */
export const registrationsPage = page<Registrations>({
  path: '/console/registrations',
  roles: [PLATFORM_ROLE],
  scope: 'account',
  navigation: { group: 'platform', icon: 'check' },
  title: (texts) => texts.registrations.title,
  lead: (at) => at.texts.registrations.lead,
  actions: {
    approve: {
      operation: approveStoreRegistration,
      input: (form) => ({ registrationId: form.text('registrationId'), package: form.text('package') }),
      done: (texts) => texts.registrations.approved,
    },
    reject: {
      operation: rejectStoreRegistration,
      input: (form) => ({ registrationId: form.text('registrationId'), reason: form.text('reason') ?? '' }),
      done: (texts) => texts.registrations.rejected,
    },
  },
  load(at) {
    const status = stateIn(at)
    const cursor = at.query.get('cursor')
    return at.run(fetchRegistrations, {
      status,
      limit: PAGE_SIZE,
      ...(status !== 'pending' && { latest: true as const }),
      ...(cursor !== null && { cursor }),
    })
  },
  view(at) {
    const t = at.texts.registrations
    const { registrations, nextCursor } = at.data
    return (
      <div class="stack wide">
        <FilterBar at={at}>
          <Select
            form={NO_FORM}
            name="status"
            label={t.status}
            value={stateIn(at)}
            choices={STATES.map((value) => ({ value, label: t.states[value] }))}
          />
        </FilterBar>
        <Results>
          {registrations.length === 0 ? (
            <Card>
              <EmptyState icon="check" title={t.nothing[stateIn(at)]} />
            </Card>
          ) : (
            registrations.map((registration) => <Found at={at} registration={registration} />)
          )}
          <Pagination at={at} shown={registrations.length} nextCursor={nextCursor} />
        </Results>
      </div>
    )
  },
})

function Found({ at, registration }: { at: View; registration: Registration }) {
  const t = at.texts.registrations
  const { kind, status, submittedAt, decidedAt, reason } = registration
  const time = (iso: string) => at.formats.moment(Date.parse(iso))
  return (
    <Card title={nameOf(registration)} aside={<Badge tone={TONES[status]}>{t.states[status]}</Badge>}>
      <div class="stack">
        <p class="soft">
          {[
            t.kinds[kind],
            t.submitted(time(submittedAt)),
            ...(decidedAt === undefined ? [] : [t.decided(time(decidedAt))]),
          ].join(' · ')}
        </p>
        <Facts at={at} registration={registration} />
        {reason === undefined ? null : (
          <p>
            {t.merchantReads}: <q>{reason}</q>
          </p>
        )}
        {status === 'pending' ? <Decision at={at} registration={registration} /> : null}
      </div>
    </Card>
  )
}

function Facts({ at, registration }: { at: View; registration: Registration }) {
  const { names, noAddress, noWish, openAccount } = at.texts.registrations
  const { companyName, address, phone, contactEmail, role, package: wish, accountId } = registration
  const place = address && `${address.street}, ${address.zip} ${address.city}, ${address.country}`
  const pairs = [
    [names.company, companyName],
    [names.address, place ?? noAddress],
    [names.phone, phone],
    [names.email, contactEmail],
    [names.role, role],
    [names.package, wish ?? noWish],
    [names.account, accountId && <a href={`/console/accounts/${accountId}`}>{openAccount}</a>],
  ] as const
  return <Pairs pairs={pairs.filter(([, value]) => value !== undefined)} />
}

function Decision({ at, registration }: { at: View; registration: Registration }) {
  const t = at.texts.registrations
  const { registrationId, kind, address, package: wish } = registration
  const about = { registrationId }
  const formOf = (action: string) => (at.form.id === formId(action, about) ? at.form : NO_FORM)
  const name = nameOf(registration)
  return (
    <div class="form-foot">
      <Confirm
        at={at}
        action="approve"
        about={about}
        label={t.approve}
        question={t.approveQuestion(name)}
        explanation={t.approveText[address === undefined ? (`${kind}Demo` as const) : kind]}
        confirm={t.approve}
        main
      >
        <Select
          form={formOf('approve')}
          id={`package-${registrationId}`}
          name="package"
          label={t.package}
          hint={t.packageHint}
          value={wish ?? 'DISCOVER'}
          choices={PACKAGES.map((value) => ({ value, label: value }))}
        />
      </Confirm>
      <Confirm
        at={at}
        action="reject"
        about={about}
        label={t.reject}
        question={t.rejectQuestion(name)}
        explanation={t.rejectText[kind]}
        confirm={t.reject}
      >
        <TextArea
          form={formOf('reject')}
          id={`reason-${registrationId}`}
          name="reason"
          label={t.reason}
          hint={t.reasonHint}
          maxlength={REASON_LENGTH}
          required
        />
      </Confirm>
    </div>
  )
}
