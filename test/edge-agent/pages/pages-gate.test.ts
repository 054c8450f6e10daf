// @module-tag extended
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { violations } from '../../support/axe.ts'
import { ensureBuilt } from '../../support/built.ts'
import { NO_WHOLE_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import {
  denied,
  GATE,
  OPERATOR,
  pagesBench,
  pairBrowser,
  servePages,
  type PagesBench,
  type ServedPages,
} from './pages-agent.ts'

describe.skipIf(NO_WHOLE_CHROMIUM)(`alarms on the page of the gate (${NO_WHOLE_CHROMIUM ?? 'in Chromium'})`, () => {
  let bench: PagesBench
  let served: ServedPages
  let chromium: TestBrowser
  let context: BrowserContext
  let page: Page
  let alarms = 0
  beforeAll(async () => {
    await ensureBuilt()
    bench = pagesBench()
    served = await servePages(bench)
    chromium = await startChromium('whole')
    context = await chromium.browser.newContext({ locale: 'de-DE', viewport: { width: 390, height: 844 } })
    page = await context.newPage()

    await pairBrowser(page, served)
    await open(page)
  })
  afterAll(async () => {
    await chromium?.close()
    await served?.close()
  })

  async function open(at: Page): Promise<void> {
    const live = at.waitForResponse((response) => response.url().endsWith('/v1/events'))
    await at.goto(`${served.url}/gate?device=${GATE}`)
    await live
  }
  /** Raises an alarm at the gate, as the agent does. */
  async function alarm(): Promise<string> {
    const alarmId = `evt_${++alarms}`
    bench.agent.gates.alarms.raised(GATE, alarmId)
    bench.happens(GATE, { ...denied('item_not_paid'), item: `3034257BF7194E400000${alarms}`, alarmId } as never)
    await page.locator(`[data-alarm="${alarmId}"]`).waitFor()
    return alarmId
  }
  const line = (alarmId: string, at = page) => at.locator(`[data-alarm="${alarmId}"]`)
  const handle = (alarmId: string, at = page, name = 'Bearbeiten') =>
    line(alarmId, at).getByRole('button', { name }).click()

  it('are disposed of by an operator, in two clicks after the sign-in', async () => {
    const first = await alarm()
    expect(await violations(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
    await handle(first)
    await page.getByRole('button', { name: OPERATOR.name }).click()
    await page.keyboard.type(OPERATOR.pin)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: /^Alarm um .*: Was war es\?$/ }).waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByRole('button', { name: 'Ich kümmere mich' }).click()
    await line(first).getByText('Frau Petersen kümmert sich').waitFor()
    await handle(first)
    const value = page.getByLabel('Wert der sichergestellten Ware (EUR), freiwillig')
    await value.fill('viel')
    await page.getByRole('button', { name: 'Diebstahl' }).click()
    await page.getByText('Das ist kein Betrag.').waitFor()
    await value.fill('49,9')
    await page.getByRole('button', { name: 'Diebstahl' }).click()
    await line(first).getByText('Diebstahl · Frau Petersen').waitFor()
    expect(bench.rows.map(({ evidence }) => evidence)).toEqual(
      [{ step: 'acknowledged' }, { step: 'real', recoveredCent: 4_990 }].map((handled) => ({
        kind: 'alarm_handled',
        eventId: first,
        operatorId: OPERATOR.operatorId,
        ...handled,
      })),
    )
  })

  it('show on every page of the gate what was done, also after a reload', async () => {
    const second = await alarm()
    const other = await context.newPage()
    await open(other)
    await handle(second, other)
    await other.getByRole('button', { name: 'Fehlalarm, keine Ware' }).click()
    await line(second).getByText('Fehlalarm, keine Ware · Frau Petersen').waitFor()
    await open(page)
    await line(second).getByText('Fehlalarm, keine Ware · Frau Petersen').waitFor()
    await other.close()
  })

  it('stay on the display over a reload and the link of the language', async () => {
    await alarm()
    const stage = page.locator(`.stage[data-tone='alarm']`)
    await stage.waitFor()
    await page.reload()
    await stage.waitFor()
    await page.getByRole('link', { name: 'English' }).click()
    await stage.getByText('We have no payment').waitFor()
    await open(page)
  })

  it('say since when the list is old, and after a lost connection whether the cause was stored', async () => {
    const alarmId = await alarm()
    await handle(alarmId)
    await context.setOffline(true)
    await page.getByRole('button', { name: 'Bezahlen vergessen' }).click()
    await page.getByText('Der Agent antwortet nicht.').waitFor()
    await expect.poll(() => page.locator('#last').innerText()).toMatch(/Stand \d\d:\d\d Uhr$/)
    await context.setOffline(false)
    await page.getByText('Die Ursache ist nicht gespeichert').waitFor()
    expect(await page.locator('#last').innerText()).not.toContain('Stand')
    await page.getByRole('button', { name: 'Bezahlen vergessen' }).click()
    await line(alarmId).getByText('Bezahlen vergessen').waitFor()
  })

  it('show a cause that was recorded in the console, before an operator may replace it', async () => {
    const { alarms } = bench.agent.gates
    const record = (eventId: string, step: string) =>
      alarms.receive(alarms.request(), [{ eventId, step, by: 'Gustav Holm' }])
    const fourth = await alarm()
    await handle(fourth)
    const value = page.getByLabel('Wert der sichergestellten Ware (EUR), freiwillig')
    await value.fill('12')
    record(fourth, 'real')
    await line(fourth).getByText('Diebstahl · Gustav Holm').waitFor()
    // The open dialog says so at once, and keeps what was typed.
    await page.locator('dialog[open]').getByText('Erfasst: Diebstahl · Gustav Holm.').waitFor()
    expect(await value.inputValue()).toBe('12')
    const rows = bench.rows.length
    await page.getByRole('button', { name: 'Fehlalarm, keine Ware' }).click()
    const known = page.getByText('Erfasst: Diebstahl · Gustav Holm. Nur ändern, wenn das falsch ist.')
    await known.waitFor()
    expect(bench.rows).toHaveLength(rows)
    expect(await violations(page)).toEqual([])
    await page.getByRole('button', { name: 'Fehlalarm, keine Ware' }).click()
    await line(fourth).getByText('Fehlalarm, keine Ware · Frau Petersen').waitFor()
    // After a reload the page knows it, too.
    record(fourth, 'staff_error')
    await open(page)
    await handle(fourth, page, 'Ändern')
    await page.getByText('Erfasst: Personal trug die Ware · Gustav Holm.').waitFor()
    expect(await page.getByRole('button', { name: 'Ich kümmere mich' }).isVisible()).toBe(false)
    await page.keyboard.press('Escape')
  })

  it('show the goods and their number, and sound once the page was touched, unless a person mutes the page', async () => {
    const fresh = await context.newPage()
    await open(fresh)
    const unpaid = { ...denied('item_not_paid'), item: '3034257BF7194E4000001A85', product: 'Regenjacke' }
    // The alarms of the tests before must leave the display.
    await fresh.locator(`.stage[data-tone='ready']`).waitFor()
    const sound = () => fresh.evaluate<unknown>(`document.body.dataset.sound`)
    await fresh.keyboard.press('Tab')
    for (let n = 0; n < 2; n++) bench.happens(GATE, unpaid as never)
    await fresh.locator('.stage').getByText('2 × Regenjacke').waitFor()
    await expect.poll(sound).toBe('alarm')
    const mute = fresh.getByRole('button', { name: 'Ton: an' })
    await mute.click()
    await fresh.getByRole('button', { name: 'Ton: aus', pressed: true }).waitFor()
    await open(fresh)
    await fresh.getByRole('button', { name: 'Ton: aus', pressed: true }).waitFor()
    await fresh.keyboard.press('Tab')
    bench.happens(GATE, unpaid as never)
    await fresh.locator('.stage').getByText('Regenjacke').waitFor()
    expect(await sound()).toBeUndefined()
    await fresh.close()
  })

  it('can be installed: the manifest and its icon load under the policy of the page', async () => {
    const session = await context.newCDPSession(page)
    const { errors, data = '' } = (await session.send('Page.getAppManifest')) as { errors: unknown[]; data?: string }
    expect(errors).toEqual([])
    expect(JSON.parse(data)).toMatchObject({ start_url: `/gate?device=${GATE}`, display: 'fullscreen', lang: 'de' })
    const { installabilityErrors } = await session.send('Page.getInstallabilityErrors')
    // Browsers of tests keep nothing, as private windows do. Nothing else prevents the installation.
    expect(installabilityErrors.map(({ errorId }) => errorId)).toEqual(['in-incognito'])
    expect((await page.request.get(`${served.url}/manifest.webmanifest?page=setup&device=x`)).status()).toBe(404)
    expect((await page.request.get(`${served.url}/favicon.ico`)).headers()['content-type']).toBe('image/svg+xml')
  })

  it('are counted as at least so many once the list is cut, also after a reload', async () => {
    for (let n = 0; n < 300; n++) {
      const alarmId = `evt_${++alarms}`
      bench.agent.gates.alarms.raised(GATE, alarmId, `tag ${alarmId}`)
      bench.happens(GATE, { ...denied('item_not_paid'), item: `tag ${alarmId}`, alarmId } as never)
    }
    const cut = async () => {
      await page.getByRole('button', { name: /^Mindestens 9\d weitere offene Alarme$/ }).waitFor()
      await page.getByText('Nur die neuesten offenen Alarme. Alle: Konsole, Alarme.').waitFor()
      expect(await page.getByText('Seit ').count()).toBe(0)
    }
    await cut()
    await open(page)
    await cut()
    const newest = `evt_${alarms}`
    bench.agent.gates.alarms.receive(bench.agent.gates.alarms.request(), [
      { eventId: newest, step: 'phantom', by: 'Gustav Holm' },
    ])
    await line(newest).waitFor({ state: 'hidden' })
    const { alarms: known } = bench.agent.gates
    const awaited = known.request()
    known.receive(
      awaited,
      [...awaited.keys()].map((eventId) => ({ eventId, step: 'phantom', by: 'Gustav Holm' })),
    )
    await page.getByText('weitere offene Alarme').waitFor({ state: 'hidden' })
    expect(await page.locator('[data-slot="lines"] button', { hasText: 'Bearbeiten' }).count()).toBe(0)
  })

  it('need a new sign-in if the session has ended', async () => {
    const third = await alarm()
    bench.agent.lanes.signOut(GATE)
    await page.getByRole('button', { name: 'Anmelden' }).waitFor()
    await handle(third)
    await page.getByRole('heading', { name: 'Wer sind Sie?' }).waitFor()
    await page.keyboard.press('Escape')
  })

  it('are in the list, too, if they came between the page and its stream of events', async () => {
    const fresh = await context.newPage()
    let release: () => void = () => undefined
    const raised = new Promise<void>((resolve) => (release = resolve))
    await fresh.route('**/v1/events', async (route) => {
      await raised
      await route.continue()
    })
    await fresh.goto(`${served.url}/gate?device=${GATE}`)
    const alarmId = await alarm()
    expect(await line(alarmId, fresh).count()).toBe(0)
    release()
    await line(alarmId, fresh).waitFor()
    await fresh.close()
  })

  it('lead to the names of operators by themselves once the agent answers again', async () => {
    const alarmId = await alarm()
    const names = page.locator('[data-slot="names"] button')
    await page.evaluate(`document.querySelector('[data-slot="names"]').replaceChildren()`)
    await page.route('**/v1/operators', (route) => route.fulfill({ status: 502, body: 'Bad gateway' }))
    await handle(alarmId)
    const fault = page.locator('[data-slot="sign-in-error"]').getByText('Der Agent antwortet nicht.')
    await fault.waitFor()
    expect(await names.count()).toBe(0)
    await page.unroute('**/v1/operators')
    await page.getByRole('button', { name: OPERATOR.name }).waitFor()
    expect(await fault.count()).toBe(0)
    await page.keyboard.press('Escape')
  })
})
