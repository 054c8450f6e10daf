import { deadline, pause } from '../../../policy/platform.ts'
import type { Cancel, Platform } from '../../../policy/platform.ts'
import type { Noise, ResyncingCodec } from '../../protocols/codec.ts'
import type { ModbusFrame, ModbusFraming } from '../../protocols/modbus/frame.ts'
import { answers, decodeAnswer, encodePdu } from '../../protocols/modbus/pdu.ts'
import type { ModbusMessage } from '../../protocols/modbus/pdu.ts'
import { rtuCodec } from '../../protocols/modbus/rtu.ts'
import { tcpCodec } from '../../protocols/modbus/tcp.ts'
import type { ByteLink } from '../../transports/byte-link.ts'
import type { AnyLink } from '../../transports/link-settings.ts'
import type { LinkProtocol, Speaker } from '../../transports/shared-links.ts'

/** One question to one board. */
export interface BusRequest {
  readonly unit: number
  readonly message: ModbusMessage
  /** How long to wait for the answer, ms. */
  readonly timeoutMs: number
  /** Commands go before polls, so that a siren or the end of a pulse never waits behind them. */
  readonly lane: 'command' | 'poll'
  /** Takes the request back while it waits; once its bytes are out it runs to its end. */
  readonly signal?: AbortSignal
  /** Called right before the first byte is handed to the link. */
  readonly onHanded?: () => void
}

export type BusAnswer =
  | { readonly kind: 'answered'; readonly values: readonly number[] }
  | { readonly kind: 'exception'; readonly code: number }
  /** No answer, or none that can be trusted. `handed`: the board may have received the request. */
  | { readonly kind: 'lost'; readonly handed: boolean; readonly detail: string }

export type FailedAnswer = Exclude<BusAnswer, { kind: 'answered' }>

/** All boards on one link: requests wait in line and one is under way at a time. */
export interface ModbusBus extends Speaker {
  /** Never rejects. */
  request(request: BusRequest): Promise<BusAnswer>
  /** `listener` is told of bytes that are no answer. */
  onNoise(listener: (noise: Noise) => void): Cancel
}

const MOST_WAITING = 64
/** Bytes that stop within a frame for so long will not go on: above what USB adapters hold back (16 ms). */
const SILENCE_MS = 50
/** RTU: after an unanswered request the line is left alone so that a late answer cannot pass for the next one. */
const QUARANTINE_MS = 100

/** 3.5 characters of 11 bits, at least 1.75 ms (Modbus over serial line V1.02, 2.5.1.1); 9600 baud is assumed behind a device server. */
function frameGapMs(link: AnyLink): number {
  const baudRate = 'serial' in link ? link.baudRate : 9_600
  return Math.max(1.75, (3.5 * 11 * 1_000) / baudRate)
}

interface Job {
  readonly request: BusRequest
  readonly settle: (answer: BusAnswer) => void
}

interface Pending {
  readonly transaction: number
  readonly request: BusRequest
  readonly settle: (answer: BusAnswer) => void
}

interface Wire {
  readonly codec: ResyncingCodec<ModbusFrame>
  /** Whether answers repeat the number of their request (Modbus TCP). */
  readonly numbered: boolean
  /** The line stays quiet for so long between two frames. */
  readonly gapMs: number
}

