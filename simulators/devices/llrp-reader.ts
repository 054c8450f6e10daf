import { pause } from '../../policy/platform.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import { decodeMessage, encodeMessage } from '../../device-drivers/protocols/llrp/binary.ts'
import { message, parameter } from '../../device-drivers/protocols/llrp/elements.ts'
import type { AnyParameter, Message } from '../../device-drivers/protocols/llrp/elements.ts'
import { llrpCodec } from '../../device-drivers/protocols/llrp/frames.ts'
import type { LlrpFrame } from '../../device-drivers/protocols/llrp/frames.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { faultSwitches } from './faults.ts'
import type { Fault, FaultSwitches } from './faults.ts'
import { answerOf, carryOut } from './llrp/reader-answers.ts'
import type { Doing } from './llrp/reader-answers.ts'
import { notification, tagReport } from './llrp/reader-messages.ts'
import type { Abilities, Stamp } from './llrp/reader-messages.ts'
import { looking, newState, startTrigger, stopAfterMs } from './llrp/reader-state.ts'
import type { RoSpecState, Status } from './llrp/reader-state.ts'
import { operateOn } from './llrp/tag-memory.ts'
import type { SimulatedTag } from './llrp/tag-memory.ts'

/** One change or write of an output. */
export interface OutputChange {
  /** `platform.clock.elapsed()`, ms. */
  readonly at: number
  readonly gpo: number
  readonly on: boolean
}

export interface LlrpReaderOptions extends Partial<Abilities> {
  readonly platform: Platform
  /** Its clock minus the right time, ms. */
  readonly clockAheadMs?: number
  /** Messages that it keeps while nobody is connected; default 66,000, as a Zebra FX does. */
  readonly mostKept?: number
  /** How long a reboot takes, ms; default 20,000. */
  readonly bootMs?: number
  /** What tags have besides their EPC, by it. */
  readonly tags?: ReadonlyMap<string, SimulatedTag>
  /** Told of every change of an output, for showing it. */
  readonly onChange?: (change: OutputChange) => void
}

/** A simulated UHF reader with antennas, inputs and outputs that speaks LLRP 1.0.1 to one client at a time. */
export interface LlrpReader {
  /** Output 1 is at 1. */
  readonly gpos: readonly boolean[]
  /** Every write of an output, changing or not, oldest first; the last 10,000. */
  readonly writes: readonly OutputChange[]
  /** Names of the messages that were received, oldest first; the last 10,000. */
  readonly received: readonly string[]
  readonly isReading: boolean
  readonly isConnected: boolean
  /** Messages that wait for somebody to be told. */
  readonly kept: number
  /** By the number of the message type as `functions`. */
  readonly faults: FaultSwitches
  /** A tag answers at an antenna; told when the reader looks there. */
  see(epc: string, look?: { antenna?: number; rssiDbm?: number }): void
  setInput(gpi: number, on: boolean): void
  setAntenna(antenna: number, connected: boolean): void
  exception(text: string): void
  /** Its clock is set, wrong by so much. */
  setClock(aheadMs: number): void
  /** Another program takes the one place, or leaves it. */
  occupy(on: boolean): void
  /** Hangs: connections stay, nothing is heard or said; or goes on. */
  hang(on: boolean): void
  /** Forgets everything, switches its outputs off, and is away for a while. */
  reboot(): void
  /** Sends bytes that are no message to whoever is connected. */
  garbage(bytes: Uint8Array): void
  /** Answers on this link until it ends. */
  serve(link: ByteLink): Promise<void>
}

const MOST_LOGGED = 10_000
const FOR_EVER = new AbortController().signal
const EVENT = { gpi: 1, exception: 4, antenna: 8 } as const

interface Client {
  readonly link: ByteLink
  /** Until it asks for them, what was kept waits. */
  isHolding: boolean
  order: Promise<void>
}

