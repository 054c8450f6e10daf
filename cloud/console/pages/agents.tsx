import type { z } from 'zod'
import { fetchAgents, resolveAgentFork, revokeAgent } from '../../protection/agents/administration/agent-operations.ts'
import { createEnrolmentCode } from '../../protection/agents/enrolment/enrol-operations.ts'
import { rolesFrom } from '../../platform/foundation/roles.ts'
import { fetchDevices } from '../../protection/devices/device-operations.ts'
import { createSetupCode } from '../../protection/devices/setup-codes.ts'
import { Badge, type Tone } from '../components/badge.tsx'
import { Card } from '../components/card.tsx'
import { Confirm } from '../components/confirm.tsx'
import {
  EnrolmentCard,
  InstallAgent,
  SetupCodeCard,
  SetUp,
  type EnrolmentCode,
  type SetupCode,
} from './agent-codes.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import { Live } from '../components/live.tsx'
import { Pagination } from '../components/pagination.tsx'
import { Table } from '../components/table.tsx'
import { Moment } from '../components/timeline.tsx'
import { page, type ViewContext } from '../frame/page.ts'

type Agent = z.output<typeof fetchAgents.response>['agents'][number]
type Device = z.output<typeof fetchDevices.response>['devices'][number]

/** What the page shows. Without devices, the role or the package does not allow to read them. */
interface AgentsView {
  readonly agents: readonly Agent[]
  readonly devices: readonly Device[]
  readonly total: number
  readonly nextCursor: string | undefined
}

/** State of the agents and devices of a store. */
export const agentsPage = page<AgentsView>({
  path: '/console/agents',
  roles: ['owner', 'admin', 'manager', 'associate', 'viewer'],
  scope: 'store',
  navigation: { group: 'operations', icon: 'device' },
  live: ['agents', 'protection'],
  title: (texts) => texts.agents.title,
  lead: (at) => at.texts.agents.lead,
  actions: {
    enrol: {
      operation: createEnrolmentCode,
      roles: rolesFrom('manager'),
      input: (form, at) => ({ storeId: at.store?.storeId, name: form.text('name') }),
      done: (texts) => texts.agents.codeMade,
      show: (result, at) => <EnrolmentCard at={at} made={result as EnrolmentCode} />,
    },
    revoke: {
      operation: revokeAgent,
      roles: ['owner', 'admin'],
      input: (form) => ({ agentId: form.text('agentId') }),
      done: (texts) => texts.agents.revoked,
    },
    trust: {
      operation: resolveAgentFork,
      roles: ['owner', 'admin'],
      input: (form) => ({ agentId: form.text('agentId'), decision: 'trust' }),
      done: (texts) => texts.agents.trusted,
    },
    setup: {
      operation: createSetupCode,
      roles: rolesFrom('manager'),
      input: (_, at) => ({ storeId: at.store?.storeId }),
      done: (texts) => texts.agents.codeMade,
      show: (result, at) => <SetupCodeCard at={at} made={result as SetupCode} />,
    },
  },
  async load(at) {
    const storeId = at.store?.storeId ?? ''
    const cursor = at.query.get('cursor') ?? undefined
    const agents = await at.runIfAllowed(fetchAgents, { storeId, limit: 100 })
    const devices = await at.runIfAllowed(fetchDevices, { storeId, limit: 50, ...(cursor !== undefined && { cursor }) })
    return {
      agents: agents?.agents ?? [],
      devices: devices?.devices ?? [],
      total: devices?.total ?? 0,
      nextCursor: devices?.nextCursor,
    }
  },
  view: (at) => (
    <div class="stack wide">
      <Live at={at} id="agents">
        <Agents at={at} agents={at.data.agents} />
        <Devices at={at} {...at.data} />
      </Live>
      {at.has(rolesFrom('manager')) ? (
        <>
          <InstallAgent at={at} />
          <SetUp at={at} />
        </>
      ) : null}
    </div>
  ),
})

const TONES = {
  online: 'ok',
  offline: 'warn',
  never: 'plain',
  forked: 'warn',
  revoked: 'plain',
} as const satisfies Record<string, Tone>

function stateOf({ state, online }: Agent): keyof typeof TONES {
  if (state !== 'active') return state
  if (online === undefined) return 'never'
  return online ? 'online' : 'offline'
}

