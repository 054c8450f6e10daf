import type { z } from 'zod'
import { ALARM_DISPOSITIONS } from '../../../policy/vocabulary.ts'
import { fetchAlarmNotices, registerAlarmNotices, removeAlarmNotices } from '../../shop/push/alarm-notices.ts'
import { dayOf } from '../../shop/analytics/store-days.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { iso } from '../../platform/operations/fields.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { disposeAlarms } from '../../protection/records/dispose-alarm.ts'
import {
  AlarmCard,
  alarmHref,
  CauseButton,
  gateOf,
  RejectedCause,
  whatOf,
  type Alarm,
} from '../components/alarm-card.tsx'
import { ActiveEmergency, activeEmergencies, type ActiveEmergencies } from '../components/emergency.tsx'
import { nameOfStore } from '../components/all-stores.tsx'
import { Card, Figures, EmptyState } from '../components/card.tsx'
import { Pagination, Table, Moment } from '../components/table.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { Icon } from '../components/icons.tsx'
import { Live } from '../components/live.tsx'
import { Notice } from '../components/notice.tsx'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'
import { alarmActions } from './alarm.tsx'
import {
  alarmChoice,
  AlarmFilter,
  ALARMS_FOUND,
  alarmsFile,
  gateChoices,
  gatesOf,
  type AlarmChoice,
  type Gate,
  type Alarms,
} from './alarm-filter.tsx'

/** Alarms that the page shows at once. */
const SHOWN_LIMIT = 20
/** Fields of the filter, which one cause for all alarms of the list repeats. */
const FILTER_FIELDS = ['deviceId', 'raisedFrom', 'raisedUntil']
/** Gates and stores that a notice names. */
const NAMES_LIMIT = 5
const DAY_MS = 24 * 3_600_000
const NO_ALARMS: Alarms = { success: true, alarms: [], total: 0 }

/** What the page shows. */
interface AlarmsView {
  readonly open: Alarms
  readonly acknowledged: Alarms
  readonly disposed: Alarms
  /** What happens now at the gate or gates, whatever days the lists show. */
  readonly now: { readonly open: Alarms; readonly inProgress: number; readonly recorded: number }
  readonly choice: AlarmChoice
  /** Undefined if the user may not read the devices, or if they are too many. */
  readonly gates: readonly Gate[] | undefined
  /** Whether this browser gets notices; undefined: the package has none. */
  readonly notices: z.output<typeof fetchAlarmNotices.response> | undefined
  readonly emergencies: ActiveEmergencies
}

/** Alarms at the exits, for the person at the door. */
export const alarmsPage = page<AlarmsView>({
  path: '/console/alarms',
  roles: rolesFrom('associate'),
  scope: 'stores',
  navigation: { group: 'work', icon: 'alarm', tasks: ['alarm'] },
  live: ['protection', 'agents', 'payments', 'scan and go', 'assistance'],
  title: (texts) => texts.alarms.title,
  lead: (at) => {
    const { lead, leadOfAll, leadOfOlder } = at.texts.alarms
    if (at.query.has('older')) return leadOfOlder
    return at.store ? lead : leadOfAll
  },
  actions: {
    ...alarmActions,
    disposeAll: {
      operation: disposeAlarms,
      input: (form, at) => ({
        storeId: at.store?.storeId,
        ...Object.fromEntries(FILTER_FIELDS.flatMap((name) => (form.text(name) ? [[name, form.text(name)]] : []))),
        until: form.text('until'),
        disposition: form.text('disposition'),
      }),
      done: (texts) => texts.alarms.savedAll,
    },
    noticesOn: {
      operation: registerAlarmNotices,
      input: (form) => ({
        endpoint: form.text('endpoint'),
        keys: { p256dh: form.text('p256dh'), auth: form.text('auth') },
      }),
      done: (texts) => texts.alarms.noticesOn,
    },
    noticesOff: { operation: removeAlarmNotices, input: () => ({}), done: (texts) => texts.alarms.noticesOff },
  },
  file: { name: (at) => `alarms-${dayOf(at.nowMs)}.csv`, text: alarmsFile },
  async load(at) {
    const choice = alarmChoice(at)
    const { filter, cause } = choice
    const ofGate = filter.deviceId === undefined ? {} : { deviceId: filter.deviceId }
    const cursor = at.query.get('cursor') ?? undefined
    const older = at.query.get('older') ?? undefined
    const read = (wanted: Wanted) => readAlarms(at, wanted)
    const open = await read({ state: 'open', ...filter, ...(older !== undefined && { cursor: older }) })
    const acknowledged = await read({ state: 'acknowledged', ...filter })
    const isOfAllDays = filter.raisedFrom === undefined && filter.raisedUntil === undefined
    return {
      open,
      acknowledged,
      now: {
        open: isOfAllDays && older === undefined ? open : await read({ state: 'open', ...ofGate }),
        inProgress: (isOfAllDays ? acknowledged : await read({ state: 'acknowledged', ...ofGate, limit: 1 })).total,
        recorded: (await read({ state: 'disposed', ...ofGate, since: iso(at.nowMs - DAY_MS), limit: 1 })).total,
      },
      choice,
      gates: await gatesOf(at),
      disposed: await read({
        state: 'disposed',
        ...filter,
        ...(cause && { disposition: cause }),
        ...(cursor !== undefined && { cursor }),
      }),
      notices: await at.runIfAllowed(fetchAlarmNotices, {}),
      emergencies: await activeEmergencies(at),
    }
  },
  view: (at) => (
    <div class="stack wide alarm-page">
      <RejectedCause
        at={at}
        alarms={[...at.data.open.alarms, ...at.data.acknowledged.alarms, ...at.data.disposed.alarms]}
      />
      <Live at={at} id="alarm-figures" also={ALARMS_FOUND}>
        <ActiveEmergency at={at} active={at.data.emergencies} />
        <Summary at={at} {...at.data} />
      </Live>
      <AlarmFilter
        at={at}
        choice={at.data.choice}
        gates={gateChoices(at, at.data.gates ?? [])}
        totals={[at.data.open.total, at.data.acknowledged.total, at.data.disposed.total]}
      />
      <Live at={at} id="alarms">
        <Unwatched at={at} gates={at.data.gates ?? []} isShort={at.data.now.open.alarms.length > 0} />
        <Open at={at} {...at.data} />
      </Live>
      <div class="alarm-settings">
        <SoundSwitch at={at} />
        <NoticeSwitch at={at} notices={at.data.notices} />
      </div>
      <Live at={at} id="alarm-history">
        <History at={at} {...at.data} />
      </Live>
    </div>
  ),
})

