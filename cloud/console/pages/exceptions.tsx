import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { acknowledgeException, fetchExceptions } from '../../protection/records/exception-operations.ts'
import { resolveRedemption } from '../../protection/redeem/resolve-redemption.ts'
import { ActiveEmergency, activeEmergencies, emergencyText, type ActiveEmergencies } from '../components/emergency.tsx'
import { StoreOfRow } from '../components/all-stores.tsx'
import { Badge, Card, Pairs, EmptyState } from '../components/card.tsx'
import { shortId } from '../components/device-label.ts'
import { Select, TextField } from '../components/fields.tsx'
import { FilterBar, Results, Pagination } from '../components/table.tsx'
import { ActionButton, ActionForm, formId, Submit } from '../components/form.tsx'
import { Live } from '../components/live.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type ViewContext } from '../frame/page.ts'

type Listing = z.output<typeof fetchExceptions.response>
type Exception = Listing['exceptions'][number]

const PAGE = 20
/** Exceptions about a release. Their subject is the id of the redemption. */
const RELEASES: ReadonlySet<string> = new Set(['outcome_unknown', 'outcome_conflict'])

/** Exceptions and unresolved releases, with an explanation of each kind. */
export const exceptionsPage = page<Partial<Listing> & { active: ActiveEmergencies }>({
  path: '/console/exceptions',
  roles: rolesFrom('viewer'),
  scope: 'stores',
  navigation: { group: 'work', icon: 'warning', tasks: ['emergency', 'release', 'refund', 'exception'] },
  live: ['protection', 'agents', 'payments'],
  title: (texts) => texts.exceptions.title,
  lead: (at) => (at.has(rolesFrom('associate')) ? at.texts.exceptions.lead : at.texts.exceptions.leadOfViewer),
  actions: {
    acknowledge: {
      operation: acknowledgeException,
      roles: rolesFrom('associate'),
      input: (form) => ({ exceptionId: form.text('exceptionId'), note: form.text('note') }),
      done: (texts) => texts.exceptions.acknowledged,
    },
    resolve: {
      operation: resolveRedemption,
      roles: rolesFrom('manager'),
      input: (form) => ({ redemptionId: form.text('redemptionId'), outcome: form.text('outcome') }),
      done: (texts) => texts.exceptions.resolved,
    },
  },
  async load(at) {
    const cursor = at.query.get('cursor') ?? undefined
    const found = await at.runIfAllowed(fetchExceptions, {
      ...(at.store && { storeId: at.store.storeId }),
      state: at.query.get('state') === 'acknowledged' ? 'acknowledged' : 'open',
      withoutAlarms: true,
      limit: PAGE,
      ...(cursor !== undefined && { cursor }),
    })
    return { ...found, active: await activeEmergencies(at) }
  },
  view(at) {
    const t = at.texts.exceptions
    const { exceptions = [], total, nextCursor } = at.data
    return (
      <>
        <FilterBar at={at}>
          <Select
            form={NO_FORM}
            name="state"
            label={at.texts.frame.state}
            value={at.query.get('state') ?? 'open'}
            choices={(['open', 'acknowledged'] as const).map((value) => ({ value, label: t.states[value] }))}
          />
        </FilterBar>
        <Results>
          <Live at={at} id="exceptions">
            <ActiveEmergency at={at} active={at.data.active} />
            {exceptions.length === 0 ? (
              <Card>
                <EmptyState title={t.nothing}>{t.nothingText}</EmptyState>
              </Card>
            ) : (
              exceptions.map((exception) => <ExceptionCard at={at} exception={exception} />)
            )}
            <Pagination at={at} shown={exceptions.length} total={total} nextCursor={nextCursor} />
          </Live>
        </Results>
      </>
    )
  },
})

