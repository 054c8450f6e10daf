import type { Hono } from 'hono'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { noteChange } from '../../../cloud/platform/accounts/audit-operations.ts'
import { consoleTexts } from '../../../cloud/console/texts/catalogue.ts'
import { GERMAN_AREAS } from '../../../cloud/console/texts/operation-words.ts'
import { fieldsOfOperation } from '../../../cloud/console/pages/operations.tsx'
import { ROLES } from '../../../cloud/platform/foundation/caller.ts'
import { OPERATION_TABLE } from '../../../cloud/service/operation-table.ts'
import { browserOf, consoleOf, fillConsole } from '../../support/console.ts'
import { openShop, type Shop } from '../../support/shop.ts'

/** Keys, webhooks, the audit log and all operations, through the forms of the console. */
let shop: Shop
let app: Hono
beforeAll(async () => {
  shop = await openShop('sqlite')
  const { accountId } = await fillConsole(shop)
  app = consoleOf(shop, accountId)
})
afterAll(() => shop?.stop())

const { get, post } = browserOf(
  () => shop,
  () => app,
  'admin',
)

it('keys: shows a new one once, replaces and revokes it', async () => {
  const path = '/console/keys'
  const made = await post(path, 'create', {
    kind: 'secret',
    name: 'ERP',
    store_id: shop.storeId,
    expiresAt: '2099-12-31',
  })
  const [secret = ''] = /untag_test_sk_\w+/.exec(made.text) ?? []
  expect(secret.length).toBeGreaterThan(40)
  const listed = await get(path)
  expect(listed).toContain('ERP')
  expect(listed).toContain('ends 1 Jan 2100')
  expect(listed).not.toContain(secret)
  const { keys: known } = await shop.ok('fetchApiKeys')
  const { keyId } = known.find(({ name }: { name: string }) => name === 'ERP')
  const asKey = (key: string) => shop.cloud.call(key, 'fetchStores', {})
  expect((await asKey(secret)).body.stores).toHaveLength(1)
  const rolled = await post(path, 'roll', { keyId, overlapHours: '0' })
  const [next = ''] = /untag_test_sk_\w+/.exec(rolled.text) ?? []
  expect([(await asKey(secret)).status, (await asKey(next)).status]).toEqual([401, 200])
  const { keys: after } = await shop.ok('fetchApiKeys')
  const { keyId: nextId } = after.find(
    (key: Record<string, string>) => key['name'] === 'ERP' && key['status'] === 'active',
  )
  expect((await post(path, 'revoke', { keyId: nextId })).status).toBe(303)
  expect((await asKey(next)).status).toBe(401)
  const wrong = await post(path, 'create', { kind: 'secret', name: 'x', expiresAt: '2001-01-01' })
  expect([wrong.status, wrong.text.includes('aria-describedby="expiresAt-hint expiresAt-error"')]).toEqual([400, true])
})

