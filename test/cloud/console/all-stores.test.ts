import type { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pages } from '../../../cloud/console/pages/registry.ts'
import { consoleOf, fillConsole, ROLE_HEADER } from '../../support/console.ts'
import { newEpc, openShop, type Shop } from '../../support/shop.ts'

describe('pages of the console while all stores are chosen', () => {
  let shop: Shop
  let app: Hono
  let accountId: string
  let names: Record<'own' | 'other', string>
  /** A product that both stores sell. */
  let product: { productId: string; name: string; ean: string }

  beforeAll(async () => {
    shop = await openShop('sqlite')
    accountId = (await fillConsole(shop)).accountId
    app = consoleOf(shop, accountId)
    const { stores } = await shop.ok('fetchStores')
    const nameOf = (id: string) => stores.find((store: { storeId: string }) => store.storeId === id).tradingName
    names = { own: nameOf(shop.storeId), other: nameOf(shop.otherStoreId) }
    product = shop.products[0]
    const { productId } = product
    const storeId = shop.otherStoreId
    await shop.ok('registerProductToStore', { storeId, productId }).catch(() => undefined)
    await shop.ok('setStock', { storeId, productId, quantity: 77 })
    await shop.ok('submitClickCollectOrder', { storeId, userId: 'u', items: [{ productId, quantity: 1 }] })
    await shop.ok('registerDevice', { storeId, deviceType: 'exit_gate', name: 'Tor am Nebeneingang' })
    await shop.ok('closeStoreDay', { storeId })
    for (let n = 0; n < 60; n++) await shop.ok('registerOperator', { storeId, name: `Aushilfe ${n}` })
  })
  afterAll(() => shop?.stop())

  async function get(path: string, language = 'en', of = app): Promise<string> {
    const headers = {
      [ROLE_HEADER]: 'owner',
      cookie: 'untag_console=test/all',
      'accept-language': language,
    }
    return (await of.request(path, { headers })).text()
  }
  /** The cells of the column with the store. */
  const storesIn = (text: string) =>
    [...text.matchAll(/<td data-label="Store"[^>]*>([^<]*)<\/td>/g)].map(([, name]) => name)

  it.each(['/console/orders', '/console/stock', '/console/agents', '/console/closings'])(
    '%s lists all stores, with a column for the store',
    async (path) => {
      const stores = storesIn(await get(path))
      expect(new Set(stores)).toEqual(new Set([names.own, names.other]))
    },
  )

  it('the page of staff lists all stores, 50 people at once, and each of them once', async () => {
    const seen: string[] = []
    let path: string | undefined = '/console/operators'
    const pages: number[] = []
    while (path !== undefined && pages.length < 5) {
      const text: string = await get(path)
      const people = [...text.matchAll(/<strong>((?:Aushilfe|Frau) \w+)<\/strong><span class="sub">Store: ([^<]+)/g)]
      seen.push(...people.map(([, name = '', store = '']) => `${name} in ${store}`))
      pages.push(people.length)
      path = /<a class="button" href="([^"]+)">Show more/.exec(text)?.[1]?.replaceAll('&amp;', '&')
    }
    expect(pages).toEqual([50, 11])
    expect(new Set(seen).size).toBe(61)
    expect(seen).toContain(`Frau Petersen in ${names.own}`)
    expect(seen).toContain(`Aushilfe 59 in ${names.other}`)
  })

  it('a search of the stock says where a product is, and leads to it in its store', async () => {
    const text = await get(`/console/stock?q=${product.ean}`)
    expect(storesIn(text).toSorted()).toEqual([names.own, names.other].toSorted())
    expect(text).toContain(`/console/stock?store=${shop.otherStoreId}&amp;q=${product.ean}`)
    expect(text).toMatch(/>77</)
  })

  it('rows lead into their store, and nothing can be added without one', async () => {
    expect(await get('/console/orders')).toContain(`/console/orders?store=${shop.otherStoreId}`)
    expect(await get('/console/closings')).toContain(`/console/closings?store=${shop.otherStoreId}&amp;closing=1`)
    expect(await get('/console/agents')).toMatch(
      new RegExp(`/console/agents/dev_\\w+\\?store=${shop.otherStoreId}">Tor am Nebeneingang`),
    )
    for (const path of ['/console/agents', '/console/operators'])
      expect([path, (await get(path)).includes('Choose a store to add something')]).toEqual([path, true])
    for (const path of ['/console/stock', '/console/agents', '/console/closings', '/console/operators']) {
      const text = await get(path)
      for (const action of ['enrol', 'setup', 'register', 'set', 'close'])
        expect([path, action, text.includes(`name="_action" value="${action}"`)]).toEqual([path, action, false])
    }
  })

  it.each(pages.filter(({ scope, path }) => scope === 'stores' && !path.includes(':')).map(({ path }) => path))(
    '%s does not speak of this store',
    async (path) => {
      for (const [language, words] of [
        ['de', /(?:dies|Ihr)er Filiale\b/],
        ['en', /\bthis store\b/i],
      ] as const) {
        const text = (await get(path, language)).replaceAll(/<[^>]*>/g, ' ')
        expect([path, words.exec(text)?.[0] ?? 'nothing']).toEqual([path, 'nothing'])
      }
    },
  )

  it.each(['/console/tags', '/console/rules', '/console/products', '/console/integrations'])(
    '%s belongs to one store, and asks which',
    async (path) => {
      const text = await get(path, 'de')
      expect(text).toContain('Wählen Sie eine Filiale')
      for (const storeId of [shop.storeId, shop.otherStoreId]) expect(text).toContain(`href="${path}?store=${storeId}"`)
    },
  )

  it('the page of alarms lists those of all stores, the latest first, and hides other stores', async () => {
    const { address } = await shop.ok('fetchStore', { storeId: shop.storeId })
    const about = { companyName: 'Deichgold GmbH', tradingName: 'Deichgold Kiel', phone: '+49431555010', address }
    const { storeId: third } = await shop.ok('insertStore', about)
    for (let n = 0; n < 15; n++)
      for (const storeId of [shop.storeId, shop.otherStoreId, third]) {
        const event = { type: 'protection.exception.raised', eventId: `${storeId}-${n}`, storeId, reason: 'gate_alarm' }
        const occurredAt = new Date().toISOString()
        await shop.ok('reportProtectionEvents', { events: [{ ...event, occurredAt, epc: newEpc() }] })
      }
    const openIn = async (storeId: string): Promise<string[]> =>
      (await shop.ok('fetchAlarms', { storeId, limit: 50 })).alarms.map(({ eventId }: { eventId: string }) => eventId)
    const shownTo = async (of: Hono) => {
      const shown: string[][] = []
      for (let path: string | undefined = '/console/alarms'; path !== undefined && shown.length < 9;) {
        const text: string = await get(path, 'en', of)
        shown.push([...text.matchAll(/class="card alarm-card alarm" data-alarm="([^"]+)"/g)].map(([, id = '']) => id))
        path = /<a class="button" href="([^"]+)">Show older alarms/.exec(text)?.[1]?.replaceAll('&amp;', '&')
      }
      return shown
    }
    const both = [shop.otherStoreId, third]
    const manager = consoleOf(shop, accountId, undefined, undefined, both)
    for (const [of, storeIds] of [
      [app, [shop.storeId, ...both]],
      [manager, both],
    ] as const) {
      const shown = await shownTo(of)
      const all = (await Promise.all(storeIds.map(openIn))).flat()
      expect(shown[0]).toHaveLength(20)
      expect(shown.flat().toSorted()).toEqual(all.toSorted())
      for (const storeId of storeIds)
        expect(shown.flat().filter((id) => id.startsWith(storeId))).toEqual(
          (await openIn(storeId)).filter((id) => id.startsWith(storeId)),
        )
    }
    expect(await get(`/console/alarms/${third}-0`, 'en', manager)).toContain('<dd>Deichgold Kiel</dd>')
    expect(await get(`/console/alarms/${shop.storeId}-0`, 'en', manager)).not.toContain('alarm-card')
  })
})
