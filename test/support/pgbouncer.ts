import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serverUser } from '../verification/kills/postgres-server.ts'
import { findTool } from '../verification/tools.ts'
import { asAdmin, temporaryFolder } from './databases.ts'
import { eventually } from './journey.ts'
import { freePort } from './ports.ts'

const PGBOUNCER = '/usr/sbin/pgbouncer'
/** Why tests with PgBouncer are skipped on this machine, or undefined if they can run. */
export const NO_PGBOUNCER = findTool(PGBOUNCER)
  ? undefined
  : `${PGBOUNCER} is missing: install the package pgbouncer (apt-get install pgbouncer)`

/** Starts PgBouncer in transaction mode before the server of `url`, with few connections to the server. */
export async function startPgBouncer(url: string): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = temporaryFolder('pgbouncer')
  const server = new URL(url)
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=${server.hostname} port=${server.port} user=${server.username}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      'default_pool_size = 5',
      'max_client_conn = 200',
    ].join('\n'),
  )
  const user = serverUser()
  if (user) for (const path of [folder, file]) chownSync(path, user.uid, user.gid)
  const process = spawn(PGBOUNCER, [file], { ...user, cwd: folder, stdio: 'ignore' })
  const through = new URL(url)
  through.port = String(port)
  await eventually('pgbouncer', () =>
    asAdmin(through.href, 'SELECT 1').then(
      () => true,
      () => false,
    ),
  )
  return {
    url: through.href,
    async stop() {
      const ended = once(process, 'exit')
      process.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
