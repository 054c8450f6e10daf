import type { Hono } from 'hono'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { firstIdAt } from '../../../policy/ids.ts'
import type { Json } from '../../support/cloud.ts'
import { browserOf, consoleOf, fillConsole } from '../../support/console.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../support/test-agent.ts'

/** The rules of a store: their words, their change in two steps, and the agents that have them. */
let shop: Shop
let app: Hono
const RULES = '/console/rules'
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

/** Values of the fields of the form with an action, as a browser sends them. */
function fieldsOf(html: string, action: string): Record<string, string> {
  const form = html.split('<form').find((part) => part.includes(`name="_action" value="${action}"`)) ?? ''
  const plain = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&')
  const attribute = (tag: string, name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1]
  const fields: Record<string, string> = {}
  for (const [tag] of form.matchAll(/<input[^>]*>/g))
    fields[attribute(tag, 'name') ?? ''] = plain(attribute(tag, 'value') ?? '')
  for (const [, head = '', text = ''] of form.matchAll(/<textarea([^>]*)>([^<]*)</g))
    fields[attribute(head, 'name') ?? ''] = plain(text)
  for (const [, head = '', options = ''] of form.matchAll(/<select([^>]*)>(.*?)<\/select>/gs)) {
    const chosen = /<option[^>]*selected[^>]*>/.exec(options)?.[0] ?? /<option[^>]*>/.exec(options)?.[0] ?? ''
    fields[attribute(head, 'name') ?? ''] = attribute(chosen, 'value') ?? ''
  }
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !name.startsWith('_')))
}

const policyNow = async (): Promise<Json> => shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })

it('says the rules in words, and shows no form to a role that may not change them', async () => {
  const { version } = await policyNow()
  const page = await get(RULES, { role: 'manager' })
  for (const text of [
    'The rules in words',
    `<span class="value">${version}</span>`,
    'Worst-case loss',
    'Receipts are used up',
  ])
    expect(page).toContain(text)
  expect([page.includes('Change the rules'), page.includes('name="_action" value="preview"')]).toEqual([false, false])
  expect(await get(`${RULES}?edit`, { role: 'manager' })).not.toContain('name="_action" value="preview"')
  expect((await post(RULES, 'publish', {}, { role: 'manager' })).status).toBe(403)
  expect((await get(RULES, { role: 'associate' })).includes('The rules in words')).toBe(false)
  expect(await get(RULES, { lang: 'de' })).toContain('Die Regeln in Worten')
})

it('the unchanged form means the policy that applies', async () => {
  const { policy } = await policyNow()
  const rules = [{ category: 'Schmuck', fromValue: 12.5, severity: 'notify' }, { severity: 'silent' }]
  const tillSales = { ...policy.tillSales, codes: 'release', passByProduct: 15 }
  const special = { ...policy, spotCheckRate: 0.035, gate: { ...policy.gate, severity: rules }, tillSales }
  await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: special })
  const looked = await post(`${RULES}?edit`, 'preview', fieldsOf(await get(`${RULES}?edit`), 'preview'))
  expect(looked.text).toContain('Nothing changes.')
  expect((await post(RULES, 'publish', fieldsOf(looked.text, 'publish'))).location).toBe(RULES)
  expect((await policyNow()).policy).toEqual(special)
  await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy })
})

