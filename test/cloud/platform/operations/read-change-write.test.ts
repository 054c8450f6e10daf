import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'
import { newEan } from '../../../support/shop.ts'

/**
 * A client reads an object, changes one field and sends the whole object back (ADR requests). Nothing else may change, and
 * no field may be lost.
 */
interface Pair {
  /** Creates an object with all optional fields. Returns the fields that identify it in the update. */
  make(shop: Shop): Promise<Json>
  /** Reads the object as the API returns it. */
  read(shop: Shop, names: Json): Promise<Json>
  /** One change for each call of the update. */
  changes: readonly Json[]
  /** Fields that follow other fields or the time. */
  follows?: readonly string[]
  /** Nested object that the update takes as a whole. */
  inside?: string
}

interface Shop {
  cloud: TestCloud
  key: string
  owner: string
  storeIds: readonly [string, string]
  ok(operation: string, body?: Json, key?: string): Promise<Json>
}

const at = ({ cloud }: Shop, days: number) => new Date(cloud.platform.clock.wall() + days * 86_400_000).toISOString()

const newProduct = async ({ ok, storeIds: [storeId] }: Shop) => {
  const product = await ok('insertProduct', {
    storeId,
    ean: newEan(),
    name: 'Hafermilch',
    price: 1.99,
    oldPrice: 2.49,
    vat: 7,
    category: 'getraenke',
    brand: 'Tannried',
    unit: 'Packung',
    description: 'Ohne Zucker',
  })
  return { storeId, productId: product.productId, ean: product.ean }
}

/** An offer with all fields and with its own price in each store. */
const newOffer = async (shop: Shop) => {
  const { ean } = await newProduct(shop)
  const [storeId, other] = shop.storeIds
  await shop.ok('registerProductToStore', { storeId: other, ean, price: 2.09 })
  const goods = { category: 'getraenke', manufacturer: 'Tannried', unit: 'Packung', description: 'Ohne Zucker' }
  const { offerId } = await shop.ok('createOffer', {
    storeIds: [storeId],
    title: 'Herbstwochen',
    validFrom: at(shop, -1),
    validTo: at(shop, 7),
    products: [
      { ean, price: 1.49, oldPrice: 1.99, ...goods },
      { name: 'Regenschirm', price: 9.99, ...goods },
    ],
    merchantColor: '00AA55',
    tags: ['herbst'],
    imageUrl: 'https://shop.example/herbst.png',
    quantity: 100,
  })
  const { clonedOfferId } = await shop.ok('cloneOffer', {
    offerId,
    targetStoreIds: shop.storeIds,
    priceAdjustments: { [other]: { type: 'fixed', value: 0.1 } },
  })
  return { offerId: clonedOfferId }
}

const without = (object: Json, names: readonly string[]): Json =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))

const bare = (answer: Json): Json => without(answer, ['success'])
const one = (list: Json[], name: string, id: unknown): Json => list.find((each) => each[name] === id) ?? {}

