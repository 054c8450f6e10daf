import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { flush, sha256Of } from './files.ts'

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
