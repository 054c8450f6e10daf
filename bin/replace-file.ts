import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { flushFolder } from './durable-folder.ts'

/** Puts a new file in the place of another, whole or not at all, also when the power goes: written, flushed, renamed, and the folder flushed. */
export function replaceFile(file: string, text: string, mode: number): void {
  const fresh = `${file}.new`
  const fd = openSync(fresh, 'w', mode)
  try {
    // One that was left behind by a crash has the mode it was made with.
    fchmodSync(fd, mode)
    // Goes on where the system wrote less than it was asked to; writeSync would not.
    writeFileSync(fd, text)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(fresh, file)
  flushFolder(dirname(file))
}
