import { pause } from '../../policy/platform.ts'
import type { Cancel, Clock, Platform, Timers } from '../../policy/platform.ts'
import { decodeMessage, encodeMessage } from '../../device-drivers/llrp/protocol/binary.ts'
import { message, parameter } from '../../device-drivers/llrp/protocol/elements.ts'
import type { AnyParameter, Message } from '../../device-drivers/llrp/protocol/elements.ts'
import { llrpCodec } from '../../device-drivers/llrp/protocol/frames.ts'
import type { LlrpFrame } from '../../device-drivers/llrp/protocol/frames.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { faultSwitches } from './faults.ts'
import type { Fault } from './faults.ts'
import {
  answerOf,
  executeRequest,
  type ReaderParts,
  abilitiesOf,
  notification,
  tagReport,
  type Abilities,
  type Stamp,
} from './llrp/reader-messages.ts'
import {
  looking,
  newState,
  sessionOf,
  startTrigger,
  stopAfterMs,
  type ReaderState,
  type RoSpecState,
  type Status,
  foreignAccessSpec,
  operateOn,
  type SimulatedTag,
  tagFlags,
  type Query,
  type TagFlags,
} from './llrp/reader-state.ts'

/** One change or write of an output. */
interface OutputChange {
  /** `platform.clock.elapsed()`, ms. */
  readonly at: number
  readonly gpo: number
  readonly on: boolean
}

export interface LlrpReaderOptions extends Partial<Abilities> {
  readonly platform: Platform
  /** Error of the reader's clock, ms. */
  readonly clockAheadMs?: number
  /** Maximum messages that the reader buffers without a client; default 66,000, as in a Zebra FX. */
  readonly maxBuffered?: number
  /** Targets that the reader queries; default `both`. Readers of several makers query only `A`. */
  readonly target?: Query['target']
  /** Time before each answer, ms; default 0. */
  readonly answerDelayMs?: number
  /** Duration of a reboot, ms; default 20,000. */
  readonly bootMs?: number
  /** True if a program that was connected before has left an AccessSpec, which reads each tag. */
  readonly hasForeignAccessSpec?: boolean
  /** True if the reader accepts a ROSpec, but never starts it. */
  readonly neverStarts?: boolean
  /** Memory of tags, by EPC. */
  readonly tags?: ReadonlyMap<string, SimulatedTag>
  /** Called at each change of an output. */
  readonly onChange?: (change: OutputChange) => void
}

const MAX_LOGGED = 10_000
const NEVER_ABORTED = new AbortController().signal
const EVENT = { gpi: 1, exception: 4, antenna: 8 } as const

interface Client {
  readonly link: ByteLink
  /** True until the client requests the buffered messages. */
  isHolding: boolean
  order: Promise<void>
}

function log<T>(list: T[], entry: T): void {
  list.push(entry)
  if (list.length > MAX_LOGGED) list.shift()
}

/** Encodes an answer with the right type and id, but garbled content. */
const garbled = (reply: Message): Uint8Array => encodeMessage(reply).fill(0xff, 14)

/** Makes a reader. Pass each new link to the reader's `serve`. */
export function llrpReader(options: LlrpReaderOptions): LlrpReader {
  return new LlrpReader(options)
}

/** A simulated UHF reader with antennas, inputs and outputs, which speaks LLRP 1.0.1 to one client. */
export class LlrpReader {
  readonly #options: LlrpReaderOptions
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #can: Abilities
  /** The `functions` of a fault are LLRP message types. */
  readonly faults = faultSwitches()
  /** Every write of an output, also without a change, oldest first; the last 10,000. */
  readonly writes: OutputChange[] = []
  /** Names of the received messages, oldest first; the last 10,000. */
  readonly received: string[] = []
  readonly #dead = new Set<string>()
  readonly #flags: TagFlags
  #state: ReaderState
  #client: Client | null = null
  #buffered: Message[] = []
  #hasOverflown = false
  #lastId = 0
  #aheadMs: number
  #startedAt: number
  #isBooting = false
  #isOccupied = false
  #isHung = false
  #stopKeepalive: Cancel = () => {}

  constructor(options: LlrpReaderOptions) {
    this.#options = options
    this.#clock = options.platform.clock
    this.#timers = options.platform.timers
    this.#can = abilitiesOf(options)
    this.#state = newState(this.#can)
    this.#flags = tagFlags(options.platform.clock)
    if (options.answerDelayMs) this.faults.on({ kind: 'delay', ms: options.answerDelayMs })
    if (options.hasForeignAccessSpec) this.#state.accessSpecs.set(77, foreignAccessSpec())
    this.#aheadMs = options.clockAheadMs ?? 0
    this.#startedAt = options.platform.clock.elapsed()
  }

  /** Output 1 is at index 1. */
  get gpos(): readonly boolean[] {
    return this.#state.gpos
  }

