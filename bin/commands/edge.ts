import { UNTAG_VERSION } from '../../policy/version.ts'
import { printReady } from '../../host/output.ts'
import {
  readFileSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  writeSync,
  appendFileSync,
  renameSync,
  statSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { openLink } from '../../device-drivers/transports/link-settings.ts'
import { pushPort, type PushPort } from '../../device-drivers/transports/memory.ts'
import type { OpenLink } from '../../device-drivers/transports/shared-links.ts'
import { tracedLinks, type WriteTrace } from '../../device-drivers/transports/traced-link.ts'
import { EMPTY_CONFIG, readConfig, type AgentConfig } from '../../edge-agent/config.ts'
import { localApp } from '../../edge-agent/http/local-app.ts'
import { LOCAL_URLS } from '../../edge-agent/ledger/pairings.ts'
import { startAgent, type Agent, type AgentParts } from '../../edge-agent/runtime.ts'
import {
  hashSecret,
  newSecret,
  pairingUrl,
  assertKeyPairs,
  readIdentity,
  writeIdentity,
  type Identity,
} from '../../edge-agent/identity/identity.ts'
import type { Log } from '../../edge-agent/log.ts'
import type { Platform } from '../../policy/platform.ts'
import { agentFetch } from '../api-client.ts'
import { CONFIG_IN_USE, configFile, configInUse } from '../../host/config-file.ts'
import { credentialFile } from '../../host/credential-file.ts'
import { lockDataDir } from '../../host/data-dir-lock.ts'
import { listen } from '../../host/http-server.ts'
import { newLog, type ProcessLog } from '../../host/log.ts'
import { mqttLineTrusting, openMqttLine } from '../../host/mqtt-line.ts'
import type { Values } from '../../host/options.ts'
import { openPcsc, deviceDiscovery } from '../../host/device-discovery.ts'
import { realPlatform } from '../../host/platform.ts'
import { freeBytes } from '../../host/replace-file.ts'
import { edgeLines } from '../../host/ready-lines.ts'
import { hideFromOthers, nearby } from '../../host/private-files.ts'
import { secretFiles } from '../../host/secret-files.ts'
import { ownServiceManager } from '../../host/service/service-manager.ts'
import type { EDGE_OPTIONS } from '../../host/settings/edge.ts'
import { stopOnSignals } from '../../host/shutdown.ts'
import { readCa } from '../../host/tls/private-ca.ts'
import { openServerCertificate, tlsFilesOf } from '../../host/tls/server-certificate.ts'
import { tmpdir } from 'node:os'
import type { SmallFiles } from '../../edge-agent/ledger/file/watermark.ts'

/**
 * Maximum size of a trace file, bytes. Each link has at most two trace files: the current file and the previous file.
 */
const MOST_FILE_BYTES = 4 * 1_048_576
const FLUSH_MS = 200
const MOST_HELD_BYTES = 1_048_576

/** The file of a link, such as `tcp_10.0.0.7_502.trace`. */
export function traceFile(dir: string, link: string): string {
  return join(dir, `${link.replaceAll(/[^A-Za-z0-9.-]+/g, '_').slice(0, 120)}.trace`)
}

/**
 * Writes traces to `dir`. Only the owner may read them, because they contain passwords of devices. A write error ends
 * only the trace.
 */
export function traceFiles(dir: string, onFault: (error: Error) => void): { write: WriteTrace; flush(): void } {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const held = new Map<string, string>()
  let timer: NodeJS.Timeout | undefined
  let isBroken = false

  function put(link: string, text: string): void {
    const file = traceFile(dir, link)
    if (existsSync(file) && statSync(file).size + text.length > MOST_FILE_BYTES)
      renameSync(file, file.replace(/\.trace$/, '.1.trace'))
    appendFileSync(file, text, { mode: 0o600 })
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    try {
      for (const [link, text] of held) put(link, text)
    } catch (error) {
      isBroken = true
      onFault(error as Error)
    }
    held.clear()
  }

  return {
    flush,
    write(link, line) {
      if (isBroken) return
      const text = `${held.get(link) ?? ''}${line}\n`
      held.set(link, text)
      if (text.length > MOST_HELD_BYTES) return flush()
      timer ??= setTimeout(flush, FLUSH_MS)
    },
  }
}

const WRITABLE_BY_OTHERS = 0o022
const { O_CREAT, O_NOFOLLOW = 0, O_WRONLY } = constants

/** Small files in `folder`. Default: the runtime folder of this user, which the next reboot empties. */
export function runtimeFiles(folder: string = defaultFolder()): SmallFiles {
  let isOwn = false

  /** Creates and checks the folder once. Later calls need no check, because only this user may write to the folder. */
  function makeOwn(): void {
    if (isOwn) return
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    checkOwn(folder)
    isOwn = true
  }

  return {
    read(name) {
      if (!existsSync(join(folder, name))) return undefined
      makeOwn()
      return readFileSync(join(folder, name), 'utf8')
    },
    write(name, text) {
      makeOwn()
      try {
        overwrite(join(folder, name), text)
      } catch (error) {
        // The system may have emptied the runtime folder.
        if ((error as { code?: string }).code !== 'ENOENT') throw error
        isOwn = false
        makeOwn()
        overwrite(join(folder, name), text)
      }
    },
  }
}

/** `XDG_RUNTIME_DIR/untag`, or `untag-UID` in the folder for temporary files. */
export function defaultFolder(env: NodeJS.ProcessEnv = process.env): string {
  const { XDG_RUNTIME_DIR: runtime } = env
  return runtime === undefined || runtime === ''
    ? join(tmpdir(), `untag-${process.getuid?.() ?? 'run'}`)
    : join(runtime, 'untag')
}

/** Throws if the folder is not safe: another user may have created the folder, or replaced it by a link. */
function checkOwn(folder: string): void {
  const stat = lstatSync(folder)
  const isOwn = process.getuid === undefined || stat.uid === process.getuid()
  const isOpen = process.getuid !== undefined && (stat.mode & WRITABLE_BY_OTHERS) !== 0
  if (!stat.isDirectory() || !isOwn || isOpen)
    throw new Error(
      `${folder} must be a folder of this user to which no other user may write: choose another with --runtime-dir`,
    )
}

/** Overwrites in place without truncating, so that a killed process leaves the old or the new text. */
function overwrite(file: string, text: string): void {
  const opened = openSync(file, O_WRONLY | O_CREAT | O_NOFOLLOW, 0o600)
  try {
    writeSync(opened, text, 0)
  } finally {
    closeSync(opened)
  }
}

/** Scheme, host and port of an agent, its other host names (`hosts`), and the base URL of its cloud. */
interface Listening {
  scheme: 'http' | 'https'
  host: string
  port: number
  hosts: readonly string[]
  cloud: string
}

/**
 * Address at which other agents of the store reach this agent. Empty if the agent listens on all addresses and has no
 * configured name. Empty also if the agent listens on loopback, because each machine has its own loopback. If the cloud
 * is on loopback too, all agents are on this machine and the loopback address works.
 */
export function lanAddress({ scheme, host, port, hosts, cloud }: Listening): { address?: string } {
  if (isLoopback(host) && !isLoopback(new URL(cloud).hostname)) return {}
  const isEverywhere = host === '0.0.0.0' || host === '::'
  const name = isEverywhere ? hosts[0] : `${host.includes(':') ? `[${host}]` : host}:${port}`
  return name === undefined ? {} : { address: `${scheme}://${name}` }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || /^127\.|^\[?::1\]?$/.test(host)
}

/** Maximum wait for the first contact with the cloud before the agent serves, ms (ADR command-line). */
const FIRST_CONTACT_MS = 5_000

type EdgeSettings = Values<typeof EDGE_OPTIONS>

export interface RunningEdge {
  url: string
  agent: Agent
  /** True at the first start with this data folder: no browser is paired yet. */
  isFirstStart: boolean
  /** Creates a one-time link that pairs a browser. */
  newPairingUrl(): string
  stop(): Promise<void>
}

export async function runEdge(settings: EdgeSettings): Promise<void> {
  const config = settings.config === undefined ? EMPTY_CONFIG : loadConfig(settings.config)
  const log = newLog('edge', settings.logLevel)
  const platform = realPlatform()
  const running = await startEdge(settings, config, platform, log)
  // Watches the event loop only: a failed ledger or device must not restart the agent.
  const service = ownServiceManager(platform, log)
  stopOnSignals(service.reportStop(running.stop))
  if (running.isFirstStart)
    log.warn(
      { pairingUrl: running.newPairingUrl() },
      'no browser is paired yet: open this link in the browser that shows the pages. It works once, within 15 minutes; untag edge link prints another',
    )
  log.info({ release: UNTAG_VERSION }, 'the agent runs')
  const { agentId, storeId } = running.agent.identity
  printReady({ url: running.url, agentId }, edgeLines({ url: running.url, agentId, storeId }, settings.data))
  service.ready()
}

export function loadConfig(file: string): AgentConfig {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    // An agent that starts without its devices because of a mistyped path would guard nothing.
    throw new Error(
      (error as NodeJS.ErrnoException).code === 'ENOENT'
        ? `${file} does not exist: check the path of --config. For a new agent, create it with the text {"devices":[]}; the set-up page then adds devices to it`
        : `${file} cannot be read: check the path of --config, and the rights of this user`,
      { cause: error },
    )
  }
  const checked = readConfig(text)
  if (!checked.ok)
    throw new Error(
      [
        `${file} has ${checked.faults.length === 1 ? 'a fault' : `${checked.faults.length} faults`}:`,
        ...checked.faults.map((f) => `  ${f}`),
      ].join('\n'),
    )
  return checked.config
}

