import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { Hono } from 'hono'
import { afterEach, expect, it } from 'vitest'
import { connectionLimits, type HttpLimits } from '../../host/http-server.ts'
import { guardRequests } from '../../host/request-guard.ts'
import { limitConnections, listen, type HttpServer } from '../../host/http-server.ts'
import { LINES_PER_MINUTE } from '../../policy/rate-limited-log.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { waitFor } from '../support/wait-for.ts'

/** More than the buffers of the system hold. */
const LARGE = new Uint8Array(24 * 1024 * 1024)

let server: HttpServer
const world = virtualPlatform()
const sockets: Socket[] = []
const lines: string[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await server.close()
  lines.length = 0
})

/** Starts a server that responds to `/slow` only after the test calls `answer`. */
async function open(limits: HttpLimits) {
  const app = new Hono()
  let answer = () => undefined as void
  const released = new Promise<void>((resolve) => (answer = resolve))
  let working = 0
  app.onError((_error, c) => c.text('broken off', 400))
  app.get('/', (c) => c.text('here'))
  let requests = 0
  app.all('/count', async (c) => c.text(`${++requests} ${(await c.req.text()).length}`))
  app.post('/', async (c) => c.text(`${(await c.req.text()).length}`))
  app.get('/large', (c) => c.body(LARGE))
  app.get('/slow', async (c) => {
    working++
    await released
    return c.text('slow')
  })
  const warn = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  server = await listen({ host: '127.0.0.1', port: 0, flag: 'port', limits, platform: world, warn })
  server.serve(app)
  return { url: `http://127.0.0.1:${server.port}`, answer, working: () => working, requests: () => requests }
}

/** Opens connections from 20 addresses that send `text` and wait. */
async function opened(count: number, text = '', reads = true): Promise<{ cut(): number }> {
  let cut = 0
  const open = async (n: number) => {
    const socket = connect({ port: server.port, host: '127.0.0.1', localAddress: `127.0.1.${1 + (n % 20)}` })
    sockets.push(socket)
    socket.on('error', () => undefined).on('close', () => cut++)
    await new Promise((resolve) => socket.once('connect', resolve))
    if (reads) socket.resume()
    if (text) socket.write(text)
  }
  for (let n = 0; n < count; n += 100)
    await Promise.all(Array.from({ length: Math.min(100, count - n) }, (_, i) => open(n + i)))
  return { cut: () => cut }
}

it('serves requests while 2,400 idle connections open, and limits the log lines about cut ones', async () => {
  const { url } = await open({ most: 1_000, waiting: 500 })
  const idle = await opened(2_400)
  await waitFor(() => expect(idle.cut()).toBe(1_900))
  expect(await (await fetch(url)).text()).toBe('here')
  expect(lines).toHaveLength(LINES_PER_MINUTE)
  await world.advance(60_000)
  expect(lines.at(-1)).toMatch(/^an HTTP connection was cut \{.*"suppressed":\d{4}\}$/)
})

it('serves requests while other clients do not read their responses', async () => {
  const { url } = await open({ most: 20, waiting: 8 })
  for (let n = 0; n < 30; n++) await opened(1, 'GET /large HTTP/1.1\r\nHost: x\r\n\r\n', false)
  expect(await (await fetch(url)).text()).toBe('here')
})

