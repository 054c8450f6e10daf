import type { Hono } from 'hono'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Role } from '../../../cloud/platform/foundation/caller.ts'
import { consoleOf, CSRF, fillConsole, ROLE_HEADER } from '../../support/console.ts'
import { formBody } from '../../support/form-body.ts'
import { newEan, openShop, type Shop } from '../../support/shop.ts'
import type { Json } from '../../support/cloud.ts'

/** Products, their import, offers and loyalty programs, through the forms of the console. */
let shop: Shop
let app: Hono
let keys = 0
beforeAll(async () => {
  shop = await openShop('sqlite')
  const { accountId } = await fillConsole(shop)
  app = consoleOf(shop, accountId)
})
afterAll(() => shop?.stop())

interface Options {
  role?: Role
  lang?: string
  storeId?: string
}

async function get(path: string, { role = 'manager', lang = 'en', storeId = shop.storeId }: Options = {}) {
  const cookie = `untag_console=test/${storeId}`
  const response = await app.request(path, { headers: { [ROLE_HEADER]: role, cookie, 'accept-language': lang } })
  return response.text()
}

/** Browsers send the empty name of a file that was not chosen; Node.js leaves it out. */
async function asBrowsers(form: FormData) {
  const { body, headers } = await formBody(form)
  const text = Buffer.from(body).toString('latin1')
  const named = text.replace(/(name="(?:file|snapshot)")\r\nContent-Type/, '$1; filename=""\r\nContent-Type')
  return { body: Buffer.from(named, 'latin1'), headers }
}

/** Sends a form: as multipart if it has a file. */
async function post(
  path: string,
  action: string,
  fields: Record<string, string | File>,
  { role = 'manager', lang = 'en', storeId = shop.storeId }: Options = {},
) {
  const frame = { _csrf: CSRF, _action: action, _mode: 'test', _store: storeId, _key: `key_${++keys}`, _form: action }
  const hasFile = Object.values(fields).some((value) => value instanceof File)
  const form = hasFile ? new FormData() : new URLSearchParams()
  for (const [name, value] of Object.entries({ ...frame, ...fields })) form.set(name, value as string)
  const { body, headers } = form instanceof FormData ? await asBrowsers(form) : { body: form, headers: {} }
  const response = await app.request(path, {
    method: 'POST',
    body,
    headers: { ...headers, [ROLE_HEADER]: role, 'accept-language': lang },
  })
  return { status: response.status, location: response.headers.get('location'), text: await response.text() }
}

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
  for (const part of ['Nothing was written', two, '<th scope="row">3</th>']) expect(checked.text).toContain(part)
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

it('shows no form and no link to one to a role that may not change', async () => {
  const [{ productId }] = shop.products
  for (const path of ['/console/products', `/console/products/${productId}`]) {
    const text = await get(path, { role: 'viewer' })
    expect([path, text.includes('name="_action"'), text.includes('/new"')]).toEqual([path, false, false])
  }
})
