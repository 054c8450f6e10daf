import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './ports.ts'

/** A PostgreSQL server of our own for a test run, if the machine has the programs for one. */
export interface PostgresServer {
  url: string
  /** Stops the server in the way of `pg_ctl -m`, and starts it again on the same data after `meanwhile`. */
  restart(mode: 'fast' | 'immediate', meanwhile?: () => Promise<void>): Promise<void>
  stop(): Promise<void>
}

function findBinaries(): string | undefined {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  return versions
    .map((v) => join(root, v, 'bin'))
    .find((bin) => existsSync(join(bin, 'initdb')) && existsSync(join(bin, 'postgres')))
}

/** PostgreSQL refuses to run as root: the package's own user runs it then. */
function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

export async function startPostgres(): Promise<PostgresServer | undefined> {
  const bin = findBinaries()
  if (!bin) return undefined
  const user = serverUser()
  const dir = mkdtempSync(join(tmpdir(), 'untag-postgres-'))
  if (user) chownSync(dir, user.uid, user.gid)
  const data = join(dir, 'data')
  const as = { ...user, cwd: dir, stdio: 'ignore' as const }
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'untag', '-A', 'trust', '-E', 'UTF8', '--locale=C'], as)
  const port = await freePort()
  const options = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', dir, '-c', 'max_connections=200']
  const begin = () => spawn(join(bin, 'postgres'), options, as)
  let server = begin()
  const end = async (signal: NodeJS.Signals) => {
    const ended = new Promise((resolve) => server.once('exit', resolve))
    server.kill(signal)
    await ended
  }
  const url = `postgres://untag@127.0.0.1:${port}/postgres`
  await untilAnswers(url, server)
  return {
    url,
    async restart(mode, meanwhile) {
      await end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
      await meanwhile?.()
      server = begin()
      await untilAnswers(url, server)
    },
    async stop() {
      await end('SIGINT')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function untilAnswers(url: string, server: ChildProcess): Promise<void> {
  const { default: pg } = await import('pg')
  for (let attempt = 0; attempt < 200; attempt++) {
    if (server.exitCode !== null) throw new Error(`postgres ended with ${server.exitCode}`)
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      await client.end()
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  throw new Error('postgres did not start')
}
