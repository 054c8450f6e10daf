import type { Clock } from '../../policy/platform.ts'
import { traceLine, type TraceRecord } from '../kit/protocol/codec.ts'
import type { ByteLink } from './byte-link.ts'
import { linkKey } from './link-settings.ts'
import type { AnyLink } from './link-settings.ts'
import type { OpenLink } from './shared-links.ts'

/** Receives the trace lines of a link. Must return at once and not throw. */
export type WriteTrace = (link: string, line: string) => void

/**
 * Wraps `open`: records every byte of the links in both directions, with the time. The trace also contains passwords
 * that a protocol sends.
 */
export function tracedLinks(open: OpenLink, write: WriteTrace, clock: Clock): OpenLink {
  const from = clock.elapsed()
  const nothing: Uint8Array = new Uint8Array(0)

  return async (settings: AnyLink, signal): Promise<ByteLink> => {
    const name = linkKey(settings)
    const record = (kind: TraceRecord['kind'], bytes = nothing) =>
      write(name, traceLine({ atMs: clock.elapsed() - from, kind, bytes }))
    const link = await open(settings, signal)
    record('open')
    let isClosed = false
    const recordClose = () => {
      if (isClosed) return
      isClosed = true
      record('close')
    }

    async function* bytes(): AsyncGenerator<Uint8Array, void> {
      try {
        for await (const chunk of link.bytes) {
          record('in', chunk)
          yield chunk
        }
      } finally {
        recordClose()
      }
    }

    return {
      bytes: { [Symbol.asyncIterator]: bytes },
      write(data, abort) {
        record('out', data)
        return link.write(data, abort)
      },
      close(flush) {
        recordClose()
        return link.close(flush)
      },
    }
  }
}
