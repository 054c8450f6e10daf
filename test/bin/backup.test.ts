// @module-tag extended
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readBackup } from '../../host/backup/files.ts'
import { storedBackups } from '../../host/backup/retention.ts'
import { withDatabase } from '../../host/known-database.ts'
import { realPlatform } from '../../host/platform.ts'
import { secretFiles } from '../../host/secret-files.ts'
import { keysOf, loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import type { Db } from '../../cloud/platform/persistence/database.ts'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { newPostgresDatabase, temporaryFolder } from '../support/databases.ts'
import { eventually } from '../support/journey.ts'
import { runCommand } from '../support/commands.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'
import { EXTENDED } from '../support/extended.ts'

/** Maximum wait on a busy machine, ms. */
const LIMIT_MS = 60_000

describe('untag backup and restore, as processes', () => {
  let folder: string
  let running: RunningProcess[]
  beforeEach(() => {
    folder = temporaryFolder('backup')
    running = []
  })
  afterEach(async () => {
    for (const process of running) await process.kill()
    rmSync(folder, { recursive: true, force: true })
  })

  const data = () => join(folder, 'cloud')
  const start = async (...args: string[]) => {
    const started = await startProcess(args)
    running.push(started)
    return started
  }
  const run = async (...args: string[]): Promise<Json> => {
    const ended = await runCommand([...args, '--json'])
    if (ended.code !== 0) throw new Error(ended.stderr)
    return JSON.parse(ended.stdout) as Json
  }
  const client =
    (cloud: RunningProcess, key: string) =>
    async (operation: string, body: Json): Promise<Json> => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      return (
        await fetch(`${cloud.ready['baseUrl']}/${operation}`, { method: 'POST', headers, body: JSON.stringify(body) })
      ).json()
    }

  /** The first backup of `untag backup --every`. */
  async function scheduledBackup(place: readonly string[]): Promise<Json> {
    const to = join(folder, 'backups')
    const schedule = await start('backup', '--every', '24', '--keep', '7', '--to', to, ...place)
    const isMade = async () => storedBackups(to).find(({ isComplete }) => isComplete)
    const { name } = await eventually('a backup', isMade, LIMIT_MS)
    expect(await schedule.stop()).toBe(0)
    return { backup: join(to, name), ...(await readBackup(join(to, name))) }
  }

  /** Age of the last backup that the metrics of the cloud show, s. */
  async function backupAge(metricsUrl: string): Promise<number | undefined> {
    const metrics = await (await fetch(metricsUrl)).text()
    const found = /^untag_cloud_backup_age_seconds (\S+)$/m.exec(metrics)
    return found ? Number(found[1]) : undefined
  }

  /**
   * Backs up a running cloud with an agent, continues working, restores, and checks that the agent follows the restored
   * cloud.
   */
  async function throughARestore(database: readonly string[]): Promise<{ backup: Json; restored: Json }> {
    const place = ['--data', data(), ...database]
    const cloud = await start('cloud', '--port=0', '--mqtt-port=0', '--metrics-port=0', '--rate-limit=0', ...place)
    const port = new URL(String(cloud.ready['baseUrl'])).port
    const mqttPort = new URL(String(cloud.ready['mqttUrl'])).port
    const { key } = await run('keys', 'create', '--account', 'Shop', ...place)
    const call = client(cloud, key)
    const storeId = (await call('fetchStores', {})).stores[0].storeId
    const { code } = await call('createEnrolmentCode', { storeId })
    expect(
      await runCommand([
        'edge',
        'enrol',
        '--cloud',
        String(cloud.ready['baseUrl']),
        '--code',
        code,
        '--data',
        join(folder, 'edge'),
      ]),
    ).toMatchObject({ code: 0 })
    await start('edge', '--port', '0', '--data', join(folder, 'edge'))

    await call('recordEngagement', { type: 'follow', storeId, userId: 'shopper-17' })
    expect((await call('exportCustomerData', { userId: 'shopper-17' })).records.follows).toHaveLength(1)
    // The database changes during the backup.
    let written = 0
    let isOver = false
    const writing = (async () => {
      while (!isOver)
        if ((await call('updateStore', { storeId, tradingName: `Shop ${written + 1}` })).success) written++
    })()
    await eventually('a first change', async () => written > 3, LIMIT_MS)
    const backup = await scheduledBackup(place)
    const atBackup = written
    expect((await call('eraseCustomerData', { userId: 'shopper-17' })).erased).toBe(true)
    const age = await eventually('the age of the backup', () => backupAge(String(cloud.ready['metricsUrl'])), LIMIT_MS)
    expect(age).toBeLessThan(LIMIT_MS / 1_000)
    await eventually('more changes', async () => written > atBackup + 3, LIMIT_MS)
    isOver = true
    await writing
    expect(await call('fetchStore', { storeId })).toMatchObject({ tradingName: `Shop ${written}` })

    expect(await runCommand(['restore', '--from', backup.backup, ...place])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/a cloud runs with the data in .*: stop it first/),
    })
    expect(await cloud.stop()).toBe(0)
    expect(await runCommand(['restore', '--from', backup.backup, ...place])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--force'),
    })
    const since = new Date().toISOString()
    const restored = await run('restore', '--from', backup.backup, '--force', ...place)
    expect(restored).toMatchObject({ agents: 1, revoked: 0, erasures: 1 })
    expect(restored.generation).toBeGreaterThan(Date.parse('2026-01-01'))

    const again = await start('cloud', '--port', port, '--mqtt-port', mqttPort, '--rate-limit', '0', ...place)
    // The erasure after the backup was repeated, and the audit log shows it.
    const { records } = await client(again, key)('exportCustomerData', { userId: 'shopper-17' })
    expect(records.follows).toEqual([])
    const { entries } = await client(again, key)('fetchAuditLog', { since })
    expect(entries).toContainEqual(expect.objectContaining({ operation: 'eraseCustomerData', actor: 'restore' }))
    expect(await runCommand(['verify-audit', ...place])).toMatchObject({ code: 0 })
    const { tradingName } = await client(again, key)('fetchStore', { storeId })
    const restoredNumber = Number(/^Shop (\d+)$/.exec(tradingName)?.[1])
    expect(restoredNumber).toBeGreaterThan(3)
    expect(restoredNumber).toBeLessThan(written)
    // The agent has sent its rows, and the cloud no longer waits for it. The versions of the new documents exceed all
    // former versions.
    const agent = await eventually(
      'the agent',
      async () => {
        const [seen] = (await client(again, key)('fetchAgents', { storeId })).agents
        return seen.online && seen.policyVersion > 10_000 && seen.denyVersion >= restored.generation && seen
      },
      LIMIT_MS,
    )
    expect(agent).toMatchObject({ state: 'active', generation: 1 })
    // Documents of fast policy changes may arrive in another order. Apart from these, the agent rejects no document of
    // the restored cloud.
    const { exceptions } = await client(again, key)('fetchExceptions', { storeId })
    expect(exceptions.filter((e: Json) => !e.detail.startsWith('policy 0.'))).toEqual([])
    await again.stop()
    return { backup, restored }
  }

  it('back up a SQLite database while the cloud writes, and agents follow the restored cloud', async () => {
    const { backup, restored } = await throughARestore([])
    expect(backup).toMatchObject({ format: 1, database: 'sqlite', keys: 'apart' })
    expect(readdirSync(backup.backup).sort()).toEqual(['backup.json', 'cloud.db', 'erasures.json'])
    expect(statSync(join(backup.backup, 'cloud.db')).mode & 0o777).toBe(0o600)
    const aside = readdirSync(data()).find((name) => name.startsWith('replaced-'))
    expect(readdirSync(join(data(), String(aside)))).toContain('cloud.db')
    expect(existsSync(join(data(), 'restoring'))).toBe(false)

    // A restore needs the right keys and an undamaged copy.
    const other = join(folder, 'other')
    const put = (...more: string[]) => runCommand(['restore', '--from', backup.backup, '--data', other, ...more])
    expect(await put()).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/put .*master\.key and .*root\.json, which you keep apart, in place first/),
    })
    const [keysElsewhere, withoutKeys] = [['--keys-dir', join(data(), 'keys')], join(folder, 'without-keys')]
    expect(await run('restore', '--from', backup.backup, '--data', withoutKeys, ...keysElsewhere)).toMatchObject({
      agents: 1,
    })
    expect(readdirSync(withoutKeys).sort()).toEqual(['cloud.db', 'cloud.lock'])
    await loadKeyFiles(keysOf(join(folder, 'stranger')), secretFiles, realPlatform().random)
    const withForeignKeys = await runCommand(['restore', '--from', backup.backup, '--data', join(folder, 'stranger')])
    expect(withForeignKeys).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/root\.json is not the root key|master key is not the one/),
    })
    // An interrupted restore blocks the start.
    expect(
      await runCommand(['cloud', '--port', '0', '--mqtt-port', '0', '--data', join(folder, 'stranger')]),
    ).toMatchObject({ code: 1, stderr: expect.stringContaining('was interrupted') })
    const whole = await run('backup', '--data', data(), '--to', join(folder, 'whole'), '--with-keys')
    expect(await run('restore', '--from', whole.backup, '--data', other)).toMatchObject({ agents: 1 })
    expect(readFileSync(join(other, 'keys/root.json'), 'utf8')).toBe(
      readFileSync(join(data(), 'keys/root.json'), 'utf8'),
    )
    const twice = await run('restore', '--after', '--data', other)
    expect(twice.generation).toBeGreaterThan(restored.generation)

    const file = join(whole.backup, 'cloud.db')
    const bytes = readFileSync(file)
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1
    writeFileSync(file, bytes)
    expect(await runCommand(['restore', '--from', whole.backup, '--data', other, '--force'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is damaged'),
    })
    // The refused restore leaves nothing behind that would block the start of the intact data.
    expect(readdirSync(other)).not.toContain('restoring')
    expect(await runCommand(['restore', '--data', other])).toMatchObject({ code: 2 })
  })

  it('make the cloud wait for agents that were active at the end of the backup, however old the backup is', async () => {
    const place = ['--data', data()]
    const cloud = await start('cloud', '--port', '0', '--mqtt-port', '0', ...place)
    const call = client(cloud, (await run('keys', 'create', '--account', 'Shop', ...place)).key)
    const storeId = (await call('fetchStores', {})).stores[0].storeId
    for (const name of ['active', 'silent']) {
      const { code } = await call('createEnrolmentCode', { storeId, name })
      expect(
        await runCommand([
          'edge',
          'enrol',
          '--cloud',
          String(cloud.ready['baseUrl']),
          '--code',
          code,
          '--data',
          join(folder, name),
        ]),
      ).toMatchObject({ code: 0 })
    }
    expect(await cloud.stop()).toBe(0)
    const DAY_MS = 86_400_000
    const endMs = Date.now() - 15 * DAY_MS
    const ends = new Date(endMs).toISOString()
    const write = (work: (db: Db) => Promise<unknown>) =>
      withDatabase({ data: data(), databaseUrl: undefined }, (database) => database.write(work))
    const signedLast = (ms: number) =>
      write((db) =>
        db
          .updateTable('installation')
          .set({ value: String(ms) })
          .where('name', '=', 'last_signed_ms')
          .execute(),
      )
    const awaited = async () =>
      Object.fromEntries(
        await withDatabase({ data: data(), databaseUrl: undefined }, async ({ reads }) =>
          (await reads.selectFrom('agent').select(['name', 'resync']).execute()).map(({ name, resync }) => [
            name,
            resync,
          ]),
        ),
      )
    await signedLast(endMs)
    await write((db) => db.updateTable('agent').set({ last_seen_ms: endMs }).execute())
    await write((db) =>
      db
        .updateTable('agent')
        .set({ last_seen_ms: endMs - 15 * DAY_MS })
        .where('name', '=', 'silent')
        .execute(),
    )
    const { backup } = await run('backup', '--to', join(folder, 'backups'), ...place)

    // A restore does not change the time at which the backup ends.
    for (const how of [['--after'], ['--after'], ['--from', backup, '--force']]) {
      expect(await run('restore', ...how, ...place)).toMatchObject({ agents: 2, backupEnds: ends })
      expect(await awaited()).toEqual({ active: 'awaited', silent: 'due' })
    }
    // The cloud ran meanwhile, but had no contact with the agent. It still lacks the agent's rows.
    await signedLast(Date.now())
    expect(await runCommand(['restore', '--after', ...place])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('\n2 agents send their journal rows again'),
    })
    expect(await awaited()).toEqual({ active: 'awaited', silent: 'due' })
    await write((db) => db.updateTable('agent').set({ revoked_ms: endMs }).where('name', '=', 'silent').execute())
    expect(await runCommand(['restore', '--after', ...place])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(
        '\n1 agent sends its journal rows again. Until all agents of a store have done so, for at most 11 minutes,',
      ),
    })
  })

  const without = inject('postgresUrl') === ''
  it.skipIf(without)(
    `PostgreSQL: the same with pg_dump and pg_restore${without ? ' (skipped: install the package postgresql)' : ''}`,
    EXTENDED,
    async () => {
      const { url, remove } = await newPostgresDatabase()
      try {
        const { backup } = await throughARestore(['--database-url', url])
        expect(backup).toMatchObject({ database: 'postgres', file: 'cloud.dump' })
        expect(
          await runProcess(['backup', '--to', join(folder, 'b'), '--data', data(), '--database-url', url], {
            PATH: '/nowhere',
          }),
        ).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(/pg_dump is not on this machine.*untag restore --after/),
        })
        const empty = await newPostgresDatabase()
        expect(
          await runCommand(['backup', '--to', join(folder, 'b'), '--data', data(), '--database-url', empty.url]),
        ).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('the database contains no cloud: check --database-url'),
        })
        await empty.remove()
        expect(await runCommand(['restore', '--from', backup.backup, '--data', data()])).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('backup of postgres, not of sqlite'),
        })
        expect(await run('restore', '--after', '--data', data(), '--database-url', url)).toMatchObject({ agents: 1 })

        // Tables are dropped only after dump and keys passed their checks.
        const force = (folderWithKeys: string, env?: NodeJS.ProcessEnv) =>
          (env ? runProcess : runCommand)(
            ['restore', '--from', backup.backup, '--force', '--data', folderWithKeys, '--database-url', url],
            env,
          )
        const stranger = join(folder, 'stranger')
        expect(
          await run(
            'restore',
            '--from',
            backup.backup,
            '--force',
            `--data=${join(folder, 'without-keys')}`,
            `--keys-dir=${join(data(), 'keys')}`,
            `--database-url=${url}`,
          ),
        ).toMatchObject({ agents: 1 })
        await loadKeyFiles(keysOf(stranger), secretFiles, realPlatform().random)
        expect(await force(stranger)).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('root.json is not the root key'),
        })
        copyFileSync(join(data(), 'keys/root.json'), join(stranger, 'keys/root.json'))
        expect(await force(stranger)).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('the master key is not the one'),
        })
        expect(await force(data(), { PATH: '/nowhere' })).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('pg_restore is not on this machine'),
        })
        const [dump, manifest] = [join(backup.backup, 'cloud.dump'), join(backup.backup, 'backup.json')]
        writeFileSync(dump, 'no dump')
        writeFileSync(
          manifest,
          JSON.stringify({
            ...JSON.parse(readFileSync(manifest, 'utf8')),
            sha256: createHash('sha256').update('no dump').digest('hex'),
          }),
        )
        expect(await force(data())).toMatchObject({ code: 1, stderr: expect.stringContaining('pg_restore failed') })
        expect(existsSync(join(stranger, 'restoring')) || existsSync(join(data(), 'restoring'))).toBe(false)
        expect(await run('restore', '--after', '--data', data(), '--database-url', url)).toMatchObject({ agents: 1 })
      } finally {
        await remove()
      }
    },
  )
})
