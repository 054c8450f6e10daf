import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, writeFileSync, mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { open, rm, statfs } from 'node:fs/promises'
import { accessError } from './private-files.ts'

/**
 * Creates a folder (mode 0700) and its parents, and flushes the new directory entries. Without the flush, a power cut
 * could delete the folder and its contents.
 */
export function makeFolder(path: string): void {
  const first = make(path)
  if (first === undefined) return
  const top = dirname(resolve(first))
  for (let above = dirname(resolve(path)); ; above = dirname(above)) {
    flushFolder(above)
    if (above === top || above === dirname(above)) return
  }
}

function make(path: string): string | undefined {
  try {
    return mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw code === 'EEXIST' || code === 'ENOTDIR'
      ? new Error(`${path} is a file and cannot be a folder: choose another path`, { cause: error })
      : accessError(path, error)
  }
}

/** Makes creations, renames and deletions in this folder durable. */
export function flushFolder(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** One page, the minimum that a write of the database needs. */
const PROBE = new Uint8Array(4_096)

/** Writes and removes a test file. Rejects if the folder is not writable or the disk is full. */
export async function probeDisk(folder: string): Promise<void> {
  const file = join(folder, `.probe-${process.pid}`)
  try {
    const handle = await open(file, 'w', 0o600)
    try {
      await handle.write(PROBE)
      await handle.datasync()
    } finally {
      await handle.close()
    }
  } finally {
    await rm(file, { force: true })
  }
}

/** Free space of the disk with this folder, bytes. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** Replaces a file atomically and durably: write, flush, rename, flush the folder. */
export function replaceFile(file: string, text: string, mode: number): void {
  const fresh = `${file}.new`
  const fd = openSync(fresh, 'w', mode)
  try {
    // A file that was left by a crash may have another mode.
    fchmodSync(fd, mode)
    // Unlike writeSync, writeFileSync continues after a partial write.
    writeFileSync(fd, text)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(fresh, file)
  flushFolder(dirname(file))
}
