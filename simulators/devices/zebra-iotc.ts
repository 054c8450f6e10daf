import { zebraTopics } from '../../device-drivers/protocols/zebra-iotc/messages.ts'
import type { ZebraTopics } from '../../device-drivers/protocols/zebra-iotc/messages.ts'
import type { Platform } from '../../policy/platform.ts'
import type { MessageBus } from './mqtt-broker.ts'

export interface ZebraReaderOptions {
  readonly platform: Platform
  readonly bus: MessageBus
  /** Base of the reader's topics; default `zebra/FX9600F0F4B5`. */
  readonly base?: string
  onChange?(change: { gpo: number; on: boolean }): void
}

const GPOS = [1, 2, 3, 4]
const MAX_BUFFERED = 10_000
/** Offset of the reader's local time. Zebra writes offsets without a colon. */
const ZONE_MS = -6 * 3_600_000
const ZONE = '-0600'

/** Makes a reader with four outputs that is connected to a message bus. */
export function zebraReader(options: ZebraReaderOptions): ZebraReader {
  return new ZebraReader(options)
}

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

  constructor(options: ZebraReaderOptions) {
    this.#options = options
    this.#bus = options.bus
    this.#topics = zebraTopics(options.base ?? 'zebra/FX9600F0F4B5')
    options.bus.subscribe(this.#topics.managementCommand, (text) =>
      this.#onCommand(text, this.#topics.managementResponse),
    )
    options.bus.subscribe(this.#topics.controlCommand, (text) => this.#onCommand(text, this.#topics.controlResponse))
  }

  see(epc: string, sighting?: { antenna?: number; rssiDbm?: number }): void {
    if (this.#isReading) this.#publish(this.#event(epc, sighting))
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

  /** Sets the error of the reader's clock, ms. */
  setClock(offset: number): void {
    this.#offsetMs = offset
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

  #event(epc: string, { antenna = 1, rssiDbm = -55 }: { antenna?: number; rssiDbm?: number } = {}): object {
    const data = {
      antenna,
      eventNum: ++this.#eventNum,
      format: 'epc',
      idHex: epc.toLowerCase(),
      peakRssi: rssiDbm,
      reads: 1,
    }
    return { data, timestamp: this.#stamp(), type: 'SIMPLE' }
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
        radioActivitiy: this.#isReading ? 'active' : 'inactive',
      }
    if (command === 'set_gpo') return this.#write(payload) ? {} : null
    if (command === 'start') {
      if (this.#isReading) return null
      this.#isReading = true
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
    this.#bus.publish(
      answerTo,
      JSON.stringify({
        command,
        command_id: id,
        response: done ? 'success' : 'failure',
        payload: done ?? { message: 'not carried out' },
      }),
    )
  }
}
