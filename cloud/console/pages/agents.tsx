import type { z } from 'zod'
import { fetchAgents } from '../../protection/agents/administration/agent-operations.ts'
import { createEnrolmentCode } from '../../protection/agents/enrolment/enrol-operations.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { fetchDevices } from '../../protection/devices/device-operations.ts'
import { dayOf } from '../../shop/analytics/store-days.ts'
import { createSetupCode } from '../../protection/devices/setup-codes.ts'
import { moveReceiptHome } from '../../protection/receipt-home/home-move.ts'
import { fetchProtectionPolicy } from '../../protection/store-policy/policy-operations.ts'
import { Badge, type Tone, Card, EmptyState } from '../components/card.tsx'
import { ActionForm, Confirm, Submit } from '../components/form.tsx'
import { AgentButtons, EXCEPTION_ACTIONS } from '../components/exception-card.tsx'
import { Live } from '../components/live.tsx'
import { Pagination, Table, Moment } from '../components/table.tsx'
import { deviceLabel } from '../components/device-label.ts'
import { ChooseToAdd, storeColumn } from '../components/rows-of-stores.tsx'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'
import { Select, TextField } from '../components/fields.tsx'
import { QrCode } from '../components/passkey.tsx'
import { diagnosticsOf } from './diagnostics.ts'

/** One-time codes of the page about agents and devices. Each is shown once, because the cloud stores only its hash. */

type SetupCode = z.output<typeof createSetupCode.response>
type EnrolmentCode = z.output<typeof createEnrolmentCode.response>