it('changes a rule: shows replay and loss, publishes, and an agent receives it', async () => {
  const agent = await enrolTestAgent(shop)
  await agent.login()
  const [documentsBefore] = await versionsOf(agent)
  const { epc } = await shop.newItem(shop.products[0])
  await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [epc] }])
  const { eventId } = await shop.ok('verifyProtectedItem', {
    deviceId: shop.devices.self_checkout_detacher,
    protectionAction: 'detach_hard_tag',
    epc,
  })
  const fields = { ...fieldsOf(await get(`${RULES}?edit`), 'preview'), overrideAbove: '1,50', hardCount: '3' }
  const looked = await post(`${RULES}?edit`, 'preview', fields)
  expect(looked.status).toBe(200)
  for (const text of [
    '1 of 1 decisions would change',
    'Items from €1.50 need staff.',
    'not released: staff are needed',
    'It honours at most 3 receipts.',
    eventId,
  ])
    expect(looked.text).toContain(text)
  const losses = [...looked.text.matchAll(/Worst-case loss (\w+)<\/span><span class="value">€([\d,.]+)/g)]
  expect(losses.map(([, when]) => when)).toEqual(['now', 'then'])
  expect(new Set(losses.map(([, , loss]) => loss)).size).toBe(2)
  const before = await policyNow()
  expect(before.policy.offline.hardCount).not.toBe(3)

  // The way back to the form keeps what was typed.
  const again = await post(`${RULES}?edit`, 'edit', fieldsOf(looked.text, 'edit'))
  expect(fieldsOf(again.text, 'preview')).toMatchObject({ overrideAbove: '1,50', hardCount: '3' })

  expect((await post(`${RULES}?edit`, 'publish', fieldsOf(looked.text, 'publish'))).location).toBe(RULES)
  const after = await policyNow()
  expect(after).toMatchObject({
    version: before.version + 1,
    policy: { requiresManualOverrideAboveValue: 1.5, offline: { hardCount: 3 } },
  })
  const { agents } = await shop.ok('fetchAgents', { storeId: shop.storeId })
  const { name } = agents.find(({ agentId }: Json) => agentId === agent.agentId)
  const row = async () => (await get(RULES)).split('<tr>').find((part) => part.includes(`>${name}<`)) ?? ''
  await agent.call('fetchSignedDocuments', { have: { policy: [0, documentsBefore] } })
  expect(await row()).toContain('Behind: works by older rules')
  const [received] = await versionsOf(agent)
  expect(received).toBeGreaterThan(documentsBefore)
  await agent.call('fetchSignedDocuments', { have: { policy: [0, received] } })
  expect(await row()).toContain('Has these rules')
})

it('refuses the second of two editors, keeps the values, and shows what they change now', async () => {
  const fields = { ...fieldsOf(await get(`${RULES}?edit`), 'preview'), overridesPerHour: '77' }
  const looked = await post(`${RULES}?edit`, 'preview', fields)
  const { policy, version } = await policyNow()
  await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, spotCheckRate: 0.25 } })
  const refused = await post(`${RULES}?edit`, 'publish', fieldsOf(looked.text, 'publish'))
  expect(refused.status).toBe(409)
  for (const text of [
    `A colleague has published version ${version + 1}`,
    'An operator may approve 77 times an hour.',
    'Staff check 25% of the checkouts.',
  ])
    expect(refused.text).toContain(text)
  expect(refused.text).not.toContain('read it again')
  expect((await policyNow()).policy.spotCheckRate).toBe(0.25)
  const kept = fieldsOf(refused.text, 'preview')
  expect(kept).toMatchObject({ overridesPerHour: '77', version: String(version + 1) })
  const second = await post(`${RULES}?edit`, 'preview', { ...kept, spotCheck: '25' })
  expect((await post(`${RULES}?edit`, 'publish', fieldsOf(second.text, 'publish'))).status).toBe(303)
  expect((await policyNow()).policy).toMatchObject({ spotCheckRate: 0.25, operatorOverridesPerHour: 77 })
})

it('marks wrong fields, and an empty one is never a default', async () => {
  const fields = fieldsOf(await get(`${RULES}?edit`), 'preview')
  const wrong = { overridesPerHour: '', spotCheck: '400', isolatedMinutes: 'soon', 'rule0-reaction': 'siren' }
  const bad = { ...wrong, 'rule0-from': 'x', 'rule0-category': 'Schuhe', rest: '{broken' }
  const notJson = await post(`${RULES}?edit`, 'preview', { ...fields, ...bad })
  expect([notJson.status, notJson.text.includes('This is no JSON object.')]).toEqual([400, true])
  const { text, status } = await post(`${RULES}?edit`, 'preview', { ...fields, ...bad, rest: fields['rest'] ?? '' })
  expect(status).toBe(400)
  for (const name of ['overridesPerHour', 'spotCheck', 'isolatedMinutes', 'severity'])
    expect(text).toContain(`id="${name}-error"`)
  expect(text).toContain('value="Schuhe"')
})

