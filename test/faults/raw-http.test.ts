import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/databases.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'

/** Bytes that no correct client sends to the cloud. */
describe('invalid request bytes', () => {
  let cloud: RunningProcess
  let key: string
  let port: number
  let base: string
  const open = new Set<Socket>()

  beforeAll(async () => {
    const data = join(temporaryFolder('raw-http'), 'cloud')
    cloud = await startProcess(['cloud', '--port', '0', '--mqtt-port', '0', '--data', data, '--rate-limit', '0'])
    const made = await runProcess(['keys', 'create', '--data', data, '--account', 'Raw', '--json'])
    key = (JSON.parse(made.stdout) as { key: string }).key
    base = String(cloud.ready['baseUrl'])
    port = Number(new URL(base).port)
  })
  afterAll(async () => {
    for (const socket of open) socket.destroy()
    await cloud.stop()
  })

  function socket(): Socket {
    const made = connect(port, '127.0.0.1')
    made.on('error', () => undefined)
    open.add(made)
    return made
  }
  /** Sends the bytes and returns the status line, or 'closed'. */
  function answerTo(bytes: string | Buffer): Promise<string> {
    return new Promise((resolve) => {
      const line = socket()
      let got = ''
      line.on('data', (chunk) => {
        got += chunk.toString('latin1')
        if (got.includes('\r\n')) resolve(got.slice(0, got.indexOf('\r\n')))
      })
      line.on('close', () => resolve(got === '' ? 'closed' : (got.split('\r\n')[0] ?? '')))
      line.write(typeof bytes === 'string' ? Buffer.from(bytes.replace('@KEY', key), 'latin1') : bytes)
    })
  }
  const head = (extra: string) =>
    `POST /api/v1/fetchStores HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer @KEY\r\nContent-Type: application/json\r\n${extra}`
  const stillServes = async () => {
    const answer = await fetch(`${base}/fetchStores`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{}',
    })
    expect(answer.status).toBe(200)
  }

  it.each([
    ['noise', Buffer.from(Array.from({ length: 4_096 }, (_, i) => (i * 37) % 256)), /400|closed/],
    ['endless headers', `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(40_000)}`, /431|closed/],
    ['a path of 20,000 characters', `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, /431|404|414|closed/],
    ['two Content-Length headers', head('Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}'), /400|closed/],
    ['length and chunks at once', head('Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}'), /400|closed/],
    ['a negative length', head('Content-Length: -1\r\n\r\n'), /400|closed/],
    ['a declared body that is too large', head('Content-Length: 99999999\r\n\r\n'), /413/],
    ['a chunk of nonsense', head('Transfer-Encoding: chunked\r\n\r\nZZ\r\n'), /400|411|413|closed/],
    ['an incomplete character', head('Content-Length: 16\r\n\r\n{"storeId":"a\xc3"}'), /400/],
    [
      'a body nested 100,000 deep',
      head(`Content-Length: 200000\r\n\r\n${'['.repeat(100_000)}${']'.repeat(100_000)}`),
      /400/,
    ],
    ['__proto__ in the body', head('Content-Length: 26\r\n\r\n{"__proto__":{"admin":1} }'), /400/],
  ])('get a client error for %s, and the server continues', async (_, bytes, status) => {
    expect(await answerTo(bytes)).toMatch(status)
    await stillServes()
  })

  it('do not block the server when 200 clients send half a request', async () => {
    const slow = Array.from({ length: 200 }, () => socket())
    for (const line of slow) line.write('POST /api/v1/fetchStores HTTP/1.1\r\nHost: x\r\nContent-Le')
    await stillServes()
    for (const line of slow) line.destroy()
  })

  it('cause no error when clients disconnect during a body or before the response', async () => {
    for (let i = 0; i < 50; i++) {
      const line = socket()
      line.write(head('Content-Length: 1000\r\n\r\n{"store').replace('@KEY', key), () => line.destroy())
      const other = socket()
      other.write(head('Content-Length: 2\r\n\r\n{}').replace('@KEY', key), () => other.destroy())
    }
    await stillServes()
    expect(
      cloud
        .stderr()
        .split('\n')
        .filter((line) => /"level":(50|60)/.test(line))
        .slice(0, 3),
    ).toEqual([])
  })
})
