import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { ListedReader } from '../../device-drivers/drivers/pcsc/list-readers.ts'
import type { AgentConfig } from '../../edge-agent/config.ts'
import { assertKeyPairs, readIdentity } from '../../edge-agent/identity/identity.ts'
import { configFile } from '../config-file.ts'
import { checkRegistrations } from '../configured-devices.ts'
import { checkCloud } from '../cloud-check.ts'
import { counted } from '../counted.ts'
import { findSerialPorts, type FoundSerial } from '../serial-ports.ts'
import { installedSqlite, mayAbort } from '../native-sqlite.ts'
import { WrongUsage, type Values } from '../options.ts'
import { printResult } from '../output.ts'
import { listNfcReaders } from '../pcsc-process.ts'
import { realPlatform } from '../platform.ts'
import { checkPorts, DEFAULT_PORTS, agentReadiness } from '../port-checks.ts'
import { secretFiles } from '../secret-files.ts'
import { readerEntry, titleOf } from '../device-discovery.ts'
import type { DOCTOR_OPTIONS } from '../settings.ts'
import { readCa } from '../tls/private-ca.ts'
import { loadConfig } from './edge.ts'
import { nearby } from './known-database.ts'

interface Finding {
  what: string
  state: 'ok' | 'note' | 'wrong'
  /** The result; for a fault, also the fix. */
  detail: string
}

/** Draft of an entry in `devices` of the agent's configuration, for one attached device. */
interface Suggestion {
  for: string
  entry: Record<string, unknown>
}

/**
 * Checks this machine. Prints each fault with its fix, and a configuration entry for each attached device. Sets exit
 * code 1 if there is a fault.
 */
export async function runDoctor({
  data,
  config,
  pcscdSocket,
  json,
  add,
  device,
  ca,
}: Values<typeof DOCTOR_OPTIONS>): Promise<void> {
  const ports = findSerialPorts()
  const readers = await seeReaders(pcscdSocket)
  const findings = [
    await checkSqlite(),
    ...(await checkPorts()).map(({ port, ...found }) => ({ what: `port ${port}`, ...found })),
    checkFolder(data),
    await checkIdentity(data),
    ...(await checkItems(data)),
    ...(await checkWayToCloud(data, ca === undefined ? undefined : readCa('--ca', ca))),
    checkClock(),
    ...checkSerial(ports),
    ...checkReaders(readers),
    ...(config === undefined ? [] : checkConfig(config, data)),
    ...checkAgent(await agentReadiness()),
  ]
  const suggestions = [
    ...ports.map((port) => ({ for: titleOf(port), entry: port.suggestion })),
    ...('readers' in readers
      ? readers.readers.map((reader) => ({ for: reader.name, entry: readerEntry(reader) }))
      : []),
  ]
  if (add > 0) return addFound(suggestions[add - 1], config, device, json)
  if (findings.some((f) => f.state === 'wrong')) process.exitCode = 1
  printResult(json, { findings, suggestions }, linesOf(findings, suggestions))
}

function linesOf(findings: readonly Finding[], suggestions: readonly Suggestion[]): string[] {
  const marks = { ok: '✓', note: '·', wrong: '✗' }
  const checked = findings.map(({ what, state, detail }) => `${marks[state]} ${what.padEnd(18)} ${detail}`)
  if (suggestions.length === 0) return checked
  return [
    ...checked,
    '',
    'Attached devices, as entries for "devices" of the configuration file:',
    ...suggestions.flatMap((each, i) => [`  ${i + 1}. ${each.for}`, `     ${JSON.stringify(each.entry)}`]),
    'To add one to the file: untag doctor --config FILE --add NUMBER --device ID',
  ]
}

/** Writes the found device into the configuration file under `deviceId`. */
function addFound(
  suggestion: Suggestion | undefined,
  config: string | undefined,
  device: string | undefined,
  json: boolean,
): void {
  if (config === undefined || device === undefined) throw new WrongUsage(['--add needs --config FILE and --device ID'])
  if (!suggestion)
    throw new WrongUsage(['--add: there is no device with this number; untag doctor numbers the devices'])
  const added = configFile(config).add({ ...suggestion.entry, deviceId: device })
  if (!added.ok)
    throw new Error([`${config} was not changed:`, ...added.faults.map((fault) => `  ${fault}`)].join('\n'))
  printResult(json, { added: suggestion.for, deviceId: device, config }, [
    `added ${suggestion.for} as ${device} to ${config}; restart the agent to use it`,
  ])
}

async function checkSqlite(): Promise<Finding> {
  try {
    const { default: Sqlite } = await import('better-sqlite3')
    const db = new Sqlite(':memory:')
    const { version } = db.prepare('SELECT sqlite_version() AS version').get() as { version: string }
    db.close()
    const addon = installedSqlite()
    if (addon && mayAbort(addon))
      return {
        what: 'Node and SQLite',
        state: 'wrong',
        detail: `better-sqlite3 was compiled with headers of Node.js that can make it abort (nodejs/node#65446): run npm run build, which compiles it again`,
      }
    return { what: 'Node and SQLite', state: 'ok', detail: `Node.js ${process.versions.node}, SQLite ${version}` }
  } catch (error) {
    return {
      what: 'Node and SQLite',
      state: 'wrong',
      detail: `better-sqlite3 does not load (${(error as Error).message}): run npm rebuild better-sqlite3, which needs python3, make and g++`,
    }
  }
}

