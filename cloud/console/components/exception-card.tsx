import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { acknowledgeException, type fetchExceptions } from '../../protection/records/exception-operations.ts'
import { resolveAgentFork, revokeAgent } from '../../protection/agents/administration/agent-operations.ts'
import { resolveRedemption } from '../../protection/redeem/resolve-redemption.ts'
import type { PageAction, PageContext, ViewContext } from '../frame/page.ts'
import { NO_FORM } from '../frame/form.ts'
import { inStore, StoreOfRow } from './all-stores.tsx'
import { Badge, Card, Pairs } from './card.tsx'
import { shortId } from './device-label.ts'
import { emergencyText, type ActiveEmergencies } from './emergency.tsx'
import { TextField } from './fields.tsx'
import { FIX_PAGES, FIXES, isKnownKind, type FixPage } from './fixes.ts'
import { ActionButton, ActionForm, Confirm, formId, Submit } from './form.tsx'

export type Exception = z.output<typeof fetchExceptions.response>['exceptions'][number]

const ADMINS = rolesFrom('admin')
const MANAGERS = rolesFrom('manager')
const STAFF = rolesFrom('associate')

/** Actions of every page that shows exceptions. */
export const EXCEPTION_ACTIONS = {
  acknowledge: {
    operation: acknowledgeException,
    roles: STAFF,
    input: (form) => ({ exceptionId: form.text('exceptionId'), note: form.text('note') }),
    done: (texts) => texts.exceptions.acknowledged,
  },
  resolve: {
    operation: resolveRedemption,
    roles: MANAGERS,
    input: (form) => ({ redemptionId: form.text('redemptionId'), outcome: form.text('outcome') }),
    done: (texts) => texts.exceptions.resolved,
  },
  trust: {
    operation: resolveAgentFork,
    roles: ADMINS,
    input: (form) => ({ agentId: form.text('agentId'), decision: 'trust' }),
    done: (texts) => texts.agents.trusted,
  },
  revoke: {
    operation: revokeAgent,
    roles: ADMINS,
    input: (form) => ({ agentId: form.text('agentId') }),
    done: (texts) => texts.agents.revoked,
  },
} as const satisfies Readonly<Record<string, PageAction>>

