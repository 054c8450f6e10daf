import { mkdirSync, rmSync, statSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { dirname } from 'node:path'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import {
  encodeChunk,
  encodeResponse,
  HttpParser,
  type HttpHeaders,
} from '../../device-drivers/kit/protocol/http-message.ts'

/** One request to a simulated device. */
export interface SimulatedRequest {
  readonly method: string
  readonly path: string
  readonly headers: HttpHeaders
  readonly body: string
}

/** A chunked body without end. */
export interface OpenBody {
  write(text: string): Promise<void>
  end(): Promise<void>
}

export type SimulatedAnswer =
  | { readonly status: number; readonly body?: string; readonly close?: boolean }
  /** Status 200 with a body that `stream` writes until the link ends. */
  | { readonly stream: (body: OpenBody) => void }
  /** No answer. */
  | 'silence'

const MAX_BODY_BYTES = 1_048_576
const NEVER_ABORTED = new AbortController().signal

/** Answers requests on one link, one after the other, until it ends. */
export async function serveHttp(
  link: ByteLink,
  answer: (request: SimulatedRequest) => SimulatedAnswer | Promise<SimulatedAnswer>,
): Promise<void> {
  const parser = new HttpParser('requests')
  const send = (bytes: Uint8Array) => link.write(bytes, NEVER_ABORTED)
  let head: Omit<SimulatedRequest, 'body'> | null = null
  let body: Uint8Array[] = []
  let size = 0

  /** Answers a request. Resolves with false if the connection must close. */
  async function respond(request: SimulatedRequest): Promise<boolean> {
    const answered = await answer(request)
    if (answered === 'silence') return true
    if ('stream' in answered) {
      await send(encodeResponse(200, { 'content-type': 'application/json' }))
      answered.stream({
        write: (text) => send(encodeChunk(text)).catch(() => {}),
        end: () =>
          send(encodeChunk('')).then(
            () => link.close(),
            () => {},
          ),
      })
      return true
    }
    await send(
      encodeResponse(
        answered.status,
        { 'content-type': 'application/json', ...(answered.close && { connection: 'close' }) },
        answered.body ?? '',
      ),
    )
    return !answered.close
  }

  try {
    for await (const chunk of link.bytes) {
      for (const piece of parser.push(chunk)) {
        if (piece.kind === 'request') {
          head = piece
          body = []
          size = 0
        } else if (piece.kind === 'data') {
          size += piece.bytes.length
          if (size > MAX_BODY_BYTES) return
          body.push(piece.bytes)
        } else if (head && !(await respond({ ...head, body: Buffer.concat(body).toString('utf8') }))) return
      }
      if (parser.fault !== null) return
    }
  } catch {
    // Ignores the error, because a broken link is like an unplugged device.
  } finally {
    await link.close()
  }
}

/** A simulated device that listens for connections. */
interface Service {
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
