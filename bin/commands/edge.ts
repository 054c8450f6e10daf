import { UNTAG_VERSION } from '../../policy/version.ts'
import { printReady } from '../output.ts'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openLink } from '../../device-drivers/transports/link-settings.ts'
import { pushPort, type PushPort } from '../../device-drivers/transports/push-port.ts'
import type { OpenLink } from '../../device-drivers/transports/shared-links.ts'
import { tracedLinks } from '../../device-drivers/transports/traced-link.ts'
import { EMPTY_CONFIG, readConfig, type AgentConfig } from '../../edge-agent/config.ts'
import { localApp } from '../../edge-agent/http/local-app.ts'
import { LOCAL_URLS } from '../../edge-agent/ledger/pairings.ts'
import { startAgent, type Agent, type AgentParts } from '../../edge-agent/runtime.ts'
import { hashSecret, newSecret, pairingUrl } from '../../edge-agent/identity/credentials.ts'
import type { Log } from '../../edge-agent/log.ts'
import { assertKeyPairs, readIdentity, writeIdentity, type Identity } from '../../edge-agent/identity/identity.ts'
import type { Platform } from '../../policy/platform.ts'
import { agentFetch } from '../bounded-fetch.ts'
import { configFile } from '../config-file.ts'
import { credentialFile } from '../credential-file.ts'
import { lockDataDir } from '../data-dir-lock.ts'
import { listen } from '../http-server.ts'
import { lanAddress } from '../lan-address.ts'
import { newLog, type ProcessLog } from '../log.ts'
import { mqttLineTrusting, openMqttLine } from '../mqtt-line.ts'
import type { Values } from '../options.ts'
import { openPcsc } from '../pcsc-process.ts'
import { realPlatform } from '../platform.ts'
import { edgeLines } from '../ready-lines.ts'
import { hideFromOthers } from '../private-files.ts'
import { runtimeFiles } from '../runtime-files.ts'
import { secretFiles } from '../secret-files.ts'
import { ownServiceManager } from '../service/service-manager.ts'
import type { EDGE_OPTIONS } from '../settings.ts'
import { stopOnSignals } from '../shutdown.ts'
import { readCa } from '../tls/private-ca.ts'
import { openServerCertificate, tlsFilesOf } from '../tls/server-certificate.ts'
import { deviceDiscovery } from '../device-discovery.ts'
import { traceFiles } from '../trace-files.ts'
import { nearby } from './known-database.ts'

/** Maximum wait for the first contact with the cloud before the agent serves, ms (ADR 0042). */
const FIRST_CONTACT_MS = 5_000

export type EdgeSettings = Values<typeof EDGE_OPTIONS>

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
  } catch {
    throw new Error(`${file} cannot be read: check the path of --config`)
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
    const agent = startAgent({
      ...partsOf(settings, identity, log),
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
function partsOf({ data, runtimeDir, config, mqttUrl, ca: caFile }: EdgeSettings, identity: Identity, log: ProcessLog) {
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
    ...(config !== undefined && { configFile: configFile(config) }),
    ...(mqttUrl !== undefined && { mqttUrl }),
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
function storeUrls({ ledger }: Agent, urls: readonly string[], log: Log): boolean {
  const known = ledger.metadata.get(LOCAL_URLS)
  const text = JSON.stringify([...new Set(urls)].filter((url) => URL.canParse(url)))
  try {
    if (text !== known) ledger.commits.now(() => ledger.metadata.set(LOCAL_URLS, text))
  } catch (error) {
    log.warn({ err: error }, 'the address of this agent cannot be stored: untag edge link prints its former one')
    return false
  }
  return known === undefined
}

function newPairingUrl({ ledger, platform }: Agent, url: string): string {
  const code = newSecret('link', platform.random)
  ledger.commits.now(() => ledger.pairings.addLink(hashSecret(code), platform.clock.wall()))
  return pairingUrl(url, code)
}