/** Makes a reader. It speaks to nobody until a link is served to it. */
export function llrpReader(options: LlrpReaderOptions): LlrpReader {
  const { clock, timers } = options.platform
  const can: Abilities = {
    antennas: options.antennas ?? 4,
    gpis: options.gpis ?? 4,
    gpos: options.gpos ?? 4,
    powersDbm: options.powersDbm ?? Array.from({ length: 21 }, (_, i) => 10 + i),
    hasClock: options.hasClock ?? true,
    canHold: options.canHold ?? true,
    accessSpecs: options.accessSpecs ?? 16,
  }
  const faults = faultSwitches()
  const writes: OutputChange[] = []
  const received: string[] = []
  const dead = new Set<string>()
  let state = newState(can)
  let client: Client | null = null
  let kept: Message[] = []
  let hasOverflown = false
  let lastId = 0
  let aheadMs = options.clockAheadMs ?? 0
  let startedAt = clock.elapsed()
  let isBooting = false
  let isOccupied = false
  let isHung = false
  let stopKeepalive: Cancel = () => {}

  const now = (): Stamp => {
    const uptimeUs = Math.round((clock.elapsed() - startedAt) * 1_000)
    return can.hasClock ? { uptimeUs, utcUs: Math.round((clock.wall() + aheadMs) * 1_000) } : { uptimeUs }
  }

  function log<T>(list: T[], entry: T): void {
    list.push(entry)
    if (list.length > MOST_LOGGED) list.shift()
  }

  function send(to: Client, bytes: Uint8Array): Promise<void> {
    to.order = to.order.then(() => (isHung ? undefined : to.link.write(bytes, FOR_EVER).catch(() => {})))
    return to.order
  }

  /** Tells the client, or keeps it for the next one. */
  function tell(said: Message): void {
    if (client && !client.isHolding) return void send(client, encodeMessage(said))
    if (kept.length >= (options.mostKept ?? 66_000)) {
      kept.shift()
      hasOverflown = true
    }
    kept.push(said)
  }

  const tellEvent = (event: AnyParameter) => tell(notification(++lastId, now(), event))

  function release(to: Client): void {
    to.isHolding = false
    const waiting = kept
    kept = []
    if (hasOverflown) tellEvent(parameter('ReportBufferOverflowErrorEvent', {}))
    hasOverflown = false
    for (const said of waiting) void send(to, encodeMessage(said))
  }

  function setOutput(gpo: number, on: boolean): void {
    const change = { at: clock.elapsed(), gpo, on }
    log(writes, change)
    if (state.gpos[gpo] === on) return
    state.gpos[gpo] = on
    options.onChange?.(change)
  }

  function keepAlive(): void {
    stopKeepalive()
    if (state.keepaliveMs === null) return
    stopKeepalive = timers.after(state.keepaliveMs, () => {
      if (client) void send(client, encodeMessage(message('KEEPALIVE', ++lastId, {})))
      keepAlive()
    })
  }

  function start(spec: RoSpecState): void {
    if (spec.isActive) return
    spec.isActive = true
    const ms = stopAfterMs(spec.spec)
    if (ms !== null) timers.after(ms, () => void (spec.isActive = false))
  }

  const doing: Doing = {
    can,
    get state() {
      return state
    },
    setOutput,
    keepAlive,
    start,
  }

  async function react(from: Client, frame: LlrpFrame): Promise<void> {
    const said = decodeMessage(frame)
    log(received, said.name)
    if (said.name === 'ENABLE_EVENTS_AND_REPORTS') return release(from)
    if (said.name === 'KEEPALIVE_ACK') return
    const hits = faults.hitting(0, frame.type)
    const has = (kind: Fault['kind']) => hits.some((hit) => hit.kind === kind)
    if (has('dead')) return
    if (said.name === 'malformed' || said.name === 'unknown') {
      const status = parameter('LLRPStatus', { StatusCode: 109, ErrorDescription: said.name })
      return void send(from, encodeMessage(message('ERROR_MESSAGE', frame.id, {}, status)))
    }
    const refusal = hits.find((hit) => hit.kind === 'exception')
    const status: Status = refusal ? [refusal.code, 'told to refuse'] : carryOut(doing, said)
    const reply = answerOf(doing, said, status)
    if (has('cut-before-answer')) return from.link.close()
    for (const hit of hits) if (hit.kind === 'delay') await pause(timers, hit.ms)
    for (const hit of hits) if (hit.kind === 'noise') await send(from, hit.bytes)
    if (!has('mute')) await send(from, has('garble') ? garbled(reply) : encodeMessage(reply))
    if (has('cut-after-answer') || said.name === 'CLOSE_CONNECTION') await from.link.close()
  }

  /** The type and id are right, and what is in it is not. */
  const garbled = (reply: Message): Uint8Array => encodeMessage(reply).fill(0xff, 14)

  function greet(link: ByteLink, Status: number): Promise<void> {
    const greeting = notification(++lastId, now(), parameter('ConnectionAttemptEvent', { Status }))
    return link.write(encodeMessage(greeting), FOR_EVER).catch(() => {})
  }

  async function turnAway(link: ByteLink): Promise<void> {
    if (client) tellEvent(parameter('ConnectionAttemptEvent', { Status: 4 }))
    await greet(link, 2)
    await link.close()
  }

  async function serve(link: ByteLink): Promise<void> {
    if (isBooting) return link.close()
    if (isOccupied || client) return turnAway(link)
    const me: Client = { link, isHolding: true, order: Promise.resolve() }
    client = me
    const codec = llrpCodec()
    let order: Promise<void> = Promise.resolve()
    if (!isHung) await greet(link, 0)
    if (!state.holdUponReconnect) release(me)
    try {
      for await (const chunk of link.bytes) {
        if (isHung) continue
        // One request after the other, however long the answer to one is held up.
        for (const frame of codec.push(chunk)) order = order.then(() => react(me, frame))
      }
    } catch {
      // The link broke: that is how a reader loses its network too.
    } finally {
      if (client === me) client = null
      await link.close()
    }
  }

  return {
    get gpos() {
      return state.gpos
    },
    writes,
    received,
    get isReading() {
      return [...state.roSpecs.values()].some(({ isActive }) => isActive)
    },
    get isConnected() {
      return client !== null
    },
    get kept() {
      return kept.length
    },
    faults,
    see(epc, { antenna = 1, rssiDbm = -55 } = {}) {
      const spec = looking(state, antenna)
      if (!spec || dead.has(epc) || isBooting) return
      const done = operateOn(state, epc, options.tags?.get(epc) ?? {})
      if (done?.isDead) dead.add(epc)
      tell(
        tagReport(++lastId, spec.spec, {
          epc,
          antenna,
          rssiDbm,
          at: now(),
          ...(done ? { results: done.results } : {}),
        }),
      )
    },
    setInput(gpi, on) {
      if (state.gpis[gpi] === on) return
      state.gpis[gpi] = on
      if (state.watched.has(gpi) && state.told.has(EVENT.gpi))
        tellEvent(parameter('GPIEvent', { GPIPortNumber: gpi, GPIEvent: on }))
      for (const spec of state.roSpecs.values()) {
        const trigger = startTrigger(spec.spec)
        if (spec.isEnabled && typeof trigger === 'object' && trigger.gpi === gpi && trigger.on === on) start(spec)
      }
    },
    setAntenna(antenna, connected) {
      if (state.told.has(EVENT.antenna))
        tellEvent(parameter('AntennaEvent', { EventType: connected ? 1 : 0, AntennaID: antenna }))
    },
    exception(text) {
      if (state.told.has(EVENT.exception)) tellEvent(parameter('ReaderExceptionEvent', { Message: text }))
    },
    setClock: (ms) => void (aheadMs = ms),
    occupy: (on) => void (isOccupied = on),
    hang: (on) => void (isHung = on),
    reboot() {
      stopKeepalive()
      state.gpos.forEach((on, gpo) => on && setOutput(gpo, false))
      for (const spec of state.roSpecs.values()) spec.isActive = false
      // The wires at the inputs know nothing of it.
      state = { ...newState(can), gpis: state.gpis }
      kept = []
      isBooting = true
      void client?.link.close()
      client = null
      timers.after(options.bootMs ?? 20_000, () => {
        isBooting = false
        startedAt = clock.elapsed()
      })
    },
    garbage: (bytes) => void (client && send(client, bytes)),
    serve,
  }
}
