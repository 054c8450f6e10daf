import type { Hono } from 'hono'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ERP_SYSTEMS, POS_SYSTEMS } from '../../../cloud/sales/integrations/connector.ts'
import { dayOf } from '../../../cloud/shop/analytics/store-days.ts'
import { PERSONAL_TABLES } from '../../../cloud/sales/customers/personal-tables.ts'
import { consoleTexts } from '../../../cloud/console/texts/catalogue.ts'
import { LANGUAGES } from '../../../policy/page-language.ts'
import { qrPng } from '../../../cloud/platform/foundation/qr-code.ts'
import { PROVIDER_NAMES } from '../../../cloud/sales/payments/providers.ts'
import { browserOf, consoleOf, fillConsole, ROLE_HEADER } from '../../support/console.ts'
import { openShop, type Shop } from '../../support/shop.ts'

/** Stores and customers of the account, through the forms of the console. */
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

/** What the form of the page shows, as a browser sends it. */
const fieldsOf = (html: string) =>
  Object.fromEntries(
    [
      ...html.matchAll(/<input[^>]*name="([^"_][^"]*)"[^>]*value="([^"]*)"/g),
      ...html.matchAll(/<select[^>]*name="([^"_][^"]*)"(?:(?!<\/select>)[^])*?<option value="([^"]*)" selected/g),
    ].map(([, name = '', value = '']) => [name, value]),
  )

/** The message that the next page shows after a form. */
async function toastAfter({ headers }: { headers: Headers }, path: string): Promise<string | undefined> {
  const cookie = headers.getSetCookie().find((each) => each.startsWith('untag_toast='))
  const request = { headers: { [ROLE_HEADER]: 'admin', cookie: cookie?.split(';')[0] ?? '', 'accept-language': 'en' } }
  const text = await (await app.request(path, request)).text()
  return /id="toasts"[^]*?>([^<>]*\w[^<>]*)</.exec(text)?.[1]
}

it('stores: lists and finds them, adds one in test mode, and registers one in live mode', async () => {
  const path = '/console/stores'
  const { stores } = await shop.ok('fetchStores')
  const listed = await get(path)
  for (const { storeId, tradingName } of stores)
    expect(listed).toContain(`href="${path}/${storeId}">${tradingName}</a>`)
  expect(await get(`${path}?city=nirgendwo`)).toContain('No store fits')
  const fields = {
    tradingName: 'Hafenkante Bremen',
    companyName: 'Hafenkante Handels GmbH',
    street: 'Schlachte 8',
    zip: '28195',
    city: 'Bremen',
    country: 'DE',
    phone: '+49421555010300',
  }
  const wrong = await post(path, 'add', { ...fields, zip: '', phone: '0421' })
  expect([wrong.status, wrong.text.includes('id="zip-error"'), wrong.text.includes('id="phone-error"')]).toEqual([
    400,
    true,
    true,
  ])
  expect(wrong.text).toContain('value="Hafenkante Bremen"')
  expect(wrong.text).toMatch(/<option value="DE" selected="">Germany<\/option>/)
  expect(await get(path, { lang: 'de' })).toMatch(/<option value="DE" selected="">Deutschland<\/option>/)
  const added = await post(path, 'add', fields)
  expect([added.status, await toastAfter(added, path)]).toEqual([303, 'The store is added.'])
  expect(await get(`${path}?city=bremen`)).toContain('Hafenkante Bremen')
  expect((await post(path, 'add', fields, { role: 'manager' })).status).toBe(403)
  const submitted = await post(path, 'add', fields, { mode: 'live', storeId: 'all' })
  expect([submitted.status, await toastAfter(submitted, path)]).toEqual([
    303,
    'The store is submitted and waits for its review.',
  ])
  const live = await get(path, { mode: 'live', storeId: 'all' })
  expect(live).toContain('In review')
  expect(await get(path, { mode: 'live', storeId: 'all', lang: 'de' })).toContain('In Prüfung')
})

