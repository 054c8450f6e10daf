import {
  IMPINJ_FACTORY_LOGIN,
  IMPINJ_PATHS,
  presetPath,
  presetSettingsPath,
  TRANSITIONS,
} from '../../device-drivers/impinj-iot/protocol/requests.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { pause, type Platform, type Cancel, type Timers } from '../../policy/platform.ts'
import { serveHttp, type OpenBody, type SimulatedAnswer, type SimulatedRequest } from './serve.ts'
import { tagFlags, type Query, type TagFlags } from './llrp/reader-state.ts'

const MAX_BUFFERED = 10_000
const KEEPALIVE = '\r\n'

/** The event stream of a simulated Impinj reader: buffers events while no client listens, and sends keepalives. */
class ImpinjEvents {
  readonly #timers: Timers
  readonly #listeners = new Set<OpenBody>()
  #buffered: string[] = []
  #settings: Record<string, unknown> = {
    eventBufferSize: 1_000,
    eventPerSecondLimit: 0,
    eventAgeLimitMinutes: 60,
    keepAliveIntervalSeconds: 30,
  }
  #cancelKeepalive: Cancel = () => {}
  /** True while the reader must not send anything. */
  isMute = false

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** Number of listening clients. */
  get listeners(): number {
    return this.#listeners.size
  }

  get settings(): object {
    return this.#settings
  }

  /** Changes these settings. */
  configure(changes: object): void {
    this.#settings = { ...this.#settings, ...changes }
    this.#scheduleKeepalive()
  }

  /** Adds a client and sends it the buffered events. */
  listen(body: OpenBody): void {
    this.#listeners.add(body)
    for (const line of this.#buffered.splice(0)) void body.write(line)
    this.#scheduleKeepalive()
  }

  leave(body: OpenBody | null): void {
    if (body) this.#listeners.delete(body)
    this.#scheduleKeepalive()
  }

  /** Writes raw text to all clients. */
  writeRaw(text: string): void {
    if (this.isMute) return
    for (const listener of this.#listeners) void listener.write(text)
  }

  /** Sends an event, or buffers the event if no client listens or the reader is mute. */
  send(event: object): void {
    const line = `${JSON.stringify(event)}\r\n`
    if (this.#listeners.size > 0 && !this.isMute) {
      this.writeRaw(line)
      return this.#scheduleKeepalive()
    }
    this.#buffered.push(line)
    if (this.#buffered.length > MAX_BUFFERED) this.#buffered = this.#buffered.slice(-MAX_BUFFERED)
  }

  /** Discards the buffered events. */
  discard(): void {
    this.#buffered = []
  }

  /** Removes all clients. */
  disconnect(): void {
    this.#listeners.clear()
    this.#cancelKeepalive()
  }

  #scheduleKeepalive(): void {
    this.#cancelKeepalive()
    if (this.#listeners.size === 0) return
    const seconds = Number(this.#settings['keepAliveIntervalSeconds'])
    this.#cancelKeepalive = this.#timers.after(seconds * 1_000, () => {
      this.writeRaw(KEEPALIVE)
      this.#scheduleKeepalive()
    })
  }
}

export interface ImpinjReaderOptions {
  readonly platform: Platform
  readonly user?: string
  readonly password?: string
  /** Number of answers after which the connection closes, as web servers do; default never. */
  readonly answersPerConnection?: number
  /** Further time before the answer to the start of an inventory, ms. */
  readonly startMs?: number
  /** False for firmware without settings of the stream (OpenAPI document 1.6.0): a keepalive every 30 s. */
  readonly hasStreamSettings?: boolean
  /** True for a server that answers 411 to a POST or PUT without Content-Length. */
  readonly needsContentLength?: boolean
  /** False for firmware without inputs on this interface. */
  readonly hasInputs?: boolean
  /** Antennas of the preset `default`; default: session 1, both targets. */
  readonly preset?: AntennaConfig
  /** True if the reader accepts an inventory, but never starts it. */
  readonly neverStarts?: boolean
  /** Time before each answer, ms; default 0. */
  readonly answerDelayMs?: number
  onChange?(change: { gpo: number; on: boolean }): void
}

const MAX_REQUESTS = 10_000
const MAX_LINKS = 8
const GPOS = [1, 2, 3]
const GPIS = [1, 2]

interface AntennaConfig {
  readonly inventorySession?: number
  readonly inventorySearchMode?: string
}

/** A preset that reports each tag once while it stays, as inventories of a stock do. */
export const STOCK_PRESET: AntennaConfig = { inventorySession: 2, inventorySearchMode: 'single-target' }

interface GpiSettings {
  readonly gpiConfigurations: readonly {
    readonly gpi: number
    readonly enabled: boolean
    readonly debounceMilliseconds: number
    readonly state: string
  }[]
  readonly gpiTransitionEvents: string
}
interface Trigger {
  readonly gpiTransitionEvent: { readonly gpi: number; readonly transition: string }
}

const refuse = (message: string): SimulatedAnswer => ({ status: 400, body: JSON.stringify({ message }) })
const json = (value: object): SimulatedAnswer => ({ status: 200, body: JSON.stringify(value) })

/** A simulated Impinj R700 with its IoT device interface. */
export class ImpinjReader {
  readonly #options: ImpinjReaderOptions
  readonly #user: string
  #password: string
  readonly #links = new Set<ByteLink>()
  readonly #events: ImpinjEvents
  readonly outputs = new Map(GPOS.map((gpo) => [gpo, false]))
  readonly writes: { gpo: number; on: boolean }[] = []
  readonly requests: { method: string; path: string; body: string }[] = []
  readonly #flags: TagFlags
  readonly #unplugged = new Set<number>()
  readonly #preset: AntennaConfig
  #query: Query = { session: 1, target: 'both' }
  #isReading = false
  #running = ''
  #losesAnswers = false
  #offsetMs = 0
  #gpis: GpiSettings = {
    gpiConfigurations: GPIS.map((gpi) => ({ gpi, enabled: false, debounceMilliseconds: 20, state: 'low' })),
    gpiTransitionEvents: 'disabled',
  }
  #triggers: { start: readonly Trigger[]; stop: readonly Trigger[] } = { start: [], stop: [] }
  readonly #routes: Readonly<Record<string, (body: string) => SimulatedAnswer>> = {
    [`GET ${IMPINJ_PATHS.system}`]: () =>
      json({ manufacturer: 'Impinj', productModel: 'R700', serialNumber: '37021010001' }),
    [`GET ${IMPINJ_PATHS.image}`]: () => json({ primaryFirmware: '8.2.0.240' }),
    [`GET ${IMPINJ_PATHS.status}`]: () =>
      json({
        status: this.#isReading ? 'running' : 'idle',
        time: this.#now(),
        serialNumber: '37021010001',
        ...(this.#isReading && { activePreset: { id: this.#running, profile: 'inventory' } }),
      }),
    [`GET ${IMPINJ_PATHS.streamSettings}`]: () =>
      this.#options.hasStreamSettings === false ? { status: 404, body: '{}' } : json(this.#events.settings),
    [`PUT ${IMPINJ_PATHS.streamSettings}`]: (body) => {
      if (this.#options.hasStreamSettings === false) return { status: 404, body: '{}' }
      this.#events.configure(JSON.parse(body) as object)
      return { status: 204 }
    },
    [`GET ${IMPINJ_PATHS.gpos}`]: () =>
      json({ gpoConfigurations: [...this.outputs].map(([gpo, on]) => ({ gpo, state: on ? 'high' : 'low' })) }),
    [`PUT ${IMPINJ_PATHS.gpos}`]: (body) => this.#writeOutputs(body),
    [`GET ${IMPINJ_PATHS.gpis}`]: () =>
      this.#options.hasInputs === false ? { status: 404, body: '{}' } : json(this.#gpis),
    [`PUT ${IMPINJ_PATHS.gpis}`]: (body) => {
      this.#gpis = { ...this.#gpis, ...(JSON.parse(body) as GpiSettings) }
      return { status: 204 }
    },
    [`POST ${IMPINJ_PATHS.start}`]: (body) => this.#start(body),
    [`GET ${presetSettingsPath('default')}`]: () => json({ antennaConfigs: [this.#preset] }),
    [`POST ${presetPath('default')}`]: () => this.#start(JSON.stringify({ antennaConfigs: [this.#preset] }), 'default'),
    [`POST ${IMPINJ_PATHS.stop}`]: () => this.#stop(),
  }

  constructor(options: ImpinjReaderOptions) {
    this.#options = options
    this.#events = new ImpinjEvents(options.platform.timers)
    this.#flags = tagFlags(options.platform.clock)
    this.#preset = options.preset ?? { inventorySession: 1, inventorySearchMode: 'dual-target' }
    if (options.hasStreamSettings === false) this.#events.configure({ keepAliveIntervalSeconds: 30 })
    this.#user = options.user ?? IMPINJ_FACTORY_LOGIN.user
    this.#password = options.password ?? 'not-the-factory-one'
  }

  /** If the inventory runs, reads a tag. The reader sends the event at once, or buffers it until a client listens. */
  see(
    epc: string,
    { antenna = 1, rssiDbm = -55, asBase64 = false }: { antenna?: number; rssiDbm?: number; asBase64?: boolean } = {},
  ): void {
    if (!this.#isReading || this.#unplugged.has(antenna) || !this.#flags.answers(epc, this.#query)) return
    const named = asBase64 ? { epc: Buffer.from(epc, 'hex').toString('base64url') } : { epcHex: epc }
    const at = this.#now()
    this.#events.send({
      timestamp: at,
      eventType: 'tagInventory',
      tagInventoryEvent: {
        ...named,
        antennaPort: antenna,
        peakRssiCdbm: Math.round(rssiDbm * 100),
        lastSeenTime: at,
      },
    })
  }

  /**
   * Changes an input. If a client enabled events of this input, sends an event. The change may also start or stop the
   * inventory.
   */
  readonly setInput = (gpi: number, on: boolean): void => {
    if (this.#isHigh(gpi) === on) return
    this.#gpis = {
      ...this.#gpis,
      gpiConfigurations: this.#gpis.gpiConfigurations.map((each) =>
        each.gpi === gpi ? { ...each, state: on ? 'high' : 'low' } : each,
      ),
    }
    const transition = on ? TRANSITIONS.rise : TRANSITIONS.fall
    const isReported =
      this.#gpis.gpiTransitionEvents === 'enabled' &&
      this.#gpis.gpiConfigurations.some((each) => each.gpi === gpi && each.enabled)
    if (isReported)
      this.#events.send({ timestamp: this.#now(), eventType: 'gpiTransition', gpiTransitionEvent: { gpi, transition } })
    const fires = (those: readonly Trigger[]) =>
      those.some((each) => each.gpiTransitionEvent.gpi === gpi && each.gpiTransitionEvent.transition === transition)
    if (fires(this.#triggers.start)) this.#setReading(true)
    if (fires(this.#triggers.stop)) this.#setReading(false)
  }

  /** Writes raw text to all clients. */
  writeRaw(text: string): void {
    this.#events.writeRaw(text)
  }

  /** While `on`, the reader ignores requests and sends nothing, as if it hung. */
  mute(on: boolean): void {
    this.#events.isMute = on
  }

  /** While `on`, the reader executes requests, but does not answer. */
  loseAnswers(on: boolean): void {
    this.#losesAnswers = on
  }

  /** Restarts the reader: inventory, triggers and buffered events are lost, outputs switch off, and links break. */
  readonly reboot = (): void => {
    this.#isReading = false
    this.#triggers = { start: [], stop: [] }
    this.#events.discard()
    for (const gpo of this.outputs.keys()) this.outputs.set(gpo, false)
    for (const link of this.#links) void link.close()
    this.#events.disconnect()
  }

  /** Stops the inventory, as another client could. */
  readonly stopReading = (): void => {
    return this.#setReading(false)
  }

  /** Stops the inventory and starts a stored one, as the web page of the reader does. */
  startOther(preset: string): void {
    this.#setReading(false)
    this.#running = preset
    this.#setReading(true)
  }

  /** Plugs the cable of an antenna in, or pulls it. The reader reports only the second. */
  setAntenna(antenna: number, connected: boolean): void {
    if (connected) return void this.#unplugged.delete(antenna)
    this.#unplugged.add(antenna)
    this.#events.send({
      timestamp: this.#now(),
      eventType: 'antennaDisconnected',
      antennaDisconnectedEvent: { antennaPort: antenna, antennaName: `Antenna ${antenna}` },
    })
  }

  /** Sets the error of the reader's clock, ms. */
  setClock(offset: number): void {
    this.#offsetMs = offset
  }

  setPassword(changed: string): void {
    this.#password = changed
  }

  get isReading(): boolean {
    return this.#isReading
  }

  get listeners(): number {
    return this.#events.listeners
  }

  readonly serve = async (link: ByteLink): Promise<void> => {
    if (this.#links.size >= MAX_LINKS) return link.close()
    this.#links.add(link)
    let stream: OpenBody | null = null
    let answers = 0
    await serveHttp(link, async (request) => {
      await this.#takeTime(request)
      const answer = this.#answer(request)
      if (answer === 'silence') return answer
      if ('stream' in answer) {
        return {
          stream: (body) => {
            stream = body
            answer.stream(body)
          },
        }
      }
      answers++
      return answers === this.#options.answersPerConnection ? { ...answer, close: true } : answer
    })
    this.#links.delete(link)
    this.#events.leave(stream)
  }

  async #takeTime({ path }: SimulatedRequest): Promise<void> {
    const { platform, answerDelayMs = 0, startMs = 0 } = this.#options
    const ms = answerDelayMs + (path === IMPINJ_PATHS.start ? startMs : 0)
    if (ms > 0) await pause(platform.timers, ms)
  }

  #now(): string {
    return new Date(this.#options.platform.clock.wall() + this.#offsetMs).toISOString().replace('Z', '000000Z')
  }

  #setReading(on: boolean): void {
    if (this.#isReading === on) return
    this.#isReading = on
    this.#events.send({
      timestamp: this.#now(),
      eventType: 'inventoryStatus',
      inventoryStatusEvent: { inventoryStatus: on ? 'running' : 'idle' },
    })
  }

  #writeOutputs(body: string): SimulatedAnswer {
    const { gpoConfigurations } = JSON.parse(body) as { gpoConfigurations: { gpo: number; state: string }[] }
    if (gpoConfigurations.some(({ gpo, state }) => !this.outputs.has(gpo) || !['high', 'low'].includes(state)))
      return refuse('gpo: no such output')
    for (const { gpo, state } of gpoConfigurations) {
      const on = state === 'high'
      this.writes.push({ gpo, on })
      if (this.outputs.get(gpo) === on) continue
      this.outputs.set(gpo, on)
      this.#options.onChange?.({ gpo, on })
    }
    return { status: 204 }
  }

  #start(body: string, preset = ''): SimulatedAnswer {
    if (this.#isReading) return { status: 409, body: JSON.stringify({ message: 'a profile is running' }) }
    const {
      antennaConfigs: configs,
      startTriggers = [],
      stopTriggers = [],
    } = JSON.parse(body || '{}') as {
      antennaConfigs?: AntennaConfig[]
      startTriggers?: Trigger[]
      stopTriggers?: Trigger[]
    }
    if (!Array.isArray(configs) || configs.length === 0) return refuse('antennaConfigs is required')
    const { inventorySession: session = 1, inventorySearchMode: mode = 'dual-target' } = configs[0] ?? {}
    this.#query = { session, target: mode.startsWith('dual-target') ? 'both' : 'A' }
    this.#triggers = { start: startTriggers, stop: stopTriggers }
    this.#running = preset
    if (this.#options.neverStarts) return { status: 204 }
    this.#setReading(startTriggers.length === 0 || startTriggers.some((each) => this.#isMet(each)))
    return { status: 204 }
  }

  #isMet({ gpiTransitionEvent: { gpi, transition } }: Trigger): boolean {
    return this.#isHigh(gpi) === (transition === TRANSITIONS.rise)
  }

  #isHigh(gpi: number): boolean {
    return this.#gpis.gpiConfigurations.some((each) => each.gpi === gpi && each.state === 'high')
  }

  #stop(): SimulatedAnswer {
    this.#triggers = { start: [], stop: [] }
    this.#setReading(false)
    return { status: 204 }
  }

  #answer(request: SimulatedRequest): SimulatedAnswer {
    if (this.#events.isMute) return 'silence'
    const { method, path, body } = request
    if (this.requests.length < MAX_REQUESTS) this.requests.push({ method, path, body })
    const expected = `Basic ${Buffer.from(`${this.#user}:${this.#password}`).toString('base64')}`
    if (request.headers.get('authorization') !== expected)
      return { status: 401, body: JSON.stringify({ message: 'unauthorized' }) }
    if (this.#options.needsContentLength && method !== 'GET' && !request.headers.has('content-length'))
      return { status: 411, body: JSON.stringify({ message: 'length required' }) }
    if (method === 'GET' && path === IMPINJ_PATHS.stream) return { stream: (body) => this.#events.listen(body) }
    const route = this.#routes[`${method} ${path}`]
    if (!route) return { status: 404, body: JSON.stringify({ message: 'not found' }) }
    try {
      const answer = route(body)
      return this.#losesAnswers ? 'silence' : answer
    } catch {
      return refuse('the body is no JSON')
    }
  }
}
