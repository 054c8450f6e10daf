import { assert } from '../../../policy/assert.ts'
import { seededRandom } from '../simulation/virtual/virtual-platform.ts'
import { realPlatform } from '../../../host/platform.ts'
import { killLoop, killNumber, type DatabaseKind, type KillLoop } from './kill-loop.ts'
import { startPostgres, type PostgresServer } from './postgres-server.ts'
import { processesOf, type ProcessEnvironment } from './processes.ts'
import { eventually, openStoreProcesses, type StoreProcesses } from './store-processes.ts'
import { watchedBoard, type WatchedBoard } from './watched-board.ts'

export interface KillsResult {
  kills: number
  /** Violations. If a kill caused the violation, the text starts with the number of the kill. */
  violations: string[]
}

export interface KillsOptions {
  /** Folder of the built project. */
  root: string
  /** Number of the first kill; see `killNumber`. */
  from: number
  kills: number
  /** Database of the cloud. */
  database: DatabaseKind
  /** Environment of the cloud. With this environment, a test can load a mutant. */
  cloudIn?: ProcessEnvironment
  /** Path of the command in fewer files, which starts faster. */
  bundle?: () => Promise<string>
  signal: AbortSignal
  onKill(count: number): void
}

interface StorePlace {
  databaseUrl?: string
  cloudIn?: ProcessEnvironment
  bundle?: (() => Promise<string>) | undefined
}

/** Runs `work` in a new store with simulated boards and stops the store afterwards. */
export async function withStore<T>(
  root: string,
  { bundle, ...place }: StorePlace,
  work: (store: StoreProcesses, station: WatchedBoard) => Promise<T>,
): Promise<T> {
  const platform = realPlatform()
  const boards = {
    station: await watchedBoard(platform),
    detacher: await watchedBoard(platform),
    gate: await watchedBoard(platform),
  }
  const store = await openStoreProcesses({
    ...place,
    processes: processesOf(root, bundle),
    boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
  })
  try {
    await eventually(
      'the boards',
      async () => ((await store.status())['devices'] as { state: string }[]).every((d) => d.state === 'ready'),
      60_000,
    )
    return await work(store, boards.station)
  } finally {
    await store.stop()
    for (const board of Object.values(boards)) await board.close()
  }
}

/** Kills processes of one store `kills` times. At the end, checks that no event is lost and no right was used twice. */
export async function runKills(options: KillsOptions): Promise<KillsResult> {
  if (options.database === 'sqlite') return killIn(options)
  const server = await startPostgres()
  assert(server !== undefined, 'the package postgresql is missing')
  try {
    return await killIn(options, server)
  } finally {
    await server.stop()
  }
}

function killIn(
  { root, from, kills, database, cloudIn = {}, bundle, signal, onKill }: KillsOptions,
  server?: PostgresServer,
): Promise<KillsResult> {
  const place = { cloudIn, bundle, ...(server && { databaseUrl: server.url }) }
  return withStore(root, place, async (store, board) => {
    const platform = realPlatform()
    const loop = killLoop({ store, board, platform, random: seededRandom(from), ...(server && { database: server }) })
    const violations = await runAndAudit(store, loop, signal, async (wrong) => {
      for (let n = from; n < from + kills; n++) {
        signal.throwIfAborted()
        wrong.push(...(await loop.round(killNumber(n, database))).map((text) => `kill ${n}: ${text}`))
        onKill(n - from + 1)
      }
    })
    return { kills, violations }
  })
}

/**
 * Runs `work` and the audit, then stops the store and checks its files. Returns all violations, such as a process that
 * does not restart.
 */
export async function runAndAudit(
  store: StoreProcesses,
  loop: KillLoop,
  signal: AbortSignal,
  work: (wrong: string[]) => Promise<void>,
): Promise<string[]> {
  const wrong: string[] = []
  try {
    await work(wrong)
    wrong.push(...(await loop.audit()))
  } catch (error) {
    if (signal.aborted) throw error
    wrong.push((error as Error).message)
  }
  await store.stopProcesses()
  return [...wrong, ...(await loop.checkFiles())]
}
