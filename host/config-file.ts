import { createHash } from 'node:crypto'
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { z } from 'zod'
import { entryIn, withChangedDevice, withDevice, type ConfigFile } from '../edge-agent/setup/config-file.ts'
import { replaceFile } from './replace-file.ts'

/** Mode of a new file. Only its owner may read it, because it may contain passwords of readers. */
const NEW_FILE_MODE = 0o600

/** Metadata key: the configuration file that the agent of a ledger uses, as JSON. */
export const CONFIG_IN_USE = 'config_in_use'

/** `content`: SHA-256 of the text of the file. */
const ConfigInUse = z.object({ file: z.string(), content: z.string() })

/** Text to store under `CONFIG_IN_USE`. '' without a file. */
export function configInUse(path: string | undefined): string {
  return path === undefined ? '' : JSON.stringify({ file: realPath(path), content: contentOf(path) })
}

/** How the configuration at `path` relates to the one that an agent stored. Undefined if it stored none. */
export function compareConfig(
  path: string,
  stored: string | undefined,
): 'in use' | 'changed' | { other: string | undefined } | undefined {
  if (stored === undefined) return undefined
  const used = stored === '' ? undefined : ConfigInUse.parse(JSON.parse(stored))
  if (used?.file !== realPath(path)) return { other: used?.file }
  return used.content === contentOf(path) ? 'in use' : 'changed'
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path)
}

/** SHA-256 of the text of the file. '' if it cannot be read. */
function contentOf(path: string): string {
  try {
    return createHash('sha256').update(readText(path)).digest('hex')
  } catch {
    return ''
  }
}

/** '' if the file is missing. */
function readText(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/**
 * The configuration file at this path. `add` creates the file if it is missing. `onWritten` is called after each change.
 */
export function configFile(path: string, onWritten: () => void = () => undefined): ConfigFile {
  const read = () => readText(path)
  const textWith = (entry: Readonly<Record<string, unknown>>) => withDevice(read(), entry)
  const write = <E extends ReturnType<typeof textWith>>(edited: E): E => {
    // Preserves the file mode.
    if (edited.ok) {
      replaceFile(path, edited.text, existsSync(path) ? statSync(path).mode & 0o777 : NEW_FILE_MODE)
      onWritten()
    }
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
