import type { z } from 'zod'
import { ALARM_DISPOSITIONS, type AlarmDisposition } from '../../../policy/vocabulary.ts'
import { iso } from '../../platform/operations/fields.ts'
import { fetchDevices } from '../../protection/devices/device-operations.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { addDays, clockOf, dayOf, isDay, timeOn } from '../../shop/analytics/store-days.ts'
import { choiceHref, gateOf, whatOf, type Alarm } from '../components/alarm-card.tsx'
import { nameOfStore } from '../components/all-stores.tsx'
import { Select, TextField } from '../components/fields.tsx'
import { csvFile } from '../frame/download.ts'
import { NO_FORM } from '../frame/form.ts'
import { deviceLabel } from '../components/device-label.ts'
import type { PageContext, ViewContext } from '../frame/page.ts'

export type Alarms = z.output<typeof fetchAlarms.response>

/** Alarms of one state in the file. Each needs a search for its receipt. */
export const FILE_LIMIT = 1_000
const FILE_PAGE = 50

/** Which alarms the page shows. */
export interface AlarmChoice {
  /** Fields of requests for alarms of all states. */
  readonly filter: { readonly deviceId?: string; readonly raisedFrom?: string; readonly raisedUntil?: string }
  /** Cause of recorded alarms. */
  readonly cause: AlarmDisposition | undefined
  /** Days and times of day that limit the lists; empty texts limit nothing. */
  readonly period: { readonly from: string; readonly fromTime: string; readonly to: string; readonly toTime: string }
  readonly isFiltered: boolean
  /** The end is before the beginning. The lists then have all days, so that no open alarm is hidden. */
  readonly isReversed: boolean
}

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

/** The choice in the address of the page. A time without a day is of the other day, or of today. */
export function alarmChoice(at: PageContext): AlarmChoice {
  const deviceId = at.query.get('gate') ?? ''
  const [fromTime, toTime] = [clockIn(at, 'fromTime'), clockIn(at, 'toTime')]
  const days = [dayIn(at, 'from'), dayIn(at, 'to')]
  const from = days[0] ?? (fromTime === '' ? '' : (days[1] ?? dayOf(at.nowMs)))
  const to = days[1] ?? (toTime === '' ? '' : (days[0] ?? dayOf(at.nowMs)))
  const sinceMs = from === '' ? undefined : timeOn(from, fromTime || '00:00')
  const untilMs =
    to === '' ? undefined : (toTime === '' ? timeOn(addDays(to, 1), '00:00') : timeOn(to, toTime) + MINUTE_MS) - 1
  const isReversed = sinceMs !== undefined && untilMs !== undefined && untilMs < sinceMs
  const cause = ALARM_DISPOSITIONS.find((each) => each === at.query.get('cause'))
  const filter = {
    ...(deviceId !== '' && { deviceId }),
    ...(sinceMs !== undefined && !isReversed && { raisedFrom: iso(sinceMs) }),
    ...(untilMs !== undefined && !isReversed && { raisedUntil: iso(untilMs) }),
  }
  const isFiltered = isReversed || cause !== undefined || Object.keys(filter).length > 0
  return { filter, cause, period: { from, fromTime, to, toTime }, isFiltered, isReversed }
}

/** A time of day in the address of the page, `HH:MM`; empty without one. */
function clockIn(at: PageContext, name: string): string {
  const clock = at.query.get(name) ?? ''
  return /^(?:[01]\d|2[0-3]):[0-5]\d$/.test(clock) ? clock : ''
}

/** A day of the calendar in the address of the page. */
function dayIn(at: PageContext, name: string): string | undefined {
  const day = at.query.get(name) ?? ''
  return isDay(day) ? day : undefined
}

/** A gate of a store that the page shows. */
export interface Gate {
  readonly storeId: string
  readonly deviceId: string
  readonly name: string
  /** False if the cloud does not know that the gate sees the goods that leave. */
  readonly isWatching: boolean
  /** False if its agent reports that no device reads tags at the gate. */
  readonly hasReader: boolean
}

const GATES_PAGE = 500
/** Maximum number of pages of gates that the page reads. */
const GATE_PAGES = 10

