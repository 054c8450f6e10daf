import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The programs of the pages, as the browser loads them; read once. */
export interface Assets {
  /** Hash of all files, and part of every address. So browsers may cache them for ever. */
  readonly build: string
  /** `file` as in `browser/station.js`. */
  read(file: string): string | undefined
}

/** Folders that the browser may load: its programs, and modules that both sides share. */
const FOLDERS = ['browser', 'model', 'texts']

/** Reads the built scripts, styles and icons into memory; throws when they were not built. */
export function readAssets(folder = builtFolder()): Assets {
  const files = new Map<string, string>()
  for (const name of FOLDERS.filter((name) => existsSync(join(folder, name)))) {
    for (const file of readdirSync(join(folder, name)).filter((file) => file.endsWith('.js'))) {
      files.set(`${name}/${file}`, readFileSync(join(folder, name, file), 'utf8'))
    }
  }
  const hash = createHash('sha256')
  for (const name of [...files.keys()].sort())
    hash
      .update(name)
      .update('\0')
      .update(files.get(name) ?? '')
      .update('\0')
  return { build: hash.digest('hex').slice(0, 16), read: (file) => files.get(file) }
}

/** The folder of this file in a build. Tests run the sources and use the last build. */
function builtFolder(): string {
  const here = import.meta.dirname
  return existsSync(join(here, 'assets.ts')) ? join(here, '..', '..', 'dist', 'edge-agent', 'pages') : here
}
