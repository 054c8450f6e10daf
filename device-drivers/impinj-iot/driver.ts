import { pause, type Platform, type Timers } from '../../policy/platform.ts'
import {
  gpoRequest,
  IMPINJ_FACTORY_LOGIN,
  IMPINJ_PATHS,
  levelOf,
  presetSettingsPath,
  antennaText,
} from './protocol/requests.ts'
import { objectOf, utcUsOf } from '../kit/protocol/tag-sighting.ts'
import type { SharedLinks } from '../transports/shared-links.ts'
import {
  antennaWatch,
  type AntennaWatch,
  filterDetector,
  type FilterDetector,
  noiseReport,
  type NoiseReport,
} from '../kit/noise-report.ts'
import { type RunningCommand, outputCommands, completedCommand, type DeviceCommands } from '../kit/device-commands.ts'
import {
  result,
  setUpLimit,
  type CommandResult,
  type DeviceCommand,
  type DeviceEvent,
  type DeviceIdentity,
  type ProtectionDevice,
  type WriteAnswer,
} from '../kit/device.ts'
import type { Driver } from '../kit/driver.ts'
import { emergencyEvent } from '../kit/emergency-input.ts'
import { EventQueue } from '../kit/event-queue.ts'
import { basicAuth } from '../kit/http/conversation.ts'
import { jsonOf, refusalDetail, restClient, type RestClient } from '../kit/http/rest-client.ts'
import { dataStream, type DataStream, setUpReader } from './set-up.ts'
import { signalOutputs } from '../kit/reader-settings.ts'
import {
  exclusiveResourcesOf,
  impinjIotCapabilities,
  ImpinjIotSettings,
  inputsOf,
  sessionFindings,
} from './settings.ts'
import { inputEvents, watchLevel } from '../kit/input-watch.ts'
import { startPulse } from '../llrp/reading.ts'
import { readerClock, type ReaderClock } from '../llrp/reader-clock.ts'
import { openSession, type Session } from '../kit/device-link.ts'
import { readOf } from '../kit/continuous-reading.ts'
import { desiredOutputs, type DesiredOutputs } from '../kit/desired-outputs.ts'

/** Interval of the status requests, ms. The requests also keep the connection open. */
const CHECK_EVERY_MS = 2_000
const MAX_MISSED = 2
const KEEPALIVES_MISSED = 3
const PRESET_ADVICE =
  'let the preset query with "dual-target" or session 0, and report without an interval, or leave "preset" out'
/** Time in which a reader starts to read, in steps, ms. */
const START_STEP_MS = 500
const START_STEPS = 10
const NOT_CONNECTED = 'the reader is not connected'

/** One Impinj reader. */
class ImpinjDevice implements ProtectionDevice {
  readonly #settings: ImpinjIotSettings
  readonly #timers: Timers
  readonly #queue = new EventQueue()
  readonly #noise: NoiseReport
  readonly #clock: ReaderClock
  readonly #filters: FilterDetector
  readonly #antennas: AntennaWatch
  readonly #rest: RestClient
  readonly #stream: DataStream
  readonly #outputs: DesiredOutputs
  #session: Session | null = null
  #hasWarned = false
  readonly #commands: DeviceCommands
  readonly events: AsyncIterable<DeviceEvent>

  readonly #onFault = (detail: string): void => this.#queue.put({ type: 'fault', detail })
  readonly setUpLimitMs: number

