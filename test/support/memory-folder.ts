import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Folder for the files of a test run, in memory if possible, because on a disk every commit waits. After a killed
 * process the files are the same as on a disk. Power cuts are tested by replay.
 */

const ROOT = '/dev/shm'
const PREFIX = 'untag-test-'
/** Free space that is required, bytes. A run needs a fifth of it. */
const ROOM_BYTES = 2 * 2 ** 30

/** Creates the folder of this run, or returns undefined if that is impossible. Deletes folders of dead runs. */
export function makeMemoryFolder(): string | undefined {
  if (!existsSync(ROOT)) return undefined
  for (const name of readdirSync(ROOT)) {
    if (name.startsWith(PREFIX) && !isAlive(Number(name.slice(PREFIX.length)))) removeFolder(join(ROOT, name))
  }
  const { bavail, bsize } = statfsSync(ROOT)
  if (bavail * bsize < ROOM_BYTES) return undefined
  const folder = join(ROOT, `${PREFIX}${process.pid}`)
  // The user of PostgreSQL needs access.
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  return folder
}

/** Removes the folder with all files of the tests. */
export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
