import { deadline } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { exceptionText, answers, decodeAnswer, encodePdu, type ModbusMessage } from './protocol/pdu.ts'
import { tcpCodec } from './protocol/tcp.ts'
import type { LinkFactory } from '../transports/byte-link.ts'

const WITHIN_MS = 3_000
const MAX_BYTES = 4_096
/** Address that boards have when they are new. */
const UNIT = 1
/** A read: it switches nothing. */
const REQUEST: ModbusMessage = { name: 'readCoils', address: 0, quantity: 1, values: [] }
/** Exceptions of a gateway whose board does not answer. */
const BEHIND_GATEWAY: ReadonlySet<number> = new Set([10, 11])

/**
 * Reads one output of a Modbus TCP board and disconnects; nothing moves. Returns what a technician must set, or null.
 * Rejects if no board answers within 3 s.
 */
export async function probeBoard(open: LinkFactory, platform: Platform): Promise<string | null> {
  const limit = deadline(platform.timers, WITHIN_MS)
  try {
    const link = await open(limit.signal)
    const leave = () => void link.close()
    limit.signal.addEventListener('abort', leave, { once: true })
    try {
      const codec = tcpCodec('answer')
      await link.write(codec.encode({ transaction: 1, unit: UNIT, pdu: encodePdu('request', REQUEST) }), limit.signal)
      let bytes = 0
      for await (const chunk of link.bytes) {
        for (const frame of codec.push(chunk)) {
          const answer = decodeAnswer(frame.pdu)
          if (frame.transaction !== 1 || answer === null || !answers(answer, REQUEST)) continue
          return 'exception' in answer && BEHIND_GATEWAY.has(answer.exception)
            ? `a gateway answers, but no board with unit ${UNIT} behind it (${exceptionText(answer.exception)}): set "unit" to the address of the board`
            : null
        }
        bytes += chunk.length
        if (bytes > MAX_BYTES) break
      }
    } finally {
      limit.signal.removeEventListener('abort', leave)
      await link.close()
    }
  } finally {
    limit.done()
  }
  throw new Error('the peer does not speak Modbus TCP; check address and port (502)')
}
