import { assert } from '../../policy/assert.ts'
import type { Platform } from '../../policy/platform.ts'
import { message, type Message, all } from './protocol/elements.ts'
import type { TagSighting } from './protocol/tag-reports.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import type { LinkProtocol, SharedLinks } from '../transports/shared-links.ts'
import {
  type RunningCommand,
  outputCommands,
  completedCommand,
  type DeviceCommands,
  type ReleaseCommand,
} from '../kit/device-commands.ts'
import { deviceLink, type DeviceLink } from '../kit/device-link.ts'
import {
  result,
  setUpLimit,
  type CommandResult,
  type DeviceCommand,
  type DeviceEvent,
  type DeviceIdentity,
  type ProtectionDevice,
  type TagRead,
  type WriteAnswer,
} from '../kit/device.ts'
import type { Driver } from '../kit/driver.ts'
import { antennaWatch, type AntennaWatch, noiseReport, type NoiseReport } from '../kit/noise-report.ts'
import { emergencyEvent } from '../kit/emergency-input.ts'
import { EventQueue } from '../kit/event-queue.ts'
import { watchLevel } from '../kit/input-watch.ts'
import type { ReaderCapabilities } from './capabilities.ts'
import { LlrpConversation, type LlrpListener } from './conversation.ts'
import { switchEasOff, isEpc, tagAccess, type TagAccess, killTag } from './tag-access.ts'
import {
  antennaChangeOf,
  eventsIn,
  isConnectionClose,
  connectionRefusal,
  stampOf,
  watchReading,
  startPulse,
} from './reading.ts'
import { readerClock, type ReaderClock } from './reader-clock.ts'
import { outputWrite } from './reader-settings.ts'
import { signalOutputs } from '../kit/reader-settings.ts'
import { exclusiveResourcesOf, llrpCapabilities, LlrpSettings } from './settings.ts'
import { setUpReader } from './set-up.ts'
import { desiredOutputs, type DesiredOutputs } from '../kit/desired-outputs.ts'

// Values of GET_READER_CONFIG and GPIPortCurrentState (LLRP 1.0.1, 13.2.1 and 13.2.5.7).
const GPI_STATE = 9
const LOW = 0
const HIGH = 1

/** Reads the level of an input; null if the reader does not answer or does not report the level. */
async function readInputLevel(
  conversation: LlrpConversation,
  input: number,
  timeoutMs: number,
): Promise<boolean | null> {
  const answer = await conversation.request(
    'GET_READER_CONFIG_RESPONSE',
    (id) =>
      message('GET_READER_CONFIG', id, { AntennaID: 0, RequestedData: GPI_STATE, GPIPortNum: input, GPOPortNum: 0 }),
    { timeoutMs },
  )
  if (answer.kind !== 'answered') return null
  const state = all(answer.message, 'GPIPortCurrentState').find(({ fields }) => fields.GPIPortNum === input)?.fields
  return state?.State === HIGH ? true : state?.State === LOW ? false : null
}

const CLOSE_WITHIN_MS = 2_000
const NOT_CONNECTED = 'the reader is not connected'
const NO_PASSWORD = '00000000'

/** One connection and its state. */
interface Connection {
  readonly conversation: LlrpConversation
  readonly accepted: Promise<void>
  readonly access: TagAccess
  /** Null until the reader is configured. */
  reader: ReaderCapabilities | null
  /** True once the reader has its settings. From then on the driver may write outputs one by one. */
  isConfigured: boolean
}

/** One LLRP reader. */
class LlrpDevice implements ProtectionDevice {
  readonly #settings: LlrpSettings
  readonly #platform: Platform
  readonly #queue = new EventQueue()
  readonly #noise: NoiseReport
  readonly #connections = new WeakMap<LlrpConversation, Connection>()
  readonly #antennas: AntennaWatch
  readonly #outputs: DesiredOutputs
  readonly #line: DeviceLink<LlrpConversation>
  readonly #commands: DeviceCommands
  readonly events: AsyncIterable<DeviceEvent>
  readonly setUpLimitMs: number