function startBus({ codec, numbered, gapMs }: Wire, link: ByteLink, platform: Platform): ModbusBus {
  const { clock, timers } = platform
  const lanes: Record<BusRequest['lane'], Job[]> = { command: [], poll: [] }
  const listeners = new Set<(noise: Noise) => void>()
  let pending: Pending | null = null
  let working = false
  let over: string | null = null
  let transaction = 0
  let quietUntil = 0
  let cancelSilence: Cancel = () => {}
  let tellEnded = (_reason: string) => {}
  const ended = new Promise<string>((resolve) => {
    tellEnded = resolve
  })

  function tellNoise(noise: Noise | null): void {
    if (noise) for (const listener of listeners) listener(noise)
  }

  function accept(frame: ModbusFrame): void {
    const answer = decodeAnswer(frame.pdu)
    const stray = { bytes: frame.pdu.length, detail: 'a frame that answers no open request' }
    if (!pending || !answer || frame.unit !== pending.request.unit || frame.transaction !== pending.transaction) return tellNoise(stray)
    if (!answers(answer, pending.request.message)) return tellNoise(stray)
    pending.settle('exception' in answer ? { kind: 'exception', code: answer.exception } : { kind: 'answered', values: answer.values })
  }

  function silence(): void {
    for (const frame of codec.silence()) accept(frame)
    tellNoise(codec.takeNoise())
  }

  function hear(chunk: Uint8Array): void {
    cancelSilence()
    quietUntil = Math.max(quietUntil, clock.elapsed() + gapMs)
    for (const frame of codec.push(chunk)) accept(frame)
    tellNoise(codec.takeNoise())
    if (codec.held > 0) cancelSilence = timers.after(SILENCE_MS, silence)
  }

  function end(reason: string): void {
    if (over) return
    over = reason
    cancelSilence()
    pending?.settle({ kind: 'lost', handed: true, detail: reason })
    for (const lane of Object.values(lanes)) for (const job of lane.splice(0)) job.settle({ kind: 'lost', handed: false, detail: reason })
    tellEnded(reason)
  }

  async function listen(): Promise<void> {
    try {
      for await (const chunk of link.bytes) hear(chunk)
      end('the other side closed the link')
    } catch (error) {
      end(error instanceof Error ? error.message : String(error))
    }
  }

  async function exchange(request: BusRequest): Promise<BusAnswer> {
    const wait = quietUntil - clock.elapsed()
    if (wait > 0) await pause(timers, wait)
    if (over) return { kind: 'lost', handed: false, detail: over }
    if (request.signal?.aborted) return { kind: 'lost', handed: false, detail: 'taken back before it was sent' }
    if (numbered) transaction = (transaction + 1) & 0xffff
    const limit = deadline(timers, request.timeoutMs)
    const answer = await new Promise<BusAnswer>((settle) => {
      pending = { transaction, request, settle }
      const lost = (detail: string) => settle({ kind: 'lost', handed: true, detail })
      const onTimeout = () => lost(`unit ${request.unit} gave no answer within ${request.timeoutMs} ms`)
      limit.signal.addEventListener('abort', onTimeout, { once: true })
      request.onHanded?.()
      const bytes = codec.encode({ transaction, unit: request.unit, pdu: encodePdu('request', request.message) })
      link.write(bytes, limit.signal).catch((error: unknown) => lost(error instanceof Error ? error.message : String(error)))
    })
    limit.done()
    pending = null
    if (answer.kind === 'lost' && !numbered) {
      silence()
      quietUntil = clock.elapsed() + QUARANTINE_MS
    }
    return answer
  }

  async function work(): Promise<void> {
    if (working) return
    working = true
    for (let job = lanes.command.shift() ?? lanes.poll.shift(); job; job = lanes.command.shift() ?? lanes.poll.shift()) {
      job.settle(await exchange(job.request))
    }
    working = false
  }

  void listen()
  return {
    ended,
    request: (request) =>
      new Promise((settle) => {
        const unsent = (detail: string) => settle({ kind: 'lost', handed: false, detail })
        if (over) return unsent(over)
        const lane = lanes[request.lane]
        if (lane.length >= MOST_WAITING) return unsent(`${MOST_WAITING} requests wait for this link already`)
        lane.push({ request, settle })
        void work()
      }),
    onNoise(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** One object per framing: devices share a link when they ask for the same. */
export const MODBUS_BUS: Record<ModbusFraming, LinkProtocol<ModbusBus>> = {
  rtu: {
    name: 'Modbus RTU',
    start: (link, settings, platform) =>
      startBus({ codec: rtuCodec('answer'), numbered: false, gapMs: frameGapMs(settings) }, link, platform),
  },
  tcp: {
    name: 'Modbus TCP',
    start: (link, _settings, platform) => startBus({ codec: tcpCodec('answer'), numbered: true, gapMs: 0 }, link, platform),
  },
}