/** An exception with what to do about it. `active`: emergencies that run now. */
export function ExceptionCard({
  at,
  exception,
  active,
}: {
  at: ViewContext
  exception: Exception
  active: ActiveEmergencies
}) {
  const t = at.texts.exceptions
  const { kind, raisedAt, times, acknowledgedBy, note, state } = exception
  const emergency = emergencyText(at, exception)
  const isActive = exception.emergency !== undefined && exception.emergency.endedAt === undefined
  // The same agent may have a new emergency by now.
  const isEarlier = kind === 'emergency_ended' && active.some(({ agentName }) => agentName === exception.agentName)
  const title = isKnownKind(kind) ? at.texts.exceptionTitles[kind] : t.unknownKind
  const details: (readonly [string, string | undefined])[] = [
    [t.code, kind],
    [t.subject, exception.subject],
    [t.deviceId, exception.deviceId],
  ]
  return (
    <Card
      title={isEarlier ? t.earlierEmergency : title}
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
        <div>
          <strong>{t.whatToDo}</strong>
          <p>{isKnownKind(kind) ? at.texts.exceptionSteps[kind] : t.unknownSteps}</p>
        </div>
        {state === 'open' ? <FixOf at={at} exception={exception} /> : null}
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
function Concerned({ at, exception }: { at: PageContext; exception: Exception }) {
  const { deviceId, deviceName, agentName, storeId } = exception
  const device = deviceId === undefined ? undefined : (deviceName ?? shortId(deviceId))
  const named = [
    [at.texts.exceptions.device, device, `/console/agents/${deviceId}`],
    [at.texts.agents.agent, agentName, '/console/agents'],
  ] as const
  return (
    <>
      {named.map(([label, name, path]) =>
        name === undefined ? null : (
          <p>
            <strong>
              {label}: {at.opens('/console/agents') ? <a href={inStore(at, path, storeId)}>{name}</a> : name}
            </strong>
          </p>
        ),
      )}
    </>
  )
}

/** Buttons and links that mend an open exception, and the form that ends it. */
function FixOf({ at, exception }: { at: ViewContext; exception: Exception }) {
  const t = at.texts.exceptions
  const { exceptionId, purchaseId } = exception
  const about = { exceptionId }
  const form = at.form.id === formId('acknowledge', about) ? at.form : NO_FORM
  const fix = isKnownKind(exception.kind) ? FIXES[exception.kind] : undefined
  const page = fix?.by === 'page' ? fix.page : purchaseId === undefined ? undefined : 'purchase'
  return (
    <>
      <div class="row">
        {fix?.by === 'button' ? BUTTONS[fix.button]({ at, exception }) : null}
        {page === undefined ? null : <FixLink at={at} exception={exception} page={page} />}
      </div>
      {at.has(STAFF) ? (
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

/** Leads to the page that mends it, unless the exception does not name what the page is about. */
function FixLink({ at, exception, page }: { at: PageContext; exception: Exception; page: FixPage }) {
  const href = fixHref(exception, page)
  // Pages of one device or operation are opened by whoever opens their list.
  const [, list = ''] = /^(\/console\/[\w-]+(?:\/import)?)/.exec(FIX_PAGES[page]) ?? []
  if (href === undefined || !at.opens(list)) return null
  return (
    <a class="button" href={inStore(at, href, exception.storeId)}>
      {at.texts.exceptions.openPage[page]}
    </a>
  )
}

/** Address of the page that mends an exception; undefined if the exception lacks a field that the address needs. */
export function fixHref(exception: Pick<Exception, 'deviceId' | 'purchaseId'>, page: FixPage): string | undefined {
  const [path = '', name] = FIX_PAGES[page].split(':')
  if (name === undefined) return path
  const value = name === 'deviceId' ? exception.deviceId : exception.purchaseId
  return value === undefined ? undefined : `${path}${value}`
}

interface ButtonProps {
  at: ViewContext
  exception: Exception
}

const BUTTONS = { tag: TagButtons, fork: ForkButtons, revoke: RevokeButton } as const

function TagButtons({ at, exception: { subject } }: ButtonProps) {
  const t = at.texts.exceptions
  if (!at.has(MANAGERS)) return null
  return (
    <>
      {([['confirmed', t.isOff] as const, ['failed', t.isOn] as const] as const).map(([outcome, label]) => (
        <ActionButton at={at} action="resolve" about={{ redemptionId: subject, outcome }} main>
          {label}
        </ActionButton>
      ))}
    </>
  )
}

function ForkButtons({ at, exception: { agentId, agentName: name = '', exceptionId } }: ButtonProps) {
  return agentId === undefined ? null : <AgentButtons at={at} about={{ agentId, exceptionId }} name={name} isForked />
}

function RevokeButton({ at, exception: { agentId, agentName: name = '', exceptionId } }: ButtonProps) {
  return agentId === undefined ? null : <AgentButtons at={at} about={{ agentId, exceptionId }} name={name} />
}

/** Buttons that revoke an agent, or let one of its two machines continue. `about`: differs for each place of a page. */
export function AgentButtons({
  at,
  about,
  name,
  isForked = false,
}: {
  at: ViewContext
  about: { readonly agentId: string; readonly exceptionId?: string }
  name: string
  isForked?: boolean
}) {
  const t = at.texts.agents
  if (!at.has(ADMINS)) return null
  return (
    <>
      {isForked ? (
        <Confirm
          at={at}
          action="trust"
          about={about}
          label={t.trust}
          question={t.trustQuestion(name)}
          explanation={t.trustText}
          confirm={t.trustConfirm}
        />
      ) : null}
      <Confirm
        at={at}
        action="revoke"
        about={about}
        label={t.revoke}
        question={t.revokeQuestion(name)}
        explanation={t.revokeText}
        confirm={t.revoke}
      />
    </>
  )
}