it('webhooks: adds one, shows its deliveries with request and answer, sends one again, deletes it', async () => {
  const added = await post('/console/webhooks', 'add', { url: 'https://shop.example/hook', events: '*' })
  expect(added.text).toMatch(/<code class="secret">\S{20,}<\/code>/)
  const { webhooks } = await shop.ok('fetchWebhooks')
  const { webhookId } = webhooks.find(({ url }: { url: string }) => url === 'https://shop.example/hook')
  const path = `/console/webhooks/${webhookId}`
  expect(
    (await post(path, 'change', { url: 'https://shop.example/other', events: 'webhook.test', enabled: 'yes' })).status,
  ).toBe(303)
  expect((await post(path, 'test', {})).status).toBe(303)
  await shop.cloud.db.database.write(async (db) => {
    const event = await db
      .selectFrom('outbox_event')
      .selectAll()
      .where('webhook_id', '=', webhookId)
      .executeTakeFirstOrThrow()
    const { event_id, tenant, type, store_id, at_ms: created_ms } = event
    const delivery = { delivery_id: 'whd_1', tenant, webhook_id: webhookId, event_id, type, store_id, created_ms }
    await db
      .insertInto('webhook_delivery')
      .values({
        ...delivery,
        status: 'failed',
        attempts: 1,
        first_ms: created_ms,
        due_ms: null,
        lease_id: null,
        finished_ms: created_ms,
      })
      .execute()
    const attempt = { delivery_id: 'whd_1', attempt: 1, at_ms: created_ms, took_ms: 12, status: 500, error: null }
    await db
      .insertInto('webhook_attempt')
      .values({ ...attempt, answer: 'out of <paper>' })
      .execute()
  })
  const list = await get(path)
  const [, href = ''] = /href="([^"]*delivery=whd_1)"/.exec(list) ?? []
  const chosen = await get(href.replaceAll('&amp;', '&'))
  for (const part of ['Attempt 1', 'out of &lt;paper&gt;', '&quot;event&quot;']) expect(chosen).toContain(part)
  expect((await post(path, 'redeliver', { deliveryId: 'whd_1' })).status).toBe(303)
  const { deliveries } = await shop.ok('fetchWebhookDeliveries', { webhookId })
  expect(deliveries.filter(({ status }: { status: string }) => status === 'pending').length).toBeGreaterThan(0)
  expect((await post(path, 'remove', {})).location).toBe('/console/webhooks')
  expect(await get(path)).toContain('There is no such webhook')
})

it('audit log: names the key that made a change, and shows the changes of one thing', async () => {
  const { zoneId } = await shop.ok('createZone', { storeId: shop.storeId, name: 'Audit' })
  const text = await get(`/console/audit?entity=${zoneId}`)
  expect([...text.matchAll(/<th scope="row">/g)]).toHaveLength(1)
  expect(text).toContain('<code>createZone</code>')
  expect(await get('/console/audit?from=2099-01-01')).toContain('Nothing was changed in this time')
})

it('audit log: says in words what people did, names agents, and shows what agents did on demand', async () => {
  const { database } = shop.cloud.db
  const tenant = `${(await database.reads.selectFrom('store').select('tenant').executeTakeFirstOrThrow()).tenant}`
  await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Frau Vogt' })
  await database.write((db) =>
    noteChange(
      db,
      { tenant, actor: 'agt_AusgangNord', operation: 'reportProtectionEvents', entity_id: shop.storeId },
      shop.cloud.platform,
    ),
  )
  const people = await get('/console/audit')
  expect(people).toContain('Added staff with a badge')
  expect(people).not.toContain('<code>reportProtectionEvents</code>')
  const all = await get('/console/audit?by=all')
  expect(all).toMatch(/reported events[^]*?<td data-label="Who">Ausgang Nord</)
  // Whoever signs in has no session yet. The entry is about the user.
  const invited = await post('/console/users', 'invite', { email: 'vogt@shop.example', role: 'associate' })
  expect(invited.status).toBeLessThan(400)
  const users = database.reads.selectFrom('console_user').select('user_id').where('email', '=', 'vogt@shop.example')
  const { user_id: userId } = await users.executeTakeFirstOrThrow()
  const entry = { tenant, actor: 'anyone', operation: 'signIn', entity_id: userId }
  await database.write((db) => noteChange(db, entry, shop.cloud.platform))
  expect(await get('/console/audit')).toMatch(/Signed in<[^]*?<td data-label="Who">vogt@shop\.example</)
  // Of one thing, all is shown.
  expect(await get(`/console/audit?entity=${shop.storeId}`)).toContain('<code>reportProtectionEvents</code>')
  for (const name of Object.keys(consoleTexts('en').auditOperations))
    expect([name, OPERATION_TABLE.has(name)]).toEqual([name, true])
})

