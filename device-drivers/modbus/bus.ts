import type { Cancel, Platform } from '../../policy/platform.ts'
import type { Noise, ResyncingCodec } from '../kit/protocol/codec.ts'
import {
  type ModbusFrame,
  type ModbusFraming,
  answers,
  decodeAnswer,
  encodePdu,
  type ModbusMessage,
} from './protocol/pdu.ts'
import { rtuCodec, tcpCodec } from './protocol/frames.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import type { AnyLink } from '../transports/link-settings.ts'
import type { LinkProtocol, ProtocolClient } from '../transports/shared-links.ts'
import { startExchange, type Lane, type LostAnswer } from '../kit/exchange.ts'

/**
 * Whether the line repeats what the agent sends, as some RS-485 adapters do:
 *
 * - unknown: no request has shown it yet
 * - none: a board answered, and the request was not repeated
 * - suspected: a request was repeated, and no board answered. The board itself may repeat requests that it does not know
 * - present: a board answered after the repeated request
 */
type LineEcho = 'unknown' | 'none' | 'suspected' | 'present'

/** Echo of a line that cannot repeat requests, or that the settings declare free of echo. */
const NO_ECHO: LineEcho = 'none'

/** True if the request could be its own answer, as in Write Single Coil. Only such a request cannot show an echo. */
function equalsItsAnswer({ pdu }: ModbusFrame): boolean {
  const answer = decodeAnswer(pdu)
  return answer !== null && !('exception' in answer) && answer.quantity === 1
}

/** Wraps the codec of a line that may repeat requests, and removes these. */
class EchoFilter implements ResyncingCodec<ModbusFrame> {
  readonly #codec: ResyncingCodec<ModbusFrame>
  readonly #repeated = new WeakSet<ModbusFrame>()
  #state: LineEcho = 'unknown'
  #request: ModbusFrame | null = null
  #sent: Uint8Array = new Uint8Array(0)
  /** True until the repeated request has arrived, or cannot arrive any more. */
  #isSearching = false
  /** Bytes that may be the begin of the repeated request. */
  #matched: number[] = []

  constructor(codec: ResyncingCodec<ModbusFrame>) {
    this.#codec = codec
  }

  get state(): LineEcho {
    return this.#state
  }

  get held(): number {
    return this.#codec.held + this.#matched.length
  }

  encode(frame: ModbusFrame): Uint8Array {
    this.#sent = this.#codec.encode(frame)
    this.#request = frame
    this.#isSearching = this.#isStripping || !equalsItsAnswer(frame)
    return this.#sent
  }

  push(chunk: Uint8Array): ModbusFrame[] {
    return this.#codec.push(this.#withoutEcho(chunk))
  }

