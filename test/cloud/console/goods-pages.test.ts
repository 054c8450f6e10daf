import type { Hono } from 'hono'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { browserOf, consoleOf, fillConsole } from '../../support/console.ts'
import { liveStores } from '../../support/live-store.ts'
import { newEan, openShop, type Shop } from '../../support/shop.ts'
import type { Json } from '../../support/cloud.ts'

/** Products, their import, offers and loyalty programs, through the forms of the console. */
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

const valueOf = (html: string, name: string) => new RegExp(`name="${name}"[^>]*value="([^"]*)"`).exec(html)?.[1] ?? ''

it('products: finds, adds, changes, lists in another store and removes one', async () => {
  const ean = newEan()
  const fields = { ean, name: 'Wollmütze Föhr', price: '24,90', vat: '19', category: 'Mützen', tagged: 'yes' }
  const added = await post('/console/products/new', 'add', fields)
  const path = added.location ?? ''
  expect(path).toMatch(/^\/console\/products\/prd_/)
  const productId = path.split('/').at(-1) ?? ''
  for (const q of ['wollm', ean]) expect(await get(`/console/products?q=${q}`)).toContain(`href="${path}"`)
  const listed = await get('/console/products?category=m%C3%BCtzen')
  expect([...listed.matchAll(/<th scope="row">/g)]).toHaveLength(1)
  expect(listed).toContain('€24.90')

  const shown = await get(path)
  const typed = { ...fields, updatedAt: valueOf(shown, 'updatedAt'), price: '19,9', oldPrice: '24,90', isVegan: 'no' }
  expect((await post(path, 'change', { ...typed, allergens: 'Wolle, Nickel' })).status).toBe(303)
  const stored = () => shop.ok('fetchProduct', { productId, storeId: shop.storeId })
  expect(await stored()).toMatchObject({ price: 19.9, oldPrice: 24.9, isVegan: false, allergens: ['Wolle', 'Nickel'] })
  expect(valueOf(await get(path, { lang: 'de' }), 'price')).toBe('19,90')

  expect((await post(path, 'register', { storeId: shop.otherStoreId, price: '21,50' })).status).toBe(303)
  expect(await get(path)).toContain('€21.50')
  expect((await post(path, 'remove', {})).status).toBe(303)
  const gone = await get(path)
  expect(gone).toContain('does not sell this product')
  expect(gone).not.toContain('value="change"')
  expect(await get('/console/products/prd_none')).toContain('There is no such product')
})

it('products: a second editor sees that the first was faster, with what is stored', async () => {
  const [{ productId }] = shop.products
  const path = `/console/products/${productId}`
  const shown = await get(path)
  const fields = { name: valueOf(shown, 'name'), vat: '19', tagged: 'yes', updatedAt: valueOf(shown, 'updatedAt') }
  await new Promise((resolve) => setImmediate(resolve))
  expect((await post(path, 'change', { ...fields, price: '44' })).status).toBe(303)
  const second = await post(path, 'change', { ...fields, price: '45', updatedAt: '2020-01-01T00:00:00.000Z' })
  expect(second.status).toBe(400)
  expect(second.text).toContain('Someone else has changed this')
  expect(second.text).toContain('44.00')
  expect(valueOf(second.text, 'price')).toBe('45')
  const again = { ...fields, price: '45', updatedAt: valueOf(second.text, 'updatedAt') }
  expect((await post(path, 'change', again)).status).toBe(303)
})

it('products: an error is shown at its field, and a barcode that is sold already says so', async () => {
  const [{ ean }] = shop.products
  const wrong = await post('/console/products/new', 'add', { ean: 'x', name: '', price: 'much', vat: '19' })
  expect(wrong.status).toBe(400)
  for (const name of ['ean', 'name', 'price']) expect(wrong.text).toContain(`id="${name}-error"`)
  const twice = await post('/console/products/new', 'add', { ean, name: 'x', price: '1', vat: '19' })
  expect([twice.status, twice.text.includes('already exists')]).toEqual([409, true])
})

