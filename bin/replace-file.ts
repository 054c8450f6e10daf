import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { flushFolder } from './durable-folder.ts'

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
