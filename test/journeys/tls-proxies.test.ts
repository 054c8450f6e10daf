// @module-tag extended
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { authorizationIn } from '../../host/credential-file.ts'
import { fetchTrusting } from '../../host/tls/private-ca.ts'
import { ensureBuilt } from '../support/built.ts'
import { newTestCa } from '../support/certificates.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { eventually } from '../support/journey.ts'
import { runProcess, startProcess } from '../support/processes.ts'
import { proxyPorts, TLS_PROXIES } from '../support/tls-proxies.ts'

const ends: (() => Promise<unknown>)[] = []
beforeAll(ensureBuilt)
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

// In CI the journey tls.test.ts covers the same without a proxy.
const isFull = process.env['UNTAG_TEST_FULL'] === 'true'

it
  .runIf(isFull)
  .each(TLS_PROXIES.map((proxy) => ({ ...proxy, skipped: proxy.why === undefined ? '' : ` (skipped: ${proxy.why})` })))(
  'an agent uses HTTPS and MQTTS through the $name of the guide$skipped',
  async ({ why, servesMqtts, start }) => {
    if (why !== undefined) {
      expect(process.env['UNTAG_TEST_TOOLS'], why).not.toBe('required')
      return
    }
    const folder = temporaryFolder('tls')
    const ca = newTestCa(folder)
    const files = ca.issue('shop', 'DNS:shop.example,IP:127.0.0.1')
    const ports = await proxyPorts()
    const mqtts = servesMqtts ? ports.mqtts : ports.broker
    const cloud = await startProcess([
      'cloud',
      `--data=${join(folder, 'cloud')}`,
      `--port=${ports.api}`,
      `--mqtt-port=${ports.broker}`,
      `--public-url=https://127.0.0.1:${ports.https}`,
      `--public-mqtt-url=mqtts://127.0.0.1:${mqtts}`,
      '--trusted-proxies=127.0.0.1',
      ...(servesMqtts ? [] : ['--tls-on=mqtt', `--tls-cert=${files.cert}`, `--tls-key=${files.key}`]),
    ])
    ends.push(cloud.stop)
    const proxy = await start({ ...ports, ...files })
    ends.push(proxy.stop)
    const made = await runProcess(['keys', 'create', `--data=${join(folder, 'cloud')}`, '--account=Shop', '--json'])
    const { key } = JSON.parse(made.stdout) as { key: string }
    const send = fetchTrusting(readFileSync(ca.file, 'utf8'))
    const baseUrl = `https://127.0.0.1:${ports.https}/api/v1`
    const call = async (operation: string, body: object) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      return (await (
        await send(`${baseUrl}/${operation}`, { method: 'POST', headers, body: JSON.stringify(body) })
      ).json()) as Json
    }
    const { stores } = await call('fetchStores', {})
    const { code } = await call('createEnrolmentCode', { storeId: stores[0].storeId, name: 'till' })
    const data = join(folder, 'edge')
    const enrolled = await runProcess([
      'edge',
      'enrol',
      `--cloud=${baseUrl}`,
      `--code=${code}`,
      `--data=${data}`,
      `--ca=${ca.file}`,
    ])
    expect(enrolled, enrolled.stderr).toMatchObject({ code: 0 })
    const agent = await startProcess(['edge', `--data=${data}`, '--port=0', `--runtime-dir=${join(folder, 'run')}`])
    ends.push(agent.stop)
    await eventually('online', async () => {
      const answer = await fetch(`${agent.ready['url']}/v1/status`, { headers: authorizationIn(data) })
      const { online, broker } = (await answer.json()) as Json
      return online && broker
    })
  },
)
