import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { keysOf, type KeyPlace } from '../../cloud/authority/key-files.ts'
import { copyFlushed, copyFolder, flush, makeFolder, sha256Of } from '../backup/files.ts'
import { writeManifest, type Manifest } from '../backup/manifest.ts'
import { dumpPostgres, keyNamesOf } from '../backup/postgres-dump.ts'
import { progressOf } from '../backup/progress.ts'
import { copyDatabase } from '../backup/sqlite-copy.ts'
import { assertRestored } from '../backup/unfinished.ts'
import { assertNotCopied } from '../database-copy/copy-record.ts'
import { keyPlaceOf } from '../key-place.ts'
import type { Values } from '../options.ts'
import { realPlatform } from '../platform.ts'
import type { BACKUP_OPTIONS } from '../settings.ts'
import { assertKnownDatabase, assertOwnKeyFiles } from './known-database.ts'

/**
 *   snapshot of the database ─▶ check ─▶ pictures ─▶ keys (with --with-keys) ─▶ manifest ─▶ rename
 *
 * A backup also works while the cloud runs. The name of the folder ends in `.partial` until the backup is complete.
 */
export async function runBackup(settings: Values<typeof BACKUP_OPTIONS>): Promise<void> {
  const { data, databaseUrl, to, withKeys, json } = settings
  assertRestored(data)
  assertNotCopied({ data, databaseUrl })
  const source = join(data, 'cloud.db')
  await assertKnownDatabase({ data, databaseUrl })
  const keys = keyPlaceOf(settings)
  if (withKeys) assertOwnKeyFiles(keys, data)
  const madeAt = new Date(realPlatform().clock.wall()).toISOString()
  const folder = join(to, `untag-${madeAt.replaceAll(/[:.]/g, '-')}`)
  const partial = `${folder}.partial`
  makeFolder(partial)
  try {
    const file = databaseUrl === undefined ? 'cloud.db' : 'cloud.dump'
    const copy = join(partial, file)
    if (databaseUrl === undefined) await copyDatabase(source, copy, progressOf('database'))
    else await dumpPostgres(databaseUrl, copy)
    const images = copyFolder(join(data, 'images'), join(partial, 'images'))
    if (withKeys) copyKeys(keys, keysOf(partial))
    const manifest: Manifest = {
      format: 1,
      madeAt,
      database: databaseUrl === undefined ? 'sqlite' : 'postgres',
      file,
      sha256: await sha256Of(copy),
      bytes: statSync(copy).size,
      images,
      keys: withKeys ? 'included' : 'apart',
      ...(databaseUrl !== undefined && { needs: await keyNamesOf(databaseUrl) }),
    }
    writeManifest(partial, manifest)
    renameSync(partial, folder)
    flush(to)
    process.stderr.write(`${aboutKeys(manifest, keys)}\n`)
    process.stdout.write(json ? `${JSON.stringify({ backup: folder, ...manifest })}\n` : `${folder}\n`)
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    throw error
  }
}

function copyKeys(from: KeyPlace, to: KeyPlace): void {
  makeFolder(dirname(to.master))
  copyFlushed(from.master, to.master)
  copyFlushed(from.root, to.root)
}

function aboutKeys({ keys }: Manifest, { master, root }: KeyPlace): string {
  if (keys === 'apart' && !existsSync(master)) {
    return `The backup contains no keys, and there are none in ${dirname(master)}. If the cloud's data is on this machine, repeat with its folder as --data, so that pictures are included. Without master.key and root.json this backup cannot be restored.`
  }
  if (keys === 'included')
    return 'The backup contains the keys: anyone who has it can sign as this cloud and read every secret.'
  return `The backup contains no keys. Keep ${master} (without it the secrets in the database are lost) and ${root} (without it all agents must be re-enrolled) in another place.`
}
