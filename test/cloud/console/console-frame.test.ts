import type { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EVERY_ROLE, PLATFORM_ROLE } from '../../../cloud/platform/foundation/caller.ts'
import { galleryPage } from '../../support/console-gallery/gallery.tsx'
import { page } from '../../../cloud/console/frame/page.ts'
import { pages } from '../../../cloud/console/pages/registry.ts'
import { consoleTexts } from '../../../cloud/console/texts/catalogue.ts'
import { createZone } from '../../../cloud/shop/assistance/operations.ts'
import { consoleOf, CSRF, insertTestUser, ROLE_HEADER } from '../../support/console.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { foreignTexts } from '../../support/page-texts.ts'

/** A page with a form, so that the rules of the frame are tested without those of a real page. */
const zonePage = page({
  path: '/console/zones/:zone',
  roles: ['owner', 'manager'],
  scope: 'store',
  actions: {
    create: {
      operation: createZone,
      roles: ['manager'],
      input: (form, at) => ({ storeId: at.store?.storeId, name: form.text('name') }),
      done: (texts) => texts.frame.done,
    },
  },
  title: (texts) => texts.frame.store,
  load: async (at) => at.params['zone'],
  view: (at) =>
    `[${at.data}] [${at.form.errors['name'] ?? ''}] [${at.form.values['name'] ?? ''}] [${at.form.message ?? ''}]`,
})

