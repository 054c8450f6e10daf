import { isDeepStrictEqual } from 'node:util'
import { pause, type Platform } from '../../policy/platform.ts'
import { readJson, textOfBytes } from '../kit/protocol/json-lines.ts'
import { objectOf, utcUsOf } from '../kit/protocol/tag-sighting.ts'
import { zebraTags, type ZebraTopics } from './protocol/messages.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { Membership, SharedLinks } from '../transports/shared-links.ts'
import {
  antennaWatch,
  type AntennaWatch,
  filterDetector,
  type FilterDetector,
  noiseReport,
  type NoiseReport,
} from '../kit/noise-report.ts'
import { type RunningCommand, outputCommands, completedCommand, type DeviceCommands } from '../kit/device-commands.ts'
import { deviceLink, type DeviceLink, openSession, type Session } from '../kit/device-link.ts'
import {
  result,
  setUpEnded,
  setUpLimit,
  type CommandResult,
  type DeviceCommand,
  type DeviceEvent,
  type DeviceIdentity,
  type Finding,
  type ProtectionDevice,
  type WriteAnswer,
} from '../kit/device.ts'
import type { Driver } from '../kit/driver.ts'
import { EventQueue } from '../kit/event-queue.ts'
import { startPulse } from '../llrp/reading.ts'
import { readerClock, type ReaderClock } from '../llrp/reader-clock.ts'
import { brokerUse, MQTT_LINE, type MqttLine } from '../kit/mqtt-line.ts'
import { readOf } from '../kit/continuous-reading.ts'
import { desiredOutputs, type DesiredOutputs } from '../kit/desired-outputs.ts'
import {
  zebraCommands,
  type ZebraAnswer,
  type ZebraCommands,
  advisedMode,
  modeFindings,
  type ZebraMode,
} from './mode.ts'
import { signalOutputs } from '../kit/reader-settings.ts'
import { exclusiveResourcesOf, hasCommands, topicsOf, zebraIotcCapabilities, ZebraIotcSettings } from './settings.ts'

const CHECK_EVERY_MS = 3_000
const MAX_MISSED = 2
/**
 * Number of consecutive status answers with an inactive radio that end the session. A reader that reads may report an
 * inactive radio between two rounds.
 */
const MAX_INACTIVE = 3
/** Number of status requests between two checks of the operating mode. */
const MODE_EVERY_CHECKS = 5
/** Time in which the radio becomes active, in steps, ms. */
const START_STEP_MS = 500
const START_STEPS = 10
const NOT_CONNECTED = 'the reader is not connected'

interface ZebraSession extends Session {
  readonly commands: ZebraCommands
}

/** One Zebra reader. */
class ZebraDevice implements ProtectionDevice {
  readonly #settings: ZebraIotcSettings
  readonly #platform: Platform
  readonly #topics: ZebraTopics
  readonly #isManaged: boolean
  readonly #isControlled: boolean
  readonly #queue = new EventQueue()
  readonly #noise: NoiseReport
  readonly #clock: ReaderClock
  readonly #filters: FilterDetector
  readonly #antennas: AntennaWatch
  /** Operating mode of the connected reader; null if the agent cannot read it. */
  #mode: ZebraMode | null = null
  readonly #outputs: DesiredOutputs
  readonly #line: DeviceLink<MqttLine>
  #session: ZebraSession | null = null
  readonly #commands: DeviceCommands
  readonly events: AsyncIterable<DeviceEvent>
  readonly setUpLimitMs: number