interface Wanted {
  readonly state: Alarm['state']
  readonly [name: string]: unknown
}

/** A page of alarms of the chosen store, or of all. */
async function readAlarms(at: PageContext, wanted: Wanted): Promise<Alarms> {
  const about = { ...(at.store && { storeId: at.store.storeId }), limit: SHOWN_LIMIT, ...wanted }
  return (await at.runIfAllowed(fetchAlarms, about)) ?? NO_ALARMS
}

/** Figures, and for the script (browser/alarms.ts) the ids of open alarms. Nothing in this part delays its refresh. */
function Summary({ at, now: { open, inProgress, recorded } }: { at: ViewContext } & AlarmsView) {
  const t = at.texts.alarms
  const { number } = at.formats
  return (
    <div data-alarms={open.alarms.map(({ eventId }) => eventId).join(' ')}>
      <h2 class="spoken">{t.summary}</h2>
      <div class="alarm-figures">
        <Figures
          figures={[
            { label: t.waiting, value: number(open.total), ...(open.total > 0 && { tone: 'alarm' }) },
            { label: t.inProgress, value: number(inProgress) },
            { label: t.recorded, value: number(recorded) },
          ]}
        />
      </div>
    </div>
  )
}

/** The switch works by browser/alarms.ts, which also shows it. */
function SoundSwitch({ at }: { at: ViewContext }) {
  const t = at.texts.alarms
  return (
    <div class="alarm-setting" data-sound hidden>
      <button type="button" class="button" aria-pressed="true">
        <Icon name="alarm" /> {t.sound}: <span data-when="on">{t.soundOn}</span>
        <span data-when="off" hidden>
          {t.soundOff}
        </span>
      </button>
      <span class="soft small" data-when="blocked" hidden>
        {t.soundHint}
      </span>
    </div>
  )
}

/** The switch works by browser/notices.ts, which also shows it if the browser has push notices. */
function NoticeSwitch({ at, notices }: { at: ViewContext; notices: AlarmsView['notices'] }) {
  const t = at.texts.alarms
  if (!notices) return null
  const { isOn, publicKey } = notices
  return (
    <div class="alarm-setting" data-notices={publicKey} data-worker={`/console/worker.js?lang=${at.language}`} hidden>
      <ActionForm at={at} action={isOn ? 'noticesOff' : 'noticesOn'}>
        {isOn ? null : ['endpoint', 'p256dh', 'auth'].map((name) => <input type="hidden" name={name} value="" />)}
        <Submit main={false}>
          <Icon name="alarm" /> {t.notices}: {isOn ? t.soundOn : t.soundOff}
        </Submit>
      </ActionForm>
      <span class="soft small" data-when="possible">
        {isOn ? t.noticesHint.on : t.noticesHint.off}
      </span>
      <span class="soft small" data-when="denied" role="status" hidden>
        {t.noticesDenied}
      </span>
      <span class="soft small" data-when="failed" role="status" hidden>
        {t.noticesFailed}
      </span>
    </div>
  )
}

