import type { z } from 'zod'
import { ALARM_DISPOSITIONS, type AlarmDisposition } from '../../../policy/vocabulary.ts'
import { fetchAgents } from '../../agents/administration/agent-operations.ts'
import { fetchAlarmNotices, registerAlarmNotices, removeAlarmNotices } from '../../push/alarm-notice-operations.ts'
import { rolesFrom } from '../../foundation/roles.ts'
import { iso } from '../../operations/fields.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { callHelpToAlarm } from '../../protection/records/call-help.ts'
import { disposeAlarm } from '../../protection/records/dispose-alarm.ts'
import { acknowledgeException } from '../../protection/records/exception-operations.ts'
import { AlarmCard, CauseButton, gateOf, whatOf } from '../components/alarm-card.tsx'
import { Card, Figures } from '../components/card.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import { Select } from '../components/fields.tsx'
import { FilterBar, Results } from '../components/filter-bar.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { Icon } from '../components/icons.tsx'
import { Live } from '../components/live.tsx'
import { Pagination } from '../components/pagination.tsx'
import { Table } from '../components/table.tsx'
import { Moment } from '../components/timeline.tsx'
import { page, type ViewContext } from '../frame/page.ts'

type Alarms = z.output<typeof fetchAlarms.response>
type Alarm = Alarms['alarms'][number]

/** Alarms that the page shows at once. */
const SHOWN_LIMIT = 20
const DAY_MS = 24 * 3_600_000
const NO_ALARMS: Alarms = { success: true, alarms: [], total: 0 }

/** What the page shows. */
interface AlarmsView {
  readonly open: Alarms
  readonly acknowledged: Alarms
  readonly disposed: Alarms
  /** Number of alarms with a recorded cause in the last 24 hours. */
  readonly recorded: number
  readonly cause: AlarmDisposition | undefined
  /** False if no agent is set up in the store. */
  readonly isWatched: boolean
  /** Whether this browser gets notices; undefined: the package has none. */
  readonly notices: z.output<typeof fetchAlarmNotices.response> | undefined
}

/** Alarms at the exits, for the person at the door. */
export const alarmsPage = page<AlarmsView>({
  path: '/console/alarms',
  roles: rolesFrom('associate'),
  scope: 'store',
  navigation: { group: 'work', icon: 'alarm', tasks: ['alarm'] },
  live: ['protection', 'agents', 'payments', 'scan and go', 'assistance'],
  title: (texts) => texts.alarms.title,
  lead: (at) => at.texts.alarms.lead,
  actions: {
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
        }
      },
      done: (texts) => texts.alarms.saved,
    },
    help: {
      operation: callHelpToAlarm,
      input: (form) => ({ eventId: form.text('eventId') }),
      done: (texts) => texts.alarms.helpCalled,
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
  async load(at) {
    const storeId = at.store?.storeId ?? ''
    const cause = ALARM_DISPOSITIONS.find((each) => each === at.query.get('cause'))
    const cursor = at.query.get('cursor') ?? undefined
    const read = async (filter: { state: Alarm['state']; [name: string]: unknown }) =>
      (await at.runIfAllowed(fetchAlarms, { storeId, limit: SHOWN_LIMIT, ...filter })) ?? NO_ALARMS
    return {
      open: await read({ state: 'open' }),
      acknowledged: await read({ state: 'acknowledged' }),
      disposed: await read({
        state: 'disposed',
        ...(cause && { disposition: cause }),
        ...(cursor !== undefined && { cursor }),
      }),
      recorded: (await read({ state: 'disposed', since: iso(at.nowMs - DAY_MS), limit: 1 })).total,
      cause,
      isWatched: ((await at.runIfAllowed(fetchAgents, { storeId, limit: 1 }))?.total ?? 1) > 0,
      notices: await at.runIfAllowed(fetchAlarmNotices, {}),
    }
  },
  view: (at) => (
    <div class="stack wide">
      <Live at={at} id="alarm-figures">
        <Summary at={at} {...at.data} />
      </Live>
      <Live at={at} id="alarms">
        <Open at={at} {...at.data} />
      </Live>
      <div class="alarm-settings">
        <SoundSwitch at={at} />
        <NoticeSwitch at={at} notices={at.data.notices} />
      </div>
      <History at={at} {...at.data} />
    </div>
  ),
})