  constructor(settings: ZebraIotcSettings, links: SharedLinks, platform: Platform) {
    this.#settings = settings
    this.setUpLimitMs = setUpLimit(settings.requestTimeoutMs)
    this.#platform = platform
    this.#topics = topicsOf(settings)
    this.#isManaged = hasCommands(this.#topics, 'management')
    this.#isControlled = hasCommands(this.#topics, 'control') && settings.start
    this.#noise = noiseReport(platform, this.#queue.put)
    this.#clock = readerClock(platform.clock)
    this.#filters = filterDetector('let it report every read (reportFilter with duration 0)', this.#queue.put)
    this.#antennas = antennaWatch(settings.antennas, this.#queue.put)
    this.#outputs = desiredOutputs({
      release: settings.release?.gpo,
      signals: signalOutputs(settings),
      opensInEmergency: settings.opensInEmergency,
      setting: 'gpo',
      platform,
      write: (output, on) => this.#write(output, on),
    })
    this.#line = deviceLink(links, settings.link, MQTT_LINE, (reason) => this.#session?.end(reason))
    this.#commands = outputCommands({
      platform,
      outputs: this.#outputs,
      release: (_command, signal) => this.#release(signal),
      switchOff: () => this.#stopReader(),
      dispose: () => this.#dispose(),
    })
    this.events = this.#queue.events
  }

  async connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    this.#session?.end('reconnected')
    await this.#line.connect(signal, onFailure)
  }

  async identify(signal: AbortSignal): Promise<DeviceIdentity> {
    const member = this.#line.joined()
    this.#session?.end('identified again')
    const commands = zebraCommands(member.client, this.#topics, this.#platform, this.#settings.requestTimeoutMs)
    const current: ZebraSession = { ...openSession(), commands }
    this.#session = current
    void current.lost.then((reason) => commands.end(reason))
    const step = { waitsFor: 'the broker to accept the connection' }
    const tooLate = () => current.end(setUpEnded(step.waitsFor, signal).message)
    signal.addEventListener('abort', tooLate, { once: true })
    try {
      const sessionLost = current.lost.then((reason): never => {
        throw new Error(reason)
      })
      const identity = await Promise.race([this.#begin(current, member, step), sessionLost])
      if (this.#isManaged) void this.#monitorReading(current)
      return identity
    } catch (error) {
      current.end('not identified')
      throw error
    } finally {
      signal.removeEventListener('abort', tooLate)
    }
  }

  untilLost(): Promise<string> {
    return this.#session?.lost ?? Promise.resolve('the link was lost')
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

  #setGpo({ commands }: ZebraSession, port: number, state: boolean): Promise<ZebraAnswer> {
    return commands.request(this.#settings.gpoBy, 'set_gpo', { port, state })
  }

  async #write(output: number, on: boolean): Promise<WriteAnswer> {
    if (!this.#session || this.#session.over.aborted)
      return { kind: 'lost', possiblySent: false, detail: NOT_CONNECTED }
    const current = this.#session
    const answer = await this.#setGpo(current, output, on)
    // The output's state is unknown, so the session ends. The next session writes all outputs again.
    if (answer.kind === 'lost' && answer.possiblySent) current.end(answer.detail)
    return answer
  }

  #onMessage(topic: string, payload: Uint8Array, commands: ZebraCommands): void {
    const { items, unreadable } = readJson(textOfBytes(payload))
    const isData = topic === this.#topics.data
    if (unreadable !== '')
      this.#noise.add({
        bytes: payload.length,
        detail: `a message on ${topic} that is no JSON`,
        ...(isData && { sample: payload }),
      })
    for (const { value, text } of items) {
      if (isData) this.#onData(value, text)
      else if (!commands.onResponse(value))
        this.#noise.add({ bytes: text.length, detail: `a message on ${topic} that is no response` })
    }
  }

  #onData(value: unknown, text: string): void {
    const { sightings, strange } = zebraTags(value)
    const detail = `a message on ${this.#topics.data} without a tag; send tag data events there, with metadata EPC`
    if (strange > 0) this.#noise.add({ bytes: text.length, detail, sample: Buffer.from(text.slice(0, 400)) })
    if (sightings.length > 0) this.#noise.understood()
    const reads = sightings.map((sighting) => readOf(sighting, this.#clock))
    this.#queue.putReads(reads)
    this.#antennas.add(reads)
    // Otherwise the mode shows what the reader filters.
    if (!hasCommands(this.#topics, 'control')) this.#filters.add(reads)
  }

  async #expectAnswer(what: string, pendingAnswer: Promise<ZebraAnswer>): Promise<Record<string, unknown>> {
    const answer = await pendingAnswer
    if (answer.kind === 'answered') return answer.payload
    throw new Error(
      `${what}: ${answer.detail}${answer.kind === 'lost' ? '; is the reader on, and does it use this broker and these topics?' : ''}`,
    )
  }

  /** Ends the session when the reader no longer answers or no longer reads. */
  async #monitorReading(current: ZebraSession): Promise<void> {
    let missed = 0
    let inactive = 0
    for (let check = 1; ; check++) {
      await pause(this.#platform.timers, CHECK_EVERY_MS, current.over).catch(() => {})
      if (current.over.aborted) return
      const answer = await current.commands.request('management', 'get_status')
      missed = answer.kind === 'answered' ? 0 : missed + 1
      if (answer.kind !== 'answered' && missed === MAX_MISSED) return current.end(answer.detail)
      if (answer.kind !== 'answered') continue
      this.#onStatus(answer.payload)
      if (check % MODE_EVERY_CHECKS === 0 && (await this.#hasOtherMode(current))) {
        this.#onFault('the operating mode of the reader was changed; the agent checks it again')
        return current.end('the operating mode of the reader was changed')
      }
      if (!this.#isControlled) continue
      inactive = isActive(answer.payload) === false ? inactive + 1 : 0
      if (inactive === MAX_INACTIVE) {
        this.#onFault('the reader had stopped reading; the agent starts it again')
        return current.end('the reader no longer reads')
      }
    }
  }

  /** Takes clock and antennas from a status. */
  #onStatus(status: Record<string, unknown>): void {
    const utcUs = utcUsOf(status['systemTime'])
    if (utcUs !== null) this.#clock.check({ utcUs })
    for (const [antenna, state] of Object.entries(objectOf(status['antennas']) ?? {}))
      if (state === 'connected' || state === 'disconnected')
        this.#antennas.setConnected(Number(antenna), state === 'connected')
  }

  /** True if another program has changed the operating mode. */
  async #hasOtherMode({ commands }: ZebraSession): Promise<boolean> {
    if (!hasCommands(this.#topics, 'control') || this.#mode === null) return false
    const answer = await commands.request('control', 'get_mode')
    return answer.kind === 'answered' && !isDeepStrictEqual(answer.payload, this.#mode)
  }

  /** Waits until the radio is active. Rejects if the reader does not start to read. */
  async #untilReading(commands: ZebraCommands, signal: AbortSignal): Promise<void> {
    for (let step = 0; step < START_STEPS; step++) {
      const status = await commands.request('management', 'get_status')
      if (status.kind !== 'answered' || isActive(status.payload) !== false) return
      await pause(this.#platform.timers, START_STEP_MS, signal)
    }
    throw new Error(
      'the reader accepts "start" but its radio stays inactive; remove start conditions and triggers from its mode, and check region and antennas',
    )
  }

  async #begin(
    current: ZebraSession,
    member: Membership<MqttLine>,
    step: { waitsFor: string },
  ): Promise<DeviceIdentity> {
    const { commands } = current
    await member.client.accepted
    step.waitsFor = 'the broker to accept the subscription'
    const topics = [this.#topics.data, this.#topics.managementResponse, this.#topics.controlResponse].filter(
      (topic) => topic !== undefined,
    )
    const leave = await member.client.subscribe([...new Set(topics)], (topic, payload) =>
      this.#onMessage(topic, payload, commands),
    )
    current.over.addEventListener('abort', leave, { once: true })
    if (current.over.aborted) leave()
    member.markResponsive()
    step.waitsFor = 'the reader to answer'
    const version = this.#isManaged
      ? await this.#expectAnswer('its version', commands.request('management', 'get_version'))
      : {}
    const status = this.#isManaged
      ? await this.#expectAnswer('its status', commands.request('management', 'get_status'))
      : {}
    const utcUs = utcUsOf(status['systemTime'])
    if (utcUs !== null) this.#clock.set({ utcUs })
    this.#onStatus(status)
    for (const output of this.#outputs.atConnect().keys()) {
      // Reads the desired state just before the write. A signal that starts meanwhile is written later.
      const on = this.#outputs.atConnect().get(output) === true
      await this.#expectAnswer(`output ${output}`, this.#setGpo(current, output, on))
    }
    const findings = await this.#checkMode(commands)
    if (this.#isControlled) {
      await this.#startReading(commands)
      step.waitsFor = 'the reader to start reading'
      if (this.#isManaged) await this.#untilReading(commands, current.over)
    }
    const text = (key: string) => (typeof version[key] === 'string' ? version[key].slice(0, 100) : undefined)
    const [firmwareVersion, serialNumber] = [text('readerApplication'), text('serialNumber')]
    return {
      description: `Zebra ${text('model') ?? 'reader'} on ${this.#topics.data} at ${linkKey(this.#settings.link)}`,
      ...(firmwareVersion === undefined ? {} : { firmwareVersion }),
      ...(serialNumber === undefined ? {} : { serialNumber }),
      findings: [...findings, ...this.#antennas.findings],
    }
  }

  /** Reads the operating mode. With `setMode`, replaces a mode that a gate cannot use. */
  async #checkMode(commands: ZebraCommands): Promise<Finding[]> {
    if (!hasCommands(this.#topics, 'control')) return [...modeFindings(this.#settings, null), ...this.#filters.findings]
    const present = await this.#readMode(commands)
    const findings = modeFindings(this.#settings, present)
    if (!this.#settings.setMode || findings.every(({ isWarning }) => isWarning)) return findings
    // A reader refuses a new mode while it reads. It may also refuse to stop because it does not read.
    await commands.request('control', 'stop')
    await this.#expectAnswer(
      'setting its mode',
      commands.request('control', 'set_mode', advisedMode(this.#settings, present)),
    )
    return modeFindings(this.#settings, await this.#readMode(commands))
  }

  /** The operating mode; null if the reader refuses to report it. */
  async #readMode(commands: ZebraCommands): Promise<ZebraMode | null> {
    const answer = await commands.request('control', 'get_mode')
    this.#mode = answer.kind === 'refused' ? null : await this.#expectAnswer('its mode', Promise.resolve(answer))
    return this.#mode
  }

  /** Starts reading. Accepts a refusal if the reader already reads. */
  async #startReading(commands: ZebraCommands): Promise<void> {
    const started = await commands.request('control', 'start', { doNotPersistState: true })
    if (started.kind === 'answered') return
    const status =
      started.kind === 'refused' && this.#isManaged ? await commands.request('management', 'get_status') : null
    if (status?.kind !== 'answered' || isActive(status.payload) !== true)
      await this.#expectAnswer('starting to read', Promise.resolve(started))
  }

  #release(signal: AbortSignal): RunningCommand {
    const reject = (...why: Parameters<typeof result>): RunningCommand => completedCommand(result(...why))
    if (!this.#settings.release)
      return reject('failed', false, 'not_supported', 'no release is configured; add "release": { "gpo": … }')
    if (!this.#session || this.#session.over.aborted) return reject('failed', false, 'not_ready', NOT_CONNECTED)
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

  async #stopReader(): Promise<void> {
    const current = this.#session
    if (!current || current.over.aborted) return
    const stop = this.#isControlled ? [current.commands.request('control', 'stop')] : []
    await Promise.all([...this.#outputs.toSwitchOff().map((output) => this.#setGpo(current, output, false)), ...stop])
  }

  #dispose(): void {
    this.#session?.end('closed')
    this.#line.leave()
    this.#noise.stop()
    this.#queue.end()
  }
}

/**
 * True if the radio is active; null if the status does not report the radio. Firmware versions spell the field in two
 * ways.
 */
function isActive(status: Record<string, unknown>): boolean | null {
  const activity = status['radioActivity'] ?? status['radioActivitiy']
  return typeof activity === 'string' ? activity === 'active' : null
}

/**
 * Zebra readers with the IoT Connector ("Raw MQTT payloads" 1.0.0): tag reads, sirens, lamps and barriers over an MQTT
 * broker.
 */
export const zebraIotcDriver: Driver<ZebraIotcSettings, typeof ZebraIotcSettings> = {
  name: 'zebra-iotc',
  settings: ZebraIotcSettings,
  linkUse: ({ link }) => brokerUse(link),
  exclusiveResources: exclusiveResourcesOf,
  capabilities: zebraIotcCapabilities,
  open: (settings, links, platform) => new ZebraDevice(settings, links, platform),
}
