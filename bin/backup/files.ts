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
import type { Progress } from './progress.ts'

/** Durable copies of files. Only the owner may read them. */

/** Flushes a file or a folder to the disk. */
export function flush(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Creates a folder and its parents. */
export function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
}

/** Copies one file, and flushes the copy. */
export function copyFlushed(from: string, to: string): void {
  makeFolder(dirname(to))
  copyFileSync(from, to)
  chmodSync(to, 0o600)
  flush(to)
}

/**
 * Copies the files of a folder and its subfolders that the target lacks. Returns the number of all files; 0 if the
 * folder does not exist. Calls `onFile` after each file.
 */
export function copyFolder(from: string, to: string, onFile: () => void = () => undefined): number {
  if (!existsSync(from)) return 0
  makeFolder(to)
  let files = 0
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) files += copyFolder(source, target, onFile)
    // The name of an incomplete file ends in `.new`.
    if (!entry.isFile() || entry.name.endsWith('.new')) continue
    if (!existsSync(target)) copyFlushed(source, target)
    files++
    onFile()
  }
  flush(to)
  return files
}

/** `copyFolder` with its progress in files. */
export function copyWithProgress(from: string, to: string, onProgress: Progress): number {
  if (!existsSync(from)) return 0
  const entries = readdirSync(from, { withFileTypes: true, recursive: true })
  const total = entries.filter((entry) => entry.isFile() && !entry.name.endsWith('.new')).length
  let done = 0
  onProgress(0, total)
  // A cloud may add pictures meanwhile.
  return copyFolder(from, to, () => onProgress(Math.min(++done, total), total))
}

/** SHA-256 of a file, hex. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
