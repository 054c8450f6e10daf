import { accessSync, constants, existsSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { serialPorts } from '../../device-drivers/transports/serial.ts'
import { readIdentity } from '../../edge-agent/trust/identity.ts'
import type { Values } from '../options.ts'
import { secretFiles } from '../secret-files.ts'
import type { DOCTOR_OPTIONS } from '../settings.ts'
import { loadConfig } from './edge.ts'

interface Finding {
  what: string
  state: 'ok' | 'note' | 'wrong'
  /** What was found, and the fix where something is wrong. */
  detail: string
}

/** Looks at this machine and says what is missing or wrong, each with its fix; exit code 1 when something is wrong. */
export async function runDoctor({ data, config }: Values<typeof DOCTOR_OPTIONS>): Promise<void> {
  const findings = [await checkSqlite(), ...(await checkPorts()), checkFolder(data), checkIdentity(data), checkClock(), await checkSerial(), ...(config === undefined ? [] : [checkConfig(config)])]
  const marks = { ok: '✓', note: '·', wrong: '✗' }
  for (const { what, state, detail } of findings) process.stdout.write(`${marks[state]} ${what.padEnd(18)} ${detail}\n`)
  if (findings.some((f) => f.state === 'wrong')) process.exitCode = 1
}

async function checkSqlite(): Promise<Finding> {
  try {
    const { default: Sqlite } = await import('better-sqlite3')
    const db = new Sqlite(':memory:')
    const { version } = db.prepare('SELECT sqlite_version() AS version').get() as { version: string }
    db.close()
    return { what: 'Node and SQLite', state: 'ok', detail: `Node.js ${process.versions.node}, SQLite ${version}` }
  } catch (error) {
    return { what: 'Node and SQLite', state: 'wrong', detail: `better-sqlite3 does not load (${(error as Error).message}): run npm rebuild better-sqlite3; it needs python3, make and g++` }
  }
}

async function checkPorts(): Promise<Finding[]> {
  const wanted = { 8080: '--port', 1883: '--mqtt-port', 8090: '--edge-port (start) or --port (edge)' }
  return Promise.all(
    Object.entries(wanted).map(async ([port, flag]) => {
      const isFree = await canListen(Number(port))
      return { what: `port ${port}`, state: isFree ? ('ok' as const) : ('note' as const), detail: isFree ? 'free' : `taken, perhaps by untag itself; choose another with ${flag}` }
    }),
  )
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

function checkFolder(data: string): Finding {
  try {
    if (!existsSync(data)) mkdirSync(dirname(data), { recursive: true })
    accessSync(existsSync(data) ? data : dirname(data), constants.W_OK)
    return { what: 'data folder', state: 'ok', detail: `${data} can be written` }
  } catch {
    return { what: 'data folder', state: 'wrong', detail: `${data} cannot be written: make it belong to this user, or choose another with --data` }
  }
}

function checkIdentity(data: string): Finding {
  try {
    const identity = readIdentity(data, secretFiles)
    if (identity) return { what: 'enrolment', state: 'ok', detail: `agent ${identity.agentId} of store ${identity.storeId} at ${identity.cloud}` }
    return { what: 'enrolment', state: 'note', detail: `no agent in ${data}; enrol one with untag edge enrol` }
  } catch (error) {
    return { what: 'enrolment', state: 'wrong', detail: (error as Error).message }
  }
}

function checkClock(): Finding {
  const year = new Date().getFullYear()
  if (year >= 2026) return { what: 'clock', state: 'ok', detail: new Date().toISOString() }
  return { what: 'clock', state: 'wrong', detail: `shows ${year}: set the time, or install a time service (systemd-timesyncd, chrony)` }
}

async function checkSerial(): Promise<Finding> {
  try {
    const ports = await serialPorts()
    const detail = ports.length === 0 ? 'no serial port; plug the device in, or use TCP' : ports.map((p) => (typeof p === 'string' ? p : JSON.stringify(p))).join(', ')
    return { what: 'serial ports', state: ports.length === 0 ? 'note' : 'ok', detail }
  } catch (error) {
    return { what: 'serial ports', state: 'note', detail: (error as Error).message }
  }
}

function checkConfig(file: string): Finding {
  try {
    const { devices } = loadConfig(file)
    return { what: 'configuration', state: 'ok', detail: `${file}: ${devices.length} devices` }
  } catch (error) {
    return { what: 'configuration', state: 'wrong', detail: (error as Error).message }
  }
}