/** One cause for all open alarms of the list. */
function OpenChoice({ at, open, choice }: { at: ViewContext } & AlarmsView) {
  const t = at.texts.alarms
  const total = at.formats.number(open.total)
  return (
    <div class="row alarm-choice">
      {at.store && open.total > 1 ? (
        <>
          <button type="button" class="button" popovertarget="cause-of-all">
            {t.recordAll(total)}
          </button>
          <div
            id="cause-of-all"
            class="popover confirm"
            popover="auto"
            role="dialog"
            aria-labelledby="cause-of-all-title"
          >
            <h2 id="cause-of-all-title">{t.recordAll(total)}</h2>
            <p>{t.recordAllText(total)}</p>
            <ActionForm at={at} action="disposeAll">
              {Object.entries(choice.filter).map(([name, value]) => (
                <input type="hidden" name={name} value={value} />
              ))}
              <input type="hidden" name="until" value={iso(at.nowMs)} />
              <div class="alarm-causes">
                {ALARM_DISPOSITIONS.map((value) => (
                  <button type="submit" class="button wide" name="disposition" value={value}>
                    {t.causes[value]}
                  </button>
                ))}
              </div>
            </ActionForm>
            <button type="button" class="button wide" popovertarget="cause-of-all" popovertargetaction="hide">
              {at.texts.frame.cancel}
            </button>
          </div>
        </>
      ) : null}
    </div>
  )
}

/** The way to the alarms that did not fit, and back. */
function OpenPages({ at, open }: { at: ViewContext } & Pick<AlarmsView, 'open'>) {
  const t = at.texts.alarms
  const isFirst = !at.query.has('older')
  if (isFirst && open.nextCursor === undefined) return null
  return (
    <nav class="pages" aria-label={t.openAt}>
      <span class="soft small">{t.shownOf(at.formats.number(open.alarms.length), at.formats.number(open.total))}</span>
      <span class="row">
        {isFirst ? null : (
          <a class="button" href={hrefWith(at, { older: undefined })}>
            {t.newest}
          </a>
        )}
        {open.nextCursor === undefined ? null : (
          <a class="button" href={hrefWith(at, { older: open.nextCursor })}>
            {t.older}
          </a>
        )}
      </span>
    </nav>
  )
}

/** The page with other parameters. */
function hrefWith(at: ViewContext, change: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams(at.query)
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) query.delete(name)
    else query.set(name, value)
  }
  return `${at.path}?${query}`
}

/** Stores in which no gate is registered. */
function storesWithoutGate({ store, stores }: ViewContext, gates: readonly Gate[]): readonly string[] {
  const guarded = new Set(gates.map(({ storeId }) => storeId))
  return (store ? [store] : stores).flatMap(({ storeId }) => (guarded.has(storeId) ? [] : [storeId]))
}

/**
 * Why no alarm says nothing about the goods: exits without a gate, and gates that see nothing. `isShort`: without what to
 * do, because alarms follow.
 */
function Unwatched({ at, gates, isShort }: { at: ViewContext; gates: AlarmsView['gates']; isShort: boolean }) {
  const t = at.texts.alarms
  const silent = (gates ?? []).filter(({ isWatching }) => !isWatching)
  const isBlind = silent.every(({ hasReader }) => !hasReader)
  const names = silent.slice(0, NAMES_LIMIT).map(({ name, storeId }) => {
    const store = nameOfStore(at, storeId)
    return store === undefined ? name : `${name} (${store})`
  })
  const more = silent.length - names.length
  const bare = at.store || !gates ? [] : storesWithoutGate(at, gates)
  const stores = bare.slice(0, NAMES_LIMIT).map((storeId) => nameOfStore(at, storeId) ?? storeId)
  return (
    <>
      {silent.length === 0 ? null : (
        <Notice tone="warn" title={t.notKnown(joined(names, more))}>
          {isShort ? null : isBlind ? t.noReaderText : t.notKnownText}
        </Notice>
      )}
      {bare.length === 0 ? null : (
        <p class="soft small">{t.storesWithoutGate(joined(stores, bare.length - stores.length))}</p>
      )}
    </>
  )
}

const joined = (names: readonly string[], more: number) => `${names.join(', ')}${more > 0 ? ` + ${more}` : ''}`

