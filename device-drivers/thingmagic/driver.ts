import type { Cancel, Clock, Platform } from '../../policy/platform.ts'
import type { Noise } from '../kit/protocol/codec.ts'
import { THINGMAGIC, thingMagicCodec, type ThingMagicFrame } from './protocol/frame.ts'
import {
  decodeThingMagicTag,
  decodeVersion,
  isBootLoader,
  NO_ANTENNA,
  setAntennas,
  setOutput,
  setReadPower,
  START_READING,
  statusText,
  STILL_READING,
  STOP_READING,
  REPORT_EVERY_READ,
  THINGMAGIC_REGIONS,
  thingMagicCommand,
  TOO_HOT,
  USE_GEN2,
  useAsOutput,
  type ThingMagicRegion,
} from './protocol/messages.ts'
import { linkKey, LinkSettings } from '../transports/link-settings.ts'
import type { LinkProtocol, SharedLinks } from '../transports/shared-links.ts'
import { type RunningCommand, completedCommand } from '../kit/device-commands.ts'
import {
  result,
  setUpLimit,
  SIGNALS,
  type CommandResult,
  type DeviceIdentity,
  type Finding,
  type Signal,
} from '../kit/device.ts'
import { type Driver, DeviceId, type Capabilities } from '../kit/driver.ts'
import { EventQueue } from '../kit/event-queue.ts'
import type { Exchange, ExchangeAnswer } from '../kit/exchange.ts'
import {
  startContinuousReading,
  type ContinuousReading,
  tagPresence,
  type TagPresence,
} from '../kit/continuous-reading.ts'
import { linkDevice, type LinkDeviceOptions, type LinkSession } from '../kit/link-device.ts'
import { noiseReport, type NoiseReport } from '../kit/noise-report.ts'
import { frameOrThrow, readerLine, FEEDS_WITH_MINIMUM_RSSI } from '../kit/reader-settings.ts'
import type { SwitchAnswer } from '../kit/release.ts'
import { timedSignals, type TimedSignals } from '../kit/desired-outputs.ts'
import { z } from 'zod'

const whole = (from: number, to: number, error: string) => z.int({ error }).min(from, { error }).max(to, { error })
const REGION_NAMES = Object.keys(THINGMAGIC_REGIONS) as [ThingMagicRegion, ...ThingMagicRegion[]]
const powerError = { error: 'give dBm, 0 to 31.5, within the limits of law and module' }
const Lamp = z.strictObject(
  { output: whole(1, 4, 'give the number of the pin, 1 to 4') },
  { error: 'give { "output": 1 }' },
)

/** A UHF reader module of ThingMagic (M6e, Nano, Micro, M7e) on a serial line. */
const ThingMagicSettings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('thingmagic'),
  link: LinkSettings,
  ...FEEDS_WITH_MINIMUM_RSSI,
  region: z.enum(REGION_NAMES, {
    error: `give the region of the place of installation: ${REGION_NAMES.map((name) => `"${name}"`).join(', ')}`,
  }),
  antennas: z
    .array(whole(1, 4, 'antennas are numbered 1 to 4'), { error: 'give a list such as [1]' })
    .min(1, { error: 'give at least one antenna' })
    .max(4)
    .default([1]),
  powerDbm: z.number(powerError).min(0, powerError).max(31.5, powerError).optional(),
  siren: Lamp.optional(),
  amber: Lamp.optional(),
  green: Lamp.optional(),
  repeatMs: whole(0, 60_000, 'give milliseconds, 0 to 60000').default(250),
  goneMs: whole(100, 60_000, 'give milliseconds, 100 to 60000').default(1_000),
  requestTimeoutMs: whole(50, 5_000, 'give milliseconds, 50 to 5000').default(1_000),
})
type ThingMagicSettings = z.infer<typeof ThingMagicSettings>

/** The module only reads. Its setting `antennas` lists the antennas to use, not their direction. */
function thingMagicCapabilities(settings: ThingMagicSettings): Capabilities {
  return {
    releases: 'nothing',
    confirmInput: undefined,
    passage: false,
    departures: 'reported',
    antennas: undefined,
    siren: settings.siren && { seconds: undefined },
    feeds: settings.feeds,
    staffCards: false,
    minimumRssiDbm: settings.nearDbm,
    emergency: undefined,
    opensInEmergency: undefined,
    webhook: undefined,
  }
}