it('products: sets a picture, and refuses another file', async () => {
  const [, { productId }] = shop.products
  const path = `/console/products/${productId}`
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  )
  expect((await post(path, 'picture', { snapshot: new File([png], 'a.png') })).status).toBe(303)
  const { imageUrl } = await shop.ok('fetchProduct', { productId })
  expect(await get(path)).toContain(`src="${new URL(imageUrl).pathname}"`)
  for (const file of [new File(['text'], 'a.png'), new File([], '')]) {
    const refused = await post(path, 'picture', { snapshot: file })
    expect([refused.status, refused.text.includes('id="snapshot-error"')]).toEqual([400, true])
  }
})

const csv = (rows: readonly string[]) => ['ean,name,price,vat', ...rows].join('\n')

it('import: names wrong rows in a check, writes nothing, and imports the corrected rows', async () => {
  const path = '/console/products/import'
  const [one, two] = [newEan(), newEan()]
  const file = new File([csv([`${one},Schal,12.90,19`, `${two},Handschuh,viel,19`])], 'range.csv')
  const checked = await post(path, 'import', { file, what: 'check' })
  expect(checked.status).toBe(200)
  for (const part of ['Nothing was written', two, '<th scope="row">Row 3</th>']) expect(checked.text).toContain(part)
  expect((await shop.ok('searchProducts', { storeId: shop.storeId, q: one })).products).toEqual([])

  const rows = csv([`${one},Schal,12.90,19`, `${two},Handschuh,19.90,19`])
  const clean = await post(path, 'import', { rows, what: 'check' })
  expect(clean.text).toContain(`${two},Handschuh,19.90,19</textarea>`)
  const done = await post(path, 'import', { rows, file: new File([], ''), what: 'write' })
  expect(done.text).toContain('The import is done')
  expect((await shop.ok('searchProducts', { storeId: shop.storeId, q: two })).products).toMatchObject([{ price: 19.9 }])
})

it('import: says what is wrong with a whole file, in both languages', async () => {
  const path = '/console/products/import'
  const german = await post(path, 'import', { rows: 'ean,name,price\n1,2,3', what: 'check' }, { lang: 'de' })
  expect([
    german.status,
    german.text.includes('Eine Spalte fehlt. Vergleichen Sie die erste Zeile mit der Vorlage. (vat)'),
  ]).toEqual([400, true])
  const none = await post(path, 'import', { rows: '', file: new File([], ''), what: 'check' })
  expect([none.status, none.text.includes('Choose a file, or paste rows.')]).toEqual([400, true])
})

it('import: files come only from roles that may import, with the secret of the session, up to the limit', async () => {
  const path = '/console/products/import'
  const file = new File([csv([`${newEan()},x,1,19`])], 'a.csv')
  const { total } = (await shop.ok('fetchProducts', { storeId: shop.storeId })) as Json
  expect((await post(path, 'import', { file, what: 'write' }, { role: 'associate' })).status).toBe(415)
  expect((await post(path, 'import', { file, what: 'write', _csrf: 'other' })).status).toBe(401)
  const large = new File([new Uint8Array(20 * 1024 * 1024 + 65 * 1024)], 'a.csv')
  expect((await post(path, 'import', { file: large, what: 'write' })).status).toBe(413)
  // A page without a file takes no such form.
  expect((await post('/console/products/new', 'add', { file })).status).toBe(415)
  expect((await shop.ok('fetchProducts', { storeId: shop.storeId })).total).toBe(total)
})