export async function startEdge(
  settings: EdgeSettings,
  config: AgentConfig,
  platform: Platform,
  log: ProcessLog,
  parts: Partial<AgentParts> = {},
): Promise<RunningEdge> {
  const { data, host } = settings
  const identity = await enrolledIdentity(data)
  const lock = lockDataDir(
    join(data, 'agent.lock'),
    `another agent runs with the data in ${data}: stop it, or choose another folder with --data`,
  )
  const stops: Stop[] = [() => lock.release()]
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each()
  }
  try {
    hideFromOthers(data, ['ledger.db', 'items.db'])
    const certificate = certificateOf(settings, config, platform, log)
    if (certificate) stops.push(certificate.stop)
    const server = await listen({ host, port: settings.port, flag: 'port', platform, warn: log.warn, certificate })
    stops.push(server.close)
    const scheme = certificate ? 'https' : 'http'
    const pushes = pushPort()
    const { config: file } = settings
    const agent: Agent = startAgent({
      ...partsOf(settings, identity, log),
      ...(file !== undefined && {
        configFile: configFile(file, () => store(agent, CONFIG_IN_USE, configInUse(file), log)),
      }),
      platform,
      identity,
      config,
      ...lanAddress({ scheme, host, port: server.port, hosts: config.hosts, cloud: identity.cloud }),
      openLink: deviceLinks(settings, pushes, platform, log, stops),
      deviceDiscovery: deviceDiscovery(settings.pcscdSocket, platform),
      ...parts,
    })
    stops.push(agent.stop)
    const hosts = [...ownNames(host, server.port), ...config.hosts]
    const credential = ownCredential(data, platform, log)
    const { lostLines: lostLogLines } = log
    server.serve(localApp(agent, { hosts: () => hosts, log, credential, dataDir: resolve(data), pushes, lostLogLines }))
    const url = `${scheme}://${host === '0.0.0.0' ? 'localhost' : host}:${server.port}`
    const isFirstStart = storeUrls(agent, [url, ...hosts.map((name) => `${scheme}://${name}`)], log)
    store(agent, CONFIG_IN_USE, configInUse(file), log)
    await agent.ready(FIRST_CONTACT_MS)
    return { url, agent, isFirstStart, newPairingUrl: () => newPairingUrl(agent, url), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The certificate of the agent's pages and API. Undefined without `--tls-cert`. */
function certificateOf(settings: EdgeSettings, { hosts }: AgentConfig, platform: Platform, log: ProcessLog) {
  const files = tlsFilesOf(settings)
  if (!files) return undefined
  const { host } = settings
  const isEverywhere = host === '0.0.0.0' || host === '::'
  const names = [...(isEverywhere ? [] : [host]), ...hosts.map((name) => name.replace(/:\d+$/, ''))]
  return openServerCertificate(files, { platform, log, hosts: names })
}

type Stop = () => Promise<void> | void

/** The identity of the agent in `data`. Throws if there is none, or if a private key does not match its public key. */
async function enrolledIdentity(data: string): Promise<Identity> {
  const identity = readIdentity(data, secretFiles)
  if (!identity)
    throw new Error(
      `${data} contains no agent: enrol one with untag edge enrol --cloud BASE_URL --code CODE --data ${data}${nearby(data, 'edge', 'agent.json')}`,
    )
  await assertKeyPairs(data, identity)
  return identity
}

/** Files, network and log of this machine for the agent. */
function partsOf({ data, runtimeDir, mqttUrl, ca: caFile }: EdgeSettings, identity: Identity, log: ProcessLog) {
  // The option replaces the CA of the enrolment, so that a renewed CA needs no new enrolment.
  const ca = caFile === undefined ? identity.ca : readCa('--ca', caFile)
  return {
    dataDir: data,
    keepIdentity: (changed: Identity) => writeIdentity(data, changed, secretFiles),
    secretFiles,
    fetch: agentFetch(ca),
    openLine: ca === undefined ? openMqttLine : mqttLineTrusting(ca),
    log,
    watermarkFolders: [runtimeFiles(runtimeDir), runtimeFiles(data)],
    ...(mqttUrl !== undefined && { mqttUrl }),
    freeBytes: () => freeBytes(data),
    onFatal(why: Error) {
      log.error({ err: why }, 'the ledger failed, so this process ends and checks it at the next start')
      setImmediate(() => process.exit(1))
    },
  }
}

/**
 * Opens device links. NFC readers run in a separate process. Readers that send their reads by HTTP POST use `pushes`.
 * All other links are opened directly.
 */
function deviceLinks(
  { pcscdSocket, trace }: EdgeSettings,
  pushes: PushPort,
  platform: Platform,
  log: ProcessLog,
  stops: Stop[],
): OpenLink {
  const openPlain: OpenLink = (link, signal) =>
    'pcsc' in link ? openPcsc({ socket: pcscdSocket, ...link }, signal) : openLink(link, signal)
  const traces =
    trace === undefined
      ? undefined
      : traceFiles(trace, (error) => log.error({ err: error }, 'traces cannot be written: check the folder of --trace'))
  if (traces) stops.push(traces.flush)
  const openWired = traces ? tracedLinks(openPlain, traces.write, platform.clock) : openPlain
  return (link, signal) => ('push' in link ? pushes.open(link.push.toLowerCase(), signal) : openWired(link, signal))
}

/** `host:port` names under which this machine reaches the agent. */
function ownNames(host: string, port: number): string[] {
  return [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`, `${host}:${port}`]
}

/** Creates the agent's credential if it is missing. Returns a function that reads the credential. */
function ownCredential(data: string, platform: Platform, log: Log): () => string | undefined {
  const credential = credentialFile(data, platform.random)
  try {
    credential.ensure()
  } catch (error) {
    // If a full disk prevents a new credential, the agent starts without it. Paired browsers, and programs that
    // `untag edge pair` has named, have their own credentials.
    log.error({ err: error }, 'the credential cannot be stored: free disk space and run untag edge credential')
  }
  return credential.read
}

/** Stores the agent's addresses for `untag edge link`. Returns true if none were stored before. */
function storeUrls(agent: Agent, urls: readonly string[], log: Log): boolean {
  const isKnown = agent.ledger.metadata.get(LOCAL_URLS) !== undefined
  return (
    store(agent, LOCAL_URLS, JSON.stringify([...new Set(urls)].filter((url) => URL.canParse(url))), log) && !isKnown
  )
}

/** Stores what `untag edge link` and `untag doctor` read beside the running agent. Returns false if that fails. */
function store({ ledger }: Agent, key: string, text: string, log: Log): boolean {
  try {
    if (text !== ledger.metadata.get(key)) ledger.commits.now(() => ledger.metadata.set(key, text))
    return true
  } catch (error) {
    log.warn({ err: error, key }, 'this cannot be stored: untag edge link and untag doctor read the former value')
    return false
  }
}

function newPairingUrl({ ledger, platform }: Agent, url: string): string {
  const code = newSecret('link', platform.random)
  ledger.commits.now(() => ledger.pairings.addLink(hashSecret(code), platform.clock.wall()))
  return pairingUrl(url, code)
}
