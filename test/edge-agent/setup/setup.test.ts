import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configFile } from '../../../host/config-file.ts'
import { realPlatform } from '../../../host/platform.ts'
import { deviceDiscovery } from '../../../host/device-discovery.ts'
import { result } from '../../../device-drivers/kit/device.ts'
import type { DeviceEntry } from '../../../device-drivers/registry.ts'
import { readConfig } from '../../../edge-agent/config.ts'
import { localApp } from '../../../edge-agent/http/local-app.ts'
import { textsOf } from '../../../edge-agent/pages/texts/catalogue.ts'
import type { DeviceDiscovery } from '../../../edge-agent/setup/device-discovery.ts'
import { Setup, type SetupParts } from '../../../edge-agent/setup/setup.ts'
import { llrpReader } from '../../../simulators/devices/llrp.ts'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { serveTcp, type TcpService } from '../../../simulators/devices/serve.ts'
import { violations } from '../../support/axe.ts'
import { ensureBuilt } from '../../support/built.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import type { Json } from '../../support/cloud.ts'
import { AUTHORIZATION, CREDENTIAL } from '../../support/credential.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import {
  getPage,
  pagesBench,
  pairBrowser,
  servePages,
  STATION,
  type PagesBench,
  type ServedPages,
} from '../pages/pages-agent.ts'
import { suiteWith } from '../../support/extended.ts'

const SERIAL = {
  deviceId: 'dev_…',
  driver: 'modbus',
  link: { serial: '/dev/serial/by-id/usb-FTDI', baudRate: 9600 },
  unit: 1,
  output: 0,
}

function setUpBench(
  findAttached: DeviceDiscovery['findAttached'],
  findAtAddress: DeviceDiscovery['findAtAddress'] = async () => ({ fault: 'no' }),
): PagesBench {
  const bench = pagesBench()
  const check = async (deviceId: string) =>
    deviceId === STATION
      ? { deviceId, driver: 'modbus', state: 'ready', since: 0, detail: 'Modbus TCP unit 1', findings: [] }
      : undefined
  Object.assign(bench.agent, {
    deviceDiscovery: { findAttached, findAtAddress },
    check,
    workingGateOf: () => undefined,
  })
  return bench
}
/** A real set-up. Its cloud knows one code, and its devices carry out every command. */
function setupOf(path: string | undefined, bench?: PagesBench): Setup {
  const platform = realPlatform()
  const entries: DeviceEntry[] = []
  return new Setup({
    platform,
    storeId: 'st_1',
    nowMs: platform.clock.wall,
    refused: () => undefined,
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    configFile: path === undefined ? undefined : configFile(path),
    ledger: { commits: { durably: async (work: () => unknown) => work() }, journal: { append: () => 1 } },
    link: {
      call: async (_operation: string, { code }: { code: string }) =>
        code.startsWith('GOOD')
          ? { kind: 'answered', body: { deviceId: `dev_${code}` } }
          : { kind: 'refused', status: 409, code: 'setup_code_expired', message: 'too old' },
      bind: async () => undefined,
      refreshDocuments: async () => undefined,
      isOnline: true,
    },
    devices: {
      supervisor: undefined,
      entries,
      execute: async () => result('confirmed', true, 'acknowledged'),
      change: async () => true,
      extend(devices: readonly DeviceEntry[]) {
        entries.push(...devices.slice(entries.length))
        const { deviceId = '', driver = '' } = devices.at(-1) ?? {}
        const state = {
          state: 'ready' as const,
          since: 0,
          detail: 'reader',
          name: 'Ausgang Nord',
          feeds: null,
          findings: [],
        }
        bench?.status.devices.push({ deviceId, driver, ...state, deviceType: 'exit_gate' })
        return true
      },
    },
  } as unknown as SetupParts)
}

const twoDevices: DeviceDiscovery['findAttached'] = async () => ({
  attached: [
    {
      kind: 'serial',
      name: 'FTDI <b>RS485</b>',
      at: '/dev/serial/by-id/usb-FTDI',
      fix: 'this user may not open it: sudo usermod -aG dialout $USER',
      entry: SERIAL,
    },
    {
      kind: 'nfc',
      name: 'ACS ACR1552',
      at: '/run/pcscd/pcscd.comm',
      entry: { deviceId: 'dev_…', driver: 'pcsc', link: { pcsc: 'ACS ACR1552' } },
    },
  ],
  notes: [],
})

