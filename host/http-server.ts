import { createServer, type Server, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTlsServer, type Server as HttpsServer } from 'node:https'
import { createServer as createTcpServer, Server as TcpServer, type AddressInfo, type Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { JSON_HEADERS } from '../cloud/service/http/public-access.ts'
import type { ServerCertificate } from '../cloud/platform/foundation/config.ts'
import {
  BACKLOG,
  networkOf,
  waitingConnections,
  watchHandshakes,
} from '../cloud/platform/foundation/waiting-connections.ts'
import { type WriteLogLine, rateLimitedLog, type RateLimitedLog } from '../policy/rate-limited-log.ts'
import type { Platform, Cancel } from '../policy/platform.ts'
import { realPlatform } from './platform.ts'
import { jsx } from 'hono/jsx'
import { guardRequests, isRefused, onMessage, unreadAnswers } from './request-guard.ts'
import { BROKER_LIMITS, type BrokerLimits } from '../cloud/service/messaging/packet-guard.ts'
import { existsSync, readFileSync } from 'node:fs'

/** Limits for the connections of an HTTP server. */
export interface HttpLimits {
  /** Maximum number of connections. */
  most: number
  /** Maximum number of connections without a complete request: idle connections and slow senders. */
  waiting: number
}

const HTTP_LIMITS: HttpLimits = { most: 10_000, waiting: 2_000 }

/**
 * The limits of this process. If the limit of open files is low, these limits are smaller, so that enough files remain
 * for the database.
 */
export function connectionLimits(files = fileLimit()): { http: HttpLimits; broker: BrokerLimits } {
  const unauthenticated = Math.min(BROKER_LIMITS.unauthenticated, Math.floor(files / 32))
  return {
    http: {
      most: Math.min(HTTP_LIMITS.most, Math.floor(files / 2)),
      waiting: Math.min(HTTP_LIMITS.waiting, Math.floor(files / 8)),
    },
    broker: {
      agents: Math.min(BROKER_LIMITS.agents, Math.floor(files / 4)),
      unauthenticated,
      unauthenticatedPerNetwork: Math.min(BROKER_LIMITS.unauthenticatedPerNetwork, Math.ceil(unauthenticated / 2)),
    },
  }
}

/** Maximum number of open files. Node.js raises the soft limit to the hard limit at its start. */
function fileLimit(): number {
  if (!existsSync('/proc/self/limits')) return Infinity
  return Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
}

/**
 * Makes hono/jsx render without AsyncLocalStorage. Call it before the first page.
 *
 * Hono uses AsyncLocalStorage for asynchronous components; untag has none. On Node 20 and 22 the first use of
 * AsyncLocalStorage enables async hooks for the whole process. These hooks cost a tenth of the CPU time of every later
 * request (test/bench/). Hono looks for AsyncLocalStorage only once, so this function hides AsyncLocalStorage during a first
 * render.
 */
export function renderPlainly(): void {
  const { getBuiltinModule } = process
  process.getBuiltinModule = () => undefined
  try {
    String(jsx('p', {}))
  } finally {
    process.getBuiltinModule = getBuiltinModule
  }
}

/** Maximum wait for the first request, ms. Node.js times out slow requests, but not connections that send nothing. */
const FIRST_REQUEST_MS = 15_000

/** Maximum time in which a client reads nothing of a response, ms. */
const STALLED_MS = 30_000

/** Smaller answers that are not read are not counted: the limits of connections bound them. */
const COUNTED_FROM = 64 * 1024

/**
 *   connect ─▶ waiting ─▶ request complete ─▶ response ready ─▶ waiting …
 *                 └─ over the limit: cut the oldest waiting connection of the address that has most
 *
 * Cuts only waiting connections, never a connection whose response is not ready. So a client that does not read its
 * response waits, too. A streamed response is cut if the client reads nothing for a while. With TLS, a connection also
 * waits during its handshake. When the server closes, call `stop` of the returned object.
 */
export function limitConnections(
  server: Server,
  limits: HttpLimits,
  platform: Pick<Platform, 'clock' | 'timers'>,
  write: WriteLogLine,
  hasTls = false,
): Pick<RateLimitedLog, 'stop'> & { cutHandshakes(): void } {
  const log = rateLimitedLog(write, platform)
  const waiting = waitingConnections({ most: limits.waiting, mostOfNetwork: limits.waiting })
  const leaving = new WeakMap<Socket, () => void>()
  const silent = new WeakMap<Socket, Cancel>()
  const unread = unreadAnswers()
  const tooMany = `${limits.waiting} connections wait for their request`

  function cut(socket: Socket, why: string): void {
    log.write({ from: socket.remoteAddress, why }, 'an HTTP connection was cut')
    socket.destroy()
  }

  guardRequests(server, hasTls, cut)
  const leave = (socket: Socket) => leaving.get(socket)?.()
  function wait(socket: Socket): void {
    leave(socket)
    if (!socket.destroyed)
      leaving.set(
        socket,
        waiting.add(socket.remoteAddress ?? '', () => cut(socket, tooMany)),
      )
  }

  server.maxConnections = limits.most
  server.on('drop', (from) =>
    log.write(
      { from: from?.remoteAddress, why: `${limits.most} connections are open` },
      'an HTTP connection was refused',
    ),
  )
  const cutHandshakes = hasTls
    ? watchHandshakes(server, (socket) => waiting.add(socket.remoteAddress ?? '', () => cut(socket, tooMany)))
    : () => undefined
  server.on(hasTls ? 'secureConnection' : 'connection', (socket: Socket) => {
    const cancel = platform.timers.after(FIRST_REQUEST_MS, () => cut(socket, 'no request came'))
    silent.set(socket, cancel)
    socket.once('close', () => {
      cancel()
      leave(socket)
    })
    wait(socket)
  })
  onMessage(server, ({ request, response }) => {
    if (isRefused(request)) return
    const { socket } = request
    silent.get(socket)?.()
    if (hasBody(request)) request.once('end', () => leave(socket))
    else leave(socket)
    response.once('prefinish', () => {
      wait(socket)
      const bytes = socket.writableLength
      if (bytes < COUNTED_FROM) return
      const network = networkOf(socket.remoteAddress ?? '')
      const end = unread.add({ network, bytes, cut: () => cut(socket, 'too many answers are not read') })
      response.once('finish', end)
      response.once('close', end)
    })
    response.once('close', () => wait(socket))
  })
  server.setTimeout(STALLED_MS, (socket: Socket) => {
    if (socket.writableLength > 0) cut(socket, 'the client does not read the response')
    else socket.setTimeout(STALLED_MS)
  })
  return { stop: log.stop, cutHandshakes }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** A listening HTTP server. It responds with 503 until `serve` is called. */
export interface HttpServer {
  readonly port: number
  serve(app: Pick<Hono, 'fetch'>): void
  /** Accepts no more connections, cuts idle ones, and waits a limited time for running requests. */
  close(): Promise<void>
  /**
   * Like `close`, but lets clients end idle connections, so that no request is lost that is already on its way.
   * Each further response ends its connection.
   */
  drain(): Promise<void>
}

/** Timeouts for slow clients, ms. Node's defaults are a minute and more. */
const SERVER_OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 5_000,
  maxHeaderSize: 16_384,
}
/** Maximum time of a TLS handshake, ms. */
const HANDSHAKE_MS = 10_000
const CLOSE_WITHIN_MS = 5_000
/** Maximum time for running requests and idle connections, ms. Longer than `keepAliveTimeout`. */
const DRAIN_WITHIN_MS = 20_000

interface ListenOptions {
  host: string
  port: number
  flag: string
  limits?: HttpLimits
  platform?: Pick<Platform, 'clock' | 'timers'>
  /** Logs refused and cut connections. Default: no log. */
  warn?: WriteLogLine
  /** Serves HTTPS with this certificate instead of HTTP. */
  certificate?: ServerCertificate | undefined
}

/**
 * Requests that begin in one turn of the event loop. Node.js accepts one connection in a turn: with hundreds of busy
 * connections and all their requests in each turn, it would accept some twenty connections a second of all clients.
 */
const BEGUN_IN_TURN = 8

/** Begins few requests in each turn of the event loop, the others in the next turns. Each connection waits with one. */
function inTurns(perform: RequestListener): RequestListener {
  const waiting: Parameters<RequestListener>[] = []
  let begun = 0
  let isPlanned = false
  const plan = () => {
    if (!isPlanned) setImmediate(turn)
    isPlanned = true
  }
  const begin = (...[request, response]: Parameters<RequestListener>) => {
    begun++
    plan()
    if (!response.destroyed) perform(request, response)
  }
  const turn = () => {
    isPlanned = false
    begun = 0
    for (const each of waiting.splice(0, BEGUN_IN_TURN)) begin(...each)
  }
  return (request, response) => {
    if (begun < BEGUN_IN_TURN && waiting.length === 0) begin(request, response)
    else waiting.push([request, response])
  }
}

/** Starts a server. If the server cannot listen, rejects with an error that names the port and the option. */
export async function listen(options: ListenOptions): Promise<HttpServer> {
  const { host, port, limits = connectionLimits().http, platform = realPlatform(), warn = () => undefined } = options
  const { certificate } = options
  renderPlainly()
  let app: Pick<Hono, 'fetch'> | undefined
  const starting = () =>
    new Response(
      JSON.stringify({ error: 'starting', code: 'unavailable', fix: 'Send the request again in a second.' }),
      {
        status: 503,
        headers: { ...JSON_HEADERS, 'content-type': 'application/json', 'retry-after': '1' },
      },
    )
  const answer = getRequestListener((request, env) => (app ? app.fetch(request, env) : starting()))
  const perform = inTurns((request, response) => void (isRefused(request) || answer(request, response)))
  const server = certificate
    ? createTlsServer({ ...SERVER_OPTIONS, ...certificate.options(), handshakeTimeout: HANDSHAKE_MS }, perform)
    : createServer(SERVER_OPTIONS, perform)
  certificate?.attach(server as Server & HttpsServer)
  const connections = limitConnections(server, limits, platform, warn, certificate !== undefined)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, options)))
    server.listen({ port, host, backlog: BACKLOG }, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    serve: (made) => void (app = made),
    close: () => {
      connections.stop()
      return ended(server, connections, CLOSE_WITHIN_MS, (done) => server.close(done))
    },
    drain: () => {
      connections.stop()
      server.prependListener('request', (_request, response) => response.setHeader('connection', 'close'))
      // When the listening socket closes, the kernel resets connections that are not accepted yet. So the close follows
      // directly after the event loop has accepted the waiting connections.
      // `close` of `http.Server` would also cut idle connections.
      return ended(server, connections, DRAIN_WITHIN_MS, (done) =>
        setImmediate(() => TcpServer.prototype.close.call(server, done)),
      )
    },
  }
}

