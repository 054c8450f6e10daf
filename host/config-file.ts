import { existsSync, readFileSync, statSync } from 'node:fs'
import { withDevice, type ConfigFile } from '../edge-agent/setup/config-file.ts'
import { replaceFile } from './replace-file.ts'

/** Mode of a new file. Only its owner may read it, because it may contain passwords of readers. */
const NEW_FILE_MODE = 0o600

/** The configuration file at this path. `add` creates the file if it is missing. */
export function configFile(path: string): ConfigFile {
  const textWith = (entry: Readonly<Record<string, unknown>>) =>
    withDevice(existsSync(path) ? readFileSync(path, 'utf8') : '', entry)
  return {
    name: path,
    check: textWith,
    add(entry) {
      const added = textWith(entry)
      // Preserves the file mode.
      if (added.ok) replaceFile(path, added.text, existsSync(path) ? statSync(path).mode & 0o777 : NEW_FILE_MODE)
      return added
    },
  }
}