/** Says only of gates that watch that the goods that leave are paid. */
function NoAlarm({ at, gates }: { at: ViewContext; gates: AlarmsView['gates'] }) {
  const t = at.texts.alarms
  if (gates?.length === 0)
    return (
      <EmptyState icon="warning" title={t.unwatched}>
        {t.unwatchedText}
      </EmptyState>
    )
  const knowsStores = at.store !== undefined || at.stores.length === at.storesTotal
  if (knowsStores && gates?.every(({ isWatching }) => isWatching) && storesWithoutGate(at, gates).length === 0)
    return <EmptyState title={t.none}>{t.noneText}</EmptyState>
  return (
    <EmptyState icon="info" title={t.none}>
      {t.noneKnownText}
    </EmptyState>
  )
}

function Open(props: { at: ViewContext } & AlarmsView) {
  const { at, open, acknowledged, gates, choice } = props
  const t = at.texts.alarms
  // One order for both, so that an acknowledged alarm stays in its place.
  const alarms = [...open.alarms, ...(at.query.has('older') ? [] : acknowledged.alarms)].toSorted(
    (a, b) => Date.parse(b.occurredAt) - Date.parse(a.occurredAt),
  )
  if (alarms.length === 0 && choice.isFiltered && !choice.isReversed) return null
  if (alarms.length === 0 && !at.query.has('older'))
    return (
      <Card title={t.now}>
        <NoAlarm at={at} gates={gates} />
      </Card>
    )
  return (
    <section class="stack" aria-label={t.now}>
      {alarms.map((alarm) => (
        <AlarmCard at={at} alarm={alarm} />
      ))}
      <OpenChoice {...props} />
      <OpenPages {...props} />
      <details class="soft small prose compared">
        <summary>{t.compared}</summary>
        <p>{t.comparedText}</p>
      </details>
    </section>
  )
}

function History({ at, disposed, choice }: { at: ViewContext } & AlarmsView) {
  const t = at.texts.alarms
  return (
    <section class="stack">
      <div class="row between">
        <h2>{t.history}</h2>
        {at.opens('/console/alarm-figures') ? (
          <a class="button" href="/console/alarm-figures">
            {at.texts.alarmFigures.title}
          </a>
        ) : null}
      </div>
      <Card flush>
        {disposed.alarms.length === 0 ? (
          <EmptyState icon="info" title={choice.isFiltered ? t.noneFound : t.noHistory}>
            {choice.isFiltered ? t.noneFoundText : t.noHistoryText}
          </EmptyState>
        ) : (
          <Recorded at={at} alarms={disposed.alarms} />
        )}
      </Card>
      <Pagination at={at} shown={disposed.alarms.length} total={disposed.total} nextCursor={disposed.nextCursor} />
    </section>
  )
}

function Recorded({ at, alarms }: { at: ViewContext; alarms: readonly Alarm[] }) {
  const t = at.texts.alarms
  return (
    <Table
      caption={t.history}
      rows={alarms}
      columns={[
        {
          label: t.product,
          kind: 'head',
          cell: (alarm) => (
            <>
              <a href={alarmHref(alarm.eventId)}>{whatOf(at, alarm)}</a>
              {alarm.emergency ? <span class="sub">{t.inEmergency}</span> : null}
            </>
          ),
        },
        ...(at.store ? [] : [{ label: at.texts.frame.store, cell: (alarm: Alarm) => nameOfStore(at, alarm.storeId) }]),
        {
          label: t.cause,
          cell: ({ disposition, recoveredValue }) => (
            <>
              {disposition === undefined ? '–' : t.causes[disposition]}
              {recoveredValue === undefined ? null : (
                <span class="sub">
                  {t.recovered}: {at.formats.money(recoveredValue)}
                </span>
              )}
            </>
          ),
        },
        {
          label: t.gate,
          cell: (alarm) => (
            <>
              {gateOf(at, alarm)}
              <span class="sub">
                <Moment ms={Date.parse(alarm.occurredAt)} text={at.formats.moment(Date.parse(alarm.occurredAt))} />
              </span>
            </>
          ),
        },
        {
          label: t.recordedBy,
          cell: ({ handledByName, disposedAt = '' }) => (
            <>
              {handledByName ?? '–'}
              <span class="sub">
                <Moment ms={Date.parse(disposedAt)} text={at.formats.moment(Date.parse(disposedAt))} />
              </span>
            </>
          ),
        },
        {
          label: t.correct,
          kind: 'actions',
          cell: (alarm) => <CauseButton at={at} alarm={alarm} label={t.correct} />,
        },
      ]}
    />
  )
}
