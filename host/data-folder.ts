import { join } from 'node:path'
import type { Randomness } from '../policy/platform.ts'
import { lockDataDir } from './data-dir-lock.ts'
import { assertRestored } from './backup/files.ts'
import { assertNoCloudBelow, type DatabaseLocation } from './known-database.ts'
import { assertNotCopied } from './database-copy/rows.ts'
import { makeFolder } from './replace-file.ts'
import { hideFromOthers } from './private-files.ts'
import { secretFiles } from './secret-files.ts'

/** The data folder of a cloud, locked for this process and its workers. */
export interface DataFolder {
  /** Id of this run. The processes of this run have this id, or ids that start with this id and a dot. */
  readonly run: string
  /** Id of the last run with this folder. The lock shows that the processes of that run have ended. */
  readonly formerRun: string | undefined
  release(): void
}

/** Locks the data folder; creates it at the first start. Throws if another cloud runs with it. */
export function openDataFolder(settings: DatabaseLocation, random: Randomness): DataFolder {
  const { data } = settings
  assertNoCloudBelow(settings)
  makeFolder(data)
  const lock = lockDataDir(
    join(data, 'cloud.lock'),
    `another cloud runs with the data in ${data}: stop it, or choose another folder with --data`,
  )
  try {
    assertRestored(data)
    assertNotCopied(settings)
    hideFromOthers(data, ['cloud.db'])
    const file = join(data, 'last-run')
    const formerRun = secretFiles.read(file)
    const run = `run_${Buffer.from(random.bytes(12)).toString('hex')}`
    secretFiles.write(file, run)
    return { run, formerRun, release: () => lock.release() }
  } catch (error) {
    lock.release()
    throw error
  }
}

/** True if the process belongs to this run. */
export function isOfRun(processId: string, run: string | undefined): boolean {
  return run !== undefined && processId.split('.')[0] === run
}
