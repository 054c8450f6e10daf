import { stateColumns } from '../../../cloud/protection/agent-identity/agent-queries.ts'
import type { ReportedDevice } from '../../../policy/documents/agent-messages.ts'
import type { Row } from '../../../cloud/platform/persistence/schema.ts'
import type { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dayOf } from '../../../cloud/shop/analytics/store-days.ts'
import { withoutSecrets } from '../../../cloud/console/pages/diagnostics.ts'
import { formId } from '../../../cloud/console/components/form.tsx'
import { COUNTED_PAGES } from '../../../cloud/console/components/live.tsx'
import { pages } from '../../../cloud/console/pages/registry.ts'
import { consoleFormats, consoleTexts } from '../../../cloud/console/texts/catalogue.ts'
import { textsOf } from '../../../edge-agent/pages/texts/catalogue.ts'
import { EXCEPTION_TEXTS } from '../../../cloud/service/description/codes.ts'
import { enrolmentCodeHash } from '../../../policy/documents/agent-messages.ts'
import { browserOf, consoleOf, fillConsole, ROLE_HEADER } from '../../support/console.ts'
import type { Json } from '../../support/cloud.ts'
import { newEan, openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

/** What staff do in the pages of the store manager, through the forms of the console. */
describe('pages of the store manager', () => {
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
    'manager',
  )

  const viewerOf = ({ storeId }: Shop) => ({ [ROLE_HEADER]: 'manager', cookie: `untag_console=test/${storeId}` })

  it('today: shows sales if the package has reports, and the alarms of 24 hours', async () => {
    const text = await get('/console')
    expect(text).toMatch(/Alarms in 24 hours<\/span><span class="value">\d/)
    const { stores } = await shop.ok('fetchStores')
    const { package: level } = stores.find((store: { storeId: string }) => store.storeId === shop.storeId)
    expect(/Sales today, less refunds<\/span><span class="value">€[\d,.]+<\/span>/.test(text)).toBe(level === 'PRIME')
  })

  it('today: tells a viewer, who may not see alarms, no number of them', async () => {
    const today = async (role: 'viewer' | 'associate') => {
      const cookie = `__Host-untag_session=${await shop.cloud.user(role)}`
      const path = `/console?mode=test&store=${shop.storeId}`
      return (await shop.cloud.get(path, { cookie, 'accept-language': 'en' })).text
    }
    const ofAssociate = await today('associate')
    expect(ofAssociate).toContain('Alarms in 24 hours')
    // The revenue is for managers and above.
    expect(ofAssociate).not.toContain('Sales today')
    const seen = await today('viewer')
    expect(seen).toContain('Devices')
    expect(seen).not.toContain('Alarms in 24 hours')
  })

  it('tells a viewer of nothing to do or to enter, and opens no page that a viewer may not see', async () => {
    const session = await shop.cloud.user('viewer')
    const own = { cookie: `__Host-untag_session=${session}`, 'accept-language': 'en' }
    const today = (await shop.cloud.get(`/console?mode=test&store=${shop.storeId}`, own)).text
    expect(today).toMatch(/Alarms at the exit<\/strong><span class="sub">Staff of the store take care of this/)
    for (const text of ['Check the goods', 'record the cause', 'What waits for you', 'acknowledge it'])
      expect([text, today.includes(text)]).toEqual([text, false])
    for (const { path, roles } of pages)
      if (!roles.includes('viewer')) expect([path, today.includes(`href="${path}"`)]).toEqual([path, false])
    expect(await get('/console', { role: 'associate' })).toContain('Check the goods, then record the cause.')
    for (const [path, forStaff] of [
      ['/console/stock', 'Enter how many pieces you count'],
      ['/console/help', 'What you write appears'],
      ['/console/exceptions', 'Please look at it'],
    ] as const) {
      expect([path, (await get(path, { role: 'viewer' })).includes(forStaff)]).toEqual([path, false])
      expect([path, (await get(path, { role: 'associate' })).includes(forStaff)]).toEqual([path, true])
    }
  })

  it('today: names the other stores in which something waits', async () => {
    const { stores } = await shop.ok('fetchStores')
    const other = stores.find(({ storeId }: { storeId: string }) => storeId !== shop.storeId)
    expect(await get('/console')).not.toContain('Waiting in your other stores')
    const there = { cookie: `untag_console=test/${other.storeId}`, [ROLE_HEADER]: 'manager' }
    const response = await app.request('/console', { headers: { ...there, 'accept-language': 'en' } })
    const text = await response.text()
    expect(text).toContain('Waiting in your other stores')
    expect(text).toContain(`href="/console?store=${shop.storeId}"`)
  })

  it('all stores: adds up what waits, and asks for the store where a page shows one', async () => {
    const { stores } = await shop.ok('fetchStores')
    const names = stores.map(({ tradingName }: Json) => tradingName)
    const all = { cookie: 'untag_console=test/all', [ROLE_HEADER]: 'manager', 'accept-language': 'en' }
    const read = async (path: string) => (await app.request(path, { headers: all })).text()
    const today = await read('/console')
    expect(today).toContain('Alarms at the exit')
    for (const text of ['Your stores', 'Sales today', ...names]) expect(today).toContain(text)
    for (const { path, scope, title } of pages.filter((each) => each.scope === 'store')) {
      const text = await read(path)
      expect([scope, text.includes(title(consoleTexts('en')))]).toEqual(['store', true])
      expect(text).toContain('Choose a store')
      for (const { storeId } of stores) expect(text).toContain(`href="${path}?store=${storeId}"`)
    }
  })

  it('alarms: says at the field that the last day is before the first, and hides no open alarm', async () => {
    const text = await get('/console/alarms?from=2026-11-28&to=2026-11-27')
    expect(text).toMatch(/<input[^>]*name="to"[^>]*aria-invalid="true"/)
    expect(text).toContain('This is before the beginning')
    expect(text).toContain('data-alarm="evt_alarm"')
  })

  it('alarms: calls goods that leave paid only while a gate sees them', async () => {
    const { database } = shop.cloud.db
    const gate = shop.devices.exit_gate
    const rows = await database.reads
      .selectFrom('protection_event')
      .selectAll()
      .where('event_id', '=', 'evt_alarm')
      .execute()
    const agent = await database.reads
      .selectFrom('agent')
      .selectAll()
      .where('agent_id', '=', 'agt_KassenErdgeschoss')
      .executeTakeFirstOrThrow()
    const before = await database.reads
      .selectFrom('device')
      .selectAll()
      .where('device_id', '=', gate)
      .executeTakeFirstOrThrow()
    const setGate = (change: { agent_id?: string; revoked_ms?: number | null }) =>
      database.write((db) => db.updateTable('device').set(change).where('device_id', '=', gate).execute())
    const setState = (state: Pick<Row<'agent'>, 'state' | 'device_states'>) =>
      database.write((db) => db.updateTable('agent').set(state).where('agent_id', '=', agent.agent_id).execute())
    const devicesOf = (...devices: ReportedDevice[]) => {
      const observedAt = new Date().toISOString()
      return stateColumns({ observedAt, devices, devicesAt: observedAt })
    }
    await database.write((db) => db.deleteFrom('protection_event').where('event_id', '=', 'evt_alarm').execute())
    const paid = 'The goods that leave are paid'
    await setState(devicesOf({ deviceId: gate, state: 'ready' }))
    await setGate({ agent_id: agent.agent_id })
    expect(await get('/console/alarms')).toContain(paid)

    // A gate without a reader opens, and sees no goods.
    await setState(devicesOf({ deviceId: gate, state: 'ready', readsTags: false }))
    expect(await get('/console/alarms')).toMatch(/Not known whether goods leave unpaid: [^<]+/)
    expect(await get('/console/agents')).toMatch(/No tag reader.*This exit opens, and sees no goods/s)

    await setGate({ agent_id: 'agt_AusgangNord' })
    const silent = await get('/console/alarms')
    expect(silent).toMatch(/Not known whether goods leave unpaid: [^<]+/)
    expect(silent).not.toContain(paid)

    await setGate({ revoked_ms: 1 })
    const bare = await get('/console/alarms')
    expect(bare).toContain('No gate watches the exit')
    expect(bare).not.toContain(paid)
    expect(bare).not.toContain('No open alarm')

    await setState({ state: agent.state, device_states: agent.device_states })
    await setGate({ agent_id: before.agent_id ?? '', revoked_ms: null })
    await database.write((db) => db.insertInto('protection_event').values(rows).execute())
  })

  it('all stores: shows the work of all with the store of each row, and acts on it', async () => {
    const { stores } = await shop.ok('fetchStores')
    const { storeId, tradingName } = stores.find((each: Json) => each.storeId !== shop.storeId)
    const own = stores.find((each: Json) => each.storeId === shop.storeId).tradingName
    const { database } = shop.cloud.db
    const events = await database.reads
      .selectFrom('protection_event')
      .selectAll()
      .where('event_id', '=', 'evt_alarm')
      .execute()
    const [exceptions, kinds] = [
      await database.reads.selectFrom('protection_exception').selectAll().execute(),
      ['gate_alarm', 'door_forced'],
    ]
    await database.write(async (db) => {
      for (const { body, ...row } of events) {
        const there = JSON.stringify({ ...JSON.parse(body), storeId, eventId: 'evt_there' })
        await db
          .insertInto('protection_event')
          .values({ ...row, store_id: storeId, event_id: 'evt_there', body: there })
          .execute()
      }
      for (const row of exceptions.filter(({ kind, store_id: at }) => kinds.includes(kind) && at === shop.storeId))
        await db
          .insertInto('protection_exception')
          .values({
            ...row,
            exception_id: `${row.exception_id}_there`,
            store_id: storeId,
            event_id: row.event_id && 'evt_there',
          })
          .execute()
    })
    const { zoneId } = await shop.ok('createZone', { storeId, name: 'Kasse 2' })
    await shop.ok('requestAssistance', { zoneId, message: 'Hallo?' })
    const all = { cookie: 'untag_console=test/all', [ROLE_HEADER]: 'manager', 'accept-language': 'en' }
    const read = async (path: string) => (await app.request(path, { headers: all })).text()
    for (const path of ['/console/alarms', '/console/exceptions', '/console/help']) {
      const text = await read(path)
      for (const name of [own, tradingName]) expect([path, text.includes(`Store: ${name}`)]).toEqual([path, true])
      expect(text).not.toContain('Choose a store')
    }
    for (const path of ['/console/approvals', '/console/purchases'])
      expect([path, (await read(path)).includes(`Store: ${own}`)]).toEqual([path, true])
    expect(await read('/console/alarms')).not.toContain('Record one cause for all')
    const href = '/console/alarms/evt_there'
    expect(await read('/console/alarms')).toContain(`href="${href}"`)
    expect(await read(href)).toContain(`<dd>${tradingName}</dd>`)
    const cause = { _store: 'all', eventId: 'evt_there', disposition: 'real', seen: 'none' }
    expect(await post('/console/alarms', 'dispose', cause)).toMatchObject({ status: 303 })
    const { alarms } = await shop.ok('fetchAlarms', { storeId, state: 'disposed' })
    expect(alarms).toMatchObject([{ eventId: 'evt_there', disposition: 'real' }])
    expect((await shop.ok('fetchAlarms', { storeId: shop.storeId, state: 'open' })).alarms).toHaveLength(1)
    expect(await read('/console/alarms')).toMatch(new RegExp(`Theft[^]*${tradingName}|${tradingName}[^]*Theft`))
    expect((await app.request('/console/alarms?file', { headers: all })).status).toBe(200)
    await post('/console/exceptions', 'acknowledge', { _store: 'all', exceptionId: 'exc_3_there' })
  })

  it('purchases: says what a till took back, and what happened at the exit', async () => {
    const { storeId } = shop
    const [{ ean, name }] = shop.products
    const sale = {
      saleId: '4711',
      tillId: 'till-3',
      occurredAt: new Date().toISOString(),
    }
    const { epc } = await shop.newItem(shop.products[0])
    const lines = [{ lineId: '1', ean, name, quantity: 2, priceUnit: 8_990, vat: 19, epcs: [epc] }]
    const receiptCodes = ['20261129-3-4711-8F2K']
    const sales = [{ ...sale, totalCent: 17_980, lines, receiptCodes }]
    const { results } = await shop.ok('recordSales', { storeId, sales })
    const [{ purchaseId }] = results
    const back = { returnId: 'R-4711', saleId: '4711', tillId: 'till-3', occurredAt: sale.occurredAt }
    await shop.ok('recordReturns', { storeId, returns: [{ ...back, lines: [{ lineId: '1', quantity: 1 }] }] })
    const { database } = shop.cloud.db
    const { tenant } = await database.reads.selectFrom('store').select('tenant').executeTakeFirstOrThrow()
    const occurred_ms = shop.cloud.platform.clock.wall()
    await database.write(async (db) => {
      for (const type of ['protection.action.completed', 'protection.authorization.denied'] as const) {
        const event = {
          type,
          eventId: `evt_${type}`,
          occurredAt: new Date(occurred_ms).toISOString(),
          storeId,
          purchaseId,
          protectionAction: 'authorize_exit',
          ...(type === 'protection.authorization.denied' && { reason: 'already_redeemed' }),
        }
        const row = { event_id: event.eventId, tenant, store_id: storeId, type, purchase_id: purchaseId }
        const times = { occurred_ms, processed_ms: occurred_ms, position: 0 }
        await db
          .insertInto('protection_event')
          .values({ ...row, ...times, body: JSON.stringify(event) })
          .execute()
      }
    })
    const text = await get(`/console/purchases?purchase=${purchaseId}`)
    for (const shown of [
      'Goods came back',
      'sold at till till-3',
      'Carried out',
      'Not let through',
      'the right was already used',
    ])
      expect(text).toContain(shown)
    for (const shown of ['Partly returned', '1 came back', 'Came back so far: goods for €89.90', `1 × ${name}`])
      expect(text).toContain(shown)
    // What is on the receipt and the goods finds it: number, code, EAN, name, tag, or the day with the total.
    const day = dayOf(shop.cloud.platform.clock.wall())
    const found = async (query: string) =>
      (await get(`/console/purchases?${query}`)).includes(`href="/console/purchases?purchase=${purchaseId}"`)
    const named = ['4711', purchaseId.slice(-6), ...receiptCodes, ean, name.split(' ')[0], epc]
    for (const each of named)
      expect([each, await found(new URLSearchParams({ purchase: each }).toString())]).toEqual([each, true])
    expect([await found(`day=${day}&amount=179,80`), await found('amount=179,80')]).toEqual([true, true])
    expect([await found('purchase=20261129-3-4711-8F2L'), await found('amount=1,00')]).toEqual([false, false])
    for (const not of [
      'Refunded',
      'refunded already',
      'by untag itself',
      'by a program',
      'Tag released',
      'Release refused',
    ])
      expect(text).not.toContain(not)
  })

  it('purchases: takes back one of three pieces of a till’s sale, found by its tag, and then the rest', async () => {
    const { storeId } = shop
    const [{ ean }] = shop.products
    const epcs: string[] = []
    for (let n = 0; n < 3; n++) epcs.push((await shop.newItem(shop.products[0])).epc)
    const lines = [{ ean, quantity: 3, priceUnit: 8_990, vat: 19, epcs }]
    const sale = { saleId: '4712', tillId: 'till-3', occurredAt: new Date().toISOString(), lines }
    await shop.ok('recordSales', { storeId, sales: [sale] })
    const found = await get(`/console/purchases?purchase=${epcs[1]}`)
    const [, purchaseId = ''] = /href="\/console\/purchases\?purchase=(pur_\w+)"/.exec(found) ?? []
    const opened = await get(`/console/purchases?purchase=${purchaseId}`)
    const [, line = ''] = /name="line" value="(lin_\w+)"/.exec(opened) ?? []
    const path = `/console/purchases?purchase=${purchaseId}&confirm=lines&line=${line}&quantity-${line}=1`
    const asked = await get(path)
    for (const text of ['Take back goods for €89.90?', 'pay it back at the till', 'go back on sale'])
      expect(asked).toContain(text)
    const back = { purchaseId, storeId, lines: `${line}:1`, _form: formId('takeBack', {}) }
    const status = async () =>
      Promise.all(epcs.map(async (epc) => (await shop.ok('fetchProtectedItem', { storeId, epc })).itemStatus))
    const wrong = await post(path, 'takeBack', { ...back, [`tags-${line}`]: '3034257BF7194E4000FFFFF1' })
    expect([wrong.status, await status()]).toEqual([409, ['paid', 'paid', 'paid']])
    const sent = await post(path, 'takeBack', { ...back, [`tags-${line}`]: epcs[1] ?? '', resellable: 'yes' })
    expect([sent.status, sent.location]).toEqual([303, `/console/purchases?purchase=${purchaseId}`])
    expect(await status()).toEqual(['paid', 'sellable', 'paid'])
    await post(`/console/purchases?purchase=${purchaseId}&confirm=whole`, 'takeBack', { purchaseId, storeId })
    expect(await status()).toEqual(['returned', 'sellable', 'returned'])
    expect(await get(`/console/purchases?purchase=${purchaseId}`)).toContain('All of these goods came back')
  })

  it('approvals: lists baskets that wait, and records the user who approves or refuses', async () => {
    const waiting = async () =>
      (await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, awaitingApproval: true })).purchases
    const [first, second] = await waiting()
    expect(await waiting()).toHaveLength(2)
    const { productId } = first.items[0]
    await shop.ok('updateProduct', { storeId: shop.storeId, productId, flags: { requiresHumanVerification: true } })
    const text = await get('/console/approvals', { role: 'associate' })
    await shop.ok('updateProduct', { storeId: shop.storeId, productId, flags: { requiresHumanVerification: false } })
    for (const { name } of first.items) expect(text).toContain(name)
    expect(text).toMatch(/Age check[^]*Spot check|Spot check[^]*Age check/)
    expect(text).toMatch(/<\/strong> <span class="badge warn">Age check/)
    for (const [action, basket] of [['approve', first] as const, ['refuse', second] as const]) {
      const sent = await post('/console/approvals', action, { purchaseId: basket.transactionId }, { role: 'associate' })
      expect(sent.status).toBe(303)
    }
    const rows = await shop.cloud.db.database.reads
      .selectFrom('purchase')
      .select(['purchase_id', 'approval', 'approved_by'])
      .where('approval', 'is not', null)
      .execute()
    const byId = Object.fromEntries(rows.map((row) => [row.purchase_id, [row.approval, row.approved_by]]))
    expect([byId[first.transactionId], byId[second.transactionId]]).toEqual([
      ['approved', 'usr_1'],
      ['refused', 'usr_1'],
    ])
    expect(await get('/console/approvals')).toContain('No basket waits for a check')
  })

  it('approvals: a key must name who checked the basket', async () => {
    const { status, body } = await shop.call('approveCheckout', { transactionId: 'pur_x' })
    expect([status, body.details?.[0]?.path]).toEqual([400, 'operatorId'])
  })

  it('help: shows the chat, answers it and closes it', async () => {
    const list = await get('/console/help', { role: 'viewer' })
    expect(list).toContain('Gibt es das Hemd in L?')
    const requestId = /request=(hlp_\w+)/.exec(list)![1]!
    const path = `/console/help?request=${requestId}`
    expect(await get(path, { role: 'viewer' })).not.toContain('name="message"')
    const message = 'Ja, in Blau & Weiß.'
    expect(await post(path, 'answer', { requestId, message })).toMatchObject({ status: 303, location: path })
    expect(await get(path)).toContain('Ja, in Blau &amp; Weiß.')
    expect((await post(path, 'answer', { requestId })).status).toBe(400)
    expect(await post(path, 'close', { requestId })).toMatchObject({ status: 303, location: '/console/help' })
    const { requests } = await shop.ok('fetchAssistanceRequests', { storeId: shop.storeId })
    expect(requests[0]).toMatchObject({ status: 'closed', messages: [{}, { author: 'staff', text: message }] })
    expect((await post(path, 'answer', { requestId, message }, { role: 'viewer' })).status).toBe(403)
  })

  it('alarms: calls help after a question, shows it as urgent, and corrects a recorded cause', async () => {
    const path = '/console/alarms'
    const fields = { eventId: 'evt_alarm' }
    expect(await get(path)).toContain('Call colleagues to this gate?')
    expect((await post(path, 'help', fields, { role: 'associate' })).status).toBe(303)
    const called = await get(path)
    expect(called).not.toContain('Call colleagues to this gate?')
    const help = /\/console\/help\?request=hlp_\w+/.exec(called)![0]
    expect(await get('/console/stock')).toMatch(/id="waiting-side-console-help" class="waits alarm"/)
    expect(await get('/console/help')).toMatch(/Alarm: [^<]+<\/strong> <span class="badge alarm">Urgent/)
    expect(await get(help)).toContain('Petra Lindner needs help at an alarm.')
    expect((await post(path, 'dispose', { ...fields, disposition: 'real' }, { role: 'associate' })).status).toBe(303)
    const recorded = await get(`${path}?cause=real`)
    expect(recorded).toContain('>Change</button>')
    // A cause that another person records changes the table and the numbers of the filter without a reload.
    expect(recorded).toMatch(/<div id="alarm-history"[^>]*data-live[^>]*>[^]*<h2>Recorded alarms[^]*>Change<\/button>/)
    expect(recorded).toMatch(/<div id="alarm-figures"[^>]*hx-select-oob="#alarms-found,/)
    expect(recorded).toContain('<span id="alarms-found">Found: ')
    // A second guard still sees the alarm as new.
    const asked = { ...fields, disposition: 'phantom', _form: formId('dispose', fields) }
    const late = await post(path, 'dispose', { ...asked, seen: 'none' }, { role: 'associate' })
    expect(late.status).toBe(409)
    expect(late.text).toContain('A colleague has recorded a cause in the meantime.')
    // The goods, the first cause and its person stand above the question, and all of them above the lists.
    const parts = /id="rejected-cause">Unknown tag<[^]*So far: Theft · Petra Lindner[^]*not saved[^]*id="alarm-figures"/
    expect(late.text).toMatch(parts)
    expect(late.text.match(/name="recoveredValue" id="value-evt_alarm"|id="value-evt_alarm"/g)).toHaveLength(1)
    const seen = /name="seen" value="(\d{4}-[^"]+)"/.exec(late.text)?.[1] ?? ''
    expect(
      (await post(path, 'dispose', { ...fields, disposition: 'phantom', seen }, { role: 'associate' })).status,
    ).toBe(303)
    expect(await get(path)).toMatch(/Before that: Theft · Petra Lindner · /)
    expect(await get(`${path}?cause=real`)).not.toContain('>Change</button>')
  })

  it('alarm: shows what happened and who decided what, from the list to its page', async () => {
    expect(await get('/console/alarms')).toContain('href="/console/alarms/evt_alarm"')
    const text = await get('/console/alarms/evt_alarm', { role: 'associate' })
    expect(text).toMatch(/What happened[^]*Unpaid goods left[^]*Theft[^]*Petra Lindner[^]*False alarm[^]*Petra Lindner/)
    expect(text).toContain('E28011700000020000000001')
    const corrected = { eventId: 'evt_alarm', disposition: 'staff_error' }
    const { status, location } = await post('/console/alarms/evt_alarm', 'dispose', corrected, { role: 'associate' })
    expect([status, location]).toEqual([303, '/console/alarms/evt_alarm'])
    expect(await get('/console/alarms/evt_alarm')).toMatch(/False alarm[^]*Staff carried goods/)
    expect(await get('/console/alarms/evt_of_nobody')).toContain('This store has no such alarm')
  })

  it('alarms: shows those of chosen days, gate and cause, with their number, and as a file', async () => {
    const path = '/console/alarms'
    const day = dayOf(shop.cloud.platform.clock.wall())
    // The alarm may have been before midnight.
    const from = dayOf(shop.cloud.platform.clock.wall() - 3_600_000)
    const shown = `${path}?from=${from}&to=${day}&cause=staff_error`
    expect(await get(shown)).toMatch(/Found: 0 waiting, 0 in progress, 1 recorded/)
    expect(await get(`${path}?cause=real`)).toMatch(/Found: 0 waiting, 0 in progress, 0 recorded/)
    for (const none of ['from=2999-01-01', 'to=2001-01-01', 'gate=dev_other'])
      expect(await get(`${path}?${none}`)).toContain('No recorded alarm fits')
    for (const wrong of ['from=2026-02-31', 'to=x']) expect(await get(`${path}?${wrong}`)).toContain('1 recorded')
    const href = /href="([^"]+&amp;file)"/.exec(await get(shown))![1]!.replaceAll('&amp;', '&')
    const [head, row, ...rest] = (await get(href)).split('\r\n')
    expect(head).toMatch(/^"Time","State","Cause"/)
    expect(row).toMatch(/^"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d","Recorded","Staff carried goods","Unknown tag",,,/)
    expect(rest).toEqual([''])
    const german = await app.request(href, { headers: { ...viewerOf(shop), 'accept-language': 'de' } })
    const bytes = Buffer.from(await german.arrayBuffer())
    expect(bytes.toString()).toMatch(/^\uFEFF"Zeit";"Zustand"[^]*"Festgehalten";"Personal trug die Ware"/)
  })

  it('alarms: limits the lists, and one cause for many, to a gate and a time of day', async () => {
    const { storeId, devices } = shop
    // 14:05 and 15:05 of a winter day on the clock of the store.
    const alarm = { type: 'protection.exception.raised', reason: 'gate_alarm', storeId }
    const raise = (eventId: string, occurredAt: string, deviceId: string, n: number) => {
      const epc = `E2801170000002000000${(0x7700 + n).toString(16)}`
      return { ...alarm, eventId, occurredAt, deviceId, epc, ...(n === 30 && { emergency: true }) }
    }
    const deviceId = devices.exit_gate
    const events = [
      ...Array.from({ length: 25 }, (_, n) => raise(`evt_at_two_${n}`, '2026-11-05T13:05:00.000Z', deviceId, n)),
      raise('evt_at_three', '2026-11-05T14:05:00.000Z', deviceId, 30),
    ]
    await shop.ok('reportProtectionEvents', { events })
    const day = 'from=2026-11-05&to=2026-11-05'
    const hour = `${day}&fromTime=14:00&toTime=14:59&gate=${deviceId}`
    for (const [query, count] of [
      [day, 26],
      [hour, 25],
      [`to=2026-11-05&fromTime=14:00&toTime=14:04`, 0],
      [`from=2026-11-05&fromTime=14:05&toTime=14:05`, 25],
      [`${day}&fromTime=15:00`, 1],
      [`${day}&fromTime=14:00&toTime=14:59&gate=dev_other`, 0],
      [`${day}&fromTime=24:00&toTime=1`, 26],
    ] as const)
      expect([query, await get(`/console/alarms?${query}`)]).toEqual([
        query,
        expect.stringContaining(`Found: ${count} waiting`),
      ])
    // An alarm of an emergency has a mark in the list and on its page.
    const ofFire = await get(`/console/alarms?${day}&fromTime=15:00`)
    expect(ofFire.match(/During an emergency/g)).toHaveLength(1)
    expect(await get('/console/alarms/evt_at_three')).toContain('During an emergency')
    const text = await get(`/console/alarms?${hour}`)
    expect(text).not.toContain('During an emergency')
    // The rest is a page further, with the same choice. The gate of a card is a link that keeps the hour.
    const older = /href="([^"]*older=[^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    expect([
      text.includes('New alarms appear by themselves'),
      (await get(older)).includes('New alarms appear'),
    ]).toEqual([true, false])
    expect((await get(older)).match(/data-alarm="evt_at_two_\d+"/g)).toHaveLength(5)
    const link = `/console/alarms?from=2026-11-05&amp;fromTime=14%3A00&amp;to=2026-11-05&amp;toTime=14%3A59&amp;gate=${deviceId}`
    expect(text).toContain(`href="${link}"`)
    const asked = Object.fromEntries(
      [...text.matchAll(/name="(raisedFrom|raisedUntil|deviceId|until)" value="([^"]+)"/g)].map((each) => [
        each[1]!,
        each[2]!,
      ]),
    )
    expect(Object.keys(asked).toSorted()).toEqual(['deviceId', 'raisedFrom', 'raisedUntil', 'until'])
    const { status } = await post(`/console/alarms?${hour}`, 'disposeAll', { ...asked, disposition: 'phantom' })
    expect(status).toBe(303)
    expect(await get(`/console/alarms?${day}`)).toContain('Found: 1 waiting, 0 in progress, 25 recorded')
    await shop.ok('disposeAlarm', { eventId: 'evt_at_three', disposition: 'phantom', operatorId: 'op-1' })
  })

  it('purchase: leads to the alarms of its goods', async () => {
    const { storeId, products } = shop
    const { epc } = await shop.newItem(products[0])
    const { transactionId } = await shop.buy([{ ean: products[0].ean, quantity: 1, epcs: [epc] }])
    const occurredAt = new Date(shop.cloud.platform.clock.wall()).toISOString()
    const deviceId = shop.devices.exit_gate
    const alarm = { eventId: 'evt_paid', type: 'protection.exception.raised', reason: 'gate_alarm', occurredAt }
    await shop.ok('reportProtectionEvents', { events: [{ ...alarm, storeId, deviceId, epc }] })
    expect(await get(`/console/purchases?purchase=${transactionId}`)).toContain('href="/console/alarms/evt_paid"')
    expect(await get('/console/alarms/evt_paid')).toContain(`href="/console/purchases?purchase=${transactionId}"`)
    const device = await get(`/console/agents/${deviceId}`, { role: 'viewer' })
    // The dots of an open alarm and of a recorded one differ, on both pages.
    const dotsOf = async (path: string) =>
      (await get(path)).match(/<li class="(?:alarm|plain)">(?=<div><strong><a href="\/console\/alarms\/evt_paid)/g)
    const shownOn = [`/console/agents/${deviceId}`, `/console/purchases?purchase=${transactionId}`]
    for (const path of shownOn) expect(await dotsOf(path)).toEqual(['<li class="alarm">'])
    expect(device).toContain('Unpaid goods left')
    expect(device).not.toContain('href="/console/alarms/evt_paid"')
    expect(await get(`/console/agents/${deviceId}`)).toContain('href="/console/alarms/evt_paid"')
    await shop.ok('disposeAlarm', { eventId: 'evt_paid', disposition: 'phantom', operatorId: 'op-1' })
    for (const path of shownOn) expect(await dotsOf(path)).toEqual(['<li class="plain">'])
  })

  it('alarms: say of recalled and held goods that they stay, whatever receipt fits', async () => {
    const { storeId, products, devices } = shop
    const occurredAt = new Date(shop.cloud.platform.clock.wall()).toISOString()
    const report = async (eventId: string, fields: Json) => {
      const { epc } = await shop.newItem(products[0])
      await shop.buy([{ ean: products[0].ean, quantity: 1, epcs: [epc] }])
      const alarm = { eventId, type: 'protection.exception.raised', reason: 'gate_alarm', occurredAt }
      const event = { ...alarm, storeId, deviceId: devices.exit_gate, epc, ...fields }
      await shop.ok('reportProtectionEvents', { events: [event] })
      const text = await get(`/console/alarms/${eventId}`)
      await shop.ok('disposeAlarm', { eventId, disposition: 'phantom', operatorId: 'op-1' })
      return text
    }
    const recalled = await report('evt_recalled', { detail: 'siren: recalled; the item is exception_hold' })
    expect(recalled).toContain('Recalled: the goods stay here, even if they are paid')
    const held = await report('evt_held', { itemStatus: 'exception_hold' })
    expect(held).toContain('On hold: the goods stay here')
    for (const text of [recalled, held]) expect(text).not.toContain('is on a receipt of')
  })

  it('navigation: counts what waits, and live parts refresh the counts', async () => {
    expect(pages.filter(({ navigation }) => navigation?.tasks).map(({ path }) => path)).toEqual(COUNTED_PAGES)
    const { tasks } = await shop.ok('fetchOpenTasks', { storeId: shop.storeId })
    const orders = tasks.find(({ kind }: { kind: string }) => kind === 'order').count
    expect(orders).toBeGreaterThan(0)
    const text = await get('/console/stock')
    expect(text).toContain(
      `<span id="waiting-side-console-orders" class="waits ">${orders} <span class="spoken">waiting`,
    )
    expect(await get('/console/alarms')).toContain('hx-select-oob="#waiting-side-console-alarms,')
  })

  it('hard tags: puts released tags on other goods, and names the refused ones', async () => {
    const { storeId } = shop
    const { products } = await shop.ok('fetchProducts', { storeId, limit: 500, category: 'bekleidung' })
    const [first, second] = products
    const [released, sellable] = ['HT-4711', 'HT-4712']
    const items = [released, sellable].map((tagId) => ({ tagId, ean: first.ean }))
    await shop.ok('registerProtectedItems', { storeId, items })
    await shop.ok('updateItemStatus', { storeId, tagId: released, itemStatus: 'paid' })
    const { deviceId } = await shop.ok('registerDevice', { storeId, deviceType: 'self_checkout_detacher' })
    const { replayProtectedNonce } = await shop.ok('verifyProtectedItem', {
      deviceId,
      protectionAction: 'detach_hard_tag',
      tagId: released,
    })
    await shop.ok('redeemProtectionAuthorization', {
      replayProtectedNonce,
      deviceId,
      redemptionId: 'tags-page',
      outcome: 'confirmed',
    })
    expect(await get('/console/tags', { role: 'associate' })).toContain('name="tags"')
    const fields = { ean: second.ean, tags: `${released}\r\n\r\n${sellable}\r\nHT-nobody` }
    const { status, text } = await post('/console/tags', 'reuse', fields, { role: 'associate' })
    expect(status).toBe(200)
    expect(text).toContain('1 tag is on the new goods')
    expect(text).toMatch(/HT-4712[^]*Not released[^]*HT-nobody[^]*does not know the tag/)
    expect(await shop.ok('fetchProtectedItem', { storeId, tagId: released })).toMatchObject({
      itemStatus: 'sellable',
      ean: second.ean,
    })
  })

  it('recalls: a manager starts and ends one, and staff read what to do with the goods', async () => {
    const path = '/console/recalls'
    const { storeId } = shop
    const ean = newEan()
    await shop.ok('insertProduct', { storeId, ean, name: 'Marmelade', price: 3, vat: 7, tagged: true })
    const { epc } = await shop.newItem({ ean }, { lot: 'M-1' })
    const fields = { ean: `(01)0${ean}(10)M-1`, reason: 'Splitter <im> Glas', where: 'store' }
    expect((await post(path, 'recall', fields, { role: 'associate' })).status).toBe(403)
    expect((await post(path, 'recall', { ...fields, reason: '' })).status).toBe(400)
    expect((await post(path, 'recall', fields)).status).toBe(303)
    for (const role of ['manager', 'associate'] as const) {
      const text = await get(path, { role })
      for (const part of ['Marmelade', 'M-1', 'Splitter &lt;im&gt; Glas', '1, of which sold: 0', 'What to do'])
        expect(text).toContain(part)
      expect(text.includes('Recall now')).toBe(role === 'manager')
    }
    expect(await shop.ok('fetchProtectedItem', { storeId, epc })).toMatchObject({ recalled: true })
    const { recalls } = await shop.ok('fetchRecalls', { storeId, state: 'active' })
    const { recallId, storeIds } = recalls[0]
    expect(storeIds).toEqual([storeId])
    expect((await post(path, 'end', { recallId }, { role: 'associate' })).status).toBe(403)
    expect((await post(path, 'end', { recallId })).status).toBe(303)
    expect(await get(path)).toMatch(/Ended recalls[^]*Marmelade, Lot M-1[^]*Ended:/)
    expect(await shop.ok('fetchProtectedItem', { storeId, epc })).not.toHaveProperty('recalled')
  })

  it('exceptions: explains every kind in both languages', () => {
    for (const language of ['en', 'de'] as const) {
      const { exceptionTitles, exceptionSteps } = consoleTexts(language)
      const kinds = EXCEPTION_TEXTS.map(({ code }) => code).toSorted()
      expect(Object.keys(exceptionTitles).toSorted()).toEqual(kinds)
      expect(Object.keys(exceptionSteps).toSorted()).toEqual(kinds)
    }
  })

  it('exceptions: names the agent and the device that one is about', async () => {
    const { database } = shop.cloud.db
    const { tenant } = await database.reads.selectFrom('store').select('tenant').executeTakeFirstOrThrow()
    const about = { tenant, store_id: shop.storeId, detail: '', raised_ms: shop.cloud.platform.clock.wall(), times: 1 }
    const [device] = Object.values(shop.devices) as string[]
    await database.write((db) =>
      db
        .insertInto('protection_exception')
        .values([
          { ...about, exception_id: 'exc_silent', kind: 'agent_silent', subject: 'agt_AusgangNord' },
          { ...about, exception_id: 'exc_gap', kind: 'ledger_gap', subject: 'agt_KassenErdgeschoss/2' },
          { ...about, exception_id: 'exc_absent', kind: 'device_not_ready', subject: device!, device_id: device! },
        ])
        .execute(),
    )
    const text = await get('/console/exceptions')
    const card = (title: string) => new RegExp(`<h2>${title}[^]*?<details>`).exec(text)?.[0]
    expect(card('An agent is not connected')).toMatch(/Agent: <a href="[^"]+">Ausgang Nord</)
    expect(text).toMatch(/Agent: <a href="[^"]+">Kassen Erdgeschoss</)
    expect(text).toMatch(/Device: <a href="\/console\/agents\/dev_\w+">[^<]+</)
    expect(text).not.toContain('without a name')
    await database.write((db) =>
      db
        .deleteFrom('protection_exception')
        .where('exception_id', 'in', ['exc_silent', 'exc_gap', 'exc_absent'])
        .execute(),
    )
  })

  it('exceptions, alarms and today: tell an emergency that runs from a past one, with its last times', async () => {
    const { database } = shop.cloud.db
    const { tenant } = await database.reads.selectFrom('store').select('tenant').executeTakeFirstOrThrow()
    const now = shop.cloud.platform.clock.wall()
    const [device = ''] = Object.values(shop.devices) as string[]
    const about = {
      tenant,
      store_id: shop.storeId,
      detail: '',
      raised_ms: now - 3_600_000,
      times: 2,
      device_id: device,
    }
    const started = { ...about, exception_id: 'exc_began', kind: 'emergency_started', last_ms: now - 60_000 }
    const ended = { ...about, exception_id: 'exc_ended', kind: 'emergency_ended', last_ms: now - 1_800_000 }
    const rows = [
      { ...started, subject: `agt_AusgangNord/${device}` },
      // Another input of the same agent: an agent has one emergency at a time.
      { ...ended, subject: 'agt_AusgangNord/end' },
    ]
    await database.write((db) => db.insertInto('protection_exception').values(rows).execute())
    const time = consoleFormats('en').clock(now - 60_000)
    expect(await get('/console')).toContain('Emergency: an exit is open')
    for (const path of ['/console', '/console/exceptions', '/console/alarms'])
      expect([path, await get(path)]).toEqual([path, expect.stringContaining(`Emergency: active now since ${time}`)])
    expect(await get('/console/exceptions')).toMatch(/An emergency opened the devices<\/h2>[^]*?Active now/)
    // Nothing says that the one that runs is over.
    expect(await get('/console/exceptions')).toContain('An earlier emergency is over')
    await database.write((db) =>
      db.updateTable('protection_exception').set({ last_ms: now }).where('exception_id', '=', 'exc_ended').execute(),
    )
    for (const path of ['/console', '/console/exceptions'])
      expect([path, (await get(path)).includes('ctive now')]).toEqual([path, false])
    // What is over is read when there is time for it: Today no longer names an emergency.
    const today = await get('/console')
    expect(today).not.toContain('Emergency')
    expect(today).toMatch(/Exceptions<\/strong>/)
    expect(await get('/console/exceptions')).toContain(`Last emergency: began ${time}, ended`)
    await database.write((db) =>
      db.deleteFrom('protection_exception').where('exception_id', 'in', ['exc_began', 'exc_ended']).execute(),
    )
  })

  it('exceptions: records who looked at one, with a note', async () => {
    const path = '/console/exceptions'
    expect(await get(path)).toContain('A cabinet was opened without a release')
    expect(
      (await post(path, 'acknowledge', { exceptionId: 'exc_3', note: 'Tür zu' }, { role: 'associate' })).status,
    ).toBe(303)
    expect(await get(path)).not.toContain('A cabinet was opened')
    const done = await get(`${path}?state=acknowledged`)
    for (const text of ['A cabinet was opened', 'Tür zu', 'Done by Petra Lindner']) expect(done).toContain(text)
    expect((await post(path, 'acknowledge', { exceptionId: 'exc_0' }, { role: 'viewer' })).status).toBe(403)
    expect((await post(path, 'resolve', { redemptionId: '1', outcome: 'confirmed' })).status).toBe(404)
    expect(
      (await post(path, 'resolve', { redemptionId: '1', outcome: 'confirmed' }, { role: 'associate' })).status,
    ).toBe(403)
  })

  it('orders: finds an order by its code, moves it through all columns and hands it over', async () => {
    const { storeId, products } = shop
    const items = [{ productId: products[5].productId, quantity: 1 }]
    const { orderId, pickupCode } = await shop.ok('submitClickCollectOrder', { storeId, userId: 'u', items })
    const path = '/console/orders'
    expect(await get(path, { role: 'viewer' })).toContain(orderId.slice(-6))
    for (const status of ['confirmed', 'preparing', 'ready'])
      expect(await post(path, 'move', { orderId, status }, { role: 'associate' })).toMatchObject({
        status: 303,
        location: path,
      })
    const found = await post(path, 'find', { pickupCode })
    expect([found.status, found.location]).toEqual([303, `${path}?order=${orderId}`])
    expect(await get(found.location!)).toContain('Hand over these goods')
    expect((await post(path, 'move', { orderId, status: 'picked_up' })).status).toBe(303)
    expect((await post(path, 'move', { orderId, status: 'ready' })).status).toBe(409)
    const wrong = await post(path, 'find', { pickupCode: 'WRONG', _form: 'find' })
    expect([wrong.status, wrong.text.includes('This did not work')]).toEqual([404, true])
    expect(wrong.text).not.toContain('not saved')
  })

  it('orders: says where the goods wait, and whether they are paid', async () => {
    const { storeId, products } = shop
    const path = '/console/orders'
    const submit = () =>
      shop.ok('submitClickCollectOrder', {
        storeId,
        userId: 'u',
        items: [{ productId: products[5].productId, quantity: 1 }],
      })
    const { orderId } = await submit()
    for (const status of ['confirmed', 'preparing']) await post(path, 'move', { orderId, status })
    const cabinet = (name: string, workflowType: string) =>
      shop.ok('registerDevice', { storeId, deviceType: 'cabinet_unlocker', name, workflowType })
    const [{ deviceId }] = [await cabinet('Fach 7', 'staff_assisted'), await cabinet('Selbstbedienung', 'self_service')]
    const asked = await get(path)
    expect(asked).toContain(`<option value="${deviceId}">Fach 7</option>`)
    expect(asked).not.toContain('Selbstbedienung')
    const move = { orderId, status: 'ready', lockerDeviceId: deviceId, paid: 'yes' }
    expect((await post(path, 'move', { ...move, lockerDeviceId: 'dev_none' })).status).toBe(404)
    expect((await post(path, 'move', move)).status).toBe(303)
    const ready = await get(path)
    for (const text of ['Locker: Fach 7', 'Paid']) expect(ready).toContain(text)
    expect(await shop.call('updateDevice', { deviceId, workflowType: 'self_service' })).toMatchObject({
      status: 409,
      body: { reason: 'locker_in_use' },
    })
    const second = await submit()
    for (const status of ['confirmed', 'preparing']) await post(path, 'move', { orderId: second.orderId, status })
    const taken = await post(path, 'move', { ...move, orderId: second.orderId })
    expect(taken.status).toBe(409)
    for (const each of [orderId, second.orderId])
      expect((await post(path, 'cancel', { orderId: each })).status).toBe(303)
    expect((await shop.call('updateDevice', { deviceId, workflowType: 'self_service' })).status).toBe(200)
  })

  it('stock: finds a product and stores what was counted', async () => {
    const { storeId, products } = shop
    const { productId, name, ean } = products[6]
    const path = `/console/stock?q=${ean}`
    expect(await get(path)).toContain(name)
    const [other] = products
    const counted = (id: string) => `counted-${id}`
    const both = { [counted(productId)]: '17', [counted(other.productId)]: '4' }
    expect((await post('/console/stock', 'set', both, { role: 'associate' })).status).toBe(303)
    const levelOf = async (id: string) => (await shop.ok('fetchStock', { storeId, productId: id })).stock
    expect(await levelOf(productId)).toMatchObject([{ quantity: 17 }])
    expect(await levelOf(other.productId)).toMatchObject([{ quantity: 4 }])
    expect(await get(path)).toContain(`name="before-${productId}" value="17"`)
    // A number that did not change is not sent: the goods may have been sold since the page was drawn.
    await shop.ok('setStock', { storeId, productId, quantity: 16 })
    await post(path, 'set', { [counted(productId)]: '17', [`before-${productId}`]: '17' })
    expect(await levelOf(productId)).toMatchObject([{ quantity: 16 }])
    for (const typed of ['viele', '']) {
      const about = { [counted(productId)]: typed, [`before-${productId}`]: '16', _form: 'set' }
      const rejected = await post(path, 'set', about)
      expect([rejected.status, rejected.text.includes('Enter all pieces')], typed).toEqual([400, true])
    }
    // A form with a wrong number saves none of its numbers.
    const mixed = { [counted(productId)]: '30', [counted(other.productId)]: '1,5' }
    expect((await post('/console/stock', 'set', mixed)).status).toBe(400)
    expect(await levelOf(productId)).toMatchObject([{ quantity: 16 }])
    await shop.ok('setStock', { storeId, productId: other.productId, quantity: null })
  })

  it('refunds: finds a purchase, asks, refunds one line and then the rest', async () => {
    const [first, second] = shop.products
    const items = [first, second].map(({ productId }) => ({ productId, quantity: 1 }))
    const { transactionId: purchaseId, items: bought } = await shop.buy(items)
    const path = `/console/purchases?purchase=${purchaseId}`
    expect(await get('/console/purchases')).toContain(purchaseId)
    expect(
      await get(`/console/purchases?purchase=${encodeURIComponent(`https://x.example/r/${purchaseId}`)}`),
    ).toContain('Which goods came back?')
    const lines = bought[0].itemLineId
    const question = await get(`${path}&line=${lines}&confirm=lines`)
    expect(question).toContain(`Refund €${first.price} now`)
    // The question is in the address. After the answer, the address is that of the purchase, also with htmx.
    expect(question.match(/<form[^>]*method="post"[^>]*purchases[^>]*>/)?.[0]).toContain('hx-replace-url="true"')
    const asked = `${path}&line=${lines}&confirm=lines`
    expect(await post(asked, 'refund', { purchaseId, lines })).toMatchObject({ status: 303, location: path })
    expect((await shop.ok('fetchPurchase', { purchaseId })).refunded).toBe(first.price)
    const refunded = await get(path)
    expect(refunded).toContain('refunded already')
    expect(refunded).toMatch(/What happened.*Paid.*Refunded.*Petra Lindner/s)
    expect((await post(path, 'refund', { purchaseId, lines })).status).toBe(409)
    expect(await get(`${path}&confirm=lines`)).toContain('Choose at least one line')
    expect(await get(path)).toContain('Partly refunded')
    expect(await get(`${path}&confirm=whole`)).toContain('The rest of the purchase is cancelled')
    expect((await post(path, 'refund', { purchaseId })).status).toBe(303)
    expect((await shop.ok('fetchPurchase', { purchaseId })).status).toBe('CANCELLED')
    const other = await shop.buy(items)
    const part = { purchaseId: other.transactionId, lines: [{ itemLineId: other.items[0].itemLineId }] }
    await shop.ok('refundPayment', part)
    expect(await get(`/console/purchases?purchase=${other.transactionId}`)).toContain('· by a program')
    expect(await get('/console/purchases?purchase=pur_00000000000000000000000000')).toContain('No purchase fits')
    const { total, receipt } = await shop.ok('fetchPurchase', { transactionId: purchaseId })
    const day = dayOf(receipt.completedAt)
    const eans = receipt.items.map((item: Json) => item.ean)
    expect(await get(`/console/purchases?purchase=${eans[0]}`)).toContain(purchaseId)
    expect(await get(`/console/purchases?day=${day}&amount=${String(total).replace('.', ',')}`)).toContain(purchaseId)
    expect(await get(`/console/purchases?day=${day}&amount=0,01`)).not.toContain(purchaseId)
    expect(await get('/console/purchases?purchase=HT-nobody')).toContain('No purchase fits')
    // What the list shows: the end of the number, also as it stands there, the goods, and the total alone.
    const [{ name }] = receipt.items
    const searches = [purchaseId.slice(-6), `Purchase …${purchaseId.slice(-6).toLowerCase()}`, name]
    for (const text of searches)
      expect(await get(`/console/purchases?purchase=${encodeURIComponent(text)}`), text).toContain(purchaseId)
    expect(await get(`/console/purchases?amount=${String(total).replace('.', ',')}`)).toContain(purchaseId)
    // What the scanner of a returns desk reads: the address in the QR code, the token, or both with Y and Z swapped.
    const { receipt_token: token } = await shop.cloud.db.database.reads
      .selectFrom('purchase')
      .select('receipt_token')
      .where('purchase_id', '=', purchaseId)
      .executeTakeFirstOrThrow()
    const address = `HTTPS://SHOP.EXAMPLE/R/${token}`
    for (const scanned of [token ?? '', address, address.replace(/[YZ]/g, (c) => (c === 'Y' ? 'Z' : 'Y'))])
      expect(await get(`/console/purchases?purchase=${encodeURIComponent(scanned)}`)).toContain(
        `…${purchaseId.slice(-6)}`,
      )
    expect(await get(`/console/purchases?purchase=${address.slice(0, 60)}`)).toContain('No purchase fits')
    const none = await get('/console/purchases?purchase=000000')
    expect([none.includes('No purchase fits'), none.includes('No purchases yet')]).toEqual([true, false])
    expect(await get('/console/purchases?amount=abc')).toContain('Write the total as 49.90')
    expect((await post(path, 'refund', { purchaseId }, { role: 'associate' })).status).toBe(403)
  })

  it('refunds: asks for the number of pieces and for their tags, and names goods of an earlier refund', async () => {
    const [product] = shop.products
    const items = await Promise.all([1, 2, 3].map(() => shop.newItem(product)))
    const epcs = items.map(({ epc }) => epc)
    const bought = await shop.buy([{ ean: product.ean, quantity: 3, epcs }])
    const purchaseId = bought.transactionId
    const lineId = bought.items[0].itemLineId
    const path = `/console/purchases?purchase=${purchaseId}`
    expect(await get(path)).toContain(`name="quantity-${lineId}"`)
    const question = await get(`${path}&line=${lineId}&quantity-${lineId}=1&confirm=lines`)
    expect(question).toContain(`Refund €${product.price} now`)
    expect(question).toContain(`name="tags-${lineId}"`)
    expect(question).not.toContain('refunded already')
    const lines = `${lineId}:1`
    expect((await post(path, 'refund', { purchaseId, lines })).status).toBe(400)
    expect((await post(path, 'refund', { purchaseId, lines, [`tags-${lineId}`]: epcs[0] ?? '' })).status).toBe(303)
    expect(await get(path)).toContain('1 refunded already')
    const asked = `${path}&line=${lineId}&quantity-${lineId}=1&confirm=lines`
    for (const again of [asked, `${path}&confirm=whole`]) expect(await get(again)).toContain('1 of 3 refunded already')
    const { refund } = await shop.ok('refundPayment', { purchaseId, amount: 5 })
    expect(await get(`${path}&line=${lineId}&quantity-${lineId}=1&confirm=lines`)).toContain('Already paid back: €5.00')
    const named = { purchaseId, lines, refundId: refund.refundId, [`tags-${lineId}`]: epcs[1] ?? '' }
    expect((await post(path, 'refund', named)).status).toBe(303)
    const { refunded } = await shop.ok('fetchPurchase', { purchaseId })
    expect(refunded).toBe(Math.round((product.price + 5) * 100) / 100)
    const { epc = '' } = items[2] ?? {}
    expect(await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).toMatchObject({ itemStatus: 'paid' })
  })

  it('purchases: calls a sale that a till voided so, and a return not', async () => {
    const epcs = [(await shop.newItem(shop.products[0])).epc]
    const sold = (saleId: string) => ({
      saleId,
      tillId: 'till-8',
      occurredAt: new Date().toISOString(),
      lines: [{ ean: shop.products[0].ean, quantity: 1, priceUnit: 4_990, vat: 19, ...(saleId === 'V-1' && { epcs }) }],
    })
    const { storeId } = shop
    const { results } = await shop.ok('recordSales', { storeId, sales: [sold('V-1'), sold('V-2')] })
    const [voided, returned] = results.map((result: Json) => result.purchaseId as string)
    await shop.ok('voidSale', { storeId, saleId: 'V-1', tillId: 'till-8' })
    const back = { returnId: 'R-1', saleId: 'V-2', tillId: 'till-8', occurredAt: sold('').occurredAt }
    await shop.ok('recordReturns', { storeId, returns: [back] })
    const list = await get('/console/purchases')
    const badgeOf = (saleId: string) =>
      new RegExp(`Receipt ${saleId} .*?<span class="badge[^"]*">([^<]*)<`, 's').exec(list)?.[1]
    expect([badgeOf('V-1'), badgeOf('V-2')]).toEqual(['Voided', 'Returned'])
    const page = await get(`/console/purchases?purchase=${voided}`)
    expect(page).toContain('The till voided this sale')
    expect(page).toMatch(/What happened.*Voided/s)
    expect(page).not.toContain('Refunded')
    expect(await get(`/console/purchases?purchase=${returned}`)).toMatch(/What happened.*Goods came back/s)
    const { receipt } = await shop.ok('fetchPurchase', { transactionId: voided })
    const reader = { headers: { 'accept-language': 'en', accept: 'text/html' } }
    const shown = await (await shop.cloud.cloud.app.request(new URL(receipt.receiptUrl).pathname, reader)).text()
    expect(shown).toMatch(/class="stamp">Voided/)
    expect(shown).not.toMatch(/Cancelled|Refunded/)
  })

  it('operators: shows the badge once, with its QR code, and removes a person', async () => {
    const path = '/console/operators'
    const added = await post(path, 'register', { name: 'Ilse Brandt', pin: '998877' })
    expect(added.status).toBe(200)
    expect(added.text).toMatch(/Ilse Brandt[^]*<svg class="qr"|<svg class="qr"[^]*Ilse Brandt/)
    const { operators } = await shop.ok('fetchOperators', { storeId: shop.storeId })
    const { operatorId } = operators.find(({ name }: { name: string }) => name === 'Ilse Brandt')
    expect(await get(path)).not.toContain('class="qr"')
    const rejected = await post(path, 'register', { name: 'A', pin: '12', _form: 'register' })
    expect([rejected.status, rejected.text.includes('value="12"')]).toEqual([400, false])
    const taken = await post(path, 'register', { name: ' ilse  BRANDT', _form: 'register' })
    expect([taken.status, taken.text.includes('This name is in the list already.')]).toEqual([409, true])
    expect((await post(path, 'remove', { operatorId })).status).toBe(303)
    expect(await get(path)).not.toContain('Ilse Brandt')
  })

  it('devices: makes an enrolment code that enrols an agent, with its command, QR code and end, shown once', async () => {
    const made = await post('/console/agents', 'enrol', { name: 'Till 3' })
    const code = /<code>([0-9A-Z]{4}(?:-[0-9A-Z]{4}){6})<\/code>/.exec(made.text)?.[1] ?? ''
    const command = `untag edge enrol --cloud ${shop.cloud.cloud.services.config.baseUrl} --code ${code}`
    expect([made.status, made.text.includes(`>${command}</pre>`), made.text.includes('class="qr"')]).toEqual([
      200,
      true,
      true,
    ])
    const endMs = shop.cloud.platform.clock.wall() + 15 * 60_000
    expect(made.text).toContain(`until ${consoleFormats('en').clock(endMs)}`)
    const rows = await shop.cloud.db.database.reads.selectFrom('enrolment_code').selectAll().execute()
    expect(rows.at(-1)).toMatchObject({
      code_hash: enrolmentCodeHash(code),
      store_id: shop.storeId,
      name: 'Till 3',
    })
    expect(await get('/console/agents')).not.toContain(code)
    expect((await post('/console/agents', 'enrol', {}, { role: 'associate' })).status).toBe(403)
    expect(await get('/console/agents', { role: 'associate' })).not.toContain('Make an enrolment code')
    // A name is optional, and a fault of it appears at its field.
    expect((await post('/console/agents', 'enrol', { name: '' })).status).toBe(200)
    const long = await post('/console/agents', 'enrol', { name: 'x'.repeat(121), _form: 'enrol' })
    expect([long.status, /id="name-error"/.test(long.text)]).toEqual([400, true])
  })

  it('devices: have the names that they have at the agent', () => {
    for (const language of ['de', 'en'] as const) {
      const { deviceTypes } = textsOf(language)
      const atAgent = Object.entries(deviceTypes).map(([type, { name }]) => [type, name])
      expect(consoleTexts(language).agents.types).toEqual(Object.fromEntries(atAgent))
    }
  })

  it('devices: makes a set-up code for a device', async () => {
    const made = await post('/console/agents', 'setup', {})
    expect([made.status, /class="big-code">[0-9A-Z]{4}(-[0-9A-Z]{4}){2}</.test(made.text)]).toEqual([200, true])
    expect((await post('/console/agents', 'setup', {}, { role: 'associate' })).status).toBe(403)
    expect(await get('/console/agents', { role: 'associate' })).not.toContain('Make a set-up code')
  })

  it('devices: shows the health of a device with its reason and time, apart from its use', async () => {
    const { devices } = await shop.ok('fetchDevices', { storeId: shop.storeId })
    const text = await get('/console/agents')
    const rows = text.split('<tr').filter((row) => row.includes('data-label="Health"'))
    const rowOf = (state: string) => {
      const { name } = devices.find((each: Json) => each.health.state === state)
      return rows.find((row) => row.includes(`">${name}</a>`)) ?? ''
    }
    expect(rowOf('ready')).toMatch(/class="badge ok">Ready<[^]*In use/)
    expect(rowOf('absent')).toMatch(/class="badge warn">No answer<[^]*connection refused[^]*since <time[^]*In use/)
    expect(rowOf('degraded')).toMatch(/class="badge warn">Needs attention<[^]*antenna 2 is not connected/)
    const silent = devices.find((each: Json) => each.health.unknownBecause === 'agent_offline')
    expect(rows.find((row) => row.includes(`">${silent.name}</a>`))).toMatch(
      /class="badge plain">Unknown<[^]*Its agent is not connected/,
    )
    expect(rows.filter((row) => row.includes('Its agent is not connected')).join('')).not.toContain('badge ok')
    const { deviceId, name } = devices.find((each: Json) => each.health.state === 'absent')
    expect(text).toContain(`href="/console/agents/${deviceId}"`)
    const page = await get(`/console/agents/${deviceId}`, { role: 'viewer' })
    expect(page).toMatch(
      /Check its power, its cable[^]*<span lang="en">192[^]*connection refused[^]*Kassen Erdgeschoss/,
    )
    expect(page).toContain(name)
    expect(await get('/console/agents/dev_of_nobody')).toContain('This store has no such device')
    // Today names it too, and calls nothing green then.
    const today = await get('/console')
    expect(today).toMatch(
      new RegExp(`${name}</strong>[^]*?class="badge warn">No answer<[^]*?href="/console/agents/${deviceId}"`),
    )
    expect(today).not.toContain('Stations and gates work with the cloud.')
  })

  it('devices: shows where receipts are used up, and moves that after a question', async () => {
    const { storeId } = shop
    const { agentId } = await enrolTestAgent(shop)
    const { name } = (await shop.ok('fetchAgents', { storeId })).agents.find((each: Json) => each.agentId === agentId)
    const homeNow = async () => (await shop.ok('fetchProtectionPolicy', { storeId })).policy.home
    const before = await homeNow()
    const question = 'Use up receipts at another place?'
    const text = await get('/console/agents', { role: 'admin' })
    expect(text).toContain(question)
    expect(text).toContain(`value="${agentId}">${name}<`)
    for (const looks of [{ role: 'manager' }, { role: 'admin', storeId: 'all' }] as const)
      expect(await get('/console/agents', looks)).not.toContain(question)
    await post('/console/agents', 'move', { home: agentId }, { role: 'admin' })
    expect(await homeNow()).toBe(agentId)
    expect(await get('/console/agents')).toContain('Uses up the receipts')
    await post('/console/agents', 'move', { home: before }, { role: 'admin' })
    expect(await homeNow()).toBe(before)
  })

  it('devices: give support a file without secrets, notes and names of staff', async () => {
    const { database } = shop.cloud.db
    const { tenant } = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    const id = 'agt_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
    const detail = `cannot log in to http://admin:geheim1@10.0.0.7, token: abc123, Bearer ${'x'.repeat(30)}`
    const row = { exception_id: 'exc_bundle', tenant, store_id: shop.storeId, kind: 'refused_document' }
    await database.write((db) =>
      db
        .insertInto('protection_exception')
        .values({ ...row, subject: `${id}/keys`, detail, note: 'Frau Petersen weiß mehr', raised_ms: 1 })
        .execute(),
    )
    const text = await get('/console/agents?file')
    await database.write((db) =>
      db.deleteFrom('protection_exception').where('exception_id', '=', 'exc_bundle').execute(),
    )
    const bundle = JSON.parse(text)
    expect(bundle.agents.listed.length).toBeGreaterThan(2)
    expect(bundle.devices.listed.length).toBeGreaterThan(2)
    expect(bundle.rules.version).toBeGreaterThan(0)
    expect(bundle.openExceptions.listed).toContainEqual(
      expect.objectContaining({
        subject: `${id}/keys`,
        detail: 'cannot log in to http://[removed]@10.0.0.7, token: [removed], Bearer [removed]',
      }),
    )
    expect(text).not.toMatch(/geheim1|abc123|Petersen|xxxxx/)
    for (const secret of [shop.key, `${'aB3-'.repeat(12)}=`, 'eyJhbGciOi.eyJpc3Mi.c2ln', 'password=hunter2'])
      expect(withoutSecrets(`see ${secret}`)).not.toContain(secret)
  })

  it('devices: retires one after a question, which viewers do not see', async () => {
    const made = { storeId: shop.storeId, deviceType: 'exit_gate', workflowType: 'automatic_exit', name: 'Tor 9' }
    const { deviceId } = await shop.ok('registerDevice', made)
    const path = `/console/agents/${deviceId}`
    expect(await get(path)).toContain('Retire Tor 9 for good?')
    expect(await get(path, { role: 'viewer' })).not.toContain('Retire')
    expect((await post(path, 'retire', {}, { role: 'associate' })).status).toBe(403)
    expect((await post(path, 'retire', {})).status).toBe(303)
    expect(await get(path)).toMatch(/<dd>Retired/)
    expect(await get(path)).not.toContain('for good?')
  })

  it('closings: shows the latest figures and refuses a second closing of a day', async () => {
    const text = await get('/console/closings', { role: 'viewer' })
    for (const part of ['Closing 1:', 'Value added tax', 'No.']) expect(text).toContain(part)
    expect(text).toContain('<caption class="shown">Value added tax by rate, after refunds</caption>')
    expect(text.match(/class="button[^"]*"(?= (?:data-print|href="\/console\/closings\?file))/g)).not.toContain(
      'class="button main"',
    )
    expect(text).not.toContain('Close the days')
    expect((await post('/console/closings', 'close', {})).status).toBe(409)
    expect(text).toContain('href="/console/closings?closing=1"')
    expect(await get('/console/closings?closing=1', { role: 'viewer' })).toContain('Value added tax')
    expect(await get('/console/closings?closing=99', { role: 'viewer' })).toContain('Closing 1:')
  })

  it('closings: gives a file with all of them, with its texts quoted, to those who may read the page', async () => {
    expect(await get('/console/closings', { role: 'viewer' })).toContain('href="/console/closings?file"')
    const cookie = `untag_console=test/${shop.storeId}`
    const response = await app.request('/console/closings?file', { headers: { [ROLE_HEADER]: 'viewer', cookie } })
    expect(response.headers.get('content-type')).toMatch(/^text\/csv/)
    expect(response.headers.get('content-disposition')).toMatch(
      /^attachment; filename="closings-\d{4}-\d\d-\d\d\.csv"$/,
    )
    const [head = '', ...rows] = (await response.text()).split('\r\n')
    const { closings } = await shop.ok('fetchClosings', { storeId: shop.storeId })
    expect(head).toMatch(/^"No.","First day","Last day","Closed at","Currency","Receipts","Sales"/)
    expect(rows).toHaveLength(closings.length + 1)
    const time = String.raw`\d{4}-\d\d-\d\d`
    expect(rows[0]).toMatch(new RegExp(`^1,"${time}","${time}","${time} [\\d:]{8}","EUR",\\d+,\\d+\\.\\d\\d,`))
    const german = await app.request('/console/closings?file', {
      headers: { ...viewerOf(shop), 'accept-language': 'de' },
    })
    expect(await german.text()).toMatch(/"Nr\.";"Erster Tag"[^]*\r\n1;[^\r]*;"EUR";\d+;\d+,\d\d;/)
    expect((await app.request('/console/closings?file', { headers: { cookie } })).status).toBe(401)
  })
})
