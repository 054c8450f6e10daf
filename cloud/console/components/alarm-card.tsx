import type { z } from 'zod'
import { ALARM_DISPOSITIONS } from '../../../policy/vocabulary.ts'
import type { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import type { PageContext, ViewContext } from '../frame/page.ts'
import { StoreOfRow } from './all-stores.tsx'
import { Badge } from './card.tsx'
import { Confirm, ActionButton, ActionForm, formId } from './form.tsx'
import { TextField } from './fields.tsx'
import { Icon } from './icons.tsx'
import { Moment } from './table.tsx'

/** An alarm as the API lists it. */
export type Alarm = z.output<typeof fetchAlarms.response>['alarms'][number]
type Disposition = NonNullable<Alarm['disposition']>

/** Path of an image of this cloud. The security policy of the page blocks images of other addresses. */
const OWN_IMAGE = /\/images\/[\w-]{43}\.(?:jpg|png|webp)$/

/** What the alarm is about, in a few words. */
export function whatOf(
  at: PageContext,
  { product, goods, reason }: Pick<Alarm, 'product' | 'goods' | 'reason'>,
): string {
  const t = at.texts.alarms
  const known = [goods?.brand, goods?.category].filter((part) => part !== undefined && part !== '').join(' ')
  return (
    product?.name ?? (known !== '' ? known : undefined) ?? (reason === 'gate_bulk_alarm' ? t.manyItems : t.unknownTag)
  )
}

/** Name of the gate. */
export function gateOf(at: PageContext, { gate }: Pick<Alarm, 'gate'>): string {
  return gate ?? at.texts.alarms.exit
}

/** Address of the page of an alarm. */
export function alarmHref(eventId: string): string {
  return `/console/alarms/${encodeURIComponent(eventId)}`
}

/** An alarm that is not disposed of, with everything that a person at the door does about it. */
export function AlarmCard({ at, alarm }: { at: ViewContext; alarm: Alarm }) {
  const { eventId, state, product, goods, occurredAt, handledByName } = alarm
  const price = product?.price ?? goods?.price
  const t = at.texts.alarms
  const ms = Date.parse(occurredAt)
  const tag = alarm.epc ?? alarm.tagUid ?? alarm.tagId
  return (
    <article class={`card alarm-card ${state === 'open' ? 'alarm' : ''}`} data-alarm={eventId}>
      <div class="alarm-goods">
        <Picture url={product?.imageUrl} />
        <div>
          <h3>
            <a href={alarmHref(eventId)}>{whatOf(at, alarm)}</a>
          </h3>
          <p class="number">
            {price === undefined ? null : <strong>{at.formats.money(price)}</strong>}
            {product?.brand === undefined ? null : ` · ${product.brand}`}
          </p>
          <p>
            {t.gate}: <GateLink at={at} alarm={alarm} /> · <Moment ms={ms} text={at.formats.ago(ms, at.nowMs)} />
          </p>
          {alarm.emergency ? <Badge tone="warn">{t.inEmergency}</Badge> : null}
          <StoreOfRow at={at} storeId={alarm.storeId} />
          {product === undefined && tag !== undefined ? <p class="sub number">{t.tag(tag)}</p> : null}
          {(alarm.times ?? 1) > 1 ? <p class="sub">{t.times(at.formats.number(alarm.times ?? 1))}</p> : null}
        </div>
        {state === 'open' ? (
          <Badge tone="alarm">{t.isNew}</Badge>
        ) : (
          <Badge tone="info">{handledByName === undefined ? t.careBySomebody : t.careBy(handledByName)}</Badge>
        )}
      </div>
      <Receipt at={at} alarm={alarm} />
      <Actions at={at} alarm={alarm} />
    </article>
  )
}

/** The gate, on the page of alarms as a link to its alarms alone. */
function GateLink({ at, alarm }: { at: ViewContext; alarm: Alarm }) {
  const name = gateOf(at, alarm)
  if (at.path !== ALARMS_PATH || !at.store || alarm.deviceId === undefined) return <>{name}</>
  return <a href={choiceHref(at, { gate: alarm.deviceId })}>{name}</a>
}

/** Names of the parameters of the address of the page of alarms that choose alarms. */
const CHOICES = ['from', 'fromTime', 'to', 'toTime', 'gate', 'cause']
const ALARMS_PATH = '/console/alarms'

/** The page of alarms with another choice, from the latest alarm on. */
export function choiceHref(at: PageContext, change: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams()
  for (const name of CHOICES) {
    const value = change[name] ?? at.query.get(name) ?? ''
    if (value !== '') query.set(name, value)
  }
  return query.size === 0 ? ALARMS_PATH : `${ALARMS_PATH}?${query}`
}

/** Small picture of the goods. */
export function Picture({ url }: { url: string | undefined }) {
  const own = url === undefined ? undefined : OWN_IMAGE.exec(url)?.[0]
  return own === undefined ? (
    <span class="alarm-picture">
      <Icon name="tag" size={32} />
    </span>
  ) : (
    <img class="alarm-picture" src={own} alt="" width={72} height={72} />
  )
}

/** Which receipt fits the goods, and whether it was paid only after the alarm; or that the goods must stay. */
export function Receipt({ at, alarm }: { at: Pick<ViewContext, 'texts' | 'formats'>; alarm: AboutGoods }) {
  const [tone, text] = receiptText(at, alarm)
  return (
    <p class={`receipt-fit ${tone}`}>
      <Icon name={tone === 'ok' ? 'check' : tone === 'warn' ? 'warning' : 'info'} size={20} />
      {text}
    </p>
  )
}

type AboutGoods = Pick<Alarm, 'receipt' | 'occurredAt' | 'detail' | 'itemStatus'>

/** The reason of a gate in the detail of its alarm (edge-agent/lanes/gate/assess-tag.ts, `explain`). */
const RECALLED = /^\w+: recalled(;|$)/

function receiptText(
  { texts: { alarms: t }, formats }: Pick<ViewContext, 'texts' | 'formats'>,
  { receipt, occurredAt, detail = '', itemStatus }: AboutGoods,
): readonly ['plain' | 'ok' | 'warn', string] {
  // A receipt does not let such goods go.
  if (RECALLED.test(detail)) return ['warn', t.recalledGoods]
  if (itemStatus === 'exception_hold') return ['warn', t.heldGoods]
  if (receipt === undefined) return ['plain', t.noReceipt]
  const paidMs = Date.parse(receipt.paidAt)
  const time = formats.clock(paidMs)
  const lateMs = paidMs - Date.parse(occurredAt)
  const span = lateMs > 0 ? formats.span(lateMs) : undefined
  if (receipt.match === 'item') return ['ok', span === undefined ? t.itemOnReceipt(time) : t.itemPaidAfter(span, time)]
  return ['warn', span === undefined ? t.productOnReceipt(time) : t.productPaidAfter(span, time)]
}

/** What a person does about an alarm that is not disposed of. */
export function Actions({ at, alarm }: { at: ViewContext; alarm: Alarm }) {
  const t = at.texts.alarms
  const { eventId, exceptionId, state, helpRequestId } = alarm
  return (
    <div class="alarm-actions">
      {state === 'open' && exceptionId !== undefined ? (
        <ActionButton at={at} action="acknowledge" about={{ exceptionId }} main>
          {t.takeCare}
        </ActionButton>
      ) : null}
      <CauseButton at={at} alarm={alarm} label={t.record} />
      {helpRequestId === undefined ? (
        <Confirm
          at={at}
          action="help"
          about={{ eventId }}
          label={t.help}
          question={t.helpQuestion}
          explanation={t.helpExplanation(gateOf(at, alarm), whatOf(at, alarm))}
          confirm={t.help}
        />
      ) : (
        <a class="button quiet" href={`/console/help?request=${helpRequestId}`}>
          <Icon name="check" size={20} /> {t.helpIsCalled}
        </a>
      )}
    </div>
  )
}

/** True if the cloud rejected what the user recorded about the alarm. */
function isRejected(at: ViewContext, { eventId }: Pick<Alarm, 'eventId'>): boolean {
  return at.form.id === formId('dispose', { eventId })
}

/**
 * The question about an alarm again, after the cloud rejected the answer: the goods, what was recorded so far and by whom,
 * the reason, and the causes. Stands above the lists, in which the alarm may have another place now.
 */
export function RejectedCause({ at, alarms }: { at: ViewContext; alarms: readonly Alarm[] }) {
  const alarm = alarms.find((each) => isRejected(at, each))
  if (!alarm) return null
  const ms = Date.parse(alarm.occurredAt)
  const tag = alarm.epc ?? alarm.tagUid ?? alarm.tagId
  const query = at.query.size === 0 ? '' : `?${at.query}`
  return (
    <section class="card alarm-card" aria-labelledby="rejected-cause">
      <div class="alarm-goods">
        <Picture url={alarm.product?.imageUrl} />
        <div>
          <h2 id="rejected-cause">{whatOf(at, alarm)}</h2>
          <p>
            {at.texts.alarms.gate}: {gateOf(at, alarm)} · <Moment ms={ms} text={at.formats.ago(ms, at.nowMs)} />
          </p>
          {alarm.product === undefined && tag !== undefined ? (
            <p class="sub number">{at.texts.alarms.tag(tag)}</p>
          ) : null}
          <StoreOfRow at={at} storeId={alarm.storeId} />
        </div>
      </div>
      <SoFar at={at} alarm={alarm} />
      <div class="prose">
        <Causes at={at} alarm={alarm} />
      </div>
      <div>
        <a class="button" href={`${at.path}${query}`}>
          {at.texts.alarms.leaveIt}
        </a>
      </div>
    </section>
  )
}

/** Opens the question what caused the alarm. After a rejection `RejectedCause` has the question. */
export function CauseButton({ at, alarm, label }: { at: ViewContext; alarm: Alarm; label: string }) {
  const t = at.texts.alarms
  const { eventId } = alarm
  if (isRejected(at, alarm)) return null
  const id = `cause-${eventId.replaceAll(/[^\w-]/g, '-')}`
  return (
    <>
      <button type="button" class="button" popovertarget={id}>
        {label}
      </button>
      <div
        id={id}
        class="popover confirm"
        popover="auto"
        role="dialog"
        aria-labelledby={`${id}-title`}
        data-meanwhile={t.meanwhile}
      >
        <h2 id={`${id}-title`}>{t.what}</h2>
        <p>{whatOf(at, alarm)}</p>
        <p role="status" class="strong" data-note></p>
        <SoFar at={at} alarm={alarm} />
        <Causes at={at} alarm={alarm} />
        <button type="button" class="button wide" popovertarget={id} popovertargetaction="hide">
          {at.texts.frame.cancel}
        </button>
      </div>
    </>
  )
}

/** The recorded causes with their people and times, the latest first. */
function SoFar({ at, alarm }: { at: ViewContext; alarm: Alarm }) {
  const t = at.texts.alarms
  const { disposition, disposedAt, recoveredValue, handledByName, operatorId, earlier = [] } = alarm
  if (disposition === undefined || disposedAt === undefined) return null
  const line = (
    each: { disposition: Disposition; disposedAt: string; recoveredValue?: number | undefined },
    by?: string,
  ) =>
    [
      t.causes[each.disposition],
      ...(each.recoveredValue === undefined ? [] : [at.formats.money(each.recoveredValue)]),
      by ?? '',
      at.formats.moment(Date.parse(each.disposedAt)),
    ]
      .filter((part) => part !== '')
      .join(' · ')
  return (
    <div>
      <p>
        <strong data-decided>
          {t.soFar(line({ disposition, disposedAt, recoveredValue }, handledByName ?? operatorId))}
        </strong>
      </p>
      {earlier.map((each) => (
        <p class="sub">{t.before(line(each, each.name ?? each.operatorId))}</p>
      ))}
    </div>
  )
}

/**
 * One button for each cause, so that the second tap ends the alarm. The value belongs to theft only, so it stands beside
 * that button.
 */
function Causes({ at, alarm: { eventId, disposedAt } }: { at: ViewContext; alarm: Alarm }) {
  const t = at.texts.alarms
  const isOwn = at.form.id === formId('dispose', { eventId })
  return (
    <ActionForm at={at} action="dispose" about={{ eventId }}>
      <input type="hidden" name="seen" value={disposedAt ?? 'none'} />
      <div class="alarm-theft">
        <TextField
          form={isOwn ? at.form : { ...at.form, id: undefined, values: {}, errors: {} }}
          id={`value-${eventId}`}
          name="recoveredValue"
          label={t.recoveredValue}
          hint={t.recoveredHint}
          inputmode="decimal"
        />
        <button type="submit" class="button wide" name="disposition" value="real">
          {t.causes.real}
        </button>
      </div>
      <div class="alarm-causes">
        {ALARM_DISPOSITIONS.filter((value) => value !== 'real').map((value) => (
          <button type="submit" class="button wide" name="disposition" value={value}>
            {t.causes[value]}
          </button>
        ))}
      </div>
    </ActionForm>
  )
}
