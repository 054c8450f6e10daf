import type { Platform, Cancel, Timers } from '../../policy/platform.ts'
import { openTokenVoider, type TokenVoider } from '../decisions/void-tokens.ts'
import type { Devices } from '../devices/devices.ts'
import { openAgentKey, type AgentKey, type Identity } from '../identity/identity.ts'
import type { HandledAlarms } from '../lanes/gate/handled-alarms.ts'
import { CloudConnection } from '../link/cloud-connection.ts'
import { type DeviceReport, refusalReporter } from '../link/documents/receive-documents.ts'
import { commandHandler } from '../link/documents/handle-command.ts'
import { ledgerHandshake } from '../link/login/cloud-session.ts'
import { messageSigner } from '../link/login/sign-messages.ts'
import { Outbox } from '../link/reports/outbox.ts'
import { httpClient, type Fetch } from '../link/wire/http-client.ts'
import type { OpenMqttLine } from '../link/wire/broker-line.ts'
import type { Log } from '../log.ts'
import { storeRevoked } from '../trust/revocation/untrusted-ledger.ts'
import type { Stored } from './stored.ts'

/** Minimum interval between two status events, ms. */
const STATUS_EVERY_MS = 100

/** Publishes the agent's status to the pages after changes. */
export class LiveStatus {
  readonly #timers: Timers
  readonly #publish: () => void
  #cancel: Cancel | undefined
  #isStopped = false

  constructor(timers: Timers, publish: () => void) {
    this.#timers = timers
    this.#publish = publish
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  changed(): void {
    if (this.#isStopped) return
    this.#cancel ??= this.#timers.after(STATUS_EVERY_MS, () => {
      this.#cancel = undefined
      this.#publish()
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel?.()
  }
}

export interface CloudParts extends Stored {
  platform: Platform
  identity: Identity
  /** Stores the identity durably after the agent changed its key. */
  keepIdentity(identity: Identity): void
  fetch: Fetch
  openLine: OpenMqttLine
  log: Log
  mqttUrl?: string
  /** Address at which other agents of the store reach this agent, `http://host:port`. */
  address?: string
  devices: Pick<Devices, 'health' | 'entries'>
  alarms: Pick<HandledAlarms, 'request' | 'receive' | 'isAwaited'>
  nowMs(): number
  onChange(): void
}

/** The parts of the agent that communicate with the cloud. These parts are not started yet. */
export interface Cloud {
  readonly key: AgentKey
  readonly link: CloudConnection
  readonly tokenVoider: TokenVoider
}

/** Creates the link and connects it with key, ledger, trust and status. */
export function connectCloud(parts: CloudParts): Cloud {
  const { platform, identity, ledger, clock, trust, log, nowMs, onChange, mqttUrl, address } = parts
  const { agentId, storeId } = identity
  const key = openAgentKey(identity, (changed) => parts.keepIdentity(changed))
  const handshake = ledgerHandshake(ledger, log)
  const messages = messageSigner(identity, handshake.state, key.signer)
  const tokenVoider = openTokenVoider({ ledger, timers: platform.timers, nowMs, log })
  const link = new CloudConnection({
    ...parts,
    mqttUrl,
    address,
    http: httpClient(identity.cloud, parts.fetch, platform),
    messages,
    key,
    outbox: new Outbox({ ledger, messages, trust, agentId }),
    deviceIds: () => parts.devices.entries.map(({ deviceId }) => deviceId),
    describe: () => describe(parts),
    deviceReport: () => deviceReport(parts),
    onRefused: refusalReporter({ platform, ledger, storeId, nowMs, log }),
    onHandshake: handshake.onAnswer,
    onForked(isForked) {
      if (handshake.onForked(isForked)) onChange()
    },
    onCommand: commandHandler({ agentId, trust, clock, voidToken: tokenVoider.voidNow, onRevoked }),
  })

  function onRevoked(kid: string): void {
    if (!storeRevoked(ledger, kid)) return
    log.warn({ agentId }, 'this agent was revoked and releases nothing: re-enrol it with untag edge enrol --replace')
    onChange()
  }

  return { key, link, tokenVoider }
}

/** Returns the fields of the state message, which the broker retains and a console shows. */
function describe(parts: CloudParts): object {
  const { trust, ledger } = parts
  return {
    policyVersion: trust.policy?.ver ?? 0,
    queueDepth: ledger.journal.waiting,
    devices: deviceReport(parts).devices,
  }
}

/** Returns the health of the devices, for the cloud. Times are in the time of the cloud. */
function deviceReport({ devices, platform, nowMs }: CloudParts): DeviceReport {
  const { version, devices: known } = devices.health
  const startMs = nowMs() - platform.clock.elapsed()
  return {
    version,
    devices: known.map(({ deviceId, state, detail, readsTags, sinceMs }) => ({
      deviceId,
      state,
      ...(readsTags !== undefined && { readsTags }),
      detail: detail.slice(0, 300),
      since: new Date(startMs + sinceMs).toISOString(),
    })),
  }
}
