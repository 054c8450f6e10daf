import type { z } from 'zod'
import { GATE_ALARMS } from '../../../policy/vocabulary.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { iso } from '../../platform/operations/fields.ts'
import { fetchAgents } from '../../protection/agents/administration/agent-operations.ts'
import { decommissionDevice, fetchDevices } from '../../protection/devices/device-operations.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { ALARM_STATES } from '../../protection/records/alarm-queries.ts'
import { fetchProtectionEvents } from '../../protection/records/event-operations.ts'
import { alarmHref, whatOf } from '../components/alarm-card.tsx'
import { Card, EmptyState, Pairs } from '../components/card.tsx'
import { Confirm } from '../components/form.tsx'
import { Live } from '../components/live.tsx'
import { Timeline, type TimelineEntry } from '../components/table.tsx'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'
import { DeviceHealth, DeviceUse, placeOf, type Device } from './agents.tsx'
import { kindOfEvent, namesIn } from './purchase-history.ts'

type Event = z.output<typeof fetchProtectionEvents.response>['events'][number]

/** What the page shows. Without a device, the store has none with this id. */
interface DeviceView {
  readonly device: Device | undefined
  /** Name of its agent. */
  readonly agent: string | undefined
  /** What it did, the latest first. */
  readonly events: readonly TimelineEntry[]
}

const EVENTS_LIMIT = 30
const SHOWN_MS = 7 * 24 * 3_600_000

/** One device: its health with what to do, and what it did last. */
export const devicePage = page<DeviceView>({
  path: '/console/agents/:deviceId',
  roles: rolesFrom('viewer'),
  scope: 'store',
  live: ['agents', 'protection'],
  title: (texts) => texts.agents.device,
  actions: {
    retire: {
      operation: decommissionDevice,
      roles: rolesFrom('manager'),
      input: (_, at) => ({ deviceId: at.params['deviceId'] }),
      done: (texts) => texts.agents.retired,
    },
  },
  async load(at) {
    const storeId = at.store?.storeId ?? ''
    const deviceId = at.params['deviceId'] ?? ''
    const device = (await at.runIfAllowed(fetchDevices, { storeId, deviceId }))?.devices[0]
    if (!device) return { device, agent: undefined, events: [] }
    const { agents = [] } = (await at.runIfAllowed(fetchAgents, { storeId, limit: 100 })) ?? {}
    const since = iso(at.nowMs - SHOWN_MS)
    const about = { storeId, deviceId, since, latest: true as const, limit: EVENTS_LIMIT }
    const { events = [] } = (await at.runIfAllowed(fetchProtectionEvents, about)) ?? {}
    const names = await namesIn(at, storeId)
    const goods = device.deviceType === 'exit_gate' ? await goodsOfAlarms(at, storeId, deviceId) : new Map()
    return {
      device,
      agent: agents.find(({ agentId }) => agentId === device.agentId)?.name,
      events: events.flatMap((event) => entryOf(at, event, names, goods) ?? []),
    }
  },
  view: (at) => (
    <div class="stack wide">
      {at.data.device === undefined ? (
        <Card>
          <EmptyState icon="device" title={at.texts.agents.notHere}>
            {at.texts.agents.notHereText}
          </EmptyState>
        </Card>
      ) : (
        <Live at={at} id="device">
          <State at={at} device={at.data.device} agent={at.data.agent} />
          <Card title={at.texts.agents.latest}>
            {at.data.events.length === 0 ? (
              <EmptyState icon="device" title={at.texts.agents.nothingYet}>
                {at.texts.agents.nothingYetText}
              </EmptyState>
            ) : (
              <Timeline entries={at.data.events} formats={at.formats} />
            )}
          </Card>
        </Live>
      )}
      <p>
        <a class="button" href="/console/agents">
          {at.texts.agents.backToDevices}
        </a>
      </p>
    </div>
  ),
})

function State({ at, device, agent }: { at: ViewContext; device: Device; agent: string | undefined }) {
  const t = at.texts.agents
  const { deviceId, deviceType, name, firmwareVersion } = device
  const pairs = [
    [t.health, <DeviceHealth at={at} device={device} />],
    [t.use, <DeviceUse at={at} device={device} />],
    [t.type, t.types[deviceType]],
    [t.place, placeOf(at, device)],
    [t.agent, agent],
    [t.firmware, firmwareVersion],
    [t.deviceId, deviceId],
  ] as const
  return (
    <Card title={name ?? t.types[deviceType]}>
      <div class="stack">
        <Pairs pairs={pairs.flatMap(([label, value]) => (value === undefined ? [] : [[label, value] as const]))} />
        {device.decommissionedAt === undefined && at.has(rolesFrom('manager')) ? (
          <div>
            <Confirm
              at={at}
              action="retire"
              label={t.retire}
              question={t.retireQuestion(name ?? t.types[deviceType])}
              explanation={device.health?.state === 'ready' ? `${t.retireReady} ${t.retireText}` : t.retireText}
              confirm={t.retire}
            />
          </div>
        ) : null}
      </div>
    </Card>
  )
}

/** The goods of the gate's alarms of the shown days, by their events. */
async function goodsOfAlarms(at: PageContext, storeId: string, deviceId: string): Promise<ReadonlyMap<string, string>> {
  const goods = new Map<string, string>()
  for (const state of ALARM_STATES) {
    const about = { storeId, deviceId, state, raisedFrom: iso(at.nowMs - SHOWN_MS), limit: EVENTS_LIMIT }
    for (const alarm of (await at.runIfAllowed(fetchAlarms, about))?.alarms ?? [])
      goods.set(alarm.eventId, whatOf(at, alarm))
  }
  return goods
}

/** An event for people; undefined for requests and grants, which only precede the others. */
function entryOf(
  at: PageContext,
  event: Event,
  names: ReadonlyMap<string, string>,
  goods: ReadonlyMap<string, string>,
): TimelineEntry | undefined {
  const kind = kindOfEvent(event)
  if (!kind) return undefined
  const { reason = '', operatorId = '', offline = false, eventId, alarm } = event
  const titles: Readonly<Record<string, string>> = at.texts.exceptionTitles
  const isRaised = event.type === 'protection.exception.raised'
  const cause = alarm && at.texts.alarms.causes[alarm.disposition]
  // The recorded cause may say that no unpaid goods left, so it stands in place of the reason.
  const texts = [goods.get(eventId), names.get(operatorId), offline ? at.texts.purchases.offline : undefined]
  const text = texts.filter((part) => part !== undefined).join(' · ')
  return {
    atMs: Date.parse(event.occurredAt),
    title: cause ?? ((isRaised && titles[reason]) || at.texts.purchases.events[kind.title]),
    tone: GATE_ALARMS.has(reason) ? (cause === undefined ? 'alarm' : 'plain') : kind.tone,
    ...(text !== '' && { text }),
    ...(GATE_ALARMS.has(reason) && at.opens('/console/alarms') && { href: alarmHref(eventId) }),
  }
}
