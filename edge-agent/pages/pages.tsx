import type { Context, Hono } from 'hono'
import type { JSX } from 'hono/jsx/jsx-runtime'
import { capabilitiesOf } from '../../device-drivers/registry.ts'
import type { PolicyClaims } from '../../policy/documents/store-documents.ts'
import type { Platform } from '../../policy/platform.ts'
import type { AlarmState, HandledAlarms } from '../lanes/gate/handled-alarms.ts'
import type { Pictures } from '../items/pictures.ts'
import type { Replica } from '../items/replica.ts'
import type { Lanes } from '../lanes/lanes.ts'
import type { Agent } from '../runtime.ts'
import type { Setup } from '../setup/setup.ts'
import { DeviceList, NotHere } from './components/device-list.tsx'
import type { Localization } from './components/frame.tsx'
import { GatePage } from './components/gate-page.tsx'
import { PairPage } from './components/pair-page.tsx'
import { SetupPage } from './components/setup-page.tsx'
import { StationPage } from './components/station-page.tsx'
import { ICON, manifestOf } from './manifest.ts'
import { clockTime } from './model/status-view.ts'
import { arrangeLines, gateLine, gateRest } from './model/gate-view.ts'
import { LONGEST_VIEW_MS, resultView } from './model/result-view.ts'
import type { PageDevice, PageStatus, LiveEvent, RecentResult } from './model/wire.ts'
import { pageRenderer } from './page-renderer.tsx'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Feed, FeedEvent } from '../feed.ts'
import { storedAlarmResult } from '../lanes/gate/gate-alarms.ts'
import { liveEvent } from './live-event.ts'

type LiveResult = LiveEvent & { type: 'result' }

/** The last results of one device. */
interface DeviceResults {
  /** Newest first. */
  readonly results: readonly LiveResult[]
  /** True if open alarms are missing. */
  readonly isCut: boolean
}

/** The last results of each device, for pages that open later. */
interface RecentResults {
  of(deviceId: string): DeviceResults
}

interface RecentResultsParts {
  feed: Pick<Feed, 'listen'>
  /** True for devices of this agent. Programs may send other ids. */
  isOurs(deviceId: string): boolean
  policy(): PolicyClaims | undefined
  /** What a person did about an alarm. */
  stateOf(alarmId: string): AlarmState | undefined
  /** The alarms before the start of the agent, oldest first. */
  before: readonly (FeedEvent & { type: 'result' })[]
  /** True if alarms before the start are missing in `before`. */
  isBeforeCut: boolean
}

/** Collects results until the agent stops. */
function recentResults({ feed, isOurs, policy, stateOf, before, isBeforeCut }: RecentResultsParts): RecentResults {
  const devices = new Map<string, DeviceResults>()
  const of = (deviceId: string) => devices.get(deviceId) ?? { results: [], isCut: isBeforeCut }
  function add(event: FeedEvent): void {
    if (event.type !== 'result' || event.result.kind === 'operator' || !isOurs(event.deviceId)) return
    const live = liveEvent(event, policy())
    if (live.type !== 'result') return
    const { results, isCut } = of(event.deviceId)
    const next = arrangeLines([live, ...results], ({ result }) => {
      const { item: tag = '', alarmId } = result.kind === 'decision' ? result : {}
      return { tag, alarmId, step: alarmId === undefined ? undefined : stateOf(alarmId)?.step }
    })
    devices.set(event.deviceId, {
      results: [...next.shown, ...next.hidden].toSorted((a, b) => b.atMs - a.atMs),
      // How long the missing alarms stay open, only the cloud knows.
      isCut: isCut || next.isCut,
    })
  }
  async function listen(): Promise<void> {
    for await (const event of feed.listen(new AbortController().signal)) add(event)
  }
  for (const event of before) add(event)
  void listen()
  return { of }
}

/** The built scripts of the pages. */
interface Assets {
  /** Hash of all files. The hash is part of the address of each file, so that browsers may cache the files for ever. */
  readonly build: string
  /** `file`: for example `browser/station.js`. */
  read(file: string): string | undefined
}

