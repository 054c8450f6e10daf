import type { TestProject } from 'vitest/node'
import { NO_CHROMIUM, NO_WHOLE_CHROMIUM } from './chromium.ts'
import { NO_FAKETIME } from './fake-time.ts'
import { NO_VPCD_PACKAGES } from '../device-drivers/vpcd-station.ts'
import { removeFolder } from './memory-folder.ts'
import { NO_NOTIFY_SOCKET } from './notify-socket.ts'
import { startPostgres, whyNoPostgres } from '../verification/kills/postgres-server.ts'
import { missingTool } from '../verification/tools.ts'
import { NO_PGBOUNCER } from './pgbouncer.ts'
import { NO_STRACE } from './strace.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string
  }
}

/** Why a tool is missing, or nothing, and what is then skipped. */
const TOOLS: readonly [missing: string | null | undefined, skipped: string][] = [
  [whyNoPostgres(), 'all suites on PostgreSQL'],
  [NO_CHROMIUM, 'pages in a browser'],
  [NO_WHOLE_CHROMIUM, 'notices and installed pages in a browser'],
  [NO_PGBOUNCER, 'a cloud behind PgBouncer'],
  [NO_STRACE, 'system calls that fail, and power cuts'],
  [NO_FAKETIME, 'processes with clocks of their own'],
  [missingTool('mosquitto'), 'Mosquitto as broker'],
  [missingTool('nats-server'), 'NATS as broker'],
  [missingTool('nginx'), 'nginx as proxy'],
  [missingTool('caddy'), 'Caddy as proxy'],
  [missingTool('prometheus'), 'monitoring by Prometheus'],
  [missingTool('ip', 'iproute2'), 'other networks, and the commands of the pages'],
  [missingTool('nft', 'nftables'), 'networks that lose packets'],
  [missingTool('openssl'), 'TLS with a private CA'],
  [NO_NOTIFY_SOCKET, 'services of systemd'],
  [NO_VPCD_PACKAGES, 'a virtual NFC reader'],
]

/**
 * Prepares the extended tier: starts one PostgreSQL server for the whole run and provides its URL, and names each
 * missing tool and what is skipped without it. Without PostgreSQL the URL is ''. `UNTAG_TEST_TOOLS=required` makes a
 * missing tool an error.
 */
export default async function setup({ provide, config }: TestProject): Promise<() => Promise<void>> {
  const isFirstTier = config.tagsFilter?.includes('!extended') === true
  const missing = TOOLS.filter(([why]) => why)
  if (!isFirstTier && missing.length > 0) {
    const list = missing.map(([why, skipped]) => `  ${why}: without it, tests skip ${skipped}\n`).join('')
    if (process.env['UNTAG_TEST_TOOLS'] === 'required') throw new Error(`tools are missing:\n${list}`)
    process.stdout.write(`missing tools:\n${list}`)
  }
  const server = isFirstTier ? undefined : await startPostgres()
  provide('postgresUrl', server?.url ?? '')
  return async () => {
    await server?.stop()
    if (process.env['TMPDIR']?.endsWith(String(process.pid))) removeFolder(process.env['TMPDIR'])
  }
}