it('says why a decision was made, found by tag or by its number', async () => {
  const { policy } = await policyNow()
  const strict = { ...policy, requiresManualOverrideAboveValue: 2, spotCheckRate: 0 }
  await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: strict })
  const { epc } = await shop.newItem(shop.products[0])
  await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [epc] }])
  const request = { protectionAction: 'detach_hard_tag', epc, deviceId: shop.devices.self_checkout_detacher }
  const { eventId } = await shop.ok('verifyProtectedItem', request)
  const list = await get(`${RULES}/decisions?q=${epc}`, { role: 'manager' })
  expect(list).toContain(`q=${encodeURIComponent(eventId)}`)
  expect(await get(`${RULES}/decisions`)).toContain(`q=${encodeURIComponent(eventId)}`)
  const one = await get(`${RULES}/decisions?q=${eventId}`)
  for (const text of [
    'Not released',
    'staff are needed',
    'Facts of piece 1',
    'not used yet',
    'Items from €2.00 need staff',
  ])
    expect(one).toContain(text)
  expect(one).toContain(`€${shop.products[0].price.toFixed(2)}`)
  expect(await get(`${RULES}/decisions?q=E28011700000099999999999`)).toContain('Nothing fits')
  expect(await get(`${RULES}/decisions?q=evt_alarm`)).toContain('Open the alarm')
  const other = { storeId: shop.otherStoreId, eventId }
  expect((await shop.ok('fetchProtectionEvents', other)).events).toEqual([])
})

it('counts alarms by gate, hour, cause and category, and those that were needless or late', async () => {
  const { storeId } = shop
  const { tenant } = await shop.cloud.db.database.reads
    .selectFrom('store')
    .select('tenant')
    .where('store_id', '=', storeId)
    .executeTakeFirstOrThrow()
  const { epc } = await shop.newItem(shop.products[0])
  const raised = [
    { eventId: 'evt_n1', reason: 'gate_alarm', at: '2026-01-10T09:15:00.000Z', epc },
    { eventId: 'evt_n2', reason: 'gate_alarm', at: '2026-01-10T09:45:00.000Z' },
    { eventId: 'evt_n3', reason: 'gate_bulk_alarm', at: '2026-01-11T15:00:00.000Z' },
    { eventId: 'evt_n4', reason: 'late_status', at: '2026-01-11T15:01:00.000Z' },
    { eventId: 'evt_n5', reason: 'late_reads', at: '2026-01-11T15:02:00.000Z' },
    { eventId: 'evt_n6', reason: 'gate_alarm', at: '2026-01-12T00:00:00.000Z' },
  ]
  const deviceId = shop.devices.exit_gate
  await shop.cloud.db.database.write(async (db) => {
    for (const { eventId, reason, at: occurredAt, ...tag } of raised) {
      const type = 'protection.exception.raised'
      const event = { type, eventId, occurredAt, processedAt: occurredAt, storeId, deviceId, reason, ...tag }
      const [occurred_ms, processed_ms] = [Date.parse(occurredAt), Date.parse(occurredAt)]
      const row = { event_id: eventId, tenant, store_id: storeId, type, device_id: deviceId, occurred_ms, processed_ms }
      await db
        .insertInto('protection_event')
        .values({ ...row, body: JSON.stringify(event) })
        .execute()
    }
  })
  const [{ operatorId }] = (await shop.ok('fetchOperators', { storeId })).operators
  await shop.ok('disposeAlarm', { eventId: 'evt_n1', disposition: 'real', operatorId })
  const path = '/console/alarm-figures?from=2026-01-10&to=2026-01-11'
  const page = await get(path, { role: 'manager' })
  const row = (label: string) => page.split('<tr>').find((part) => part.startsWith(`<th scope="row">${label}`)) ?? ''
  const numbers = (label: string) => [...row(label).matchAll(/class="end">(\d+)</g)].map(([, count]) => Number(count))
  const { devices } = await shop.ok('fetchDevices', { storeId, deviceId })
  expect(numbers(devices[0].name)).toEqual([3, 1, 1])
  expect([numbers('Theft'), numbers('No cause recorded'), numbers('Forgot to pay')]).toEqual([[1], [2], [0]])
  expect(numbers('Bekleidung')).toEqual([1])
  for (const text of ['<li>10: 2</li>', '<li>16: 1</li>', '33.3% of the alarms']) expect(page).toContain(text)
  const file = await get(`${path}&file`)
  expect(file).toContain(`"By gate","${devices[0].name}",3,1,1`)
  expect(file).toContain('"By hour of the day","10",2')
  expect(await get('/console/alarm-figures?from=2026-02-10&to=2026-01-11')).toContain('The days are exchanged')
  expect(await get('/console/alarm-figures?from=2025-01-10&to=2025-01-11')).toContain('No alarm in this time')
})