it('stores: changes only what was changed, so that two people do not undo each other', async () => {
  const path = `/console/stores/${shop.storeId}`
  const shown = await get(path)
  const first = { ...fieldsOf(shown), phone: '+49403334455', monday: '09:00-18:30' }
  const second = { ...fieldsOf(shown), website: 'https://hafenkante.example' }
  expect((await post(path, 'change', first)).status).toBe(303)
  expect((await post(path, 'change', second)).status).toBe(303)
  expect(await shop.ok('fetchStore', { storeId: shop.storeId })).toMatchObject({
    phone: '+49403334455',
    website: 'https://hafenkante.example',
    openingHours: { monday: '09:00-18:30' },
  })
  const spaced = { ...fieldsOf(await get(path)), tuesday: '9:00 - 18:30', friday: '10:00 – 20:00' }
  expect((await post(path, 'change', spaced)).status).toBe(303)
  expect((await shop.ok('fetchStore', { storeId: shop.storeId })).openingHours).toEqual({
    monday: '09:00-18:30',
    tuesday: '09:00-18:30',
    friday: '10:00-20:00',
  })
  const wrong = await post(path, 'change', { ...fieldsOf(await get(path)), tuesday: '9 bis 18' })
  expect([wrong.status, wrong.text.includes('id="tuesday-error"')]).toEqual([400, true])
  expect(wrong.text).toContain('Enter opening and closing time, such as 09:00-18:30.')
  expect((await post(path, 'change', first, { role: 'associate' })).status).toBe(403)
  expect(await get(path, { role: 'viewer' })).toContain('Managers and administrators change')
  expect(await get('/console/stores/st_none')).toContain('There is no such store')
})

it('customers: hands out what is stored of one, and erases it after the id was typed twice', async () => {
  const path = '/console/customers'
  const userId = 'shopper-17'
  const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId })
  const handed = await post(path, 'export', { userId })
  expect(handed.status).toBe(200)
  expect(JSON.parse(handed.text)).toMatchObject({ userId, records: { sessions: [{ sessionId }] } })
  expect(handed.headers.get('content-disposition')).toMatch(
    /^attachment; filename="customer-shopper-17-[\d-]{10}\.json"$/,
  )
  expect(await get(path)).toMatch(/<form[^>]* data-guarded/)
  expect((await post(path, 'export', { userId: '' })).status).toBe(400)
  const once = await post(path, 'erase', { userId, again: '' })
  expect([once.status, once.text.includes('id="again-error"')]).toEqual([400, true])
  for (const [language, text] of [
    ['en', 'The two customer ids differ.'],
    ['de', 'Die beiden Kundennummern sind verschieden.'],
  ] as const)
    expect((await post(path, 'erase', { userId, again: 'x' }, { lang: language })).text).toContain(text)
  const erased = await post(path, 'erase', { userId, again: userId })
  expect([erased.status, erased.text.includes('The data is erased')]).toEqual([200, true])
  expect(erased.text).toContain('Visits with check-in')
  expect(erased.text).not.toContain('outbox_event')
  for (const language of LANGUAGES) {
    const { kinds } = consoleTexts(language).stores.customers
    expect(Object.keys(kinds).toSorted()).toEqual(PERSONAL_TABLES.map(({ table, name = table }) => name).toSorted())
  }
  const unknown = await post(path, 'export', { userId })
  expect([unknown.status, unknown.headers.get('content-disposition')]).toEqual([404, null])
  expect(unknown.text).toContain('Nothing is known of this customer.')
  expect(unknown.text).toContain('value="shopper-17"')
  expect((await post(path, 'export', { userId }, { role: 'manager' })).status).toBe(403)
})

