import { connect } from 'node:net'
import { LinkFault } from './byte-link.ts'
import type { ByteLink, LinkFaultCode } from './byte-link.ts'
import { socketLink } from './socket-link.ts'

const INSTALL =
  'install the packages pcscd and libccid (apt install pcscd libccid) and start it (systemctl enable --now pcscd.socket)'

const CODES: Record<string, [LinkFaultCode, string]> = {
  ENOENT: ['missing', `pcscd is not there; ${INSTALL}`],
  ECONNREFUSED: ['refused', 'pcscd is not running; start it (systemctl enable --now pcscd.socket)'],
  EACCES: ['forbidden', 'no permission; run the agent as a user that may open this socket'],
}

/**
 * Connects to the Unix socket of pcscd, the Linux daemon for smart-card and NFC readers. One connection serves one
 * client, which can use all readers. Rejects with a `LinkFault`.
 */
export function openPcscd(path: string, signal: AbortSignal): Promise<ByteLink> {
  const explain = (error: NodeJS.ErrnoException) => {
    const [code, text] = CODES[error.code ?? ''] ?? (['lost', `pcscd broke the connection (${error.message})`] as const)
    return new LinkFault(code, `${path}: ${text}`, { cause: error })
  }
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    if (process.platform !== 'linux')
      return reject(new LinkFault('unsupported', 'pcscd runs on Linux only; leave link.via out'))
    const socket = connect({ path })
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
        reject(new LinkFault('unreachable', `${path}: pcscd takes no connections`, { cause: signal.reason }))
      })
    const onError = (error: Error) => finish(() => reject(explain(error)))
    const onConnect = () => finish(() => resolve(socketLink(socket, { address: path, explain })))
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('error', onError)
    socket.once('connect', onConnect)
  })
}
