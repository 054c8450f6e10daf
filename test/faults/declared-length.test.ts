import { SALE_BODY_LIMIT, TILL_NOTICE_LIMIT } from '../../edge-agent/http/read-request.ts'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen, type HttpServer } from '../../host/http-server.ts'
import { OPERATION_TABLE } from '../../cloud/service/operation-table.ts'
import { ingestRoutes } from '../../edge-agent/http/routes/ingest-routes.ts'
import { localApp } from '../../edge-agent/http/local-app.ts'
import { AGENT_OPERATIONS, type AgentOperation } from '../../edge-agent/http/operations.ts'
import { startTestCloud, type TestCloud } from '../support/cloud.ts'
import { pagesBench } from '../edge-agent/pages/pages-agent.ts'
import { CREDENTIAL } from '../support/credential.ts'
import { pushPort } from '../../device-drivers/transports/memory.ts'
import { entries } from '../device-drivers/workbench.ts'

const HUGE = 4_000_000_000
const LOG = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Sends a request head without a body. Returns status line and headers in lower case. */
function answerToHead(port: number, path: string, headers: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let got = ''
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      got += chunk.toString('latin1')
      if (!got.includes('\r\n\r\n')) return
      socket.destroy()
      resolve(got.slice(0, got.indexOf('\r\n\r\n')).toLowerCase())
    })
    socket.on('close', () => resolve(got))
    socket.write(`POST ${path} HTTP/1.1\r\n${[`Host: 127.0.0.1:${port}`, ...headers].join('\r\n')}\r\n\r\n`)
  })
}

const length = (bytes = HUGE) => `Content-Length: ${bytes}`
const FORM = 'Content-Type: multipart/form-data; boundary=xxxx'
const JSON_TYPE = 'Content-Type: application/json'

describe('a declared length that is too large', () => {
  const stops: (() => Promise<void> | void)[] = []
  let cloud: TestCloud
  let cloudPort: number
  let agentPort: number
  let key: string

  async function serve(app: Parameters<HttpServer['serve']>[0]): Promise<number> {
    const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
    server.serve(app)
    stops.push(server.close)
    return server.port
  }
  beforeAll(async () => {
    cloud = await startTestCloud('sqlite')
    key = await cloud.key('secret')
    cloudPort = await serve(cloud.cloud.app)
    const bench = pagesBench()
    const app = localApp(bench.agent, {
      hosts: () => [`127.0.0.1:${agentPort}`],
      log: LOG,
      credential: () => CREDENTIAL,
    })
    const devices = entries({
      deviceId: 'arch',
      driver: 'http-ingest',
      link: { push: 'gate-1' },
      secret: 'a-secret-of-gate-1-alone',
      mapping: 'keonn',
    })
    ingestRoutes(app, {
      devices: () => devices,
      port: pushPort(),
      hosts: () => [`127.0.0.1:${agentPort}`],
      platform: bench.agent.platform,
      refusals: { write: () => undefined },
    })
    agentPort = await serve(app)
  })
  afterAll(async () => {
    for (const stop of stops) await stop()
    await cloud.stop()
  })

  const refused = (head: string) => {
    expect(head).toMatch(/^http\/1\.1 413/)
    expect(head).toContain('cache-control: no-store')
    expect(head).toContain('x-content-type-options: nosniff')
  }

  const forms = [...OPERATION_TABLE.values()].filter(({ multipart }) => multipart).map(({ name }) => name)
  it.each([...forms, 'upload'])('is rejected by the cloud before the form is read: %s', async (name) => {
    expect(forms).toContain('uploadImageToProduct')
    refused(await answerToHead(cloudPort, `/api/v1/${name}`, [FORM, length(), `Authorization: Bearer ${key}`]))
  })

  it.each([
    ['an operation', '/api/v1/fetchStores', JSON_TYPE],
    ['a notification', '/api/v1/notify/st_1/stripe', JSON_TYPE],
  ])('is rejected by the cloud before the body is read: %s', async (_, path, type) => {
    refused(await answerToHead(cloudPort, path, [type, length(), `Authorization: Bearer ${key}`]))
  })

  /** Maximum body of a path, bytes. */
  const limitOf = (path: string) => {
    if (path === '/v1/till-notices') return TILL_NOTICE_LIMIT
    return path.startsWith('/v1/sales') || path === '/v1/returns' ? SALE_BODY_LIMIT : 16 * 1024
  }
  const posts = Object.values<AgentOperation>(AGENT_OPERATIONS).filter(({ method }) => method === 'POST')
  it.each(posts.map(({ path }) => path))('is rejected by the agent before the body is read: %s', async (path) => {
    const authorization = `Authorization: Bearer ${CREDENTIAL}`
    for (const bytes of [HUGE, limitOf(path) + 1])
      refused(await answerToHead(agentPort, path, [JSON_TYPE, length(bytes), authorization]))
  })

  it('is rejected by the agent before the body is read: reads of a device', async () => {
    const secret = 'Authorization: Bearer a-secret-of-gate-1-alone'
    refused(await answerToHead(agentPort, '/ingest/gate-1', [JSON_TYPE, length(), secret]))
  })
})
