import { existsSync, readFileSync, statSync } from 'node:fs'
import { entryIn, withChangedDevice, withDevice, type ConfigFile } from '../edge-agent/setup/config-file.ts'
import { replaceFile } from './replace-file.ts'

/** Mode of a new file. Only its owner may read it, because it may contain passwords of readers. */
const NEW_FILE_MODE = 0o600

/** The configuration file at this path. `add` creates the file if it is missing. */
export function configFile(path: string): ConfigFile {
  const read = () => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  const textWith = (entry: Readonly<Record<string, unknown>>) => withDevice(read(), entry)
  const write = <E extends ReturnType<typeof textWith>>(edited: E): E => {
    // Preserves the file mode.
    if (edited.ok) replaceFile(path, edited.text, existsSync(path) ? statSync(path).mode & 0o777 : NEW_FILE_MODE)
    return edited
  }
  return {
    name: path,
    check: textWith,
    add: (entry) => write(textWith(entry)),
    entry: (deviceId) => entryIn(read(), deviceId),
    replace: (deviceId, entry) => write(withChangedDevice(read(), deviceId, entry)),
  }
}
