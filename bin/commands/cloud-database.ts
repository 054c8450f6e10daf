import { join } from 'node:path'
import type { Log } from '../../cloud/platform/foundation/log.ts'
import type { Database } from '../../cloud/platform/persistence/database.ts'
import { openDatabase } from '../../cloud/platform/persistence/open-database.ts'
import type { PostgresPlace } from '../../cloud/platform/persistence/postgres.ts'
import type { ReplicaPlace } from '../../cloud/platform/persistence/replica.ts'
import type { Platform } from '../../policy/platform.ts'
import { WrongUsage, type Values } from '../options.ts'
import type { CLOUD_OPTIONS } from '../settings.ts'

type Settings = Values<typeof CLOUD_OPTIONS>

/** Opens the database of a cloud, and logs the changes of its state. */
export function openCloudDatabase(settings: Settings, platform: Platform, log: Log): Promise<Database> {
  return openDatabase(
    placeOf(settings, platform, log),
    (failure) => {
      log.error(
        { err: failure },
        'a write to the database failed, so this process ends: check the disk and start the cloud again',
      )
      process.exit(1)
    },
    (state, err) => {
      if (state === 'available') log.warn({}, 'the database accepts writes again')
      else if (state === 'full') log.error({ err }, 'the disk is full: changes get 503 until there is free space')
      else log.error({ err }, 'the database does not respond: requests get 503, jobs and webhooks wait')
    },
  )
}

function placeOf(settings: Settings, platform: Platform, log: Log): Parameters<typeof openDatabase>[0] {
  const { data, databaseUrl, replicaUrl, databasePooling } = settings
  const migrations = settings.requireMigrated ? 'require' : 'apply'
  if (databaseUrl === undefined) {
    if (replicaUrl !== undefined) throw new WrongUsage(['--replica-url needs --database-url: SQLite has no replica'])
    return { file: join(data, 'cloud.db'), migrations, clock: platform.clock }
  }
  const place: PostgresPlace = {
    url: databaseUrl,
    clock: platform.clock,
    timers: platform.timers,
    migrations,
    pooling: databasePooling,
  }
  return replicaUrl === undefined ? place : { ...place, replica: replicaPlace(settings, replicaUrl, platform, log) }
}

function replicaPlace({ replicaMaxLag }: Settings, url: string, { timers }: Platform, log: Log): ReplicaPlace {
  return {
    url,
    maxLagMs: replicaMaxLag * 1_000,
    timers,
    onState(state, err) {
      if (state === 'used') log.warn({}, 'the replica answers reads again')
      else if (state === 'late')
        log.warn({}, `the replica lags more than ${replicaMaxLag} s behind: the primary answers its reads`)
      else log.warn({ err }, 'the replica does not respond: the primary answers its reads')
    },
  }
}