it('offers: publishes one for chosen stores, changes its prices, ends and deletes it', async () => {
  const [ean, other] = [newEan(), newEan()]
  const products = [
    { ean, name: 'Regenjacke', priceCent: 8_990 },
    { ean: other, name: 'Südwester', priceCent: 2_990 },
  ]
  const [first = '', second = ''] = await liveStores(shop.cloud, shop.key, { count: 2, products })
  const live = { mode: 'live', storeId: first } as const
  const form = await get(`/console/offers/new?ean=${ean}`, live)
  expect(form).toContain(`>${ean}; </textarea>`)
  const day = valueOf(form, 'validFrom')
  const fields = {
    title: 'Sturmwochen',
    validFrom: day,
    validTo: valueOf(form, 'validTo'),
    [`store-${first}`]: 'yes',
    products: `${ean}; 69,90; 89,90\r\nRegenschirm\t9.99`,
  }
  const added = await post('/console/offers/new', 'add', fields, live)
  const path = added.location ?? ''
  expect(path).toMatch(/^\/console\/offers\/off_/)
  const list = await get('/console/offers?status=active', live)
  expect(list).toContain(`href="${path}"`)
  expect(list).toMatch(/class="bar ok">\d/)
  expect(await get(`/console/offers?month=${day.slice(0, 4) === '2020' ? 2021 : 2020}-01`, live)).toContain(
    'No offer runs in this month',
  )
  expect(await get('/console/offers?status=scheduled', live)).toContain('Create one, or choose another state')

  const shown = await get(path, live)
  const before = Object.fromEntries(
    ['validFrom', 'validTo', 'products'].map((name) => [`before-${name}`, valueOf(shown, `before-${name}`)]),
  )
  const kept = `${ean}; 69.90; 89.90\nRegenschirm; 9.99`
  expect(shown).toContain(`>${kept}</textarea>`)
  const typed = { ...fields, ...before, [`store-${second}`]: 'yes' }
  const changed = { ...typed, title: 'Herbststurm', products: `${kept}\n${other}; 24.90` }
  expect((await post(path, 'change', changed, live)).status).toBe(303)
  const after = await get(path, live)
  for (const part of ['Herbststurm', 'Filiale 1, Filiale 2', '€24.90', 'Südwester']) expect(after).toContain(part)

  const wrong = await post(path, 'change', { ...typed, products: `${kept}\n${newEan()}; 1\nx; viel` }, live)
  expect([wrong.status, wrong.text.includes('Line 4 (x): ')]).toEqual([400, true])
  const unsold = await post(path, 'change', { ...typed, products: `${newEan()}; 1` }, live)
  expect(unsold.text).toContain('Not all chosen stores sell this product')
  const { [`store-${first}`]: _, ...storeless } = fields
  const nowhere = await post('/console/offers/new', 'add', storeless, live)
  expect([nowhere.status, nowhere.text.includes('id="offer-stores-error"')]).toEqual([400, true])

  expect((await post(path, 'end', {}, live)).status).toBe(303)
  expect(await get('/console/offers?status=expired', live)).toContain('Herbststurm')
  expect((await post(path, 'remove', {}, live)).location).toBe('/console/offers')
  expect(await get(path, live)).toContain('There is no such offer')
})

it('offers: a line that is unchanged keeps the price of each branch', async () => {
  const ean = newEan()
  const [first = '', second = ''] = await liveStores(shop.cloud, shop.key, {
    count: 2,
    products: [{ ean, name: 'Seesack', priceCent: 4_990 }],
  })
  const live = { mode: 'live', storeId: first } as const
  const key = await shop.cloud.key('secret', 'live')
  const { offerId } = await shop.cloud.ok(key, 'createOffer', {
    storeIds: [first],
    title: 'Seesäcke',
    validFrom: '2026-01-01T00:00:00Z',
    validTo: '2099-01-01T00:00:00Z',
    products: [
      { ean, price: 39.9 },
      { name: 'Tau', price: 5, manufacturer: 'Reep' },
    ],
  })
  const { clonedOfferId } = await shop.cloud.ok(key, 'cloneOffer', {
    offerId,
    targetStoreIds: [first, second],
    priceAdjustments: { [second]: { type: 'fixed', value: -10 } },
  })
  const path = `/console/offers/${clonedOfferId}`
  const shown = await get(path, live)
  expect(shown).toContain('€29.90: Filiale 2')
  const before = Object.fromEntries(
    ['validFrom', 'validTo', 'products'].map((name) => [`before-${name}`, valueOf(shown, `before-${name}`)]),
  )
  const dates = { validFrom: valueOf(shown, 'validFrom'), validTo: valueOf(shown, 'validTo') }
  const stores = { [`store-${first}`]: 'yes', [`store-${second}`]: 'yes' }
  const lines = `${ean}; 39.90\nTau; 4.50\nAnker; 80`
  const sent = { title: 'Seesäcke', ...before, ...dates, ...stores, products: lines }
  expect((await post(path, 'change', sent, live)).status).toBe(303)
  const { offer } = await shop.cloud.ok(key, 'fetchOffer', { offerId: clonedOfferId })
  const pricesOf = ({ prices }: Json) => prices.map(({ discountPrice }: Json) => discountPrice)
  expect(offer.products.map(pricesOf)).toEqual([
    [39.9, 29.9],
    [4.5, 4.5],
    [80, 80],
  ])
  expect(offer.products[1].manufacturer).toBe('Reep')
  // The days were not changed, so the times stay.
  expect(offer.validFrom).toBe('2026-01-01T00:00:00.000Z')
})

