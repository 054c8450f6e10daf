import { subscribe } from 'node:diagnostics_channel'
import { IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Bytes that the parser gets at once; Node.js would give it a whole buffer of 64 KB. Every request of a slice costs, also
 * those after the cut. So slices are short, but those inside a body of known length.
 */
const SLICE = { bytes: 256, bodyBytes: 16_384 }
/** Chunks of a body that are free, and the mean size that all further chunks must have, bytes. */
const CHUNKS = { free: 256, meanBytes: 64 }

/** Bytes of a body that may arrive after its answer: of known length, and in chunks. Their parser gets whole buffers. */
const UNREAD = { bytes: 16 * 1024 * 1024, chunkedBytes: 65_536, slice: 65_536 }

interface Message {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}
const listeners = new WeakMap<Server, ((message: Message) => void)[]>()
// The parser reports each message here, also those that Node.js answers by itself, without the event `request`:
// an `Expect` that it does not know, or a request without `Host`.
subscribe('http.server.request.start', (message) => {
  const { server, ...rest } = message as Message & { server: Server }
  for (const hear of listeners.get(server) ?? []) hear(rest)
})

/** Calls `hear` for each message of a server's clients, before Node.js or the app answers it. */
export function onMessage(server: Server, hear: (message: Message) => void): void {
  listeners.set(server, [...(listeners.get(server) ?? []), hear])
}

/** Requests of connections that were cut before the app saw them. */
const refused = new WeakSet<object>()

/** True if the app must not perform this request, because its connection was cut. */
export function isRefused(request: object): boolean {
  return refused.has(request)
}

/**
 * Cuts connections whose bytes cost much more than their number. Node.js handles all requests and chunks of a received
 * buffer in one turn of the event loop: 1,400 requests, or 10,000 chunks of one byte, and that for each connection.
 *
 *   - A second message in the bytes of one turn (HTTP pipelining). A client that waits for answers never sends one.
 *   - A body of tiny chunks.
 *   - A long body whose request is already answered.
 */
export function guardRequests(server: Server, hasTls: boolean, cut: (socket: Socket, why: string) => void): void {
  /** Connections that have sent a request in this turn. */
  const heard = new WeakSet<Socket>()
  /** Rest of the body that a connection announced, bytes. */
  const bodies = new WeakMap<Socket, number>()
  /** Bytes that connections may still send of a body whose request is answered. */
  const unread = new WeakMap<Socket, number>()
  server.on(hasTls ? 'secureConnection' : 'connection', (socket: Socket) => sliceBuffers(socket, bodies, unread))
  onMessage(server, ({ request, response }) => {
    const { socket } = request
    unread.delete(socket)
    response.once('finish', () => {
      if (request.complete) return
      const rest = bodies.get(socket) ?? 0
      if (rest > UNREAD.bytes) socket.destroySoon()
      else unread.set(socket, rest === 0 ? UNREAD.chunkedBytes : Infinity)
    })
    if (socket.destroyed) return void refused.add(request)
    if (heard.has(socket)) {
      refused.add(request)
      return cut(socket, 'a request came together with the one before')
    }
    heard.add(socket)
    bodies.set(socket, Number(request.headers['content-length'] ?? 0))
    // Runs before the next bytes are read. Waiting for the response would cut clients: it ends later than they see it.
    setImmediate(() => heard.delete(socket))
    if (request.headers['transfer-encoding'] !== undefined)
      limitChunks(request, () => cut(socket, 'the chunks of a body were too small'))
  })
}

/** Gives the parser a buffer in slices, and nothing of it after the connection was cut. */
function sliceBuffers(socket: Socket, bodies: WeakMap<Socket, number>, unread: WeakMap<Socket, number>): void {
  const [parse] = socket.listeners('data')
  if (!parse) return
  socket.removeListener('data', parse as () => void)
  socket.on('data', (buffer: Buffer) => {
    const room = unread.get(socket)
    if (room !== undefined) {
      if (room <= 0) return socket.destroySoon()
      unread.set(socket, room - buffer.length)
    }
    const bodyBytes = room === undefined ? SLICE.bodyBytes : UNREAD.slice
    for (let start = 0; start < buffer.length && !socket.destroyed;) {
      // The server waits for a slow reader of its answers.
      if (start > 0 && socket.isPaused()) return socket.unshift(buffer.subarray(start))
      const body = bodies.get(socket) ?? 0
      const end = start + Math.max(SLICE.bytes, Math.min(bodyBytes, body))
      bodies.set(socket, Math.max(0, body - (end - start)))
      parse.call(socket, buffer.subarray(start, end))
      start = end
    }
  })
}

function limitChunks(request: IncomingMessage, end: () => void): void {
  let room = CHUNKS.free
  request.push = (chunk: Uint8Array | null, encoding) => {
    if (room < 0) return false
    room += chunk === null ? 0 : chunk.length / CHUNKS.meanBytes - 1
    if (room >= 0) return IncomingMessage.prototype.push.call(request, chunk, encoding)
    end()
    return false
  }
}

/** An answer of which the client has not read all. */
interface Unread {
  readonly network: string
  readonly bytes: number
  readonly cut: () => void
}

/** Memory for answers that clients have not read, bytes: of one network, and of all. */
const UNREAD_LIMITS = { ofOne: 128 * 1024 * 1024, total: 512 * 1024 * 1024 }

/**
 * Counts answers until their clients have read them, so that clients which read nothing cannot fill the memory. Over the
 * limit it cuts the oldest answer of the network with the most. `add` returns how to end the count.
 */
export function unreadAnswers(limits = UNREAD_LIMITS): { add(answer: Unread): () => void } {
  const answers = new Set<Unread>()
  const ofNetwork = new Map<string, number>()
  let total = 0

  function remove(answer: Unread): void {
    if (!answers.delete(answer)) return
    total -= answer.bytes
    const left = (ofNetwork.get(answer.network) ?? 0) - answer.bytes
    if (left > 0) ofNetwork.set(answer.network, left)
    else ofNetwork.delete(answer.network)
  }

  function cutOldestOf(network: string): void {
    for (const answer of answers)
      if (answer.network === network) {
        remove(answer)
        return answer.cut()
      }
  }

  return {
    add(answer) {
      answers.add(answer)
      total += answer.bytes
      ofNetwork.set(answer.network, (ofNetwork.get(answer.network) ?? 0) + answer.bytes)
      while ((ofNetwork.get(answer.network) ?? 0) > limits.ofOne) cutOldestOf(answer.network)
      while (total > limits.total) {
        const [most] = [...ofNetwork].reduce((a, b) => (b[1] > a[1] ? b : a))
        cutOldestOf(most)
      }
      return () => remove(answer)
    },
  }
}
