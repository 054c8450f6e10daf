import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenLink } from '../../device-drivers/transports/shared-links.ts'
import type { AgentConfig } from '../../edge-agent/config.ts'
import type { Identity } from '../../edge-agent/identity/identity.ts'
import { pause, type Platform } from '../../policy/platform.ts'
import { compareConfig, CONFIG_IN_USE } from '../../host/config-file.ts'
import { readCredential } from '../../host/credential-file.ts'
import type { SendRequest } from '../../host/tls/private-ca.ts'
import { fault, type Finding } from './finding.ts'
import { askAgent, deviceFindings, otherAgentAt } from './running-agent.ts'
import type { DeviceEntry } from '../../device-drivers/registry.ts'
import type { DeviceState } from '../../device-drivers/device-connection.ts'
import { supervise } from '../../device-drivers/supervisor.ts'

/** Maximum time to connect all devices, ms: the longest set-up of a driver, and one retry. */
const CONNECT_MS = 12_000
const SETTLED: ReadonlySet<DeviceState> = new Set(['ready', 'degraded', 'absent'])

/**
 * Connects to the devices of the configuration, as an agent does at its start, and disconnects them again. Call it only
 * while no agent runs: two programs on one line disturb each other. The driver switches the outputs off.
 */
async function checkDevicesAlone(
  entries: readonly DeviceEntry[],
  { platform, openLink }: { platform: Platform; openLink: OpenLink },
): Promise<Finding[]> {
  const isPushed = (entry: DeviceEntry) => 'push' in entry.link
  const wired = entries.filter((entry) => !isPushed(entry))
  const waiting = new Set(wired.map(({ deviceId }) => deviceId))
  let settle: () => void = () => undefined
  const settled = new Promise<void>((resolve) => (settle = resolve))
  const cancel = platform.timers.after(CONNECT_MS, () => settle())
  const supervisor = supervise({
    devices: wired,
    platform,
    openLink,
    onState({ deviceId, state }) {
      if (SETTLED.has(state)) waiting.delete(deviceId)
      if (waiting.size === 0) settle()
    },
  })
  if (waiting.size > 0) await settled
  cancel()
  const statuses = [...supervisor.statuses]
  await supervisor.stop()
  return [
    ...statuses.flatMap(deviceFindings),
    ...entries.filter(isPushed).map((entry): Finding => ({
      what: entry.deviceId,
      state: 'note',
      detail: 'sends its reads to the agent: start the agent, and check again',
    })),
  ]
}

/** An agent that starts answers within this time, ms. */
const START_MS = 5_000
const RETRY_MS = 500

export interface AgentCheck {
  readonly data: string
  readonly identity: Identity
  /** Undefined without a valid configuration file. */
  readonly config: AgentConfig | undefined
  /** Path of the configuration file. */
  readonly file: string | undefined
  readonly platform: Platform
  readonly openLink: OpenLink
  readonly send: SendRequest
}

/**
 * Checks the agent of a data folder: a running agent answers itself. If no agent runs, connects to the devices of the
 * configuration.
 */
export async function checkAgent(check: AgentCheck): Promise<Finding[]> {
  const { data, identity, config, file, platform, openLink, send } = check
  const stored = await readStored(data)
  if ('what' in stored) return [stored]
  const url = stored.url ?? 'http://127.0.0.1:8090'
  const { agentId } = identity
  const other = await otherAgentAt({ url, agentId, send })
  if (other !== undefined) return [await hiddenByOther(other, { url, agentId, data })]
  const ask = async () => {
    const answer = await askAgent({ url, agentId, credential: credentialOf(data), data, send })
    return answer && file !== undefined ? [...configFindings(file, stored.config), ...answer] : answer
  }
  const answer = await ask()
  if (answer) return answer
  const lock = await takeLock(data)
  if (lock === 'taken') {
    const { clock, timers } = platform
    const endMs = clock.elapsed() + START_MS
    while (clock.elapsed() < endMs) {
      await pause(timers, RETRY_MS)
      const late = await ask()
      if (late) return late
    }
    return [
      fault(
        'agent',
        'agent_silent',
        `a process uses ${data}, but does not answer at ${url}: read its log, and restart it. Without an answer, nothing is known of its devices`,
      ),
    ]
  }
  try {
    const devices = config ? await checkDevicesAlone(config.devices, { platform, openLink }) : []
    return [notRunning(stored.url, data), ...devices]
  } finally {
    lock?.release()
  }
}

