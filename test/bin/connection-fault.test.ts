// @module-tag extended
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkCloud } from '../../bin/doctor/cloud.ts'
import { connectionFault } from '../../bin/api-client.ts'
import { fetchTrustingFile } from '../../host/tls/private-ca.ts'
import { createClient } from '../../clients/typescript/client.ts'
import { newTestCa } from '../support/certificates.ts'
import { temporaryFolder } from '../support/databases.ts'
import { runProcess } from '../support/processes.ts'

const ca = newTestCa(temporaryFolder('connection-fault'))
const files = ca.issue('server', 'IP:127.0.0.1')
const plain = createHttpServer((_, response) => response.end('{}'))
const secure = createHttpsServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, (_, response) =>
  response.end('{}'),
)
let closedPort = 0

const portOf = (server: Server) => (server.address() as AddressInfo).port
async function open(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
}

beforeAll(async () => {
  await open(plain)
  await open(secure)
  const closed = createHttpServer()
  await open(closed)
  closedPort = portOf(closed)
  closed.close()
})
afterAll(() => {
  plain.close()
  secure.close()
})

async function faultOf(baseUrl: string, trusted?: string): Promise<string | undefined> {
  const client = createClient({
    baseUrl,
    key: 'untag_test_sk_x',
    retry: { retries: 0 },
    platform: { fetch: fetchTrustingFile(trusted) },
  })
  return client.fetchStores({}).then(
    () => 'no fault',
    (error: unknown) => connectionFault(error, baseUrl, 'UNTAG_API'),
  )
}

async function detailOf(cloud: string): Promise<string | undefined> {
  const check = {
    cloud,
    isAgentRunning: true,
    send: fetchTrustingFile(undefined),
    nowMs: Date.now,
    certificateEnd: async () => undefined,
  }
  return (await checkCloud(check))[0]?.detail
}

describe('a failed connection to the cloud', () => {
  it('is explained with its cause and the option to use', async () => {
    const port = portOf(secure)
    expect(await faultOf(`https://127.0.0.1:${port}/api/v1`)).toContain('name the private CA with --ca FILE')
    expect(await faultOf(`https://localhost:${port}/api/v1`, ca.file)).toContain('use a host name of the certificate')
    expect(await faultOf(`https://127.0.0.1:${port}/api/v1`, ca.file)).toBe('no fault')
    expect(await faultOf(`http://127.0.0.1:${port}/api/v1`)).toContain(`set UNTAG_API to https://127.0.0.1:${port}/`)
    const http = `https://127.0.0.1:${portOf(plain)}/api/v1`
    for (const trusted of [undefined, ca.file])
      expect(await faultOf(http, trusted)).toContain(`set UNTAG_API to http://127.0.0.1:${portOf(plain)}/`)
    expect(await faultOf(`http://127.0.0.1:${closedPort}/api/v1`)).toMatch(/is the cloud running\?.*set UNTAG_API$/)
    expect(await faultOf('http://nowhere.invalid/api/v1')).toContain('no address is known for the host nowhere.invalid')
  })

  it('has the same text in untag api and in untag doctor', async () => {
    const call = (baseUrl: string) =>
      runProcess(['api', 'fetchStores', '--base-url', baseUrl, '--key', 'untag_test_sk_x'])
    const port = portOf(secure)
    const text = 'this machine does not trust the certificate'
    expect(await call(`https://127.0.0.1:${port}/api/v1`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(text),
    })
    expect(await detailOf(`https://127.0.0.1:${port}/api/v1`)).toContain(text)
    const refused = await call(`http://127.0.0.1:${closedPort}/api/v1`)
    expect(refused.stderr).toMatch(
      /cannot be reached: .*is the cloud running\?.*--base-url or UNTAG_API \(network\)\n$/,
    )
    expect(await detailOf(`http://127.0.0.1:${closedPort}/api/v1`)).toContain('is the cloud running?')
  })
})
