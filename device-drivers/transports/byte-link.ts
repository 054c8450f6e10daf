import { deadline, type Platform } from '../../policy/platform.ts'

/**
 * A two-way stream of bytes to a device: a serial line, a TCP connection or two ends in memory. Drivers work in the
 * same way on all three. After a link has ended, the factory makes a new link, so that each connection starts without
 * old state.
 */
export interface ByteLink {
  /**
   * Received chunks in order, for one consumer. Ends when the peer closes the link properly, and throws a `LinkFault`
   * when the link breaks. The number of unread bytes is bounded.
   */
  readonly bytes: AsyncIterable<Uint8Array>
  /**
   * Resolves when the transport has accepted the bytes. Rejects when the link is gone or `signal` aborts first. In
   * these cases the device may have received some or all of the bytes.
   */
  write(bytes: Uint8Array, signal: AbortSignal): Promise<void>
  /**
   * Closes the transport. If the transport can, discards unsent bytes, because the device must not execute an old
   * command later. With `flush`, sends unsent bytes until `flush` aborts. Idempotent, never rejects.
   */
  close(flush?: AbortSignal): Promise<void>
}

/** Opens a new link. Rejects with a `LinkFault` that names the fix. */
export type LinkFactory = (signal: AbortSignal) => Promise<ByteLink>

/** Why a link could not be opened, or broke. */
export type LinkFaultCode =
  | 'missing' // no such port or host
  | 'busy' // another program uses it
  | 'forbidden' // the operating system denies access
  | 'refused' // the host answers, nothing listens on the port
  | 'unreachable' // no route to the host, or no answer in time
  | 'unsupported' // this machine cannot open such a link
  | 'lost' // it was open and broke

/** A link could not be opened, or broke. The message names the port or address and the fix. */
export class LinkFault extends Error {
  override name = 'LinkFault'
  readonly code: LinkFaultCode

  constructor(code: LinkFaultCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Time for a peer to show its protocol, ms. */
const SHOWN_WITHIN_MS = 3_000

/** How to learn from a peer what it is. */
interface Probe<T> {
  /** Bytes after which the peer counts as something else. */
  readonly maxBytes: number
  /** Sent first, if the peer must be asked. */
  readonly request?: Uint8Array
  /** Receives each chunk. A value other than undefined ends the probe. */
  read(chunk: Uint8Array): T | undefined
}

/**
 * Opens a link, reads it until `read` returns a value, and closes it. Returns undefined if the link ends or sends too
 * much before that. Rejects after 3 s.
 */
export async function probeLink<T>(
  open: LinkFactory,
  { timers }: Pick<Platform, 'timers'>,
  { maxBytes, request, read }: Probe<T>,
): Promise<T | undefined> {
  const limit = deadline(timers, SHOWN_WITHIN_MS)
  try {
    const link = await open(limit.signal)
    const leave = () => void link.close()
    limit.signal.addEventListener('abort', leave, { once: true })
    try {
      if (request) await link.write(request, limit.signal)
      let bytes = 0
      for await (const chunk of link.bytes) {
        const found = read(chunk)
        if (found !== undefined) return found
        bytes += chunk.length
        if (bytes > maxBytes) break
      }
    } finally {
      limit.signal.removeEventListener('abort', leave)
      await link.close()
    }
  } finally {
    limit.done()
  }
  return undefined
}