it.each([
  ['have sent half a header', 'GET / HTTP/1.1\r\nHost: x\r\nX-Half: '],
  ['do not send the body that they announced', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf'],
  ['keep a connection that was answered', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
])('cuts the oldest connections of clients that %s, but none with a running request', async (_name, text) => {
  const { url, answer, working } = await open({ most: 200, waiting: 100 })
  const slow = fetch(`${url}/slow`)
  await waitFor(() => expect(working()).toBe(1))
  const others = await opened(300, text)
  await waitFor(() => expect(others.cut()).toBe(200))
  expect(await (await fetch(url, { method: 'POST', body: 'body' })).text()).toBe('4')
  answer()
  expect(await (await slow).text()).toBe('slow')
})

const HOSTILE = [
  ['sends requests that Node.js answers with 417', 'GET /count HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n'.repeat(700)],
  ['sends requests that Node.js answers with 400', 'GET /count HTTP/1.1\r\n\r\n'.repeat(1_000)],
  ['sends requests that wait for 100', 'GET /count HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n'.repeat(700)],
  ['sends many requests at once', 'GET /count HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000)],
  [
    'sends many requests at once, with a body',
    `POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody`.repeat(700),
  ],
  [
    'sends tiny chunks',
    `POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(5_000)}0\r\n\r\n`,
  ],
]
it.each(HOSTILE)('cuts a client that %s, before the app sees more than one request', async (_name, text) => {
  const { url, requests } = await open({ most: 200, waiting: 100 })
  const hostile = await opened(20, text)
  await waitFor(() => expect(hostile.cut()).toBe(20))
  expect(requests()).toBeLessThanOrEqual(20)
  expect(await (await fetch(url)).text()).toBe('here')
  expect(lines[0]).toMatch(/a request came together with the one before|the chunks of a body were too small/)
})

it.each(HOSTILE)('parses nothing more of a client that %s', async (_name, text) => {
  let [requests, cuts] = [0, 0]
  const own = createServer((request, response) => {
    requests++
    request.resume().on('error', () => undefined)
    setImmediate(() => response.end('here'))
  })
  guardRequests(own, false, (socket) => {
    cuts++
    socket.destroy()
  })
  await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve))
  const { port } = own.address() as AddressInfo
  const socket = connect({ port, host: '127.0.0.1' }).on('error', () => undefined)
  await new Promise((resolve) => socket.once('close', resolve).once('connect', () => socket.resume().write(text)))
  // A slice has at most 14 requests.
  expect([requests <= 14, cuts]).toEqual([true, 1])
  expect(await (await fetch(`http://127.0.0.1:${port}`)).text()).toBe('here')
  await new Promise((resolve) => own.close(resolve))
})

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve))
it.each([
  ['at once', 0],
  ['after a turn', 1],
  ['after two turns', 2],
] as const)('cuts no client that waits for its answers, which are ready %s', async (_when, turns) => {
  const app = new Hono()
  app.post('/', async (c) => {
    await c.req.text()
    for (let n = 0; n < turns; n++) await turn()
    return c.text('here')
  })
  const warn = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  server = await listen({ host: '127.0.0.1', port: 0, flag: 'port', platform: world, warn })
  server.serve(app)
  // A client in another process: it answers within the turn in which the server writes.
  const program = `
    const agent = new (require('node:http').Agent)({ keepAlive: true, maxSockets: 8 })
    let left = 2000
    const next = () => {
      if (left-- <= 0) return
      const options = { port: ${server.port}, agent, method: 'POST', headers: { 'content-length': 4 } }
      require('node:http').request(options, (answer) => answer.resume().on('end', next)).on('error', (error) => {
        console.log(error.message)
        process.exit(1)
      }).end('body')
    }
    for (let n = 0; n < 8; n++) next()`
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program]).catch(
    (error: { stdout: string }) => error,
  )
  expect([stdout, lines]).toEqual(['', []])
})