describe('the set-up page', () => {
  it('lists configured and attached devices with suggested entries, in both languages, and escapes markup', async () => {
    const bench = setUpBench(twoDevices)
    const german = await (await getPage(bench, '/setup')).text()
    expect(german).toContain('An diesem Rechner angeschlossen')
    expect(german).toContain('dev_scanner')
    expect(german).not.toContain('<b>RS485')
    const english = await (await getPage(bench, '/setup?lang=en')).text()
    expect(english).toContain('Attached to this machine')
    expect(english).toContain('usermod -aG dialout')
    const empty = setUpBench(async () => ({ attached: [], notes: ['pcscd is not there'] }))
    expect(await (await getPage(empty, '/setup?lang=en')).text()).toMatch(
      /No serial port and no NFC reader[\s\S]*pcscd is not there/,
    )
  })

  it('names the next step after a device was added, and why it cannot save devices without a file', async () => {
    const bench = setUpBench(twoDevices)
    Object.assign(bench.agent, { setup: setupOf('edge.json') })
    const banner = async (added: string) =>
      /<div class="banner"[^]*?<\/div>/.exec(await (await getPage(bench, `/setup?lang=en&added=${added}`)).text())?.[0]
    expect(await banner(STATION)).toMatch(
      /data-tone="good"[^]*Next: test it below[^]*href="\/station\?device=dev_station"/,
    )
    const page = await (await getPage(bench, `/setup?lang=en&added=${STATION}`)).text()
    expect(page.indexOf('data-added')).toBeGreaterThan(page.indexOf(`class="ids">${STATION}`))
    const scanner = await banner('dev_scanner')
    expect(scanner).toMatch(/data-tone="good"[^]*Next: scan or read something/)
    expect(scanner).not.toContain('href')
    // The agent has saved the device, and does not use it yet.
    const waiting = await banner('dev_new')
    expect(waiting).toMatch(/edge\.json has other changes too[^]*sudo systemctl restart untag-edge/)
    expect(waiting).not.toContain('data-tone')
    Object.assign(bench.agent, { setup: setupOf(undefined) })
    const html = await (await getPage(bench, '/setup?lang=en')).text()
    expect(html).toMatch(/class="notice">This page cannot save devices[^]*Start it again with --config FILE/)
    expect(html).not.toContain('<form data-write')
  })

  it('works only on the machine of the agent, even for paired programs elsewhere', async () => {
    const bench = setUpBench(twoDevices)
    expect((await getPage(bench, '/setup', '192.168.1.20')).status).toBe(401)
    const app = localApp(bench.agent, {
      hosts: () => ['kasse'],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      credential: () => CREDENTIAL,
    })
    const post = (peer: string, path: string, body: Json) => {
      const text = JSON.stringify(body)
      const headers = {
        host: 'kasse',
        ...AUTHORIZATION,
        'content-type': 'application/json',
        'content-length': String(text.length),
      }
      return app.request(
        path,
        { method: 'POST', headers, body: text },
        { incoming: { socket: { remoteAddress: peer } } },
      )
    }
    expect((await post('192.168.1.20', '/v1/setup/check', { deviceId: STATION })).status).toBe(401)
    expect(await (await post('127.0.0.1', '/v1/setup/check', { deviceId: STATION })).json()).toMatchObject({
      state: 'ready',
    })
    expect((await post('127.0.0.1', '/v1/setup/check', { deviceId: 'dev_x' })).status).toBe(404)
    for (const address of ['', 'http://10.0.0.7', '10.0.0.7:99999', 'a b'])
      expect((await post('127.0.0.1', '/v1/setup/search', { address })).status).toBe(400)
  })
})

