import { deadline } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { decodeMessage } from './protocol/binary.ts'
import { llrpCodec } from './protocol/frames.ts'
import type { LinkFactory } from '../transports/byte-link.ts'
import { connectionRefusal } from './reading.ts'

const WITHIN_MS = 3_000
const MAX_BYTES = 65_536

/**
 * Waits for the first message of an LLRP reader and disconnects; the reader keeps its settings. Returns why the reader
 * would refuse a client, or null. Rejects if no LLRP reader answers within 3 s.
 */
export async function probeReader(open: LinkFactory, platform: Platform): Promise<string | null> {
  const limit = deadline(platform.timers, WITHIN_MS)
  try {
    const link = await open(limit.signal)
    const leave = () => void link.close()
    limit.signal.addEventListener('abort', leave, { once: true })
    try {
      const codec = llrpCodec()
      let bytes = 0
      for await (const chunk of link.bytes) {
        for (const frame of codec.push(chunk)) {
          const received = decodeMessage(frame)
          const refusal = received.name === 'READER_EVENT_NOTIFICATION' ? connectionRefusal(received) : undefined
          if (refusal !== undefined) return refusal
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
  throw new Error('the peer does not speak LLRP; check address and port (5084)')
}