const PAIRS: Record<string, Pair> = {
  updateStore: {
    make: async ({ storeIds: [storeId] }) => ({ storeId }),
    read: async ({ ok }, names) => bare(await ok('fetchStore', names)),
    changes: [{ tradingName: 'Hafenkante Nord' }],
  },
  updateProduct: {
    make: newProduct,
    read: async ({ ok }, { storeId, ean }) => bare(await ok('fetchProduct', { storeId, ean })),
    changes: [{ name: 'Haferdrink' }, { price: 1.89 }, { description: 'Mit Zucker' }],
    follows: ['updatedAt', 'nameLower'],
  },
  updateOffer: {
    make: newOffer,
    read: async ({ ok }, names) => (await ok('fetchOffer', names)).offer,
    changes: [{ title: 'Winterwochen' }, { tags: ['winter'] }, { quantity: 7 }],
  },
  updateLoyaltyProgram: {
    make: async ({ ok, storeIds: [storeId] }) => {
      const program = { storeId, name: 'Punkte', type: 'points', earningMethods: ['store_checkin', 'scan_and_go'] }
      return { programId: (await ok('createLoyaltyProgram', program)).programId }
    },
    read: async ({ ok }, names) => bare(await ok('getLoyaltyProgram', names)),
    changes: [{ name: 'Sterne' }],
    follows: ['updatedAt'],
  },
  updateProtectionPolicy: {
    make: async ({ storeIds: [storeId] }) => ({ storeId }),
    read: async ({ ok }, names) => (await ok('fetchProtectionPolicy', names)).policy,
    changes: [{ requiresManualOverrideAboveValue: 150 }, { requiresStaffForBrand: ['Tannried'] }],
    inside: 'policy',
  },
  updateDevice: {
    make: async ({ ok, storeIds: [storeId] }) => {
      const device = { storeId, deviceType: 'exit_gate', name: 'Ausgang', gateId: 'gate-1', zoneId: 'zone-1' }
      return { deviceId: (await ok('registerDevice', device)).deviceId, storeId }
    },
    read: async ({ ok }, { deviceId, storeId }) =>
      one((await ok('fetchDevices', { storeId })).devices, 'deviceId', deviceId),
    changes: [{ name: 'Ausgang Nord' }, { gateId: null }],
  },
  updateWebhook: {
    make: async ({ ok, storeIds: [storeId] }) => {
      const url = `https://shop.example/${newEan()}`
      const { webhookId } = await ok('registerWebhook', { url, events: ['checkout.completed'], storeId })
      return { webhookId }
    },
    read: async ({ ok }, { webhookId }) => one((await ok('fetchWebhooks')).webhooks, 'webhookId', webhookId),
    changes: [{ events: ['*'] }, { url: 'https://shop.example/new' }, { enabled: false }],
    follows: ['updatedAt', 'disabledReason', 'disabledAt'],
  },
  updateUser: {
    make: async ({ ok, owner, storeIds: [storeId] }) => {
      const email = `petersen.${newEan()}@shop.example`
      const user = { email, name: 'Jana', role: 'manager', storeIds: [storeId] }
      return { userId: (await ok('inviteUser', user, owner)).userId }
    },
    read: async ({ ok, owner }, { userId }) => one((await ok('fetchUsers', {}, owner)).users, 'userId', userId),
    changes: [{ role: 'associate' }, { sandboxOnly: true }],
  },
  updateAccountSettings: {
    make: async () => ({}),
    read: async ({ ok }) => bare(await ok('fetchAccountSettings')),
    changes: [{ acceptUpc: true }],
  },
  updateProfile: {
    make: async () => ({}),
    read: async ({ ok, owner }) => bare(await ok('fetchProfile', {}, owner)),
    changes: [{ name: 'Jana P.' }],
  },
  setStock: {
    make: async (shop) => {
      const { storeId, productId } = await newProduct(shop)
      await shop.ok('setStock', { storeId, productId, quantity: 12 })
      return { storeId, productId }
    },
    read: async ({ ok }, { storeId, productId }) => (await ok('fetchStock', { storeId, productId })).stock[0],
    changes: [{ quantity: 5 }],
    follows: ['updatedAt', 'available'],
  },
}

/** Updates that take ids and a new state, or values that no operation returns. */
const COMMANDS: Record<string, string> = {
  updateItemStatus: 'moves an item',
  updateClickCollectStatus: 'moves an order',
  setStorePackage: 'sets one field of a store, for administrators',
  configurePSP: 'credentials are never returned',
  updateOperator: 'PINs and badges are never returned',
}
const OF_USERS = new Set(['updateUser', 'updateProfile'])

describe('read, change, write', () => {
  it('is tested for each update of the API', () => {
    const updates = [...OPERATION_TABLE.keys()].filter((name) => /^(update|set|configure)[A-Z]/.test(name))
    expect([...Object.keys(PAIRS), ...Object.keys(COMMANDS)].sort()).toEqual(updates.sort())
  })
})

