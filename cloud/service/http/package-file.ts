import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/** The text of a browser file beside the entry of an installed package. */
export function packageFile(name: string, file: string): string {
  const entry = createRequire(import.meta.url).resolve(name)
  return readFileSync(join(entry, '..', file), 'utf8')
}
