import type { z } from 'zod'
import type { DEVICE_HEALTH } from '../../../policy/documents/agent-messages.ts'
import { EXCEPTION_KINDS, GATE_ALARMS } from '../../../policy/vocabulary.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import type { TaskKind } from '../../sales/store-operations/open-tasks.ts'
import {
  AGENT_CONDITIONS,
  fetchAgentConditions,
  type AgentCondition,
} from '../../protection/agents/administration/agent-conditions.ts'
import { fetchAgents } from '../../protection/agents/administration/agent-operations.ts'
import { fetchExceptions } from '../../protection/records/exception-operations.ts'
import { inStore, storeName } from '../components/all-stores.tsx'
import { Badge, Card, EmptyState, Figures, type FigureView, type Tone } from '../components/card.tsx'
import { shortId } from '../components/device-label.ts'
import { ActiveEmergency, activeEmergencies, type ActiveEmergencies } from '../components/emergency.tsx'
import { AgentButtons, EXCEPTION_ACTIONS, ExceptionCard, type Exception } from '../components/exception-card.tsx'
import { Select } from '../components/fields.tsx'
import { kindsOf } from '../components/fixes.ts'
import { Live } from '../components/live.tsx'
import { pageOfLists } from '../components/rows-of-stores.tsx'
import { FilterBar, Moment, Pagination, Results, Table } from '../components/table.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Agent = z.output<typeof fetchAgents.response>['agents'][number] & { readonly condition: AgentCondition }
type Conditions = z.output<typeof fetchAgentConditions.response>
type DeviceFault = Exclude<(typeof DEVICE_HEALTH)[number], 'ready'>

/** A page of one of the two lists. */
interface Listed<R> {
  readonly rows: readonly R[]
  readonly nextCursor: string | undefined
}

interface HealthView {
  readonly conditions: Conditions
  /** Undefined if the filter hides the list. */
  readonly agents: Listed<Agent> | undefined
  readonly exceptions: Listed<Exception> | undefined
  /** Why agents refused the rules, by agent. */
  readonly refusals: ReadonlyMap<string, string>
  readonly active: ActiveEmergencies
}

/** Name of the cursor of the agents in the address. */
const AGENTS_CURSOR = 'agents'
/** Tasks that are exceptions of this page. The alarms of gates have a page of their own. */
const EXCEPTION_TASKS: ReadonlySet<TaskKind> = new Set(['emergency', 'release', 'refund', 'exception'])
const TROUBLES = AGENT_CONDITIONS.filter((condition) => condition !== 'ok')
/** Exceptions that say why an agent keeps its old rules. */
const REFUSALS = ['refused_document', 'agent_too_old']
const REFUSALS_READ = 100

const TONES = {
  forked: 'warn',
  offline: 'warn',
  behind: 'warn',
  fault: 'warn',
  never: 'plain',
  ok: 'ok',
} as const satisfies Record<AgentCondition, Tone>

/**
 * Agents, devices and exceptions that need a person, in one store or all. The counts lead to the agents of one
 * condition. Each list reads 50 rows, by an index, however many stores there are.
 */
export const healthPage = page<HealthView>({
  path: '/console/health',
  roles: rolesFrom('viewer'),
  scope: 'stores',
  navigation: { group: 'operations', icon: 'settings' },
  live: ['agents', 'protection', 'payments'],
  title: (texts) => texts.health.title,
  lead: (at) => at.texts.health.lead,
  actions: EXCEPTION_ACTIONS,
  async load(at) {
    const conditions = await at.run(fetchAgentConditions, ofStore(at))
    const [state, kind] = [stateOf(at), kindOf(at)]
    const agents = kind !== undefined && state === undefined ? undefined : await agentsOf(at, conditions, state)
    return {
      conditions,
      agents,
      exceptions: state !== undefined && kind === undefined ? undefined : await exceptionsOf(at, kind),
      refusals: agents?.rows.some(({ condition }) => condition === 'behind') ? await refusalsOf(at) : new Map(),
      active: await activeEmergencies(at),
    }
  },
  view(at) {
    const t = at.texts.health
    return (
      <>
        <FilterBar at={at}>
          <Select
            form={NO_FORM}
            name="state"
            label={at.texts.agents.agents}
            value={stateOf(at) ?? ''}
            choices={[
              { value: '', label: t.allProblems },
              ...AGENT_CONDITIONS.map((value) => ({ value, label: t.conditions[value] })),
            ]}
          />
          <Select
            form={NO_FORM}
            name="kind"
            label={t.exceptionKind}
            value={kindOf(at) ?? ''}
            choices={[{ value: '', label: t.everyKind }, ...kindChoices(at)]}
          />
        </FilterBar>
        <Results>
          <Live at={at} id="health">
            <ActiveEmergency at={at} active={at.data.active} />
            <Figures figures={figuresOf(at)} />
            {at.data.agents ? <Agents at={at} agents={at.data.agents} /> : null}
            {at.data.exceptions ? <Exceptions at={at} exceptions={at.data.exceptions} /> : null}
          </Live>
        </Results>
      </>
    )
  },
})