function checkFolder(data: string): Finding {
  try {
    // The check does not create the folder. If it is missing, the check tests the nearest existing parent.
    let there = resolve(data)
    while (!existsSync(there)) there = dirname(there)
    if (!statSync(there).isDirectory())
      return { what: 'data folder', state: 'wrong', detail: `${there} is a file: choose another folder with --data` }
    accessSync(there, constants.W_OK)
    return { what: 'data folder', state: 'ok', detail: `${data} is writable` }
  } catch {
    return {
      what: 'data folder',
      state: 'wrong',
      detail: `this user cannot write to ${data}: change its owner, or choose another folder with --data`,
    }
  }
}

async function checkIdentity(data: string): Promise<Finding> {
  try {
    const identity = readIdentity(data, secretFiles)
    if (identity) {
      await assertKeyPairs(data, identity)
      return {
        what: 'enrolment',
        state: 'ok',
        detail: `agent ${identity.agentId} of store ${identity.storeId} at ${identity.cloud}`,
      }
    }
    return {
      what: 'enrolment',
      state: 'note',
      detail: `no agent in ${data}; enrol one with untag edge enrol${nearby(data, 'edge', 'agent.json')}`,
    }
  } catch (error) {
    return { what: 'enrolment', state: 'wrong', detail: (error as Error).message }
  }
}

/** Checks the items of an enrolled agent: without them, gates alarm for paid goods, too. */
async function checkItems(data: string): Promise<Finding[]> {
  if (!existsSync(join(data, 'agent.json'))) return []
  const what = 'items of the store'
  // Not at the top: the doctor must also run where better-sqlite3 does not load.
  const { inspectItemFile } = await import('../../edge-agent/items/item-file.ts')
  const found = inspectItemFile(join(data, 'items.db'))
  const until = 'until the agent has reached the cloud, gates alarm for paid goods, too'
  if (found === 'complete') return [{ what, state: 'ok', detail: 'the copy was complete' }]
  if (found === 'never') return [{ what, state: 'note', detail: `there is no complete copy yet: ${until}` }]
  const detail = `items.db is damaged (${found.damage}): restart the agent, which fetches the items again; ${until}`
  return [{ what, state: 'wrong', detail }]
}

/** Checks the cloud of an enrolled agent. Nothing to check before the enrolment. */
async function checkWayToCloud(data: string, ca: string | undefined): Promise<Finding[]> {
  try {
    const identity = readIdentity(data, secretFiles)
    if (!identity) return []
    return [{ what: 'cloud', ...(await checkCloud(identity.cloud, ca ?? identity.ca)) }]
  } catch {
    // `checkIdentity` reports the fault.
    return []
  }
}

function checkClock(): Finding {
  const year = new Date().getFullYear()
  if (year >= 2026) return { what: 'clock', state: 'ok', detail: new Date().toISOString() }
  return {
    what: 'clock',
    state: 'wrong',
    detail: `the year is ${year}: set the time, or install a time service (systemd-timesyncd, chrony)`,
  }
}

function checkSerial(ports: readonly FoundSerial[]): Finding[] {
  if (ports.length === 0)
    return [{ what: 'serial ports', state: 'note', detail: 'none found; attach the device, or use TCP' }]
  return ports.map((port) => ({
    what: 'serial port',
    state: port.fix === undefined ? 'ok' : 'note',
    detail: `${titleOf(port)} at ${port.path}${port.fix === undefined ? '' : `: ${port.fix}`}`,
  }))
}

async function seeReaders(socket: string): Promise<{ readers: ListedReader[] } | { fault: string }> {
  try {
    return { readers: await listNfcReaders(socket, realPlatform()) }
  } catch (error) {
    return { fault: (error as Error).message }
  }
}

function checkReaders(seen: Awaited<ReturnType<typeof seeReaders>>): Finding[] {
  // A store without NFC readers needs no PC/SC.
  if ('fault' in seen)
    return [{ what: 'NFC readers', state: 'note', detail: `${seen.fault}; only NFC readers need this` }]
  if (seen.readers.length === 0)
    return [{ what: 'NFC readers', state: 'note', detail: 'PC/SC runs and finds no reader' }]
  return seen.readers.map(({ name, cardPresent }) => ({
    what: 'NFC reader',
    state: 'ok',
    detail: `${name}${cardPresent ? ', with a card' : ''}`,
  }))
}

/** Checks emergency inputs and devices of the agent on the default port. Returns nothing if no agent responds. */
function checkAgent(agent: Awaited<ReturnType<typeof agentReadiness>>): Finding[] {
  if (!agent) return []
  const devices = agent.devices.flatMap(({ deviceId, findings }) =>
    findings.map(({ code, detail, isWarning }) => ({
      what: deviceId,
      state: isWarning ? ('note' as const) : ('wrong' as const),
      detail: `${code}: ${detail}`,
    })),
  )
  if (!agent.emergency) return devices
  return [
    ...devices,
    {
      what: 'emergency',
      state: 'wrong',
      detail: `an emergency input of the agent on port ${DEFAULT_PORTS.agent} is active, and the emergency exits are open: reset the fire panel or switch, or check its wire. emergency.lost in /v1/status lists boards that do not respond`,
    },
  ]
}

/** Checks the configuration file, then whether its devices are registered in the agent's store. */
function checkConfig(file: string, data: string): Finding[] {
  try {
    const config = loadConfig(file)
    return [
      { what: 'configuration', state: 'ok', detail: `${file}: ${counted(config.devices.length, 'device')}` },
      ...checkDevices(config, data),
    ]
  } catch (error) {
    return [{ what: 'configuration', state: 'wrong', detail: (error as Error).message }]
  }
}

function checkDevices(config: AgentConfig, data: string): Finding[] {
  const what = 'registration'
  try {
    const identity = readIdentity(data, secretFiles)
    return identity ? checkRegistrations(config, identity, data).map((found) => ({ what, ...found })) : []
  } catch (error) {
    return [{ what, state: 'wrong', detail: (error as Error).message }]
  }
}
