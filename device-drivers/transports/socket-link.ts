import { connect, type NetConnectOpts, type Socket, isIP } from 'node:net'
import { LinkFault, type ByteLink, type LinkFaultCode } from './byte-link.ts'
import { connect as connectTls, type TLSSocket } from 'node:tls'

/** Maximum unsent bytes. If more bytes wait, the link assumes that the device no longer reads. */
const MAX_UNSENT_BYTES = 65_536
/** Maximum unfinished writes. Each listens to its signal, so that very many would take quadratic time. */
const MAX_UNSENT_WRITES = 1_024

/** A TCP socket of Node, with Node's internal flag that makes `destroy` send a reset. */
type TcpSocket = Socket & { resetAndClosing?: boolean }

/** Options of `socketLink`. */
interface SocketLinkOptions {
  /** Name of the peer in the messages of faults. */
  readonly address: string
  /**
   * The TCP connection that carries the socket. `close` resets this connection. Undefined for a local socket, which has
   * no TCP connection.
   */
  readonly tcp?: TcpSocket
  /** Converts a socket error into a fault. */
  explain(error: NodeJS.ErrnoException): LinkFault
}

/** Makes a link from a connected socket. */
export function socketLink(socket: Socket, { address, tcp, explain }: SocketLinkOptions): ByteLink {
  let closed = false
  let unwritten = 0
  let onWritten = () => {}
  let resolveClosed = () => {}
  const closedPromise = new Promise<void>((resolve) => {
    resolveClosed = resolve
  })
  socket.once('close', resolveClosed)
  // A socket may fail while no call is pending. A later read of `bytes` throws the error.
  socket.on('error', () => {})

  async function* read(): AsyncGenerator<Uint8Array, void> {
    try {
      // The socket stays open when the consumer of `bytes` stops. Only `close` decides whether unsent bytes are still
      // sent.
      for await (const chunk of socket.iterator({ destroyOnReturn: false })) if (!closed) yield chunk as Uint8Array
    } catch (error) {
      if (closed) return
      throw explain(error as Error)
    }
  }

  /**
   * Destroys the connection with a reset. Without the reset, the kernel resends unacknowledged bytes for minutes. An
   * abandoned ON would then open a lock as soon as the network is back.
   */
  function giveUp(): void {
    const destroy = () => {
      // These lines replace `resetAndDestroy`, which would end the process if the TLS socket above this connection is
      // destroyed.
      if (tcp) tcp.resetAndClosing = true
      socket.destroy()
    }
    // While the socket sends its FIN, a reset is impossible. After the event `finish` a reset is possible again.
    const isEnding = socket.writableEnded && socket.writableLength === 0 && !socket.writableFinished
    if (!isEnding) return destroy()
    socket.once('finish', destroy)
    resolveClosed()
  }

  function closeInOrder(flush: AbortSignal): void {
    flush.addEventListener('abort', giveUp, { once: true })
    socket.once('close', () => flush.removeEventListener('abort', giveUp))
    // The peer sends its FIN after it has received all bytes. The data that the peer sends until then is discarded.
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
        if (socket.writableLength > MAX_UNSENT_BYTES || unwritten >= MAX_UNSENT_WRITES)
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

/** Idle time before the kernel sends TCP keepalive probes, ms. */
const KEEPALIVE_AFTER_MS = 5_000

const NO_ANSWER = 'no answer; check cable, power and address'

const CODES: Record<string, [LinkFaultCode, string]> = {
  ECONNREFUSED: ['refused', 'nothing listens there; check the port and that the device is on'],
  ENOTFOUND: ['missing', 'no such host name; use the device’s IP address'],
  EAI_AGAIN: ['missing', 'the host name cannot be looked up now; use the device’s IP address'],
  EHOSTUNREACH: ['unreachable', 'no route to the host; check cable, address and network mask'],
  ENETUNREACH: ['unreachable', 'no route to the network; check cable, address and network mask'],
  ETIMEDOUT: ['unreachable', NO_ANSWER],
}

/** Converts a socket error into a fault that names the fix. */
function explainSocket(address: string, error: NodeJS.ErrnoException, otherwise: LinkFaultCode): LinkFault {
  const [code, fix] = CODES[error.code ?? ''] ?? [otherwise, error.message]
  return new LinkFault(code, `${address}: ${fix}`, { cause: error })
}

interface ConnectOptions {
  /** Name of the peer in the messages of faults. */
  readonly address: string
  /** Text of the fault if the peer does not answer until `signal`. */
  readonly noAnswer: string
  /** Converts a socket error into a fault, while the socket connects (`otherwise` is `unreachable`) and later (`lost`). */
  explain(error: NodeJS.ErrnoException, otherwise: LinkFaultCode): LinkFault
}

/** Connects a socket and makes its link. Rejects with a `LinkFault`. */
export function connectSocket(
  to: NetConnectOpts,
  signal: AbortSignal,
  { address, noAnswer, explain }: ConnectOptions,
): Promise<ByteLink> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    const socket = connect(to)
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
        reject(new LinkFault('unreachable', `${address}: ${noAnswer}`, { cause: signal.reason }))
      })
    const onError = (error: Error) => finish(() => reject(explain(error, 'unreachable')))
    const later = { address, explain: (error: Error) => explain(error, 'lost') }
    const onConnect = () => finish(() => resolve(socketLink(socket, 'path' in to ? later : { ...later, tcp: socket })))
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('error', onError)
    socket.once('connect', onConnect)
  })
}

/**
 * Connects to a device or a serial device server (Moxa, ser2net in raw mode). TCP_NODELAY sends small frames at once.
 * Unread bytes fill the TCP window, which slows the peer down. Rejects with a `LinkFault`.
 */
export function openTcp(host: string, port: number, signal: AbortSignal): Promise<ByteLink> {
  const address = `${host}:${port}`
  const to = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_AFTER_MS }
  return connectSocket(to, signal, {
    address,
    noAnswer: NO_ANSWER,
    explain: (error, otherwise) => explainSocket(address, error, otherwise),
  })
}

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
    const tcp = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_AFTER_MS })
    const socket = connectTls({ socket: tcp, ...named, rejectUnauthorized: false })
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
