import type { Worker } from 'node:cluster'

/** A connection of Node.js without its stream. `fd` is negative after `close`. */
interface ConnectionHandle {
  readonly fd: number
  close(): void
}

/** Above this number, closed connections are forgotten. */
const SWEEP_AT = 64

/**
 * Closes the connections that were on their way to this worker when it died. Node.js hands each connection over with a
 * message and keeps its own copy until the worker confirms. It keeps the copies for a dead worker open for ever, so
 * their clients would wait without end.
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
  // Not at `disconnect`, which Node.js does not emit while the worker has not confirmed a connection.
  worker.once('exit', () => {
    for (const handle of sent) if (handle.fd >= 0) handle.close()
    sent = []
    if (child.connected) child.disconnect()
  })
}

function isConnection(value: unknown): value is ConnectionHandle {
  return typeof value === 'object' && value !== null && 'close' in value && 'fd' in value
}
