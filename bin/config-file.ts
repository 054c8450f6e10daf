import { existsSync, readFileSync, statSync } from 'node:fs'
import { withDevice, type ConfigFile } from '../edge-agent/setup/config-file.ts'
import { replaceFile } from './replace-file.ts'

/** Readers' passwords and secrets stand in it: a new one is its owner's alone. */
const NEW_FILE_MODE = 0o600

/** The configuration file at this path; one that does not exist yet is made by the first device. */
export function configFile(path: string): ConfigFile {
  return {
    name: path,
    add(entry) {
      const isThere = existsSync(path)
      const added = withDevice(isThere ? readFileSync(path, 'utf8') : '', entry)
      // Whoever may read it is whoever might before.
      if (added.ok) replaceFile(path, added.text, isThere ? statSync(path).mode & 0o777 : NEW_FILE_MODE)
      return added.ok ? { ok: true } : added
    },
  }
}