/** Folders that the browser may load: its scripts, and the modules that it shares with the server. */
const FOLDERS = ['browser', 'model', 'texts']

/** Reads the built scripts into memory. */
export function readAssets(folder = builtFolder()): Assets {
  const files = new Map<string, string>()
  for (const name of FOLDERS.filter((name) => existsSync(join(folder, name)))) {
    for (const file of readdirSync(join(folder, name)).filter((file) => file.endsWith('.js'))) {
      files.set(`${name}/${file}`, readFileSync(join(folder, name, file), 'utf8'))
    }
  }
  const hash = createHash('sha256')
  for (const name of [...files.keys()].sort())
    hash
      .update(name)
      .update('\0')
      .update(files.get(name) ?? '')
      .update('\0')
  return { build: hash.digest('hex').slice(0, 16), read: (file) => files.get(file) }
}

/** Folder of this file in the build. Tests run the sources, and use the scripts of the last build. */
function builtFolder(): string {
  const here = import.meta.dirname
  return existsSync(join(here, 'pages.tsx')) ? join(here, '..', '..', 'dist', 'edge-agent', 'pages') : here
}

/**
 * What the pages need of an agent. The server renders the pages of station, gate and set-up. These pages work without
 * the cloud.
 */
interface PagesAgent extends Pick<Agent, 'feed' | 'status' | 'config' | 'deviceDiscovery'> {
  setup: Pick<Setup, 'changeable' | 'fileName' | 'isRemoved' | 'isRestartDue' | 'nameOf' | 'testable'>
  gates: { alarms: Pick<HandledAlarms, 'stateOf' | 'before' | 'isBeforeCut'> }
  platform: Pick<Platform, 'clock' | 'random'>
  trust: { readonly policy: PolicyClaims | undefined }
  lanes: Pick<Lanes, 'operatorAt'>
  items: { readonly pictures: Pick<Pictures, 'read'> } & Pick<Replica, 'productOf' | 'pictureOf'>
}

/** Access checks of the pages. */
interface PageAccess {
  mayOpen(c: Context): boolean
  /** True if the browser runs on the machine of the agent. */
  isLoopback(c: Context): boolean
  renewCookie(c: Context): void
}

/** Properties of a device's page. */
interface PageAt {
  status: PageStatus
  device: PageDevice
  localization: Localization
  nowMs: number
  script: { src: string; nonce: string }
}

const FOR_EVER = {
  'content-type': 'text/javascript; charset=utf-8',
  'cache-control': 'public, max-age=31536000, immutable',
}

const PICTURE_HEADERS = {
  'content-type': 'image/webp',
  'cache-control': 'private, max-age=31536000, immutable',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
}

/**
 * Adds the pages and their files to the local app. The pages show `dataDir` only to browsers on the agent's machine.
 */
export function pageRoutes(app: Hono, agent: PagesAgent, access: PageAccess, dataDir = 'DIR'): void {
  const pages = new Pages(agent, access, dataDir)
  app.get('/', (c) => c.redirect('/station'))
  // Address of one-time links. The code is in the fragment, which only the page's script reads.
  app.get('/pair', (c) => pages.showPairing(c, pages.localize(c), 200))
  app.get('/station', (c) => pages.showDevice(c, 'station', (at) => pages.station(at)))
  app.get('/gate', (c) => pages.showDevice(c, 'gate', (at) => pages.gate(at)))
  app.get('/setup', (c) => pages.showSetup(c))
  // Browsers ask for `/favicon.ico` on pages that name no icon.
  for (const path of ['/icon.svg', '/favicon.ico'])
    app.get(path, (c) => c.body(ICON, 200, { 'content-type': 'image/svg+xml', 'cache-control': 'max-age=86400' }))
  app.get('/manifest.webmanifest', (c) => {
    const { page, device = '' } = c.req.query()
    const isPage = page === 'gate' || page === 'station'
    if (!isPage || device.length === 0 || device.length > 128) return c.notFound()
    const manifest = manifestOf(page, device, pages.localize(c).texts)
    return c.body(JSON.stringify(manifest), 200, { 'content-type': 'application/manifest+json' })
  })
  app.get('/pictures/:name', (c) => {
    const hash = /^([A-Za-z0-9_-]{43})\.webp$/.exec(c.req.param('name'))?.[1]
    const bytes = hash !== undefined && access.mayOpen(c) ? agent.items.pictures.read(hash) : undefined
    if (bytes === undefined) return c.body('', 404, { 'cache-control': 'no-store' })
    return c.body(new Uint8Array(bytes), 200, PICTURE_HEADERS)
  })
  app.get('/assets/:build/:folder/:file', (c) => {
    const { build, folder, file } = c.req.param()
    return pages.sendAsset(c, build, `${folder}/${file}`)
  })
}