it('accepts request after request of a connection, and bodies of usual chunks', async () => {
  await open({ most: 200, waiting: 100 })
  const socket = connect({ port: server.port, host: '127.0.0.1' })
  sockets.push(socket)
  let read = ''
  socket.setEncoding('utf8').on('data', (text: string) => void (read += text))
  const line = `${'x'.repeat(79)}\n`
  for (let n = 1; n <= 20; n++) {
    const chunks = `50\r\n${line}\r\n`.repeat(2_000)
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`)
    await waitFor(() => expect(read.split('160000').length).toBe(n + 1))
  }
})

it('cuts a connection without a request after 15 s, but not one with a running request', async () => {
  const { url, answer, working } = await open({ most: 200, waiting: 100 })
  const slow = fetch(`${url}/slow`)
  await waitFor(() => expect(working()).toBe(1))
  const silent = await opened(100)
  await waitFor(() => expect(world.pending).toBe(100))
  await world.advance(14_999)
  expect(silent.cut()).toBe(0)
  await world.advance(1)
  await waitFor(() => expect(silent.cut()).toBe(100))
  answer()
  expect(await (await slow).text()).toBe('slow')
})

it('cuts a streamed response that its client does not read, but no stream that has nothing to send', async () => {
  const seen: string[] = []
  const taken: Socket[] = []
  const own = createServer((request, response) => {
    taken.push(request.socket)
    response.write(request.url === '/large' ? LARGE : 'waits')
  })
  const limits = limitConnections(
    own,
    { most: 20, waiting: 8 },
    world,
    (fields) => void seen.push(JSON.stringify(fields)),
  )
  await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve))
  const ask = async (path: string) => {
    const socket = connect({ port: (own.address() as AddressInfo).port, host: '127.0.0.1' })
    sockets.push(socket)
    socket.on('error', () => undefined).write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    const count = taken.length
    await waitFor(() => expect(taken.length).toBe(count + 1))
    return taken.at(-1) as Socket
  }
  const [large, quiet] = [await ask('/large'), await ask('/quiet')]
  await waitFor(() => expect([large.writableLength > 0, quiet.writableLength]).toEqual([true, 0]))
  // Node.js emits this event after the time without progress.
  for (const socket of [large, quiet]) socket.emit('timeout')
  expect([large.destroyed, quiet.destroyed]).toEqual([true, false])
  expect(seen).toEqual([expect.stringContaining('the client does not read the response')])
  limits.stop()
  own.closeAllConnections()
  await new Promise((resolve) => own.close(resolve))
})

it('refuses connections beyond the limit while requests use all of them, and logs that', async () => {
  const { url, answer, working } = await open({ most: 5, waiting: 5 })
  const slow = Array.from({ length: 5 }, () => fetch(`${url}/slow`))
  await waitFor(() => expect(working()).toBe(5))
  const refused = await opened(100)
  await waitFor(() => expect(refused.cut()).toBe(100))
  expect(lines.slice(0, 1)).toEqual([
    'an HTTP connection was refused {"from":"127.0.1.1","why":"5 connections are open"}',
  ])
  answer()
  await Promise.all(slow)
})

it('reduces the limits for a process that may open few files', () => {
  expect(connectionLimits(Infinity)).toEqual({
    http: { most: 10_000, waiting: 2_000 },
    broker: { agents: 10_000, unauthenticated: 256, unauthenticatedPerNetwork: 64 },
  })
  expect(connectionLimits(1_024)).toEqual({
    http: { most: 512, waiting: 128 },
    broker: { agents: 256, unauthenticated: 32, unauthenticatedPerNetwork: 16 },
  })
})

/** Sends the head of a request and then parts of a body until the server ends the connection. */
async function sendBody(head: string, part: Buffer): Promise<{ sent: number; answer: string }> {
  const socket = connect({ port: server.port, host: '127.0.0.1' })
  sockets.push(socket)
  let sent = 0
  let answer = ''
  let isOver = false
  socket.on('data', (bytes) => void (answer += bytes.toString('latin1')))
  socket.on('error', () => undefined).on('close', () => (isOver = true))
  socket.write(head)
  await waitFor(() => expect(answer).not.toBe(''))
  const send = (error?: Error | null) => {
    if (error || isOver) return
    sent += part.length
    socket.write(part, send)
  }
  send()
  await waitFor(() => expect(isOver).toBe(true))
  return { sent, answer }
}

it('cuts the rest of a long body whose request is answered', async () => {
  await open(connectionLimits().http)
  const part = Buffer.alloc(65_536, 'x')
  const long = await sendBody('POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n', part)
  expect(long.answer).toMatch(/^HTTP\/1.1 404/)
  expect(long.sent).toBeLessThan(16 * 1024 * 1024)
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), part, Buffer.from('\r\n')])
  const chunked = await sendBody('POST /none HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n', chunk)
  expect(chunked.sent).toBeLessThan(16 * 1024 * 1024)
})

it('serves further requests of a connection after a refused body of 8 MB', async () => {
  await open(connectionLimits().http)
  const body = Buffer.alloc(8 * 1024 * 1024, 'x')
  const next = 'POST /count HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc'
  const socket = connect({ port: server.port, host: '127.0.0.1' })
  sockets.push(socket)
  let answers = ''
  socket.on('data', (bytes) => void (answers += bytes.toString('latin1'))).on('error', () => undefined)
  socket.write(`POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`)
  await waitFor(() => expect(answers).toContain('404'))
  socket.write(body)
  socket.write(next)
  await waitFor(() => expect(answers).toContain('\r\n\r\n1 3'))
})
