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
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Progress } from './progress.ts'
import { z } from 'zod'

/**
 * Staging folder of a restore. While this folder exists, the restore is incomplete and neither the old nor the new data
 * is usable.
 */
export function restoringFolder(data: string): string {
  return join(data, 'restoring')
}

/** Throws if a restore is incomplete, because the data folder may still have the old generation. */
export function assertRestored(data: string): void {
  if (existsSync(restoringFolder(data)))
    throw new Error(`a restore into ${data} was interrupted: run untag restore again`)
}

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
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EEXIST' && code !== 'ENOTDIR') throw error
    throw new Error(`${folder} is a file, or below one: name a folder`, { cause: error })
  }
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

/** Contents of a backup. The manifest is written last, so a folder without a manifest is incomplete. */
export const Manifest = z.strictObject({
  format: z.literal(1),
  madeAt: z.iso.datetime(),
  database: z.enum(['sqlite', 'postgres']),
  /** File with the database, and its SHA-256 in hex. */
  file: z.enum(['cloud.db', 'cloud.dump']),
  sha256: z.string().length(64),
  bytes: z.int().min(0),
  /** Number of pictures. Pictures in a bucket are not part of a backup. */
  images: z.int().min(0),
  /** `included`: the backup contains the folder `keys`. `apart`: the backup does not contain this folder. */
  keys: z.enum(['included', 'apart']),
  /**
   * Names of the keys that a cloud needs to use the PostgreSQL dump. The dump contains these names too, but they
   * cannot be read before the dump is restored.
   */
  needs: z.strictObject({ root: z.string().optional(), sealing: z.array(z.string()) }).optional(),
})
export type Manifest = z.infer<typeof Manifest>

const NAME = 'backup.json'

/** Writes the manifest, flushed. */
export function writeManifest(folder: string, manifest: Manifest): void {
  const file = join(folder, NAME)
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 })
  flush(file)
  flush(folder)
}

/** True if the folder contains a manifest, and thus a complete backup. */
export function hasManifest(folder: string): boolean {
  return existsSync(join(folder, NAME))
}

/** Reads the manifest and verifies the checksum of the database. Throws if the backup is incomplete or damaged. */
export async function readBackup(folder: string): Promise<Manifest> {
  const file = join(folder, NAME)
  if (!existsSync(file))
    throw new Error(
      `${folder} contains no complete backup, because ${NAME} is missing: choose the folder of one backup with --from`,
    )
  let value: unknown
  try {
    value = JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    value = undefined
  }
  const manifest = Manifest.safeParse(value)
  if (!manifest.success)
    throw new Error(`${file} is damaged, or a newer version of untag wrote it: use that version or another backup`)
  if ((await sha256Of(join(folder, manifest.data.file))) !== manifest.data.sha256)
    throw new Error(`${join(folder, manifest.data.file)} is damaged, because its checksum differs: use another backup`)
  return manifest.data
}