function ExceptionCard({ at, exception }: { at: ViewContext<{ active: ActiveEmergencies }>; exception: Exception }) {
  const { active } = at.data
  const t = at.texts.exceptions
  const { kind, raisedAt, times, acknowledgedBy, note, state } = exception
  const emergency = emergencyText(at, exception)
  const isActive = exception.emergency !== undefined && exception.emergency.endedAt === undefined
  // The same agent may have a new emergency by now.
  const isEarlier = kind === 'emergency_ended' && active.some(({ agentName }) => agentName === exception.agentName)
  const titles: Readonly<Record<string, string>> = at.texts.exceptionTitles
  const steps: Readonly<Record<string, string>> = at.texts.exceptionSteps
  const details: (readonly [string, string | undefined])[] = [
    [t.code, kind],
    [t.subject, exception.subject],
    [t.deviceId, exception.deviceId],
  ]
  return (
    <Card
      title={isEarlier ? t.earlierEmergency : (titles[kind] ?? t.unknownKind)}
      aside={
        <Badge tone={isActive ? 'alarm' : state === 'open' ? 'warn' : 'plain'}>
          {isActive ? t.activeNow : t.states[state]}
        </Badge>
      }
    >
      <div class="stack">
        <div>
          <Concerned at={at} exception={exception} />
          <StoreOfRow at={at} storeId={exception.storeId} />
          <p>{steps[kind] ?? exception.detail}</p>
          {emergency === undefined ? null : (
            <p>
              <strong>{emergency}</strong>
            </p>
          )}
          <span class="sub">
            {t.since(at.formats.ago(Date.parse(raisedAt), at.nowMs), at.formats.number(times))}
            {times > 1 ? ` ${t.last(at.formats.ago(Date.parse(exception.lastRaisedAt), at.nowMs))}` : null}
          </span>
          {acknowledgedBy === undefined ? null : (
            <span class="sub">{t.doneBy(exception.acknowledgedByName ?? acknowledgedBy)}</span>
          )}
          {note === undefined ? null : <p>{note}</p>}
        </div>
        {state === 'open' ? <Steps at={at} exception={exception} /> : null}
        <details>
          <summary>{t.detail}</summary>
          <Pairs pairs={details.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))} />
          <p class="small">{exception.detail}</p>
        </details>
      </div>
    </Card>
  )
}

/** The device and the agent that the exception is about, with the way to their page. */
function Concerned({ at, exception }: { at: ViewContext; exception: Exception }) {
  const t = at.texts.exceptions
  const { deviceId, deviceName, agentName } = exception
  const device = deviceId === undefined ? undefined : (deviceName ?? shortId(deviceId))
  const named = [
    [t.device, device, `/console/agents/${deviceId}`],
    [at.texts.agents.agent, agentName, '/console/agents'],
  ] as const
  return (
    <>
      {named.map(([label, name, href]) =>
        name === undefined ? null : (
          <p>
            <strong>
              {label}: {at.store && at.opens('/console/agents') ? <a href={href}>{name}</a> : name}
            </strong>
          </p>
        ),
      )}
    </>
  )
}

/** What the user can do about an open exception. */
function Steps({ at, exception }: { at: ViewContext; exception: Exception }) {
  const t = at.texts.exceptions
  const { exceptionId, kind, purchaseId } = exception
  const about = { exceptionId }
  const form = at.form.id === formId('acknowledge', about) ? at.form : NO_FORM
  return (
    <>
      <div class="row">
        {RELEASES.has(kind) && at.has(rolesFrom('manager'))
          ? [['confirmed', t.isOff] as const, ['failed', t.isOn] as const].map(([outcome, label]) => (
              <ActionButton at={at} action="resolve" about={{ redemptionId: exception.subject, outcome }} main>
                {label}
              </ActionButton>
            ))
          : null}
        {purchaseId !== undefined && at.opens('/console/purchases') ? (
          <a class="button" href={`/console/purchases?purchase=${purchaseId}`}>
            {t.openPurchase}
          </a>
        ) : null}
      </div>
      {at.has(rolesFrom('associate')) ? (
        <ActionForm at={at} action="acknowledge" about={about}>
          <div class="row bottom-aligned">
            <TextField form={form} name="note" id={`note-${exceptionId}`} label={t.note} maxlength={300} />
            <Submit main={false}>{t.done}</Submit>
          </div>
        </ActionForm>
      ) : null}
    </>
  )
}
