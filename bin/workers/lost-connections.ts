import type { Worker } from 'node:cluster'

/** A connection of Node.js without its stream. `fd` is negative after `close`. */
interface ConnectionHandle {
  readonly fd: number
  close(): void
}

/** From this number of recorded connections on, the closed ones are removed from the list. */
const SWEEP_AT = 64

/**
 * Closes the connections that were on their way to this worker when it died. Node.js sends each connection to the
 * worker with a message, and keeps a copy of the connection until the worker confirms. Node.js never closes the copies
 * for a dead worker, so the clients of these connections would wait for ever.
 */
export function closeLostConnections(worker: Worker): void {
  const { process: child } = worker
  const send = child.send.bind(child) as (...args: unknown[]) => boolean
  let sent: ConnectionHandle[] = []
  child.send = (...args: unknown[]): boolean => {
    const [, handle] = args
    if (isConnection(handle)) {
      if (sent.length >= SWEEP_AT) sent = sent.filter(({ fd }) => fd >= 0)
      sent.push(handle)
    }
    return send(...args)
  }
  // Waits for `exit`, because Node.js emits `disconnect` only after the worker has confirmed all connections.
  worker.once('exit', () => {
    for (const handle of sent) if (handle.fd >= 0) handle.close()
    sent = []
    if (child.connected) child.disconnect()
  })
}

function isConnection(value: unknown): value is ConnectionHandle {
  return typeof value === 'object' && value !== null && 'close' in value && 'fd' in value
}
