// @module-tag extended
import Sqlite from 'better-sqlite3'
import { createHash } from 'node:crypto'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { authorizationIn } from '../../host/credential-file.ts'
import { loadPostgres } from '../../host/backup/database-dump.ts'
import { UNTAG_VERSION } from '../../policy/version.ts'
import { shopper } from '../../simulators/services/shopper.ts'
import { unusedPort } from '../verification/kills/tcp-wire.ts'
import { ensureBuilt } from '../support/built.ts'
import type { Json } from '../support/cloud.ts'
import { newPostgresDatabase, temporaryFolder } from '../support/databases.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { eventually } from '../support/journey.ts'
import { runCommand } from '../support/commands.ts'
import { NEXT_MIGRATION, NEXT_VERSION, nextProcesses } from '../support/next-release.ts'
import { processesOfTests, type RunningProcess } from '../support/processes.ts'
import { fixtureVersions, releaseFixture, type ReleaseFixture } from '../support/release-fixture.ts'

/** Maximum wait on a busy machine, ms. */
const LIMIT_MS = 30_000
const HOUR_MS = 3_600_000
const hasPostgres = inject('postgresUrl') !== ''
const builds = { present: processesOfTests, next: nextProcesses }

/** Rows of each table as JSON, by table. */
type Rows = Map<string, string[]>

describe.skipIf(!hasPostgres).each(fixtureVersions())(
  `an upgrade from the data of %s${hasPostgres ? '' : ' (skipped: install the package postgresql)'}`,
  (version) => {
    let fixture: ReleaseFixture
    let folder: string
    let running: RunningProcess[]
    let ports: { http: number; mqtt: number }
    beforeAll(async () => {
      ensureBuilt()
      fixture = await releaseFixture(version)
    })
    afterEach(async () => {
      for (const each of running.reverse()) await each.kill()
      rmSync(folder, { recursive: true, force: true })
    })

    /** Puts the data of the release into a new folder, with addresses of this test. */
    async function prepare(): Promise<void> {
      folder = temporaryFolder('upgrade')
      running = []
      cpSync(fixture.folder, folder, { recursive: true })
      ports = { http: await unusedPort(), mqtt: await unusedPort() }
      const file = join(folder, 'edge/agent.json')
      const identity = JSON.parse(readFileSync(file, 'utf8')) as Json
      const addresses = { cloud: `http://127.0.0.1:${ports.http}/api/v1`, mqttUrl: `mqtt://127.0.0.1:${ports.mqtt}` }
      writeFileSync(file, JSON.stringify({ ...identity, ...addresses }))
    }

    const cloudArgs = (database: readonly string[]) => [
      'cloud',
      `--port=${ports.http}`,
      `--mqtt-port=${ports.mqtt}`,
      `--data=${join(folder, 'cloud')}`,
      ...database,
    ]
    const agentArgs = () => [
      'edge',
      '--port=0',
      `--data=${join(folder, 'edge')}`,
      `--config=${join(folder, 'edge.json')}`,
      `--runtime-dir=${join(folder, 'run')}`,
    ]
    async function start(build: keyof typeof builds, args: readonly string[]): Promise<RunningProcess> {
      const started = await builds[build].start(args)
      running.push(started)
      return started
    }
    const api = async (operation: string, body: object): Promise<Json> => {
      const headers = { authorization: `Bearer ${fixture.facts.key}`, 'content-type': 'application/json' }
      const url = `http://127.0.0.1:${ports.http}/api/v1/${operation}`
      return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json()
    }
    const local = async (agent: RunningProcess, path: string, body?: object): Promise<Json> => {
      const headers = { ...authorizationIn(join(folder, 'edge')), 'content-type': 'application/json' }
      const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
      return (await fetch(`${agent.ready['url']}${path}`, init)).json()
    }
    const release = (agent: RunningProcess, receipt: string) =>
      local(agent, '/v1/authorize', {
        deviceId: fixture.facts.deviceId,
        protectionAction: 'deactivate_label',
        receipt,
      })
    /** Waits until the cloud knows that this agent is connected and has sent its journal. */
    const connected = (agent: RunningProcess, agentRelease: string) =>
      eventually(
        'the agent',
        async () => {
          const status = await local(agent, '/v1/status')
          const { agents } = await api('fetchAgents', { storeId: fixture.facts.storeId })
          return status.online && status.queueDepth === 0 && status.release === agentRelease && agents[0].online
        },
        LIMIT_MS,
      )
    /** Checks that the agent refuses the receipt that it released before, and releases a new purchase. */
    async function works(agent: RunningProcess): Promise<void> {
      const { key, storeId, ean, usedReceipt, madeMs } = fixture.facts
      const refused = await release(agent, usedReceipt)
      expect(refused).toMatchObject({ authorized: false })
      // Older receipts have expired.
      if (Date.now() - madeMs < HOUR_MS) expect(refused).toMatchObject({ reason: 'already_redeemed' })
      const buyer = shopper({ baseUrl: `http://127.0.0.1:${ports.http}/api/v1`, key, fetch })
      const { receipt } = await buyer.buy({ storeId, items: [{ ean, quantity: 1 }] })
      expect(await release(agent, receipt)).toMatchObject({ authorized: true })
    }

    it('on SQLite keeps all data, and the old program changes nothing in it', async () => {
      await prepare()
      const [data, file] = [join(folder, 'cloud'), join(folder, 'cloud/cloud.db')]
      await runCommand(['migrate', '--data', data])
      const rows = sqliteRows(file)
      expect(await nextProcesses.run(['migrate', '--data', data])).toMatchObject({
        code: 0,
        stdout: `Applied 1 migration: ${NEXT_MIGRATION}.\n`,
      })
      expectUpgraded(sqliteRows(file), rows, 'store')
      const upgraded = hashOf(file)
      expect(await runCommand(cloudArgs([]))).toEqual({
        code: 1,
        stdout: '',
        stderr: `the database was made by a newer untag (it has the migration "${NEXT_MIGRATION}"): upgrade untag\n`,
      })
      expect(hashOf(file)).toBe(upgraded)
    })

    it.skipIf(!IS_FULL_SIZE)(
      'that begins with the agent makes it wait for the cloud, and the old agent does not start',
      async () => {
        await prepare()
        const ledger = join(folder, 'edge/ledger.db')
        const ledgerRows = sqliteRows(ledger)
        const oldCloud = await start('present', cloudArgs([]))
        let agent = await start('next', agentArgs())
        await eventually('the refusal', async () => agent.stderr().includes('release_not_supported'), LIMIT_MS)
        expect(agent.stderr()).toContain(
          `the agent has release ${NEXT_VERSION}, and the cloud ${UNTAG_VERSION}: upgrade the cloud first`,
        )
        expect(await local(agent, '/v1/status')).toMatchObject({ online: false })
        await agent.stop()
        expectUpgraded(sqliteRows(ledger), ledgerRows, 'claim')

        const before = hashOf(ledger)
        expect(await runCommand(agentArgs())).toEqual({
          code: 1,
          stdout: '',
          stderr: expect.stringMatching(
            /^\S*ledger\.db was written by a newer release of untag: install that release\n$/,
          ),
        })
        expect(hashOf(ledger)).toBe(before)

        await oldCloud.stop()
        await start('next', cloudArgs([]))
        agent = await start('next', agentArgs())
        await connected(agent, NEXT_VERSION)
        await works(agent)
      },
    )

    it('on PostgreSQL keeps all data, and agents of the old release work with the new cloud', async () => {
      await prepare()
      const { url, remove } = await newPostgresDatabase()
      try {
        await loadPostgres(url, join(folder, 'cloud.dump'))
        const database = [`--database-url=${url}`]
        await runCommand(['migrate', ...database])
        const rows = await postgresRows(url)
        expect(await nextProcesses.run(['migrate', ...database])).toMatchObject({ code: 0 })
        expectUpgraded(await postgresRows(url), rows, 'store')

        // The right order: the cloud first.
        const cloud = await start('next', cloudArgs(database))
        let agent = await start('present', agentArgs())
        await connected(agent, UNTAG_VERSION)
        await works(agent)
        await agent.stop()
        agent = await start('next', agentArgs())
        await connected(agent, NEXT_VERSION)
        await works(agent)
        await agent.stop()
        await cloud.stop()

        const upgraded = await postgresRows(url)
        expect(await runCommand(cloudArgs(database))).toMatchObject({
          code: 1,
          stderr: expect.stringContaining(`the database was made by a newer untag`),
        })
        expect(await postgresRows(url)).toEqual(upgraded)
      } finally {
        for (const each of running.reverse()) await each.kill()
        await remove()
      }
    })
  },
)

