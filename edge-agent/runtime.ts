import { join } from 'node:path'
import { result } from '../device-drivers/drivers/device.ts'
import { supervise, type Supervisor, type SupervisorOptions } from '../device-drivers/supervisor.ts'
import type { Release } from '../policy/documents/release-notice.ts'
import { limitedLog } from '../policy/limited-log.ts'
import type { Cancel, Platform, SecretFiles } from '../policy/platform.ts'
import type { AgentConfig } from './config.ts'
import { authorizer } from './decisions/authorize.ts'
import { keepOutcomes } from './decisions/outcomes.ts'
import { exitClaimer } from './decisions/claim-exit.ts'
import { givingUp } from './decisions/give-up.ts'
import { verifyPickupCode } from './decisions/pickup-code.ts'
import { openFeed, type Feed } from './feed.ts'
import { countPerson, newCounters, type Counters } from './health/metrics.ts'
import { keepTidy } from './housekeeping.ts'
import { agentStatus, configuredDevice, type AgentStatus, type ConfiguredDevice } from './health/status.ts'
import { openItemFile } from './items/database.ts'
import { openReplica, type Replica } from './items/replica.ts'
import { openDoors } from './devices/doors.ts'
import { openEmergency } from './devices/emergency.ts'
import { openDeviceJournal } from './devices/device-journal.ts'
import { openGates, type Gates } from './lanes/gate/gates.ts'
import { verifyRelease } from './lanes/gate/release-proof.ts'
import { alarmShown } from './lanes/gate/alarm-shown.ts'
import { openLanes, type Lanes, type ScanResult } from './lanes/lanes.ts'
import { operatorSessions, type Operators } from './lanes/operators.ts'
import { openLedger, type Ledger, type OpenLedgerFile } from './ledger/ledger.ts'
import { watchReleases, type Execute } from './devices/release-watch.ts'
import { wiringOf } from './devices/wiring.ts'
import { recover } from './ledger/recovery.ts'
import { commandTaker } from './link/documents/commands.ts'
import { connect, type Connection } from './link/connection.ts'
import { openHome, type Home } from './peers/home.ts'
import { ledgerGreeting } from './link/login/ledger-greeting.ts'
import { httpClient, type Fetch } from './link/wire/http-client.ts'
import { messagesOf } from './link/login/messages.ts'
import type { OpenMqttLine } from './link/wire/mqtt-line.ts'
import { outbox } from './link/reports/outbox.ts'
import { refusals } from './link/documents/refusals.ts'
import { openReleaseNotices, type ReleaseNotices } from './peers/release-notices.ts'
import type { RuntimeFiles } from './ledger/file/watermark.ts'
import type { Log } from './log.ts'
import { checkDevice } from './setup/check-device.ts'
import type { ConfigFile } from './setup/config-file.ts'
import type { Surroundings } from './setup/surroundings.ts'
import { openAgentKey } from './identity/agent-key.ts'
import { openAgentClock, type AgentClock } from './trust/time/clock.ts'
import type { Identity } from './identity/identity.ts'
import { keepRestored, ledgerDoubt } from './trust/revocation/ledger-doubt.ts'
import { openStoreKeys } from './identity/store-keys.ts'
import { openTrust, type Trust } from './trust/trust.ts'
import { noteRevoked } from './trust/revocation/ledger-doubt.ts'
import { watchKeys } from './trust/watch-keys.ts'

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
  readonly home: Home
  /** What is released, between the agents of the store. */
  readonly notices: ReleaseNotices
  readonly lanes: Lanes
  readonly gates: Gates
  readonly operators: Operators
  readonly feed: Feed
  readonly counters: Counters
  readonly platform: Platform
  status(): AgentStatus
  /** Connects a device anew and answers what was found; undefined: it is not configured here. */
  check(deviceId: string): Promise<ConfiguredDevice | undefined>
  readonly surroundings: Surroundings | undefined
  readonly configFile: ConfigFile | undefined
  /** Resolves once the cloud was heard, or after `limitMs`. */
  ready(limitMs: number): Promise<boolean>
  stop(): Promise<void>
}

