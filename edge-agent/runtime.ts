import { join } from 'node:path'
import { result, type CommandResult, type DeviceCommand } from '../device-drivers/drivers/device.ts'
import { supervise, type Supervisor, type SupervisorOptions } from '../device-drivers/supervisor.ts'
import { newId } from '../policy/ids.ts'
import type { Cancel, Platform } from '../policy/platform.ts'
import type { AgentConfig } from './config.ts'
import { authorizer } from './decisions/authorize.ts'
import { openFeed, type Feed } from './feed.ts'
import { newCounters, type Counters } from './health/metrics.ts'
import type { AgentStatus } from './health/status.ts'
import { openItemFile } from './items/database.ts'
import { openReplica, type Replica } from './items/replica.ts'
import { gateJournal } from './lanes/gate/gate-journal.ts'
import { openGates, type Antennas, type Gates } from './lanes/gate/gates.ts'
import { alarmShown } from './lanes/gate/alarm-shown.ts'
import { openLanes, type Lanes } from './lanes/lanes.ts'
import { operatorSessions, type Operators } from './lanes/operators.ts'
import { openLedger, type Ledger } from './ledger/ledger.ts'
import { recover } from './ledger/recovery.ts'
import { connect, type Connection } from './link/connection.ts'
import { ledgerGreeting } from './link/ledger-greeting.ts'
import { httpClient, type Fetch } from './link/http-client.ts'
import { messagesOf } from './link/messages.ts'
import type { OpenMqttLine } from './link/mqtt-line.ts'
import { outbox } from './link/outbox.ts'
import type { Log } from './log.ts'
import { openAgentClock, type AgentClock } from './trust/clock.ts'
import type { Identity } from './trust/identity.ts'
import { openTrust, type Trust } from './trust/trust.ts'

/**
 *   ledger ─ recovery ─ clock and trust ─ devices ─ lanes ─ link
 *
 * The agent, put together and started in this order; it works with no cloud, no broker and no device there.
 */
export interface Agent {
  readonly identity: Identity
  readonly config: AgentConfig
  readonly ledger: Ledger
  readonly clock: AgentClock
  readonly trust: Trust
  /** The store's items as they are known here. */
  readonly items: Replica
  readonly link: Connection
  readonly lanes: Lanes
  readonly gates: Gates
  readonly operators: Operators
  readonly feed: Feed
  readonly counters: Counters
  readonly platform: Platform
  status(): AgentStatus
  /** Resolves once the cloud was heard, or after `limitMs`. */
  ready(limitMs: number): Promise<boolean>
  stop(): Promise<void>
}

export interface AgentParts {
  platform: Platform
  dataDir: string
  identity: Identity
  config: AgentConfig
  fetch: Fetch
  openLine: OpenMqttLine
  log: Log
  mqttUrl?: string
  /** How device links are opened; by default the real ones. */
  openLink?: SupervisorOptions['openLink']
  /** How devices are made of their entries; by default by their drivers. */
  openDevice?: SupervisorOptions['openDevice']
  /** The ledger cannot be trusted any more: the process must end and start again (P6). */
  onFatal(why: Error): void
}

/** Claims and denials are forgotten this long after their end, s. */
const KEEP_AFTER_END = 3_600
/** Acknowledged rows are kept for a cloud that was restored, ms. */
const KEEP_ACKED_MS = 14 * 86_400_000
const HOUSEKEEPING_MS = 600_000
/** Pages are told at most this often. */
const STATUS_EVERY_MS = 100

