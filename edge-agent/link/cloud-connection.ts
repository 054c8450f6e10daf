import { pause, type Platform, type Cancel } from '../../policy/platform.ts'
import type { AgentKey, Identity } from '../identity/identity.ts'
import type { StoreKeys } from '../identity/store-keys.ts'
import type { HandledAlarms } from '../lanes/gate/handled-alarms.ts'
import type { Pictures } from '../items/pictures.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'
import type { Trust } from '../trust/trust.ts'
import type { CloudLink } from './cloud-link.ts'
import type { CommandResult } from './documents/handle-command.ts'
import { DocumentReceiver, type DeviceReport, type ReportRefusal } from './documents/receive-documents.ts'
import { LinkLoop, PollRequests } from './link-loop.ts'
import { timeRequests } from './login/time-requests.ts'
import {
  type HandshakeAnswer,
  CALL_MS,
  CloudSession,
  storeKeyLogin,
  type StoreKeyLogin,
} from './login/cloud-session.ts'
import type { MessageSigner } from './login/sign-messages.ts'
import { KeyRenewal } from './login/renew-key.ts'
import type { Outbox } from './reports/outbox.ts'
import { sender, type Sender } from './reports/sender.ts'
import { BrokerLine, type OpenMqttLine, Waiters } from './wire/broker-line.ts'
import type { CloudAnswer, HttpClient } from './wire/http-client.ts'
import { agentTopic } from '../../policy/mqtt-topics.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import { BrokerClaims, brokerVersion, type BrokerAccess } from '../../policy/documents/broker-document.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { openDocument } from '../../policy/documents/signed-document.ts'

interface BrokerAddressParts {
  identity: Pick<Identity, 'agentId' | 'mqttUrl'>
  trust: Pick<Trust, 'keys'>
  /** URL of the broker from the configuration. This URL replaces the URL in the cloud's document. */
  mqttUrl: string | undefined
  onRefused: ReportRefusal
  /** Called when the address or the credentials changed. */
  onChange(): void
}

/**
 * Where and how the agent logs in to the broker. For each agent, the cloud signs a document with this information and
 * sends the document with polls. After a start, the agent has only the URL from the enrolment. So the agent fetches the
 * document before it connects to the broker.
 */
export class BrokerAddress {
  readonly #parts: BrokerAddressParts
  #access: BrokerAccess
  #version = ''

  constructor(parts: BrokerAddressParts) {
    this.#parts = parts
    this.#access = { url: parts.mqttUrl ?? parts.identity.mqttUrl, username: parts.identity.agentId }
  }

  get access(): BrokerAccess {
    return this.#access
  }

  /** Version of the accepted document; empty before the first one. */
  get version(): string {
    return this.#version
  }

  /**
   * Accepts a document from the HTTP API. Does not check the time of the document, because the agent's clock may be
   * wrong. An old document leads to a former broker only until the next poll.
   */
  receive(document: string): void {
    const { identity, trust, mqttUrl, onRefused, onChange } = this.#parts
    const opened = openDocument<BrokerClaims>(document, DOCUMENT_KINDS.broker, {
      keys: trust.keys,
      audience: identity.agentId,
    })
    if (!opened.ok) return onRefused(`broker document: ${opened.fault} (${opened.detail})`)
    const claims = BrokerClaims.safeParse(opened.claims)
    if (!claims.success) return onRefused('broker document: claims_invalid')
    const { url, username, password, ca } = claims.data
    const access = { url, username, ...(password !== undefined && { password }), ...(ca !== undefined && { ca }) }
    const isNew = brokerVersion(access) !== this.#version
    this.#version = brokerVersion(access)
    this.#access = { ...access, url: mqttUrl ?? url }
    if (isNew) onChange()
  }
}

interface BrokerMessagesParts {
  identity: Pick<Identity, 'agentId' | 'storeId'>
  log: Log
  onAck(ack: string): void
  onCommand(command: string): void
  onDocument(document: string): void
}

/**
 * Returns a function that passes each broker message to its handler. If the disk is full, the agent logs a warning and
 * drops the message. The cloud sends the content again.
 */
