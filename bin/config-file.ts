import { existsSync, readFileSync } from 'node:fs'
import { withDevice, type ConfigFile } from '../edge-agent/setup/config-file.ts'
import { replaceFile } from './replace-file.ts'

/** The configuration file at this path; one that does not exist yet is made by the first device. */
export function configFile(path: string): ConfigFile {
  return {
    name: path,
    add(entry) {
      const added = withDevice(existsSync(path) ? readFileSync(path, 'utf8') : '', entry)
      if (added.ok) replaceFile(path, added.text, 0o644)
      return added.ok ? { ok: true } : added
    },
  }
}