describe('adding devices to the configuration', () => {
  let folder: string
  beforeAll(() => void (folder = temporaryFolder('setup')))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const post = (bench: PagesBench, body: Json) => {
    const app = localApp(bench.agent, {
      hosts: () => ['kasse'],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      credential: () => CREDENTIAL,
    })
    const text = JSON.stringify(body)
    const headers = {
      host: 'kasse',
      ...AUTHORIZATION,
      'content-type': 'application/json',
      'content-length': String(text.length),
    }
    return app.request(
      '/v1/setup/devices',
      { method: 'POST', headers, body: text },
      { incoming: { socket: { remoteAddress: '127.0.0.1' } } },
    )
  }

  it('adds a valid entry to the file, preserves the others, and rejects an invalid one without a change', async () => {
    const path = join(folder, 'edge.json')
    const bench = setUpBench(twoDevices)
    Object.assign(bench.agent, { setup: setupOf(undefined) })
    expect((await post(bench, { entry: SERIAL })).status).toBe(404)
    Object.assign(bench.agent, { setup: setupOf(path) })
    const addEntry = async (entry: Json) => {
      const answer = await post(bench, { entry })
      return [answer.status, ((await answer.json()) as Json).error]
    }
    const faultsOf = async (entry: Json) => ((await (await post(bench, { entry })).json()) as Json).details
    expect(await addEntry(SERIAL)).toEqual([400, expect.stringContaining('deviceId')])
    const byHand = { ...SERIAL, deviceId: 'dev_1' }
    expect(await addEntry(byHand)).toEqual([403, expect.stringContaining('output: needs a manager’s set-up code')])
    writeFileSync(path, JSON.stringify({ devices: [byHand], language: 'en', hosts: ['kasse1.local:8090'] }))
    const before = readFileSync(path, 'utf8')
    for (const [entry, fault] of [
      [{ ...SERIAL, deviceId: 'dev_1' }, 'dev_1'],
      [{ ...SERIAL, deviceId: 'dev_2', output: -1 }, 'output'],
      [{ ...SERIAL, deviceId: 'dev_2', driver: 'x' }, 'driver'],
    ] as const) {
      expect(await addEntry(entry)).toEqual([400, expect.stringContaining(fault)])
    }
    // Each fault of the entry has the path of its setting, which the page marks.
    const faulty = { ...SERIAL, deviceId: 'dev_2', output: -1, siren: { output: 'x' }, link: { tcp: 'nowhere' } }
    expect(await faultsOf(faulty)).toEqual(
      ['link.tcp', 'output', 'siren.output'].map((setting) => ({
        path: `entry.${setting}`,
        code: 'invalid',
        message: expect.stringMatching(/^give /),
      })),
    )
    expect(await faultsOf({ ...SERIAL, deviceId: 'dev_1', output: 3 })).toMatchObject([{ path: 'entry.deviceId' }])
    expect(await faultsOf(SERIAL)).toMatchObject([{ path: 'entry.deviceId' }])
    expect(readFileSync(path, 'utf8')).toBe(before)
    expect(await addEntry({ deviceId: 'dev_2', driver: 'pcsc', link: { pcsc: 'ACS ACR1552' } })).toEqual([
      200,
      undefined,
    ])
    expect(readConfig(readFileSync(path, 'utf8'))).toMatchObject({
      ok: true,
      config: { language: 'en', hosts: ['kasse1.local:8090'], devices: [{ deviceId: 'dev_1' }, { deviceId: 'dev_2' }] },
    })
    writeFileSync(path, '{')
    expect(await addEntry({ ...SERIAL, deviceId: 'dev_3' })).toEqual([400, expect.stringContaining('JSON')])
    expect(readFileSync(path, 'utf8')).toBe('{')
  })
})

describe('a check of a configured device', () => {
  let store: TestStore
  afterAll(() => store.stop())

  it('reconnects the device and reports its identity or its fault', async () => {
    store = await openStore()
    const check = (deviceId: string) => store.local('/v1/setup/check', { method: 'POST', body: { deviceId } })
    const station = store.shop.devices.pos_deactivator
    expect((await check(station)).body).toMatchObject({
      deviceId: station,
      state: 'ready',
      identity: { description: 'Modbus TCP unit 1 at tcp:10.0.0.0:502' },
    })
    expect((await check('dev_x')).status).toBe(404)
    store.boards.station.faults.on({ kind: 'dead' })
    const { body } = await check(station)
    expect(['absent', 'degraded']).toContain(body.state)
    store.boards.station.faults.heal()
    expect((await check(station)).body).toMatchObject({ state: 'ready' })
  })

  it('disturbs a gate that works only for an operator', async () => {
    const gate = store.shop.devices.exit_gate
    await store.until('the gate to work', () => store.agent.workingGateOf(gate) === gate)
    const check = (headers = {}) =>
      store.local('/v1/setup/check', { method: 'POST', body: { deviceId: gate }, headers })
    expect(await check()).toMatchObject({ status: 403, body: { code: 'operator_required' } })
    const { operatorId } = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Wachmann', pin: '482913' }),
    )
    await store.until('the operator', () => store.agent.trust.policy?.operators.length === 1)
    const signedIn = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: '482913' } })
    expect(await check({ 'x-untag-operator': signedIn.body.session })).toMatchObject({ status: 200 })
  })
})