  silence(): ModbusFrame[] {
    const frames = this.#codec.push(Uint8Array.from(this.#matched.splice(0)))
    return [...frames, ...this.#codec.silence()]
  }

  takeNoise(): ReturnType<ResyncingCodec<ModbusFrame>['takeNoise']> {
    return this.#codec.takeNoise()
  }

  /** True if the line repeated this request. */
  wasRepeated(request: ModbusFrame): boolean {
    return this.#repeated.has(request)
  }

  /** Call this function with the request that a board has answered. */
  noteAnswer(request: ModbusFrame): void {
    if (this.#repeated.has(request)) this.#state = 'present'
    else if (this.#state !== 'present' && !equalsItsAnswer(request)) this.#state = 'none'
  }

  get #isStripping(): boolean {
    return this.#state === 'suspected' || this.#state === 'present'
  }

  #withoutEcho(chunk: Uint8Array): Uint8Array {
    if (!this.#isSearching && this.#matched.length === 0) return chunk
    const passed: number[] = []
    for (const byte of chunk) {
      this.#matched.push(byte)
      while (this.#matched.length > 0 && !this.#continues()) {
        passed.push(...this.#matched.splice(0, 1))
        // Noise may precede an echo. A line that is not known to echo must not delay the bytes of an answer.
        if (!this.#isStripping) this.#isSearching = false
      }
      if (this.#isSearching && this.#matched.length === this.#sent.length) this.#found()
    }
    return Uint8Array.from(passed)
  }

  #continues(): boolean {
    return this.#isSearching && this.#matched.every((byte, i) => byte === this.#sent[i])
  }

  #found(): void {
    this.#matched = []
    this.#isSearching = false
    if (this.#request) this.#repeated.add(this.#request)
    if (!this.#isStripping) this.#state = 'suspected'
  }
}

/** Number of consecutive lost answers after which a board is lost. */
export const MAX_MISSED = 3

/** One request to one board. */
export interface BusRequest {
  readonly unit: number
  readonly message: ModbusMessage
  /** Time limit of the answer, ms. */
  readonly timeoutMs: number
  /** Commands are sent before polls, so that polls do not delay a siren or the end of a pulse. */
  readonly lane: Lane
  /** True for a comparison of outputs, which never runs while the bus is held. */
  readonly isAudit?: boolean
  /** True for a poll of an emergency input. It waits for a held bus only after `MAX_MISSED` lost answers. */
  readonly isUrgent?: boolean
  /** Cancels a waiting request. The signal has no effect after the first byte was sent. */
  readonly signal?: AbortSignal
  /** Called before the first byte is passed to the link. */
  readonly onSend?: () => void
}

/** `otherUnit`: this unit answered instead of the requested one (only in Modbus TCP). */
export type BusAnswer =
  | { readonly kind: 'answered'; readonly values: readonly number[]; readonly otherUnit?: number }
  | { readonly kind: 'exception'; readonly code: number; readonly otherUnit?: number }
  /** `isRepeated`: the line repeated the request, and no board answered. */
  | (LostAnswer & { readonly isRepeated?: boolean })

export type FailedAnswer = Exclude<BusAnswer, { kind: 'answered' }>

/** All boards on one link. Requests wait in a queue, because a bus carries only one request at a time. */
export interface ModbusBus extends ProtocolClient {
  /** Whether the line repeats what the agent sends. */
  readonly echo: LineEcho
  /**
   * Keeps the bus free for `unit` until the returned function is called: no audits, and no polls of other units that do
   * not answer.
   */
  hold(unit: number): Cancel
  /** Never rejects. */
  request(request: BusRequest): Promise<BusAnswer>
  /** Calls `listener` with bytes that are no answer. */
  onNoise(listener: (noise: Noise) => void): Cancel
}

/** Quiet time after a lost answer in RTU, ms. A late answer must not be taken for the answer to the next request. */
const QUARANTINE_MS = 100

/**
 * Minimum gap between two frames: 3.5 characters of 11 bits, at least 1.75 ms (Modbus over serial line V1.02, 2.5.1.1).
 * For a device server, the calculation assumes 9600 baud.
 */
function frameGapMs(link: AnyLink): number {
  const baudRate = 'serial' in link ? link.baudRate : 9_600
  return Math.max(1.75, (3.5 * 11 * 1_000) / baudRate)
}

interface Wire {
  readonly codec: ResyncingCodec<ModbusFrame>
  /** The same object as `codec`, on a line that may repeat requests. */
  readonly echo: EchoFilter | null
  /** True if each answer repeats the transaction number of its request (Modbus TCP). */
  readonly numbered: boolean
  /** Minimum quiet time between two frames, ms. */
  readonly gapMs: number
}

const lostText = (detail: string, isRepeated: boolean, other: number | undefined): string =>
  isRepeated
    ? `${detail}; the line only repeated the request`
    : other === undefined
      ? detail
      : `${detail}; unit ${other} answered instead`

function startBus({ codec, echo, numbered, gapMs }: Wire, link: ByteLink, platform: Platform): ModbusBus {
  const onStray = (frame: ModbusFrame) => ({ bytes: frame.pdu.length, detail: 'a frame that answers no open request' })
  const exchange = startExchange({ codec, gapMs, quarantineMs: numbered ? 0 : QUARANTINE_MS, onStray }, link, platform)
  /** Lost answers of each unit since its last answer. A unit that has never answered is missing. */
  const missed = new Map<number, number>()
  /** Units that the bus is held for; a unit may occur several times. */
  const holders: number[] = []
  let transaction = 0

  function hold(unit: number): Cancel {
    holders.push(unit)
    const free = exchange.hold()
    return () => {
      holders.splice(holders.indexOf(unit), 1)
      free()
    }
  }

  async function request({
    unit,
    message,
    isAudit = false,
    isUrgent = false,
    ...rest
  }: BusRequest): Promise<BusAnswer> {
    if (numbered) transaction = (transaction + 1) & 0xffff
    const frame: ModbusFrame = { transaction, unit, pdu: encodePdu('request', message) }
    let decoded: BusAnswer | null = null
    let other: number | undefined
    const outcome = await exchange.request({
      ...rest,
      frame,
      target: `unit ${unit}`,
      yieldsToHold: () =>
        isAudit || (!holders.includes(unit) && (missed.get(unit) ?? MAX_MISSED) >= (isUrgent ? MAX_MISSED : 1)),
      isAnswer(reply) {
        const answer = decodeAnswer(reply.pdu)
        if (!answer || reply.transaction !== frame.transaction || !answers(answer, message)) return false
        if (reply.unit !== unit) other = reply.unit
        // The transaction number shows that this answer belongs to the request. Without it, another board may answer late.
        if (reply.unit !== unit && !numbered) return false
        echo?.noteAnswer(frame)
        const from = reply.unit === unit ? {} : { otherUnit: reply.unit }
        decoded =
          'exception' in answer
            ? { kind: 'exception', code: answer.exception, ...from }
            : { kind: 'answered', values: answer.values, ...from }
        return true
      },
    })
    if (decoded) {
      missed.set(unit, 0)
      return decoded
    }
    if (outcome.kind !== 'lost') return { kind: 'lost', possiblySent: true, detail: 'no answer' }
    if (outcome.possiblySent) missed.set(unit, (missed.get(unit) ?? MAX_MISSED) + 1)
    const isRepeated = echo?.wasRepeated(frame) === true
    return { ...outcome, detail: lostText(outcome.detail, isRepeated, other), ...(isRepeated ? { isRepeated } : {}) }
  }

  return {
    ended: exchange.ended,
    get echo() {
      return echo ? echo.state : NO_ECHO
    },
    request,
    hold,
    onNoise: (listener) => exchange.onNoise(listener),
  }
}

/**
 * All boards with the same wiring use the same protocol object, so they can share a link. `rtuWithoutEcho` takes every
 * frame for an answer.
 */
export const MODBUS_BUS: Record<ModbusFraming | 'rtuWithoutEcho', LinkProtocol<ModbusBus>> = {
  rtu: {
    name: 'Modbus RTU',
    start(link, settings, platform) {
      const echo = new EchoFilter(rtuCodec('answer'))
      return startBus({ codec: echo, echo, numbered: false, gapMs: frameGapMs(settings) }, link, platform)
    },
  },
  rtuWithoutEcho: {
    name: 'Modbus RTU without echo',
    start: (link, settings, platform) =>
      startBus({ codec: rtuCodec('answer'), echo: null, numbered: false, gapMs: frameGapMs(settings) }, link, platform),
  },
  tcp: {
    name: 'Modbus TCP',
    start: (link, _settings, platform) =>
      startBus({ codec: tcpCodec('answer'), echo: null, numbered: true, gapMs: 0 }, link, platform),
  },
}