  get isReading(): boolean {
    return [...this.#state.roSpecs.values()].some(({ isActive }) => isActive)
  }

  get isConnected(): boolean {
    return this.#client !== null
  }

  /** Ids of the stored AccessSpecs. */
  get accessSpecs(): number[] {
    return [...this.#state.accessSpecs.keys()]
  }

  /** Number of buffered messages. */
  get buffered(): number {
    return this.#buffered.length
  }

  /** Puts a tag before an antenna. The reader reports the tag if it reads with this antenna. */
  see(epc: string, { antenna = 1, rssiDbm = -55 }: { antenna?: number; rssiDbm?: number } = {}): void {
    const spec = looking(this.#state, antenna)
    if (!spec || this.#dead.has(epc) || this.#isBooting) return
    const query: Query = { session: sessionOf(spec.spec), target: this.#options.target ?? 'both' }
    if (!this.#flags.answers(epc, query)) return
    const done = operateOn(this.#state, epc, this.#options.tags?.get(epc) ?? {})
    if (done?.isDead) this.#dead.add(epc)
    this.#report(
      tagReport(++this.#lastId, spec.spec, {
        epc,
        antenna,
        rssiDbm,
        at: this.#now(),
        ...(done ? { results: done.results } : {}),
      }),
    )
  }

  readonly setInput = (gpi: number, on: boolean): void => {
    if (this.#state.gpis[gpi] === on) return
    this.#state.gpis[gpi] = on
    if (this.#state.watched.has(gpi) && this.#state.reportedEvents.has(EVENT.gpi))
      this.#reportEvent(parameter('GPIEvent', { GPIPortNumber: gpi, GPIEvent: on }))
    for (const spec of this.#state.roSpecs.values()) {
      const trigger = startTrigger(spec.spec)
      if (spec.isEnabled && typeof trigger === 'object' && trigger.gpi === gpi && trigger.on === on) this.#start(spec)
    }
  }

  /** Plugs the cable of an antenna in, or pulls it. */
  setAntenna(antenna: number, connected: boolean): void {
    if (connected) this.#state.unplugged.delete(antenna)
    else this.#state.unplugged.add(antenna)
    if (this.#state.reportedEvents.has(EVENT.antenna))
      this.#reportEvent(parameter('AntennaEvent', { EventType: connected ? 1 : 0, AntennaID: antenna }))
  }

  /** Stops reading, as another program or the web page of the reader does. The connection and its keepalives stay. */
  stopReading(): void {
    for (const spec of this.#state.roSpecs.values()) spec.isActive = false
  }

  exception(text: string): void {
    if (this.#state.reportedEvents.has(EVENT.exception))
      this.#reportEvent(parameter('ReaderExceptionEvent', { Message: text }))
  }

  /** Sets the error of the reader's clock, ms. */
  setClock(ms: number): void {
    this.#aheadMs = ms
  }

  /** While `on`, another program occupies the only connection. */
  occupy(on: boolean): void {
    this.#isOccupied = on
  }

  /** While `on`, the reader hangs: connections stay open, but the reader sends no messages. */
  hang(on: boolean): void {
    this.#isHung = on
  }

  /** Restarts the reader, which loses all state, switches its outputs off, and refuses connections for `bootMs`. */
  readonly reboot = (): void => {
    this.#stopKeepalive()
    this.#state.gpos.forEach((on, gpo) => on && this.#setOutput(gpo, false))
    for (const spec of this.#state.roSpecs.values()) spec.isActive = false
    // Keeps inputs and antennas, because external wires set them.
    this.#state = { ...newState(this.#can), gpis: this.#state.gpis, unplugged: this.#state.unplugged }
    this.#buffered = []
    this.#isBooting = true
    void this.#client?.link.close()
    this.#client = null
    this.#timers.after(this.#options.bootMs ?? 20_000, () => {
      this.#isBooting = false
      this.#startedAt = this.#clock.elapsed()
    })
  }

  /** Sends the client bytes that are no message. */
  garbage(bytes: Uint8Array): void {
    void (this.#client && this.#send(this.#client, bytes))
  }

  /** Serves a link until it ends. An arrow function, because callers pass it as a callback. */
  readonly serve = async (link: ByteLink): Promise<void> => {
    if (this.#isBooting) return link.close()
    if (this.#isOccupied || this.#client) return this.#rejectClient(link)
    const me: Client = { link, isHolding: true, order: Promise.resolve() }
    this.#client = me
    const codec = llrpCodec()
    let order: Promise<void> = Promise.resolve()
    if (!this.#isHung) await this.#sendConnectionAttempt(link, 0)
    if (!this.#state.holdUponReconnect) this.#release(me)
    try {
      for await (const chunk of link.bytes) {
        if (this.#isHung) continue
        // Handles requests one after the other, even if the answer to a request is delayed.
        for (const frame of codec.push(chunk)) order = order.then(() => this.#onFrame(me, frame))
      }
    } catch {
      // Ignores the error, because a broken link is like a lost network.
    } finally {
      if (this.#client === me) this.#client = null
      await link.close()
    }
  }

  #now(): Stamp {
    const uptimeUs = Math.round((this.#clock.elapsed() - this.#startedAt) * 1_000)
    return this.#can.hasClock
      ? { uptimeUs, utcUs: Math.round((this.#clock.wall() + this.#aheadMs) * 1_000) }
      : { uptimeUs }
  }

  #send(to: Client, bytes: Uint8Array): Promise<void> {
    to.order = to.order.then(() => (this.#isHung ? undefined : to.link.write(bytes, NEVER_ABORTED).catch(() => {})))
    return to.order
  }

  /** Sends a message to the client, or buffers the message for the next client. */
  #report(report: Message): void {
    if (this.#client && !this.#client.isHolding) return void this.#send(this.#client, encodeMessage(report))
    if (this.#buffered.length >= (this.#options.maxBuffered ?? 66_000)) {
      this.#buffered.shift()
      this.#hasOverflown = true
    }
    this.#buffered.push(report)
  }

  #reportEvent(event: AnyParameter): void {
    return this.#report(notification(++this.#lastId, this.#now(), event))
  }

  #release(to: Client): void {
    to.isHolding = false
    const waiting = this.#buffered
    this.#buffered = []
    if (this.#hasOverflown) this.#reportEvent(parameter('ReportBufferOverflowErrorEvent', {}))
    this.#hasOverflown = false
    for (const report of waiting) void this.#send(to, encodeMessage(report))
  }

  #setOutput(gpo: number, on: boolean): void {
    const change = { at: this.#clock.elapsed(), gpo, on }
    log(this.writes, change)
    if (this.#state.gpos[gpo] === on) return
    this.#state.gpos[gpo] = on
    this.#options.onChange?.(change)
  }

  #keepAlive(): void {
    this.#stopKeepalive()
    if (this.#state.keepaliveMs === null) return
    this.#stopKeepalive = this.#timers.after(this.#state.keepaliveMs, () => {
      if (this.#client) void this.#send(this.#client, encodeMessage(message('KEEPALIVE', ++this.#lastId, {})))
      this.#keepAlive()
    })
  }

  #start(spec: RoSpecState): void {
    if (spec.isActive || this.#options.neverStarts) return
    spec.isActive = true
    const ms = stopAfterMs(spec.spec)
    if (ms !== null) this.#timers.after(ms, () => void (spec.isActive = false))
  }

  #actions(): ReaderParts {
    return {
      can: this.#can,
      state: this.#state,
      setOutput: (gpo, on) => this.#setOutput(gpo, on),
      keepAlive: () => this.#keepAlive(),
      start: (spec) => this.#start(spec),
    }
  }

  async #onFrame(from: Client, frame: LlrpFrame): Promise<void> {
    const request = decodeMessage(frame)
    log(this.received, request.name)
    if (request.name === 'ENABLE_EVENTS_AND_REPORTS') return this.#release(from)
    if (request.name === 'KEEPALIVE_ACK') return
    const hits = this.faults.hitting(0, frame.type)
    const has = (kind: Fault['kind']) => hits.some((hit) => hit.kind === kind)
    if (has('dead')) return
    if (request.name === 'malformed' || request.name === 'unknown') {
      const status = parameter('LLRPStatus', { StatusCode: 109, ErrorDescription: request.name })
      return void this.#send(from, encodeMessage(message('ERROR_MESSAGE', frame.id, {}, status)))
    }
    const refusal = hits.find((hit) => hit.kind === 'exception')
    const status: Status = refusal ? [refusal.code, 'simulated'] : executeRequest(this.#actions(), request)
    const reply = answerOf(this.#actions(), request, status)
    if (has('cut-before-answer')) return from.link.close()
    for (const hit of hits) if (hit.kind === 'delay') await pause(this.#timers, hit.ms)
    for (const hit of hits) if (hit.kind === 'noise') await this.#send(from, hit.bytes)
    if (!has('mute')) await this.#send(from, has('garble') ? garbled(reply) : encodeMessage(reply))
    if (has('cut-after-answer') || request.name === 'CLOSE_CONNECTION') await from.link.close()
  }

  #sendConnectionAttempt(link: ByteLink, Status: number): Promise<void> {
    const greeting = notification(++this.#lastId, this.#now(), parameter('ConnectionAttemptEvent', { Status }))
    return link.write(encodeMessage(greeting), NEVER_ABORTED).catch(() => {})
  }

  async #rejectClient(link: ByteLink): Promise<void> {
    if (this.#client) this.#reportEvent(parameter('ConnectionAttemptEvent', { Status: 4 }))
    await this.#sendConnectionAttempt(link, 2)
    await link.close()
  }
}