/** A running agent knows nothing of another file, or of changes after its start: its devices then say nothing about it. */
function configFindings(file: string, stored: string | undefined): Finding[] {
  const compared = compareConfig(file, stored)
  if (compared === undefined || compared === 'in use') return []
  const how =
    compared === 'changed'
      ? `${file} was changed after the agent read it: restart the agent to use it.`
      : `the running agent ${compared.other === undefined ? 'was started without a configuration file' : `uses ${compared.other}`}, not ${file}: to use ${file}, restart the agent with --config ${file}.`
  return [{ what: 'configuration', state: 'wrong', detail: `${how} The devices below are those that it uses` }]
}

/** Another agent answers at the address of this one. This agent may run without its port, or not at all. */
async function hiddenByOther(
  other: string,
  { url, agentId, data }: { url: string; agentId: string; data: string },
): Promise<Finding> {
  const lock = await takeLock(data)
  if (typeof lock === 'object') lock.release()
  const there = `the agent ${other} answers at ${url}, not ${agentId} of ${data}`
  return lock === 'taken'
    ? fault('agent', 'agent_silent', `${there}, which runs without an address: give it another --port, and restart it`)
    : fault(
        'agent',
        'agent_not_running',
        `${there}: choose the folder of ${other} with --data, or start ${agentId} with untag edge --data ${data} and another --port`,
      )
}

function notRunning(url: string | undefined, data: string): Finding {
  if (url === undefined)
    return { what: 'agent', state: 'note', detail: `was never started: start it with untag edge --data ${data}` }
  return fault(
    'agent',
    'agent_not_running',
    `no agent runs with ${data}: start it with untag edge --data ${data}, or its service with systemctl start untag-edge`,
  )
}

function credentialOf(data: string): string | undefined {
  try {
    return readCredential(data)
  } catch {
    return undefined
  }
}

/** What the agent stored at its last start. Empty before its first start. */
interface Stored {
  readonly url?: string | undefined
  /** Its configuration file, see `compareConfig`. */
  readonly config?: string | undefined
}

/** Only a damaged ledger is replaced: a full disk, or a missing right, leaves it whole. */
function nextStepFor(error: unknown): string {
  const { code = '', message } = error as Error & { code?: string }
  const isDamaged = /CORRUPT|NOTADB/.test(code) || /damaged|malformed|not a database/.test(message)
  return isDamaged
    ? 'enrol the agent again with untag edge enrol --replace'
    : 'free space on its disk, and check the rights of the folder; the ledger is kept'
}

/** Reads what the agent stored at its last start. A finding if its ledger cannot be read. */
async function readStored(data: string): Promise<Stored | Finding> {
  const file = join(data, 'ledger.db')
  // `openLedgerFile` would create a missing file.
  if (!existsSync(file)) return {}
  try {
    // Not at the top: the doctor must also run where better-sqlite3 does not load.
    const { openLedgerFile } = await import('../../edge-agent/ledger/file/ledger-file.ts')
    const { openMetadata } = await import('../../edge-agent/ledger/file/watermark.ts')
    const { LOCAL_URLS } = await import('../../edge-agent/ledger/pairings.ts')
    const db = openLedgerFile(file)
    try {
      const metadata = openMetadata(db)
      const [url] = JSON.parse(metadata.get(LOCAL_URLS) ?? '[]') as string[]
      return { url, config: metadata.get(CONFIG_IN_USE) }
    } finally {
      db.close()
    }
  } catch (error) {
    return fault(
      'ledger',
      'ledger_unavailable',
      `ledger.db cannot be read (${(error as Error).message}): ${nextStepFor(error)}`,
    )
  }
}

/** Takes the lock of the agent, so that none starts meanwhile. Undefined if there is no lock, or no right to it. */
async function takeLock(data: string): Promise<{ release(): void } | 'taken' | undefined> {
  const file = join(data, 'agent.lock')
  if (!existsSync(file)) return undefined
  const { lockDataDir } = await import('../../host/data-dir-lock.ts')
  const taken = 'taken'
  try {
    return lockDataDir(file, taken)
  } catch (error) {
    return (error as Error).message === taken ? taken : undefined
  }
}
