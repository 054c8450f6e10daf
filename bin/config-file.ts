import { existsSync, readFileSync, statSync } from 'node:fs'
import { withDevice, type ConfigFile } from '../edge-agent/setup/config-file.ts'
import { replaceFile } from './replace-file.ts'

/** Mode of a new file. Only its owner may read it, because it may contain passwords of readers. */
const NEW_FILE_MODE = 0o600

/** The configuration file at this path. `add` creates the file if it is missing. */
export function configFile(path: string): ConfigFile {
  return {
    name: path,
    add(entry) {
      const isThere = existsSync(path)
      const added = withDevice(isThere ? readFileSync(path, 'utf8') : '', entry)
      // Preserves the file mode.
      if (added.ok) replaceFile(path, added.text, isThere ? statSync(path).mode & 0o777 : NEW_FILE_MODE)
      return added.ok ? { ok: true } : added
    },
  }
}
