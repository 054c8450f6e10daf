// @module-tag extended
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { tryTool } from '../verification/tools.ts'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { secretFiles } from '../../host/secret-files.ts'
import { ensureBuilt } from '../support/built.ts'
import { temporaryFolder } from '../support/databases.ts'
import { runProcess, startProcess, type ProcessEnvironment, type RunningProcess } from '../support/processes.ts'
import { suiteWith } from '../support/extended.ts'

const folder = temporaryFolder('shared-keys')
const keys = join(folder, 'keys')
const running: RunningProcess[] = []
beforeAll(ensureBuilt)
afterEach(async () => {
  await Promise.all(running.splice(0).map((process) => process.stop()))
})

/** Runs a command that sees this folder as a read-only mount. */
const readOnly = (path: string) => [
  'unshare',
  '-rm',
  'sh',
  '-c',
  `mount --bind ${path} ${path} && mount -o remount,ro,bind ${path} && exec "$@"`,
  'sh',
]
const noMounts = tryTool('unshare', '-rm', 'true').status === 0 ? undefined : 'mount namespaces are not permitted'

async function start(name: string, args: readonly string[], surroundings?: ProcessEnvironment): Promise<void> {
  const place = ['--port=0', '--mqtt-port=0', `--data=${join(folder, name)}`]
  running.push(await startProcess(['cloud', ...place, ...args], surroundings))
}

/** Id of the root key that this cloud has stored. */
function rootOf(name: string): unknown {
  const database = new Sqlite(join(folder, name, 'cloud.db'), { readonly: true })
  const root = database.prepare("SELECT value FROM installation WHERE name = 'root_kid'").pluck().get()
  database.close()
  return root
}

const kidIn = (file: string) => (JSON.parse(readFileSync(file, 'utf8')) as { kid: string }).kid

it('clouds that start at once on an empty shared folder all use the same keys', async () => {
  const names = ['a', 'b', 'c']
  await Promise.all(names.map((name) => start(name, [`--keys-dir=${keys}`])))
  const kid = kidIn(join(keys, 'root.json'))
  expect(names.map(rootOf)).toEqual([kid, kid, kid])
  expect(readdirSync(keys).toSorted()).toEqual(['master.key', 'root.json'])
  for (const name of names) expect(existsSync(join(folder, name, 'keys'))).toBe(false)
})

it('a key file that exists is not created again', () => {
  const file = join(folder, 'once', 'root.json')
  secretFiles.create(file, 'first')
  secretFiles.create(file, 'second')
  expect([readFileSync(file, 'utf8'), readdirSync(join(folder, 'once'))]).toEqual(['first', ['root.json']])
})

suiteWith(noMounts, 'keys on a read-only mount', () => {
  it('start a cloud', async () => {
    await start('mounted', [`--keys-dir=${keys}`], { through: readOnly(keys) })
    expect(rootOf('mounted')).toBe(kidIn(join(keys, 'root.json')))
  })

  it('are needed: an empty mount is refused in one sentence', () => {
    const empty = join(folder, 'empty')
    mkdirSync(empty)
    const [program = '', ...args] = readOnly(empty)
    const command = [process.execPath, 'bin/untag.js', 'cloud', '--port=0', '--mqtt-port=0', `--keys-dir=${empty}`]
    const { status, stderr } = spawnSync(program, [...args, ...command, `--data=${join(folder, 'none')}`], {
      encoding: 'utf8',
    })
    expect([status, stderr.trim().split('\n')]).toEqual([
      1,
      [
        `${empty}/master.key does not exist and cannot be created (its folder is read-only): copy it from the other machines of this cloud, or make its folder writable`,
      ],
    ])
  })
})

it('reads key files that environment variables name, also in commands', async () => {
  const [master, root] = [join(folder, 'secrets', 'sealing'), join(folder, 'secrets', 'signing')]
  const env = { UNTAG_MASTER_KEY_FILE: master, UNTAG_ROOT_KEY_FILE: root }
  for (const [file, name] of [
    [master, 'master.key'],
    [root, 'root.json'],
  ] as const)
    secretFiles.write(file, readFileSync(join(keys, name), 'utf8'))
  await start('named', [], { env })
  expect(rootOf('named')).toBe(kidIn(root))
  const data = ['--data', join(folder, 'named')]
  const sync = ['broker', 'sync', '--format=nats', `--out=${join(folder, 'nats.conf')}`, ...data]
  expect(await runProcess(sync, env)).toMatchObject({ code: 0, stderr: '' })
  expect(await runProcess(sync)).toMatchObject({ code: 1, stderr: expect.stringContaining('named/keys/master.key') })
  await Promise.all(running.splice(0).map((process) => process.stop()))
  expect(await runProcess(['reseal', ...data, '--json'], env)).toMatchObject({ code: 0 })
  expect(readFileSync(master, 'utf8').trim().split('\n')).toHaveLength(2)
})
