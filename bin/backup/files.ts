import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  createReadStream,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

/** Copies that are on the disk when they are said to be. Everything is readable by its owner alone. */

/** Flushes a file or a folder. */
export function flush(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Makes a folder, and those above it. */
export function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
}

/** Copies one file, and flushes it. */
export function copyFlushed(from: string, to: string): void {
  makeFolder(dirname(to))
  copyFileSync(from, to)
  chmodSync(to, 0o600)
  flush(to)
}

/** Copies the files of a folder and of those within that are not there yet; answers how many there are. Nothing when there is no folder. */
export function copyFolder(from: string, to: string): number {
  if (!existsSync(from)) return 0
  makeFolder(to)
  let files = 0
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) files += copyFolder(source, target)
    // What is still being written is of no backup.
    if (!entry.isFile() || entry.name.endsWith('.new')) continue
    if (!existsSync(target)) copyFlushed(source, target)
    files++
  }
  flush(to)
  return files
}

/** SHA-256 of a file, hex. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
