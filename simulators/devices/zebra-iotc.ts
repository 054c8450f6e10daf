import { zebraTopics, type ZebraTopics } from '../../device-drivers/zebra-iotc/protocol/messages.ts'
import type { Platform } from '../../policy/platform.ts'
import type { MessageBus } from './mqtt-broker.ts'
import { tagFlags, type TagFlags } from './llrp/reader-state.ts'

export interface ZebraReaderOptions {
  readonly platform: Platform
  readonly bus: MessageBus
  /** Base of the reader's topics; default `zebra/FX9600F0F4B5`. */
  readonly base?: string
  /** Operating mode at the start; default `EVERY_READ`. A factory reader has `VENDOR_MODE`. */
  readonly mode?: ZebraReaderMode
  /** True if the reader accepts `start`, but its radio stays inactive, as with a trigger. */
  readonly neverStarts?: boolean
  /** Time before each answer, ms; default 0. */
  readonly answerDelayMs?: number
  onChange?(change: { gpo: number; on: boolean }): void
}

/** Operating mode, as in Zebra's schema `operatingMode.v1`. The defaults of the type apply to missing fields. */
export interface ZebraReaderMode {
  readonly type: 'SIMPLE' | 'INVENTORY' | 'PORTAL' | 'CONVEYOR' | 'CUSTOM'
  readonly antennas?: readonly number[]
  readonly query?: { readonly session?: string; readonly target?: string }
  readonly tagMetaData?: readonly string[]
  readonly reportFilter?: { readonly type: string; readonly duration: number }
  readonly transmitPower?: number | readonly number[]
  readonly filter?: object
  readonly rssiFilter?: object
  readonly radioStartConditions?: object
  readonly radioStopConditions?: object
  readonly modeSpecificSettings?: object
  readonly delayBetweenAntennaCycles?: { readonly type: string; readonly duration: number }
}

/** Mode of a factory reader: reports each tag once, without its antenna, in session S1. */
export const VENDOR_MODE: ZebraReaderMode = { type: 'SIMPLE' }
/** A mode that reports every read of every antenna. */
export const EVERY_READ: ZebraReaderMode = {
  type: 'SIMPLE',
  query: { session: 'S0', target: 'A' },
  tagMetaData: ['ANTENNA', 'RSSI'],
  reportFilter: { type: 'PER_ANTENNA', duration: 0 },
}

const FOR_EVER_S = 4_294_967_295
const DEFAULT_META_DATA: Readonly<Record<ZebraReaderMode['type'], readonly string[]>> = {
  SIMPLE: [],
  INVENTORY: ['ANTENNA', 'RSSI', 'SEEN_COUNT'],
  PORTAL: ['ANTENNA'],
  CONVEYOR: ['ANTENNA'],
  CUSTOM: [],
}
const DEFAULT_FILTER: Readonly<Record<ZebraReaderMode['type'], { type: string; duration: number }>> = {
  SIMPLE: { type: 'RADIO_WIDE', duration: FOR_EVER_S },
  INVENTORY: { type: 'PER_ANTENNA', duration: 1 },
  PORTAL: { type: 'PER_ANTENNA', duration: FOR_EVER_S },
  CONVEYOR: { type: 'PER_ANTENNA', duration: FOR_EVER_S },
  CUSTOM: { type: 'RADIO_WIDE', duration: FOR_EVER_S },
}

const GPOS = [1, 2, 3, 4]
const MAX_BUFFERED = 10_000
const REFUSED = { message: 'not carried out' }
/** Offset of the reader's local time. Zebra writes offsets without a colon. */
const ZONE_MS = -6 * 3_600_000
const ZONE = '-0600'

/** A simulated Zebra FX9600 with its IoT Connector. */
export class ZebraReader {
  readonly #options: ZebraReaderOptions
  readonly #bus: MessageBus
  readonly #topics: Readonly<Record<keyof ZebraTopics, string>>
  readonly outputs = new Map(GPOS.map((gpo) => [gpo, false]))
  readonly writes: { gpo: number; on: boolean }[] = []
  #buffered: string[] = []
  #isReading = false
  #isDisconnected = false
  #isMute = false
  #losesAnswers = false
  #offsetMs = 0
  #eventNum = 0
  #mode: ZebraReaderMode
  readonly #flags: TagFlags
  readonly #unplugged = new Set<number>()
  /** Time of the last report, ms, by tag or by tag and antenna. */
  readonly #reportedAt = new Map<string, number>()

