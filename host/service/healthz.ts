import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** Maximum time until `/healthz` answers, ms. */
const ANSWER_WITHIN_MS = 10_000
/** Addresses that listen on all networks, and the address of this machine that reaches them. */
const ALL_NETWORKS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/**
 * True if the server on this port answers `/healthz`. A server that closes the connection also counts as alive: it does
 * so at its limit of connections, and a restart would not help.
 */
export function answersHealthz(
  host: string,
  port: number,
  hasTls = false,
  withinMs = ANSWER_WITHIN_MS,
): Promise<boolean> {
  return new Promise((resolve) => {
    let isConnected = false
    const address = { host: ALL_NETWORKS[host] ?? host, port, timeout: withinMs }
    // Does not check the certificate: a restart would not renew it.
    const socket: Socket = hasTls ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address)
    socket.once(hasTls ? 'secureConnect' : 'connect', () =>
      socket.write('GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'),
    )
    socket.once('connect', () => void (isConnected = true))
    const end = (isAlive: boolean) => {
      socket.destroy()
      resolve(isAlive)
    }
    socket.once('data', () => end(true))
    socket.once('timeout', () => end(false))
    socket.once('error', () => end(isConnected))
    socket.once('close', () => end(isConnected))
  })
}
