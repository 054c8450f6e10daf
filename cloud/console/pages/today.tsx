import type { z } from 'zod'
import { fetchAgents } from '../../protection/agents/administration/agent-operations.ts'
import { fetchDevices } from '../../protection/devices/device-operations.ts'
import { deviceLabel } from '../components/device-label.ts'
import { addDays, dayOf } from '../../shop/analytics/store-days.ts'
import { fetchAnalytics, fetchClosings } from '../../shop/analytics/operations.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { ALARM_STATES } from '../../protection/records/alarm-queries.ts'
import { fetchOpenTasks, URGENT_TASKS, type TaskKind } from '../../sales/store-operations/open-tasks.ts'
import { Badge, Card, Figures, type FigureView, EmptyState } from '../components/card.tsx'
import { ActiveEmergency, activeEmergencies, type ActiveEmergencies } from '../components/emergency.tsx'
import { Icon } from '../components/icons.tsx'
import { Live } from '../components/live.tsx'
import { storeName } from '../components/all-stores.tsx'
import { StoreList, storesWithTasks, type StoreTasks } from '../components/store-choice.tsx'
import { List } from '../components/table.tsx'
import { ROLES, rolesFrom } from '../../platform/foundation/caller.ts'
import { iso } from '../../platform/operations/fields.ts'
import { page, type IconName, type PageContext } from '../frame/page.ts'

type Agents = z.output<typeof fetchAgents.response>['agents']
type FaultyDevice = z.output<typeof fetchDevices.response>['devices'][number] & {
  readonly storeId: string
  readonly state: 'absent' | 'degraded'
}

/** Roles that do the tasks. Viewers only read. */
const STAFF = rolesFrom('associate')
/** Roles that need the revenue on this page; the reports are open to viewers, such as auditors, through the API. */
const REVENUE = rolesFrom('manager')
const DAY_MS = 86_400_000
const AGENTS_PAGE = 500
const DEVICES_PAGE = 100
/** Maximum number of agents that the page reads. */
const AGENTS_LIMIT = 1_000
/** Maximum number of agents without connection in the list. */
const SILENT_LIMIT = 20
/** Maximum number of stores whose sales and alarms the page adds up. */
const FIGURES_OF_STORES = 25

/** What the page shows. */
interface TodayView {
  /** With one chosen store: the others in which something waits. With all: all of them. */
  readonly stores: readonly StoreTasks[]
  readonly agents: Agents
  readonly emergencies: ActiveEmergencies
  /** Devices that do not work or need attention. */
  readonly faulty: readonly FaultyDevice[]
  readonly figures: readonly FigureView[]
}

/** Icon of a task, and the page where it is done. */
const TASKS: Readonly<Record<TaskKind, { icon: IconName; path: string }>> = {
  emergency: { icon: 'alarm', path: '/console/exceptions' },
  alarm: { icon: 'alarm', path: '/console/alarms' },
  ageCheck: { icon: 'people', path: '/console/approvals' },
  spotCheck: { icon: 'orders', path: '/console/approvals' },
  alarmHelp: { icon: 'alarm', path: '/console/help' },
  help: { icon: 'chat', path: '/console/help' },
  order: { icon: 'orders', path: '/console/orders' },
  release: { icon: 'tag', path: '/console/exceptions' },
  refund: { icon: 'money', path: '/console/exceptions' },
  exception: { icon: 'warning', path: '/console/exceptions' },
}

/** What waits for a person in the store, and whether its agents work. */
export const todayPage = page<TodayView>({
  path: '/console',
  roles: ROLES,
  scope: 'stores',
  navigation: { group: 'work', icon: 'today' },
  live: ['stores', 'scan and go', 'assistance', 'protection', 'agents', 'payments'],
  title: (texts) => texts.today.title,
  lead(at) {
    const t = at.texts.today
    return (at.has(STAFF) ? t.lead : t.leadOfViewer)(at.formats.date(at.nowMs))
  },
  async load(at) {
    const storeIds = at.store ? [at.store.storeId] : at.stores.map(({ storeId }) => storeId)
    const agents = await agentsOf(at)
    return {
      stores: await storesOf(at),
      agents: agents.filter(({ state }) => state !== 'revoked'),
      emergencies: await activeEmergencies(at),
      faulty: storeIds.length <= FIGURES_OF_STORES ? await faultyDevices(at) : [],
      figures: storeIds.length <= FIGURES_OF_STORES ? await figuresOf(at, storeIds) : [],
    }
  },
  view: (at) => (
    <Live at={at} id="today">
      <ActiveEmergency at={at} active={at.data.emergencies} />
      <WaitingTasks at={at} />
      <Stores at={at} stores={at.data.stores} />
      <Figures figures={at.data.figures} />
      <AgentsAtWork at={at} agents={at.data.agents} faulty={at.data.faulty} />
    </Live>
  ),
})

