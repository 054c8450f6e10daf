import type { TagName } from '../device-drivers/kit/device.ts'
import type { LeavingUnit } from './decisions/claim-exit.ts'
import { DEFAULT_IN_STORE_CODES } from '../policy/gs1/in-store-code.ts'
import type { Announced } from '../policy/documents/home-messages.ts'
import type { Platform } from '../policy/platform.ts'
import type { AgentConfig } from './config.ts'
import { Authorizer, type AuthorizeParts } from './decisions/authorize.ts'
import { exitClaimer } from './decisions/claim-exit.ts'
import { openSellerReceipt, saleOfCode, signSellerReceipt } from './decisions/sale-codes.ts'
import { receiptOfPurchase, verifyPickupCode } from './decisions/pickup-code.ts'
import { Devices, type DevicesParts } from './devices/devices.ts'
import { openFeed, type Feed } from './feed.ts'
import { refusedDevice } from './health/registration.ts'
import { countAnswer, countPerson, newCounters, type Counters } from './health/metrics.ts'
import {
  agentStatus,
  configuredDevice,
  type AgentStatus,
  type ConfiguredDevice,
  unreadyChecks,
  type UnreadyCheck,
} from './health/agent-status.ts'
import { startHousekeeping } from './housekeeping.ts'
import type { Identity } from './identity/identity.ts'
import type { Replica } from './items/replica.ts'
import { alarmResult } from './lanes/gate/gate-alarms.ts'
import { Gates } from './lanes/gate/gates.ts'
import { QueueShares } from './decisions/queue-shares.ts'
import { isSaleOver } from './decisions/sale-goods.ts'
import { verifyExit, verifyRelease } from './lanes/gate/released-units.ts'
import { SoldPieces } from './lanes/gate/sold-pieces.ts'
import { Lanes } from './lanes/lanes.ts'
import type { ScanResult } from './lanes/scan-result.ts'
import { operatorSessions, type Operators } from './lanes/operators.ts'
import type { Ledger } from './ledger/ledger.ts'
import { verifyReceipt } from './decisions/by-receipt.ts'
import { FairTurns } from './decisions/fair-turns.ts'
import { TillSales } from './decisions/till-sales.ts'
import type { CloudConnection } from './link/cloud-connection.ts'
import { openHome, type Home } from './peers/home.ts'
import { ReleaseNotices } from './peers/release-notices.ts'
import { HomeCodes } from './peers/home-codes.ts'
import { TillNotices } from './peers/till-notices.ts'
import type { ConfigFile } from './setup/config-file.ts'
import type { DeviceDiscovery } from './setup/device-discovery.ts'
import { Setup } from './setup/setup.ts'
import { connectCloud, type Cloud, type CloudParts, LiveStatus } from './startup/connect-cloud.ts'
import { openStorage, type Stored, type StoredParts } from './startup/stored.ts'
import { untrustedReason } from './trust/revocation/untrusted-ledger.ts'
import type { AgentClock } from './trust/time/clock.ts'
import type { Trust } from './trust/trust.ts'
import { watchKeySetExpiry } from './trust/key-set-expiry.ts'

export interface AgentParts
  extends
    StoredParts,
    Pick<CloudParts, 'keepIdentity' | 'fetch' | 'openLine' | 'mqttUrl' | 'address'>,
    Pick<DevicesParts, 'openLink' | 'openDevice' | 'supervise'> {
  config: AgentConfig
  /** Finds devices for the set-up page. Absent: the page finds none. */
  deviceDiscovery?: DeviceDiscovery
  /** Configuration file that the set-up page writes. Absent: the page only shows the text to write. */
  configFile?: ConfigFile
  /** Free space of the disk with the data folder, bytes. Absent: unknown. */
  freeBytes?(): Promise<number>
  /** Called after a disk fault of the ledger. The process must end and start again (P6). */
  onFatal(why: Error): void
}