const ofStore = ({ store }: PageContext) => (store ? { storeId: store.storeId } : {})

/** The filter of the address; undefined: everything that needs a person. */
function stateOf({ query }: PageContext): AgentCondition | undefined {
  return AGENT_CONDITIONS.find((condition) => condition === query.get('state'))
}

function kindOf({ query }: PageContext): string | undefined {
  return EXCEPTION_KINDS.find((kind) => kind === query.get('kind'))
}

function kindChoices({ texts, language }: PageContext) {
  return EXCEPTION_KINDS.filter((kind) => !GATE_ALARMS.has(kind))
    .map((value) => ({ value, label: texts.exceptionTitles[value] }))
    .toSorted((a, b) => a.label.localeCompare(b.label, language))
}

/** The agents of each condition, the worst first. Conditions without agents are not read. */
function agentsOf(at: PageContext, { conditions }: Conditions, state: AgentCondition | undefined) {
  const present = new Set(conditions.flatMap(({ condition, agents }) => (agents > 0 ? [condition] : [])))
  const shown = (state === undefined ? TROUBLES : [state]).filter((condition) => present.has(condition))
  const lists = shown.map((condition) => ({
    name: condition,
    async read(about: { limit: number; cursor?: string }) {
      const { agents, nextCursor } = await at.run(fetchAgents, { ...ofStore(at), condition, ...about })
      return { rows: agents.map((agent) => ({ ...agent, condition })), nextCursor }
    },
  }))
  return pageOfLists<Agent>(at, lists, AGENTS_CURSOR)
}

/** Open exceptions, the most urgent first, and the newest of these. */
function exceptionsOf(at: PageContext, kind: string | undefined) {
  const [now, later] = [kindsOf('now'), kindsOf('later')]
  const filters =
    kind === undefined
      ? { now: { kinds: now }, today: { otherThan: [...now, ...later] }, later: { kinds: later } }
      : { kind: { kind } }
  const lists = Object.entries(filters).map(([name, filter]) => ({
    name,
    async read(about: { limit: number; cursor?: string }) {
      const found = await at.runIfAllowed(fetchExceptions, {
        ...ofStore(at),
        ...filter,
        state: 'open',
        withoutAlarms: true,
        ...about,
      })
      return found && { rows: found.exceptions, nextCursor: found.nextCursor }
    },
  }))
  return pageOfLists<Exception>(at, lists)
}

async function refusalsOf(at: PageContext): Promise<ReadonlyMap<string, string>> {
  const about = { ...ofStore(at), kinds: REFUSALS, state: 'open' as const, limit: REFUSALS_READ }
  const { exceptions = [] } = (await at.runIfAllowed(fetchExceptions, about)) ?? {}
  return new Map(exceptions.flatMap(({ agentId, detail }) => (agentId === undefined ? [] : [[agentId, detail]])))
}

/** The number of agents of each condition, and of open exceptions. Each leads to its list. */
function figuresOf(at: ViewContext<HealthView>): FigureView[] {
  const t = at.texts.health
  const { number } = at.formats
  const { conditions, total } = at.data.conditions
  const open = at.tasks.reduce((sum, { kind, count }) => sum + (EXCEPTION_TASKS.has(kind) ? count : 0), 0)
  return [
    ...conditions.map(({ condition, agents }) => ({
      label: t.conditions[condition],
      value: number(agents),
      note: t.of(number(total)),
      href: `${at.path}?state=${condition}`,
    })),
    { label: t.openExceptions, value: number(open), href: `${at.path}#exceptions` },
  ]
}