onEveryDatabase('an object of the API', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    const cloud = await startTestCloud(kind)
    const key = await cloud.key('secret', 'live')
    const storeIds = (await liveStores(cloud, key, { count: 2, package: 'PRIME' })) as [string, string]
    const owner = await cloud.user('owner', { mode: 'live' })
    shop = { cloud, key, owner, storeIds, ok: (operation, body, by = key) => cloud.ok(by, operation, body) }
  })
  afterAll(async () => {
    expect(shop.cloud.errors).toEqual([])
    await shop.cloud.stop()
  })

  describe.each(Object.entries(PAIRS))('of %s', (operation, { make, read, changes, follows = [], inside }) => {
    const write = (names: Json, object: Json) => {
      const body = inside === undefined ? { ...object, ...names } : { ...names, [inside]: object }
      const { storeId, ...rest } = body
      const isNamed = names['storeId'] !== undefined || object['storeId'] !== undefined
      return shop.cloud.call(OF_USERS.has(operation) ? shop.owner : shop.key, operation, {
        ...rest,
        ...(isNamed && storeId !== undefined && { storeId }),
      })
    }

    it('is the same after it was sent back', async () => {
      const names = await make(shop)
      const before = await read(shop, names)
      const { status, body } = await write(names, before)
      expect([status, body.error]).toEqual([200, undefined])
      expect(without(await read(shop, names), follows)).toEqual(without(before, follows))
    })

    it.each(changes.map((change) => [JSON.stringify(change), change] as const))(
      'changes only %s',
      async (_text, change) => {
        const names = await make(shop)
        const before = await read(shop, names)
        const { status, body } = await write(names, { ...before, ...change })
        expect([status, body.error]).toEqual([200, undefined])
        const wanted = Object.fromEntries(
          Object.entries({ ...before, ...change }).filter(([, value]) => value !== null),
        )
        expect(without(await read(shop, names), follows)).toMatchObject(without(wanted, follows))
        const added = Object.keys(without(await read(shop, names), follows)).filter(
          (name) => !(name in before) && !(name in change),
        )
        expect(added).toEqual([])
      },
    )
  })

  it('refuses a change of a field that the system sets', async () => {
    const refused = { status: 400, body: { details: [{ code: 'system_field' }] } }
    const { webhookId } = await PAIRS['updateWebhook']!.make(shop)
    const call = (operation: string, body: Json, key = shop.key) => shop.cloud.call(key, operation, body)
    expect(await call('updateWebhook', { webhookId, storeId: shop.storeIds[1] })).toMatchObject(refused)
    const { userId } = await PAIRS['updateUser']!.make(shop)
    expect(await call('updateUser', { userId, email: 'x@shop.example' }, shop.owner)).toMatchObject(refused)
    expect(await call('updateProfile', { name: 'Jana', role: 'viewer' }, shop.owner)).toMatchObject(refused)
    const names = await newOffer(shop)
    const { offer } = await shop.ok('fetchOffer', names)
    offer.products[0].prices[1].discountPrice = 0.01
    expect(await call('updateOffer', { ...names, products: offer.products })).toMatchObject(refused)
  })

  it('sets a changed price of an offer in all stores, and keeps the prices of its other products', async () => {
    const names = await newOffer(shop)
    const { offer } = await shop.ok('fetchOffer', names)
    const [milk, umbrella] = offer.products
    const products = [
      { ...milk, discountPrice: 1.29 },
      { ...umbrella, description: 'Rot' },
    ]
    await shop.ok('updateOffer', { ...names, products })
    const { offer: after } = await shop.ok('fetchOffer', names)
    expect(after.products[0].prices.map((price: Json) => price.discountPrice)).toEqual([1.29, 1.29])
    expect(after.products[1]).toEqual({ ...umbrella, description: 'Rot' })
    // Without `prices`, one price holds in all stores.
    const { prices: _, ...plain } = umbrella
    await shop.ok('updateOffer', { ...names, products: [plain] })
    const { offer: last } = await shop.ok('fetchOffer', names)
    expect(last.products[0].prices.map((price: Json) => price.discountPrice)).toEqual([9.99, 9.99])
  })

  it('describes an offer again after a generated description was sent back with a new end', async () => {
    const names = await newOffer(shop)
    const { offer } = await shop.ok('fetchOffer', names)
    await shop.ok('updateOffer', { ...offer, ...names, validTo: at(shop, 30) })
    const { offer: after } = await shop.ok('fetchOffer', names)
    expect(after.description).not.toBe(offer.description)
  })
})