  constructor(settings: ImpinjIotSettings, links: SharedLinks, platform: Platform) {
    this.#settings = settings
    this.setUpLimitMs = setUpLimit(settings.requestTimeoutMs)
    this.#timers = platform.timers
    const authorization = basicAuth(settings.user, settings.password)
    this.#noise = noiseReport(platform, this.#queue.put)
    this.#clock = readerClock(platform.clock)
    this.#filters = filterDetector(PRESET_ADVICE, this.#queue.put)
    this.#antennas = antennaWatch(settings.antennas, this.#queue.put)
    const watched = new Set(inputsOf(settings))
    this.#rest = restClient({
      link: settings.link,
      links,
      platform,
      timeoutMs: settings.requestTimeoutMs,
      headers: { authorization },
    })
    this.#stream = dataStream({
      link: { ...settings.link, channel: 'stream' },
      links,
      platform,
      authorization,
      timeoutMs: settings.requestTimeoutMs,
      onTags: (sightings) => {
        const reads = sightings.map((sighting) => readOf(sighting, this.#clock))
        this.#noise.understood()
        this.#queue.putReads(reads)
        this.#antennas.add(reads)
        // Without a preset the settings show what the reader reports.
        if (settings.preset !== undefined) this.#filters.add(reads)
      },
      onInput: ({ input, on, utcUs }) => {
        if (!watched.has(input)) return
        const ageMs = platform.clock.elapsed() - this.#clock.seenAt({ utcUs })
        for (const event of inputEvents({ input, on, ageMs }, settings.passageInput)) {
          this.#queue.put(event)
          if (event.type === 'input') this.#emitEmergency(input, on)
        }
      },
      onAntenna: (change) => {
        this.#onFault(antennaText(change))
        this.#antennas.setConnected(change.antenna, change.isConnected)
      },
      onFault: this.#onFault,
      onNoise: this.#noise.add,
    })
    this.#outputs = desiredOutputs({
      release: settings.release?.gpo,
      signals: signalOutputs(settings),
      opensInEmergency: settings.opensInEmergency,
      setting: 'gpo',
      platform,
      write: (output, on) => this.#write(output, on),
    })
    this.#commands = outputCommands({
      platform,
      outputs: this.#outputs,
      release: (_command, signal) => this.#release(signal),
      switchOff: (signal) => this.#stopReader(signal),
      dispose: () => this.#dispose(),
    })
    this.events = this.#queue.events
  }

  async connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    this.#session?.end('reconnected')
    await this.#rest.connect(signal, onFailure)
  }

  async identify(signal: AbortSignal): Promise<DeviceIdentity> {
    this.#session?.end('identified again')
    const session = openSession()
    this.#session = session
    try {
      const { identity, keepaliveSeconds } = await setUpReader({
        rest: this.#rest,
        settings: this.#settings,
        clock: this.#clock,
        signal,
        desiredOutputs: () => this.#outputs.atConnect(),
      })
      const preset = await this.#readPreset()
      await this.#watchEmergency(session)
      await this.#stream.open(session, signal, keepaliveSeconds * KEEPALIVES_MISSED * 1_000)
      if (session.over.aborted) throw new Error(await session.lost)
      const running = await this.#untilReading(signal)
      this.#warnOfFactoryPassword()
      void this.#monitorReading(session, running)
      const findings = [
        ...sessionFindings(this.#settings, preset),
        ...this.#filters.findings,
        ...this.#antennas.findings,
      ]
      return { ...identity, findings }
    } catch (error) {
      session.end('not identified')
      throw error
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

  async #write(output: number, on: boolean, once: boolean = false): Promise<WriteAnswer> {
    if (!this.#session || this.#session.over.aborted)
      return { kind: 'lost', possiblySent: false, detail: NOT_CONNECTED }
    const current = this.#session
    const answer = await this.#rest.request({
      method: 'PUT',
      path: IMPINJ_PATHS.gpos,
      body: gpoRequest([[output, on]]),
      once,
    })
    if (answer.kind === 'answered' && answer.status >= 200 && answer.status < 300) return { kind: 'answered' }
    if (answer.kind === 'answered' && answer.status < 500)
      return { kind: 'refused', detail: `the reader ${refusalDetail(answer)}` }
    // The output's state is unknown, so the session ends. The next session writes all outputs again.
    if (answer.kind === 'answered' || answer.possiblySent) current.end(refusalDetail(answer))
    return {
      kind: 'lost',
      possiblySent: answer.kind === 'answered' || answer.possiblySent,
      detail: refusalDetail(answer),
    }
  }

  #emitEmergency(input: number, level: boolean): void {
    const event = emergencyEvent(this.#settings.emergency, input, level)
    if (event) this.#queue.put(event)
  }

  /**
   * Reads the emergency input at once, then every second. Rejects if the reader does not report the level of this
   * input.
   */
  async #watchEmergency(current: Session): Promise<void> {
    if (!this.#settings.emergency) return
    const { input } = this.#settings.emergency
    const read = async () => {
      const answer = objectOf(jsonOf(await this.#rest.request({ method: 'GET', path: IMPINJ_PATHS.gpis })))
      return answer ? levelOf(answer, input) : null
    }
    const level = await read()
    if (level === null)
      throw new Error(`the reader does not report the level of input (GPI) ${input}, so it cannot serve as "emergency"`)
    this.#emitEmergency(input, level)
    void watchLevel({
      timers: this.#timers,
      over: current.over,
      read,
      onLevel: (now) => this.#emitEmergency(input, now),
      onUnresponsive: () => current.end(`the reader no longer reports the level of input (GPI) ${input}`),
    })
  }

  /** Waits until the reader reads. Resolves with the inventory that it runs; rejects if it does not start. */
  async #untilReading(signal: AbortSignal): Promise<string | undefined> {
    // A reader with a trigger (`readWhile`) waits for its input.
    for (let step = 0; step < START_STEPS; step++) {
      const status = objectOf(jsonOf(await this.#rest.request({ method: 'GET', path: IMPINJ_PATHS.status, signal })))
      if (status?.['status'] !== 'idle' || this.#settings.readWhile) return runningIn(status)
      await pause(this.#timers, START_STEP_MS, signal)
    }
    throw new Error('the reader accepts the inventory but does not start it; check region and antennas on its web page')
  }

  /** Ends the session when the reader no longer answers, no longer reads, or runs the inventory of another program. */
  async #monitorReading(current: Session, running: string | undefined): Promise<void> {
    for (let missed = 0; missed < MAX_MISSED;) {
      await pause(this.#timers, CHECK_EVERY_MS, current.over).catch(() => {})
      if (current.over.aborted) return
      const answer = await this.#rest.request({ method: 'GET', path: IMPINJ_PATHS.status })
      const report = objectOf(jsonOf(answer))
      const status = report?.['status']
      const utcUs = utcUsOf(report?.['time'])
      if (utcUs !== null) this.#clock.check({ utcUs })
      const present = runningIn(report)
      if (running !== undefined && present !== undefined && present !== running) {
        this.#onFault(`another program has started the inventory "${present}"; the agent starts its own again`)
        return current.end('the reader runs the inventory of another program')
      }
      // A reader with a trigger (`readWhile`) is idle between two triggers.
      if (status === 'idle' && !this.#settings.readWhile) {
        this.#onFault('the reader had stopped reading; the agent starts it again')
        return current.end('the reader no longer reads')
      }
      missed = status === undefined ? missed + 1 : 0
      if (missed === MAX_MISSED) current.end(`the reader does not report its status: ${refusalDetail(answer)}`)
    }
  }

  /** The stored inventory that the reader runs; null without one, or if the reader does not report it. */
  async #readPreset(): Promise<Record<string, unknown> | null> {
    const { preset } = this.#settings
    if (preset === undefined) return null
    return objectOf(jsonOf(await this.#rest.request({ method: 'GET', path: presetSettingsPath(preset) })))
  }

  #warnOfFactoryPassword(): void {
    if (
      this.#hasWarned ||
      this.#settings.user !== IMPINJ_FACTORY_LOGIN.user ||
      this.#settings.password !== IMPINJ_FACTORY_LOGIN.password
    )
      return
    this.#hasWarned = true
    this.#onFault('the reader still has its public factory password; change it on the reader and in the settings')
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
      timers: this.#timers,
      signal,
      write: (on) => this.#write(gpo, on, on),
      isHeldOpen: () => this.#outputs.isHeldOpen,
      onPulse: () => this.#outputs.pulse(),
      onFault: this.#onFault,
    })
  }

  async #stopReader(signal: AbortSignal): Promise<void> {
    if (!this.#session || this.#session.over.aborted) return
    const off = this.#outputs.toSwitchOff().map((output) => [output, false] as const)
    if (off.length > 0)
      await this.#rest.request({ method: 'PUT', path: IMPINJ_PATHS.gpos, body: gpoRequest(off), signal })
    await this.#rest.request({ method: 'POST', path: IMPINJ_PATHS.stop, signal })
  }

  #dispose(): void {
    this.#session?.end('closed')
    this.#rest.leave()
    this.#noise.stop()
    this.#queue.end()
  }
}

/** The inventory that the reader runs; undefined if it reports none. */
function runningIn(status: Record<string, unknown> | null): string | undefined {
  const id = objectOf(status?.['activePreset'])?.['id']
  return typeof id === 'string' ? id.slice(0, 64) : undefined
}

/**
 * Impinj R700 with the IoT device interface (REST, OpenAPI document 1.7.0): tag reads, sirens, lamps and
 * barriers.
 */
export const impinjIotDriver: Driver<ImpinjIotSettings, typeof ImpinjIotSettings> = {
  name: 'impinj-iot',
  settings: ImpinjIotSettings,
  linkUse: () => null,
  exclusiveResources: exclusiveResourcesOf,
  capabilities: impinjIotCapabilities,
  open: (settings, links, platform) => new ImpinjDevice(settings, links, platform),
}