/** Gates of the stores that the page shows; undefined if the user may not read them, or if they are too many. */
export async function gatesOf(at: PageContext): Promise<readonly Gate[] | undefined> {
  const gates: Gate[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < GATE_PAGES; pages++) {
    const found = await at.runIfAllowed(fetchDevices, {
      ...(at.store && { storeId: at.store.storeId }),
      deviceType: 'exit_gate',
      limit: GATES_PAGE,
      ...(cursor !== undefined && { cursor }),
    })
    if (!found) return undefined
    for (const { storeId, deviceId, deviceType, name, decommissionedAt, health } of found.devices)
      if (decommissionedAt === undefined)
        gates.push({
          storeId,
          deviceId,
          name: deviceLabel(at, { deviceId, deviceType, name }),
          isWatching: WATCHING.has(health?.state ?? '') && health?.readsTags !== false,
          hasReader: health?.readsTags !== false,
        })
    cursor = found.nextCursor
    if (cursor === undefined) return gates
  }
  return undefined
}

/** States of health in which a gate sees goods. */
const WATCHING: ReadonlySet<string> = new Set(['ready', 'degraded'])

/** Choices among the gates of the chosen store. Gates of several stores may have the same names. */
export function gateChoices(at: PageContext, gates: readonly Gate[]): readonly { value: string; label: string }[] {
  return at.store ? gates.map(({ deviceId, name }) => ({ value: deviceId, label: name })) : []
}

/** Gates up to which each has its link. A list chooses among more. */
const GATE_LINKS = 8

/** Id of the numbers of alarms found, which follow live. */
export const ALARMS_FOUND = 'alarms-found'

/** Days, gate and cause, folded unless they limit the lists; the numbers of alarms found, and their file. */
export function AlarmFilter({
  at,
  choice,
  gates,
  totals,
}: {
  at: ViewContext
  choice: AlarmChoice
  gates: readonly { value: string; label: string }[]
  totals: readonly [open: number, acknowledged: number, disposed: number]
}) {
  const t = at.texts.alarms
  const [open, acknowledged, disposed] = totals.map((total) => at.formats.number(total))
  const { period } = choice
  const query = new URLSearchParams(at.query)
  for (const name of ['cursor', 'older']) query.delete(name)
  return (
    <details class="wide" open={choice.isFiltered}>
      <summary>{t.filter}</summary>
      <QuickChoices at={at} gates={gates} period={period} gate={choice.filter.deviceId ?? ''} />
      <form class="filters" method="get" action={at.path} role="search">
        <TextField form={NO_FORM} name="from" type="date" label={t.from} value={period.from} />
        <TextField form={NO_FORM} name="fromTime" type="time" label={t.fromTime} value={period.fromTime} />
        <TextField
          form={choice.isReversed ? { ...NO_FORM, errors: { to: t.toBeforeFrom } } : NO_FORM}
          name="to"
          type="date"
          label={t.to}
          value={period.to}
        />
        <TextField form={NO_FORM} name="toTime" type="time" label={t.toTime} value={period.toTime} />
        {gates.length <= GATE_LINKS && choice.filter.deviceId !== undefined ? (
          <input type="hidden" name="gate" value={choice.filter.deviceId} />
        ) : null}
        {gates.length > GATE_LINKS ? (
          <Select
            form={NO_FORM}
            name="gate"
            label={t.gate}
            value={choice.filter.deviceId ?? ''}
            choices={[{ value: '', label: t.allGates }, ...gates]}
          />
        ) : null}
        <Select
          form={NO_FORM}
          name="cause"
          label={t.causeOfRecorded}
          value={choice.cause ?? ''}
          choices={[
            { value: '', label: t.allCauses },
            ...ALARM_DISPOSITIONS.map((value) => ({ value, label: t.causes[value] })),
          ]}
        />
        <button type="submit" class="button main">
          {at.texts.frame.apply}
        </button>
        {choice.isFiltered ? (
          <a class="button" href={at.path}>
            {t.showAll}
          </a>
        ) : null}
      </form>
      <p class="row">
        <span id={ALARMS_FOUND}>{t.found(open ?? '', acknowledged ?? '', disposed ?? '')}</span>
        <a class="button" href={`${at.path}?${query}${query.size === 0 ? '' : '&'}file`} download>
          {t.export}
        </a>
        {Math.max(...totals) > FILE_LIMIT ? (
          <span class="soft small">{t.exportLimit(at.formats.number(FILE_LIMIT))}</span>
        ) : null}
      </p>
    </details>
  )
}