it('stores: refuses a German postal code without 5 digits at its field, and says how a store is closed', async () => {
  const path = '/console/stores'
  const address = { street: 'Schlachte 8', city: 'Bremen', tradingName: 'Nord', companyName: 'Nord GmbH' }
  for (const zip of ['2819', '281951', 'ABCDE']) {
    const refused = await post(path, 'add', { ...address, zip, country: 'DE' }, { lang: 'de' })
    expect([zip, refused.status]).toEqual([zip, 400])
    expect(refused.text).toMatch(/id="zip-error"[^]*Eine deutsche Postleitzahl hat 5 Ziffern/)
    expect(refused.text).toContain(`value="${zip}"`)
  }
  expect((await post(path, 'add', { ...address, zip: '1010', country: 'AT' })).text).not.toContain('zip-error')
  const store = `${path}/${shop.storeId}`
  const changed = await post(store, 'change', { ...fieldsOf(await get(store)), zip: '1' })
  expect([changed.status, changed.text.includes('id="zip-error"')]).toEqual([400, true])
  expect(await get(store)).toMatch(/No button removes a store[^]*href="\/console\/agents"/)
  expect(await get(store, { role: 'manager' })).not.toContain('No button removes a store')
})

it('zones: creates the sign of a place, and shows its QR code to print, in both languages', async () => {
  const path = '/console/help/zones'
  expect(await get('/console/help')).toContain(`href="${path}"`)
  expect(await get('/console/help', { role: 'associate' })).not.toContain(`href="${path}"`)
  expect((await post(path, 'create', { name: '' })).text).toContain('id="name-error"')
  expect((await post(path, 'create', { name: 'Herren' }, { role: 'associate' })).status).toBe(403)
  const { location } = await post(path, 'create', { name: 'Umkleide Süd' })
  const { zones } = await shop.ok('fetchZones', { storeId: shop.storeId })
  const zone = zones.find(({ name }: { name: string }) => name === 'Umkleide Süd')
  expect(location).toBe(`${path}?zone=${zone.zoneId}`)
  const shown = await get(location ?? '', { lang: 'de' })
  expect(shown).toContain(`src="data:image/png;base64,${qrPng(zone.url).toString('base64')}"`)
  expect(shown).toContain(zone.url)
  expect(shown).toMatch(/data-print[^]*Schild drucken/)
  for (const lang of LANGUAGES) expect(shown).toContain(consoleTexts(lang).help.zones.scan)
})

it('operators: an empty field never removes a PIN, only the button for it does', async () => {
  const path = '/console/operators'
  const { storeId } = shop
  const { operatorId } = await shop.ok('registerOperator', { storeId, name: 'Uwe Harms', pin: '471108' })
  const hasPin = async () => {
    const { operators } = await shop.ok('fetchOperators', { storeId })
    return operators.find((each: { operatorId: string }) => each.operatorId === operatorId).hasPin
  }
  for (const pin of ['1234', '']) {
    const refused = await post(path, 'newPin', { operatorId, pin, _form: `newPin ${operatorId}` })
    expect([refused.status, refused.text.includes('Enter 6 to 12 digits.')]).toEqual([400, true])
    expect(refused.text).toContain('The old PIN stops working.')
    expect(await hasPin()).toBe(true)
  }
  expect((await post(path, 'newPin', { operatorId, pin: '123456' })).status).toBe(303)
  expect(await get(path)).toContain('Remove the PIN of Uwe Harms?')
  expect((await post(path, 'removePin', { operatorId })).status).toBe(303)
  expect(await hasPin()).toBe(false)
  expect(await get(path)).not.toContain('Remove the PIN of Uwe Harms?')
})

it('exports: a form downloads the file', async () => {
  const today = dayOf(shop.cloud.platform.clock.wall())
  const fields = { 'f.storeId': shop.storeId, 'f.from': today, 'f.to': today }
  const file = await post('/console/operations/exportSalesData', 'run', fields)
  expect([file.status, JSON.parse(file.text).success]).toEqual([200, true])
  // Without a name the browser would show the JSON in place of the console.
  const nameOf = ({ headers }: { headers: Headers }) => headers.get('content-disposition')
  expect(nameOf(file)).toBe(`attachment; filename="exportSalesData-${today}.json"`)
  const csv = await post('/console/operations/exportSalesData', 'run', { ...fields, 'f.format': 'csv' })
  expect(nameOf(csv)).toBe(`attachment; filename="sales-${today}-${today}.csv"`)
  for (const [format, ending] of Object.entries({ json: 'json', 'json-ld': 'jsonld' })) {
    const sent = { 'f.storeId': shop.storeId, 'f.format': format }
    const events = await post('/console/operations/exportEpcisEvents', 'run', sent)
    expect(nameOf(events)).toBe(`attachment; filename="exportEpcisEvents-${today}.${ending}"`)
  }
})

