/**
 * A two-way stream of bytes to a device: a serial line, a TCP connection or two ends in memory.
 * The driver above cannot tell which. Single use: when it has ended, the factory makes a new one,
 * so no state of an old connection can leak into the next.
 *
 *     driver ── write ──▶ ┌──────────┐ ──▶ device
 *            ◀── bytes ── │ ByteLink │ ◀──
 *                         └──────────┘
 */
export interface ByteLink {
  /**
   * Chunks as they arrive, for one reader. Ends when the other side closes in order, throws a
   * `LinkFault` when the link breaks. An unread link holds a bounded number of bytes.
   */
  readonly bytes: AsyncIterable<Uint8Array>
  /**
   * Resolves once the bytes are handed to the transport. Rejects when the link is gone or `signal`
   * aborts first; even then the device may have received some or all of them.
   */
  write(bytes: Uint8Array, signal: AbortSignal): Promise<void>
  /**
   * Lets go of the transport. What was written and has not arrived is thrown away where that can be done, so that it does not
   * act later; with `flush` it may still arrive until that aborts. May be called again. Never rejects.
   */
  close(flush?: AbortSignal): Promise<void>
}

/** Opens a fresh link, or rejects with a `LinkFault` that says what to do. */
export type LinkFactory = (signal: AbortSignal) => Promise<ByteLink>

/** Why a link could not be opened or did not last. */
export type LinkFaultCode =
  | 'missing' // no such port or host
  | 'busy' // another program holds it
  | 'forbidden' // the operating system does not let us
  | 'refused' // the host is there, nothing listens
  | 'unreachable' // no way to the host, or no answer in time
  | 'unsupported' // this machine cannot open such a link
  | 'lost' // it was open and broke

/** A link that could not be opened or broke; the message names the port or address and the fix. */
export class LinkFault extends Error {
  override name = 'LinkFault'
  readonly code: LinkFaultCode

  constructor(code: LinkFaultCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
