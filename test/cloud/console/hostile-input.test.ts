import type { Hono } from 'hono'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { browserOf, consoleOf, CSRF, fillConsole, ROLE_HEADER } from '../../support/console.ts'
import { openShop, type Shop } from '../../support/shop.ts'

/** What people of one account send or store must not stop the process of all. */
let shop: Shop
let app: Hono
let accountId: string
beforeAll(async () => {
  shop = await openShop('sqlite')
  ;({ accountId } = await fillConsole(shop))
  app = consoleOf(shop, accountId)
})
afterAll(() => shop?.stop())

const { get, post } = browserOf(
  () => shop,
  () => app,
  'admin',
)

const BYTES_OF_A_PAGE = 300_000

it('shows the users, keys and operators of a large account in pages', async () => {
  const stores = [shop.storeId, ...Array.from({ length: 99 }, (_, n) => `st_01KANX6Y7C3V9Q2M8R5T4W${1_000 + n}`)]
  const storeIds = JSON.stringify(stores)
  const numbers = Array.from({ length: 240 }, (_, n) => String(n).padStart(3, '0'))
  const { tenant } = await shop.cloud.db.database.reads
    .selectFrom('store')
    .select('tenant')
    .where('store_id', '=', shop.storeId)
    .executeTakeFirstOrThrow()
  await shop.cloud.db.database.write(async (db) => {
    const user = {
      account_id: accountId,
      role: 'viewer',
      sandbox_only: 0,
      mode: 'test',
      invited_by: 'test',
      totp_step: 0,
    }
    const key = {
      account_id: accountId,
      kind: 'secret',
      mode: 'test',
      created_ms: 0,
      expires_ms: null,
      last_used_ms: null,
    }
    for (const n of numbers) {
      const about = { store_ids: storeIds, name: `Name ${n}` }
      const others = { email: `u${n}@shop.example`, created_ms: 0, accepted_ms: 0, recovery_codes: '[]' }
      await db
        .insertInto('console_user')
        .values({ ...user, ...about, ...others, user_id: `usr_x${n}` })
        .execute()
      const secrets = { key_id: `key_x${n}`, hash: `hash ${n}`, shown: 'untag_test_sk_…' }
      await db
        .insertInto('api_key')
        .values({ ...key, ...about, ...secrets })
        .execute()
      const goods = { ean: '4006381333931', product_id: 'prd_x', items: 0, sold_items: 0 }
      const recall = { recall_id: `rcl_x${n}`, tenant, ...goods, reason: `Grund ${n}`, started_ms: 0, started_by: 'x' }
      if (Number(n) >= 90) continue
      await db
        .insertInto('product_recall')
        .values({ ...recall, stores: stores.length })
        .execute()
      await db
        .insertInto('recall_store')
        .values(stores.map((store_id) => ({ recall_id: recall.recall_id, store_id })))
        .execute()
    }
  })
  for (const path of ['/console/users', '/console/keys', '/console/recalls']) {
    const seen = new Set<string>()
    for (let next: string | undefined = path; next !== undefined;) {
      const html = await get(next)
      expect([path, html.length < BYTES_OF_A_PAGE]).toEqual([path, true])
      for (const [, n = ''] of html.matchAll(/(?:Name|Grund) (\d{3})/g)) seen.add(n)
      next = /href="([^"]*cursor=\d+[^"]*)"/.exec(html)?.[1]?.replaceAll('&amp;', '&')
    }
    expect([path, seen.size]).toEqual([path, path.endsWith('recalls') ? 90 : numbers.length])
  }
})

it('takes room for a file before it reads it', async () => {
  const ends: (() => void)[] = []
  const upload = () => {
    const body = new ReadableStream({ start: (stream) => void ends.push(() => stream.close()) })
    const type = 'multipart/form-data; boundary=xxxx'
    const headers = { [ROLE_HEADER]: 'manager', 'content-type': type, 'content-length': String(20 * 1024 * 1024) }
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
    return Promise.resolve(app.request('/console/products/import', init))
  }
  const held = Array.from({ length: 6 }, upload)
  expect((await upload()).status).toBe(503)
  for (const end of ends) end()
  for (const answer of await Promise.all(held)) expect(answer.status).toBe(400)
})

it('refuses pasted rows of megabytes, and does not send them back', async () => {
  const form = new FormData()
  for (const [name, value] of [
    ['_csrf', CSRF],
    ['_action', 'run'],
    ['rows', '"'.repeat(2_000_000)],
  ] as const)
    form.set(name, value)
  const headers = { [ROLE_HEADER]: 'manager' }
  const answer = await app.request('/console/products/import', { method: 'POST', headers, body: form })
  expect([answer.status, (await answer.text()).length < BYTES_OF_A_PAGE]).toEqual([413, true])
})

it('refuses JSON that the API refuses', async () => {
  const deep = `${'['.repeat(6_000)}${']'.repeat(6_000)}`
  const sent = { 'f.credential': `{"id":"a","clientExtensionResults":{"a":${deep}}}` }
  expect((await post('/console/operations/registerPasskey', 'run', sent)).status).toBe(400)
})

it('answers days that no calendar has, addresses that are none, and NUL, without an error of its own', async () => {
  const days = ['0001-01-01', '9999-12-31', '2026-02-30', '2026-13-01', '%00']
  for (const day of days)
    for (const path of ['/console/audit?from=', '/console/purchases?day=', '/console/alarms?from='])
      expect([path, day, (await app.request(`${path}${day}`, { headers: { [ROLE_HEADER]: 'admin' } })).status]).toEqual(
        [path, day, 200],
      )
  for (const day of days.slice(0, 4)) {
    const made = await post('/console/keys', 'create', { kind: 'secret', name: 'K', expiresAt: day })
    expect([day, made.status]).toEqual([day, 400])
    const offer = { title: 'A', validFrom: day, validTo: '2027-01-01' }
    expect([day, (await post('/console/offers/new', 'add', offer)).status]).toEqual([day, 400])
    expect((await shop.call('fetchPurchaseHistory', { storeId: shop.storeId, day })).status).toBe(400)
  }
  const signedOut = await app.request('/console/alarms', {
    headers: { 'hx-request': 'true', 'hx-current-url': 'http://[' },
  })
  expect([signedOut.status, signedOut.headers.get('hx-redirect')]).toEqual([
    200,
    '/console/sign-in?to=%2Fconsole%2Falarms&ended',
  ])
  expect((await post('/console/keys', 'create', { kind: 'secret', name: 'a\0b' })).status).toBe(400)
})
