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