describe('a relay board at an address', () => {
  it('is found by a read that moves nothing, and its suggested entry is valid', async () => {
    const platform = realPlatform()
    const board = new RelayBoard({ platform, locks: [] })
    const service = await serveTcp({ port: 0, serve: (link) => board.serve(link) })
    const { findAtAddress } = deviceDiscovery('/nonexistent/pcscd.comm', platform)
    const at = `127.0.0.1:${service.port}`
    const found = await findAtAddress(at)
    expect(found).toMatchObject({ found: { kind: 'board', at, entry: { driver: 'modbus', link: { tcp: at } } } })
    expect(readConfig(JSON.stringify({ devices: 'found' in found ? [found.found.entry] : [] }))).toMatchObject({
      ok: true,
    })
    expect(board.log).toEqual([])
    await service.close()
    expect(await findAtAddress(at)).toEqual({
      fault: expect.stringContaining('nothing listens there'),
      cause: 'refused',
    })
  })
})

describe('a search at an address that finds nothing', () => {
  it('says whether the name is unknown, or another kind of device answers', async () => {
    const platform = realPlatform()
    const { findAtAddress } = deviceDiscovery('/nonexistent/pcscd.comm', platform)
    // It answers each connection with bytes of another protocol, and closes it.
    const service = await serveTcp({
      port: 0,
      async serve(link) {
        await link.write(new TextEncoder().encode('SSH-2.0-OpenSSH_9.2\r\n'), new AbortController().signal)
        await link.close()
      },
    })
    expect(await findAtAddress(`127.0.0.1:${service.port}`)).toMatchObject({ cause: 'other_device' })
    await service.close()
    expect(await findAtAddress('no-such-host.invalid')).toMatchObject({ cause: 'unknown_name' })
  })
})

describe('a UHF reader at an address', () => {
  // Only Linux has every address of 127.0.0.0/8.
  it.runIf(process.platform === 'linux')(
    'is found without a port, although nothing listens at the port of a board',
    async () => {
      const platform = realPlatform()
      const reader = llrpReader({ platform })
      const service = await serveTcp({ host: '127.84.1.1', port: 5_084, serve: (link) => reader.serve(link) })
      const { findAtAddress } = deviceDiscovery('/nonexistent/pcscd.comm', platform)
      expect(await findAtAddress('127.84.1.1')).toMatchObject({ found: { kind: 'llrp', at: '127.84.1.1:5084' } })
      await service.close()
      expect(await findAtAddress('127.84.1.1')).toEqual({
        fault: expect.stringMatching(/5084: nothing listens.*502: nothing/),
        cause: 'refused',
      })
    },
  )

  it('is found by its LLRP greeting, also while another program uses it, and its suggested entry is valid', async () => {
    const platform = realPlatform()
    const reader = llrpReader({ platform })
    const service = await serveTcp({ port: 0, serve: (link) => reader.serve(link) })
    const { findAtAddress } = deviceDiscovery('/nonexistent/pcscd.comm', platform)
    const found = await findAtAddress(`127.0.0.1:${service.port}`)
    expect(found).toMatchObject({
      found: {
        kind: 'llrp',
        at: `127.0.0.1:${service.port}`,
        entry: { driver: 'llrp', link: { tcp: `127.0.0.1:${service.port}` } },
      },
    })
    expect(readConfig(JSON.stringify({ devices: 'found' in found ? [found.found.entry] : [] }))).toMatchObject({
      ok: true,
    })
    // The search sent nothing to the reader.
    expect(reader.received).toEqual([])
    reader.occupy(true)
    expect(await findAtAddress(`127.0.0.1:${service.port}`)).toMatchObject({
      found: { fix: expect.stringContaining('another program') },
    })
    await service.close()
    expect(await findAtAddress(`127.0.0.1:${service.port}`)).toEqual({
      fault: expect.stringContaining('nothing listens there'),
      cause: 'refused',
    })
  })
})