it('shows what being offline cost, with links to the lists of the same days', async () => {
  const { storeId } = shop
  const agent = await enrolTestAgent(shop, storeId)
  const { tenant } = await shop.cloud.db.database.reads
    .selectFrom('store')
    .select('tenant')
    .where('store_id', '=', storeId)
    .executeTakeFirstOrThrow()
  const [beganMs, endedMs] = [Date.parse('2026-02-03T08:00:00Z'), Date.parse('2026-02-03T09:30:00Z')]
  const { transactionId: purchaseId, items } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
  const about = { tenant, store_id: storeId }
  const released = {
    type: 'protection.device.offline',
    eventId: 'evt_alone',
    occurredAt: '2026-02-03T08:30:00.000Z',
    storeId,
    deviceId: shop.devices.exit_gate,
    protectionAction: 'authorize_exit',
    offline: true,
  }
  await shop.cloud.db.database.write(async (db) => {
    const outage = { outage_id: 'otg_1', agent_id: agent.agentId, began_ms: beganMs, ended_ms: endedMs }
    await db
      .insertInto('agent_outage')
      .values({ ...outage, ...about })
      .execute()
    const event = { event_id: 'evt_alone', type: released.type, occurred_ms: beganMs + 1, processed_ms: endedMs }
    await db
      .insertInto('protection_event')
      .values({ ...event, ...about, body: JSON.stringify(released) })
      .execute()
    await db
      .insertInto('protection_exception')
      .values({
        ...about,
        exception_id: firstIdAt('exc', endedMs),
        kind: 'double_redeem',
        subject: `${items[0].itemLineId}/0/exit`,
        purchase_id: purchaseId,
        detail: '',
        raised_ms: endedMs,
      })
      .execute()
  })
  const path = '/console/alarm-figures?from=2026-02-03&to=2026-02-03'
  const page = await get(path, { role: 'manager' })
  const price = new Intl.NumberFormat('en', { style: 'currency', currency: 'EUR' }).format(shop.products[0].price)
  for (const text of ['1.5 h', price, 'and 0 refused']) expect(page).toContain(text)
  const links = [...page.matchAll(/href="([^"]+from=2026-02-03[^"]*)"/g)].map(([, href = '']) =>
    href.replaceAll('&amp;', '&'),
  )
  const [decisions = '', exceptions = ''] = ['/console/rules/decisions', '/console/exceptions'].map(
    (start) => links.find((href) => href.startsWith(start)) ?? '',
  )
  expect(await get(decisions, { role: 'manager' })).toContain('Released without connection')
  expect(await get(exceptions, { role: 'manager' })).toContain('What to do')
  expect(await get(exceptions.replaceAll('02-03', '02-04'))).toContain('Nothing to look at')
  expect(await get(decisions.replaceAll('02-03', '02-04'))).toContain('Nothing was decided without connection')
  expect(await get(`${path}&file`)).toMatch(/"Agents without connection","[^"]*",1,1\.5/)
})

/** Version of the policy document that an agent without one receives. */
async function versionsOf(agent: TestAgent): Promise<[number]> {
  const { body } = await agent.call('fetchSignedDocuments', { have: {} })
  const claims = (body.documents as string[]).map(
    (jws) => JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()) as Json,
  )
  return [claims.find((each) => each.policy !== undefined)?.ver]
}
