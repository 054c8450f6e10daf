import { chmodSync, closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SecretFiles } from '../policy/platform.ts'
import { flushFolder, makeFolder } from './durable-folder.ts'

/** Files of mode 0600 in folders of mode 0700: a new file, flushed, put in place, and the folder flushed. */
export const secretFiles: SecretFiles = {
  read(file) {
    if (!existsSync(file)) return undefined
    chmodSync(file, 0o600)
    return readFileSync(file, 'utf8')
  },
  write(file, text) {
    makeFolder(dirname(file))
    const fresh = `${file}.new`
    const fd = openSync(fresh, 'w', 0o600)
    try {
      // Goes on where the system wrote less than it was asked to; writeSync would not.
      writeFileSync(fd, text)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(fresh, file)
    flushFolder(dirname(file))
  },
}