  constructor(settings: LlrpSettings, links: SharedLinks, platform: Platform) {
    this.#settings = settings
    this.setUpLimitMs = setUpLimit(settings.requestTimeoutMs)
    this.#platform = platform
    this.#noise = noiseReport(platform, this.#queue.put)
    this.#antennas = antennaWatch(settings.antennas, this.#queue.put)
    this.#outputs = desiredOutputs({
      release: settings.release?.gpo,
      signals: signalOutputs(settings),
      opensInEmergency: settings.opensInEmergency,
      setting: 'gpo',
      platform,
      write: (output, on) => this.#write(output, on),
    })
    // Devices can share a link only if they use the same protocol object. A reader serves only one client, so each
    // reader has its own protocol object.
    const protocol: LinkProtocol<LlrpConversation> = { name: 'llrp', start: (link) => this.#start(link) }
    this.#line = deviceLink(links, settings.link, protocol)
    this.#commands = outputCommands({
      platform,
      outputs: this.#outputs,
      release: (command, signal) => this.#release(command, signal),
      switchOff: (signal) => this.#closeReader(signal),
      dispose: () => this.#dispose(),
    })
    this.events = this.#queue.events
  }

  async connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    this.#line.member?.client.end('reconnected')
    await this.#line.connect(signal, onFailure)
  }

  async identify(signal: AbortSignal): Promise<DeviceIdentity> {
    const member = this.#line.joined()
    const current = this.#connection()
    assert(current, 'each conversation has its connection')
    const { conversation, accepted } = current
    const { identity, reader } = await setUpReader({
      conversation,
      accepted,
      settings: this.#settings,
      timers: this.#platform.timers,
      signal,
      desiredOutputs: () => this.#outputs.atConnect(),
      onAntenna: (antenna, isConnected) => this.#antennas.setConnected(antenna, isConnected),
      onOutputsWritten: () => {
        current.isConfigured = true
      },
    }).catch((error: unknown) => {
      current.isConfigured = false
      throw error
    })
    await this.#watchEmergency(current)
    if (conversation.isOver) throw new Error('the link was lost')
    current.reader = reader
    member.markResponsive()
    void watchReading(conversation, this.#settings, this.#platform.timers, (detail) => this.#onFault(detail))
    return { ...identity, findings: [...(identity.findings ?? []), ...this.#antennas.findings] }
  }

  untilLost(): Promise<string> {
    return this.#line.lost()
  }

  execute(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult> {
    return this.#commands.execute(command, signal)
  }

  close(): Promise<void> {
    return this.#commands.close()
  }

  #onFault(detail: string): void {
    return this.#queue.put({ type: 'fault', detail })
  }

  #connection(): Connection | null {
    return this.#line.member ? (this.#connections.get(this.#line.member.client) ?? null) : null
  }

  async #write(output: number, on: boolean): Promise<WriteAnswer> {
    const current = this.#connection()
    if (!current?.isConfigured) return { kind: 'lost', possiblySent: false, detail: NOT_CONNECTED }
    const answer = await current.conversation.request(
      'SET_READER_CONFIG_RESPONSE',
      (id) => outputWrite(id, output, on),
      { timeoutMs: this.#settings.requestTimeoutMs },
    )
    // The output's state is unknown, so the connection ends. The next connection writes all outputs again.
    if (answer.kind === 'lost') current.conversation.end(answer.detail)
    if (answer.kind === 'refused' && !on) this.#onFault(`output ${output} could not be switched off: ${answer.detail}`)
    return answer
  }

  #emitEmergency(input: number, level: boolean): void {
    const event = emergencyEvent(this.#settings.emergency, input, level)
    if (event) this.#queue.put(event)
  }

  /**
   * Reads the emergency input at once, then every second. Rejects if the reader does not report the level of this
   * input.
   */
  async #watchEmergency({ conversation }: Connection): Promise<void> {
    if (!this.#settings.emergency) return
    const { input } = this.#settings.emergency
    const read = () => readInputLevel(conversation, input, this.#settings.requestTimeoutMs)
    const level = await read()
    if (level === null)
      throw new Error(`the reader does not report the level of input (GPI) ${input}, so it cannot serve as "emergency"`)
    this.#emitEmergency(input, level)
    const over = new AbortController()
    void conversation.ended.then(() => over.abort())
    void watchLevel({
      timers: this.#platform.timers,
      over: over.signal,
      read,
      onLevel: (now) => this.#emitEmergency(input, now),
      onUnresponsive: () => conversation.end(`the reader no longer reports the level of input (GPI) ${input}`),
    })
  }

  #start(link: ByteLink): LlrpConversation {
    let settle = (_refusal: string | null) => {}
    const accepted = new Promise<void>((resolve, reject) => {
      settle = (refusal) => (refusal === null ? resolve() : reject(new Error(refusal)))
    })
    accepted.catch(() => {})
    const { clock, timers } = this.#platform
    const listener = this.#listen(readerClock(clock), settle, (reason) => conversation.end(reason))
    const conversation: LlrpConversation = new LlrpConversation(link, this.#platform, listener)
    const access = tagAccess(conversation, listener, timers, this.#settings.requestTimeoutMs)
    this.#connections.set(conversation, { conversation, accepted, access, reader: null, isConfigured: false })
    return conversation
  }

  /** Converts the reader's messages into events. */
  #listen(
    stamps: ReaderClock,
    onDecision: (refusal: string | null) => void,
    end: (reason: string) => void,
  ): LlrpListener {
    const readOf = ({ epc, antenna, rssiDbm, utcUs, uptimeUs }: TagSighting): TagRead => ({
      tag: { epc },
      seenAtMs: stamps.seenAt({ utcUs, uptimeUs }),
      ...(antenna === undefined ? {} : { antenna }),
      ...(rssiDbm === undefined ? {} : { rssiDbm }),
    })
    let isDecided = false

    const onNotification = (notification: Message<'READER_EVENT_NOTIFICATION'>): void => {
      const refusal = connectionRefusal(notification)
      if (refusal !== undefined && !isDecided) {
        isDecided = true
        stamps.set(stampOf(notification))
        onDecision(refusal)
        if (refusal !== null) return end(refusal)
      } else if (refusal !== undefined && refusal !== null)
        this.#onFault('another program tried to connect to this reader')
      if (isConnectionClose(notification)) return end('the reader closes the connection')
      const change = antennaChangeOf(notification)
      if (change) this.#antennas.setConnected(change.antenna, change.isConnected)
      const ageMs = this.#platform.clock.elapsed() - stamps.seenAt(stampOf(notification))
      for (const event of eventsIn(notification, ageMs, this.#settings.passageInput)) {
        this.#queue.put(event)
        if (event.type === 'input') this.#emitEmergency(event.input, event.on)
      }
    }

    const onTags = (seen: readonly TagSighting[]): void => {
      this.#noise.understood()
      const reads = seen.map(readOf)
      this.#queue.putReads(reads)
      this.#antennas.add(reads)
    }
    return { onTags, onNotification, onNoise: this.#noise.add }
  }

  #release(command: ReleaseCommand, signal: AbortSignal): RunningCommand {
    const current = this.#connection()
    const reject = (...why: Parameters<typeof result>): RunningCommand => completedCommand(result(...why))
    if (!current?.reader || current.conversation.isOver) return reject('failed', false, 'not_ready', NOT_CONNECTED)
    if (this.#settings.release) {
      const { gpo, pulseMs } = this.#settings.release
      return startPulse({
        gpo,
        pulseMs,
        timers: this.#platform.timers,
        signal,
        write: (on) => this.#write(gpo, on),
        isHeldOpen: () => this.#outputs.isHeldOpen,
        onPulse: () => this.#outputs.pulse(),
        onFault: (detail) => this.#onFault(detail),
      })
    }
    const { kill, eas } = this.#settings
    if (!kill && !eas)
      return reject('failed', false, 'not_supported', 'no release is configured; add "release": { "gpo": … }')
    if (!current.reader.canReachTags)
      return reject('failed', false, 'not_supported', 'the reader does not support operations on single tags')
    if (!command.tag || !('epc' in command.tag) || !isEpc(command.tag.epc))
      return reject('failed', false, 'not_supported', 'the command must name the EPC of the tag')
    const { epc } = command.tag
    const { access } = current
    const done = kill
      ? killTag(access, epc, kill.password, signal)
      : switchEasOff({ access, epc, password: eas?.password ?? NO_PASSWORD, signal })
    const outcome = done.catch((error: unknown) =>
      result('unknown', true, 'answer_lost', `fault in the driver: ${String(error)}`),
    )
    return { outcome, finished: outcome }
  }

  async #closeReader(signal: AbortSignal): Promise<void> {
    const current = this.#connection()
    if (!current?.isConfigured) return
    const requestOptions = { timeoutMs: CLOSE_WITHIN_MS, signal }
    const { conversation } = current
    // Sends all messages at once, so that a slow reader receives each message even if the reader's answers are late.
    await Promise.all([
      ...this.#outputs
        .toSwitchOff()
        .map((output) =>
          conversation.request('SET_READER_CONFIG_RESPONSE', (id) => outputWrite(id, output, false), requestOptions),
        ),
      conversation.request(
        'DELETE_ROSPEC_RESPONSE',
        (id) => message('DELETE_ROSPEC', id, { ROSpecID: 0 }),
        requestOptions,
      ),
      conversation.request('CLOSE_CONNECTION_RESPONSE', (id) => message('CLOSE_CONNECTION', id, {}), requestOptions),
    ])
  }

  #dispose(): void {
    this.#line.member?.client.end('closed')
    this.#line.leave()
    this.#noise.stop()
    this.#queue.end()
  }
}

/**
 * UHF readers and gates with LLRP 1.0.1 (EPCglobal; TCP port 5084): tag reads, sirens, lamps, barriers and passage
 * sensors; kill and EAS of single tags.
 */
export const llrpDriver: Driver<LlrpSettings, typeof LlrpSettings> = {
  name: 'llrp',
  settings: LlrpSettings,
  // A reader serves only one client, so devices cannot share its link.
  linkUse: () => null,
  exclusiveResources: exclusiveResourcesOf,
  capabilities: llrpCapabilities,
  open: (settings, links, platform) => new LlrpDevice(settings, links, platform),
}
