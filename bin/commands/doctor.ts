import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ListedReader } from '../../device-drivers/pcsc/pcscd.ts'
import { openLink } from '../../device-drivers/transports/link-settings.ts'
import type { OpenLink } from '../../device-drivers/transports/shared-links.ts'
import type { Platform } from '../../policy/platform.ts'
import type { AgentConfig } from '../../edge-agent/config.ts'
import { assertKeyPairs, readIdentity, type Identity } from '../../edge-agent/identity/identity.ts'
import { configFile } from '../../host/config-file.ts'
import { jsonWithin } from '../api-client.ts'
import { checkAgent } from '../doctor/agent.ts'
import { certificateEnd, checkCloud } from '../doctor/cloud.ts'
import { fault, findingLines, type Finding } from '../doctor/finding.ts'
import { checkBackups, checkFolder } from '../doctor/machine.ts'
import { deviceFindings, emergencyFinding, ITEMS } from '../doctor/running-agent.ts'
import { counted, printResult } from '../../host/output.ts'
import { findSerialPorts, type FoundSerial } from '../../host/serial-ports.ts'
import { installedSqlite, mayAbort } from '../../host/native-sqlite.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { listNfcReaders, openPcsc, readerEntry, titleOf } from '../../host/device-discovery.ts'
import { realPlatform } from '../../host/platform.ts'
import { freeBytes } from '../../host/replace-file.ts'
import { secretFiles } from '../../host/secret-files.ts'
import type { DOCTOR_OPTIONS } from '../../host/settings/edge.ts'
import { fetchFromThisMachine, fetchTrusting, readCa, type SendRequest } from '../../host/tls/private-ca.ts'
import { loadConfig } from './edge.ts'
import { nearby } from '../../host/private-files.ts'
import { runningDemo } from '../demo-place.ts'
import { capabilitiesOf } from '../../device-drivers/registry.ts'
import { refusedDevice } from '../../edge-agent/health/registration.ts'
import { openLedgerFile } from '../../edge-agent/ledger/file/ledger-file.ts'
import { openMetadata } from '../../edge-agent/ledger/file/watermark.ts'
import { storedPolicy } from '../../edge-agent/trust/trusted-documents.ts'
import type { PolicyClaims } from '../../policy/documents/store-documents.ts'
import { createServer } from 'node:net'
import { z } from 'zod'
import { Readiness } from '../../edge-agent/http/response-schemas.ts'
import { PROGRAM_HEADER, readProgramHeader, type RunningProgram } from '../../policy/version.ts'

/** Maximum wait, ms. An untag program responds at once; other servers may never respond. */
const ANSWER_WITHIN_MS = 1_000

/** Default ports that `untag doctor` checks. */
const DEFAULT_PORTS = { cloud: 8080, agent: 8090, mqtt: 1883 } as const
type Ports = Readonly<Record<keyof typeof DEFAULT_PORTS, number>>

interface PortFinding {
  port: number
  state: 'ok' | 'note'
  detail: string
}

/** Detail of a port that no program uses. */
const FREE = 'free'

/** Checks which ports of this machine are free, and recognises untag programs on the ports that are in use. */
export async function checkPorts(ports: Ports = DEFAULT_PORTS): Promise<PortFinding[]> {
  const [cloud, agent] = await Promise.all([programAt(ports.cloud), programAt(ports.agent)])
  const broker = cloud?.mqttPort === ports.mqtt ? `the broker of the untag cloud on port ${ports.cloud}` : undefined
  return Promise.all([
    finding(ports.cloud, '--port', named(cloud)),
    finding(ports.mqtt, '--mqtt-port', broker),
    finding(ports.agent, '--edge-port (start) or --port (edge)', named(agent)),
  ])
}

function named(found: RunningProgram | undefined): string | undefined {
  return found && `an untag ${found.program}`
}

/** The finding for a port. `user` is the name of the untag program that uses the port. */
async function finding(port: number, flag: string, user: string | undefined): Promise<PortFinding> {
  if (user !== undefined)
    return { port, state: 'ok', detail: `${user} runs here; choose another port with ${flag} to start one more` }
  if (await canListen(port)) return { port, state: 'ok', detail: FREE }
  return { port, state: 'note', detail: `taken by a program that is not recognised; choose another with ${flag}` }
}

/** Devices of an agent of another release may have another form; its emergency still counts. */
const AgentReadiness = z.object({ emergency: z.boolean(), devices: Readiness.shape.devices.catch([]) })

/** What an agent on this port reports about its emergency inputs and devices. Undefined if no agent responds. */
export async function agentReadiness(
  port: number = DEFAULT_PORTS.agent,
): Promise<(z.infer<typeof AgentReadiness> & Pick<RunningProgram, 'agentId'>) | undefined> {
  const running = await programAt(port)
  if (running?.program !== 'agent') return undefined
  const { agentId } = running
  try {
    const readiness = AgentReadiness.parse(
      await jsonWithin(await answerOf(port, '/readyz'), AbortSignal.timeout(ANSWER_WITHIN_MS)),
    )
    return { ...readiness, ...(agentId !== undefined && { agentId }) }
  } catch {
    return undefined
  }
}

async function programAt(port: number): Promise<RunningProgram | undefined> {
  try {
    const { headers, body } = await answerOf(port, '/healthz')
    await body?.cancel()
    return readProgramHeader(headers.get(PROGRAM_HEADER))
  } catch {
    return undefined
  }
}

