import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { boundedFetch } from '../../bin/api-client.ts'
import { httpClient } from '../../edge-agent/link/wire/http-client.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'

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

const PACKED = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume()
    if (request.url === '/good') return void response.end('{"success":true}')
    if (request.url === '/packed') return void response.writeHead(200, { 'content-encoding': 'gzip' }).end(PACKED)
    response.writeHead(200, { 'content-type': 'application/json' })
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
