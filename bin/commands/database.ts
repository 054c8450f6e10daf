import { join, dirname, resolve } from 'node:path'
import { assertRestored } from '../../host/backup/files.ts'
import { counted } from '../../host/output.ts'
import { lockDataDir } from '../../host/data-dir-lock.ts'
import { makeFolder } from '../../host/replace-file.ts'
import { type Values, WrongUsage } from '../../host/options.ts'
import type { MIGRATE_OPTIONS, DATABASE_COPY_OPTIONS } from '../../host/settings/cloud-data.ts'
import { assertNoCloudBelow, withDatabase, assertKnownDatabase, assertOwnKeyFiles } from '../../host/known-database.ts'
import type { KeyPlace } from '../../cloud/platform/authority/key-files.ts'
import { progressOf } from '../../host/backup/progress.ts'
import { copyDatabase } from '../../host/database-copy/copy.ts'
import { type ComparedTable, readCopyRecord, writeCopyRecord } from '../../host/database-copy/rows.ts'
import { keyPlaceOf } from '../../host/secret-files.ts'
import { realPlatform } from '../../host/platform.ts'

/**
 * Applies missing migrations without starting a cloud. A new database gets its tables. PostgreSQL may be in use
 * meanwhile; a cloud on SQLite must be stopped, because it knows only the old tables.
 */
export async function runMigrate(place: Values<typeof MIGRATE_OPTIONS>): Promise<void> {
  const { data, databaseUrl, json } = place
  if (databaseUrl !== undefined) return printMigrated(json, await withDatabase(place, async ({ migrated }) => migrated))
  assertNoCloudBelow(place)
  makeFolder(data)
  const lock = lockDataDir(join(data, 'cloud.lock'), `a cloud runs with the data in ${data}: stop it first`)
  try {
    assertRestored(data)
    printMigrated(json, await withDatabase(place, async ({ migrated }) => migrated))
  } finally {
    lock.release()
  }
}

function printMigrated(json: boolean, migrated: readonly string[]): void {
  const text =
    migrated.length === 0
      ? 'The database is up to date.'
      : `Applied ${counted(migrated.length, 'migration')}: ${migrated.join(', ')}.`
  process.stdout.write(json ? `${JSON.stringify({ migrated })}\n` : `${text}\n`)
}

/** Copies the SQLite database of a stopped cloud to PostgreSQL. Keys and pictures stay in the data folder. */
export async function runDatabaseCopy(settings: Values<typeof DATABASE_COPY_OPTIONS>): Promise<void> {
  const { from, to, json } = settings
  if (to === undefined)
    throw new WrongUsage(['--to is needed: the address of an empty PostgreSQL database, such as postgres://HOST/NAME'])
  await assertKnownDatabase({ data: from, databaseUrl: undefined })
  const keys = keyPlaceOf({ ...settings, data: from })
  assertOwnKeyFiles(keys, from)
  const lock = lockDataDir(join(from, 'cloud.lock'), `a cloud runs with the data in ${from}: stop it first`)
  try {
    assertRestored(from)
    printCopied(json, from, keys, await copyFrom(from, to))
  } finally {
    lock.release()
  }
}

function copyFrom(data: string, url: string): Promise<ComparedTable[]> {
  const known = readCopyRecord(data)
  let record = known ?? {
    copyId: Buffer.from(realPlatform().random.bytes(8)).toString('hex'),
    target: '',
    isComplete: false,
  }
  return copyDatabase({
    file: join(data, 'cloud.db'),
    url,
    begin(target, startedId) {
      if (startedId !== undefined && startedId !== known?.copyId)
        throw new Error(
          'the database contains the incomplete copy of another folder, or an abandoned copy: choose an empty database',
        )
      if (startedId === undefined && known !== undefined && (known.isComplete || known.target !== target))
        throw new Error(
          known.isComplete
            ? `the database in ${data} was already copied to ${known.target}`
            : `a copy to ${known.target} is incomplete: name the same database, or delete ${join(data, 'copied.json')} to give that copy up`,
        )
      record = { ...record, target }
      writeCopyRecord(data, record)
      return record.copyId
    },
    complete: () => writeCopyRecord(data, { ...record, isComplete: true }),
    onCopied: progressOf('copied'),
    onChecked: progressOf('checked'),
  })
}

function printCopied(json: boolean, data: string, { master }: KeyPlace, tables: readonly ComparedTable[]): void {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  const counts = tables.map(({ name, rows: n, sha256 }) => ({ table: name, rows: n, sha256 }))
  process.stderr.write(
    [
      `Copied and compared ${counted(rows, 'row')} of ${counted(tables.length, 'table')}. The SQLite database can no longer be used by accident.`,
      `Pictures stay in ${resolve(data)}, keys in ${resolve(dirname(master))}. Start the cloud with the same options and the new database as --database-url. For a cloud on another machine, copy the keys, and images/ into its data folder.`,
      '',
    ].join('\n'),
  )
  process.stdout.write(json ? `${JSON.stringify({ rows, tables: counts })}\n` : `${counted(rows, 'row')} copied\n`)
}
