import { seededRandom } from '../../simulators/world/virtual-platform.ts'
import { realPlatform } from '../platform.ts'
import { killLoop, killNumber, type KillLoop } from './kill-loop.ts'
import { processesOf } from './processes.ts'
import { eventually, openStoreProcesses, type StoreProcesses } from './store-processes.ts'
import { watchedBoard, type WatchedBoard } from './watched-board.ts'

export interface KillsResult {
  kills: number
  /** What did not hold, each with the number of its kill where there is one. */
  violations: string[]
}

export interface KillsOptions {
  /** The project, built. */
  root: string
  /** The first kill (see `killNumber`) and how many. */
  from: number
  kills: number
  signal: AbortSignal
  onKill(count: number): void
}

/** A store of its own with simulated boards, for as long as `work` takes. */
export async function withStore<T>(
  root: string,
  work: (store: StoreProcesses, station: WatchedBoard) => Promise<T>,
): Promise<T> {
  const platform = realPlatform()
  const boards = {
    station: await watchedBoard(platform),
    detacher: await watchedBoard(platform),
    gate: await watchedBoard(platform),
  }
  const store = await openStoreProcesses({
    processes: processesOf(root),
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

/** Kills real processes so many times in one store, and looks at the end whether anything was lost or doubled. */
export function runKills({ root, from, kills, signal, onKill }: KillsOptions): Promise<KillsResult> {
  return withStore(root, async (store, board) => {
    const loop = killLoop({ store, board, platform: realPlatform(), random: seededRandom(from) })
    const violations = await auditedAfter(store, loop, signal, async (wrong) => {
      for (let n = from; n < from + kills; n++) {
        signal.throwIfAborted()
        wrong.push(...(await loop.round(killNumber(n))).map((text) => `kill ${n}: ${text}`))
        onKill(n - from + 1)
      }
    })
    return { kills, violations }
  })
}

/** Does the work, looks at the end whether anything was lost or doubled, and answers what did not hold: also when processes never came up again. */
export async function auditedAfter(
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
  return [...wrong, ...loop.checkFiles()]
}
