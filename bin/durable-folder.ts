import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { outOfReach } from './is-there.ts'

/**
 * Makes a folder that only its owner may enter, with those above it, and flushes the names of the new ones: what
 * is written into a folder whose own name was lost in a power cut is lost with it.
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
      ? new Error(`${path} cannot be a folder: there is a file of that name`, { cause: error })
      : outOfReach(path, error)
  }
}

/** What was made, renamed or removed in this folder is so for good. */
export function flushFolder(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