/** Sends a request to this port over HTTP and, if that fails, over HTTPS. */
async function answerOf(port: number, path: string): Promise<Response> {
  const limit = () => ({ redirect: 'manual', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }) as const
  const address = `127.0.0.1:${port}${path}`
  return fetch(`http://${address}`, limit()).catch(() => fetchFromThisMachine()(`https://${address}`, limit()))
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

interface RegistrationFinding {
  state: 'ok' | 'note' | 'wrong'
  detail: string
}

/** Compares the configured devices with the last stored policy of the agent in `data`. The agent may run meanwhile. */
function checkRegistrations(
  { devices }: Pick<AgentConfig, 'devices'>,
  identity: Identity,
  data: string,
): RegistrationFinding[] {
  const registered = devices.filter((device) => capabilitiesOf(device).feeds === undefined)
  if (registered.length === 0) return []
  const policy = lastPolicy(identity, data)
  if (!policy)
    return [{ state: 'note', detail: 'not known yet: start the agent, connect it to the cloud and check again' }]
  const refused = registered.flatMap(({ deviceId }): RegistrationFinding[] => {
    const found = refusedDevice(policy, identity.agentId, deviceId)
    return found ? [{ state: 'wrong', detail: `${deviceId} is ${found.state}: ${found.detail}` }] : []
  })
  if (refused.length > 0) return refused
  return [{ state: 'ok', detail: `${counted(registered.length, 'device')} in store ${identity.storeId}` }]
}

function lastPolicy(identity: Identity, data: string): PolicyClaims | undefined {
  const file = join(data, 'ledger.db')
  // `openLedgerFile` would create a missing file.
  if (!existsSync(file)) return undefined
  const db = openLedgerFile(file)
  try {
    return storedPolicy(identity, openMetadata(db))
  } finally {
    db.close()
  }
}

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
    // A free port is what every command expects.
    ...(await checkPorts())
      .filter(({ detail }) => detail !== FREE)
      .map(({ port, ...found }) => ({ what: `port ${port}`, ...found })),
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
  const agent = identity
    ? await checkAgent({ data, identity, config: config?.config, file, ...parts, send: parts.sendToAgent })
    : agentOnDefaultPort(await agentReadiness(), data)
  const cloud = identity
    ? await checkCloud({
        cloud: identity.cloud,
        isAgentRunning: !agent.some(
          ({ what, cause, state }) => what === 'agent' && (cause !== undefined || state === 'note'),
        ),
        send: parts.sendToCloud(ca ?? identity.ca),
        nowMs,
        certificateEnd: (url) => parts.certificateEnd(url, ca ?? identity.ca),
      })
    : []
  return [
    ...(await checkFolder(data, { minFreeMb, freeBytes: free })),
    await checkIdentity(data),
    // A running agent knows its items better than their file, which it writes later.
    ...(agent.some(({ what }) => what === ITEMS) ? [] : await checkItems(data)),
    ...cloud,
    ...(cloud.some(({ what }) => what === 'clock') ? [] : [checkYear(nowMs())]),
    ...(config?.findings ?? []),
    ...(config?.config ? checkDevices(config.config, data) : []),
    ...agent,
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
    const near = nearby(data, 'edge', 'agent.json')
    const demo = near === '' ? runningDemo() : undefined
    return {
      what: 'enrolment',
      state: 'wrong',
      detail:
        demo === undefined
          ? `no agent in ${data}: enrol one with untag edge enrol, or name its folder with --data${near}`
          : `no agent in ${data}: a demo runs, check it with untag doctor --data ${demo}`,
    }
  } catch (error) {
    return { what: 'enrolment', state: 'wrong', detail: (error as Error).message }
  }
}

/** Checks the items of an enrolled agent: without them, gates alarm for paid goods, too. */
async function checkItems(data: string): Promise<Finding[]> {
  if (!existsSync(join(data, 'agent.json'))) return []
  const what = ITEMS
  // Not at the top: the doctor must also run where better-sqlite3 does not load.
  const { inspectItemFile } = await import('../../edge-agent/items/item-file.ts')
  const found = inspectItemFile(join(data, 'items.db'))
  const until = 'until the agent has reached the cloud, gates alarm for paid goods, too'
  if ('isComplete' in found) {
    if (found.isComplete) return [{ what, state: 'ok', detail: 'the copy was complete' }]
    const { restoredMs } = found
    const why =
      restoredMs === undefined
        ? 'there is no complete copy yet'
        : `the cloud was restored at ${new Date(restoredMs).toISOString()}, so the agent fetches them again`
    return [{ what, state: 'note', detail: `${why}: ${until}` }]
  }
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
function agentOnDefaultPort(agent: Awaited<ReturnType<typeof agentReadiness>>, data: string): Finding[] {
  if (!agent) return []
  const detail = `the agent${agent.agentId === undefined ? '' : ` ${agent.agentId}`} on port ${DEFAULT_PORTS.agent} has another folder than ${data}: its devices follow. Name its folder with --data for all checks`
  return [
    { what: 'agent', state: 'note', detail },
    ...agent.devices.flatMap(deviceFindings),
    ...(agent.emergency ? [emergencyFinding()] : []),
  ]
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