type Line = Exchange<ThingMagicFrame>

/** Time without data after which reading is restarted, ms. A module that reads sends a keepalive every second. */
const QUIET_MS = 2_500
/** Time without overheating after which overheating is reported again, ms. */
const HEAT_OVER_MS = 60_000
const FAULT_EVERY_MS = 60_000
/** Time without a report of a missing antenna after which it counts as connected, ms. */
const ANTENNA_BACK_MS = 5_000
const MAX_OFF_TRIES = 3
const LOST: Finding = {
  code: 'reader_antenna',
  detail: `${statusText(NO_ANTENNA)}: connect the antenna, or take its number out of "antennas"`,
  isWarning: false,
}
const NOT_CONNECTED: SwitchAnswer = { kind: 'lost', possiblySent: false, detail: 'the reader is not connected' }

/** One session with a module. */
interface Reader {
  readonly reading: ContinuousReading
  request(frame: ThingMagicFrame): Promise<ExchangeAnswer<ThingMagicFrame>>
  end(reason: string): void
}

/** One ThingMagic reader. */
class ThingMagicReader implements LinkDeviceOptions<Line> {
  readonly #settings: ThingMagicSettings
  readonly links: SharedLinks
  readonly platform: Platform
  readonly #clock: Clock
  readonly queue = new EventQueue()
  readonly #noise: NoiseReport
  readonly #presence: TagPresence
  readonly #offTimers = new Map<Signal, Cancel>()
  #hotMs = -HEAT_OVER_MS
  #faultMs = -FAULT_EVERY_MS
  /** Time of the last report of a missing antenna, ms; null if none is missing. */
  #lostAntennaMs: number | null = null
  #current: Reader | null = null
  readonly protocol: LinkProtocol<Exchange<ThingMagicFrame>>
  readonly #configured: ReadonlySet<Signal>
  readonly #signals: TimedSignals
  readonly link: LinkSettings
  readonly setUpLimitMs: number