/** Puts the rooms of the agent together and starts them. */
export function startAgent(parts: AgentParts): Agent {
  const { platform, identity, config, log } = parts
  const feed = openFeed()
  const counters = newCounters()
  let fault: string | null = null
  let tellCloud: () => void = () => undefined

  const ledger = openLedger({
    file: join(parts.dataDir, 'ledger.db'),
    ledgerId: identity.ledgerId,
    generation: identity.generation,
    onFailure(failure) {
      fault = failure.message
      parts.onFatal(failure)
    },
    onGrown: () => tellCloud(),
  })
  const clock = openAgentClock(ledger, platform.clock)
  const recovered = recover(ledger, identity.storeId, clock.now().nowMs, platform)
  if (recovered > 0) log.warn({ claims: recovered }, 'claims without outcome were found: somebody must look')
  const itemsFile = join(parts.dataDir, 'items.db')
  const itemFile = openItemFile(itemsFile, (error) => log.error({ err: error, file: itemsFile }, 'the file of the items cannot be read: remove it; until then they are fetched at every start'))
  const items = openReplica({ disk: itemFile, platform, log })
  const trust = openTrust(identity, ledger, clock, items)
  const operators = operatorSessions(platform, () => trust.policy?.operators ?? [])

  const byId = new Map(config.devices.map((device) => [device.deviceId, device]))
  let supervisor: Supervisor | undefined
  const execute = (deviceId: string, command: DeviceCommand, signal: AbortSignal): Promise<CommandResult> =>
    supervisor?.execute(deviceId, command, signal) ?? Promise.resolve(result('failed', false, 'not_ready', 'the agent is starting'))

  const nowMs = () => clock.now().nowMs
  const greeting = ledgerGreeting(ledger, log)
  const messages = messagesOf(identity, greeting.view)
  const refusals = new Set<string>()
  const link = connect({
    platform,
    identity,
    http: httpClient(identity.cloud, parts.fetch, platform),
    openLine: parts.openLine,
    messages,
    outbox: outbox(ledger, messages, trust, identity.agentId),
    trust,
    log,
    mqttUrl: parts.mqttUrl,
    deviceIds: () => config.devices.map((device) => device.deviceId),
    describe: () => ({
      policyVersion: trust.policy?.ver ?? 0,
      queueDepth: ledger.journal.waiting,
      devices: (supervisor?.statuses ?? []).map(({ deviceId, state, detail }) => ({ deviceId, state, detail: detail.slice(0, 300) })),
    }),
    nowMs,
    onChange: () => changed(),
    onRefused: (what) => reportRefusal(what),
    onGreeting: greeting.take,
  })
  tellCloud = link.kick

  /** Told once for each kind: what is refused comes again and again. */
  function reportRefusal(what: string): void {
    log.warn({ what }, 'something from the cloud was refused')
    if (refusals.has(what) || refusals.size >= 100) return
    refusals.add(what)
    const event = {
      type: 'protection.exception.raised' as const,
      eventId: newId('evt', platform),
      occurredAt: new Date(nowMs()).toISOString(),
      storeId: identity.storeId,
      reason: 'refused_document',
      detail: what.slice(0, 300),
    }
    ledger.record({ atMs: nowMs(), event }).catch((error: unknown) => log.error({ err: error }, 'a refusal could not be written down'))
  }

  const authorize = authorizer({
    platform,
    agentId: identity.agentId,
    storeId: identity.storeId,
    ledger,
    clock,
    trust,
    link,
    items,
    log,
    execute,
  })
  const gates = openGates({
    platform,
    items,
    memory: itemFile,
    journal: gateJournal({ platform, ledger, storeId: identity.storeId, nowMs, log }),
    nowMs,
    policy: () => trust.policy?.policy,
    isOnline: () => link.isOnline,
    ask: link.look,
    execute,
    antennasOf: (sourceId) => (byId.get(sourceId) as { antennas?: Antennas } | undefined)?.antennas,
    onAlarm: (deviceId, epc, judgement) => feed.publish({ type: 'result', deviceId, atMs: platform.clock.wall(), result: alarmShown(epc, judgement, !link.isOnline) }),
    log,
  })
  const underWay = new Set<Promise<unknown>>()
  const lanes = openLanes({
    platform,
    storeId: identity.storeId,
    ledger,
    clock,
    trust,
    log,
    operators,
    gates,
    async authorize(request) {
      const asked = authorize(request)
      underWay.add(asked)
      const answer = await asked.finally(() => underWay.delete(asked))
      counters[answer.authorized ? 'granted' : 'denied']++
      if (answer.outcome) counters[answer.outcome]++
      changed()
      return answer
    },
    execute,
    feeds: (scannerId) => {
      const device = byId.get(scannerId)
      return device && 'feeds' in device ? device.feeds : undefined
    },
    hasPassageSensor: (deviceId) => {
      const device = byId.get(deviceId)
      return device !== undefined && 'passageInput' in device && device.passageInput !== undefined
    },
    onResult: (deviceId, told) => feed.publish({ type: 'result', deviceId, atMs: platform.clock.wall(), result: told }),
    onOperator: (deviceId, name) => feed.publish({ type: 'operator', deviceId, name }),
  })

  function status(): AgentStatus {
    const { nowMs: now, trust: clockTrust } = clock.now()
    return {
      agentId: identity.agentId,
      storeId: identity.storeId,
      storeName: trust.policy?.storeName ?? null,
      online: link.isOnline,
      offlineSince: link.offlineSinceMs === null ? null : new Date(link.offlineSinceMs).toISOString(),
      broker: link.hasBroker,
      queueDepth: ledger.journal.waiting,
      policyVersion: trust.policy?.ver ?? null,
      stage: trust.stage(),
      clock: clockTrust,
      now: new Date(now).toISOString(),
      isHome: trust.policy?.policy.home === identity.agentId,
      items: { known: items.size, ageSeconds: items.confirmedMs === 0 ? null : Math.max(0, Math.round((now - items.confirmedMs) / 1_000)) },
      devices: (supervisor?.statuses ?? []).map((device) => {
        const known = trust.policy?.devices.find((d) => d.deviceId === device.deviceId)
        return { ...device, name: known?.name ?? null, deviceType: known?.deviceType ?? null }
      }),
      fault,
    }
  }

  let statusTimer: Cancel | undefined
  function changed(): void {
    statusTimer ??= platform.timers.after(STATUS_EVERY_MS, () => {
      statusTimer = undefined
      feed.publish({ type: 'status', status: status() })
    })
  }

  let housekeeping: Cancel | undefined
  function scheduleHousekeeping(): void {
    housekeeping = platform.timers.after(HOUSEKEEPING_MS, () => {
      const { nowMs: now, trust: clockTrust } = clock.now()
      // Nothing is forgotten by a time that rests on nothing.
      const prune = () => {
        ledger.claims.prune(Math.floor(now / 1_000) - KEEP_AFTER_END)
        ledger.journal.prune(now - KEEP_ACKED_MS)
      }
      if (clockTrust !== 'none') ledger.commits.durably(prune).catch((error: unknown) => log.error({ err: error }, 'the ledger could not be tidied'))
      scheduleHousekeeping()
    })
  }

  // Devices last: what they report finds everything in place.
  supervisor = supervise({
    devices: config.devices,
    platform,
    ...(parts.openLink && { openLink: parts.openLink }),
    ...(parts.openDevice && { openDevice: parts.openDevice }),
    onState: (status) => {
      log.info({ deviceId: status.deviceId, state: status.state, detail: status.detail }, 'a device changed')
      changed()
    },
    onEvent: (deviceId, event) => {
      if (event.type === 'fault' || event.type === 'noise') log.warn({ deviceId, ...event }, 'a device reported')
      lanes.onEvent(deviceId, event)
    },
    onListenerError: (error) => log.error({ err: error }, 'a listener failed'),
  })

  scheduleHousekeeping()
  link.start()

  return {
    identity,
    config,
    ledger,
    clock,
    trust,
    items,
    link,
    lanes,
    gates,
    operators,
    feed,
    counters,
    platform,
    status,
    ready: link.ready,
    async stop() {
      housekeeping?.()
      statusTimer?.()
      feed.close()
      // Outputs off first: what protects must not wait for the network.
      await supervisor?.stop()
      await gates.stop()
      await link.stop()
      // Whatever was under way is written down with its outcome.
      await Promise.allSettled(underWay)
      items.close()
      ledger.close()
    },
  }
}
