import type { Context, Hono } from 'hono'
import type { JSX } from 'hono/jsx/jsx-runtime'
import { capabilitiesOf } from '../../device-drivers/drivers/registry.ts'
import type { PolicyClaims } from '../../policy/documents/store-documents.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Lanes } from '../lanes/lanes.ts'
import type { Access } from '../http/access.ts'
import { isLoopback } from '../http/connection.ts'
import type { Agent } from '../runtime.ts'
import { readAssets } from './assets.ts'
import { DeviceList, NotHere } from './components/device-list.tsx'
import type { Reader } from './components/frame.tsx'
import { GatePage } from './components/gate-page.tsx'
import { PairPage } from './components/pair-page.tsx'
import { SetupPage } from './components/setup-page.tsx'
import { StationPage } from './components/station-page.tsx'
import { clockTime } from './model/clock-time.ts'
import { gateLine, gateReady } from './model/gate-view.ts'
import { resultView } from './model/result-view.ts'
import type { PageDevice, PageStatus } from './model/wire.ts'
import { openReaders } from './readers.ts'
import { recentResults } from './recent.ts'

/**
 *   GET /station?device=  ·  /gate?device=  ──▶ server-rendered page ──▶ its program hears /v1/events and sends /v1/scan
 *
 * The screens at the station and at the gate. They work with the cloud away, as everything comes from this agent.
 */
export interface PagesAgent extends Pick<Agent, 'feed' | 'status' | 'config' | 'surroundings' | 'configFile'> {
  platform: Pick<Platform, 'clock' | 'random'>
  trust: { readonly policy: PolicyClaims | undefined }
  lanes: Pick<Lanes, 'operatorAt'>
}

/** What every page is made of. */
interface PageAt {
  status: PageStatus
  device: PageDevice
  reader: Reader
  nowMs: number
  script: { src: string; nonce: string }
}

const FOR_EVER = {
  'content-type': 'text/javascript; charset=utf-8',
  'cache-control': 'public, max-age=31536000, immutable',
}

/** Adds the pages and their files to the local app. `dataDir` is shown to browsers on the agent's machine. */
export function pageRoutes(
  app: Hono,
  agent: PagesAgent,
  { callerOf, renewCookie }: Pick<Access, 'callerOf' | 'renewCookie'>,
  dataDir = 'DIR',
): void {
  const assets = readAssets()
  const ours = new Set(agent.config.devices.map((device) => device.deviceId))
  const recent = recentResults({ feed: agent.feed, isOurs: (id) => ours.has(id), policy: () => agent.trust.policy })

  const { readerOf, show } = openReaders(agent)

  const programOf = (name: string) => `/assets/${assets.build}/browser/${name}.js`

  /** Instead of a page, for a browser that is not paired: what to do. */
  function showPairing(c: Context, reader: Reader, status: 200 | 401 = 401): Response | Promise<Response> {
    const command = `untag edge link --data ${isLoopback(c) ? quoted(dataDir) : 'DIR'}`
    if (status === 401) c.header('www-authenticate', 'Bearer')
    return show(
      c,
      (nonce) => <PairPage reader={reader} command={command} script={{ src: programOf('pair'), nonce }} />,
      status,
    )
  }

  /** Scanners and readers of other devices are no place to stand at. */
  const feeding = new Set(
    agent.config.devices.filter((device) => capabilitiesOf(device).feeds !== undefined).map(({ deviceId }) => deviceId),
  )
  const places = (status: PageStatus): PageDevice[] => status.devices.filter((device) => !feeding.has(device.deviceId))

  function page(path: string, render: (at: PageAt) => JSX.Element): void {
    app.get(path, (c) => {
      const reader = readerOf(c)
      if (!callerOf(c)) return showPairing(c, reader)
      renewCookie(c)
      const status: PageStatus = agent.status()
      const asked = c.req.query('device')
      const nowMs = agent.platform.clock.wall()
      const devices = places(status)
      const device = devices.find((d) => d.deviceId === asked)
      const missing = asked !== undefined
      if (!device)
        return show(c, () => <DeviceList reader={reader} devices={devices} missing={missing} />, missing ? 404 : 200)
      const src = programOf(path.slice(1))
      return show(c, (nonce) => render({ status, device, reader, nowMs, script: { src, nonce } }))
    })
  }

  app.get('/', (c) => c.redirect('/station'))

  // The one-time link: its code is in the fragment, which only the page's program reads.
  app.get('/pair', (c) => showPairing(c, readerOf(c), 200))

  page('/station', ({ device, reader, ...rest }) => {
    const { texts } = reader
    const [last] = recent.of(device.deviceId)
    const view = last && resultView(last.result, texts)
    const told = last && view ? `${texts.last(clockTime(last.atMs, texts.language))}: ${view.headline}` : ''
    const operator = agent.lanes.operatorAt(device.deviceId) ?? null
    return (
      <StationPage {...rest} device={device} reader={reader} operator={operator} view={{ kind: 'idle', last: told }} />
    )
  })

  page('/gate', ({ device, reader, ...rest }) => {
    const { texts } = reader
    const lines = recent.of(device.deviceId).flatMap((result) => gateLine(result, texts) ?? [])
    return <GatePage {...rest} device={device} reader={reader} view={gateReady(texts)} lines={lines} />
  })

  app.get('/setup', async (c) => {
    const reader = readerOf(c)
    if (!callerOf(c)) return showPairing(c, reader)
    if (!isLoopback(c)) return show(c, () => <NotHere reader={reader} />, 401)
    renewCookie(c)
    const { attached, notes } = (await agent.surroundings?.look()) ?? { attached: [], notes: [] }
    const src = programOf('setup')
    const { devices, ledgerDoubt } = agent.status()
    const warning = ledgerDoubt === null ? undefined : reader.texts.ledgerDoubts[ledgerDoubt]
    return show(c, (nonce) => (
      <SetupPage
        reader={reader}
        devices={devices}
        configFile={agent.configFile?.name}
        attached={attached}
        warning={warning}
        notes={notes}
        script={{ src, nonce }}
      />
    ))
  })

  app.get('/assets/:build/:folder/:file', (c) => {
    const { build, folder, file } = c.req.param()
    const text = build === assets.build ? assets.read(`${folder}/${file}`) : undefined
    // Not the agent's own 404: the page takes this as "you are of another build".
    return text === undefined ? c.body('', 404, { 'cache-control': 'no-store' }) : c.body(text, 200, FOR_EVER)
  })
}

/** A path as a shell takes it. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
