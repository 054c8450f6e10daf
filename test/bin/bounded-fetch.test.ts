import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { boundedFetch } from '../../bin/api-client.ts'
import { httpClient } from '../../edge-agent/link/wire/http-client.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

let server: Server
let url: string
let sent = 0
let ended: Promise<unknown> | undefined

/** A server whose response does not end. */
function endless(response: ServerResponse, part: Buffer): void {
  ended = once(response, 'close')
  const more = () => {
    while (!response.destroyed) {
      sent += part.length
      if (!response.write(part)) return void response.once('drain', more)
    }
  }
  more()
}

/** A server that sends a byte at a time, and never ends. */
function trickle(response: ServerResponse): void {
  ended = once(response, 'close')
  response.write(' ')
  trickled = () => void response.write(' ')
}
let trickled = () => undefined as void

const PACKED = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume()
    if (request.url === '/good') return void response.end('{"success":true}')
    if (request.url === '/packed') return void response.writeHead(200, { 'content-encoding': 'gzip' }).end(PACKED)
    response.writeHead(200, { 'content-type': 'application/json' })
    if (request.url === '/trickling') return void trickle(response)
    endless(response, Buffer.alloc(64 * 1024, ' '))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** Sends a request whose time limit never ends, so that only the size limit can end the response. */
const post = (operation: string) =>
  httpClient(url, boundedFetch, virtualPlatform()).post(operation, {}, { timeoutMs: 1_000 })

it('returns the text of a response', async () => {
  expect(await post('good')).toEqual({ kind: 'answered', body: { success: true } })
})

it('rejects an endless response and closes the connection', async () => {
  expect(await post('endless')).toMatchObject({ kind: 'unreachable' })
  await ended
  expect(sent).toBeLessThan(64 * 1024 * 1024)
})

it('stops unpacking a compressed response at the limit', async () => {
  const { text } = await boundedFetch(`${url}/packed`, {
    method: 'GET',
    headers: {},
    signal: new AbortController().signal,
    redirect: 'error',
  })
  await expect(text(() => undefined)).rejects.toThrow('over 4194304 bytes')
})

it('ends a response that never ends at the time limit, also if Node.js has forgotten the signal of its request', async () => {
  const platform = virtualPlatform()
  const answer = httpClient(url, boundedFetch, platform).post('trickling', {}, { timeoutMs: 1_000 })
  await vi.waitUntil(() => ended)
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let i = 0; i < 20; i++) {
    trickled()
    collect()
    await setImmediate()
  }
  await platform.advance(1_000)
  expect(await answer).toEqual({ kind: 'unreachable', why: 'no answer within 1000 ms' })
  await ended
})
