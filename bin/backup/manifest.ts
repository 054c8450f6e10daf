import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { flush, sha256Of } from './files.ts'

/** What a backup says of itself. It is written last: a folder without one is no backup. */
export const Manifest = z.strictObject({
  format: z.literal(1),
  madeAt: z.iso.datetime(),
  database: z.enum(['sqlite', 'postgres']),
  /** The file with the database, and its SHA-256 in hex. */
  file: z.enum(['cloud.db', 'cloud.dump']),
  sha256: z.string().length(64),
  bytes: z.int().min(0),
  /** Pictures of the folder beside the database; those in a bucket are not here. */
  images: z.int().min(0),
  /** Whether the folder `keys` is in it. */
  keys: z.enum(['included', 'apart']),
  /** PostgreSQL: the names of the keys that it needs, for its copy cannot be tried before it is put back. */
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

/** The manifest of a backup whose database is as it was written. Throws when the folder holds none, or a damaged one. */
export async function readBackup(folder: string): Promise<Manifest> {
  const file = join(folder, NAME)
  if (!existsSync(file)) throw new Error(`${folder} holds no whole backup: there is no ${NAME} in it`)
  let value: unknown
  try {
    value = JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    value = undefined
  }
  const manifest = Manifest.safeParse(value)
  if (!manifest.success) throw new Error(`${file} is damaged, or was written by a newer untag`)
  if ((await sha256Of(join(folder, manifest.data.file))) !== manifest.data.sha256)
    throw new Error(`${join(folder, manifest.data.file)} is damaged: it is not what was backed up`)
  return manifest.data
}