export interface AgentParts {
  platform: Platform
  dataDir: string
  identity: Identity
  /** Writes the identity down, durably, when the agent has changed its key. */
  keepIdentity(identity: Identity): void
  /** For secrets that the agent keeps in `dataDir`. */
  secretFiles: SecretFiles
  config: AgentConfig
  fetch: Fetch
  openLine: OpenMqttLine
  log: Log
  mqttUrl?: string
  /** How the set-up page looks around; without it finds nothing. */
  surroundings?: Surroundings
  /** Where the set-up page writes devices down; without it only shows what to write. */
  configFile?: ConfigFile
  /** Where other agents of the store reach this one, `http://host:port`. */
  address?: string
  /** How device links are opened; by default the real ones. */
  openLink?: SupervisorOptions['openLink']
  /** What keeps the devices; by default the real supervisor with their drivers. */
  supervise?: (options: SupervisorOptions) => Supervisor
  /** How the ledger's file is opened; by default the real way. */
  openLedgerFile?: OpenLedgerFile
  /** Where the watermark of the ledger is kept, outside `dataDir`; by default nowhere. */
  runtimeFiles?: RuntimeFiles
  /** How devices are made of their entries; by default by their drivers. */
  openDevice?: SupervisorOptions['openDevice']
  /** The ledger cannot be trusted any more: the process must end and start again (P6). */
  onFatal(why: Error): void
}

