import { chmodSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SecretFiles } from '../policy/platform.ts'
import { makeFolder } from './durable-folder.ts'
import { pathExists, accessError } from './path-access.ts'
import { replaceFile } from './replace-file.ts'

/** Reads and writes files of mode 0600 in folders of mode 0700. */
export const secretFiles: SecretFiles = {
  read(file) {
    if (!pathExists(file)) return undefined
    try {
      hide(file)
      return readFileSync(file, 'utf8')
    } catch (error) {
      throw accessError(file, error)
    }
  },
  write(file, text) {
    makeFolder(dirname(file))
    replaceFile(file, text, 0o600)
  },
}

/** Removes the access of other users. A read-only mount, such as a secret of a container, has the mode of its mount. */
function hide(file: string): void {
  try {
    chmodSync(file, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EROFS') throw error
  }
}
