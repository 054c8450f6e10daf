import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SecretFiles } from '../policy/platform.ts'
import { replaceFile } from './replace-file.ts'

/** Files of mode 0600 in folders of mode 0700. */
export const secretFiles: SecretFiles = {
  read(file) {
    if (!existsSync(file)) return undefined
    chmodSync(file, 0o600)
    return readFileSync(file, 'utf8')
  },
  write(file, text) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    replaceFile(file, text, 0o600)
  },
}