function Agents({ at, agents }: { at: ViewContext; agents: readonly Agent[] }) {
  const t = at.texts.agents
  if (agents.length === 0)
    return (
      <Card title={t.agents}>
        <EmptyState icon="device" title={t.noAgents}>
          {t.noAgentsText}
        </EmptyState>
      </Card>
    )
  return (
    <Card title={t.agents} flush>
      <Table
        caption={t.agents}
        rows={agents}
        columns={[
          { label: t.agent, kind: 'head', cell: (agent) => agent.name },
          {
            label: at.texts.frame.state,
            cell: (agent) => <Badge tone={TONES[stateOf(agent)]}>{t.states[stateOf(agent)]}</Badge>,
          },
          { label: t.lastContact, cell: ({ lastSeenAt }) => <LastContact at={at} time={lastSeenAt} /> },
          {
            label: t.release,
            cell: ({ release, neededRelease }) =>
              neededRelease === undefined ? (release ?? '–') : `${release ?? '–'} (${t.outdated(neededRelease)})`,
          },
          {
            label: t.unsent,
            kind: 'number',
            cell: ({ queueDepth }) => (queueDepth === undefined ? '–' : at.formats.number(queueDepth)),
          },
          ...(at.has(['owner', 'admin'])
            ? [
                {
                  label: t.actions,
                  kind: 'actions' as const,
                  cell: (agent: Agent) => <AgentActions at={at} agent={agent} />,
                },
              ]
            : []),
        ]}
      />
    </Card>
  )
}

function AgentActions({ at, agent }: { at: ViewContext; agent: Agent }) {
  const t = at.texts.agents
  const { agentId, name, state } = agent
  if (state === 'revoked') return null
  return (
    <div class="row">
      {state === 'forked' ? (
        <Confirm
          at={at}
          action="trust"
          about={{ agentId }}
          label={t.trust}
          question={t.trustQuestion(name)}
          explanation={t.trustText}
          confirm={t.trustConfirm}
        />
      ) : null}
      <Confirm
        at={at}
        action="revoke"
        about={{ agentId }}
        label={t.revoke}
        question={t.revokeQuestion(name)}
        explanation={t.revokeText}
        confirm={t.revoke}
      />
    </div>
  )
}

function Devices({ at, agents, devices, total, nextCursor }: { at: ViewContext } & AgentsView) {
  const t = at.texts.agents
  const names = new Map(agents.map(({ agentId, name }) => [agentId, name]))
  if (devices.length === 0)
    return (
      <Card title={t.devices}>
        <EmptyState icon="device" title={t.noDevices}>
          {t.noDevicesText}
        </EmptyState>
      </Card>
    )
  return (
    <>
      <Card title={t.devices} flush>
        <Table
          caption={t.devices}
          rows={devices}
          columns={[
            {
              label: t.device,
              kind: 'head',
              cell: ({ name, deviceType }) => (
                <>
                  {name ?? t.types[deviceType]}
                  {name === undefined ? null : <span class="sub">{t.types[deviceType]}</span>}
                </>
              ),
            },
            { label: t.agent, cell: ({ agentId }) => names.get(agentId ?? '') ?? t.unassigned },
            { label: t.place, cell: ({ laneId, gateId, zoneId }) => gateId ?? laneId ?? zoneId ?? '–' },
            { label: t.health, cell: (device) => <DeviceHealth at={at} device={device} /> },
            { label: t.use, cell: (device) => <DeviceUse at={at} device={device} /> },
          ]}
        />
      </Card>
      <Pagination at={at} shown={devices.length} total={total} nextCursor={nextCursor} />
    </>
  )
}

const HEALTH_TONES = {
  ready: 'ok',
  degraded: 'warn',
  absent: 'warn',
  unknown: 'plain',
} as const satisfies Record<string, Tone>

/** Whether the device works, and else why not and since when. */
function DeviceHealth({ at, device: { health } }: { at: ViewContext; device: Device }) {
  const t = at.texts.agents
  if (!health) return '–'
  const { state, unknownBecause, detail, since } = health
  return (
    <div>
      <Badge tone={HEALTH_TONES[state]}>{t.healthStates[state]}</Badge>
      {unknownBecause === undefined ? null : <span class="sub">{t.unknownHealth[unknownBecause]}</span>}
      {state === 'ready' || detail === undefined ? null : <span class="sub">{detail}</span>}
      {since === undefined || state === 'ready' ? null : (
        <span class="sub">
          {t.since} <Moment ms={Date.parse(since)} text={at.formats.moment(Date.parse(since))} />
        </span>
      )}
    </div>
  )
}

/** Whether the store uses the device. This says nothing about its health. */
function DeviceUse({ at, device }: { at: ViewContext; device: Device }) {
  const t = at.texts.agents
  if (device.decommissionedAt !== undefined) return t.decommissioned
  if (device.movingToAgentId !== undefined) return <Badge tone="info">{t.moving}</Badge>
  return device.agentId === undefined ? <Badge tone="warn">{t.unassigned}</Badge> : t.inUse
}

function LastContact({ at, time }: { at: ViewContext; time: string }) {
  const ms = Date.parse(time)
  return <Moment ms={ms} text={at.formats.ago(ms, at.nowMs)} />
}