async function storesOf(at: PageContext): Promise<readonly StoreTasks[]> {
  if (!at.store) return storesWithTasks(at, at.busyStores)
  if (at.stores.length < 2) return []
  const { stores = [] } = await at.run(fetchOpenTasks, {})
  return storesWithTasks(at, stores).filter(({ storeId, tasks }) => storeId !== at.store?.storeId && tasks.length > 0)
}

async function agentsOf(at: PageContext): Promise<Agents> {
  const agents: Agents = []
  for (let cursor: string | undefined; ;) {
    const about = { ...(at.store && { storeId: at.store.storeId }), ...(cursor !== undefined && { cursor }) }
    const found = await at.runIfAllowed(fetchAgents, { ...about, limit: AGENTS_PAGE })
    agents.push(...(found?.agents ?? []))
    cursor = found?.nextCursor
    if (cursor === undefined || agents.length >= AGENTS_LIMIT) return agents
  }
}

/** The devices whose fault their agent reports. Those of a lost agent are listed as the agent. */
async function faultyDevices(at: PageContext): Promise<FaultyDevice[]> {
  const faulty: FaultyDevice[] = []
  for (let cursor: string | undefined; ;) {
    const about = { ...(at.store && { storeId: at.store.storeId }), ...(cursor !== undefined && { cursor }) }
    const found = await at.runIfAllowed(fetchDevices, { ...about, limit: DEVICES_PAGE })
    for (const device of found?.devices ?? []) {
      const state = device.health?.state
      if (state === 'absent' || state === 'degraded') faulty.push({ ...device, state })
    }
    cursor = found?.nextCursor
    if (cursor === undefined || faulty.length > SILENT_LIMIT) return faulty
  }
}

/** Sales of today and yesterday, of the stores whose packages have reports, and the alarms. */
async function figuresOf(at: PageContext, storeIds: readonly string[]): Promise<FigureView[]> {
  const t = at.texts.today
  const today = dayOf(at.nowMs)
  const yesterday = addDays(today, -1)
  const sales = new Map<string, { cent: number; checkouts: number }>()
  let tillCent = 0
  let tillSales = 0
  for (const storeId of storeIds) {
    const found = at.has(REVENUE)
      ? await at.runIfAllowed(fetchAnalytics, { storeId, from: yesterday, to: today })
      : undefined
    const closed = found && (await at.runIfAllowed(fetchClosings, { storeId, limit: 1 }))?.closings[0]
    for (const { date, scanAndGo, tills } of found?.reports ?? []) {
      if (date === today) {
        tillCent += tills.revenueCent
        tillSales += tills.sales
      }
      const sum = sales.get(date) ?? { cent: 0, checkouts: 0 }
      // Reports move later refunds back to the day of the sale. A closed day keeps the sum of its closing.
      const isClosed = closed?.from === date && closed.date === date
      sum.cent += isClosed ? closed.totalCent : scanAndGo.revenueCent
      sum.checkouts += scanAndGo.completedCheckouts
      sales.set(date, sum)
    }
  }
  let alarms: number | undefined
  const ofDay = { ...(at.store && { storeId: at.store.storeId }), since: iso(at.nowMs - DAY_MS), limit: 1 }
  for (const state of ALARM_STATES) {
    const found = await at.runIfAllowed(fetchAlarms, { ...ofDay, state })
    if (found) alarms = (alarms ?? 0) + found.total
  }
  return [
    ...[...sales].toReversed().map(([date, { cent, checkouts }]) => ({
      label: date === today ? t.salesToday : t.salesYesterday,
      value: at.formats.money(cent / 100),
      note: t.purchases(at.formats.number(checkouts)),
    })),
    ...(tillSales > 0
      ? [
          {
            label: t.tillsToday,
            value: at.formats.money(tillCent / 100),
            note: t.purchases(at.formats.number(tillSales)),
          },
        ]
      : []),
    // A viewer may not see alarms, so no number says that there are none.
    ...(alarms === undefined ? [] : [{ label: t.alarms, value: at.formats.number(alarms), href: '/console/alarms' }]),
  ]
}