/** Closes the server. Cuts the connections that are still open after `withinMs`. */
function ended(
  server: Server,
  connections: { cutHandshakes(): void },
  withinMs: number,
  close: (done: () => void) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => {
      server.closeAllConnections()
      connections.cutHandshakes()
    }, withinMs)
    close(() => {
      clearTimeout(cut)
      resolve()
    })
  })
}

export function explain(
  error: NodeJS.ErrnoException,
  { host, port, flag }: { host: string; port: number; flag: string },
): Error {
  if (error.code === 'EADDRINUSE')
    return new Error(`port ${port} is taken: stop what uses it, or choose another with --${flag}`)
  if (error.code === 'EACCES')
    return new Error(`port ${port} may not be used by this user: choose one above 1023 with --${flag}`)
  if (error.code === 'EADDRNOTAVAIL')
    return new Error(`${host} is not an address of this machine: choose another with --host`)
  return error
}

/** A port for a server that starts later. */
export interface ReservedPort {
  port: number
  release(): Promise<void>
}

/**
 * Finds out if a port is free. If another program uses the port, rejects with an error that names the option. 0 chooses
 * a free port, which no other program can take until `release`. A named port is free at once: a reserved port would
 * accept the requests of a proxy and lose them.
 */
export async function reservePort(address: { host: string; port: number; flag: string }): Promise<ReservedPort> {
  const server = createTcpServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, address)))
    server.listen({ port: address.port, host: address.host, exclusive: true }, resolve)
  })
  const { port } = server.address() as AddressInfo
  let released: Promise<void> | undefined
  const release = () => (released ??= new Promise((resolve) => void server.close(() => resolve())))
  if (address.port !== 0) await release()
  return { port, release }
}
