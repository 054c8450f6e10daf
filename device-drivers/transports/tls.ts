import { connect as connectTcp, isIP } from 'node:net'
import { connect } from 'node:tls'
import type { TLSSocket } from 'node:tls'
import { LinkFault } from './byte-link.ts'
import type { ByteLink } from './byte-link.ts'
import { socketLink, explainSocket, KEEPALIVE_AFTER_MS } from './socket-link.ts'

const normalizeFingerprint = (fingerprint: string): string => fingerprint.replaceAll(':', '').toUpperCase()

/** Returns the fault of the peer's certificate; null if it is acceptable. */
function certificateFault(socket: TLSSocket, address: string, fingerprint: string | undefined): LinkFault | null {
  const actual = (socket.getPeerCertificate() as { fingerprint256?: string }).fingerprint256 ?? ''
  if (fingerprint !== undefined) {
    if (actual !== '' && normalizeFingerprint(actual) === normalizeFingerprint(fingerprint)) return null
    return new LinkFault(
      'forbidden',
      `${address}: has another certificate than the settings name (${normalizeFingerprint(actual)}); is it the right device?`,
    )
  }
  if (socket.authorized) return null
  const why = String(socket.authorizationError)
  return new LinkFault(
    'forbidden',
    `${address}: this machine does not trust its certificate (${why}); if it is the device’s own, set "fingerprint": "${normalizeFingerprint(actual)}"`,
  )
}

/**
 * Connects over TLS. With a fingerprint, accepts only this certificate and ignores its issuer and age, because devices
 * use self-signed certificates. Without a fingerprint, the certificate must be valid for the host name and trusted by
 * this machine. Rejects with a `LinkFault`.
 */
export function openTls(
  host: string,
  port: number,
  fingerprint: string | undefined,
  signal: AbortSignal,
): Promise<ByteLink> {
  const address = `${host}:${port}`
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    const named = isIP(host) === 0 ? { servername: host } : {}
    const tcp = connectTcp({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_AFTER_MS })
    const socket = connect({ socket: tcp, ...named, rejectUnauthorized: false })
    const finish = (act: () => void) => {
      signal.removeEventListener('abort', onAbort)
      socket.removeListener('error', onError)
      socket.removeListener('secureConnect', onConnect)
      act()
    }
    const giveUp = (fault: LinkFault) =>
      finish(() => {
        socket.on('error', () => {})
        socket.destroy()
        reject(fault)
      })
    const onAbort = () =>
      giveUp(
        new LinkFault('unreachable', `${address}: no answer; check cable, power and address`, { cause: signal.reason }),
      )
    const onError = (error: Error) => giveUp(explainSocket(address, error, 'unreachable'))
    const onConnect = () => {
      const fault = certificateFault(socket, address, fingerprint)
      if (fault) giveUp(fault)
      else
        finish(() =>
          resolve(socketLink(socket, { address, tcp, explain: (error) => explainSocket(address, error, 'lost') })),
        )
    }
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('error', onError)
    socket.once('secureConnect', onConnect)
  })
}
