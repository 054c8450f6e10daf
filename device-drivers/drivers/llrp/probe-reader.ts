import { deadline } from '../../../policy/platform.ts'
import type { Platform } from '../../../policy/platform.ts'
import { decodeMessage } from '../../protocols/llrp/binary.ts'
import { llrpCodec } from '../../protocols/llrp/frames.ts'
import type { LinkFactory } from '../../transports/byte-link.ts'
import { connectionRefusal } from './notifications.ts'

const WITHIN_MS = 3_000
const MAX_BYTES = 65_536

/**
 * Waits for the greeting of an LLRP reader, says nothing and leaves again: its settings stay as they are. Answers what
 * keeps it from serving us now, null when nothing does. Rejects, with the fix, when no reader answers there.
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
          const said = decodeMessage(frame)
          const refusal = said.name === 'READER_EVENT_NOTIFICATION' ? connectionRefusal(said) : undefined
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
  throw new Error('something answers there and does not greet as an LLRP reader; check address and port (5084)')
}