/** Form that makes an enrolment code. */
function InstallAgent({ at }: { at: ViewContext }) {
  const t = at.texts.agents
  return (
    <Card title={t.install}>
      <ActionForm at={at} action="enrol">
        <p>{t.installText}</p>
        <TextField form={at.form} name="name" label={t.agentName} hint={t.agentNameHint} maxlength={120} />
        <div>
          <Submit main={false}>{t.makeEnrolmentCode}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}

/** The enrolment code with the command that uses it. The QR code has the command, too. */
function EnrolmentCard({ at, made }: { at: ViewContext; made: EnrolmentCode }) {
  const t = at.texts.agents
  const enrol = `untag edge enrol --cloud ${at.cloudUrl} --code ${made.code}`
  const data = '/var/lib/untag-edge'
  const service = `runuser -u untag-edge -- ${enrol} --data ${data}`
  return (
    <Card title={t.install}>
      <div class="print-badge">
        <div>
          <p class="command-code">
            <code>{made.code}</code>
          </p>
          <p>{t.enrolmentText(at.formats.clock(Date.parse(made.expiresAt)))}</p>
          <p class="small soft">{t.qrText}</p>
        </div>
        <QrCode text={enrol} label={t.qrLabel} />
      </div>
      <Command at={at} label={t.command} text={enrol} />
      <details>
        <summary>{t.asService}</summary>
        <Command at={at} label={t.serviceCommand} text={service} />
      </details>
      <a class="button" href={at.path}>
        {t.backToDevices}
      </a>
    </Card>
  )
}

function Command({ at, label, text }: { at: ViewContext; label: string; text: string }) {
  const t = at.texts.agents
  return (
    <div class="command">
      <p>{label}</p>
      <pre tabindex={0} aria-label={label}>
        {text}
      </pre>
      <button type="button" class="button needs-script" data-copy={text} data-done={t.copied}>
        {t.copy}
      </button>
    </div>
  )
}

/** Form that makes a set-up code. */
function SetUp({ at }: { at: ViewContext }) {
  const t = at.texts.agents
  return (
    <Card title={t.setup}>
      <ActionForm at={at} action="setup">
        <p>{t.setupText}</p>
        <div>
          <Submit main={false}>{t.makeCode}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}

/** The set-up code, which a person types. */
function SetupCodeCard({ at, made }: { at: ViewContext; made: SetupCode }) {
  const t = at.texts.agents
  return (
    <Card title={t.setup}>
      <p class="big-code">{made.code}</p>
      <p>{t.codeText(at.formats.clock(Date.parse(made.expiresAt)))}</p>
      <a class="button" href={at.path}>
        {t.backToDevices}
      </a>
    </Card>
  )
}

type Agent = z.output<typeof fetchAgents.response>['agents'][number]
/** A device as the API lists it. */
export type Device = z.output<typeof fetchDevices.response>['devices'][number]

/** What the page shows. Without devices, the role or the package does not allow to read them. */
interface AgentsView {
  readonly agents: readonly Agent[]
  readonly agentsTotal: number
  readonly nextAgents: string | undefined
  readonly devices: readonly Device[]
  readonly total: number
  readonly nextCursor: string | undefined
  /** The agent at which receipts are used up, or `cloud`; undefined for all stores, or without the right to read it. */
  readonly home: string | undefined
}

const ADMINS = rolesFrom('admin')
/** Agents or devices on a page. */
const PAGE = 50
/** Name of the cursor of the agents in the address. */
const AGENTS_CURSOR = 'agents'

/** State of the agents and devices of a store. */
export const agentsPage = page<AgentsView>({
  path: '/console/agents',
  roles: ['owner', 'admin', 'manager', 'associate', 'viewer'],
  scope: 'stores',
  navigation: { group: 'operations', icon: 'device' },
  live: ['agents', 'protection'],
  title: (texts) => texts.agents.title,
  lead: (at) => at.texts.agents.lead,
  file: {
    name: (at) => `diagnostics-${dayOf(at.nowMs)}.json`,
    type: 'application/json',
    text: diagnosticsOf,
  },
  actions: {
    enrol: {
      operation: createEnrolmentCode,
      roles: rolesFrom('manager'),
      input: (form, at) => ({ storeId: at.store?.storeId, name: form.text('name') }),
      done: (texts) => texts.agents.codeMade,
      show: (result, at) => <EnrolmentCard at={at} made={result as EnrolmentCode} />,
    },
    revoke: EXCEPTION_ACTIONS.revoke,
    trust: EXCEPTION_ACTIONS.trust,
    move: {
      operation: moveReceiptHome,
      roles: ADMINS,
      input: (form, at) => ({ storeId: at.store?.storeId, home: form.text('home') }),
      done: (texts) => texts.agents.homeMoved,
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
    const after = at.query.get(AGENTS_CURSOR) ?? undefined
    const agents = await at.runIfAllowed(fetchAgents, {
      ...(at.store && { storeId: at.store.storeId }),
      limit: PAGE,
      ...(after !== undefined && { cursor: after }),
    })
    return {
      agents: agents?.agents ?? [],
      agentsTotal: agents?.total ?? 0,
      nextAgents: agents?.nextCursor,
      ...(await devicesOf(at)),
      home: await homeOf(at),
    }
  },
  view: (at) => (
    <div class="stack wide">
      <Live at={at} id="agents">
        <Agents at={at} {...at.data} />
        <Devices at={at} {...at.data} />
      </Live>
      <ReceiptHome at={at} {...at.data} />
      {at.has(rolesFrom('manager')) ? <Diagnostics at={at} /> : null}
      <ChooseToAdd at={at} />
      {at.store && at.has(rolesFrom('manager')) ? (
        <>
          <InstallAgent at={at} />
          <SetUp at={at} />
        </>
      ) : null}
    </div>
  ),
})

async function homeOf(at: PageContext): Promise<string | undefined> {
  if (!at.store) return undefined
  return (await at.runIfAllowed(fetchProtectionPolicy, { storeId: at.store.storeId }))?.policy.home
}

async function devicesOf(at: PageContext): Promise<Pick<AgentsView, 'devices' | 'total' | 'nextCursor'>> {
  const cursor = at.query.get('cursor') ?? undefined
  const found = await at.runIfAllowed(fetchDevices, {
    ...(at.store && { storeId: at.store.storeId }),
    limit: PAGE,
    ...(cursor !== undefined && { cursor }),
  })
  return { devices: found?.devices ?? [], total: found?.total ?? 0, nextCursor: found?.nextCursor }
}

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

function Agents({ at, agents, agentsTotal, nextAgents, home }: { at: ViewContext } & AgentsView) {
  const t = at.texts.agents
  if (agents.length === 0)
    return (
      <Card title={t.agents}>
        <EmptyState icon="device" title={t.noAgents}>
          {at.has(rolesFrom('manager')) ? t.noAgentsText : undefined}
        </EmptyState>
      </Card>
    )
  return (
    <Card title={t.agents} flush>
      <Table
        caption={t.agents}
        rows={agents}
        columns={[
          {
            label: t.agent,
            kind: 'head',
            cell: ({ agentId, name }) => (
              <>
                {name}
                {agentId === home ? <span class="sub">{t.isHome}</span> : null}
              </>
            ),
          },
          ...storeColumn(at),
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
          ...(at.has(ADMINS)
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
      <Pagination at={at} shown={agents.length} total={agentsTotal} nextCursor={nextAgents} name={AGENTS_CURSOR} />
    </Card>
  )
}

function AgentActions({ at, agent: { agentId, name, state } }: { at: ViewContext; agent: Agent }) {
  return state === 'revoked' ? null : (
    <div class="row">
      <AgentButtons at={at} about={{ agentId }} name={name} isForked={state === 'forked'} />
    </div>
  )
}

/** A file for support. */
function Diagnostics({ at }: { at: ViewContext }) {
  const t = at.texts.agents
  return (
    <Card title={t.support}>
      <div class="stack">
        <p>{t.supportText}</p>
        <div>
          <a class="button" href={`${at.path}?file`} download>
            {t.supportFile}
          </a>
        </div>
      </div>
    </Card>
  )
}

/** Where receipts are used up, and the button that moves that. */
function ReceiptHome({ at, agents, home }: { at: ViewContext } & Pick<AgentsView, 'agents' | 'home'>) {
  const t = at.texts.agents
  if (home === undefined) return null
  const name = agents.find(({ agentId }) => agentId === home)?.name ?? home
  const others = [
    { value: 'cloud', label: t.cloud },
    ...agents.filter(({ state }) => state !== 'revoked').map(({ agentId, name: label }) => ({ value: agentId, label })),
  ].filter(({ value }) => value !== home)
  return (
    <Card title={t.receipts}>
      <div class="stack">
        <p>{home === 'cloud' ? t.homeCloud : t.homeAgent(name)}</p>
        {at.has(ADMINS) && others.length > 0 ? (
          <div>
            <Confirm
              at={at}
              action="move"
              label={t.move}
              question={t.moveQuestion}
              explanation={t.moveText}
              confirm={t.move}
            >
              <Select form={at.form} name="home" label={t.newHome} choices={others} />
            </Confirm>
          </div>
        ) : null}
      </div>
    </Card>
  )
}

function Devices({ at, agents, devices, total, nextCursor }: { at: ViewContext } & AgentsView) {
  const t = at.texts.agents
  const names = new Map(agents.map(({ agentId, name }) => [agentId, name]))
  if (devices.length === 0)
    return (
      <Card title={t.devices}>
        <EmptyState icon="device" title={t.noDevices}>
          {at.has(rolesFrom('manager')) ? t.noDevicesText : undefined}
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
              cell: ({ deviceId, name, deviceType, storeId }) => (
                <>
                  <a href={`/console/agents/${deviceId}${at.store ? '' : `?store=${storeId}`}`}>
                    {deviceLabel(at, { deviceId, deviceType, name })}
                  </a>
                  {name === undefined || name === t.types[deviceType] ? null : (
                    <span class="sub">{t.types[deviceType]}</span>
                  )}
                </>
              ),
            },
            ...storeColumn(at),
            {
              label: t.agent,
              cell: ({ agentId }) => (agentId === undefined ? t.unassigned : (names.get(agentId) ?? '–')),
            },
            { label: t.place, cell: (device) => placeOf(at, device) ?? '–' },
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
export function DeviceHealth({ at, device }: { at: ViewContext; device: Device }) {
  const t = at.texts.agents
  const { health } = device
  if (!health || device.decommissionedAt !== undefined) return '–'
  const { state, unknownBecause, detail, since, readsTags } = health
  const isBlind = readsTags === false
  return (
    <div>
      {isBlind && state === 'ready' ? (
        <Badge tone="warn">{t.noTagReader}</Badge>
      ) : (
        <Badge tone={HEALTH_TONES[state]}>{t.healthStates[state]}</Badge>
      )}
      {isBlind ? <span class="sub">{t.noTagReaderStep}</span> : null}
      {unknownBecause === undefined ? null : <span class="sub">{t.unknownHealth[unknownBecause]}</span>}
      {state === 'degraded' || state === 'absent' ? <span class="sub">{t.healthSteps[state]}</span> : null}
      {state === 'ready' || detail === undefined ? null : (
        <details class="small">
          <summary>{t.driverText}</summary>
          <span lang="en">{detail}</span>
        </details>
      )}
      {since === undefined || state === 'ready' ? null : (
        <span class="sub">
          {t.since} <Moment ms={Date.parse(since)} text={at.formats.moment(Date.parse(since))} />
        </span>
      )}
    </div>
  )
}

/** Lane, gate or zone of a device, as `Lane 1` if its id is `lane_1`. */
export function placeOf({ texts }: PageContext, { laneId, gateId, zoneId }: Device): string | undefined {
  const id = gateId ?? laneId ?? zoneId
  const [, kind, number] = /^(lane|gate|zone)[_-]?(\d+)$/.exec(id ?? '') ?? []
  return kind === undefined ? id : `${texts.agents.places[kind as 'lane' | 'gate' | 'zone']} ${number}`
}

/** Whether the store uses the device. This says nothing about its health. */
export function DeviceUse({ at, device }: { at: ViewContext; device: Device }) {
  const t = at.texts.agents
  if (device.decommissionedAt !== undefined) return t.decommissioned
  if (device.movingToAgentId !== undefined) return <Badge tone="info">{t.moving}</Badge>
  return device.agentId === undefined ? <Badge tone="warn">{t.unassigned}</Badge> : t.inUse
}

function LastContact({ at, time }: { at: ViewContext; time: string }) {
  const ms = Date.parse(time)
  return <Moment ms={ms} text={at.formats.ago(ms, at.nowMs)} />
}
