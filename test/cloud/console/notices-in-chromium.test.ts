// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { startTestCloud, type Json, type TestCloud } from '../../support/cloud.ts'
import { NO_WHOLE_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { newBrowser } from '../../support/push-service.ts'

const PASSWORD = 'vier Wörter, die niemand rät'
const EMAIL = 'jana@shop.example'

describe.skipIf(NO_WHOLE_CHROMIUM)('notices about alarms in Chromium', () => {
  let cloud: TestCloud
  let browser: TestBrowser
  let server: Awaited<ReturnType<typeof listen>>
  let base: string
  beforeAll(async () => {
    cloud = await startTestCloud('sqlite', { config: { baseUrl: 'http://localhost/api/v1' } })
    server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
    server.serve(cloud.cloud.app)
    base = `http://localhost:${server.port}`
    browser = await startChromium('whole')
    const owner = await cloud.user('owner')
    const { url } = await cloud.ok(owner, 'inviteUser', { email: EMAIL, role: 'associate' })
    const token = new URL(url).pathname.split('/').pop()
    await cloud.ok(null as never, 'acceptInvitation', { token, name: 'Jana', password: PASSWORD })
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
    await cloud?.stop()
  })

  it('are switched on by one press, and shown by the service worker', async () => {
    const { endpoint, keys } = newBrowser('https://push.example/w/1')
    const context = await browser.browser.newContext({ locale: 'de', viewport: { width: 390, height: 844 } })
    await context.grantPermissions(['notifications'], { origin: base })
    const page = await context.newPage()

    const problems: unknown[] = []
    page.on('pageerror', (error) => problems.push(error))
    // No push service is reachable in a test. The rest of the way is the browser's own.
    await page.addInitScript(
      `PushManager.prototype.subscribe = async () => ({ toJSON: () => (${JSON.stringify({ endpoint, keys })}) })`,
    )
    await page.goto(`${base}/console/alarms`)
    await page.getByLabel('E-Mail-Adresse').fill(EMAIL)
    await page.getByLabel('Passwort').fill(PASSWORD)
    await page.getByRole('button', { name: 'Anmelden' }).click()
    await page.getByRole('button', { name: 'Mitteilungen: aus' }).click()
    await page.getByRole('button', { name: 'Mitteilungen: an' }).waitFor()
    expect(await cloud.db.database.reads.selectFrom('push_subscription').selectAll().execute()).toHaveLength(1)

    const devtools = await page.context().newCDPSession(page)
    const registered = new Promise<string>((resolve) =>
      devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }: Json) => {
        if (registrations[0]) resolve(registrations[0].registrationId)
      }),
    )
    await devtools.send('ServiceWorker.enable')
    // A message before the worker is active is lost.
    await page.evaluate(`navigator.serviceWorker.ready.then(({ active }) =>
      active.state === 'activated' || new Promise((resolve) => active.addEventListener('statechange', resolve)))`)
    const notice = { id: 'a', reason: 'gate_alarm', storeName: 'Hamburg', path: '/console/alarms', tag: 't' }
    const registrationId = await registered
    // A busy browser may drop a message. Its tag replaces the notice before.
    const shown = async () => {
      await devtools.send('ServiceWorker.deliverPushMessage', {
        origin: base,
        registrationId,
        data: JSON.stringify(notice),
      })
      return page.evaluate(`navigator.serviceWorker.getRegistration('/console/')
        .then((registration) => registration.getNotifications())
        .then((all) => all.map(({ title, body, tag, data }) => ({ title, body, tag, data })))`)
    }
    await expect
      .poll(shown)
      .toEqual([
        { title: 'Ware ohne Zahlung hat den Laden verlassen', body: 'Hamburg', tag: 't', data: '/console/alarms' },
      ])
    await page.getByRole('button', { name: 'Mitteilungen: an' }).click()
    await page.getByRole('button', { name: 'Mitteilungen: aus' }).waitFor()
    expect(problems).toEqual([])
  })
})