/**
 * The agent. The constructor creates the parts in this order:
 *   startup/stored.ts         ledger, recovery, clock, items, trust
 *   devices/devices.ts        wiring, emergency inputs, doors
 *   startup/connect-cloud.ts  key, link
 *   peers                     receipt home, release notices
 *   lanes                     gates, then stations, which call decisions/authorize.ts
 *
 * `start` starts devices, housekeeping and link. The agent also starts while cloud, broker and devices are offline.
 */
export class Agent {
  readonly identity: Identity
  /** The configuration, with the devices that were added since the start. */
  readonly config: AgentConfig
  readonly platform: Platform
  readonly deviceDiscovery: DeviceDiscovery | undefined
  /** What the set-up page does. */
  readonly setup: Setup
  readonly feed: Feed = openFeed()
  readonly counters: Counters = newCounters()
  readonly ledger: Ledger
  readonly clock: AgentClock
  readonly trust: Trust
  readonly items: Replica
  readonly operators: Operators
  /** What tills report. */
  readonly sales: TillSales
  readonly tillNotices: TillNotices
  readonly homeCodes: HomeCodes
  readonly link: CloudConnection
  readonly home: Home
  /** Release notices between the agents of the store. */
  readonly notices: ReleaseNotices
  readonly gates: Gates
  readonly lanes: Lanes
  readonly #parts: AgentParts
  readonly #stored: Stored
  readonly #devices: Devices
  readonly #cloud: Cloud
  readonly #liveStatus: LiveStatus
  #stopHousekeeping: () => void = () => undefined
  #fault: string | null = null

