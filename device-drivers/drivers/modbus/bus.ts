import type { Cancel, Platform } from '../../../policy/platform.ts'
import type { Noise, ResyncingCodec } from '../../protocols/codec.ts'
import type { ModbusFrame, ModbusFraming } from '../../protocols/modbus/frame.ts'
import { answers, decodeAnswer, encodePdu } from '../../protocols/modbus/pdu.ts'
import type { ModbusMessage } from '../../protocols/modbus/pdu.ts'
import { rtuCodec } from '../../protocols/modbus/rtu.ts'
import { tcpCodec } from '../../protocols/modbus/tcp.ts'
import type { ByteLink } from '../../transports/byte-link.ts'
import type { AnyLink } from '../../transports/link-settings.ts'
import type { LinkProtocol, ProtocolClient } from '../../transports/shared-links.ts'
import { startExchange } from '../exchange.ts'
import type { Lane, LostAnswer } from '../exchange.ts'

/** One request to one board. */
export interface BusRequest {
  readonly unit: number
  readonly message: ModbusMessage
  /** Time limit of the answer, ms. */
  readonly timeoutMs: number
  /** Commands are sent before polls, so that polls do not delay a siren or the end of a pulse. */
  readonly lane: Lane
  /** Cancels a waiting request. The signal has no effect after the first byte was sent. */
  readonly signal?: AbortSignal
  /** Called before the first byte is passed to the link. */
  readonly onSend?: () => void
}

export type BusAnswer =
  | { readonly kind: 'answered'; readonly values: readonly number[] }
  | { readonly kind: 'exception'; readonly code: number }
  | LostAnswer

export type FailedAnswer = Exclude<BusAnswer, { kind: 'answered' }>

/** All boards on one link. Requests wait in a queue, because a bus carries only one request at a time. */
export interface ModbusBus extends ProtocolClient {
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
  /** True if each answer repeats the transaction number of its request (Modbus TCP). */
  readonly numbered: boolean
  /** Minimum quiet time between two frames, ms. */
  readonly gapMs: number
}

function startBus({ codec, numbered, gapMs }: Wire, link: ByteLink, platform: Platform): ModbusBus {
  const onStray = (frame: ModbusFrame) => ({ bytes: frame.pdu.length, detail: 'a frame that answers no open request' })
  const exchange = startExchange({ codec, gapMs, quarantineMs: numbered ? 0 : QUARANTINE_MS, onStray }, link, platform)
  let transaction = 0

  async function request({ unit, message, ...rest }: BusRequest): Promise<BusAnswer> {
    if (numbered) transaction = (transaction + 1) & 0xffff
    const transactionId = transaction
    let decoded: BusAnswer | null = null
    const outcome = await exchange.request({
      ...rest,
      frame: { transaction: transactionId, unit, pdu: encodePdu('request', message) },
      target: `unit ${unit}`,
      isAnswer(frame) {
        const answer = decodeAnswer(frame.pdu)
        if (!answer || frame.unit !== unit || frame.transaction !== transactionId || !answers(answer, message))
          return false
        decoded =
          'exception' in answer
            ? { kind: 'exception', code: answer.exception }
            : { kind: 'answered', values: answer.values }
        return true
      },
    })
    return decoded ?? (outcome.kind === 'lost' ? outcome : { kind: 'lost', possiblySent: true, detail: 'no answer' })
  }

  return { ended: exchange.ended, request, onNoise: (listener) => exchange.onNoise(listener) }
}

/** All boards with the same framing use the same protocol object, so they can share a link. */
export const MODBUS_BUS: Record<ModbusFraming, LinkProtocol<ModbusBus>> = {
  rtu: {
    name: 'Modbus RTU',
    start: (link, settings, platform) =>
      startBus({ codec: rtuCodec('answer'), numbered: false, gapMs: frameGapMs(settings) }, link, platform),
  },
  tcp: {
    name: 'Modbus TCP',
    start: (link, _settings, platform) =>
      startBus({ codec: tcpCodec('answer'), numbered: true, gapMs: 0 }, link, platform),
  },
}
