import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A compiled script of the cloud's pages. Tests run the sources, so they use the script of the last build. `path`: from
 * the folder `cloud`.
 */
export function ownScript(path: string): string {
  const here = import.meta.dirname
  const folder = existsSync(join(here, 'own-script.ts')) ? join(here, '../../../dist/cloud') : join(here, '../..')
  const file = join(folder, path)
  return existsSync(file) ? `(() => {${readFileSync(file, 'utf8').replace(/^export \{\};?$/m, '')}})()` : ''
}
