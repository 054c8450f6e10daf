import type { TestProject } from 'vitest/node'
import { NO_CHROMIUM } from './chromium.ts'
import { NO_FAKETIME } from './fake-time.ts'
import { NO_VPCD_PACKAGES } from '../device-drivers/vpcd-station.ts'
import { hasProgram } from './outside-brokers.ts'
import { removeFolder } from './memory-folder.ts'
import { NO_NOTIFY_SOCKET } from './notify-socket.ts'
import { startPostgres } from '../../verification/kills/postgres-server.ts'
import { NO_PGBOUNCER } from './pgbouncer.ts'
import { NO_STRACE } from './strace.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string
  }
}

/**
 * Starts one PostgreSQL server for the whole run and provides its URL. Without PostgreSQL the URL is '' and its tests
 * are skipped. `UNTAG_TEST_TOOLS=required` (CI) makes a missing tool an error.
 */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres()
  const missing = [
    server ? undefined : 'there is no PostgreSQL: install the package postgresql',
    NO_CHROMIUM,
    NO_PGBOUNCER,
    NO_STRACE,
    NO_FAKETIME && `no clocks of their own for processes: ${NO_FAKETIME}`,
    ...['mosquitto', 'nats-server'].map((program) =>
      hasProgram(program) ? undefined : `no outside broker: install ${program}`,
    ),
    NO_NOTIFY_SOCKET && `no notify socket for services: ${NO_NOTIFY_SOCKET}`,
    NO_VPCD_PACKAGES && `no virtual NFC reader: ${NO_VPCD_PACKAGES}`,
  ].filter((m) => typeof m === 'string')
  if (missing.length > 0 && process.env['UNTAG_TEST_TOOLS'] === 'required') {
    await server?.stop()
    throw new Error(missing.join('; '))
  }
  provide('postgresUrl', server?.url ?? '')
  return async () => {
    await server?.stop()
    if (process.env['TMPDIR']?.endsWith(String(process.pid))) removeFolder(process.env['TMPDIR'])
  }
}
