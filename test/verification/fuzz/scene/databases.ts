import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { openDatabase } from '../../../../cloud/platform/persistence/open-database.ts'
import type { PostgresPlace } from '../../../../cloud/platform/persistence/postgres.ts'
import { createTestAccounts, type TestAccounts } from './test-accounts.ts'

/** Creates a database with the test accounts for each run. */
export interface RunDatabases {
  readonly accounts: TestAccounts
  open(): Promise<Database>
  remove(): void
}

const fail = (failure: Error): never => {
  throw failure
}

/** SQLite files in a new folder below `parent`. The test accounts are created once and copied for each run. */
export async function sqliteDatabases(parent: string): Promise<RunDatabases> {
  const folder = mkdtempSync(join(parent, 'untag-fuzz-'))
  const template = join(folder, 'template.db')
  const accounts = await createTestAccounts(await openDatabase({ file: template }, fail))
  let runs = 0
  return {
    accounts,
    open() {
      const file = join(folder, `run-${++runs}.db`)
      copyFileSync(template, file)
      return openDatabase({ file }, fail)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Creates the test accounts in an empty PostgreSQL database, which suffices for one run. */
export async function postgresDatabase(
  url: string,
  platform: Pick<PostgresPlace, 'clock' | 'timers'>,
): Promise<RunDatabases> {
  const accounts = await createTestAccounts(await openDatabase({ url, ...platform }, fail))
  return { accounts, open: () => openDatabase({ url, ...platform }, fail), remove: () => undefined }
}
