import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readAssets } from '../../../edge-agent/pages/pages.tsx'
import { GatePage } from '../../../edge-agent/pages/components/gate-page.tsx'
import { StationPage } from '../../../edge-agent/pages/components/station-page.tsx'
import { gateLost, gateReady, gateView } from '../../../edge-agent/pages/model/gate-view.ts'
import { resultView } from '../../../edge-agent/pages/model/result-view.ts'
import type { PageDevice, PageResult } from '../../../edge-agent/pages/model/wire.ts'
import { textsOf } from '../../../edge-agent/pages/texts/catalogue.ts'
import type { Texts } from '../../../edge-agent/pages/texts/texts.ts'
import { LANGUAGES, otherLanguage } from '../../../policy/page-language.ts'
import { DENY_REASONS, DEVICE_TYPES, OUTCOMES } from '../../../policy/vocabulary.ts'
import { AUTHORIZATION } from '../../support/credential.ts'
import { foreignTexts } from '../../support/page-texts.ts'
import { denied, GATE, getPage, granted, newStatus, pagesBench, servePages, STATION } from './pages-agent.ts'

const status = newStatus()
const device: PageDevice = {
  deviceId: STATION,
  driver: 'modbus',
  state: 'ready',
  detail: '',
  name: null,
  deviceType: 'pos_deactivator',
  feeds: null,
  findings: [],
}
const NOT_UNDERSTOOD = ['unknown_code', 'product_code', 'wrong_badge', 'locked', 'out_of_order'] as const

const RESULTS: PageResult[] = [
  ...DENY_REASONS.map((reason) => Object.assign(denied(reason), { item: 'E280' })),
  ...[...OUTCOMES, null].flatMap((outcome) =>
    [0, 1, 2].map((remaining) => granted({ outcome, remaining, itemCount: 3 })),
  ),
  ...NOT_UNDERSTOOD.map((why) => ({ kind: 'not_understood' as const, why })),
]

const readerOf = (texts: Texts) => ({
  texts,
  own: texts.language,
  other: { ...textsOf(otherLanguage(texts.language)), href: '?lang=x' },
})

function station(texts: Texts, result: PageResult, of: PageDevice = device): string {
  const view = resultView(result, texts)
  if (!view) throw new Error('this result has no view')
  return String(
    StationPage({
      localization: readerOf(texts),
      status,
      device: of,
      nowMs: 0,
      hasSounds: true,
      operator: 'Frau Petersen',
      view: { kind: 'result', result: view },
    }),
  )
}

describe.each(LANGUAGES)('rendered on the server in %s', (language) => {
  const texts = textsOf(language)
  const foreignIn = (html: string) => foreignTexts(html, texts, textsOf(otherLanguage(language)))

  it('the station shows the text of every result', () => {
    for (const result of RESULTS) {
      const html = station(texts, result)
      expect(html).toContain(`<html lang="${language}">`)
      expect(html).toContain('data-view="result"')
      expect(foreignIn(html)).toEqual([])
      if (result.kind === 'decision' && result.answer.reason)
        expect(html).toContain(texts.reasons[result.answer.reason].what)
    }
  })

  it('the station renders for every type of device, idle and busy', () => {
    for (const deviceType of [...DEVICE_TYPES, null, 'toString'])
      for (const view of [{ kind: 'idle', last: '' }, { kind: 'busy' }] as const) {
        const html = String(
          StationPage({
            localization: readerOf(texts),
            status,
            device: { ...device, deviceType },
            nowMs: 0,
            operator: null,
            hasSounds: true,
            view,
          }),
        )
        expect(html).toContain(`data-view="${view.kind}"`)
        expect(foreignIn(html)).toEqual([])
      }
  })

  it('the gate shows every result, ready and lost', () => {
    const results = RESULTS.flatMap((result) =>
      ['green', 'amber', 'siren', undefined].map((light) => ({ result, light })),
    )
    const event = { type: 'result', deviceId: GATE, atMs: 0 } as const
    const views = results.map(({ result, light }) =>
      gateView({ ...event, result, ...(light && { light: light as 'green' }) }, texts),
    )
    for (const view of [gateReady(texts), gateLost(texts), ...views]) {
      if (!view) throw new Error('this result has no view')
      const html = String(
        GatePage({
          localization: readerOf(texts),
          status,
          device,
          nowMs: 0,
          operator: null,
          hasSounds: true,
          view,
          lines: [],
          isCut: false,
          startedMs: Date.UTC(2026, 10, 20, 8, 5),
          stateOf: () => undefined,
        }),
      )
      // The list is in memory, so that it is empty after a restart although alarms may be open.
      expect(html).toMatch(
        texts.language === 'de' ? /Seit 20\. November.*Konsole/ : /Since November 20.* 09:05.*console/,
      )
      expect(html).toContain(`data-tone="${view.tone}"`)
      expect(foreignIn(html)).toEqual([])
    }
  })
})

