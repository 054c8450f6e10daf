import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SecretFiles } from '../policy/platform.ts'
import { makeFolder } from './durable-folder.ts'
import { replaceFile } from './replace-file.ts'

/** Files of mode 0600 in folders of mode 0700. */
export const secretFiles: SecretFiles = {
  read(file) {
    if (!existsSync(file)) return undefined
    chmodSync(file, 0o600)
    return readFileSync(file, 'utf8')
  },
  write(file, text) {
    makeFolder(dirname(file))
    replaceFile(file, text, 0o600)
  },
}
