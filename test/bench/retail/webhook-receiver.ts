import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerBench } from '../child.ts'

/**
 * Requests to the program that receives all webhooks, one path per webhook. `/RUN/ok/…` responds at once, `/RUN/slow/…`
 * with a delay, `/RUN/hang/…` never.
 */
export type ReceiverQuestion = { kind: 'open' } | { kind: 'hear'; run: string; expected: number }

export interface DeliveryTimes {
  deliveries: number
  p50Ms: number
  p99Ms: number
}

const SLOW_MS = 8_000

interface Listener {
  run: string
  expected: number
  times: number[]
  done(): void
}

let listener: Listener | undefined

const server = createServer((request, response) => {
  const [, run, kind] = (request.url ?? '').split('/')
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    if (kind === 'hang') return
    if (kind === 'slow') return void setTimeout(() => response.end(), SLOW_MS)
    response.end()
    if (listener?.run !== run || !listener) return
    const { timestamp } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { timestamp: string }
    listener.times.push(Date.now() - Date.parse(timestamp))
    if (listener.times.length === listener.expected) listener.done()
  })
})

function hear(run: string, expected: number): Promise<DeliveryTimes> {
  return new Promise((resolve) => {
    const times: number[] = []
    const done = () => {
      listener = undefined
      times.sort((a, b) => a - b)
      const at = (share: number) => times[Math.floor((times.length - 1) * share)] ?? Number.NaN
      resolve({ deliveries: times.length, p50Ms: at(0.5), p99Ms: at(0.99) })
    }
    listener = { run, expected, times, done }
  })
}

answerBench((asked) => {
  const question = asked as ReceiverQuestion
  if (question.kind === 'hear') return hear(question.run, question.expected)
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve({ port: (server.address() as AddressInfo).port })),
  )
})