describe('the frame of the console', () => {
  let shop: Shop
  let app: Hono

  beforeAll(async () => {
    shop = await openShop('sqlite')
    const { tenant } = await shop.cloud.db.database.reads.selectFrom('store').select('tenant').executeTakeFirstOrThrow()
    const accountId = tenant.split('.')[0]!
    await insertTestUser(shop, accountId)
    app = consoleOf(shop, accountId, [...pages, galleryPage, zonePage])
  })
  afterAll(() => shop?.stop())

  async function get(path: string, headers: Record<string, string> = {}) {
    const response = await app.request(path, {
      headers: { [ROLE_HEADER]: 'manager', cookie: 'untag_console=test/', ...headers },
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  async function post(fields: Record<string, string>, headers: Record<string, string> = {}) {
    const body = new URLSearchParams({ _csrf: CSRF, _action: 'create', _mode: 'test', _store: shop.storeId, ...fields })
    const response = await app.request('/console/zones/a', {
      method: 'POST',
      body,
      headers: { [ROLE_HEADER]: 'manager', 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  it('shows the sign-in page at every address while the browser is signed out', async () => {
    for (const path of ['/console', '/console/components', '/console/nothing']) {
      const response = await app.request(path)
      expect([path, response.status, await response.text()]).toEqual([path, 401, '<h1>Sign in</h1>'])
    }
    expect((await app.request('/console/live')).status).toBe(204)
  })

  it.each(
    EVERY_ROLE.flatMap((role) => [...pages, galleryPage, zonePage].map((page) => [role, page.path, page] as const)),
  )('%s opens %s exactly if the page is for that role', async (role, _, page) => {
    const isAllowed = page.roles.includes(role)
    const path = page.path.replaceAll(/:\w+/g, 'x')
    const { status, text } = await get(path, { [ROLE_HEADER]: role, 'accept-language': 'en' })
    // The start page of an account leads the people who run the cloud to theirs.
    const isStart = role === PLATFORM_ROLE && path === '/console'
    expect(status).toBe(isAllowed ? 200 : isStart ? 303 : 403)
    expect(text.includes(consoleTexts('en').errors.forbidden.title)).toBe(!isAllowed && !isStart)
    const response = await app.request(path, {
      method: 'POST',
      body: new URLSearchParams({ _csrf: CSRF, _action: 'create', _mode: 'test', _store: shop.storeId }),
      headers: { [ROLE_HEADER]: role, 'content-type': 'application/x-www-form-urlencoded' },
    })
    if (!isAllowed) expect(response.status).toBe(403)
  })

  it('answers 404 inside the frame for unknown addresses', async () => {
    const { status, text } = await get('/console/nothing', { 'accept-language': 'en' })
    expect([status, text.includes('This page does not exist'), text.includes('Petra Lindner')]).toEqual([
      404,
      true,
      true,
    ])
  })

  it('allows no inline script, no inline style and no other origin', async () => {
    const { headers, text } = await get('/console/components')
    const policy = headers.get('content-security-policy')!
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(text).not.toMatch(/<style|<script(?![^>]*src=)|\sstyle=|\son\w+=|hx-on|https?:\/\/(?!www\.w3\.org)/)
    expect(text).toContain('&quot;allowEval&quot;:false')
  })

  it('serves its files for ever at an address with their hash', async () => {
    const { text } = await get('/console')
    const files = [...text.matchAll(/(?:href|src)="(\/console\/assets\/[^"]+)"/g)].map(([, path]) => path!)
    expect(files).toHaveLength(10)
    for (const file of files) {
      const response = await app.request(file)
      expect([file, response.status, response.headers.get('cache-control')]).toEqual([
        file,
        200,
        'public, max-age=31536000, immutable',
      ])
      expect((await response.text()).length).toBeGreaterThan(200)
    }
    expect((await app.request(files[0]!.replace(/assets\/\w+/, 'assets/old'))).status).toBe(404)
  })

  it('performs the operation of a form and redirects; the message appears once', async () => {
    const { status, headers } = await post({ name: 'Herren' })
    expect([status, headers.get('location')]).toEqual([303, '/console/zones/a'])
    const { zones } = await shop.ok('fetchZones', { storeId: shop.storeId })
    expect(zones).toMatchObject([{ name: 'Herren' }])
    const cookie = /untag_toast=[^;]+/.exec(headers.get('set-cookie')!)![0]
    const shown = await get('/console/zones/a', { cookie: `${cookie}; untag_console=test/`, 'accept-language': 'de' })
    expect(shown.text).toContain('Erledigt')
    expect(shown.headers.get('set-cookie')).toContain('untag_toast=; Max-Age=0')
  })

  it('performs a form once, however often it is sent with one key', async () => {
    const before = (await shop.ok('fetchZones', { storeId: shop.storeId })).zones.length
    for (let n = 0; n < 3; n++) expect((await post({ name: 'Kasse', _key: 'key-1' })).status).toBe(303)
    expect((await shop.ok('fetchZones', { storeId: shop.storeId })).zones.length).toBe(before + 1)
  })

  it('shows a rejected form again, with the values and an error at the field', async () => {
    const { status, text } = await post({ name: 'x'.repeat(81) }, { 'accept-language': 'de' })
    expect(status).toBe(400)
    expect(text).toContain(
      `[a] [Das ist zu lang oder zu groß. Höchstens: 80.] [${'x'.repeat(81)}] [Prüfen Sie die markierten Felder.]`,
    )
    // The page draws no form for this state, like one whose entry is gone: its reason stands above the page.
    expect(text).toContain('Die Eingaben wurden nicht gespeichert.')
  })

  it('rejects forms of other sites, other sessions and other roles, and unknown actions', async () => {
    const { zones } = await shop.ok('fetchZones', { storeId: shop.storeId })
    const sent = [
      await post({ name: 'A', _csrf: 'csrf-of-the-tesT' }),
      await post({ name: 'A', _csrf: '' }),
      await post({ name: 'A' }, { 'sec-fetch-site': 'cross-site' }),
      await post({ name: 'A' }, { [ROLE_HEADER]: 'owner' }),
      await post({ name: 'A', _action: 'constructor' }),
      await post({ name: 'A' }, { 'content-type': 'text/plain' }),
    ]
    expect(sent.map(({ status }) => status)).toEqual([401, 401, 401, 403, 404, 415])
    expect((await shop.ok('fetchZones', { storeId: shop.storeId })).zones).toEqual(zones)
  })

  it('acts on the mode and store that the form showed, also after another tab has switched', async () => {
    const { status } = await post(
      { name: 'Tür', _store: shop.otherStoreId },
      { cookie: `untag_console=live/${shop.storeId}` },
    )
    expect(status).toBe(303)
    expect((await shop.ok('fetchZones', { storeId: shop.otherStoreId })).zones).toMatchObject([{ name: 'Tür' }])
  })

  it('answers 404 for a store that the user may not see, and does nothing in another store', async () => {
    const other = await openShop('sqlite')
    const zones = await shop.ok('fetchZones', { storeId: shop.storeId })
    for (const _store of [other.storeId, 'st_x', 'all', ''])
      expect([_store, (await post({ name: 'Fremd', _store })).status]).toEqual([_store, 404])
    expect((await get(`/console?store=${other.storeId}`)).status).toBe(404)
    expect((await get('/console', { cookie: `untag_console=test/${other.storeId}` })).status).toBe(200)
    expect(await shop.ok('fetchZones', { storeId: shop.storeId })).toEqual(zones)
    await other.stop()
  })

  it('remembers store and mode of the switches, and forgets the store with the mode', async () => {
    const stored = await get(`/console?store=${shop.otherStoreId}`)
    expect(stored.headers.get('set-cookie')).toContain(
      `untag_console=test%2F${shop.otherStoreId}; Path=/console; HttpOnly`,
    )
    const live = await get('/console?mode=live', { cookie: `untag_console=test/${shop.storeId}` })
    expect(live.headers.get('set-cookie')).toContain('untag_console=live%2F;')
    expect(live.text).not.toContain('class="is-test"')
    expect((await get('/console')).text).toContain('class="is-test"')
  })

  it('keeps the store that it showed first, also if another one gets an agent', async () => {
    const first = await get('/console', { cookie: 'untag_console=test/' })
    const shown = decodeURIComponent(/untag_console=([^;]+)/.exec(first.headers.get('set-cookie') ?? '')?.[1] ?? '')
    expect(shown).toMatch(/^test\/st_/)
    const again = await get('/console', { cookie: `untag_console=${shown}` })
    expect(again.headers.get('set-cookie')).toBeNull()
    expect((await get('/console?store=all', { cookie: `untag_console=${shown}` })).headers.get('set-cookie')).toContain(
      'untag_console=test%2Fall',
    )
  })

  it('tells how a live store comes: owners how to get it, others whom to ask', async () => {
    const live = { cookie: 'untag_console=live/', 'accept-language': 'en' }
    const seen = async (role: string) => (await get('/console/orders', { ...live, [ROLE_HEADER]: role })).text
    expect(await seen('owner')).toMatch(/There is no store here[^]*untag api insertStore[^]*Open the first live store/)
    expect(await seen('owner')).not.toContain('ask the owner')
    expect(await seen('manager')).toContain('ask the owner of the account')
  })

  it.each([
    ['de', 'en'],
    ['en', 'de'],
  ] as const)('speaks only %s in its pages', async (own, other) => {
    // People name devices in their own language.
    const names: string[] = []
    for (const storeId of [shop.storeId, shop.otherStoreId]) {
      const { devices } = await shop.ok('fetchDevices', { storeId })
      names.push(...devices.map(({ name }: { name: string }) => name))
    }
    for (const { path } of pages) {
      const { text } = await get(path, { 'accept-language': own })
      expect(text).toContain(`<html lang="${own}"`)
      expect([
        path,
        foreignTexts(
          text,
          { ...consoleTexts(own), names },
          {
            ...consoleTexts(other),
            frame: { ...consoleTexts(other).frame, otherLanguage: '' },
          },
        ),
      ]).toEqual([path, []])
    }
  })
})
