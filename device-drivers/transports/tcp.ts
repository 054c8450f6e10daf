import { connect } from 'node:net'
import { LinkFault } from './byte-link.ts'
import type { ByteLink, LinkFaultCode } from './byte-link.ts'
import { socketLink } from './socket-link.ts'

/** Idle time before the kernel sends TCP keepalive probes, ms. */
export const KEEPALIVE_AFTER_MS = 5_000

const CODES: Record<string, [LinkFaultCode, string]> = {
  ECONNREFUSED: ['refused', 'nothing listens there; check the port and that the device is on'],
  ENOTFOUND: ['missing', 'no such host name; use the device’s IP address'],
  EAI_AGAIN: ['missing', 'the host name cannot be looked up now; use the device’s IP address'],
  EHOSTUNREACH: ['unreachable', 'no route to the host; check cable, address and network mask'],
  ENETUNREACH: ['unreachable', 'no route to the network; check cable, address and network mask'],
  ETIMEDOUT: ['unreachable', 'no answer; check cable, power and address'],
}

/** Converts a socket error into a fault that names the fix. */
export function explainSocket(address: string, error: NodeJS.ErrnoException, otherwise: LinkFaultCode): LinkFault {
  const [code, fix] = CODES[error.code ?? ''] ?? [otherwise, error.message]
  return new LinkFault(code, `${address}: ${fix}`, { cause: error })
}

/**
 * Connects to a device or a serial device server (Moxa, ser2net in raw mode). TCP_NODELAY sends small frames at once.
 * Unread bytes fill the TCP window, which slows the peer down. Rejects with a `LinkFault`.
 */
export function openTcp(host: string, port: number, signal: AbortSignal): Promise<ByteLink> {
  const address = `${host}:${port}`
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    const socket = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_AFTER_MS })
    const finish = (act: () => void) => {
      signal.removeEventListener('abort', onAbort)
      socket.removeListener('error', onError)
      socket.removeListener('connect', onConnect)
      act()
    }
    const onAbort = () =>
      finish(() => {
        socket.on('error', () => {})
        socket.destroy()
        reject(new LinkFault('unreachable', `${address}: ${CODES['ETIMEDOUT']?.[1]}`, { cause: signal.reason }))
      })
    const onError = (error: Error) => finish(() => reject(explainSocket(address, error, 'unreachable')))
    const explain = (error: Error) => explainSocket(address, error, 'lost')
    const onConnect = () => finish(() => resolve(socketLink(socket, { address, tcp: socket, explain })))
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('error', onError)
    socket.once('connect', onConnect)
  })
}
