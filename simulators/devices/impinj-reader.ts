import {
  IMPINJ_API,
  IMPINJ_FACTORY_LOGIN,
  IMPINJ_PATHS,
  TRANSITIONS,
} from '../../device-drivers/protocols/impinj-iot/requests.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import { serveHttp } from './serve-http.ts'
import type { OpenBody, SimulatedAnswer, SimulatedRequest } from './serve-http.ts'

export interface ImpinjReaderOptions {
  readonly platform: Platform
  readonly user?: string
  readonly password?: string
  /** The connection is closed behind so many answers, as web servers do; default never. */
  readonly answersPerConnection?: number
  /** False: firmware without inputs on this interface. */
  readonly hasInputs?: boolean
  onChange?(change: { gpo: number; on: boolean }): void
}

/** A simulated Impinj R700 with its IoT device interface. */
export interface ImpinjReader {
  /** Sees a tag; it is told at once, or kept until somebody listens. */
  see(epc: string, sighting?: { antenna?: number; rssiDbm?: number; asBase64?: boolean }): void
  /** An input changes; told once somebody asked for it, and it may begin or end the inventory. */
  setInput(gpi: number, on: boolean): void
  /** Writes to every listener as it is. */
  say(text: string): void
  /** Hears and says nothing, as one that hangs. */
  mute(on: boolean): void
  /** Carries out what it is told and does not answer. */
  loseAnswers(on: boolean): void
  /** Everything forgotten that is not kept on the reader; its links break. */
  reboot(): void
  /** Somebody else ends the inventory. */
  stopReading(): void
  /** By how much its clock is wrong, ms. */
  setClock(offsetMs: number): void
  setPassword(password: string): void
  readonly outputs: ReadonlyMap<number, boolean>
  readonly writes: readonly { gpo: number; on: boolean }[]
  readonly requests: readonly { method: string; path: string; body: string }[]
  readonly isReading: boolean
  readonly listeners: number
  serve(link: ByteLink): Promise<void>
}

const MOST_KEPT = 10_000
const MOST_REQUESTS = 10_000
const MOST_LINKS = 8
const GPOS = [1, 2, 3]
const GPIS = [1, 2]
const KEEPALIVE = '\r\n'

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

