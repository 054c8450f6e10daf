import { mkdirSync, rmSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { dirname } from 'node:path'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'

/** A simulated device that listens for connections. */
export interface Service {
  /** Number of open connections. */
  readonly connections: number
  /** Breaks all connections, like a pulled cable. The device still accepts new connections. */
  cut(): void
  /** Stops listening and ends all connections. */
  close(): Promise<void>
}

/** A simulated device on a TCP port. */
export interface TcpService extends Service {
  /** The actual port. */
  readonly port: number
}

export interface TcpServiceOptions {
  /** 0 picks a free port. */
  readonly port: number
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Serves the device's protocol on one connection. */
  serve(link: ByteLink): Promise<void>
}

const MAX_CONNECTIONS = 64

function socketLink(socket: Socket): ByteLink {
  return {
    bytes: socket,
    write: (bytes) =>
      new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve()))),
    close: () =>
      new Promise((resolve) => {
        if (socket.closed) return resolve()
        socket.once('close', () => resolve())
        socket.destroySoon()
      }),
  }
}

async function listenAt(
  where: { readonly port: number; readonly host: string } | { readonly path: string },
  serve: TcpServiceOptions['serve'],
): Promise<TcpService> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    void serve(socketLink(socket)).finally(() => socket.destroySoon())
  })
  server.maxConnections = MAX_CONNECTIONS
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    get connections() {
      return sockets.size
    },
    cut: () => sockets.forEach((socket) => socket.resetAndDestroy()),
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/**
 * Serves a simulated device over TCP, like a Modbus TCP board or a serial device server. Rejects if the port is in use.
 */
export function serveTcp({ port, host = '127.0.0.1', serve }: TcpServiceOptions): Promise<TcpService> {
  return listenAt({ port, host }, serve)
}

/**
 * Serves a simulated device on a Unix socket, like pcscd. Creates the folder and replaces a stale socket. Rejects if a
 * process listens at `path`, or if `path` is another kind of file.
 */
export async function serveSocket(path: string, serve: TcpServiceOptions['serve']): Promise<Service> {
  mkdirSync(dirname(path), { recursive: true })
  if (await isLeftBehind(path)) rmSync(path)
  return listenAt({ path }, serve)
}

/** True if `path` is a socket that no process listens on. */
function isLeftBehind(path: string): Promise<boolean> {
  if (!statSync(path, { throwIfNoEntry: false })?.isSocket()) return Promise.resolve(false)
  return new Promise((resolve) => {
    const socket = connect({ path })
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}
