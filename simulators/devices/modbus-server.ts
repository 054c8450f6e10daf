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

export interface ModbusServerOptions {
  readonly link: ByteLink
  readonly framing: ModbusFraming
  readonly units: ReadonlySet<number>
  /** Executes a valid request. */
  answer(request: ModbusMessage): ModbusMessage | ModbusRefusal
  readonly faults: FaultSwitches
  readonly platform: Platform
}

/** Silence that ends a request with an unknown function code, ms. */
const SILENCE_MS = 20

const CODECS: Record<ModbusFraming, () => ResyncingCodec<ModbusFrame>> = {
  rtu: () => rtuCodec('request'),
  tcp: () => tcpCodec('request'),
}

/** Serves Modbus on one link, with the active faults. Resolves when the link ends. */
export async function serveModbus(options: ModbusServerOptions): Promise<void> {
  const { link, framing, units, faults } = options
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
    return 'exception' in answer ? encodeRefusal(answer) : encodePdu('answer', answer)
  }

  async function serveOne(frame: ModbusFrame): Promise<void> {
    if (!units.has(frame.unit)) return
    const hits = faults.hitting(frame.unit, frame.pdu[0] ?? 0)
    if (hits.some((hit) => hit.kind === 'dead')) return
    const bytes = codec.encode({ ...frame, pdu: handle(frame, hits) })
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