function Agents({ at, agents: { rows, nextCursor } }: { at: ViewContext<HealthView>; agents: Listed<Agent> }) {
  const t = at.texts.health
  const { agents: a } = at.texts
  if (rows.length === 0)
    return (
      <Card title={a.agents}>
        <EmptyState title={stateOf(at) === undefined ? t.noFault : t.noneShown}>{t.noFaultText}</EmptyState>
      </Card>
    )
  return (
    <Card title={a.agents} flush>
      <Table
        caption={a.agents}
        rows={rows}
        columns={[
          { label: a.agent, kind: 'head', cell: (agent) => <Named at={at} agent={agent} /> },
          {
            label: at.texts.frame.state,
            cell: ({ condition }) => <Badge tone={TONES[condition]}>{t.conditions[condition]}</Badge>,
          },
          { label: t.why, kind: 'prose', cell: (agent) => <Why at={at} agent={agent} /> },
          {
            label: a.lastContact,
            cell: ({ lastSeenAt }) => (
              <Moment ms={Date.parse(lastSeenAt)} text={at.formats.ago(Date.parse(lastSeenAt), at.nowMs)} />
            ),
          },
          ...(at.has(rolesFrom('admin'))
            ? [
                {
                  label: a.actions,
                  kind: 'actions' as const,
                  cell: ({ agentId, name, condition }: Agent) =>
                    condition === 'forked' || condition === 'never' ? (
                      <div class="row">
                        <AgentButtons at={at} about={{ agentId }} name={name} isForked={condition === 'forked'} />
                      </div>
                    ) : null,
                },
              ]
            : []),
        ]}
      />
      <Pagination at={at} shown={rows.length} nextCursor={nextCursor} name={AGENTS_CURSOR} />
    </Card>
  )
}

function Named({ at, agent: { name, storeId } }: { at: PageContext; agent: Agent }) {
  return (
    <>
      {name}
      {at.store ? null : (
        <p class="sub">
          <a href={inStore(at, at.path, storeId)}>{storeName(at, storeId)}</a>
        </p>
      )}
    </>
  )
}

/** What is wrong with the agent, and what to do. */
function Why({ at, agent }: { at: ViewContext<HealthView>; agent: Agent }) {
  const t = at.texts.health
  const { condition, agentId, release = '–', neededRelease, policyVersion, currentPolicyVersion } = agent
  const { number } = at.formats
  if (condition === 'fault') return <Faults at={at} agent={agent} />
  if (condition !== 'behind') return t.steps[condition]
  const reason = at.data.refusals.get(agentId)
  const step =
    neededRelease !== undefined ? t.tooOld(release, neededRelease) : reason === undefined ? t.steps.behind : t.refused
  return (
    <div>
      {t.versions(number(policyVersion ?? 0), number(currentPolicyVersion))} {step}
      {reason === undefined ? null : (
        <details class="small">
          <summary>{t.reason}</summary>
          <span lang="en">{reason}</span>
        </details>
      )}
    </div>
  )
}

/** The devices that do not work, each with its page, its state and what to do. */
function Faults({ at, agent: { faults, storeId } }: { at: PageContext; agent: Agent }) {
  const { agents: a, health: t } = at.texts
  const steps: Readonly<Record<DeviceFault, string>> = a.healthSteps
  const devices = faults?.devices ?? []
  const others = (faults?.total ?? 0) - devices.length
  return (
    <div>
      {t.steps.fault}
      {devices.map(({ deviceId, name, fault }) => (
        <p>
          <a href={inStore(at, `/console/agents/${deviceId}`, storeId)}>{name ?? `${a.device} ${shortId(deviceId)}`}</a>
          : {a.healthStates[fault]}
          <span class="sub">{steps[fault]}</span>
        </p>
      ))}
      {others > 0 ? <span class="sub">{t.moreDevices(at.formats.number(others))}</span> : null}
    </div>
  )
}

function Exceptions({
  at,
  exceptions: { rows, nextCursor },
}: {
  at: ViewContext<HealthView>
  exceptions: Listed<Exception>
}) {
  const t = at.texts
  return (
    <section id="exceptions" class="stack" aria-label={t.health.openExceptions}>
      {rows.length === 0 ? (
        <Card title={t.health.openExceptions}>
          <EmptyState title={t.health.noExceptions} />
        </Card>
      ) : (
        <>
          <h2>{t.health.openExceptions}</h2>
          {rows.map((exception) => (
            <ExceptionCard at={at} exception={exception} active={at.data.active} />
          ))}
        </>
      )}
      <Pagination at={at} shown={rows.length} nextCursor={nextCursor} />
    </section>
  )
}
