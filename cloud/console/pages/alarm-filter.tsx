import type { z } from 'zod'
import { ALARM_DISPOSITIONS, type AlarmDisposition } from '../../../policy/vocabulary.ts'
import { iso } from '../../platform/operations/fields.ts'
import { fetchDevices } from '../../protection/devices/device-operations.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { addDays, startOfDay } from '../../shop/analytics/store-days.ts'
import { gateOf, whatOf, type Alarm } from '../components/alarm-card.tsx'
import { nameOfStore, storesToRead } from '../components/all-stores.tsx'
import { Select, TextField } from '../components/fields.tsx'
import { csvFile } from '../frame/csv-file.ts'
import { NO_FORM } from '../frame/form.ts'
import type { PageContext, ViewContext } from '../frame/page.ts'

export type Alarms = Omit<z.output<typeof fetchAlarms.response>, 'alarms'> & { readonly alarms: readonly Alarm[] }

/** Alarms of one state in the file. Each needs a search for its receipt. */
export const FILE_LIMIT = 1_000
const FILE_PAGE = 50

/** Which alarms the page shows. */
export interface AlarmChoice {
  /** Fields of requests for alarms of all states. */
  readonly filter: { readonly deviceId?: string; readonly raisedFrom?: string; readonly raisedUntil?: string }
  /** Cause of recorded alarms. */
  readonly cause: AlarmDisposition | undefined
  readonly isFiltered: boolean
  /** The last day is before the first. The lists then have all days, so that no open alarm is hidden. */
  readonly isReversed: boolean
}

/** The choice in the address of the page. */
export function alarmChoice(at: PageContext): AlarmChoice {
  const deviceId = at.query.get('gate') ?? ''
  const from = dayIn(at, 'from')
  const to = dayIn(at, 'to')
  const isReversed = from !== undefined && to !== undefined && to < from
  const cause = ALARM_DISPOSITIONS.find((each) => each === at.query.get('cause'))
  const filter = {
    ...(deviceId !== '' && { deviceId }),
    ...(from !== undefined && !isReversed && { raisedFrom: iso(startOfDay(from)) }),
    ...(to !== undefined && !isReversed && { raisedUntil: iso(startOfDay(addDays(to, 1)) - 1) }),
  }
  return { filter, cause, isFiltered: isReversed || cause !== undefined || Object.keys(filter).length > 0, isReversed }
}

/** A day of the calendar in the address of the page. */
function dayIn(at: PageContext, name: string): string | undefined {
  const day = at.query.get(name) ?? ''
  return /^2\d{3}-\d\d-\d\d$/.test(day) && !Number.isNaN(Date.parse(day)) && addDays(day, 0) === day ? day : undefined
}

/** Gates of the chosen store, for the choice. Gates of several stores may have the same names. */
export async function gatesOf(at: PageContext): Promise<readonly { value: string; label: string }[]> {
  if (!at.store) return []
  const found = await at.runIfAllowed(fetchDevices, { storeId: at.store.storeId, limit: 100 })
  return (found?.devices ?? []).flatMap(({ deviceId, deviceType, name, decommissionedAt }) =>
    deviceType === 'exit_gate' && decommissionedAt === undefined ? [{ value: deviceId, label: name ?? deviceId }] : [],
  )
}

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
  const query = new URLSearchParams(at.query)
  for (const name of ['cursor', 'older']) query.delete(name)
  return (
    <details class="wide" open={choice.isFiltered}>
      <summary>{t.filter}</summary>
      <form class="filters" method="get" action={at.path} role="search">
        <TextField form={NO_FORM} name="from" type="date" label={t.from} value={at.query.get('from') ?? ''} />
        <TextField
          form={choice.isReversed ? { ...NO_FORM, errors: { to: t.toBeforeFrom } } : NO_FORM}
          name="to"
          type="date"
          label={t.to}
          value={at.query.get('to') ?? ''}
        />
        {gates.length > 1 ? (
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
  for (const storeId of storesToRead(at, ['alarm'])) {
    let cursor: string | undefined
    do {
      if (all.length >= FILE_LIMIT) return all
      const about = { storeId, limit: FILE_PAGE, ...filter, ...(cursor && { cursor }) }
      const page: Alarms | undefined = await at.runIfAllowed(fetchAlarms, about)
      all.push(...(page?.alarms ?? []).map((alarm) => ({ ...alarm, storeId })))
      cursor = page?.nextCursor
    } while (cursor !== undefined)
  }
  return all
}