/** Makes a reader with three outputs. It reaches nobody until a link is served to it. */
export function impinjReader(options: ImpinjReaderOptions): ImpinjReader {
  const { clock, timers } = options.platform
  const user = options.user ?? IMPINJ_FACTORY_LOGIN.user
  let password = options.password ?? 'not-the-factory-one'
  const links = new Set<ByteLink>()
  const listeners = new Set<OpenBody>()
  const outputs = new Map(GPOS.map((gpo) => [gpo, false]))
  const writes: { gpo: number; on: boolean }[] = []
  const requests: { method: string; path: string; body: string }[] = []
  let kept: string[] = []
  let isReading = false
  let isMute = false
  let losesAnswers = false
  let offsetMs = 0
  let stream: Record<string, unknown> = {
    eventBufferSize: 1_000,
    eventPerSecondLimit: 0,
    eventAgeLimitMinutes: 60,
    keepAliveIntervalSeconds: 30,
  }
  let gpis: GpiSettings = {
    gpiConfigurations: GPIS.map((gpi) => ({ gpi, enabled: false, debounceMilliseconds: 20, state: 'low' })),
    gpiTransitionEvents: 'disabled',
  }
  let triggers: { start: readonly Trigger[]; stop: readonly Trigger[] } = { start: [], stop: [] }
  let cancelKeepalive: Cancel = () => {}

  const now = (): string => new Date(clock.wall() + offsetMs).toISOString().replace('Z', '000000Z')

  function scheduleKeepalive(): void {
    cancelKeepalive()
    if (listeners.size === 0) return
    cancelKeepalive = timers.after(Number(stream['keepAliveIntervalSeconds']) * 1_000, () => {
      say(KEEPALIVE)
      scheduleKeepalive()
    })
  }

  function say(text: string): void {
    if (isMute) return
    for (const listener of listeners) void listener.write(text)
  }

  function tell(event: object): void {
    const line = `${JSON.stringify(event)}\r\n`
    if (listeners.size > 0 && !isMute) {
      say(line)
      return scheduleKeepalive()
    }
    kept.push(line)
    if (kept.length > MOST_KEPT) kept = kept.slice(-MOST_KEPT)
  }

  function setReading(on: boolean): void {
    if (isReading === on) return
    isReading = on
    tell({
      timestamp: now(),
      eventType: 'inventoryStatus',
      inventoryStatusEvent: { inventoryStatus: on ? 'running' : 'idle' },
    })
  }

  function listen(body: OpenBody): void {
    listeners.add(body)
    for (const line of kept.splice(0)) void body.write(line)
    scheduleKeepalive()
  }

  function writeOutputs(body: string): SimulatedAnswer {
    const { gpoConfigurations } = JSON.parse(body) as { gpoConfigurations: { gpo: number; state: string }[] }
    if (gpoConfigurations.some(({ gpo, state }) => !outputs.has(gpo) || !['high', 'low'].includes(state)))
      return refuse('gpo: no such output')
    for (const { gpo, state } of gpoConfigurations) {
      const on = state === 'high'
      writes.push({ gpo, on })
      if (outputs.get(gpo) === on) continue
      outputs.set(gpo, on)
      options.onChange?.({ gpo, on })
    }
    return { status: 204 }
  }

  function start(body: string): SimulatedAnswer {
    if (isReading) return { status: 409, body: JSON.stringify({ message: 'a profile is running' }) }
    const {
      antennaConfigs: configs,
      startTriggers = [],
      stopTriggers = [],
    } = JSON.parse(body || '{}') as { antennaConfigs?: unknown[]; startTriggers?: Trigger[]; stopTriggers?: Trigger[] }
    if (!Array.isArray(configs) || configs.length === 0) return refuse('antennaConfigs is required')
    triggers = { start: startTriggers, stop: stopTriggers }
    setReading(startTriggers.length === 0 || startTriggers.some(isMet))
    return { status: 204 }
  }

  const isHigh = (gpi: number) => gpis.gpiConfigurations.some((each) => each.gpi === gpi && each.state === 'high')
  const isMet = ({ gpiTransitionEvent: { gpi, transition } }: Trigger) =>
    isHigh(gpi) === (transition === TRANSITIONS.rise)

  function setInput(gpi: number, on: boolean): void {
    if (isHigh(gpi) === on) return
    gpis = {
      ...gpis,
      gpiConfigurations: gpis.gpiConfigurations.map((each) =>
        each.gpi === gpi ? { ...each, state: on ? 'high' : 'low' } : each,
      ),
    }
    const transition = on ? TRANSITIONS.rise : TRANSITIONS.fall
    const isTold =
      gpis.gpiTransitionEvents === 'enabled' && gpis.gpiConfigurations.some((each) => each.gpi === gpi && each.enabled)
    if (isTold) tell({ timestamp: now(), eventType: 'gpiTransition', gpiTransitionEvent: { gpi, transition } })
    const fires = (those: readonly Trigger[]) =>
      those.some((each) => each.gpiTransitionEvent.gpi === gpi && each.gpiTransitionEvent.transition === transition)
    if (fires(triggers.start)) setReading(true)
    if (fires(triggers.stop)) setReading(false)
  }

  const refuse = (message: string): SimulatedAnswer => ({ status: 400, body: JSON.stringify({ message }) })
  const json = (value: object): SimulatedAnswer => ({ status: 200, body: JSON.stringify(value) })
  const stop = (): SimulatedAnswer => {
    triggers = { start: [], stop: [] }
    setReading(false)
    return { status: 204 }
  }

  const ROUTES: Readonly<Record<string, (body: string) => SimulatedAnswer>> = {
    [`GET ${IMPINJ_PATHS.system}`]: () =>
      json({ manufacturer: 'Impinj', productModel: 'R700', serialNumber: '37021010001' }),
    [`GET ${IMPINJ_PATHS.image}`]: () => json({ primaryFirmware: '8.2.0.240' }),
    [`GET ${IMPINJ_PATHS.status}`]: () =>
      json({ status: isReading ? 'running' : 'idle', time: now(), serialNumber: '37021010001' }),
    [`GET ${IMPINJ_PATHS.streamSettings}`]: () => json(stream),
    [`PUT ${IMPINJ_PATHS.streamSettings}`]: (body) => {
      stream = { ...stream, ...(JSON.parse(body) as object) }
      scheduleKeepalive()
      return { status: 204 }
    },
    [`GET ${IMPINJ_PATHS.gpos}`]: () =>
      json({ gpoConfigurations: [...outputs].map(([gpo, on]) => ({ gpo, state: on ? 'high' : 'low' })) }),
    [`PUT ${IMPINJ_PATHS.gpos}`]: writeOutputs,
    [`GET ${IMPINJ_PATHS.gpis}`]: () => (options.hasInputs === false ? { status: 404, body: '{}' } : json(gpis)),
    [`PUT ${IMPINJ_PATHS.gpis}`]: (body) => {
      gpis = { ...gpis, ...(JSON.parse(body) as GpiSettings) }
      return { status: 204 }
    },
    [`POST ${IMPINJ_PATHS.start}`]: start,
    [`POST ${IMPINJ_API}/profiles/inventory/presets/default/start`]: () => start('{"antennaConfigs":[{}]}'),
    [`POST ${IMPINJ_PATHS.stop}`]: stop,
  }

  function answer(request: SimulatedRequest): SimulatedAnswer {
    if (isMute) return 'silence'
    const { method, path, body } = request
    if (requests.length < MOST_REQUESTS) requests.push({ method, path, body })
    const expected = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    if (request.headers.get('authorization') !== expected)
      return { status: 401, body: JSON.stringify({ message: 'unauthorized' }) }
    if (method === 'GET' && path === IMPINJ_PATHS.stream) return { stream: listen }
    const route = ROUTES[`${method} ${path}`]
    if (!route) return { status: 404, body: JSON.stringify({ message: 'not found' }) }
    try {
      const told = route(body)
      return losesAnswers ? 'silence' : told
    } catch {
      return refuse('the body is no JSON')
    }
  }

  async function serve(link: ByteLink): Promise<void> {
    if (links.size >= MOST_LINKS) return link.close()
    links.add(link)
    let mine: OpenBody | null = null
    let answers = 0
    await serveHttp(link, (request) => {
      const told = answer(request)
      if (told === 'silence') return told
      if ('stream' in told) {
        return {
          stream(body) {
            mine = body
            told.stream(body)
          },
        }
      }
      answers++
      return answers === options.answersPerConnection ? { ...told, close: true } : told
    })
    links.delete(link)
    if (mine) listeners.delete(mine)
    scheduleKeepalive()
  }

  return {
    see(epc, { antenna = 1, rssiDbm = -55, asBase64 = false } = {}) {
      if (!isReading) return
      const named = asBase64 ? { epc: Buffer.from(epc, 'hex').toString('base64url') } : { epcHex: epc }
      const at = now()
      tell({
        timestamp: at,
        eventType: 'tagInventory',
        tagInventoryEvent: {
          ...named,
          antennaPort: antenna,
          peakRssiCdbm: Math.round(rssiDbm * 100),
          lastSeenTime: at,
        },
      })
    },
    setInput,
    say,
    mute: (on) => void (isMute = on),
    loseAnswers: (on) => void (losesAnswers = on),
    reboot() {
      isReading = false
      triggers = { start: [], stop: [] }
      kept = []
      for (const gpo of outputs.keys()) outputs.set(gpo, false)
      for (const link of links) void link.close()
      listeners.clear()
      cancelKeepalive()
    },
    stopReading: () => setReading(false),
    setClock: (offset) => void (offsetMs = offset),
    setPassword: (changed) => void (password = changed),
    outputs,
    writes,
    requests,
    get isReading() {
      return isReading
    },
    get listeners() {
      return listeners.size
    },
    serve,
  }
}