  constructor(options: ZebraReaderOptions) {
    this.#options = options
    this.#bus = options.bus
    this.#mode = options.mode ?? EVERY_READ
    this.#flags = tagFlags(options.platform.clock)
    this.#topics = zebraTopics(options.base ?? 'zebra/FX9600F0F4B5')
    options.bus.subscribe(this.#topics.managementCommand, (text) =>
      this.#onCommand(text, this.#topics.managementResponse),
    )
    options.bus.subscribe(this.#topics.controlCommand, (text) => this.#onCommand(text, this.#topics.controlResponse))
  }

  /** Puts a tag before an antenna. The reader reports it as its operating mode says. */
  see(epc: string, sighting?: { antenna?: number; rssiDbm?: number }): void {
    if (this.#isReading && this.#isReported(epc, sighting?.antenna ?? 1)) this.#publish(this.#event(epc, sighting))
  }

  /** Reports several tags in one message, as a list of events. */
  seeMany(epcs: readonly string[]): void {
    if (this.#isReading) this.#publish(epcs.map((epc) => this.#event(epc)))
  }

  /** With true, cuts the network. With false, restores the network and sends the buffered messages. */
  disconnect(on: boolean): void {
    this.#isDisconnected = on
    if (!on) for (const text of this.#buffered.splice(0)) this.#bus.publish(this.#topics.data, text)
  }

  mute(on: boolean): void {
    this.#isMute = on
  }

  loseAnswers(on: boolean): void {
    this.#losesAnswers = on
  }

  /** Switches outputs and radio off, and discards the buffered messages. */
  readonly reboot = (): void => {
    this.#isReading = false
    this.#buffered = []
    for (const gpo of this.outputs.keys()) this.outputs.set(gpo, false)
  }

  readonly stopReading = (): void => {
    this.#isReading = false
  }

  /** Changes the operating mode while the reader reads, as its web page does. */
  changeMode(mode: ZebraReaderMode): void {
    this.#mode = mode
  }

  /** Plugs the cable of an antenna in, or pulls it. */
  setAntenna(antenna: number, connected: boolean): void {
    if (connected) this.#unplugged.delete(antenna)
    else this.#unplugged.add(antenna)
  }

  /** Sets the error of the reader's clock, ms. */
  setClock(offset: number): void {
    this.#offsetMs = offset
  }

  get mode(): ZebraReaderMode {
    return this.#mode
  }

  get isReading(): boolean {
    return this.#isReading
  }

  #stamp(): string {
    return new Date(this.#options.platform.clock.wall() + this.#offsetMs + ZONE_MS).toISOString().replace('Z', ZONE)
  }

  #publish(message: unknown): void {
    const text = JSON.stringify(message)
    if (!this.#isDisconnected && !this.#isMute) return this.#bus.publish(this.#topics.data, text)
    this.#buffered.push(text)
    if (this.#buffered.length > MAX_BUFFERED) this.#buffered = this.#buffered.slice(-MAX_BUFFERED)
  }

  #isReported(epc: string, antenna: number): boolean {
    const { type, antennas, query, reportFilter = DEFAULT_FILTER[type] } = this.#mode
    if (antennas?.includes(antenna) === false || this.#unplugged.has(antenna)) return false
    const { session = 'S1', target = 'A' } = query ?? {}
    if (!this.#flags.answers(epc, { session: Number(session[1]), target: target === 'A' ? 'A' : 'both' })) return false
    const key = reportFilter.type === 'PER_ANTENNA' ? `${epc} ${antenna}` : epc
    const now = this.#options.platform.clock.elapsed()
    const last = this.#reportedAt.get(key)
    if (last !== undefined && now - last < reportFilter.duration * 1_000) return false
    this.#reportedAt.set(key, now)
    return true
  }

  #event(epc: string, { antenna = 1, rssiDbm = -55 }: { antenna?: number; rssiDbm?: number } = {}): object {
    const { type, tagMetaData = DEFAULT_META_DATA[type] } = this.#mode
    const data = {
      ...(tagMetaData.includes('ANTENNA') ? { antenna } : {}),
      eventNum: ++this.#eventNum,
      format: 'epc',
      idHex: epc.toLowerCase(),
      ...(tagMetaData.includes('RSSI') ? { peakRssi: rssiDbm } : {}),
      reads: 1,
    }
    return { data, timestamp: this.#stamp(), type }
  }

  #write({ port, state }: { port?: unknown; state?: unknown }): boolean {
    if (typeof port !== 'number' || typeof state !== 'boolean' || !this.outputs.has(port)) return false
    this.writes.push({ gpo: port, on: state })
    if (this.outputs.get(port) !== state) {
      this.outputs.set(port, state)
      this.#options.onChange?.({ gpo: port, on: state })
    }
    return true
  }

  /** Executes a command. Returns the payload of the answer; null if the command fails. */
  #execute(command: string, payload: Record<string, unknown>): object | null {
    if (command === 'get_version')
      return { readerApplication: '3.21.23.0', model: 'FX9600', serialNumber: '84248df0f4b5' }
    if (command === 'get_status')
      return {
        systemTime: new Date(this.#options.platform.clock.wall() + this.#offsetMs)
          .toISOString()
          .replace(/\.\d+Z/, '+00:00'),
        antennas: Object.fromEntries(
          [1, 2, 3, 4].map((antenna) => [antenna, this.#unplugged.has(antenna) ? 'disconnected' : 'connected']),
        ),
        radioActivitiy: this.#isReading ? 'active' : 'inactive',
      }
    if (command === 'set_gpo') return this.#write(payload) ? {} : null
    if (command === 'get_mode') return this.#mode
    if (command === 'set_mode') {
      if (this.#isReading || typeof payload['type'] !== 'string') return null
      this.#mode = payload as unknown as ZebraReaderMode
      this.#reportedAt.clear()
      return {}
    }
    if (command === 'start') {
      if (this.#isReading) return null
      this.#isReading = this.#options.neverStarts !== true
      return {}
    }
    if (command !== 'stop') return null
    this.#isReading = false
    return {}
  }

  #onCommand(text: string, answerTo: string): void {
    if (this.#isMute || this.#isDisconnected) return
    const {
      command = '',
      command_id: id = '',
      payload = {},
    } = JSON.parse(text) as { command?: string; command_id?: string; payload?: Record<string, unknown> }
    const done = this.#execute(command, payload)
    if (this.#losesAnswers) return
    const answer = { command, command_id: id, response: done ? 'success' : 'failure', payload: done ?? REFUSED }
    const send = () => this.#bus.publish(answerTo, JSON.stringify(answer))
    const { answerDelayMs = 0, platform } = this.#options
    if (answerDelayMs > 0) platform.timers.after(answerDelayMs, send)
    else send()
  }
}