/** Usual choices as links: times, and the gates of a small store. Each keeps the other choices. */
function QuickChoices({
  at,
  gates,
  period,
  gate,
}: {
  at: ViewContext
  gates: readonly { value: string; label: string }[]
  period: AlarmChoice['period']
  gate: string
}) {
  const t = at.texts.alarms
  const none = { from: '', fromTime: '', to: '', toTime: '' }
  const today = dayOf(at.nowMs)
  const yesterday = addDays(today, -1)
  const hourAgoMs = at.nowMs - HOUR_MS
  const times = [
    { label: t.allTimes, change: none },
    { label: t.lastHour, change: { ...none, from: dayOf(hourAgoMs), fromTime: clockOf(hourAgoMs) } },
    { label: t.today, change: { ...none, from: today, to: today } },
    { label: t.yesterday, change: { ...none, from: yesterday, to: yesterday } },
  ].map(({ label, change }) => ({
    label,
    href: choiceHref(at, change),
    isCurrent: JSON.stringify(change) === JSON.stringify(period),
  }))
  const places = [{ value: '', label: t.allGates }, ...gates].map(({ value, label }) => ({
    label,
    href: choiceHref(at, { gate: value }),
    isCurrent: value === gate,
  }))
  return (
    <>
      <ChoiceLinks label={t.time} links={times} />
      {gates.length > 1 && gates.length <= GATE_LINKS ? <ChoiceLinks label={t.gate} links={places} /> : null}
    </>
  )
}

function ChoiceLinks({
  label,
  links,
}: {
  label: string
  links: readonly { label: string; href: string; isCurrent: boolean }[]
}) {
  return (
    <nav class="row" aria-label={label}>
      {links.map((link) => (
        <a class="button" href={link.href} {...(link.isCurrent && { 'aria-current': 'true' as const })}>
          {link.label}
        </a>
      ))}
    </nav>
  )
}

/** The chosen alarms as a file, those of people first who still have to act. */
export async function alarmsFile(at: PageContext): Promise<string> {
  const t = at.texts.alarms
  const { filter, cause } = alarmChoice(at)
  const found = [
    ...(await allAlarms(at, { ...filter, state: 'open' })),
    ...(await allAlarms(at, { ...filter, state: 'acknowledged' })),
    ...(await allAlarms(at, { ...filter, state: 'disposed', ...(cause && { disposition: cause }) })),
  ]
  const states = { open: t.waiting, acknowledged: t.inProgress, disposed: t.recordedState }
  const head = [
    ...(at.store ? [] : [at.texts.frame.store]),
    t.time,
    t.state,
    t.cause,
    t.product,
    t.price,
    t.recovered,
    t.gate,
    t.tagNumber,
    t.by,
    t.recordedAt,
  ]
  const rows = found.map((alarm) => [
    ...(at.store ? [] : [nameOfStore(at, alarm.storeId)]),
    { ms: Date.parse(alarm.occurredAt) },
    states[alarm.state],
    alarm.disposition && t.causes[alarm.disposition],
    whatOf(at, alarm),
    alarm.product && { cents: Math.round(alarm.product.price * 100) },
    alarm.recoveredValue === undefined ? undefined : { cents: Math.round(alarm.recoveredValue * 100) },
    gateOf(at, alarm),
    alarm.epc ?? alarm.tagUid ?? alarm.tagId,
    alarm.handledByName,
    alarm.disposedAt === undefined ? undefined : { ms: Date.parse(alarm.disposedAt) },
  ])
  return csvFile(at.language, [head, ...rows])
}

async function allAlarms(
  at: PageContext,
  filter: { state: Alarm['state']; [name: string]: unknown },
): Promise<Alarm[]> {
  const all: Alarm[] = []
  let cursor: string | undefined
  do {
    const about = {
      ...(at.store && { storeId: at.store.storeId }),
      limit: FILE_PAGE,
      ...filter,
      ...(cursor && { cursor }),
    }
    const page: Alarms | undefined = await at.runIfAllowed(fetchAlarms, about)
    all.push(...(page?.alarms ?? []))
    cursor = page?.nextCursor
  } while (cursor !== undefined && all.length < FILE_LIMIT)
  return all
}