  constructor(settings: ThingMagicSettings, links: SharedLinks, platform: Platform) {
    this.#settings = settings
    this.setUpLimitMs = setUpLimit(settings.requestTimeoutMs)
    this.links = links
    this.platform = platform
    this.#clock = platform.clock
    this.#noise = noiseReport(platform, this.queue.put)
    this.#presence = tagPresence({
      platform,
      repeatMs: settings.repeatMs,
      goneMs: settings.goneMs,
      emit: this.queue.put,
    })
    this.protocol = readerLine({
      name: 'ThingMagic reader',
      codec: () => thingMagicCodec('host'),
      onStray: (frame) => this.#onStray(frame),
      noise: this.#noise,
      platform,
    })
    this.#configured = new Set(SIGNALS.filter((signal) => settings[signal]))
    this.#signals = timedSignals(platform.clock, this.#configured, (signal, ms) => this.#write(signal, ms))
    this.link = settings.link
  }

  async begin(session: LinkSession<Line>, signal: AbortSignal): Promise<DeviceIdentity> {
    this.#current = null
    const request = async (frame: ThingMagicFrame): Promise<ExchangeAnswer<ThingMagicFrame>> => {
      const answer = await session.client.request({
        frame,
        target: 'the reader',
        timeoutMs: this.#settings.requestTimeoutMs,
        signal: session.over,
        isAnswer: ({ opcode }) => opcode === frame.opcode,
      })
      if (answer.kind === 'answered') this.#current?.reading.noteActivity()
      return answer
    }
    const requestOrThrow = async (frame: ThingMagicFrame, what: string | null): Promise<ThingMagicFrame> => {
      const answer = await request(frame)
      const reply = frameOrThrow(answer, session, signal, what ?? 'to stop')
      if (what !== null && reply.status !== 0) {
        throw new Error(
          `the reader refuses ${what}: ${statusText(reply.status ?? 0)}; check the settings of ${this.#settings.deviceId}`,
        )
      }
      return reply
    }

    // The module may still read because of an earlier session. A refusal is ignored, because a module that does not
    // read may refuse to stop.
    await requestOrThrow(STOP_READING, null)
    if (isBootLoader(await requestOrThrow(thingMagicCommand(THINGMAGIC.currentProgram), 'to report its program'))) {
      await requestOrThrow(thingMagicCommand(THINGMAGIC.bootFirmware), 'to start its firmware')
    }
    const version = decodeVersion(await requestOrThrow(thingMagicCommand(THINGMAGIC.version), 'to report its version'))
    if (!version) throw new Error('the reader does not report its version')
    await requestOrThrow(USE_GEN2, 'Gen2 tags')
    await requestOrThrow(
      thingMagicCommand(THINGMAGIC.setRegion, [THINGMAGIC_REGIONS[this.#settings.region]]),
      `region ${this.#settings.region}`,
    )
    await requestOrThrow(setAntennas(this.#settings.antennas), `antennas ${this.#settings.antennas.join(', ')}`)
    if (this.#settings.powerDbm !== undefined)
      await requestOrThrow(setReadPower(this.#settings.powerDbm), `a power of ${this.#settings.powerDbm} dBm`)
    await requestOrThrow(REPORT_EVERY_READ, 'to report every read')
    const written = new Map<Signal, boolean>()
    for (const [name, ms] of this.#signals.due()) {
      const pin = this.#settings[name]?.output
      if (pin === undefined) continue
      await requestOrThrow(useAsOutput(pin, ms > 0), `pin ${pin} as an output`)
      // Some firmware ignores the level in the command that sets the direction.
      await requestOrThrow(setOutput(pin, ms > 0), `pin ${pin}`)
      written.set(name, ms > 0)
    }
    await requestOrThrow(START_READING, 'to read')
    async function start(): Promise<void> {
      const answer = await request(START_READING)
      // After a short power failure the module has lost its settings and refuses to start. The next session writes the
      // settings again.
      if (answer.kind === 'answered' && answer.frame.status !== 0) {
        session.end(`the reader does not read any more: ${statusText(answer.frame.status ?? 0)}`)
      }
    }
    const reading = startContinuousReading({
      platform: this.platform,
      quietMs: QUIET_MS,
      isReading: true,
      over: session.over,
      stop: () => request(STOP_READING),
      start,
      onUnresponsive: session.markUnresponsive,
    })
    this.#current = { reading, request, end: session.end }
    // Writes the signals that changed during the set-up.
    for (const [name, ms] of this.#signals.due()) if (written.get(name) !== ms > 0) void this.#write(name, ms)
    return {
      description: `ThingMagic reader ${version.hardware} at ${linkKey(this.#settings.link)}`,
      firmwareVersion: version.firmware,
      findings: this.#lostAntennaMs === null ? [] : [LOST],
    }
  }

  release(): RunningCommand {
    return completedCommand(result('failed', false, 'not_supported', 'this reader only reads'))
  }

  signal(name: Signal, seconds: number): Promise<CommandResult> {
    return this.#signals.signal(name, seconds)
  }

  emergency(_open: boolean, silent: boolean): Promise<CommandResult> {
    return this.#signals.silence(silent)
  }

  async switchOff(session: LinkSession<Line> | null): Promise<void> {
    this.#signals.allOff()
    for (const cancel of this.#offTimers.values()) cancel()
    this.#offTimers.clear()
    const reader = this.#current
    if (!session || !reader) return
    for (const name of this.#configured) await this.#switchOffForGood(reader, this.#settings[name]?.output)
    await reader.reading.suspend()
  }

  stopped(): void {
    this.#noise.stop()
    this.#presence.stop()
  }

  #onStray(frame: ThingMagicFrame): Noise | null {
    this.#current?.reading.noteActivity()
    this.#noteAntenna(frame.opcode === THINGMAGIC.readMany && frame.status === NO_ANTENNA)
    const tag = decodeThingMagicTag(frame)
    if (tag) {
      this.#noise.understood()
      const { epc, ...seen } = tag
      this.#presence.seen([{ tag: { epc }, ...seen, seenAtMs: this.#clock.elapsed() }])
      return null
    }
    if (frame.opcode !== THINGMAGIC.readMany)
      return { bytes: frame.data.length, detail: 'a frame that answers nothing' }
    if (frame.status === TOO_HOT) {
      if (this.#clock.elapsed() - this.#hotMs >= HEAT_OVER_MS) {
        this.queue.put({ type: 'fault', detail: 'the reader is too hot and reads less; give it air or less power' })
      }
      this.#hotMs = this.#clock.elapsed()
    } else if (frame.status !== STILL_READING && frame.status !== NO_ANTENNA && frame.status !== 0) {
      this.#onStatusFault(frame.status ?? 0)
    } else if (frame.status === 0 && frame.data.length > 0)
      return { bytes: frame.data.length, detail: 'a tag report in an unknown form', sample: frame.data }
    return null
  }

  /** The module reports a missing antenna in each round, and between that the tags of its other antennas. */
  #noteAntenna(isMissing: boolean): void {
    const now = this.#clock.elapsed()
    if (isMissing) {
      if (this.#lostAntennaMs === null) this.queue.put({ type: 'finding', finding: LOST })
      this.#lostAntennaMs = now
    } else if (this.#lostAntennaMs !== null && now - this.#lostAntennaMs >= ANTENNA_BACK_MS) {
      this.#lostAntennaMs = null
      this.queue.put({ type: 'finding_over', code: LOST.code })
    }
  }

  /** Reports an unknown status of the running read, at most once a minute: the module may repeat it in each round. */
  #onStatusFault(status: number): void {
    const now = this.#clock.elapsed()
    if (now - this.#faultMs < FAULT_EVERY_MS) return
    this.#faultMs = now
    this.queue.put({ type: 'fault', detail: `reading: ${statusText(status)}` })
  }

  /**
   * Writes the level of a pin. Suspends reading, because a module that reads accepts no other command. The caller must
   * resume reading.
   */
  async #writePin({ reading, request }: Reader, pin: number, on: boolean): Promise<SwitchAnswer> {
    const answer = (await reading.suspend()) ? await request(setOutput(pin, on)) : NOT_CONNECTED
    if (answer.kind !== 'answered') return answer.kind === 'lost' ? answer : NOT_CONNECTED
    if (answer.frame.status === 0) return { kind: 'done' }
    return { kind: 'refused', detail: statusText(answer.frame.status ?? 0), outputMayHaveMoved: false }
  }

  /** Switches a signal on for `ms`, or off with 0. A timer of the agent ends the signal. */
  async #write(signal: Signal, ms: number): Promise<SwitchAnswer> {
    this.#offTimers.get(signal)?.()
    this.#offTimers.delete(signal)
    if (ms > 0)
      this.#offTimers.set(
        signal,
        this.platform.timers.after(ms, () => void this.#write(signal, 0)),
      )
    const pin = this.#settings[signal]?.output
    const reader = this.#current
    if (!reader || pin === undefined) return NOT_CONNECTED
    const answer = await this.#writePin(reader, pin, ms > 0)
    // If the pin's state is unknown or the pin stays on, ends the session. The next session writes all pins again.
    if (answer.kind === 'lost' || (answer.kind === 'refused' && ms === 0)) reader.end(`pin ${pin}: ${answer.detail}`)
    await reader.reading.resume()
    return answer
  }

  /**
   * Switches a pin off before the agent stops. Repeats a failed write at once, because no later session can repeat the
   * write.
   */
  async #switchOffForGood(reader: Reader, pin: number | undefined): Promise<void> {
    if (pin === undefined) return
    for (let tries = 0; tries < MAX_OFF_TRIES; tries++)
      if ((await this.#writePin(reader, pin, false)).kind === 'done') return
  }
}

/**
 * UHF reader modules of ThingMagic (M6e, Nano, Micro, M7e), by the commands that SparkFun's Simultaneous RFID Tag
 * Reader library documents.
 */
export const thingMagicDriver: Driver<ThingMagicSettings, typeof ThingMagicSettings> = {
  name: 'thingmagic',
  settings: ThingMagicSettings,
  linkUse: () => null,
  exclusiveResources: ({ deviceId, ...settings }) =>
    SIGNALS.flatMap((signal) => {
      const lamp = settings[signal]
      return lamp ? [{ setting: `${signal}.output`, key: `pin ${lamp.output} of ${deviceId}` }] : []
    }),
  capabilities: thingMagicCapabilities,
  open: (settings, links, platform) => linkDevice(new ThingMagicReader(settings, links, platform)),
}
