import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { watchHandshakes } from '../cloud/platform/foundation/tls-handshakes.ts'
import { waitingConnections } from '../cloud/platform/foundation/waiting-connections.ts'
import { rateLimitedLog, type RateLimitedLog, type WriteLogLine } from '../policy/rate-limited-log.ts'
import type { Cancel, Platform } from '../policy/platform.ts'
import type { HttpLimits } from './connection-limits.ts'

/** Maximum wait for the first request, ms. Node.js times out slow requests, but not connections that send nothing. */
const FIRST_REQUEST_MS = 15_000

/** Maximum time in which a client reads nothing of a response, ms. */
const STALLED_MS = 30_000

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
  const tooMany = `${limits.waiting} connections wait for their request`

  function cut(socket: Socket, why: string): void {
    log.write({ from: socket.remoteAddress, why }, 'an HTTP connection was cut')
    socket.destroy()
  }

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
    // A `data` listener would slow down every request, because Node.js would copy each received buffer for it.
    const cancel = platform.timers.after(FIRST_REQUEST_MS, () => cut(socket, 'no request came'))
    silent.set(socket, cancel)
    socket.once('close', () => {
      cancel()
      leave(socket)
    })
    wait(socket)
  })
  // First, because the app may respond at once.
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    silent.get(socket)?.()
    if (hasBody(request)) request.once('end', () => leave(socket))
    else leave(socket)
    response.once('prefinish', () => wait(socket))
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