/** The other stores in which something waits, or all stores. */
function Stores({ at, stores }: { at: PageContext; stores: readonly StoreTasks[] }) {
  if (stores.length === 0) return null
  return (
    <Card title={at.store ? at.texts.today.otherStores : at.texts.today.stores} flush>
      <StoreList at={at} stores={stores} path="/console" />
    </Card>
  )
}

function WaitingTasks({ at }: { at: PageContext }) {
  const t = at.texts.today
  const open = at.tasks.filter(({ count }) => count > 0)
  const hasAlarm = open.some(({ kind }) => URGENT_TASKS.has(kind))
  return (
    <Card title={at.has(STAFF) ? t.waiting : t.waitingOfViewer} flush {...(hasAlarm && { tone: 'alarm' })}>
      {open.length === 0 ? (
        <EmptyState title={t.nothing}>{t.nothingText}</EmptyState>
      ) : (
        <List>
          {open.map(({ kind, count, oldestAt }) => (
            <li>
              <div class="task">
                <span class={`task-icon ${URGENT_TASKS.has(kind) ? 'alarm' : ''}`}>
                  <Icon name={TASKS[kind].icon} size={24} />
                </span>
                <div>
                  <strong>{t.kinds[kind].title}</strong>
                  <span class="sub">{at.has(STAFF) ? t.kinds[kind].todo : t.byStaff}</span>
                  {oldestAt === undefined ? null : (
                    <span class="sub">{t.since(at.formats.ago(Date.parse(oldestAt), at.nowMs))}</span>
                  )}
                </div>
              </div>
              <span class="row">
                <Badge tone={URGENT_TASKS.has(kind) ? 'alarm' : 'warn'}>{at.formats.number(count)}</Badge>
                {at.opens(TASKS[kind].path) ? (
                  <a class="button" href={TASKS[kind].path} aria-label={`${t.open}: ${t.kinds[kind].title}`}>
                    {t.open}
                  </a>
                ) : null}
              </span>
            </li>
          ))}
        </List>
      )}
    </Card>
  )
}

function AgentsAtWork({ at, agents, faulty }: { at: PageContext; agents: Agents; faulty: readonly FaultyDevice[] }) {
  const t = at.texts.today
  const states = at.texts.agents.states
  const online = agents.filter((agent) => agent.online === true && agent.state === 'active')
  const others = agents.filter((agent) => !online.includes(agent))
  const allWork = agents.length > 0 && others.length === 0 && faulty.length === 0
  const { healthStates, healthSteps } = at.texts.agents
  const summary = (agents.length === 1 ? t.onlineOne : t.online)(
    at.formats.number(online.length),
    at.formats.number(agents.length),
  )
  return (
    <Card
      title={t.devices}
      flush
      aside={
        <a class="button quiet" href="/console/agents">
          {t.allDevices}
        </a>
      }
    >
      <List>
        <li>
          <div>
            <strong>{agents.length === 0 ? t.noAgents : summary}</strong>
            {allWork ? <span class="sub">{t.allWork}</span> : null}
          </div>
          {allWork ? <Badge tone="ok">{states.online}</Badge> : null}
        </li>
        {faulty.slice(0, SILENT_LIMIT).map((device) => (
          <li>
            <div>
              <strong>{deviceLabel(at, device)}</strong>
              {at.store ? null : <span class="sub">{storeName(at, device.storeId)}</span>}
              <span class="sub">{healthSteps[device.state]}</span>
            </div>
            <span class="row">
              <Badge tone="warn">{healthStates[device.state]}</Badge>
              {at.store ? (
                <a
                  class="button"
                  href={`/console/agents/${device.deviceId}`}
                  aria-label={`${t.open}: ${deviceLabel(at, device)}`}
                >
                  {t.open}
                </a>
              ) : null}
            </span>
          </li>
        ))}
        {others.slice(0, SILENT_LIMIT).map((agent) => (
          <li>
            <div>
              <strong>{agent.name}</strong>
              {at.store ? null : <span class="sub">{storeName(at, agent.storeId)}</span>}
              <span class="sub">{agent.state === 'forked' ? t.forked : t.offline}</span>
              <span class="sub">{t.lastSeen(at.formats.ago(Date.parse(agent.lastSeenAt), at.nowMs))}</span>
            </div>
            <Badge tone="warn">{agent.state === 'forked' ? states.forked : states.offline}</Badge>
          </li>
        ))}
        {others.length > SILENT_LIMIT ? <li>{t.moreSilent(at.formats.number(others.length - SILENT_LIMIT))}</li> : null}
      </List>
    </Card>
  )
}
