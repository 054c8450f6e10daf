// @module-tag extended
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { authorizationIn } from '../../host/credential-file.ts'
import { fetchTrusting } from '../../host/tls/private-ca.ts'
import { ensureBuilt } from '../support/built.ts'
import { newTestCa, type TestCa } from '../support/certificates.ts'
import type { Json } from '../support/cloud.ts'
import { newMigratedPostgres, temporaryFolder } from '../support/databases.ts'
import { eventually } from '../support/journey.ts'
import { freePort } from '../support/ports.ts'
import { runCommand } from '../support/commands.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'

const hasPostgres = inject('postgresUrl') !== ''

describe('a store whose cloud and agent serve TLS with certificates of a private CA', () => {
  let folder: string
  let ca: TestCa
  let cloud: RunningProcess
  let agent: RunningProcess
  let key: string
  let send: ReturnType<typeof fetchTrusting>
  let remove: (() => Promise<void>) | undefined
  const edge = () => join(folder, 'edge')

  beforeAll(async () => {
    ensureBuilt()
    folder = temporaryFolder('tls')
    ca = newTestCa(folder)
    send = fetchTrusting(readFileSync(ca.file, 'utf8'))
    const { cert, key: file } = ca.issue('cloud', 'IP:127.0.0.1')
    const database = hasPostgres ? await newMigratedPostgres() : undefined
    remove = database?.remove
    const place = [`--data=${join(folder, 'cloud')}`, ...(database ? [`--database-url=${database.url}`] : [])]
    cloud = await startProcess([
      'cloud',
      ...place,
      ...(database ? ['--workers=2'] : []),
      '--port=0',
      '--mqtt-port=0',
      '--metrics-port=0',
      `--tls-cert=${cert}`,
      `--tls-key=${file}`,
    ])
    const made = await runCommand(['keys', 'create', ...place, '--account=Shop', '--mode=test', '--json'])
    key = (JSON.parse(made.stdout) as { key: string }).key
  })
  afterAll(async () => {
    await agent?.stop()
    await cloud?.stop()
    await remove?.()
  })

  const api = (...more: string[]) =>
    runProcess(['api', ...more, `--key=${key}`, `--base-url=${cloud.ready['baseUrl']}`, `--ca=${ca.file}`])
  const call = async (...more: string[]) => JSON.parse((await api(...more)).stdout) as Json
  const enrol = (code: string, ...more: string[]) =>
    runCommand(['edge', 'enrol', `--cloud=${cloud.ready['baseUrl']}`, `--code=${code}`, `--data=${edge()}`, ...more])
  const status = async (): Promise<Json> => {
    const headers = authorizationIn(edge())
    return (await (await send(`${agent.ready['url']}/v1/status`, { headers })).json()) as Json
  }
  /** Serial number of the certificate at this address. */
  const serialAt = (url: string | undefined) =>
    new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(url ?? '')
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().serialNumber)
        socket.destroy()
      }).on('error', reject)
    })

  it('announces https and mqtts addresses, and demands HTTPS from browsers', async () => {
    expect(cloud.ready['baseUrl']).toMatch(/^https:/)
    expect(cloud.ready['mqttUrl']).toMatch(/^mqtts:/)
    const { headers } = await send(new URL('/healthz', cloud.ready['baseUrl']).href)
    expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
  })

  it('enrols an agent that names the CA, and tells others how', async () => {
    const { stores } = await call('fetchStores')
    const { code } = await call('createEnrolmentCode', '--storeId', stores[0].storeId, '--name', 'till')
    const without = await enrol(code)
    expect(without).toMatchObject({ code: 1, stderr: expect.stringContaining('name the private CA with --ca FILE') })
    expect(await enrol(code, `--ca=${ca.file}`)).toMatchObject({ code: 0 })
    const { stdout } = await runCommand(['doctor', `--data=${edge()}`])
    expect(stdout).toMatch(/✓ cloud +https:\/\/127\.0\.0\.1:\d+ answers/)
  })

  it('connects the agent over HTTPS and MQTTS after a start without --ca', async () => {
    const { cert, key: file } = ca.issue('agent', 'IP:127.0.0.1')
    const port = await freePort()
    const place = [`--data=${edge()}`, `--port=${port}`, `--runtime-dir=${join(folder, 'run')}`]
    agent = await startProcess(['edge', ...place, `--tls-cert=${cert}`, `--tls-key=${file}`])
    expect(agent.ready['url']).toBe(`https://127.0.0.1:${port}`)
    await eventually('online', async () => {
      const { online, broker } = await status()
      return online && broker
    })
  })

  it('pairs a browser with a cookie that is only sent over TLS', async () => {
    const link = await runCommand(['edge', 'link', `--data=${edge()}`, '--json'])
    const { pairingUrl: url } = JSON.parse(link.stdout) as { pairingUrl: string }
    expect(url).toMatch(/^https:/)
    const cookies = await new Promise<string[]>((resolve, reject) => {
      const pairing = request(`${agent.ready['url']}/v1/pair`, {
        method: 'POST',
        ca: readFileSync(ca.file),
        headers: { 'content-type': 'application/json', origin: agent.ready['url'] },
      })
      pairing.on('response', ({ headers }) => resolve(headers['set-cookie'] ?? [])).on('error', reject)
      pairing.end(JSON.stringify({ code: url.split('#')[1] }))
    })
    expect(cookies).toEqual([expect.stringMatching(/HttpOnly.*Secure|Secure.*HttpOnly/)])
  })

  it('serves a renewed certificate without a lost connection', async () => {
    const addresses = [cloud.ready['baseUrl'], cloud.ready['mqttUrl'], agent.ready['url']]
    const before = await Promise.all(addresses.map(serialAt))
    ca.issue('cloud', 'IP:127.0.0.1')
    ca.issue('agent', 'IP:127.0.0.1')
    await eventually('new certificates', async () => {
      const now = await Promise.all(addresses.map(serialAt))
      return now.every((serial, i) => serial !== before[i])
    })
    expect(await status()).toMatchObject({ online: true, broker: true })
    expect(agent.stderr()).not.toContain('broker is offline')
    const ready = (await (await send(new URL('/readyz', cloud.ready['baseUrl']).href)).json()) as Json
    expect(ready).toMatchObject({ ready: true, certificate: { expires: expect.stringContaining('T') } })
    const metrics = await (await fetch(String(cloud.ready['metricsUrl']))).text()
    expect(metrics).toMatch(/untag_cloud_certificate_expiry_timestamp_seconds \d{10}/)
    expect(metrics).toContain('untag_cloud_certificate_current 1')
  })
})