class Pages {
  readonly #agent: PagesAgent
  readonly #access: PageAccess
  readonly #dataDir: string
  /** Wall clock at the start of the agent. */
  readonly #startedMs: number
  readonly #assets = readAssets()
  readonly #recent: ReturnType<typeof recentResults>
  readonly #renderer: ReturnType<typeof pageRenderer>

  constructor(agent: PagesAgent, access: PageAccess, dataDir: string) {
    this.#agent = agent
    this.#access = access
    this.#dataDir = dataDir
    this.#startedMs = agent.platform.clock.wall()
    this.#recent = recentResults({
      feed: agent.feed,
      isOurs: (id) => agent.config.devices.some(({ deviceId }) => deviceId === id),
      policy: () => agent.trust.policy,
      stateOf: (alarmId) => agent.gates.alarms.stateOf(alarmId),
      isBeforeCut: agent.gates.alarms.isBeforeCut,
      before: agent.gates.alarms.before.flatMap((event) => {
        const result = storedAlarmResult(event, agent.items)
        const { deviceId = '', occurredAt } = event
        return result ? [{ type: 'result' as const, deviceId, atMs: Date.parse(occurredAt), result }] : []
      }),
    })
    this.#renderer = pageRenderer(agent)
  }

  /** The devices that only send their reads or scans to another device (`feeds`). These devices have no page. */
  get #feeding(): ReadonlySet<string> {
    const { devices } = this.#agent.config
    const feeding = devices.filter((device) => capabilitiesOf(device).feeds !== undefined)
    return new Set(feeding.map(({ deviceId }) => deviceId))
  }

  localize(c: Context): Localization {
    return this.#renderer.localize(c)
  }

  /** Shows how to pair the browser. */
  showPairing(c: Context, localization: Localization, status: 200 | 401 = 401): Response | Promise<Response> {
    const { show } = this.#renderer
    const command = `untag edge link --data ${this.#access.isLoopback(c) ? quoted(this.#dataDir) : 'DIR'}`
    if (status === 401) c.header('www-authenticate', 'Bearer')
    const src = this.#programOf('pair')
    return show(
      c,
      (nonce) => <PairPage localization={localization} command={command} script={{ src, nonce }} />,
      status,
    )
  }

  /** Shows the page of the device in the address, or the list of devices. */
  showDevice(c: Context, name: string, render: (at: PageAt) => JSX.Element): Response | Promise<Response> {
    const { localize, show } = this.#renderer
    const requestedId = c.req.query('device')
    const localization = localize(c, requestedId !== undefined)
    if (!this.#access.mayOpen(c)) return this.showPairing(c, localization)
    this.#access.renewCookie(c)
    const status: PageStatus = this.#agent.status()
    const nowMs = this.#agent.platform.clock.wall()
    const feeding = this.#feeding
    const devices: PageDevice[] = status.devices.filter(({ deviceId }) => !feeding.has(deviceId))
    const device = devices.find(({ deviceId }) => deviceId === requestedId)
    const missing = requestedId !== undefined
    if (!device)
      return show(
        c,
        () => <DeviceList localization={localization} devices={devices} missing={missing} />,
        missing ? 404 : 200,
      )
    const src = this.#programOf(name)
    return show(c, (nonce) => render({ status, device, localization, nowMs, script: { src, nonce } }))
  }

  station({ device, localization, ...rest }: PageAt): JSX.Element {
    const { texts } = localization
    const [last] = this.#recent.of(device.deviceId).results
    const view = last && resultView(last.result, texts)
    const lastText = last && view ? `${texts.last(clockTime(last.atMs, texts.language))}: ${view.headline}` : ''
    const operator = this.#agent.lanes.operatorAt(device.deviceId) ?? null
    return (
      <StationPage
        {...rest}
        device={device}
        localization={localization}
        operator={operator}
        hasSounds={this.#agent.config.sounds}
        recent={this.#recentAt(device.deviceId, rest)}
        view={{ kind: 'idle', last: lastText }}
      />
    )
  }

  gate({ device, localization, ...rest }: PageAt): JSX.Element {
    const { texts } = localization
    const { results, isCut } = this.#recent.of(device.deviceId)
    const lines = results.flatMap((result) => gateLine(result, texts) ?? [])
    const operator = this.#agent.lanes.operatorAt(device.deviceId) ?? null
    return (
      <GatePage
        {...rest}
        device={device}
        localization={localization}
        operator={operator}
        hasSounds={this.#agent.config.sounds}
        recent={this.#recentAt(device.deviceId, rest)}
        view={gateRest(rest.status, device.deviceId, texts)}
        lines={lines}
        isCut={isCut}
        startedMs={this.#startedMs}
        stateOf={(alarmId) => this.#agent.gates.alarms.stateOf(alarmId)}
      />
    )
  }

  /** What the lane may still show. In an emergency nothing covers the way out. */
  #recentAt(deviceId: string, { status, nowMs }: Pick<PageAt, 'status' | 'nowMs'>): RecentResult[] {
    if (status.emergency !== null) return []
    return this.#recent
      .of(deviceId)
      .results.map(({ atMs, result, light }) => ({
        ageMs: nowMs - atMs,
        result,
        ...(light !== undefined && { light }),
      }))
      .filter(({ ageMs }) => ageMs < LONGEST_VIEW_MS)
      .toReversed()
  }

  async showSetup(c: Context): Promise<Response> {
    const { localize, show } = this.#renderer
    const localization = localize(c)
    if (!this.#access.mayOpen(c)) return this.showPairing(c, localization)
    if (!this.#access.isLoopback(c)) return show(c, () => <NotHere localization={localization} />, 401)
    this.#access.renewCookie(c)
    const { config, deviceDiscovery, setup } = this.#agent
    const { attached, notes } = (await deviceDiscovery?.findAttached()) ?? { attached: [], notes: [] }
    const src = this.#programOf('setup')
    const { devices, ledgerDoubt } = this.#agent.status()
    const warning = ledgerDoubt === null ? undefined : localization.texts.ledgerDoubts[ledgerDoubt]
    return show(c, (nonce) => (
      <SetupPage
        localization={localization}
        devices={devices}
        configFile={setup.fileName}
        testable={(deviceId) => setup.testable(deviceId)}
        changeable={(deviceId) => setup.changeable(deviceId)}
        isRemoved={(deviceId) => setup.isRemoved(deviceId)}
        nameIn={(deviceId) => setup.nameOf(deviceId)}
        addedId={c.req.query('added')}
        changedId={c.req.query('changed')}
        isRestartDue={setup.isRestartDue}
        hasFireAlarm={config.devices.some((entry) => capabilitiesOf(entry).emergency !== undefined)}
        attached={attached}
        warning={warning}
        notes={notes}
        script={{ src, nonce }}
      />
    ))
  }

  sendAsset(c: Context, build: string, file: string): Response {
    const text = build === this.#assets.build ? this.#assets.read(file) : undefined
    // From a 404 the page learns that its build is outdated.
    return text === undefined ? c.body('', 404, { 'cache-control': 'no-store' }) : c.body(text, 200, FOR_EVER)
  }

  #programOf(name: string): string {
    return `/assets/${this.#assets.build}/browser/${name}.js`
  }
}

/** Quotes a path for a shell. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
