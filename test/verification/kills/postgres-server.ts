import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { findTool } from '../tools.ts'
import { unusedPort } from './tcp-wire.ts'

/** A PostgreSQL server with its own data folder. */
export interface PostgresServer {
  url: string
  port: number
  /** Stops the server with this mode of `pg_ctl -m`, runs `meanwhile`, and starts the server on the same data. */
  restart(mode: 'fast' | 'immediate', meanwhile?: () => Promise<void>): Promise<void>
  /** Stops the server without a checkpoint, as a power cut does. The server stays down. */
  kill(): Promise<void>
  /**
   * Starts a standby from a copy of this server. From then on, this server acknowledges a commit only after the standby
   * has flushed it.
   */
  startStandby(): Promise<Standby>
  /** Returns descriptions of damaged tables and indexes. */
  damage(): Promise<string[]>
  stop(): Promise<void>
}

/** A server that replicates a primary and accepts only reads. */
export interface Standby extends PostgresServer {
  /** Makes the standby a primary. Resolves when the new primary accepts writes. */
  promote(): Promise<void>
}

/** Options for the location of a server. */
export interface PostgresPlace {
  /** Data folder, writable for `serverUser`. Default: a new folder. */
  dir?: string
}

/** Returns why no server can run here, or undefined if a server can. */
export function whyNoPostgres(): string | undefined {
  return findBinaries() === undefined ? 'there is no PostgreSQL: install the package postgresql' : undefined
}

/**
 * User that runs the server. PostgreSQL refuses to run as root, so root starts the server as the user of the package.
 */
export function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** Starts a server. Returns undefined if PostgreSQL is not installed. */
export async function startPostgres({ dir }: PostgresPlace = {}): Promise<PostgresServer | undefined> {
  const bin = findBinaries()
  if (bin === undefined) return undefined
  const place = newPlace(bin, dir)
  execFileSync('cp', ['-a', newData(bin), place.data], place.as)
  return serverIn(place)
}

let made: string | undefined

/** Data folder without a server. A copy of it takes a tenth of the time of `initdb`. */
function newData(bin: string): string {
  if (made !== undefined) return made
  const { dir, data, as } = newPlace(bin)
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'untag', '-A', 'trust', '-E', 'UTF8', '--locale=C'], as)
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  return (made = data)
}

interface Place {
  bin: string
  dir: string
  data: string
  as: { uid?: number; gid?: number; cwd: string; stdio: 'ignore' }
}

function newPlace(bin: string, existingDir?: string): Place {
  const user = serverUser()
  const dir = existingDir ?? mkdtempSync(join(tmpdir(), 'untag-postgres-'))
  if (user) chownSync(dir, user.uid, user.gid)
  return { bin, dir, data: join(dir, 'data'), as: { ...user, cwd: dir, stdio: 'ignore' } }
}

async function serverIn(place: Place): Promise<PostgresServer> {
  const { bin, dir, data, as } = place
  const port = await unusedPort()
  // The tests must detect commits that are acknowledged before they are flushed. The server's own flush every 200 ms
  // would hide such commits.
  const lazy = ['-c', 'wal_writer_delay=10s', '-c', 'wal_writer_flush_after=1GB']
  const where = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', dir]
  const options = [...where, '-c', 'max_connections=200', ...lazy]
  const begin = () => spawn(join(bin, 'postgres'), options, as)
  let server = begin()
  const end = async (signal: NodeJS.Signals) => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const ended = new Promise((resolve) => server.once('exit', resolve))
    server.kill(signal)
    await ended
  }
  const url = `postgres://untag@127.0.0.1:${port}/postgres`
  await untilAnswers(url, server)
  return {
    url,
    port,
    async restart(mode, meanwhile) {
      await end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
      await meanwhile?.()
      server = begin()
      await untilAnswers(url, server)
    },
    kill: () => end('SIGQUIT'),
    startStandby: () => standbyOf(url, bin),
    damage: () => damageOf(url, bin),
    async stop() {
      await end('SIGINT')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Checks all tables and indexes with pg_amcheck. */
async function damageOf(url: string, bin: string): Promise<string[]> {
  const check = promisify(execFile)(join(bin, 'pg_amcheck'), ['--install-missing', '--heapallindexed', url])
  return check.then(
    () => [],
    (error: unknown) => [`PostgreSQL: ${(error as Error).message}`],
  )
}

async function standbyOf(primary: string, bin: string): Promise<Standby> {
  const place = newPlace(bin)
  const copy = ['--pgdata', place.data, '--dbname', primary, '--checkpoint=fast', '--write-recovery-conf']
  await promisify(execFile)(join(bin, 'pg_basebackup'), copy, place.as)
  const standby = await serverIn(place)
  await asClient(primary, async (client) => {
    await client.query(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
    await client.query('SELECT pg_reload_conf()')
    await until('the synchronous standby', async () => {
      const { rowCount } = await client.query(`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`)
      return rowCount === 1
    })
  })
  const promote = () => asClient(standby.url, async (client) => void (await client.query('SELECT pg_promote()')))
  return { ...standby, promote }
}

function findBinaries(): string | undefined {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  return versions
    .map((v) => join(root, v, 'bin'))
    .find((bin) => findTool(join(bin, 'initdb')) && findTool(join(bin, 'postgres')))
}

async function untilAnswers(url: string, server: ChildProcess): Promise<void> {
  await until('postgres', async () => {
    if (server.exitCode !== null) throw new Error(`postgres ended with ${server.exitCode}`)
    return asClient(url, () => Promise.resolve(true)).catch(() => false)
  })
}

async function asClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end()
  }
}

const TRIES = 200
const PAUSE_MS = 50

async function until(what: string, isThere: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    if (await isThere()) return
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  throw new Error(`${what} did not come up within ${(TRIES * PAUSE_MS) / 1_000} s`)
}