/** Checks that the migration changed only one column of `table`, and added a table and its own name. */
function expectUpgraded(after: Rows, before: Rows, changed: 'store' | 'claim'): void {
  expect(before.get(changed)?.length).toBeGreaterThan(0)
  expect([...after.keys()].filter((table) => !before.has(table))).toEqual(['next_table'])
  for (const [table, rows] of before) {
    // The agent notes its new run and a refused login there.
    if (changed === 'claim' && ['mark', 'journal'].includes(table)) {
      expect(after.get(table)).toEqual(expect.arrayContaining(table === 'journal' ? rows : []))
      continue
    }
    const withoutColumn = after.get(table)?.map((row) => row.replace(/,"next_column":(?:null|"[^"]*")/, ''))
    const added = table === 'migration' ? [JSON.stringify({ name: NEXT_MIGRATION })] : []
    expect(withoutColumn, table).toEqual([...rows, ...added])
  }
  expect(after.get(changed)?.every((row) => row.includes('"next_column"'))).toBe(true)
}

function sqliteRows(file: string): Rows {
  const db = new Sqlite(file, { readonly: true })
  const names = db
    .prepare<[], string>("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name")
    .pluck()
    .all()
  const rows = names
    .filter((name) => !name.startsWith('sqlite_'))
    .map((name) => [name, db.prepare(`SELECT * FROM "${name}"`).all().map(rowText).sort()] as const)
  db.close()
  return new Map(rows)
}

async function postgresRows(url: string): Promise<Rows> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const tables = await client.query('SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()')
  const rows: Rows = new Map()
  for (const { name } of tables.rows as { name: string }[])
    rows.set(name, (await client.query(`SELECT * FROM "${name}"`)).rows.map(rowText).sort())
  await client.end()
  return rows
}

const rowText = (row: unknown) =>
  JSON.stringify(row, (_key, value: unknown) => (Buffer.isBuffer(value) ? value.toString('hex') : value))

function hashOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
