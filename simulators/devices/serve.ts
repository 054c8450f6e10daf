import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'

/** A simulated device on a TCP port. */
export interface TcpService {
  /** The port that was taken. */
  readonly port: number
  /** Connections that are open now. */
  readonly connections: number
  /** Breaks all connections as a pulled cable or a reset does; new ones are accepted. */
  cut(): void
  /** Stops listening and ends all connections. */
  close(): Promise<void>
}

export interface TcpServiceOptions {
  /** 0 takes any free port. */
  readonly port: number
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Speaks the device's protocol on one connection. */
  serve(link: ByteLink): Promise<void>
}

const MOST_CONNECTIONS = 64

function socketLink(socket: Socket): ByteLink {
  return {
    bytes: socket,
    write: (bytes) => new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve()))),
    close: () =>
      new Promise((resolve) => {
        if (socket.closed) return resolve()
        socket.once('close', () => resolve())
        socket.destroySoon()
      }),
  }
}

/** Serves a simulated device over TCP, as a Modbus TCP board or a serial device server would. Rejects when the port is taken. */
export function serveTcp(options: TcpServiceOptions): Promise<TcpService> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    void options.serve(socketLink(socket)).finally(() => socket.destroySoon())
  })
  server.maxConnections = MOST_CONNECTIONS

  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host ?? '127.0.0.1', () => {
      server.removeListener('error', reject)
      const address = server.address()
      resolve({
        port: typeof address === 'object' && address ? address.port : options.port,
        get connections() {
          return sockets.size
        },
        cut: () => sockets.forEach((socket) => socket.resetAndDestroy()),
        close: () =>
          new Promise((done) => {
            server.close(() => done())
            for (const socket of sockets) socket.destroy()
          }),
      })
    })
  })
}
