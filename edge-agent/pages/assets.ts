import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The built scripts of the pages. */
export interface Assets {
  /** Hash of all files. The hash is part of the address of each file, so that browsers may cache the files for ever. */
  readonly build: string
  /** `file`: for example `browser/station.js`. */
  read(file: string): string | undefined
}

/** Folders that the browser may load: its scripts, and the modules that it shares with the server. */
const FOLDERS = ['browser', 'model', 'texts']

/** Reads the built scripts into memory. */
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

/** Folder of this file in the build. Tests run the sources, and use the scripts of the last build. */
function builtFolder(): string {
  const here = import.meta.dirname
  return existsSync(join(here, 'assets.ts')) ? join(here, '..', '..', 'dist', 'edge-agent', 'pages') : here
}
