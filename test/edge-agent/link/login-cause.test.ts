import { expect, it } from 'vitest'
import { CloudSession } from '../../../edge-agent/link/login/cloud-session.ts'
import { httpClient, type Fetch } from '../../../edge-agent/link/wire/http-client.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'

const failing = (cause: string): Fetch => {
  const error = new TypeError('fetch failed', { cause: new Error(cause) })
  return () => Promise.reject(error)
}

it('logs why the cloud cannot be reached, once for each cause', async () => {
  let fetch = failing('connect ECONNREFUSED 127.0.0.1:8080')
  const platform = virtualPlatform()
  const logged: unknown[] = []
  const log = { info() {}, warn: (fields: object) => void logged.push(fields), error() {} }
  const parts = {
    platform,
    log,
    identity: { agentId: 'agt_1', cloud: 'https://shop.example/api/v1' },
    http: httpClient('https://shop.example/api/v1', (url, init) => fetch(url, init), platform),
  }
  const session = new CloudSession(parts as unknown as ConstructorParameters<typeof CloudSession>[0])
  await session.login()
  await session.login()
  fetch = failing('self-signed certificate')
  await session.login()
  await session.login()
  expect(logged).toEqual([
    { why: 'connect ECONNREFUSED 127.0.0.1:8080', cloud: 'https://shop.example/api/v1' },
    { why: 'self-signed certificate', cloud: 'https://shop.example/api/v1' },
  ])
})