it('connected systems: asks for the settings of each, keeps no secret in a refused form, and reads at once', async () => {
  const path = '/console/integrations'
  expect(await get(path)).toContain('In test mode no system is used')
  for (const [kind, names] of [
    ['psp', PROVIDER_NAMES],
    ['pos', POS_SYSTEMS],
    ['erp', ERP_SYSTEMS],
  ] as const)
    for (const name of names.filter((each) => kind === 'psp' || each !== 'custom')) {
      const form = await get(`${path}/set-up?kind=${kind}&name=${name}`)
      expect([kind, name, /name="s\.\w+"/.test(form)]).toEqual([kind, name, true])
    }
  expect(await get(`${path}/set-up?kind=pos&name=none`)).toContain('There is no such system')
  const psp = `${path}/set-up?kind=psp&name=stripe`
  const secret = 'sk_test_0123456789abcdef'
  const wrong = await post(psp, 'provider', { kind: 'psp', name: 'stripe', 's.secretKey': secret })
  expect([wrong.status, wrong.text.includes('id="s.webhookSecret-error"'), wrong.text.includes(secret)]).toEqual([
    400,
    true,
    false,
  ])
  const fields = { kind: 'psp', name: 'stripe', 's.secretKey': secret, 's.webhookSecret': 'whsec_0123456789abcdef' }
  expect((await post(psp, 'provider', fields, { role: 'manager' })).status).toBe(403)
  expect((await post(psp, 'provider', fields)).location).toBe(path)
  const shown = await get(path)
  expect(shown).toMatch(/Stripe.*\/notify\/stripe\//s)
  expect(shown).not.toContain(secret)
  const pos = `${path}/set-up?kind=pos&name=generic`
  const connect = {
    kind: 'pos',
    name: 'generic',
    's.baseUrl': 'https://till.example/api',
    's.token': 'token-of-the-shop',
  }
  // People's words in both languages for every setting and its choices.
  for (const lang of LANGUAGES)
    for (const [kind, names] of [
      ['psp', PROVIDER_NAMES],
      ['pos', POS_SYSTEMS],
      ['erp', ERP_SYSTEMS],
    ] as const)
      for (const name of names) {
        const form = await get(`${path}/set-up?kind=${kind}&name=${name}`, { lang })
        const labels = [...form.matchAll(/<label for="s\.(\w+)"[^>]*>([^<]*)/g)]
        expect(
          labels.filter(([, setting = '', label = '']) => label.startsWith(setting)).map(([, each]) => each),
        ).toEqual([])
        for (const [, value, label] of form.matchAll(/<option value="(\w+)"[^>]*>([^<]*)/g))
          expect([name, value, label === value]).toEqual([name, value, false])
      }
  for (const mapping of ['{bad', '{"sku": "no_field"}', '[]']) {
    const refused = await post(pos, 'connect', { ...connect, 's.mapping': mapping }, { lang: 'de' })
    expect([mapping, refused.status]).toEqual([mapping, 400])
    expect(refused.text).toMatch(/id="s\.mapping-error"[^]*Schreiben Sie Paare/)
    expect(refused.text).toContain('value="https://till.example/api"')
    expect(refused.text).toContain(`>${mapping.replaceAll('"', '&quot;')}</textarea>`)
  }
  const read = await post(pos, 'connect', connect)
  expect([read.status, read.text.includes('The system was read')]).toEqual([200, true])
})
