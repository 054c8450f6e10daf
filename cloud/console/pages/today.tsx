import type { z } from 'zod'
import { fetchAgents } from '../../agents/administration/agent-operations.ts'
import { addDays, dayOf } from '../../analytics/days.ts'
import { fetchAnalytics } from '../../analytics/operations.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { ALARM_STATES } from '../../protection/records/list-alarms.ts'
import { fetchOpenTasks, URGENT_TASKS, type TaskKind } from '../../store-operations/open-tasks.ts'
import { Badge } from '../components/badge.tsx'
import { Card, Figures, type FigureView } from '../components/card.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import { Icon } from '../components/icons.tsx'
import { Live } from '../components/live.tsx'
import { List } from '../components/table.tsx'
import { ROLES } from '../../foundation/roles.ts'
import { iso } from '../../operations/fields.ts'
import { page, type IconName, type PageContext } from '../frame/page.ts'

type Agents = z.output<typeof fetchAgents.response>['agents']

const DAY_MS = 86_400_000
/** Maximum number of other stores whose tasks the page counts. */
const OTHER_STORES_LIMIT = 10

/** Another store of the user, in which something waits. */
interface BusyStore {
  readonly storeId: string
  readonly name: string
  readonly count: number
  readonly hasAlarm: boolean
}

/** What the page shows. */
interface TodayView {
  readonly others: readonly BusyStore[]
  readonly agents: Agents
  readonly figures: readonly FigureView[]
}

/** Icon of a task, and the page where it is done. */
const TASKS: Readonly<Record<TaskKind, { icon: IconName; path: string }>> = {
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
  scope: 'store',
  navigation: { group: 'work', icon: 'today' },
  live: ['stores', 'scan and go', 'assistance', 'protection', 'agents', 'payments'],
  title: (texts) => texts.today.title,
  lead: (at) => at.texts.today.lead(at.formats.date(at.nowMs)),
  async load(at) {
    const storeId = at.store?.storeId ?? ''
    const found = await at.runIfAllowed(fetchAgents, { storeId, limit: 100 })
    const agents: Agents = found?.agents ?? []
    return {
      others: await busyStores(at),
      agents: agents.filter(({ state }) => state !== 'revoked'),
      figures: await figuresOf(at, storeId),
    }
  },
  view: (at) => (
    <Live at={at} id="today">
      <WaitingTasks at={at} />
      <OtherStores at={at} others={at.data.others} />
      <Figures figures={at.data.figures} />
      <AgentsAtWork at={at} agents={at.data.agents} />
    </Live>
  ),
})

/** Sales of today and yesterday, if the package of the store has reports, and the alarms. */
async function figuresOf(at: PageContext, storeId: string): Promise<FigureView[]> {
  const t = at.texts.today
  const today = dayOf(at.nowMs)
  const found = await at.runIfAllowed(fetchAnalytics, { storeId, from: addDays(today, -1), to: today })
  const sales = (found?.reports ?? []).toReversed().map(({ date, scanAndGo }) => ({
    label: date === today ? t.salesToday : t.salesYesterday,
    value: at.formats.money(scanAndGo.revenueCent / 100),
    note: t.purchases(at.formats.number(scanAndGo.completedCheckouts)),
  }))
  let alarms = 0
  for (const state of ALARM_STATES) {
    const since = iso(at.nowMs - DAY_MS)
    alarms += (await at.runIfAllowed(fetchAlarms, { storeId, state, since, limit: 1 }))?.total ?? 0
  }
  return [...sales, { label: t.alarms, value: at.formats.number(alarms), href: '/console/alarms' }]
}

async function busyStores(at: PageContext): Promise<BusyStore[]> {
  const others = at.stores.filter(({ storeId }) => storeId !== at.store?.storeId).slice(0, OTHER_STORES_LIMIT)
  const busy: BusyStore[] = []
  for (const { storeId, tradingName: name } of others) {
    const { tasks } = await at.run(fetchOpenTasks, { storeId })
    const count = tasks.reduce((sum, task) => sum + task.count, 0)
    if (count > 0)
      busy.push({ storeId, name, count, hasAlarm: tasks.some((t) => URGENT_TASKS.has(t.kind) && t.count > 0) })
  }
  return busy
}

function OtherStores({ at, others }: { at: PageContext; others: readonly BusyStore[] }) {
  const t = at.texts.today
  if (others.length === 0) return null
  return (
    <Card title={t.otherStores} flush>
      <List>
        {others.map(({ storeId, name, count, hasAlarm }) => (
          <li>
            <strong>{name}</strong>
            <span class="row">
              <Badge tone={hasAlarm ? 'alarm' : 'warn'}>{at.formats.number(count)}</Badge>
              <a class="button" href={`/console?store=${storeId}`} aria-label={`${t.open}: ${name}`}>
                {t.open}
              </a>
            </span>
          </li>
        ))}
      </List>
    </Card>
  )
}

function WaitingTasks({ at }: { at: PageContext }) {
  const t = at.texts.today
  const open = at.tasks.filter(({ count }) => count > 0)
  const hasAlarm = open.some(({ kind }) => URGENT_TASKS.has(kind))
  return (
    <Card title={t.waiting} flush {...(hasAlarm && { tone: 'alarm' })}>
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
                  <span class="sub">{t.kinds[kind].todo}</span>
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

function AgentsAtWork({ at, agents }: { at: PageContext; agents: Agents }) {
  const t = at.texts.today
  const states = at.texts.agents.states
  const online = agents.filter((agent) => agent.online === true && agent.state === 'active')
  const others = agents.filter((agent) => !online.includes(agent))
  const summary = t.online(at.formats.number(online.length), at.formats.number(agents.length))
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
            {agents.length > 0 && others.length === 0 ? <span class="sub">{t.allWork}</span> : null}
          </div>
          {agents.length > 0 && others.length === 0 ? <Badge tone="ok">{states.online}</Badge> : null}
        </li>
        {others.map((agent) => (
          <li>
            <div>
              <strong>{agent.name}</strong>
              <span class="sub">{agent.state === 'forked' ? t.forked : t.offline}</span>
              <span class="sub">{t.lastSeen(at.formats.ago(Date.parse(agent.lastSeenAt), at.nowMs))}</span>
            </div>
            <Badge tone="warn">{agent.state === 'forked' ? states.forked : states.offline}</Badge>
          </li>
        ))}
      </List>
    </Card>
  )
}
