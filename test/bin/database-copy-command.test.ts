// @module-tag extended
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { newPostgresDatabase, temporaryFolder } from '../support/databases.ts'
import { bundledCommand } from '../support/bundled-command.ts'
import { runCommand } from '../support/commands.ts'
import { startProcess, type RunningProcess } from '../support/processes.ts'

const hasPostgres = inject('postgresUrl') !== ''

describe('untag migrate and untag database copy, as processes', () => {
  let folder: string
  let data: string
  let clouds: RunningProcess[]
  beforeEach(() => {
    folder = temporaryFolder('copy')
    data = join(folder, 'cloud')
    clouds = []
  })
  afterEach(async () => {
    for (const cloud of clouds) await cloud.kill()
    rmSync(folder, { recursive: true, force: true })
  })

  const startCloud = async (...args: string[]) => {
    const cloud = await startProcess(['cloud', '--port', '0', '--mqtt-port', '0', '--data', data, ...args])
    clouds.push(cloud)
    return cloud
  }
  const cloudFails = (...args: string[]) => runCommand(['cloud', '--port', '0', '--mqtt-port', '0', ...args])
  const fetchStores = async (cloud: RunningProcess, key: string): Promise<Json> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const { requestId: _id, ...answer } = (await (
      await fetch(`${cloud.ready['baseUrl']}/fetchStores`, { method: 'POST', headers, body: '{}' })
    ).json()) as Json
    return answer
  }

  it('migrates apart from the start', async () => {
    const at = ['--data', data]
    expect(await cloudFails(...at, '--require-migrated')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^the database lacks "0001-baseline".*: run untag migrate first$/m),
    })
    const { stdout } = await runCommand(['migrate', ...at, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ migrated: expect.arrayContaining(['0001-baseline']) })
    const cloud = await startCloud('--require-migrated')
    expect(await runCommand(['migrate', ...at])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`a cloud runs with the data in ${data}: stop it first`),
    })
    await cloud.stop()
    expect(await runCommand(['migrate', ...at])).toMatchObject({ code: 0, stdout: 'The database is up to date.\n' })
  })

  it.skipIf(!hasPostgres)(
    `copies to PostgreSQL, also after SIGKILL${hasPostgres ? '' : ' (skipped: install the package postgresql)'}`,
    async () => {
      const { url, remove } = await newPostgresDatabase()
      try {
        const cloud = await startCloud()
        const made = await runCommand(['keys', 'create', '--account', 'Shop', '--data', data, '--json'])
        const { key } = JSON.parse(made.stdout) as { key: string }
        const before = await fetchStores(cloud, key)
        expect(before.stores.length).toBeGreaterThan(0)
        const copy = ['database', 'copy', '--from', data, '--to', url]
        expect(await runCommand(copy)).toMatchObject({
          code: 1,
          stderr: expect.stringContaining(`a cloud runs with the data in ${data}: stop it first`),
        })
        await cloud.stop()
        // The keys of this cloud are in another folder.
        const keysDir = join(folder, 'keys')
        renameSync(join(data, 'keys'), keysDir)
        expect(await runCommand(copy)).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('master.key does not exist'),
        })
        const keys = ['--keys-dir', keysDir]
        copy.push(...keys)

        // Kills the copy after its first transaction.
        const killed = spawn(process.execPath, [await bundledCommand(), ...copy], {
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        createInterface({ input: killed.stderr }).once('line', () => killed.kill('SIGKILL'))
        await once(killed, 'exit')
        expect(killed.signalCode).toBe('SIGKILL')
        for (const args of [
          ['cloud', '--port', '0', '--mqtt-port', '0'],
          ['keys', 'list'],
          ['backup', '--to', folder],
        ])
          expect(await runCommand([...args, '--data', data])).toMatchObject({
            code: 1,
            stderr: expect.stringContaining('is being copied to 127.0.0.1'),
          })
        expect(await cloudFails('--data', data, '--database-url', url)).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('the database contains an incomplete copy: run untag database copy again'),
        })

        const { code, stdout, stderr } = await runCommand([...copy, '--json'])
        expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('checked 100 %') })
        const { rows, tables } = JSON.parse(stdout) as { rows: number; tables: Json[] }
        expect(rows).toBeGreaterThan(1_000)
        expect(tables).toContainEqual({ table: 'account', rows: 1, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
        expect(stderr).toContain(`Pictures stay in ${data}, keys in ${keysDir}`)

        expect(await cloudFails('--data', data)).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('use that one with --database-url'),
        })
        const moved = await startCloud(...keys, '--database-url', url, '--require-migrated')
        expect(await fetchStores(moved, key)).toEqual(before)
        await moved.stop()

        // Back to SQLite: as a restored cloud, because the other one may have released goods since.
        expect(await runCommand(['restore', '--after', '--data', data, ...keys])).toMatchObject({ code: 0 })
        expect(existsSync(join(data, 'copied.json'))).toBe(false)
        expect(await fetchStores(await startCloud(...keys), key)).toEqual(before)
      } finally {
        for (const cloud of clouds) await cloud.kill()
        await remove()
      }
    },
  )
})