/** Figures, and for the script (browser/alarms.ts) the ids of open alarms. Nothing in this part delays its refresh. */
function Summary({ at, open, acknowledged, recorded }: { at: ViewContext } & AlarmsView) {
  const t = at.texts.alarms
  const { number } = at.formats
  return (
    <div data-alarms={open.alarms.map(({ eventId }) => eventId).join(' ')}>
      <h2 class="spoken">{t.summary}</h2>
      <div class="alarm-figures">
        <Figures
          figures={[
            { label: t.waiting, value: number(open.total), ...(open.total > 0 && { tone: 'alarm' }) },
            { label: t.inProgress, value: number(acknowledged.total) },
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

function Open({ at, open, acknowledged, isWatched }: { at: ViewContext } & AlarmsView) {
  const t = at.texts.alarms
  // One order for both, so that an acknowledged alarm stays in its place.
  const alarms = [...open.alarms, ...acknowledged.alarms].toSorted(
    (a, b) => Date.parse(b.occurredAt) - Date.parse(a.occurredAt),
  )
  const hidden = open.total - open.alarms.length
  if (alarms.length === 0)
    return (
      <Card title={t.now}>
        <EmptyState title={isWatched ? t.none : t.unwatched}>{isWatched ? t.noneText : t.unwatchedText}</EmptyState>
      </Card>
    )
  return (
    <section class="stack" aria-label={t.now}>
      {alarms.map((alarm) => (
        <AlarmCard at={at} alarm={alarm} />
      ))}
      {hidden > 0 ? <p class="soft">{t.more(at.formats.number(hidden))}</p> : null}
      <details class="soft small prose compared">
        <summary>{t.compared}</summary>
        <p>{t.comparedText}</p>
      </details>
    </section>
  )
}

function History({ at, disposed, cause }: { at: ViewContext } & AlarmsView) {
  const t = at.texts.alarms
  return (
    <section class="stack">
      <h2>{t.history}</h2>
      <FilterBar at={at}>
        <Select
          form={at.form}
          name="cause"
          label={t.cause}
          value={cause ?? ''}
          choices={[
            { value: '', label: t.allCauses },
            ...ALARM_DISPOSITIONS.map((value) => ({ value, label: t.causes[value] })),
          ]}
        />
      </FilterBar>
      <Results>
        <Card flush>
          {disposed.alarms.length === 0 ? (
            <EmptyState title={t.noHistory}>{t.noHistoryText}</EmptyState>
          ) : (
            <Recorded at={at} alarms={disposed.alarms} />
          )}
        </Card>
        <Pagination at={at} shown={disposed.alarms.length} total={disposed.total} nextCursor={disposed.nextCursor} />
      </Results>
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
        { label: t.product, kind: 'head', cell: (alarm) => whatOf(at, alarm) },
        { label: t.cause, cell: ({ disposition }) => (disposition === undefined ? '–' : t.causes[disposition]) },
        {
          label: t.recovered,
          kind: 'number',
          cell: ({ recoveredValue }) => (recoveredValue === undefined ? '–' : at.formats.money(recoveredValue)),
        },
        { label: t.gate, cell: (alarm) => gateOf(at, alarm) },
        { label: t.by, cell: ({ handledByName }) => handledByName ?? '–' },
        {
          label: t.time,
          cell: ({ disposedAt, occurredAt }) => {
            const ms = Date.parse(disposedAt ?? occurredAt)
            return <Moment ms={ms} text={at.formats.moment(ms)} />
          },
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
