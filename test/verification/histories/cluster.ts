import { cpSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert } from '../../../policy/assert.ts'
import { startPostgres, type PostgresServer } from '../kills/postgres-server.ts'
import { processesOf, type ProcessEnvironment, type Processes, type RunningProcess } from '../kills/processes.ts'
import { startLossyWire } from './lossy-wire.ts'

/** Cloud processes with the same keys, on one PostgreSQL database. */
export interface Cluster {
  readonly databaseUrl: string
  /** Secret keys of the account in test and live mode, and key of an administrator. */
  readonly keys: { readonly secret: string; readonly live: string; readonly admin: string }
  /** Number of processes. */
  readonly size: number
  /** Address of the API at this process; undefined while the process is down. */
  address(process: number): string | undefined
  /** Kills a process and starts it again. */
  restartCloud(process: number): Promise<void>
  /** Stops the database server in this mode and starts it again. */
  restartDatabase(mode: 'fast' | 'immediate'): Promise<void>
  /**
   * While the last process waits for the answer to a COMMIT, cuts its connections to the server. Then lets it connect
   * again.
   */
  loseCommit(): Promise<void>
  /** Checks the hash chain of the audit log, and the tables and indexes. Returns what is wrong. */
  damage(): Promise<string[]>
  stop(): Promise<void>
}

export interface ClusterOptions {
  /** Folder of the built project. */
  readonly root: string
  readonly size: number
  /** Environment of the clouds. With this environment, a test can load a mutant. */
  readonly cloudIn?: ProcessEnvironment
  /** Bundles the command `untag` into fewer files, so that it starts faster. Returns its path. */
  readonly bundle?: () => Promise<string>
}

const MEMORY_FOLDER = '/dev/shm'
/** Minimum free space in memory for the data of the server, bytes. */
const MEMORY_NEEDED = 2_000_000_000

/**
 * Folder for the server. Prefers a folder in memory: its files survive a crash of the server, and a flush takes no
 * time.
 */
function databaseFolder(): string {
  const isLarge = existsSync(MEMORY_FOLDER) && freeBytes(MEMORY_FOLDER) > MEMORY_NEEDED
  return mkdtempSync(join(isLarge ? MEMORY_FOLDER : tmpdir(), 'untag-postgres-'))
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Starts a database server and the cloud processes. The last process reaches the server through a lossy wire. */
export async function startCluster({ root, size, cloudIn = {}, bundle }: ClusterOptions): Promise<Cluster> {
  const processes = processesOf(root, bundle)
  const server = await startPostgres({ dir: databaseFolder() })
  assert(server !== undefined, 'the package postgresql is missing')
  const wire = await startLossyWire(server.port)
  const folder = mkdtempSync(join(tmpdir(), 'untag-histories-'))
  const clouds: (RunningProcess | undefined)[] = []
  const stopAll = async () => {
    await Promise.all(clouds.map((cloud) => cloud?.stop()))
    wire.close()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const data = (n: number) => join(folder, `cloud-${n}`)
    const database = ['--database-url', server.url]
    const keys = await newKeys(processes, ['--data', data(0), ...database])
    const start = async (n: number) => {
      const options = ['--port=0', '--mqtt-port=0', '--rate-limit=0', '--allow-private-targets']
      const url = n === size - 1 ? server.url.replace(String(server.port), String(wire.port)) : server.url
      clouds[n] = await processes.start(['cloud', '--data', data(n), '--database-url', url, ...options], cloudIn)
    }
    // The first process creates the files of keys.
    await start(0)
    for (let n = 1; n < size; n++) cpSync(join(data(0), 'keys'), join(data(n), 'keys'), { recursive: true })
    await Promise.all(Array.from({ length: size - 1 }, (_, n) => start(n + 1)))
    return {
      databaseUrl: server.url,
      keys,
      size,
      address: (n) => clouds[n]?.ready['baseUrl'],
      async restartCloud(n) {
        const cloud = clouds[n]
        clouds[n] = undefined
        await cloud?.kill()
        await start(n)
      },
      restartDatabase: (mode) => server.restart(mode),
      loseCommit: () => wire.loseCommit(),
      damage: () => damageOf(processes, server, ['--data', data(0), ...database]),
      stop: stopAll,
    }
  } catch (error) {
    await stopAll()
    throw error
  }
}

async function newKeys(processes: Processes, place: readonly string[]): Promise<Cluster['keys']> {
  const create = async (kind: readonly string[]) => {
    const { code, stdout, stderr } = await processes.run([
      'keys',
      'create',
      ...place,
      '--account=Shop',
      ...kind,
      '--json',
    ])
    assert(code === 0, `untag keys create failed: ${stderr}`)
    return (JSON.parse(stdout) as { key: string }).key
  }
  return {
    secret: await create(['--mode=test', '--package=PRIME']),
    live: await create(['--mode=live']),
    admin: await create(['--kind=admin']),
  }
}

async function damageOf(processes: Processes, server: PostgresServer, place: readonly string[]): Promise<string[]> {
  const { code, stdout, stderr } = await processes.run(['verify-audit', ...place])
  return [...(code === 0 ? [] : [`untag verify-audit: ${stdout}${stderr}`]), ...(await server.damage())]
}
