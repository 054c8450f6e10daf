import { existsSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { keysOf, loadKeyFiles, type KeyPlace } from '../../cloud/platform/authority/key-files.ts'
import { assertNamedKeys } from '../../cloud/platform/authority/signing-keys.ts'
import { markRestored, type RestoreSummary } from '../../cloud/service/mark-restored.ts'
import { sealer } from '../../cloud/platform/authority/sealing.ts'
import { addErasures, type ListedErasure } from '../../cloud/sales/customers/erasures.ts'
import { collectErasures, writeErasures } from '../../host/backup/erasures.ts'
import {
  copyFlushed,
  copyFolder,
  copyWithProgress,
  flush,
  makeFolder,
  assertRestored,
  restoringFolder,
  readBackup,
  type Manifest,
} from '../../host/backup/files.ts'
import { checkDump, dropTables, loadPostgres, inspectPostgres, checkCopy } from '../../host/backup/database-dump.ts'
import { terminalProgress } from '../../host/backup/progress.ts'
import { counted } from '../../host/output.ts'
import { removeCopyRecord } from '../../host/database-copy/rows.ts'
import { lockDataDir } from '../../host/data-dir-lock.ts'
import { keyPlaceOf, secretFiles } from '../../host/secret-files.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type { RESTORE_OPTIONS } from '../../host/settings/cloud-data.ts'
import {
  assertKnownDatabase,
  assertNoCloudBelow,
  withDatabase,
  type DatabaseLocation,
} from '../../host/known-database.ts'

/**
 *   check backup ─▶ copy to DATA/restoring ─▶ check keys ─▶ raise generation ─▶ rename old data ─▶ move new data in
 *
 * Before the old data goes, the restore collects the erasures of customers, and adds them to the restored database.
 *
 * The new generation is durable before a cloud can use the restored data: no cloud starts while the folder `restoring`
 * exists.
 */
type Settings = Values<typeof RESTORE_OPTIONS>
type Restored = RestoreSummary & {
  readonly erasures: { readonly added: number; readonly unreadable: number }
  /** Migrations that the backup lacked. */
  readonly migrated: readonly string[]
  /** Why lists of erasures could not be read. */
  readonly unread?: readonly string[]
}

export async function runRestore(settings: Settings): Promise<void> {
  const { data, from, after } = settings
  if ((from === undefined) === !after)
    throw new WrongUsage([
      '--from DIR is needed: a folder that untag backup created; or --after, if the database was restored by other means',
    ])
  // Throws if the backup or the database is missing, before any folder is created.
  const manifest = from === undefined ? undefined : await readBackup(from)
  if (manifest) assertNoCloudBelow(settings)
  else await assertKnownDatabase(settings)
  makeFolder(data)
  const lock = lockDataDir(join(data, 'cloud.lock'), `a cloud runs with the data in ${data}: stop it first`)
  try {
    print(
      settings,
      from === undefined || !manifest
        ? await raiseGenerationOnly(settings)
        : await fromBackup(settings, from, manifest),
    )
  } finally {
    lock.release()
  }
}

/** Raises the generation of a database that was restored by other means. */
async function raiseGenerationOnly(settings: Settings): Promise<Restored> {
  assertRestored(settings.data)
  await assertNoOtherConnections(settings)
  const restored = await raiseGeneration(settings, { keys: keyPlaceOf(settings), erasures: [] })
  if (settings.databaseUrl === undefined) removeCopyRecord(settings.data)
  return restored
}

async function fromBackup(settings: Settings, from: string, manifest: Manifest): Promise<Restored> {
  const { data, databaseUrl } = settings
  const wanted = databaseUrl === undefined ? 'sqlite' : 'postgres'
  if (manifest.database !== wanted)
    throw new Error(
      `${from} is a backup of ${manifest.database}, not of ${wanted}: ${manifest.database === 'postgres' ? 'name the database with --database-url' : 'omit --database-url'}`,
    )
  const staging = restoringFolder(data)
  const takesKeys = restoresBackupKeys(settings, manifest)
  await assertMayReplace(settings)
  if (databaseUrl !== undefined) await assertRestorable(from, manifest, takesKeys ? keysOf(from) : keyPlaceOf(settings))
  const unread: string[] = []
  const erasures = await collectErasures(settings, { from, staging }, (reason) => unread.push(reason))
  rmSync(staging, { recursive: true, force: true })
  makeFolder(staging)
  writeErasures(staging, erasures)
  flush(data)
  if (takesKeys) copyFolder(join(from, 'keys'), join(staging, 'keys'))
  const keys = takesKeys ? keysOf(staging) : keyPlaceOf(settings)
  const restored =
    databaseUrl === undefined
      ? await stageOrClean(from, staging, { keys, erasures })
      : await fillPostgres(settings, databaseUrl, from, { keys, erasures })
  copyWithProgress(join(from, 'images'), join(data, 'images'), terminalProgress('pictures'))
  swap(settings, staging)
  return { ...restored, unread }
}

/**
 * True to restore the keys of the backup into the data folder. Existing keys are replaced only with --force, and keys
 * in another place never. Throws if neither the backup nor the place of the keys has keys.
 */
function restoresBackupKeys(settings: Settings, { keys }: Manifest): boolean {
  const own = keyPlaceOf(settings)
  const missing = [own.master, own.root].filter((file) => !existsSync(file))
  const standard = keysOf(settings.data)
  const isStandard = own.master === standard.master && own.root === standard.root
  if (keys === 'included' && isStandard) return settings.force || missing.length > 0
  if (missing.length === 0) return false
  throw new Error(
    keys === 'included'
      ? `${missing.join(' and ')} is missing: copy it from the folder keys of the backup first`
      : `this backup contains no keys: put ${missing.join(' and ')}, which you keep apart, in place first, or name their folder with --keys-dir`,
  )
}

async function assertMayReplace(settings: Settings): Promise<void> {
  const { data, databaseUrl, force } = settings
  if (databaseUrl === undefined) {
    const file = join(data, 'cloud.db')
    if (existsSync(file) && !force)
      throw new Error(`${file} already contains a cloud: use --force to rename it and restore the backup`)
    return
  }
  await assertNoOtherConnections(settings)
  const { tables } = await inspectPostgres(databaseUrl)
  // Tables of an interrupted restore may be dropped, because they contain only data of a backup.
  if (tables.length > 0 && !force && !existsSync(restoringFolder(data)))
    throw new Error('the database is not empty: use --force to drop all its tables and restore the backup')
}

async function assertNoOtherConnections({ databaseUrl, force }: Settings): Promise<void> {
  if (databaseUrl === undefined || force) return
  const { others } = await inspectPostgres(databaseUrl)
  if (others > 0)
    throw new Error(
      `the database has ${counted(others, 'other connection')}: stop every cloud first, or continue with --force`,
    )
}

/** Keys of the restored database, and the erasures to add to it. */
interface Additions {
  readonly keys: KeyPlace
  readonly erasures: readonly ListedErasure[]
}

/**
 * A refusal leaves nothing behind if the folder contains a cloud, which then starts as before. Otherwise it blocks the
 * start, because a cloud that started here would be empty.
 */
async function stageOrClean(from: string, staging: string, additions: Additions): Promise<Restored> {
  try {
    return await stageSqlite(from, staging, additions)
  } catch (error) {
    if (existsSync(join(dirname(staging), 'cloud.db'))) rmSync(staging, { recursive: true, force: true })
    throw error
  }
}

async function stageSqlite(from: string, staging: string, additions: Additions): Promise<Restored> {
  const file = join(staging, 'cloud.db')
  const progress = terminalProgress('database')
  progress(0, 4)
  copyFlushed(join(from, 'cloud.db'), file)
  progress(1, 4)
  checkCopy(file)
  progress(2, 4)
  const restored = await raiseGeneration({ data: staging, databaseUrl: undefined }, additions)
  progress(3, 4)
  // Merges the write-ahead log into the file, so that the file can be moved.
  checkCopy(file)
  progress(4, 4)
  flush(file)
  flush(staging)
  return restored
}

/** Checks the dump and the keys. Call it before tables are dropped, because dropped tables cannot be recovered. */
async function assertRestorable(from: string, { needs }: Manifest, keys: KeyPlace): Promise<void> {
  await checkDump(join(from, 'cloud.dump'))
  const missing = [keys.master, keys.root].find((file) => !existsSync(file))
  if (missing !== undefined)
    throw new Error(`${missing} is missing: put the keys that belong to this backup there first`)
  if (needs) assertNamedKeys(needs, await loadKeyFiles(keys, secretFiles, realPlatform().random))
}

async function fillPostgres(settings: Settings, url: string, from: string, additions: Additions): Promise<Restored> {
  const progress = terminalProgress('database')
  progress(0, 3)
  await dropTables(url, (await inspectPostgres(url)).tables)
  progress(1, 3)
  await loadPostgres(url, join(from, 'cloud.dump'))
  progress(2, 3)
  const restored = await raiseGeneration(settings, additions)
  progress(3, 3)
  return restored
}

/** Checks that the keys belong to the database, raises the generation, and adds the erasures. */
async function raiseGeneration(place: DatabaseLocation, { keys, erasures }: Additions): Promise<Restored> {
  const platform = realPlatform()
  return withDatabase(
    place,
    async (database) => {
      const files = await loadKeyFiles(keys, secretFiles, platform.random)
      const seals = sealer(files.sealingKeys, platform.random)
      return database.write(async (db) => {
        const summary = await markRestored(db, files, platform)
        return { ...summary, erasures: await addErasures(db, erasures, seals), migrated: database.migrated }
      })
    },
    true,
  )
}

/** Moves the old data to a folder `replaced-…`, then the restored data into the data folder. */
function swap({ data, databaseUrl }: Settings, staging: string): void {
  const aside = join(data, `replaced-${new Date(realPlatform().clock.wall()).toISOString().replaceAll(/[:.]/g, '-')}`)
  const keys = existsSync(join(staging, 'keys')) ? ['keys'] : []
  const names = databaseUrl === undefined ? [...keys, 'cloud.db-wal', 'cloud.db-shm', 'cloud.db'] : keys
  if (databaseUrl === undefined) removeCopyRecord(data)
  for (const name of names) {
    const [old, ready] = [join(data, name), join(staging, name)]
    if (existsSync(old)) {
      makeFolder(aside)
      renameSync(old, join(aside, name))
    }
    if (existsSync(ready)) renameSync(ready, old)
  }
  if (existsSync(aside)) flush(aside)
  flush(data)
  rmSync(staging, { recursive: true, force: true })
  flush(data)
}

function print({ json, after }: Settings, restored: Restored): void {
  const { generation, agents, revoked, lastSignedMs, erasures, migrated, unread = [] } = restored
  const until = lastSignedMs === undefined ? undefined : new Date(lastSignedMs).toISOString()
  process.stderr.write(
    [
      `Restored as generation ${generation}.${until === undefined ? '' : ` The backup ends less than a minute after ${until}.`}`,
      ...(migrated.length > 0 ? [`Applied ${counted(migrated.length, 'migration')}: ${migrated.join(', ')}.`] : []),
      `${counted(agents, 'agent sends its', 'agents send their')} journal rows again. Until all agents of a store have done so, for at most 11 minutes, the cloud grants nothing in that store.`,
      'All users sign in again and need new recovery codes, and open invitations a new link. Repeat your changes since the backup: removed users, passkeys and authenticator apps, changed roles and passwords, revoked API keys, signing keys and agents, moved receipt homes, changed policies. Re-enrol agents that were enrolled since (untag edge enrol --replace).',
      after
        ? 'Also repeat erasures of customers since then (eraseCustomerData).'
        : `${counted(erasures.added, 'erasure of a customer', 'erasures of customers')} will be repeated when the cloud starts.`,
      ...unread.map((reason) => `WARNING: ${reason}`),
      ...(unread.length > 0
        ? [
            'Repeat eraseCustomerData for the customers who were erased since the backup. If a newer release ran meanwhile: before the restore, make a backup with that release beside this one, then the restore knows them.',
          ]
        : []),
      ...(erasures.unreadable > 0
        ? [
            `${counted(erasures.unreadable, 'erasure was', 'erasures were')} sealed with another master key: repeat them with eraseCustomerData.`,
          ]
        : []),
      '',
    ].join('\n'),
  )
  process.stdout.write(
    json
      ? `${JSON.stringify({ generation, agents, revoked, erasures: erasures.added, ...(until !== undefined && { backupEnds: until }) })}\n`
      : `${generation}\n`,
  )
}
