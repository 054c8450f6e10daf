// @module-tag extended
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findTool } from '../verification/tools.ts'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { ensureBuilt, ROOT } from '../support/built.ts'
import type { Json } from '../support/cloud.ts'
import { newMigratedPostgres, temporaryFolder } from '../support/databases.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { freePort } from '../support/ports.ts'
import { startProcess } from '../support/processes.ts'

const FOLDER = join(ROOT, 'deploy/monitoring')
const LIMIT_MS = 30_000

/** Values of a response in the text format, by name and labels. */
async function metricsAt(url: string): Promise<Map<string, number>> {
  const text = await (await fetch(url)).text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

const missing = findTool('prometheus') ? '' : ' (skipped: install the package prometheus)'

describe('the metrics of a cloud', () => {
  let store: Journey
  beforeAll(async () => {
    ensureBuilt()
    const dead = async () => `127.0.0.1:${await freePort()}`
    store = await openJourney({
      boards: { station: await dead(), detacher: await dead(), gate: await dead() },
      cloudOptions: ['--metrics-port=0'],
    })
  })
  afterAll(() => store?.stop())

  it('are on a port of their own, and not on the public port', async () => {
    const metricsUrl = String(store.cloud.ready['metricsUrl'])
    for (const path of ['fetchStores', 'x'.repeat(20)])
      await fetch(`${store.baseUrl}/${path}`, { method: 'POST', body: '{}' })
    const metrics = await metricsAt(metricsUrl)
    expect(new URL(metricsUrl).hostname).toBe('127.0.0.1')
    expect((await fetch(new URL('/metrics', store.baseUrl))).status).toBe(404)
    expect(metrics.get('untag_cloud_requests_total{operation="fetchStores",status="401"}')).toBe(1)
    expect(metrics.get('untag_cloud_requests_total{operation="unknown",status="401"}')).toBe(1)
    expect(metrics.get('untag_cloud_ready{check="database"}')).toBe(1)
    expect(metrics.get('untag_cloud_processes')).toBe(1)
    await eventually('the agent', async () => (await metricsAt(metricsUrl)).get('untag_cloud_agents_online') === 1)
  })

  it.skipIf(inject('postgresUrl') === '')('are added up over the workers', async () => {
    const database = await newMigratedPostgres()
    const place = [`--data=${temporaryFolder('metrics')}`, `--database-url=${database.url}`]
    const cloud = await startProcess([
      'cloud',
      '--workers=2',
      '--port=0',
      '--mqtt-port=0',
      '--metrics-port=0',
      ...place,
    ])
    const { baseUrl, metricsUrl } = cloud.ready as { baseUrl: string; metricsUrl: string }
    const call = () => fetch(`${baseUrl}/fetchStores`, { method: 'POST', body: '{}', headers: { connection: 'close' } })
    await Promise.all(Array.from({ length: 10 }, call))
    const metrics = await metricsAt(metricsUrl)
    await cloud.stop()
    await database.remove()
    expect(metrics.get('untag_cloud_processes')).toBe(2)
    expect(metrics.get('untag_cloud_requests_total{operation="fetchStores",status="401"}')).toBe(10)
    expect(metrics.get('untag_cloud_agents_online')).toBe(0)
  })

  describe.skipIf(missing !== '')(`Prometheus with the files of deploy/monitoring${missing}`, () => {
    let prometheus: ChildProcess
    let api: string

    const get = async (path: string): Promise<Json> => (await fetch(`${api}${path}`)).json()
    const query = (expression: string): Promise<Json> => get(`/api/v1/query?query=${encodeURIComponent(expression)}`)

    beforeAll(async () => {
      const [folder, port] = [temporaryFolder('prometheus'), await freePort()]
      const config = readFileSync(join(FOLDER, 'prometheus.yml'), 'utf8')
        .replaceAll('15s', '500ms')
        .replace('untag.rules.yml', join(FOLDER, 'untag.rules.yml'))
        .replace('127.0.0.1:9464', new URL(String(store.cloud.ready['metricsUrl'])).host)
        .replace('127.0.0.1:8090', new URL(String(store.agent.ready['url'])).host)
      writeFileSync(join(folder, 'prometheus.yml'), config)
      api = `http://127.0.0.1:${port}`
      prometheus = spawn(
        'prometheus',
        [
          `--config.file=${folder}/prometheus.yml`,
          `--storage.tsdb.path=${folder}/data`,
          `--web.listen-address=127.0.0.1:${port}`,
        ],
        { stdio: 'ignore' },
      )
    })
    afterAll(async () => {
      if (prometheus?.exitCode === null && prometheus.kill('SIGKILL')) await once(prometheus, 'exit')
    })

    it('accepts the rules and the configuration', () => {
      for (const args of [
        ['check', 'rules', 'untag.rules.yml'],
        ['check', 'config', 'prometheus.yml'],
      ]) {
        const checked = spawnSync('promtool', args, { cwd: FOLDER, encoding: 'utf8' })
        expect(checked.stderr + checked.stdout).toContain('SUCCESS')
        expect(checked.status).toBe(0)
      }
    })

    it('finds values for every query of the dashboard, and evaluates every rule', async () => {
      const dashboard = JSON.parse(readFileSync(join(FOLDER, 'untag-dashboard.json'), 'utf8')) as Json
      const queries: string[] = dashboard.panels.flatMap((p: Json) => (p.targets ?? []).map((t: Json) => t.expr))
      expect(queries.length).toBeGreaterThan(15)
      const empty = async () => {
        await store.api.call('fetchStores', {})
        const results = await Promise.all(queries.map(query))
        const bad = results.find(({ status }) => status !== 'success')
        if (bad) throw new Error(JSON.stringify(bad))
        // This store has no gate that reads tags.
        return queries.filter((q, i) => !q.includes('untag_gate_total') && results[i].data.result.length === 0)
      }
      let without: string[] = []
      await eventually(
        'values for each query',
        async () => {
          without = await empty().catch((error: unknown) => [String(error)])
          return without.length === 0
        },
        LIMIT_MS,
      ).catch(() => undefined)
      expect(without).toEqual([])
      const rules = async () => (await get('/api/v1/rules')).data.groups.flatMap((group: Json) => group.rules)
      await eventually(
        'an evaluation of each rule',
        async () => (await rules()).every(({ health }: Json) => health === 'ok'),
        LIMIT_MS,
      )
      // The boards do not answer, and nobody has made a backup yet.
      const waiting = (await rules()).filter(({ state }: Json) => state !== 'inactive').map(({ name }: Json) => name)
      expect(waiting.toSorted()).toEqual(['UntagBackupMissing', 'UntagDeviceNotReady'])
    })
  })
})