/** A release at a device that an emergency holds open: the way is open already. */
const HELD_OPEN = result('confirmed', false, 'already_open', 'an emergency holds it open')

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
    open: parts.openLedgerFile,
    runtime: parts.runtimeFiles && { files: parts.runtimeFiles, log },
  })
  if (ledger.isBehindWatermark) keepRestored(ledger, log)
  const clock = openAgentClock(ledger, platform.clock)
  const outcomes = keepOutcomes({ ledger, timers: platform.timers, log })
  const recovered = recover(ledger, identity.storeId, clock.now().nowMs, platform, outcomes.later)
  if (recovered > 0) log.warn({ claims: recovered }, 'claims without outcome were found: somebody must look')
  const itemsFile = join(parts.dataDir, 'items.db')
  const itemFile = openItemFile(itemsFile, (error) =>
    log.error(
      { err: error, file: itemsFile },
      'the file of the items cannot be read: remove it; until then they are fetched at every start',
    ),
  )
  const items = openReplica({ disk: itemFile, platform, log })
  const trust = openTrust(identity, ledger, clock, items)
  const storeKeys = openStoreKeys({ dataDir: parts.dataDir, files: parts.secretFiles, log })
  const operators = operatorSessions(platform, () => ({
    records: trust.policy?.operators ?? [],
    storeKey: storeKeys.find(trust.policy?.storeKey),
  }))

  const wiring = wiringOf(config.devices)
  let supervisor: Supervisor | undefined
  const nowMs = () => clock.now().nowMs
  const journal = openDeviceJournal({ platform, ledger, storeId: identity.storeId, nowMs, log })
  const show = (deviceId: string, result: ScanResult) =>
    feed.publish({ type: 'result', deviceId, atMs: platform.clock.wall(), result })
  const releases = watchReleases({
    platform,
    execute: (deviceId, command, signal) =>
      supervisor?.execute(deviceId, command, signal) ??
      Promise.resolve(result('failed', false, 'not_ready', 'the agent is starting')),
    confirmInputOf: wiring.confirmInputOf,
    onTrouble(deviceId, reason, detail) {
      log.warn({ deviceId, reason, detail }, 'a release went otherwise than commanded')
      journal.add({
        type: 'protection.exception.raised',
        deviceId,
        reason,
        detail: detail.slice(0, 300),
        offline: !link.isOnline,
      })
      if (reason === 'unexpected_release') show(deviceId, { kind: 'alarm', what: reason })
    },
  })
  const emergency = openEmergency({
    platform,
    wiring,
    deviceTypeOf: (deviceId) => trust.policy?.devices.find((device) => device.deviceId === deviceId)?.deviceType,
    command: (deviceId, command) => void supervisor?.execute(deviceId, command, new AbortController().signal),
    record: (event) => journal.add(event),
    isOnline: () => link.isOnline,
    onChange(state) {
      log.warn({ emergency: state }, state ? 'an emergency input is active' : 'the emergency is over')
      changed()
    },
  })
  const execute: Execute = async (deviceId, command, signal) =>
    command.kind === 'release' && emergency.holdsOpen(deviceId)
      ? HELD_OPEN
      : releases.execute(deviceId, command, signal)
  const doors = openDoors({
    record: journal.add,
    isOnline: () => link.isOnline,
    onAlarm: (deviceId, what) => show(deviceId, { kind: 'alarm', what }),
    onChange: () => changed(),
  })

  const key = openAgentKey(identity, (changed) => parts.keepIdentity(changed))
  const greeting = ledgerGreeting(ledger, log)
  const messages = messagesOf(identity, greeting.view, key.signer)
  const giveUp = givingUp({ ledger, timers: platform.timers, nowMs, log })
  const tellRefusal = refusals({ platform, ledger, storeId: identity.storeId, nowMs, log })
  const link = connect({
    platform,
    identity,
    http: httpClient(identity.cloud, parts.fetch, platform),
    openLine: parts.openLine,
    messages,
    key,
    ledger,
    outbox: outbox(ledger, messages, trust, identity.agentId),
    trust,
    log,
    mqttUrl: parts.mqttUrl,
    address: parts.address,
    deviceIds: () => config.devices.map((device) => device.deviceId),
    describe: () => ({
      policyVersion: trust.policy?.ver ?? 0,
      queueDepth: ledger.journal.waiting,
      devices: (supervisor?.statuses ?? []).map(({ deviceId, state, detail }) => ({
        deviceId,
        state,
        detail: detail.slice(0, 300),
      })),
    }),
    nowMs,
    onChange: () => changed(),
    onRefused: tellRefusal,
    onGreeting: greeting.take,
    storeKeys,
    onForked(isForked) {
      if (greeting.takeForked(isForked)) changed()
    },
    onCommand: commandTaker({ agentId: identity.agentId, trust, clock, giveUp: giveUp.now, onRevoked }),
  })
  tellCloud = link.kick

  function onRevoked(kid: string): void {
    if (!noteRevoked(ledger, kid)) return
    log.warn(
      { agentId: identity.agentId },
      'this agent was revoked: it releases nothing any more (untag edge enrol --replace)',
    )
    changed()
  }

  const home = openHome({
    platform,
    agentId: identity.agentId,
    ledger,
    trust,
    signer: key.signer,
    fetch: parts.fetch,
    nowMs,
    clock,
    isLedgerSure: () => link.isOnline && ledgerDoubt(ledger, nowMs()) === undefined,
  })
  const releaseProof = { agentId: identity.agentId, storeId: identity.storeId, trust, clock, ledger }
  /** Silences this agent's gates for a unit that was released here or elsewhere; why not, where the proof does not hold. */
  function silence(release: Release, senderId: string): string | undefined {
    const checked = verifyRelease(releaseProof, release, senderId)
    if (!checked.ok) return checked.why
    gates.onReleased(checked.unit)
    return undefined
  }
  const notices = openReleaseNotices({
    platform,
    agentId: identity.agentId,
    storeId: identity.storeId,
    trust,
    clock,
    signer: key.signer,
    fetch: parts.fetch,
    log,
    onNotice: silence,
  })
  const deciding = {
    platform,
    agentId: identity.agentId,
    storeId: identity.storeId,
    ledger,
    clock,
    trust,
    link,
    items,
    home,
    giveUp,
    outcomes,
    log,
    canRelease: wiring.canRelease,
    onReleased(release: Release) {
      silence(release, identity.agentId)
      notices.send(release)
    },
    execute,
  }
  const authorize = authorizer(deciding)
  const gates = openGates({
    platform,
    items,
    memory: itemFile,
    journal,
    nowMs,
    policy: () => trust.policy?.policy,
    isOnline: () => link.isOnline,
    ask: link.look,
    execute,
    claimExit: exitClaimer(deciding),
    antennasOf: wiring.antennasOf,
    sirenSecondsOf: wiring.sirenSecondsOf,
    onAlarm: (deviceId, tag, judgement) => show(deviceId, alarmShown(tag, judgement, !link.isOnline)),
    log,
  })
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
      const answer = await authorize(request)
      counters[answer.authorized ? 'granted' : 'denied']++
      if (answer.outcome) counters[answer.outcome]++
      changed()
      return answer
    },
    execute,
    journal,
    items,
    verifyPickupCode: (code) => verifyPickupCode(link, identity.storeId, code),
    wiring,
    doors,
    onResult: show,
    onOperator: (deviceId, name) => feed.publish({ type: 'operator', deviceId, name }),
    onPerson: (deviceId, direction) =>
      feed.publish({ type: 'person', deviceId, direction, count: countPerson(counters, deviceId, direction) }),
  })

  const status = () =>
    agentStatus({
      identity,
      clock,
      trust,
      items,
      link,
      ledger,
      doors,
      emergency: emergency.state,
      wiring,
      fault,
      devices: supervisor?.statuses ?? [],
    })

  let statusTimer: Cancel | undefined
  let isStopping = false
  function changed(): void {
    if (isStopping) return
    emergency.refresh()
    statusTimer ??= platform.timers.after(STATUS_EVERY_MS, () => {
      statusTimer = undefined
      feed.publish({ type: 'status', status: status() })
    })
  }

  // A loose plug or a scanner on the wrong baud rate tells something every second.
  const deviceLog = limitedLog((fields, message) => log.info(fields, message), platform)
  const deviceFaults = limitedLog((fields, message) => log.warn(fields, message), platform)

  // Devices last: what they report finds everything in place.
  supervisor = (parts.supervise ?? supervise)({
    devices: config.devices,
    platform,
    ...(parts.openLink && { openLink: parts.openLink }),
    ...(parts.openDevice && { openDevice: parts.openDevice }),
    onState: (status) => {
      const { deviceId, state, detail } = status
      emergency.onState(status)
      deviceLog.write({ deviceId, state, detail }, 'a device changed', deviceId)
      changed()
    },
    onEvent: (deviceId, event) => {
      if (event.type === 'emergency') return emergency.onLevel(deviceId, event.on)
      if (event.type === 'fault' || event.type === 'noise')
        deviceFaults.write({ deviceId, ...event }, 'a device reported', deviceId)
      if (event.type === 'input' && !emergency.holdsOpen(deviceId)) releases.onInput(deviceId, event.input, event.on)
      lanes.onEvent(deviceId, event)
    },
    onListenerError: (error) => log.error({ err: error }, 'a listener failed'),
  })
  emergency.start()

  const onLook = watchKeys({ platform, ledger, storeId: identity.storeId, trust, log })
  const stopTidying = keepTidy({ ledger, clock, timers: platform.timers, log, onLook })
  link.start()
  home.start()

  return {
    identity,
    config,
    ledger,
    clock,
    trust,
    items,
    link,
    home,
    notices,
    lanes,
    gates,
    operators,
    feed,
    counters,
    platform,
    status,
    async check(deviceId) {
      const found = supervisor && (await checkDevice(supervisor, platform, deviceId))
      return found && configuredDevice(found, { identity, trust, wiring })
    },
    surroundings: parts.surroundings,
    configFile: parts.configFile,
    ready: link.ready,
    async stop() {
      isStopping = true
      emergency.stop()
      stopTidying()
      giveUp.stop()
      notices.stop()
      statusTimer?.()
      feed.close()
      lanes.stop()
      // Outputs off first: what protects must not wait for the network.
      await supervisor?.stop()
      deviceLog.stop()
      deviceFaults.stop()
      await gates.stop()
      await link.stop()
      await lanes.settled()
      await home.stop()
      await outcomes.stop()
      items.close()
      ledger.close()
    },
  }
}
