/**
 * A two-way stream of bytes to a device: a serial line, a TCP connection or two ends in memory. Drivers work alike on
 * all of them.
 * A link is used once. After it ended, the factory makes a new one, so no state passes from one connection to the next.
 */
export interface ByteLink {
  /**
   * Chunks in the order of arrival, for one reader. Ends when the other side closes the link properly; throws a `LinkFault`
   * when the link breaks. The number of unread bytes is bounded.
   */
  readonly bytes: AsyncIterable<Uint8Array>
  /**
   * Resolves when the transport has accepted the bytes. Rejects when the link is gone or `signal` aborts first; the
   * device may then have received some or all of them.
   */
  write(bytes: Uint8Array, signal: AbortSignal): Promise<void>
  /**
   * Closes the transport. Discards unsent bytes where the transport allows it, so that no old command acts later. With
   * `flush`, they are still sent until `flush` aborts. Idempotent, never rejects.
   */
  close(flush?: AbortSignal): Promise<void>
}

/** Opens a new link. Rejects with a `LinkFault` that says what to do. */
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
