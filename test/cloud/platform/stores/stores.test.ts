import fc from 'fast-check'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { COUNTRY_CODES } from '../../../../cloud/platform/stores/store-input.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

const ADDRESS = { street: 'Kai 1', city: 'Kiel', zip: '24103', country: 'DE' }
const NEW_STORE = {
  companyName: 'Deichgold GmbH',
  tradingName: 'Deichgold Kiel',
  address: ADDRESS,
  phone: '+49431555010',
}

onEveryDatabase('stores', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(async () => {
    await shop.stop()
    expect(shop.cloud.errors).toEqual([])
  })
  const masterData = async (storeId: string): Promise<Json> =>
    (await shop.cloud.get(`/api/v1/fetchStore?storeId=${storeId}`, { authorization: `Bearer ${shop.key}` })).body
  const versionOf = async (storeId: string) =>
    (
      await shop.cloud.db.database.reads
        .selectFrom('store')
        .select('document_version')
        .where('store_id', '=', storeId)
        .executeTakeFirstOrThrow()
    ).document_version
  const newStore = async (more: Json = {}): Promise<string> =>
    (await shop.ok('insertStore', { ...NEW_STORE, ...more })).storeId

  it('store every field, in either form', async () => {
    const rest = {
      phone: '+49431555010',
      email: 'kiel@deichgold.example',
      website: 'https://deichgold.example/kiel',
      media: { logo: 'https://cdn.example/logo.png', cover: 'https://cdn.example/cover.jpg' },
      social: { instagram: '@deichgold', facebook: 'deichgold', tiktok: '@deichgold' },
      openingHours: { monday: '09:00-18:30', saturday: '10:00-24:00' },
      pspAccountId: 'acct_4711',
      hasScanAndGo: false,
      hasOffers: true,
      securityTagMode: 'rfid',
      securityTagHint: 'Bitte an die Station.',
      protectionTechnology: 'uhf_rfid',
      deviceType: 'exit_gate',
      workflowType: 'automatic_exit',
    }
    const api = {
      companyName: 'Deichgold GmbH',
      tradingName: 'Deichgold Kiel',
      address: ADDRESS,
      coordinates: { lat: 54.32, lng: 10.13 },
      ...rest,
    }
    const master = {
      name: { legal: 'Deichgold GmbH', trading: 'Deichgold Kiel' },
      address: { street: 'Kai 1', city: 'Kiel', postalCode: '24103', countryCode: 'de' },
      coordinates: { latitude: 54.32, longitude: 10.13 },
      ...rest,
    }
    const one = await newStore(api)
    const answers = [await masterData(one), await masterData((await shop.ok('insertStore', master)).storeId)]
    for (const { id: _id, success: _success, ...answer } of answers) {
      expect(answer).toEqual({
        ...master,
        address: { ...master.address, countryCode: 'DE' },
        mode: 'demo',
        package: 'grow',
        rating: 0,
        receiptCount: 0,
        products: [],
      })
    }
    expect(await shop.ok('fetchStore', { storeId: one })).toMatchObject({
      address: ADDRESS,
      coordinates: { lat: 54.32, lng: 10.13 },
      securityTagMode: 'rfid',
      package: 'GROW',
    })
    // Responses of fetchStore in either form may be sent back.
    const { products: _products, ...back } = await masterData(one)
    await shop.ok('updateStore', { storeId: one, ...back })
    await shop.ok('updateStore', await shop.ok('fetchStore', { storeId: one }))
    expect(await masterData(one)).toEqual(answers[0])
  })

  it.each([
    [{ address: { ...ADDRESS, country: 'XX' } }, 'address.country'],
    [{ address: { ...ADDRESS, postalCode: '99999' } }, 'address.postalCode'],
    [{ address: { ...ADDRESS, countryCode: 'AT' } }, 'address.countryCode'],
    [{ address: { street: 'Kai 1', zip: '24103', country: 'DE' } }, 'address.city'],
    [{ name: { legal: 'Another GmbH', trading: 'Deichgold Kiel' } }, 'name.legal'],
    [{ name: { trading: 'Another' } }, 'name.trading'],
    [{ coordinates: { lat: 54.3, latitude: 54.4, lng: 10 } }, 'coordinates.latitude'],
    [{ coordinates: { lat: 54.3 } }, 'coordinates'],
    [{ coordinates: { lat: 91, lng: 0 } }, 'coordinates.lat'],
    [{ phone: '0431 555010' }, 'phone'],
    [{ phone: undefined }, 'phone'],
    [{ companyName: undefined }, 'companyName'],
    [{ openingHours: { monday: '9-18' } }, 'openingHours.monday'],
    [{ openingHours: { monday: '09:00-25:00' } }, 'openingHours.monday'],
    [{ openingHours: { montag: '09:00-18:00' } }, 'openingHours.montag'],
    [{ website: 'javascript:alert(1)' }, 'website'],
    [{ media: { logo: 'logo.png' } }, 'media.logo'],
    [{ social: { myspace: 'x' } }, 'social.myspace'],
    [{ email: 'nobody' }, 'email'],
    [{ package: 'gold' }, 'package'],
    [{ rating: 5 }, 'rating'],
    [{ securityTagMode: 'laser' }, 'securityTagMode'],
  ])('rejects %j with 400, naming %s', async (wrong, path) => {
    const answer = await shop.call('insertStore', { ...NEW_STORE, ...wrong })
    expect([answer.status, answer.body.details?.[0]?.path]).toEqual([400, path])
  })

  it('publish only tag settings and names to agents', async () => {
    const storeId = await newStore()
    const notify = vi.spyOn(shop.cloud.cloud.services.agents, 'storeChanged')
    const changes: [Json, boolean][] = [
      [{ phone: '+49431555011', openingHours: { sunday: '12:00-16:00' } }, false],
      [{ securityTagMode: 'station' }, true],
      [{ securityTagMode: 'station', tradingName: 'Deichgold Kiel' }, false],
      [{ name: { trading: 'Deichgold am Kai' } }, true],
      [{ workflowType: 'pos_integrated' }, true],
      [{ workflowType: null }, true],
      [{ securityTagHint: 'Hinweis' }, false],
    ]
    let version = await versionOf(storeId)
    for (const [change, isNotified] of changes) {
      notify.mockClear()
      await shop.ok('updateStore', { storeId, ...change })
      if (isNotified) version++
      expect([change, await versionOf(storeId), notify.mock.calls.length]).toEqual([
        change,
        version,
        isNotified ? 1 : 0,
      ])
    }
    notify.mockRestore()
  })

  it('can be changed in part, clear optional fields, and keep system fields', async () => {
    const storeId = await newStore({ email: 'a@deichgold.example', coordinates: { lat: 1, lng: 2 } })
    const before = await masterData(storeId)
    await shop.ok('updateStore', { storeId, address: { city: 'Lübeck' }, email: null, coordinates: null })
    const { email: _email, coordinates: _coordinates, ...unchanged } = before
    expect(await masterData(storeId)).toEqual({ ...unchanged, address: { ...before.address, city: 'Lübeck' } })
    for (const city of ['LÜBECK', ' lübeck ', '\u00A0Lu\u0308beck', 'Lübeck'.normalize('NFD')])
      expect((await shop.ok('fetchStores', { city })).stores.map((s: Json) => s.storeId)).toEqual([storeId])
    for (const [field, value] of Object.entries({
      package: 'prime',
      mode: 'live',
      rating: 4,
      receiptCount: 1,
      id: 'st_x',
    })) {
      const answer = await shop.call('updateStore', { storeId, [field]: value, tradingName: 'Never' })
      expect([field, answer.status, answer.body.details?.[0]?.path]).toEqual([field, 400, field])
    }
    expect((await masterData(storeId)).name.trading).toBe('Deichgold Kiel')
  })

  it('are listed by name for a choice, page by page, and only those of the key', async () => {
    const whole = await shop.ok('fetchStoreNames')
    const { stores } = await shop.ok('fetchStores', { limit: 500 })
    expect(whole).toEqual({
      success: true,
      stores: stores.map(({ storeId, tradingName, address: { street, city } }: Json) => ({
        storeId,
        tradingName,
        street,
        city,
      })),
      total: stores.length,
    })
    const first = await shop.ok('fetchStoreNames', { limit: 1 })
    expect(first.stores).toEqual(whole.stores.slice(0, 1))
    const rest = await shop.ok('fetchStoreNames', { cursor: first.nextCursor })
    expect(rest).toEqual({ ...whole, stores: whole.stores.slice(1) })
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.storeId] })
    expect((await shop.cloud.ok(bound, 'fetchStoreNames', {})).total).toBe(1)
  })

  it('in live mode offer only the features of their package', async () => {
    const admin = await shop.cloud.key('admin', 'live', { account: 'Operator' })
    const live = await shop.cloud.key('secret', 'live')
    const { registrationId } = await shop.cloud.ok(live, 'insertStore', NEW_STORE)
    const { storeId, hasScanAndGo } = await shop.cloud.ok(admin, 'approveStoreRegistration', { registrationId })
    expect(hasScanAndGo).toBe(false)
    expect(await shop.cloud.call(live, 'updateStore', { storeId, hasScanAndGo: true })).toMatchObject({
      status: 403,
      body: { reason: 'package_too_low', requiredUpgrade: 'GROW', currentPackage: 'DISCOVER' },
    })
    await shop.cloud.ok(admin, 'setStorePackage', { storeId, package: 'PRIME' })
    expect((await shop.cloud.ok(live, 'updateStore', { storeId, hasScanAndGo: false })).hasScanAndGo).toBe(false)
    expect((await shop.cloud.ok(admin, 'setStorePackage', { storeId, package: 'grow' })).hasScanAndGo).toBe(false)
    expect(
      (await shop.cloud.get(`/api/v1/fetchStore?storeId=${storeId}`, { authorization: `Bearer ${live}` })).body,
    ).toMatchObject({ mode: 'live', package: 'grow', hasOffers: true })
  })

  it('have a country of this list', async () => {
    expect(COUNTRY_CODES.size).toBe(249)
    const storeId = await newStore()
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.constantFrom(...COUNTRY_CODES), fc.string({ maxLength: 3 })), async (country) => {
        const { status } = await shop.call('updateStore', { storeId, address: { country } })
        expect([country, status]).toEqual([country, COUNTRY_CODES.has(country.toUpperCase()) ? 200 : 400])
      }),
      { numRuns: 60 },
    )
  })
})
