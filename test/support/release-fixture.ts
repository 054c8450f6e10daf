import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { UNTAG_VERSION } from '../../policy/version.ts'
import { FIXTURES, schemaHash } from '../../scripts/release-checks.js'
import { ROOT } from './built.ts'
import { newPostgresDatabase, temporaryFolder } from './databases.ts'
import { openJourney } from './journey.ts'
import { independentBoard } from './modbus-serial-board.ts'
import { processesOfTests } from './processes.ts'

/**
 * Data of a store that a release wrote: cloud on both databases, keys, and an agent that released goods. Each release
 * commits its own in `test/fixtures/releases/VERSION`; `npm run release` checks that.
 */
export interface ReleaseFixture {
  readonly folder: string
  readonly facts: Facts
}

/** What the tests need to know about the data. */
export interface Facts {
  readonly key: string
  readonly storeId: string
  readonly deviceId: string
  /** Product that the store sells. */
  readonly ean: string
  readonly usedReceipt: string
  readonly madeMs: number
}

const RELEASES = join(ROOT, FIXTURES)
/** With this variable the test of upgrades writes the files of this release. */
export const WRITES_FIXTURE = process.env['UNTAG_WRITE_FIXTURE'] === 'true'

/** Releases with committed data, this one included. */
export function fixtureVersions(): string[] {
  const committed = existsSync(RELEASES) ? readdirSync(RELEASES) : []
  return [...new Set([...committed, UNTAG_VERSION])].sort()
}

/**
 * The data of a release in a new folder. Data of this version is made anew if none is committed, or if the schema has
 * changed since. So a changed schema breaks no test before the release; afterwards, released data never changes.
 */
export async function releaseFixture(version: string): Promise<ReleaseFixture> {
  const committed = join(RELEASES, version)
  const folder = temporaryFolder('fixture')
  const isUsable =
    existsSync(committed) &&
    (version !== UNTAG_VERSION || readFileSync(join(committed, 'schema.sha256'), 'utf8').trim() === schemaHash())
  if (isUsable && !WRITES_FIXTURE) unpack(committed, folder)
  else {
    const [made, packed] = [temporaryFolder('fixture'), WRITES_FIXTURE ? committed : temporaryFolder('fixture')]
    await makeFixture(made)
    pack(made, packed)
    unpack(packed, folder)
  }
  return { folder, facts: JSON.parse(readFileSync(join(folder, 'facts.json'), 'utf8')) as Facts }
}

function pack(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    const target = join(to, file.slice(from.length))
    mkdirSync(join(target, '..'), { recursive: true })
    writeFileSync(`${target}.gz`, gzipSync(readFileSync(file), { level: 9 }))
  }
  writeFileSync(join(to, 'schema.sha256'), `${schemaHash()}\n`)
}

function unpack(from: string, to: string): void {
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.gz')) continue
    const file = join(entry.parentPath, entry.name)
    const target = join(to, file.slice(from.length, -'.gz'.length))
    mkdirSync(join(target, '..'), { recursive: true })
    writeFileSync(target, gunzipSync(readFileSync(file)), { mode: 0o600 })
  }
}

/** Runs a store of this checkout, and keeps its data. */
async function makeFixture(folder: string): Promise<void> {
  const boards = await Promise.all([1, 2, 3].map(() => independentBoard()))
  const [station = '', detacher = '', gate = ''] = boards.map(({ address }) => address)
  const store = await openJourney({ boards: { station, detacher, gate } })
  try {
    const deviceId = store.devices.pos_deactivator
    const ean = String(store.products[0]?.ean)
    const used = await store.buy([{ ean, quantity: 1 }])
    const request = { deviceId, protectionAction: 'deactivate_label', receipt: used.receipt }
    const { authorized } = await store.authorize(request)
    if (authorized !== true) throw new Error('the store of the fixture does not release')
    await store.stopProcesses()
    const facts: Facts = {
      key: store.key,
      storeId: store.storeId,
      deviceId,
      ean,
      usedReceipt: used.receipt,
      madeMs: Date.now(),
    }
    writeFileSync(join(folder, 'facts.json'), JSON.stringify(facts))
    const copy = (name: string, to = name) => cpSync(join(store.folder, name), join(folder, to))
    for (const name of ['cloud/cloud.db', 'cloud/keys/master.key', 'cloud/keys/root.json']) copy(name)
    for (const name of readdirSync(join(store.folder, 'edge'))) {
      const path = join('edge', name)
      if (statSync(join(store.folder, path)).isFile() && !/-(?:wal|shm)$|\.lock$/.test(name)) copy(path)
    }
    copy('edge.json')
    await dumpForPostgres(join(store.folder, 'cloud'), folder)
  } finally {
    await store.stop()
    await Promise.all(boards.map((board) => board.close()))
  }
}

/** The same rows as a dump of PostgreSQL, in a backup. */
async function dumpForPostgres(data: string, folder: string): Promise<void> {
  const { url, remove } = await newPostgresDatabase()
  try {
    for (const args of [
      ['database', 'copy', '--from', data, '--to', url],
      ['backup', '--data', data, '--database-url', url, '--to', join(folder, 'backups')],
    ]) {
      const { code, stderr } = await processesOfTests.run(args)
      if (code !== 0) throw new Error(stderr)
    }
    const [backup = ''] = readdirSync(join(folder, 'backups'))
    cpSync(join(folder, 'backups', backup, 'cloud.dump'), join(folder, 'cloud.dump'))
    rmSync(join(folder, 'backups'), { recursive: true })
  } finally {
    await remove()
  }
}
