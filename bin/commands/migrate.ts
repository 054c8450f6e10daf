import { join } from 'node:path'
import { assertRestored } from '../../host/backup/files.ts'
import { counted } from '../../host/output.ts'
import { lockDataDir } from '../../host/data-dir-lock.ts'
import { makeFolder } from '../../host/replace-file.ts'
import type { Values } from '../../host/options.ts'
import type { MIGRATE_OPTIONS } from '../../host/settings/cloud-data.ts'
import { assertNoCloudBelow, withDatabase } from '../../host/known-database.ts'

/**
 * Applies missing migrations without starting a cloud. A new database gets its tables. PostgreSQL may be in use
 * meanwhile; a cloud on SQLite must be stopped, because it knows only the old tables.
 */
export async function runMigrate(place: Values<typeof MIGRATE_OPTIONS>): Promise<void> {
  const { data, databaseUrl, json } = place
  if (databaseUrl !== undefined) return print(json, await withDatabase(place, async ({ migrated }) => migrated))
  assertNoCloudBelow(place)
  makeFolder(data)
  const lock = lockDataDir(join(data, 'cloud.lock'), `a cloud runs with the data in ${data}: stop it first`)
  try {
    assertRestored(data)
    print(json, await withDatabase(place, async ({ migrated }) => migrated))
  } finally {
    lock.release()
  }
}

function print(json: boolean, migrated: readonly string[]): void {
  const text =
    migrated.length === 0
      ? 'The database is up to date.'
      : `Applied ${counted(migrated.length, 'migration')}: ${migrated.join(', ')}.`
  process.stdout.write(json ? `${JSON.stringify({ migrated })}\n` : `${text}\n`)
}