it.each(ROLES)(
  'operations: %s finds those that the role may call, each with a form of all its fields',
  async (role) => {
    const list = await get('/console/operations', { role })
    const shown = [...list.matchAll(/href="\/console\/operations\/(\w+)"/g)].map(([, name]) => name)
    const allowed = [...OPERATION_TABLE.values()].filter(({ roles }) => roles.includes(role))
    expect(shown.toSorted()).toEqual(allowed.map(({ name }) => name).toSorted())
    for (const operation of role === 'owner' ? allowed : allowed.slice(0, 3)) {
      const form = await get(`/console/operations/${operation.name}`, { role })
      const hasForm = form.includes('name="_action" value="run"')
      expect([operation.name, hasForm]).toEqual([operation.name, operation.multipart?.alsoJson !== false])
      for (const { name } of hasForm ? fieldsOfOperation(operation) : [])
        expect([operation.name, name, form.includes(`name="f.${name}"`)]).toEqual([operation.name, name, true])
    }
  },
)

it('operations: a German console finds each by German words, and asks for days in the format of the browser', async () => {
  const found = async (q: string, lang = 'de') => {
    const list = await get(`/console/operations?q=${encodeURIComponent(q)}`, { role: 'owner', lang })
    return [...list.matchAll(/href="\/console\/operations\/(\w+)"/g)].map(([, name]) => name)
  }
  expect(await found('Verkauf')).toEqual(expect.arrayContaining(['exportSalesData', 'fetchPurchaseHistory']))
  expect(await found('filiale anlegen')).toContain('insertStore')
  expect(await found('Gerät')).toContain('registerDevice')
  expect(await found('etikett')).toContain('registerProtectedItems')
  expect(await found('rückruf')).not.toEqual([])
  expect(await found('Tagesabschluss')).toContain('closeStoreDay')
  expect(await found('verkauf', 'en')).toEqual([])
  for (const { area } of OPERATION_TABLE.values()) expect([area, GERMAN_AREAS[area]]).not.toEqual([area, undefined])
  const list = await get('/console/operations', { lang: 'de' })
  expect(list).toContain('Namen und Beschreibungen sind wie in der Referenz englisch')
  expect(list).toContain('Warensicherung')
  expect(await get('/console/operations/exportSalesData', { lang: 'de' })).toMatch(
    /name="f.from"[^>]*type="date"|type="date"[^>]*name="f.from"/,
  )
})

it('operations: runs one that reads and one that changes, and shows an error at its field', async () => {
  const read = await post('/console/operations/fetchStore', 'run', { 'f.storeId': shop.storeId }, { role: 'viewer' })
  expect([read.status, read.text.includes('tradingName')]).toEqual([200, true])
  const sent = { 'f.storeId': shop.storeId, 'f.name': 'Herren' }
  expect((await post('/console/operations/createZone', 'run', sent, { role: 'manager' })).text).toContain('zoneId')
  expect((await post('/console/operations/createZone', 'run', sent, { role: 'viewer' })).status).toBe(404)
  expect((await post('/console/operations/recordSales', 'run', {}, { role: 'owner' })).status).toBe(404)
  const path = '/console/operations/createOffer'
  const wrong = await post(
    path,
    'run',
    { 'f.title': 'x', 'f.storeIds': '[broken', 'f.validFrom': 'today' },
    { role: 'manager' },
  )
  expect(wrong.status).toBe(400)
  for (const name of ['f.storeIds', 'f.validFrom', 'f.products']) expect(wrong.text).toContain(`id="${name}-error"`)
  expect(wrong.text).toContain('[broken')
  expect(await get('/console/operations?q=webhook%20secret')).toContain('rollWebhookSecret')
})

it('operations: none fails inside, whether the form is empty or has the example', async () => {
  const failed: string[] = []
  const own = { role: 'owner' } as const
  for (const operation of OPERATION_TABLE.values()) {
    // Devices of push notices belong to a session, which this test has in no database.
    if (!operation.roles.includes('owner') || /^register(Push|AlarmNotices)/.test(operation.name)) continue
    const path = `/console/operations/${operation.name}`
    const example = Object.entries(operation.example).map(([name, value]) => [
      `f.${name}`,
      typeof value === 'string' ? value : JSON.stringify(value),
    ])
    for (const fields of [{}, Object.fromEntries(example) as Record<string, string>]) {
      const { status } = await post(path, 'run', fields, own)
      if (status >= 500) failed.push(`${operation.name} ${status}`)
    }
  }
  expect(failed).toEqual([])
  expect(shop.cloud.errors).toEqual([])
})