function brokerMessages(parts: BrokerMessagesParts): (topic: string, payload: string) => void {
  const { identity, log } = parts
  const ackTopic = agentTopic(identity.storeId, identity.agentId, 'ack')
  const commandTopic = agentTopic(identity.storeId, identity.agentId, 'command')

  function handleMessage(topic: string, payload: string): void {
    if (topic === ackTopic) parts.onAck(payload)
    else if (topic === commandTopic) parts.onCommand(payload)
    else parts.onDocument(payload)
  }

  return (topic, payload) => {
    try {
      handleMessage(topic, payload)
    } catch (error) {
      if (error instanceof LedgerFull) log.warn({ topic }, 'the disk is full: a message from the broker was dropped')
      else log.error({ err: error, topic }, 'a message from the broker could not be processed')
    }
  }
}

/** Time in which a device may recover before the agent reports its fault, ms: a restarted driver needs less. */
const SETTLE_MS = 1_000
/** Minimum time between two reports, ms. A device with a loose plug changes its state several times a second. */
const EVERY_MS = 5_000

/** Reports changes of the devices to the cloud. Merges several changes into one report, and limits the rate. */
class StateReports {
  readonly #platform: Pick<Platform, 'timers' | 'clock'>
  readonly #report: () => void
  #lastMs = -EVERY_MS
  #due: Cancel | undefined
  #isStopped = false

  constructor(platform: Pick<Platform, 'timers' | 'clock'>, report: () => void) {
    this.#platform = platform
    this.#report = report
  }

