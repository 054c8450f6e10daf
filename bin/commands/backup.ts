import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { keysOf, type KeyPlace } from '../../cloud/platform/authority/key-files.ts'
import { databaseErasures, writeErasures } from '../../host/backup/erasures.ts'
import {
  copyFlushed,
  copyWithProgress,
  flush,
  makeFolder,
  sha256Of,
  assertRestored,
  writeManifest,
  type Manifest,
} from '../../host/backup/files.ts'
import { dumpPostgres, keyNamesOf, copyDatabase } from '../../host/backup/database-dump.ts'
import { progressOf, terminalProgress } from '../../host/backup/progress.ts'
import { backupName, deleteObsolete, storedBackups, startSchedule } from '../../host/backup/retention.ts'
import { writeLastBackup } from '../../cloud/service/monitoring/metrics.ts'
import { assertNotCopied } from '../../host/database-copy/rows.ts'
import { errorText, printNote, printReady } from '../../host/output.ts'
import { keyPlaceOf } from '../../host/secret-files.ts'
import type { Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type { BACKUP_OPTIONS } from '../../host/settings/cloud-data.ts'
import { stopOnSignals } from '../../host/shutdown.ts'
import { assertKnownDatabase, assertOwnKeyFiles, withDatabase } from '../../host/known-database.ts'

const HOUR_MS = 3_600_000

type Settings = Values<typeof BACKUP_OPTIONS>

/** Makes one backup, or with `--every` one after the other until a signal arrives. */
export async function runBackup(settings: Settings): Promise<void> {
  const { to, every } = settings
  if (every === 0) return backUp(settings)
  const { clock, timers } = realPlatform()
  const stop = startSchedule({
    everyMs: every * HOUR_MS,
    clock,
    timers,
    newest: () => storedBackups(to).find(({ isComplete }) => isComplete)?.madeMs,
    backUp: () => backUp(settings),
    onFailure: (error, retryMs) =>
      printNote(`the backup failed: ${errorText(error)}. Next attempt in ${Math.round(retryMs / 60_000)} minutes`),
  })
  stopOnSignals(stop)
  printReady({ backups: to, everyHours: every })
}

async function backUp(settings: Settings): Promise<void> {
  const { to, every, json, keep, keepDays } = settings
  const { folder, manifest } = await makeBackup(settings)
  if (every === 0) process.stderr.write(`${aboutKeys(manifest, keyPlaceOf(settings))}\n`)
  process.stdout.write(json ? `${JSON.stringify({ backup: folder, ...manifest })}\n` : `${folder}\n`)
  await recordBackup(settings, manifest)
  for (const name of deleteObsolete(to, { keep, keepDays }, realPlatform().clock.wall()))
    printNote(`deleted ${join(to, name)}`)
}

/**
 *   snapshot of the database ─▶ check ─▶ pictures ─▶ erasures ─▶ keys (with --with-keys) ─▶ manifest ─▶ rename
 *
 * A backup also works while the cloud runs. The name of the folder ends in `.partial` until the backup is complete.
 */
async function makeBackup(settings: Settings): Promise<{ folder: string; manifest: Manifest }> {
  const { data, databaseUrl, to, withKeys } = settings
  assertRestored(data)
  assertNotCopied({ data, databaseUrl })
  const source = join(data, 'cloud.db')
  await assertKnownDatabase({ data, databaseUrl })
  const keys = keyPlaceOf(settings)
  if (withKeys) assertOwnKeyFiles(keys, data)
  const madeAt = new Date(realPlatform().clock.wall()).toISOString()
  const folder = join(to, backupName(madeAt))
  const partial = `${folder}.partial`
  makeFolder(partial)
  try {
    const file = databaseUrl === undefined ? 'cloud.db' : 'cloud.dump'
    const copy = join(partial, file)
    if (databaseUrl === undefined) await copyDatabase(source, copy, progressOf('database'))
    else await dumpPostgres(databaseUrl, copy)
    const images = copyWithProgress(join(data, 'images'), join(partial, 'images'), terminalProgress('pictures'))
    // Read after the copy, so that the list also contains erasures that the copy lacks.
    writeErasures(partial, await databaseErasures({ data, databaseUrl }))
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
    return { folder, manifest }
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    throw error
  }
}

/** Stores the time of the backup in the database, for the metrics. The backup is complete without it. */
async function recordBackup({ data, databaseUrl }: Settings, { madeAt }: Manifest): Promise<void> {
  try {
    await withDatabase({ data, databaseUrl, migrations: 'require' }, (database) =>
      database.write((db) => writeLastBackup(db, Date.parse(madeAt))),
    )
  } catch (error) {
    printNote(`The backup is complete, but /metrics of the cloud does not show it: ${errorText(error)}`)
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
