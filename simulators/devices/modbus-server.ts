import type { Cancel, Platform } from '../../policy/platform.ts'
import type { ResyncingCodec } from '../../device-drivers/protocols/codec.ts'
import type { ModbusFrame, ModbusFraming } from '../../device-drivers/protocols/modbus/frame.ts'
import { decodeRequest, encodePdu, encodeRefusal } from '../../device-drivers/protocols/modbus/pdu.ts'
import type { ModbusMessage, ModbusRefusal } from '../../device-drivers/protocols/modbus/pdu.ts'
import { rtuCodec } from '../../device-drivers/protocols/modbus/rtu.ts'
import { tcpCodec } from '../../device-drivers/protocols/modbus/tcp.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { answerWithFaults } from './answer-faults.ts'
import type { Fault, FaultSwitches } from './faults.ts'

/** What real boards answer, and the standard does not say. */
export interface AnswerQuirks {
  /** Functions that the board answers with the request itself, whatever the values. */
  readonly repeatedFunctions?: readonly number[]
  /** The board sends the bytes of bits in reverse order (Waveshare Modbus RTU Relay 32CH). */
  readonly reversedBytes?: boolean
  /** Unit in each answer, whatever the request says (Modbus TCP). */
  readonly answersAs?: number
}

export interface ModbusServerOptions {
  readonly link: ByteLink
  readonly framing: ModbusFraming
  readonly units: ReadonlySet<number>
  /** Executes a valid request. */
  answer(request: ModbusMessage): ModbusMessage | ModbusRefusal
  readonly faults: FaultSwitches
  readonly quirks?: AnswerQuirks
  readonly platform: Platform
}

/** Silence that ends a request with an unknown function code, ms. */
const SILENCE_MS = 20

/** Functions whose answers contain bits: read coils, read discrete inputs. */
const BITS: ReadonlySet<number> = new Set([1, 2])

const CODECS: Record<ModbusFraming, () => ResyncingCodec<ModbusFrame>> = {
  rtu: () => rtuCodec('request'),
  tcp: () => tcpCodec('request'),
}

/** Serves Modbus on one link, with the active faults. Resolves when the link ends. */
export async function serveModbus(options: ModbusServerOptions): Promise<void> {
  const { link, framing, units, faults, quirks = {} } = options
  const { timers } = options.platform
  const codec = CODECS[framing]()
  let cancelSilence: Cancel = () => {}
  let order: Promise<void> = Promise.resolve()

  function handle(frame: ModbusFrame, hits: readonly Fault[]): Uint8Array {
    const exception = hits.find((hit) => hit.kind === 'exception')
    const request = decodeRequest(frame.pdu)
    if (exception) return encodeRefusal({ functionCode: frame.pdu[0] ?? 0, exception: exception.code })
    if ('exception' in request) return encodeRefusal(request)
    const answer = options.answer(request)
    if ('exception' in answer) return encodeRefusal(answer)
    const pdu = encodePdu('answer', answer)
    if (quirks.reversedBytes && BITS.has(pdu[0] ?? 0)) pdu.subarray(2).reverse()
    return pdu
  }

  async function serveOne(frame: ModbusFrame): Promise<void> {
    if (!units.has(frame.unit)) return
    const hits = faults.hitting(frame.unit, frame.pdu[0] ?? 0)
    if (hits.some((hit) => hit.kind === 'dead')) return
    const isRepeated = quirks.repeatedFunctions?.includes(frame.pdu[0] ?? 0)
    const unit = quirks.answersAs ?? frame.unit
    const bytes = codec.encode({ ...frame, unit, pdu: isRepeated ? frame.pdu : handle(frame, hits) })
    await answerWithFaults({ link, timers, hits, bytes }, framing === 'rtu' ? -1 : 0)
  }

  // Answers keep the order of the requests, even if one answer is delayed.
  function take(frames: readonly ModbusFrame[]): void {
    for (const frame of frames) order = order.then(() => serveOne(frame))
  }

  try {
    for await (const chunk of link.bytes) {
      cancelSilence()
      take(codec.push(chunk))
      if (codec.held > 0) cancelSilence = timers.after(SILENCE_MS, () => take(codec.silence()))
    }
  } catch {
    // Ignores the error, because a broken link is like an unplugged board.
  } finally {
    cancelSilence()
    await link.close()
  }
}