  changed(): void {
    if (this.#isStopped) return
    const { timers, clock } = this.#platform
    const waitMs = Math.max(SETTLE_MS, this.#lastMs + EVERY_MS - clock.elapsed())
    this.#due ??= timers.after(waitMs, () => {
      this.#due = undefined
      this.#lastMs = clock.elapsed()
      this.#report()
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#due?.()
  }
}

/**
 * Reports a heartbeat of each device. If a device has no agent yet, the cloud then assigns the device to this agent.
 */
async function bindDevices(
  session: Pick<CloudSession, 'call'>,
  deviceIds: readonly string[],
  onRefused: (what: string) => void,
): Promise<void> {
  for (const deviceId of deviceIds) {
    const answer = await session.call('reportDeviceHeartbeat', { deviceId })
    if (answer.kind === 'unreachable') return
    // A scanner that only serves another device (`feeds`) need not be registered, so 404 is no fault.
    if (answer.kind === 'refused' && answer.status !== 404) onRefused(`device ${deviceId}: ${answer.message}`)
  }
}

/**
 *   login ─ time ─ devices ─ documents ─ broker line ─▶ online ──▶ a call fails or a socket closes
 *     ▲                                                                    │
 *     └──────────── pause with jitter, at most 15 s ◀──────────────────────┘
 *
 * Keeps the agent connected to the cloud. While online, the agent polls every 15 s, and also when a broker message
 * requests a poll. The broker only reduces delays: without a broker the agent uses HTTP, and polls every 3 s for some
 * minutes after an alarm.
 *
 * `login/` authenticates the agent, and `documents/` fetches signed documents. `reports/` sends the journal, and
 * `wire/` has the HTTP and MQTT clients.
 */

interface CloudConnectionParts {
  platform: Platform
  identity: Identity
  http: HttpClient
  openLine: OpenMqttLine
  messages: MessageSigner
  outbox: Outbox
  trust: Trust
  pictures: Pick<Pictures, 'request' | 'receive'>
  alarms: Pick<HandledAlarms, 'request' | 'receive' | 'isAwaited'>
  key: AgentKey
  ledger: Pick<Ledger, 'metadata' | 'commits' | 'journal' | 'cloudGeneration'>
  log: Log
  /** URL of the broker, if it differs from the URL that the cloud sends. */
  mqttUrl: string | undefined
  /**
   * Address at which other agents of the store reach this agent. The agent sends this address to the cloud with each
   * poll.
   */
  address: string | undefined
  /**
   * Ids of the configured devices. The agent reports these ids to the cloud each time it has connected and logged in.
   */
  deviceIds(): readonly string[]
  /** Returns the fields of the state message, which the broker retains and a console shows. */
  describe(): object
  /** Health of the devices, for the document requests. */
  deviceReport(): DeviceReport
  nowMs(): number
  onChange(): void
  /** Called when the agent refused a document, or when the cloud refused a call. */
  onRefused: ReportRefusal
  /** Called with the ledger part of each login answer. */
  onHandshake(ledger: HandshakeAnswer): void
  /** Called after each poll. `isForked` is true if the cloud has detected a fork of this ledger. */
  onForked(isForked: boolean): void
  /** Handles a signed command of the cloud. */
  onCommand(command: string): CommandResult
  storeKeys: StoreKeys
}

/** Delay before the agent fetches a missing document, ms. The broker may deliver the document earlier. */
const MISSING_MS = 100

/** Creates the parts of the link, and forwards events between these parts. */
export class CloudConnection implements CloudLink {
  readonly #parts: CloudConnectionParts
  readonly #stopping = new AbortController()
  readonly #polls: PollRequests
  readonly #session: CloudSession
  readonly #documents: DocumentReceiver
  readonly #brokerAddress: BrokerAddress
  readonly #keyLogin: StoreKeyLogin
  readonly #broker: BrokerLine
  readonly #sender: Sender
  readonly #stateReports: StateReports
  readonly #loop: LinkLoop
  readonly #readyWaiters: Waiters
  #running: Promise<void> | undefined

  constructor(parts: CloudConnectionParts) {
    const { platform, identity, trust, ledger, messages, nowMs } = parts
    const stopping = this.#stopping.signal
    this.#parts = parts
    this.#readyWaiters = new Waiters(platform.timers)
    this.#polls = new PollRequests({
      platform,
      stopping,
      isNeeded: () => trust.isBehind || this.#documents.confirmWithinMs !== undefined,
    })
    const session = this.#openSession()
    this.#session = session
    this.#brokerAddress = new BrokerAddress({ ...parts, onChange: () => this.#broker.leave() })
    this.#documents = this.#openDocuments()
    const { agentId } = identity
    const renewal = new KeyRenewal({ ...parts, agentId, session, ledger: ledger, random: platform.random })
    const login = () => renewal.login()
    this.#keyLogin = storeKeyLogin({ clock: platform.clock, trust, keys: parts.storeKeys, login })
    this.#broker = this.#openBroker()
    this.#sender = this.#openSender()
    this.#stateReports = new StateReports(platform, () => this.#reportState())
    this.#loop = new LinkLoop({
      ...parts,
      stopping,
      session,
      renewal,
      keyLogin: this.#keyLogin,
      time: timeRequests(parts),
      documents: this.#documents,
      broker: this.#broker,
      sender: this.#sender,
      polls: this.#polls,
      areAlarmsAwaited: () => parts.alarms.isAwaited(),
      password: (challenge) => messages.assertion(challenge, nowMs()),
      bindDevices: () => this.bind(parts.deviceIds()),
      onSettled: () => this.#readyWaiters.checkAll(),
    })
  }

  get isOnline(): boolean {
    return this.#session.isOnline
  }

  get offlineSinceMs(): number | null {
    return this.#session.offlineSinceMs
  }

  get hasBroker(): boolean {
    return this.#broker.isOpen
  }

  start(): void {
    this.#running ??= this.#loop.run()
  }

  /** Resolves to true when the agent is online. Resolves to false if the first attempt failed, or after `limitMs`. */
  readonly ready = async (limitMs: number): Promise<boolean> => {
    const isSettled = () => this.isOnline || this.#loop.hasFailed
    if (!isSettled()) await this.#readyWaiters.wait(limitMs, isSettled)
    return this.isOnline
  }

  /** Fetches newer documents once. */
  readonly poll = (): Promise<void> => this.#documents.poll()

  /** Call it after a row was added to the journal. */
  readonly kick = (): void => this.#sender.kick()

  /** Without a broker, begins the short interval of polls. Call it when gates wait for what people do about an alarm. */
  readonly awaitAlarms = (): void => {
    if (!this.#broker.isOpen) this.#polls.wake()
  }

  /** Reports these devices to the cloud, which binds devices without an agent to this agent. Never rejects. */
  readonly bind = (deviceIds: readonly string[]): Promise<void> =>
    bindDevices(this.#session, deviceIds, this.#parts.onRefused)

  /** Call it when the health of a device changed. The cloud learns of it within seconds. */
  readonly reportDevices = (): void => this.#stateReports.changed()

  call(operation: string, body: object): Promise<CloudAnswer> {
    return this.#session.call(operation, body)
  }

  whenReported(limitMs: number): Promise<void> {
    return this.#sender.whenReported(limitMs)
  }

  /** Resolves after `CALL_MS` at the latest, because a person waits. */
  async refreshDocuments(): Promise<void> {
    if (!this.isOnline || !this.#polls.spend()) return
    await Promise.race([this.poll().catch(() => undefined), pause(this.#parts.platform.timers, CALL_MS)])
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#polls.stop()
    this.#stateReports.stop()
    await this.#sender.stop()
    this.#broker.close()
    await this.#running
  }

  #openSession(): CloudSession {
    return new CloudSession({
      ...this.#parts,
      onChange: () => {
        if (!this.isOnline) this.#polls.wake()
        this.#parts.onChange()
      },
      onStoreKey: this.#parts.storeKeys.store,
    })
  }

  #openDocuments(): DocumentReceiver {
    const { identity, trust } = this.#parts
    const isOwnGate = (device: { deviceType: string; agentId: string | null; revoked: boolean }) =>
      device.deviceType === 'exit_gate' && device.agentId === identity.agentId && !device.revoked
    return new DocumentReceiver({
      ...this.#parts,
      session: this.#session,
      brokerAddress: this.#brokerAddress,
      hasGate: () => trust.policy?.devices.some(isOwnGate) === true,
      onReceived: () => this.#onProgress(),
    })
  }

  #openBroker(): BrokerLine {
    const { onCommand } = this.#parts
    return new BrokerLine({
      ...this.#parts,
      access: () => this.#brokerAddress.access,
      timeoutMs: CALL_MS,
      state: (online) => this.#state(online),
      onMessage: brokerMessages({
        ...this.#parts,
        onAck: (ack) => this.#sender.onAck(ack),
        onCommand: (command) => void (onCommand(command) === 'poll' && this.#polls.now()),
        onDocument: (document) => this.#onDocument(document),
      }),
      onLost: (why) => {
        // When the socket closes, the link goes offline at once. The agent decides offline until the next login has
        // succeeded.
        if (!this.#stopping.signal.aborted) this.#session.goOffline(`the broker line closed: ${why}`)
      },
    })
  }

  #openSender(): Sender {
    return sender({
      ...this.#parts,
      isOnline: () => this.isOnline,
      publish: (batch) => this.#broker.publishEvents(batch),
      onPublished: (wasAcknowledged) => this.#broker.noteAcknowledgement(wasAcknowledged),
      report: (batch) => this.#session.call('reportProtectionEvents', { batch }),
      // When a resync is complete, the agent polls at once, because the cloud waits for the agent's confirmation.
      onChange: () => this.#onProgress(),
      onRefused: (what) => {
        this.#parts.onRefused(what)
        // The cloud may have refused the batch because of a fork. The next poll returns whether the ledger is forked.
        this.#polls.now()
      },
    })
  }

  /** Without a broker, a poll reports the devices. */
  #reportState(): void {
    if (this.#broker.isOpen) this.#broker.publishState()
    else if (this.isOnline) this.#polls.now()
  }

  #state(online: boolean): string {
    const { nowMs, describe } = this.#parts
    return JSON.stringify({ online, observedAt: new Date(nowMs()).toISOString(), ...(online && describe()) })
  }

  #onDocument(document: string): void {
    this.#documents.receive(document)
    this.#onProgress()
    if (this.#parts.trust.isBehind) this.#polls.within(MISSING_MS)
  }

  /** Requests a poll if the cloud waits for a confirmation of documents, or if the agent lacks a store key. */
  #onProgress(): void {
    this.#parts.onChange()
    const withinMs = this.#documents.confirmWithinMs
    if (withinMs !== undefined) this.#polls.within(withinMs)
    if (this.#keyLogin.waitMs === 0) this.#polls.now()
  }
}
