import { connect, type Socket } from 'node:net'

/** Sends prepared requests over persistent connections. Parses the responses only as far as needed to verify them. */
export interface LoadQuestion {
  port: number
  path: string
  /** The Authorization header. */
  authorization: string
  /** JSON bodies of the requests. Each body is sent once. */
  bodies: readonly string[]
  connections: number
  /** Text that every response must contain. */
  expected: string
}

export interface LoadAnswer {
  /** Time from the first request to the last response, µs. */
  microseconds: number
  p50Ms: number
  p99Ms: number
  /** Mean length of a response with its header, bytes. */
  bytes: number
}

export async function sendAll({
  port,
  path,
  authorization,
  bodies,
  connections,
  expected,
}: LoadQuestion): Promise<LoadAnswer> {
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: ${authorization}`,
    'Content-Type: application/json',
  ]
  const requests = bodies.map((body) =>
    Buffer.from([...head, `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n')),
  )
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  const times: number[] = []
  let next = 0
  let bytes = 0
  const from = now()
  await Promise.all(
    sockets.map(async (socket) => {
      const exchange = exchanger(socket)
      for (let request = requests[next++]; request; request = requests[next++]) {
        const asked = now()
        const answer = await exchange(request)
        times.push(now() - asked)
        bytes += answer.length
        if (!answer.startsWith('HTTP/1.1 200 ') || !answer.includes(expected))
          throw new Error(`not the expected answer: ${answer}`)
      }
    }),
  )
  const microseconds = now() - from
  for (const socket of sockets) socket.destroy()
  times.sort((a, b) => a - b)
  const at = (share: number) => (times[Math.floor((times.length - 1) * share)] ?? 0) / 1_000
  return { microseconds, p50Ms: at(0.5), p99Ms: at(0.99), bytes: bytes / times.length }
}

const now = () => Number(process.hrtime.bigint()) / 1_000

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })
}

/**
 * Returns a function that sends a request and resolves with the whole response. Wait for that response before the next
 * call. Responses need a Content-Length.
 */
function exchanger(socket: Socket): (request: Buffer) => Promise<string> {
  let received = ''
  let waiting: { resolve(answer: string): void; reject(error: Error): void } | undefined
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    received += chunk
    const length = lengthOf(received)
    if (length === undefined || received.length < length) return
    const answer = received.slice(0, length)
    received = received.slice(length)
    waiting?.resolve(answer)
  })
  socket.on('error', (error) => waiting?.reject(error))
  socket.on('close', () => waiting?.reject(new Error('the server closed the connection')))
  return (request) =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject }
      socket.write(request)
    })
}

/** Length of the whole response; undefined until its header is complete. */
function lengthOf(received: string): number | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const length = /\r\ncontent-length: *(\d+)/i.exec(received.slice(0, end + 2))?.[1]
  if (length === undefined) throw new Error(`an answer without Content-Length: ${received.slice(0, end)}`)
  return end + 4 + Number(length)
}