it('loyalty: creates a program, shows its code and figures, and changes it', async () => {
  const fields = { type: 'points', name: 'Hafenpunkte', pointsPerEuro: '1,5', rewards: 'Kaffee; 10\nKuchen\t25' }
  const added = await post('/console/loyalty/new', 'create', { ...fields, 'method-qr_checkin': 'yes' })
  const path = added.location ?? ''
  const programId = path.split('/').at(-1) ?? ''
  const { rewards } = await shop.ok('getLoyaltyProgram', { programId })
  await shop.ok('addLoyaltyPoints', { programId, userId: 'shopper-9', amount: 40 })
  const shown = await get(path)
  for (const part of [
    'src="data:image/png;base64,',
    `untag://loyalty/${shop.storeId}/${programId}`,
    '>Kaffee; 10\nKuchen; 25</',
  ])
    expect(shown).toContain(part)
  expect(shown).toContain('<span class="label">Points: Issued</span><span class="value">40</span>')
  for (const storeId of [shop.storeId, 'all'])
    expect(await get('/console/loyalty', { storeId })).toContain(`href="${path}"`)

  const typed = {
    ...fields,
    updatedAt: valueOf(shown, 'updatedAt'),
    'method-till': 'yes',
    rewards: 'Kuchen; 20\nTee; 5',
  }
  expect((await post(path, 'change', { ...typed, tiers: 'Gold; 500' })).status).toBe(303)
  const stored = await shop.ok('getLoyaltyProgram', { programId })
  expect(stored).toMatchObject({
    isActive: false,
    pointsPerEuro: 1.5,
    earningMethods: ['till'],
    tiers: [{ name: 'Gold' }],
  })
  const idOf = (list: Json[], wanted: string) => list.find(({ name }) => name === wanted)?.['rewardId']
  expect(idOf(stored.rewards, 'Kuchen')).toBe(idOf(rewards, 'Kuchen'))

  const slower = await post(path, 'change', typed)
  expect([slower.status, slower.text.includes('Someone else has changed this')]).toEqual([400, true])
  const wrong = { ...fields, updatedAt: stored.updatedAt, rewards: 'Kaffee; 10\nTee; viel' }
  const refused = await post(path, 'change', wrong)
  expect(refused.text).toContain('id="methods-error"')
  expect(refused.text).toContain('Line 2 (Tee): ')
  expect(await get('/console/loyalty/loy_none')).toContain('There is no such program')
})

it('shows no form and no link to one to a role that may not change', async () => {
  const [{ productId }] = shop.products
  const paths = ['/products', `/products/${productId}`, '/offers', '/loyalty', `/loyalty/${shop.programId}`]
  for (const path of paths.map((each) => `/console${each}`)) {
    const text = await get(path, { role: 'viewer' })
    expect([path, text.includes('name="_action"'), text.includes('/new"')]).toEqual([path, false, false])
  }
})