describe('the pages of the agent', () => {
  const nonceIn = (policy: string | null) => /script-src 'nonce-([\w-]{22})'/.exec(policy ?? '')?.[1]

  it('run only one program, with a fresh nonce', async () => {
    const bench = pagesBench()
    const [first, second] = [
      await getPage(bench, `/station?device=${STATION}`),
      await getPage(bench, `/station?device=${STATION}`),
    ]
    const policy = first.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
    expect(nonceIn(policy)).toBeTruthy()
    expect(nonceIn(policy)).not.toBe(nonceIn(second.headers.get('content-security-policy')))
    const html = await first.text()
    expect(html.match(/<script/g)).toHaveLength(1)
    expect(html).toContain(`nonce="${nonceIn(policy)}"`)
    expect(html).not.toMatch(/\son\w+=|style="|https?:\/\//)
    expect(first.headers.get('cache-control')).toBe('no-store')
  })

  it('use the configured or the requested language', async () => {
    const bench = pagesBench()
    const page = async (query: string) => (await getPage(bench, `/station?device=${STATION}${query}`)).text()
    expect(await page('')).toContain('Beleg scannen')
    expect(await page('&lang=en')).toContain('Scan the receipt')
    expect(await page('&lang=fr')).toContain('Beleg scannen')
  })

  it('list the devices without scanners, and report an unknown device', async () => {
    const bench = pagesBench()
    const list = await getPage(bench, '/station')
    const html = await list.text()
    expect(list.status).toBe(200)
    expect(html).toContain(`/station?device=${STATION}"`)
    expect(html).toContain(`/gate?device=${GATE}`)
    expect(html).not.toContain('dev_scanner')
    const none = await getPage(bench, `/station?device=${encodeURIComponent('"><script>alert(1)</script>')}`)
    expect(none.status).toBe(404)
    expect(await none.text()).not.toContain('alert(1)')
    expect((await getPage(bench, '/')).headers.get('location')).toBe('/station')
  })

  it('escape markup in the names of devices and people', async () => {
    const bench = pagesBench()
    const evil = '<img src=x onerror=alert(1)>'
    const devices = bench.status.devices.map((d) => ({ ...d, state: 'degraded' as const, detail: evil, name: evil }))
    bench.status = { ...bench.status, devices, fault: evil, storeId: evil }
    bench.agent.lanes.operatorAt = () => evil
    for (const path of [`/station?device=${STATION}`, `/gate?device=${GATE}`, '/station']) {
      const html = await (await getPage(bench, path)).text()
      expect(html).toContain('&lt;img')
      expect(html).not.toContain(evil)
    }
  })

  it('show the last results of a device', async () => {
    const bench = pagesBench()
    const before = await getPage(bench, `/gate?device=${GATE}`)
    expect(await before.text()).toContain('Noch keine.')
    const served = await servePages(bench)
    for (let i = 0; i < 7; i++) bench.happens(GATE, denied('token_expired', { action: 'authorize_exit' }))
    bench.happens('dev_of_somebody_else', denied('token_expired'))
    const html = await (await fetch(`${served.url}/gate?device=${GATE}`, { headers: AUTHORIZATION })).text()
    expect(html.match(/<time>/g)).toHaveLength(5)
    await served.close()
  })

  it.each(['/station', `/station?device=${STATION}`, `/gate?device=${GATE}`, '/setup'])(
    'show a browser that is not paired how to pair it, instead of %s',
    async (path) => {
      const bench = pagesBench()
      ;(bench.agent.config as { requirePairing: boolean }).requirePairing = false
      for (const peer of ['127.0.0.1', '192.168.1.20']) {
        const page = await getPage(bench, path, peer, {})
        expect(page.status).toBe(401)
        const html = await page.text()
        expect(html).toContain('Dieser Browser ist noch nicht gekoppelt.')
        expect(html).toContain('untag edge link --data ')
        expect(html).not.toContain('modbus')
      }
    },
  )

  it('name the data folder only to browsers on the agent’s machine', async () => {
    const at = async (peer: string) => (await getPage(pagesBench(), '/pair?lang=en', peer, {})).text()
    expect(await at('127.0.0.1')).toContain('untag edge link --data &#39;/srv/my data&#39;')
    expect(await at('192.168.1.20')).toContain('untag edge link --data DIR')
    expect(await at('192.168.1.20')).not.toContain('/srv')
  })

  it('serve every module that their scripts import', () => {
    const { read } = readAssets()
    const missing: string[] = []
    const seen = new Set<string>()
    const follow = (file: string, by: string) => {
      if (seen.has(file)) return
      seen.add(file)
      const text = read(file)
      if (text === undefined) return void missing.push(`${by} imports ${file}`)
      for (const [, path = ''] of text.matchAll(/from '(\.[^']+)'/g))
        follow(posix.join(posix.dirname(file), path), file)
    }
    for (const script of ['station', 'gate', 'setup', 'pair']) follow(`browser/${script}.js`, 'a page')
    expect(missing).toEqual([])
  })

  it('serve only their programs, cacheable for ever under their build', async () => {
    const { build } = readAssets()
    const bench = pagesBench()
    const others = [
      '0000/browser/station.js',
      `${build}/browser/none.js`,
      `${build}/..%2f/pages.js`,
      `${build}/components/stage.js`,
    ]
    for (const path of others) expect((await getPage(bench, `/assets/${path}`)).status).toBe(404)
  })
})