  constructor(parts: AgentParts) {
    const { platform, identity } = parts
    this.#parts = parts
    this.platform = platform
    this.identity = identity
    this.deviceDiscovery = parts.deviceDiscovery
    this.#liveStatus = new LiveStatus(platform.timers, () =>
      this.feed.publish({ type: 'status', status: this.status() }),
    )
    // Recovery may add journal rows before the link exists.
    let sendJournal: () => void = () => undefined
    this.#stored = openStorage(parts, {
      onFailure: (failure) => this.#fail(failure),
      onAppended: () => sendJournal(),
    })
    const { ledger, clock, trust, items } = this.#stored
    this.ledger = ledger
    this.clock = clock
    this.trust = trust
    this.items = items
    this.operators = this.#openOperators()
    this.#devices = this.#openDevices()
    this.config = Object.defineProperty({ ...parts.config }, 'devices', { get: () => this.#devices.entries })
    this.#cloud = this.#openCloud()
    this.link = this.#cloud.link
    sendJournal = this.link.kick
    this.setup = new Setup({
      ...this.#base,
      link: this.link,
      devices: this.#devices,
      configFile: parts.configFile,
      refused: (deviceId) =>
        this.trust.policy && refusedDevice(this.trust.policy, this.identity.agentId, deviceId)?.detail,
    })
    this.home = this.#openHome()
    this.notices = this.#openNotices()
    this.tillNotices = new TillNotices({
      ...this.#base,
      signer: this.#cloud.key.signer,
      onChanged: () => this.#tillsChanged(),
      onBack: (saleKey, status) => this.sales.ended(saleKey, status),
      onSold: (sales, codes) => this.sales.applyWaiting(sales, codes),
    })
    const { tillNotices } = this
    this.homeCodes = new HomeCodes({ ...this.#base, signer: this.#cloud.key.signer, tillNotices })
    this.sales = new TillSales({
      ...this.#base,
      policy: () => this.trust.policy?.policy,
      revokedTills: () => (this.trust.policy?.revokedTills ?? []).map(({ tillId }) => tillId),
      recalledGoods: () => [...(this.trust.policy?.recalledGtins ?? []), ...(this.trust.policy?.recalledLots ?? [])],
      layouts: () => this.trust.policy?.inStoreCodes ?? DEFAULT_IN_STORE_CODES,
      saleOfReceipt: (scanned) => {
        const signed = verifyReceipt(this.trust, scanned, this.#base.storeId)
        const opened = signed.ok ? signed : openSellerReceipt(this.trust, scanned, this.#base.storeId)
        return opened.ok ? Buffer.from(opened.claims.cti).toString('hex') : undefined
      },
      signReceipt: (sale) => signSellerReceipt({ ...this.#base, signer: this.#cloud.key.signer }, sale),
      hasTrustedTime: () => clock.now().trust !== 'none',
      shares: new QueueShares({ journal: ledger.journal, clock: platform.clock, freeBytes: this.#parts.freeBytes }),
      passSeconds: () => (clock.now().trust === 'none' ? 0 : (trust.policy?.policy.tillSales.passByProduct ?? 0) * 60),
      onChanged: () => this.#announceTills(),
    })
    const authorizeParts = this.#authorizeParts()
    this.gates = this.#openGates(authorizeParts)
    this.lanes = this.#openLanes(new Authorizer(authorizeParts))
  }

  readonly status = (): AgentStatus =>
    agentStatus({
      identity: this.identity,
      link: this.link,
      doors: this.#devices.doors,
      emergency: this.#devices.emergency.state,
      wiring: this.#devices.wiring,
      fault: this.#fault,
      isRestartDue: this.setup.isRestartDue,
      devices: this.#devices.statuses,
      crowdOf: (laneId) => this.lanes.crowdOf(laneId),
      ...this.#stored,
    })

  /** What keeps the agent from deciding; empty if it is ready. */
  async unready(): Promise<UnreadyCheck[]> {
    const freeBytes = await this.#parts.freeBytes?.().catch(() => undefined)
    return unreadyChecks(this.status(), this.ledger.commits.isFull, freeBytes)
  }

  /** Resolves to true when the agent is online, or to false after `limitMs`. */
  readonly ready = (limitMs: number): Promise<boolean> => this.link.ready(limitMs)

  /** The gate that a device serves, if the device works; undefined: none. */
  workingGateOf(deviceId: string): string | undefined {
    const gateId = this.#devices.wiring.laneOf(deviceId)
    const { devices } = this.status()
    const isGate = devices.some((each) => each.deviceId === gateId && each.deviceType === 'exit_gate')
    const works = devices.some((each) => each.deviceId === deviceId && each.state === 'ready')
    return isGate && works ? gateId : undefined
  }

  /** Reconnects a device and returns its state. Undefined if the agent does not have this device. */
  async check(deviceId: string): Promise<ConfiguredDevice | undefined> {
    const found = await this.setup.check(deviceId)
    return (
      found &&
      configuredDevice(found, {
        identity: this.identity,
        trust: this.trust,
        wiring: this.#devices.wiring,
        crowdOf: (laneId) => this.lanes.crowdOf(laneId),
      })
    )
  }

  start(): void {
    const { platform, ledger, clock, trust, link, home, lanes } = this
    const { log } = this.#parts
    // Devices start last, because their events need all other parts.
    this.#devices.start((deviceId, event) => lanes.onEvent(deviceId, event))
    const onRun = watchKeySetExpiry({ platform, ledger, storeId: this.identity.storeId, trust, log })
    this.#stopHousekeeping = startHousekeeping({ ledger, clock, trust, timers: platform.timers, log, onRun })
    link.start()
    home.start()
    this.tillNotices.send()
  }

  readonly stop = async (): Promise<void> => {
    this.#liveStatus.stop()
    this.#devices.emergency.stop()
    this.#stopHousekeeping()
    this.#cloud.tokenVoider.stop()
    this.notices.stop()
    this.tillNotices.stop()
    this.feed.close()
    this.lanes.stop()
    // Devices stop first, because switching outputs off must not wait for the network.
    await this.#devices.stop()
    await this.gates.stop()
    await this.link.stop()
    await this.lanes.settled()
    await this.home.stop()
    await this.#stored.outcomes.stop()
    this.items.close()
    this.ledger.close()
  }

  #openOperators(): Operators {
    const { trust, storeKeys } = this.#stored
    return operatorSessions(this.platform, () => ({
      records: trust.policy?.operators ?? [],
      storeKey: storeKeys.find(trust.policy?.storeKey),
    }))
  }

  #openDevices(): Devices {
    return new Devices({
      ...this.#parts,
      ...this.#base,
      devices: this.#parts.config.devices,
      isOnline: () => this.link.isOnline,
      deviceTypeOf: (deviceId) => this.trust.policy?.devices.find((d) => d.deviceId === deviceId)?.deviceType,
      isListed: (deviceId) => this.trust.policy?.devices.some((d) => d.deviceId === deviceId) ?? true,
      onAlarm: (deviceId, what) => this.#show(deviceId, { kind: 'alarm', what }),
      onChange: () => this.#changed(),
      onHealth: () => this.link.reportDevices(),
    })
  }

  #openCloud(): Cloud {
    return connectCloud({
      ...this.#parts,
      ...this.#base,
      devices: this.#devices,
      alarms: {
        request: () => this.gates.alarms.request(),
        receive: (awaited, answer) => this.gates.alarms.receive(awaited, answer),
        isAwaited: () => this.gates.alarms.isAwaited(),
      },
      onChange: () => {
        // An acknowledgement gives reports of tills their position, a policy names the agents that receive them.
        this.tillNotices.send()
        this.#changed()
      },
    })
  }

  #openHome(): Home {
    const { ledger, link } = this
    const { nowMs } = this.#base
    return openHome({
      ...this.#base,
      signer: this.#cloud.key.signer,
      isLedgerTrusted: () => link.isOnline && untrustedReason(ledger, nowMs()) === undefined,
    })
  }

  #openNotices(): ReleaseNotices {
    return new ReleaseNotices({
      ...this.#base,
      signer: this.#cloud.key.signer,
      onNotice: (announced, senderId) => this.#hear(announced, senderId),
    })
  }

  /** The parts that a release needs, from the scan to the pulse of the device. */
  #authorizeParts(): AuthorizeParts & { pieces: SoldPieces } {
    return {
      ...this.#base,
      link: this.link,
      home: this.home,
      turns: new FairTurns(this.#base.platform),
      leftSince: (sinceMs) => this.gates.leftSince(sinceMs),
      tokenVoider: this.#cloud.tokenVoider,
      canRelease: this.#devices.wiring.canRelease,
      execute: this.#devices.execute,
      onReleased: (release) => {
        this.#hear(release, this.identity.agentId)
        this.notices.send(release)
      },
      pieces: new SoldPieces({
        ...this.#base,
        link: this.link,
        notices: this.tillNotices,
        onChanged: () => this.#announceTills(),
      }),
    }
  }

  #openGates(authorizeParts: AuthorizeParts & { pieces: SoldPieces }): Gates {
    const { wiring, journal, signal } = this.#devices
    const { link } = this
    return new Gates({
      ...this.#base,
      antennasOf: wiring.antennasOf,
      sirenSecondsOf: wiring.sirenSecondsOf,
      memory: this.#stored.itemFile,
      journal,
      signal,
      pieces: authorizeParts.pieces,
      policy: () => this.trust.policy?.policy,
      isOnline: () => link.isOnline,
      syncItems: link.poll,
      claimExit: exitClaimer(authorizeParts),
      isSaleOver: (saleKey) => isSaleOver(this, saleKey),
      onLeft: (deviceId, tag, { cti, ordinal, exp }) => {
        this.#noteLeft({ cti, ordinal, exp }, tag)
        this.notices.send({
          deviceId,
          protectionAction: 'authorize_exit',
          releasedS: Math.floor(this.#base.nowMs() / 1_000),
          ...tag,
          proof: { cti: Buffer.from(cti).toString('hex'), ordinal, exp },
        })
      },
      onAlarm: (deviceId, tag, assessment, eventId) =>
        this.#show(deviceId, alarmResult(tag, assessment, { offline: !link.isOnline, eventId, items: this.items })),
      operatorName: (id) => this.trust.policy?.operators.find(({ operatorId }) => operatorId === id)?.name,
      onAwaited: link.awaitAlarms,
      onHandled: (deviceId, alarmId, state) => this.feed.publish({ type: 'alarm', deviceId, alarmId, ...state }),
    })
  }

  #openLanes(authorizer: Authorizer): Lanes {
    const { wiring, journal, signal } = this.#devices
    const { feed, counters } = this
    const fetchFromHome = (code: string) => this.homeCodes.fetch(code)
    return new Lanes({
      ...this.#base,
      operators: this.operators,
      gates: this.gates,
      wiring,
      journal,
      signal,
      authorize: async (request) => {
        const answer = await authorizer.authorize(request)
        countAnswer(counters, answer)
        this.#changed()
        return answer
      },
      receiptOfPurchase: (named) => receiptOfPurchase(this.link, named),
      saleOfCode: (code) => saleOfCode({ ...this.#base, link: this.link, fetchFromHome }, code),
      verifyPickupCode: (code) => verifyPickupCode(this.link, this.identity.storeId, code),
      onResult: (deviceId, result) => this.#show(deviceId, result),
      onCrowded: () => this.#changed(),
      onOperator: (deviceId, name) => feed.publish({ type: 'operator', deviceId, name }),
      onPerson: (deviceId, direction) =>
        feed.publish({ type: 'person', deviceId, direction, count: countPerson(counters, deviceId, direction) }),
    })
  }

  /** Tags have another status, because tills reported them here or to another agent. */
  #tillsChanged(): void {
    this.items.reportsChanged()
    this.#changed()
  }

  #announceTills(): void {
    this.tillNotices.send()
    this.#tillsChanged()
  }

  /** The parts that most modules need. */
  get #base() {
    const { platform, fetch, log, identity } = this.#parts
    const { agentId, storeId } = identity
    const { clock } = this.#stored
    return { ...this.#stored, platform, fetch, log, agentId, storeId, nowMs: () => clock.now().nowMs }
  }

  /**
   * Silences this agent's gates for a released unit, or ends that for one that has left elsewhere. Returns the reason if
   * the proof is not valid.
   */
  #hear(announced: Announced, senderId: string): string | undefined {
    if (announced.protectionAction === 'authorize_exit') {
      const left = verifyExit(this.#base, announced, senderId)
      if (!left.ok) return left.why
      this.#noteLeft(left.unit, left.tag)
      this.gates.onLeftElsewhere(left.unit, left.tag)
      return undefined
    }
    const checked = verifyRelease(this.#base, announced, senderId)
    if (!checked.ok) return checked.why
    this.gates.onReleased(checked.unit)
    return undefined
  }

  /** Notes durably that a tag has left for a unit of a receipt. On a full disk, the gates remember it for an hour. */
  #noteLeft({ cti, ordinal, exp }: LeavingUnit, tag: TagName): void {
    if (!('epc' in tag)) return
    const { claims, commits } = this.#stored.ledger
    const unit = { cti: Buffer.from(cti).toString('hex'), ordinal }
    commits.durably(() => claims.noteLeft(unit, tag.epc, exp)).catch(() => undefined)
  }

  #show(deviceId: string, result: ScanResult): void {
    const isAlarm = result.kind === 'decision' && result.alarmId !== undefined
    const isMarked = isAlarm && this.#devices.emergency.state !== null
    const shown = isMarked ? { ...result, emergency: true as const } : result
    this.feed.publish({ type: 'result', deviceId, atMs: this.platform.clock.wall(), result: shown })
  }

  #changed(): void {
    if (this.#liveStatus.isStopped) return
    this.#devices.emergency.refresh()
    this.#liveStatus.changed()
  }

  #fail(failure: Error): void {
    this.#fault = failure.message
    this.#parts.onFatal(failure)
  }
}

/** Wires the modules of the agent and starts them. */
export function startAgent(parts: AgentParts): Agent {
  const agent = new Agent(parts)
  agent.start()
  return agent
}
