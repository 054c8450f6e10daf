import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { accessError } from './path-access.ts'

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
