import type { Socket } from 'node:net'
import { LinkFault } from './byte-link.ts'
import type { ByteLink } from './byte-link.ts'

/** Bytes that may wait to be sent; a device that reads nothing for so long is not listening. */
const MOST_UNSENT_BYTES = 65_536

/** A connected socket as a link; `explain` makes the fault of an error on it. */
export function socketLink(socket: Socket, address: string, explain: (error: NodeJS.ErrnoException) => LinkFault): ByteLink {
  let closed = false
  // A socket may fail while nobody reads or writes; the reader finds the error later.
  socket.on('error', () => {})

  async function* read(): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of socket) yield chunk as Uint8Array
    } catch (error) {
      if (closed) return
      throw explain(error as Error)
    }
  }

  return {
    bytes: { [Symbol.asyncIterator]: read },
    write: (bytes, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error)
        if (socket.destroyed || !socket.writable) return reject(new LinkFault('lost', `${address}: the connection is closed`))
        if (socket.writableLength > MOST_UNSENT_BYTES) return reject(new LinkFault('lost', `${address}: the device reads nothing`))
        const onAbort = () => reject(signal.reason as Error)
        signal.addEventListener('abort', onAbort, { once: true })
        socket.write(bytes, (error) => {
          signal.removeEventListener('abort', onAbort)
          if (error) reject(explain(error))
          else resolve()
        })
      }),
    close: () =>
      new Promise((resolve) => {
        closed = true
        if (socket.closed) return resolve()
        socket.once('close', () => resolve())
        socket.destroy()
      }),
  }
}
