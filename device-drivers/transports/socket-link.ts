import type { Socket } from 'node:net'
import { LinkFault } from './byte-link.ts'
import type { ByteLink } from './byte-link.ts'

/** Bytes that may wait to be sent; a device that reads nothing for so long is not listening. */
const MAX_UNSENT_BYTES = 65_536

/** A TCP connection in Node, with its switch for the way it goes. */
type TcpSocket = Socket & { resetAndClosing?: boolean }

/** How a socket becomes a link. */
export interface SocketLinkOptions {
  /** What the other side is called in faults. */
  readonly address: string
  /** The connection that carries the bytes, which is reset when the link is given up; a local socket has none. */
  readonly tcp?: TcpSocket
  /** Makes the fault of an error on the socket. */
  explain(error: NodeJS.ErrnoException): LinkFault
}

/** A connected socket as a link. */
export function socketLink(socket: Socket, { address, tcp, explain }: SocketLinkOptions): ByteLink {
  let closed = false
  let unwritten = 0
  let onWritten = () => {}
  let resolveClosed = () => {}
  const closedPromise = new Promise<void>((resolve) => {
    resolveClosed = resolve
  })
  socket.once('close', resolveClosed)
  // A socket may fail while nobody reads or writes; the reader finds the error later.
  socket.on('error', () => {})

  async function* read(): AsyncGenerator<Uint8Array, void> {
    try {
      // Who stops reading has not closed the link: only `close` decides what becomes of what was written.
      for await (const chunk of socket.iterator({ destroyOnReturn: false })) if (!closed) yield chunk as Uint8Array
    } catch (error) {
      if (closed) return
      throw explain(error as Error)
    }
  }

  /**
   * Once a socket is merely destroyed, the kernel goes on sending what nobody has acknowledged, for minutes: an ON that was
   * given up long ago would open a lock as soon as the network is back. A reset throws it away.
   */
  function giveUp(): void {
    const destroy = () => {
      // What `resetAndDestroy` does. Called on the connection beneath a TLS socket that is destroyed too it kills the process.
      if (tcp) tcp.resetAndClosing = true
      socket.destroy()
    }
    // While an end is being said there is no reset; it is over with the next turn of the loop.
    const isEnding = socket.writableEnded && socket.writableLength === 0 && !socket.writableFinished
    if (!isEnding) return destroy()
    socket.once('finish', destroy)
    resolveClosed()
  }

  function closeInOrder(flush: AbortSignal): void {
    flush.addEventListener('abort', giveUp, { once: true })
    socket.once('close', () => flush.removeEventListener('abort', giveUp))
    // The other side answers our end with its own once it has everything; to see that, what it still says is read away.
    socket.resume()
    onWritten = () => void (unwritten === 0 && !socket.destroyed && socket.end())
    onWritten()
  }

  return {
    bytes: { [Symbol.asyncIterator]: read },
    write: (bytes, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error)
        if (socket.destroyed || !socket.writable)
          return reject(new LinkFault('lost', `${address}: the connection is closed`))
        if (socket.writableLength > MAX_UNSENT_BYTES)
          return reject(new LinkFault('lost', `${address}: the device reads nothing`))
        const onAbort = () => reject(signal.reason as Error)
        signal.addEventListener('abort', onAbort, { once: true })
        unwritten++
        socket.write(bytes, (error) => {
          unwritten--
          onWritten()
          signal.removeEventListener('abort', onAbort)
          if (error) reject(explain(error))
          else resolve()
        })
      }),
    close(flush) {
      closed = true
      if (socket.closed) resolveClosed()
      else if (flush && !flush.aborted) closeInOrder(flush)
      else giveUp()
      return closedPromise
    },
  }
}
