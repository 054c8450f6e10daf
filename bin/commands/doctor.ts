import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ListedReader } from '../../device-drivers/pcsc/list-readers.ts'
import { openLink } from '../../device-drivers/transports/link-settings.ts'
import type { OpenLink } from '../../device-drivers/transports/shared-links.ts'
import type { Platform } from '../../policy/platform.ts'
import type { AgentConfig } from '../../edge-agent/config.ts'
import { assertKeyPairs, readIdentity, type Identity } from '../../edge-agent/identity/identity.ts'
import { configFile } from '../config-file.ts'
import { checkRegistrations } from '../configured-devices.ts'
import { checkAgent } from '../doctor/agent.ts'
import { certificateEnd, checkCloud } from '../doctor/cloud.ts'
import { fault, findingLines, type Finding } from '../doctor/finding.ts'
import { checkBackups, checkFolder } from '../doctor/machine.ts'
import { deviceFindings, emergencyFinding } from '../doctor/running-agent.ts'
import { counted } from '../counted.ts'
import { findSerialPorts, type FoundSerial } from '../serial-ports.ts'
import { installedSqlite, mayAbort } from '../native-sqlite.ts'
import { WrongUsage, type Values } from '../options.ts'
import { printResult } from '../output.ts'
import { listNfcReaders, openPcsc } from '../pcsc-process.ts'
import { realPlatform } from '../platform.ts'
import { freeBytes } from '../probe-disk.ts'
import { checkPorts, agentReadiness } from '../port-checks.ts'
import { secretFiles } from '../secret-files.ts'
import { readerEntry, titleOf } from '../device-discovery.ts'
import type { DOCTOR_OPTIONS } from '../settings.ts'
import { fetchFromThisMachine, fetchTrusting, readCa, type SendRequest } from '../tls/private-ca.ts'
import { loadConfig } from './edge.ts'
import { nearby } from './known-database.ts'

/** Draft of an entry in `devices` of the agent's configuration, for one attached device. */
interface Suggestion {
  for: string
  entry: Record<string, unknown>
}

/** What the doctor needs of the machine. */
export interface DoctorParts {
  readonly platform: Platform
  freeBytes(folder: string): Promise<number>
  readonly openLink: OpenLink
  /** Sends requests to the cloud. `ca`: certificates of a private CA. */
  sendToCloud(ca: string | undefined): SendRequest
  /** Sends requests to the agent on this machine. */
  readonly sendToAgent: SendRequest
  certificateEnd(url: URL, ca: string | undefined): Promise<number | undefined>
}

type Settings = Values<typeof DOCTOR_OPTIONS>

/**
 * Checks this machine, its agent and the cloud. Prints each fault with its next step, and a configuration entry for
 * each attached device. Sets exit code 1 if there is a fault.
 */
export async function runDoctor(settings: Settings): Promise<void> {
  const { config, pcscdSocket, json, add, device } = settings
  const platform = realPlatform()
  const ports = findSerialPorts()
  const readers = await seeReaders(pcscdSocket)
  const suggestions = [
    ...ports.map((port) => ({ for: titleOf(port), entry: port.suggestion })),
    ...('readers' in readers
      ? readers.readers.map((reader) => ({ for: reader.name, entry: readerEntry(reader) }))
      : []),
  ]
  if (add > 0) return addFound(suggestions[add - 1], config, device, json)
  const findings = [
    await checkSqlite(),
    ...(await checkPorts()).map(({ port, ...found }) => ({ what: `port ${port}`, ...found })),
    ...checkSerial(ports),
    ...checkReaders(readers),
    ...(await checkStore(settings, {
      platform,
      freeBytes,
      openLink: (link, signal) =>
        'pcsc' in link ? openPcsc({ socket: pcscdSocket, ...link }, signal) : openLink(link, signal),
      sendToCloud: (ca) => (ca === undefined ? fetch : fetchTrusting(ca)),
      sendToAgent: fetchFromThisMachine(),
      certificateEnd,
    })),
  ]
  if (findings.some((f) => f.state === 'wrong')) process.exitCode = 1
  printResult(json, { findings, suggestions }, linesOf(findings, suggestions))
}

/** Checks disk, enrolment, cloud, clock, configuration, agent, devices and backups. */
export async function checkStore(settings: Settings, parts: DoctorParts): Promise<Finding[]> {
  const { data, config: file, ca: caFile, minFreeMb, backups } = settings
  const ca = caFile === undefined ? undefined : readCa('--ca', caFile)
  const { platform, freeBytes: free } = parts
  const nowMs = () => platform.clock.wall()
  const identity = identityIn(data)
  const config = file === undefined ? undefined : configIn(file)
  const cloud = identity
    ? await checkCloud({
        cloud: identity.cloud,
        send: parts.sendToCloud(ca ?? identity.ca),
        nowMs,
        certificateEnd: (url) => parts.certificateEnd(url, ca ?? identity.ca),
      })
    : []
  return [
    ...(await checkFolder(data, { minFreeMb, freeBytes: free })),
    await checkIdentity(data),
    ...(await checkItems(data)),
    ...cloud,
    ...(cloud.some(({ what }) => what === 'clock') ? [] : [checkYear(nowMs())]),
    ...(config?.findings ?? []),
    ...(config?.config ? checkDevices(config.config, data) : []),
    ...(identity
      ? await checkAgent({ data, identity, config: config?.config, ...parts, send: parts.sendToAgent })
      : agentOnDefaultPort(await agentReadiness())),
    ...(backups === undefined ? [] : [checkBackups(backups, nowMs())]),
  ]
}

/** The identity of the agent in `data`. `checkIdentity` reports its faults. */
function identityIn(data: string): Identity | undefined {
  try {
    return readIdentity(data, secretFiles)
  } catch {
    return undefined
  }
}

function linesOf(findings: readonly Finding[], suggestions: readonly Suggestion[]): string[] {
  const checked = findingLines(findings)
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

/** Without an answer of the cloud, only a clock that lost its time is noticed. */
function checkYear(nowMs: number): Finding {
  const now = new Date(nowMs)
  if (now.getFullYear() >= 2026)
    return { what: 'clock', state: 'note', detail: `${now.toISOString()}, not compared with the clock of a cloud` }
  return fault(
    'clock',
    'clock_wrong',
    `the year is ${now.getFullYear()}: set the time, or install a time service (systemd-timesyncd, chrony)`,
  )
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

/** Emergency and devices of an agent whose data folder is unknown. */
function agentOnDefaultPort(agent: Awaited<ReturnType<typeof agentReadiness>>): Finding[] {
  if (!agent) return []
  return [...agent.devices.flatMap(deviceFindings), ...(agent.emergency ? [emergencyFinding()] : [])]
}

/** Reads the configuration file. */
function configIn(file: string): { config?: AgentConfig; findings: Finding[] } {
  try {
    const config = loadConfig(file)
    const detail = `${file}: ${counted(config.devices.length, 'device')}`
    return { config, findings: [{ what: 'configuration', state: 'ok', detail }] }
  } catch (error) {
    return { findings: [{ what: 'configuration', state: 'wrong', detail: (error as Error).message }] }
  }
}

/** Checks whether the configured devices are registered in the agent's store. */
function checkDevices(config: AgentConfig, data: string): Finding[] {
  const what = 'registration'
  try {
    const identity = readIdentity(data, secretFiles)
    return identity ? checkRegistrations(config, identity, data).map((found) => ({ what, ...found })) : []
  } catch (error) {
    return [{ what, state: 'wrong', detail: (error as Error).message }]
  }
}
