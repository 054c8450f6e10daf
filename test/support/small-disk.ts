import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findTool } from '../verification/tools.ts'

/** A separate file system with little space. */
export interface SmallDisk {
  folder: string
  /** Fills the remaining space. */
  fill(): void
  makeRoom(): void
  remove(): void
}

/** Mounts a file system of this size in memory. Needs root. */
export function smallDisk(mebibytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'untag-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=755`, 'tmpfs', folder], { stdio: 'pipe' })
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill() {
      const file = openSync(ballast, 'a')
      for (const size of [1_048_576, 4_096]) while (hasRoom(file, size));
      closeSync(file)
    },
    makeRoom: () => rmSync(ballast),
    remove() {
      execFileSync('umount', ['--lazy', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Writes this many bytes. False if there was not enough space. */
function hasRoom(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) === size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false
    throw error
  }
}

function missing(): string | null {
  if (process.platform !== 'linux') return 'file systems in memory are mounted on Linux only'
  if (findTool('mount') === undefined) return 'mount is missing'
  try {
    smallDisk(1).remove()
    return null
  } catch (error) {
    return `a small disk cannot be mounted: ${(error as Error).message.trim()}`
  }
}

/** Why this machine cannot mount a small disk, or null. */
export const NO_SMALL_DISK = missing()
