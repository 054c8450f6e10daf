import { rolesFrom } from '../../platform/foundation/caller.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { callHelpToAlarm } from '../../protection/records/alarm-queries.ts'
import { disposeAlarm } from '../../protection/records/dispose-alarm.ts'
import { acknowledgeException } from '../../protection/records/exception-operations.ts'
import {
  Actions,
  CauseButton,
  gateOf,
  Picture,
  Receipt,
  RejectedCause,
  whatOf,
  type Alarm,
} from '../components/alarm-card.tsx'
import { nameOfStore } from '../components/all-stores.tsx'
import { Badge, Card, EmptyState, Pairs } from '../components/card.tsx'
import { Live } from '../components/live.tsx'
import { Moment, Timeline, type TimelineEntry } from '../components/table.tsx'
import { page, type PageAction, type ViewContext } from '../frame/page.ts'

/** What a person does about one alarm. */
export const alarmActions = {
  acknowledge: {
    operation: acknowledgeException,
    input: (form) => ({ exceptionId: form.text('exceptionId') }),
    done: (texts) => texts.alarms.takenCare,
  },
  dispose: {
    operation: disposeAlarm,
    input(form) {
      const disposition = form.text('disposition')
      const recoveredValue = disposition === 'real' ? form.number('recoveredValue') : undefined
      return {
        eventId: form.text('eventId'),
        disposition,
        ...(recoveredValue !== undefined && { recoveredValue }),
        seen: form.text('seen'),
      }
    },
    done: (texts) => texts.alarms.saved,
  },
  help: {
    operation: callHelpToAlarm,
    input: (form) => ({ eventId: form.text('eventId') }),
    done: (texts) => texts.alarms.helpCalled,
  },
} satisfies Record<string, PageAction>

/** One alarm: what happened, the goods, and what people did about it. */
export const alarmPage = page<Alarm | undefined>({
  path: '/console/alarms/:eventId',
  roles: rolesFrom('associate'),
  scope: 'stores',
  live: ['protection', 'payments', 'scan and go', 'assistance'],
  title: (texts) => texts.alarms.one,
  actions: alarmActions,
  async load(at) {
    const about = { ...(at.store && { storeId: at.store.storeId }), eventId: at.params['eventId'] ?? '' }
    return (await at.runIfAllowed(fetchAlarms, about))?.alarms[0]
  },
  view: (at) => (
    <div class="stack wide">
      {at.data === undefined ? (
        <Card>
          <EmptyState icon="alarm" title={at.texts.alarms.notHere}>
            {at.texts.alarms.notHereText}
          </EmptyState>
        </Card>
      ) : (
        <>
          <RejectedCause at={at} alarms={[at.data]} />
          <Live at={at} id="alarm">
            <Goods at={at} alarm={at.data} />
            <Card title={at.texts.alarms.whatHappened}>
              <Timeline entries={historyOf(at, at.data)} formats={at.formats} />
            </Card>
          </Live>
        </>
      )}
      <p>
        <a class="button" href="/console/alarms">
          {at.texts.alarms.all}
        </a>{' '}
        {at.data !== undefined && at.opens('/console/rules/decisions') ? (
          <a class="button" href={whyHref(at.data)}>
            {at.texts.decisions.title}
          </a>
        ) : null}
      </p>
    </div>
  ),
})

/** The decision behind an alarm, in its store. */
function whyHref({ eventId, storeId }: Alarm): string {
  return `/console/rules/decisions?${new URLSearchParams({ q: eventId, store: storeId })}`
}

function Goods({ at, alarm }: { at: ViewContext; alarm: Alarm }) {
  const t = at.texts.alarms
  const { product, receipt, state, itemStatus, times = 1 } = alarm
  const ms = Date.parse(alarm.occurredAt)
  const deviceId = alarm.deviceId ?? ''
  const pairs = [
    [at.texts.frame.store, nameOfStore(at, alarm.storeId)],
    [t.time, <Moment ms={ms} text={at.formats.moment(ms)} />],
    [t.gate, at.opens('/console/agents') ? <a href={`/console/agents/${deviceId}`}>{gateOf(at, alarm)}</a> : undefined],
    [t.price, product && at.formats.money(product.price)],
    [t.tagNumber, alarm.epc ?? alarm.tagUid ?? alarm.tagId],
    [t.itemStatus, itemStatus && t.itemStatuses[itemStatus]],
    [t.alarmsOfTag, times > 1 ? at.formats.number(times) : undefined],
  ] as const
  return (
    <article class={`card alarm-card ${state === 'open' ? 'alarm' : ''}`}>
      <div class="alarm-goods">
        <Picture url={product?.imageUrl} />
        <h2>{whatOf(at, alarm)}</h2>
        {state === 'open' ? <Badge tone="alarm">{t.isNew}</Badge> : null}
      </div>
      {alarm.emergency ? (
        <p>
          <Badge tone="warn">{t.inEmergency}</Badge>
        </p>
      ) : null}
      <Pairs pairs={pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))} />
      <Receipt at={at} alarm={alarm} />
      {receipt !== undefined && at.opens('/console/purchases') ? (
        <a class="button" href={`/console/purchases?purchase=${receipt.purchaseId}`}>
          {t.openPurchase}
        </a>
      ) : null}
      {state === 'disposed' ? (
        <div>
          <CauseButton at={at} alarm={alarm} label={t.correct} />
        </div>
      ) : (
        <Actions at={at} alarm={alarm} />
      )}
    </article>
  )
}

/** The alarm, and what people did about it, in the order of their times. */
function historyOf(at: ViewContext, alarm: Alarm): TimelineEntry[] {
  const t = at.texts.alarms
  const { acknowledgedAt, earlier = [], disposition, disposedAt, handledByName, operatorId, recoveredValue } = alarm
  const titles: Readonly<Record<string, string>> = at.texts.exceptionTitles
  const raised = {
    atMs: Date.parse(alarm.occurredAt),
    title: titles[alarm.reason] ?? t.one,
    text: gateOf(at, alarm),
    tone: 'warn' as const,
  }
  const causes =
    disposition === undefined || disposedAt === undefined
      ? []
      : [...earlier, { disposition, disposedAt, recoveredValue, name: handledByName, operatorId }]
  const decided = causes.map((each): TimelineEntry => {
    const value = each.recoveredValue === undefined ? [] : [`${t.recovered}: ${at.formats.money(each.recoveredValue)}`]
    return {
      atMs: Date.parse(each.disposedAt),
      title: t.causes[each.disposition],
      text: [each.name ?? each.operatorId, ...value].join(' · '),
      tone: each.disposedAt === disposedAt ? 'ok' : 'plain',
    }
  })
  // The first cause also acknowledges the alarm.
  const isOwnStep = acknowledgedAt !== undefined && causes.every((each) => each.disposedAt !== acknowledgedAt)
  const by = alarm.acknowledgedByName
  const taken = isOwnStep
    ? [
        {
          atMs: Date.parse(acknowledgedAt),
          title: by === undefined ? t.careBySomebody : t.careBy(by),
          tone: 'info' as const,
        },
      ]
    : []
  return [raised, ...taken, ...decided].toSorted((a, b) => a.atMs - b.atMs)
}
