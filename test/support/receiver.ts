import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import type { ResolveName } from '../../host/outgoing-http.ts'
import type { VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

/** A request at a receiver of webhooks. */
export interface ReceivedRequest {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

export interface Receiver {
  url: string
  requests: ReceivedRequest[]
  /** Its response to every further delivery. */
  answer: (response: ServerResponse, got: ReceivedRequest) => void
  close(): Promise<void>
}

export const answerWith =
  (status: number, body = '', headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(status, headers).end(body)

/** A receiver on a real socket that records its requests. */
export async function startReceiver(answer: Receiver['answer'] = answerWith(200)): Promise<Receiver> {
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const got = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString('utf8') }
      receiver.requests.push(got)
      receiver.answer(response, got)
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    requests: [],
    answer,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return receiver
}

/** Starts a receiver of plain bytes, for behaviour that no HTTP server offers. */
export async function startRawReceiver(
  serve: (socket: Socket) => void,
): Promise<{ url: string; connections(): number; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createTcpServer((socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    serve(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    connections: () => connections,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

type Check = () => boolean | Promise<boolean>

/** Waits in real time while the virtual clock does not move. */
export function until(what: string, check: Check, withinMs = 60_000): Promise<void> {
  return repeat(what, check, withinMs, () => new Promise((resolve) => setTimeout(resolve, 2)))
}

/** Like `until`, but waits only for one turn of the event loop. For conditions that need no socket and no process. */
export function untilInProcess(what: string, check: Check, withinMs = 60_000): Promise<void> {
  return repeat(what, check, withinMs, () => new Promise((resolve) => setImmediate(resolve)))
}

async function repeat(what: string, check: Check, withinMs: number, wait: () => Promise<void>): Promise<void> {
  const end = performance.now() + withinMs
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`it did not happen within ${withinMs} ms: ${what}`)
    await wait()
  }
}

/** Replaces the name servers. No name can be resolved. */
export const resolveNothing: ResolveName = () =>
  Promise.reject(Object.assign(new Error('there are no names here'), { code: 'ENOTFOUND' }))

/** Stops a part that waits for a virtual clock. */
export async function stopInVirtualTime(what: { stop(): Promise<void> }, platform: VirtualPlatform): Promise<void> {
  let stopped = false
  const stopping = what.stop().finally(() => void (stopped = true))
  await until('a stop', async () => {
    await platform.advance(1_000)
    return stopped
  })
  await stopping
}