suiteWith(NO_CHROMIUM, 'the set-up page in Chromium', () => {
  let chromium: TestBrowser
  let served: ServedPages
  let service: TcpService
  let folder: string
  beforeAll(async () => {
    ensureBuilt()
    const platform = realPlatform()
    const reader = llrpReader({ platform })
    service = await serveTcp({ port: 0, serve: (link) => reader.serve(link) })
    chromium = await startChromium()
    const bench = setUpBench(twoDevices, deviceDiscovery('/nonexistent', platform).findAtAddress)
    folder = temporaryFolder('setup')
    Object.assign(bench.agent, { setup: setupOf(join(folder, 'edge.json'), bench) })
    served = await servePages(bench)
  })
  afterAll(async () => {
    await chromium?.close()
    await served?.close()
    await service?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it.each([
    ['de', 'dark', 1920],
    ['en', 'light', 390],
  ] as const)(
    'checks a device, finds a reader, registers and tests it by keyboard, and meets all axe rules, in %s',
    async (lang, colorScheme, width) => {
      const { setup } = textsOf(lang)
      const page = await chromium.browser.newPage({ colorScheme, viewport: { width, height: 900 } })

      const isClean = async () => {
        expect(await violations(page)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      }
      await pairBrowser(page, served)
      await page.goto(`${served.url}/setup?lang=${lang}`)
      await page.locator(`[data-check="${STATION}"]`).click()
      await page.locator(`[data-detail="${STATION}"]`).filter({ hasText: 'Modbus TCP unit 1' }).waitFor()
      const searched = (text: string) => page.locator('[data-slot="search-status"]').filter({ hasText: text }).waitFor()
      for (const [address, text] of [
        ['10.0.0.7:99999', setup.noAddress],
        ['127.0.0.1:1', setup.searchCauses.refused],
      ] as const) {
        await page.fill('#address', address)
        await page.keyboard.press('Enter')
        await searched(text)
      }
      await page.fill('#address', `127.0.0.1:${service.port}`)
      await page.keyboard.press('Enter')
      const found = page.locator('[data-slot="search-entry"]')
      await found.locator('[data-type]').waitFor()
      const entry = async () => JSON.parse(await found.locator('textarea').inputValue()) as Json
      expect([(await entry())['driver'], await found.locator('[data-type]').inputValue()]).toEqual([
        'llrp',
        'exit_gate',
      ])
      // The form changes the entry, and the entry the form.
      const field = (path: string) => found.locator(`[data-path="${path}"] :is(input, select)`)
      await field('link.tcp').fill(`10.0.0.7:${width}`)
      await field('antennas.outside').fill('2, 3')
      await field('siren.seconds').fill('')
      await found.getByText(setup.moreSettings, { exact: true }).click()
      await field('green.gpo').fill('x')
      expect(await entry()).toMatchObject({
        link: { tcp: `10.0.0.7:${width}` },
        antennas: { inside: [1], outside: [2, 3] },
        siren: { gpo: 1 },
        green: { gpo: 'x' },
      })
      // Without code and deviceId, the page asks for the code.
      await found.locator('button').click()
      await found
        .locator('[data-code-field] .field-fault')
        .getByText(setup.problems['code_missing'] ?? '-')
        .waitFor()
      expect(await page.evaluate('document.activeElement.matches("[data-code]")')).toBe(true)
      await found.getByLabel(setup.code).fill('OLD')
      await page.keyboard.press('Enter')
      // The fault of a setting is at its field, which has the focus. The code is not used up.
      await found.locator('[data-path="green.gpo"] .field-fault').waitFor()
      await found
        .locator('[data-status]')
        .filter({ hasText: setup.correct('').split(':')[0] ?? '-' })
        .waitFor()
      expect(await page.evaluate('document.activeElement.closest("[data-path]").dataset.path')).toBe('green.gpo')
      expect(await found.locator('[aria-invalid]').count()).toBe(1)
      await isClean()
      await found.getByText(setup.details, { exact: true }).click()
      await found.locator('textarea').fill(JSON.stringify({ ...(await entry()), green: { gpo: 3 } }))
      expect(await field('green.gpo').inputValue()).toBe('3')
      // A siren needs a code, and the page says what to do without one.
      const marked = found.locator('[aria-invalid]')
      const ofCode = found.locator('[data-code-field] [aria-invalid]')
      await found.getByLabel(setup.code).fill('')
      await found.getByLabel(setup.deviceId, { exact: true }).fill('dev_gate')
      await page.keyboard.press('Enter')
      const status = (problem: string) =>
        found
          .locator('[data-status]')
          .filter({ hasText: setup.problems[problem] ?? '-' })
          .waitFor()
      await status('setup_code_needed')
      expect([await marked.count(), await ofCode.count()]).toEqual([1, 1])
      await isClean()
      await found.getByLabel(setup.deviceId, { exact: true }).fill('')
      await found.getByLabel(setup.code).fill('OLD')
      await page.keyboard.press('Enter')
      await status('setup_code_expired')
      expect([await marked.count(), await ofCode.count()]).toEqual([1, 1])
      await isClean()
      await found.getByLabel(setup.code).fill(`GOOD-${lang}`)
      await found.getByLabel(setup.name).fill('Ausgang Nord')
      await page.keyboard.press('Enter')
      await page.locator('[data-added][data-tone=good]').filter({ hasText: 'Ausgang Nord' }).waitFor()
      await page.locator('[data-added]').getByText(setup.next.test).waitFor()
      expect(await page.evaluate('document.activeElement.hasAttribute("data-added")')).toBe(true)
      expect(readFileSync(join(folder, 'edge.json'), 'utf8')).toContain(`"dev_GOOD-${lang}"`)
      const tests = page.locator(`[data-tests="dev_GOOD-${lang}"]`)
      await tests.getByRole('button', { name: setup.outputs.siren, exact: true }).focus()
      await page.keyboard.press('Enter')
      await tests.locator('[data-status]').filter({ hasText: setup.tested.confirmed }).waitFor()
      await tests.getByRole('button', { name: setup.walk, exact: true }).waitFor()
      await isClean()
      const screenshots = process.env['UNTAG_SCREENSHOTS']
      if (screenshots) await page.screenshot({ path: `${screenshots}/setup-${lang}.png`, fullPage: true })
      await page.close()
    },
  )

  // Once a device was removed, the agent must be restarted before it uses another new one, so this comes last.
  it('changes and removes the device that it added', async () => {
    const { setup } = textsOf('de')
    const page = await chromium.browser.newPage({ locale: 'de-DE', viewport: { width: 390, height: 900 } })
    await pairBrowser(page, served)
    await page.goto(`${served.url}/setup`)
    const inFile = () => readFileSync(join(folder, 'edge.json'), 'utf8')
    const change = page.locator(`[data-change="dev_GOOD-en"]`)
    await page.locator('details', { has: change }).locator('summary').first().click()
    await change.locator('[data-path="siren.gpo"] input').fill('4')
    expect(await change.getByLabel(setup.name, { exact: true }).inputValue()).toBe('Ausgang Nord')
    await change.getByLabel(setup.name, { exact: true }).fill('Ausgang Süd')
    expect(await violations(page)).toEqual([])
    await change.getByRole('button', { name: setup.saveChange }).click()
    const saved = page.getByText(setup.changedInUse(join(folder, 'edge.json')))
    await saved.waitFor()
    // The message stands beside the form, and is in view.
    expect(
      await page
        .locator('li', { has: change })
        .getByText(setup.changedInUse(join(folder, 'edge.json')))
        .count(),
    ).toBe(1)
    const { y, height } = (await saved.boundingBox())!
    expect([y >= 0, y + height <= 900]).toEqual([true, true])
    expect(inFile()).toContain('"gpo": 4')
    const screenshots = process.env['UNTAG_SCREENSHOTS']
    if (screenshots) await page.screenshot({ path: `${screenshots}/setup-changed.png` })
    await page.locator('details', { has: change }).locator('summary').first().click()
    expect(await change.getByLabel(setup.name, { exact: true }).inputValue()).toBe('Ausgang Süd')
    page.once('dialog', (dialog) => void dialog.accept())
    await change.getByRole('button', { name: setup.remove }).click()
    await change.waitFor({ state: 'detached' })
    const card = page.locator('li', { has: page.locator('p.ids', { hasText: 'dev_GOOD-en' }) })
    await card.getByText(setup.removed).waitFor()
    expect(await card.getByRole('button').count()).toBe(0)
    expect(inFile()).not.toContain(`"dev_GOOD-en"`)
    await page.close()
  })
})
