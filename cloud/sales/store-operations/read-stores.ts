import { z } from 'zod'
import { listDocuments } from '../../shop/catalogue/queries.ts'
import { Product } from '../../shop/catalogue/schema.ts'
import { Id, Limit, Offset, QueryNumber, Success, text } from '../../platform/operations/fields.ts'
import { legacyForm, operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, pageLimits, slicePage } from '../../platform/operations/paging.ts'
import { rawList } from '../../platform/operations/raw-json.ts'
import { findStores, countReceipts } from '../../platform/stores/queries.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { CONTACT, contactOf, Store, StoreMasterData, toMasterData, toStore } from '../../platform/stores/schema.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'

const DEFAULT_PAGE = 100
/** Maximum number of products in the response of fetchStore. */
const PRODUCTS_IN_STORE = 100

const Latitude = z.number().min(-90).max(90)
const Longitude = z.number().min(-180).max(180)
const Radius = z.number().positive().max(20_000).describe('km')
const queryNumberOf = (schema: z.ZodNumber) => z.string().transform(Number).pipe(schema)

export const fetchStores = operation({
  name: 'fetchStores',
  area: 'stores',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary: 'Lists the stores of the account, in a city or within a radius.',
  description:
    '`city` ignores case. The centre of `radius` (km) is `lat` and `lng`, or the middle of the stores in `city`.',
  callers: ['secret', 'publishable'],
  changes: false,
  request: z.strictObject({
    city: text(120).optional(),
    radius: Radius.optional(),
    lat: Latitude.optional(),
    lng: Longitude.optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: cursorField('st').optional(),
  }),
  response: z.strictObject({ ...Success, stores: z.array(Store), total: z.int(), nextCursor: z.string().optional() }),
  example: { city: 'Hamburg' },
  get: legacyForm({
    request: z.strictObject({
      city: text(120).optional(),
      radius: queryNumberOf(Radius).optional(),
      lat: queryNumberOf(Latitude).optional(),
      lng: queryNumberOf(Longitude).optional(),
      limit: QueryNumber.pipe(Limit).optional(),
      offset: QueryNumber.pipe(Offset).optional(),
      cursor: cursorField('st').optional(),
    }),
    response: z.strictObject({
      ...Success,
      data: z.array(StoreMasterData),
      total: z.int(),
      nextCursor: z.string().optional(),
    }),
    async run(call, input) {
      const stores = await findStores(call, input)
      const { items, nextCursor } = slicePage(stores, (s) => s.store_id, pageLimits(input, DEFAULT_PAGE))
      const receipts = await countReceipts(
        call.db,
        items.map((s) => s.store_id),
      )
      return {
        success: true as const,
        data: items.map((store) => toMasterData(store, receipts.get(store.store_id) ?? 0)),
        total: stores.length,
        ...(nextCursor && { nextCursor }),
      }
    },
  }),
  async run(call, input) {
    const stores = await findStores(call, input)
    const { items, nextCursor } = slicePage(stores, (s) => s.store_id, pageLimits(input, DEFAULT_PAGE))
    return {
      success: true as const,
      stores: items.map(toStore),
      total: stores.length,
      ...(nextCursor && { nextCursor }),
    }
  },
})

async function firstProducts({ db }: Call, storeId: string) {
  const documents = await listDocuments(db, storeId, { limit: PRODUCTS_IN_STORE, offset: 0, after: undefined })
  return rawList<Product>(documents.map(({ doc }) => doc))
}

export const fetchStore = operation({
  name: 'fetchStore',
  area: 'stores',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary: 'Returns one store.',
  description: 'With `includeProducts` the response contains the first 100 products of the store.',
  callers: ['secret', 'publishable'],
  changes: false,
  request: z.strictObject({ storeId: Id, includeProducts: z.boolean().optional() }),
  response: Store.extend({ ...Success, ...CONTACT, products: z.array(Product).optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  get: legacyForm({
    request: z.strictObject({ storeId: Id }),
    response: StoreMasterData.extend({ ...Success, products: z.array(Product) }),
    async run(call, { storeId }) {
      const store = await ownStore(call, storeId)
      const receipts = await countReceipts(call.db, [storeId])
      const data = toMasterData(store, receipts.get(storeId) ?? 0)
      return { success: true as const, ...data, products: await firstProducts(call, storeId) }
    },
  }),
  async run(call, { storeId, includeProducts }) {
    const store = await ownStore(call, storeId)
    return {
      success: true as const,
      ...toStore(store),
      ...contactOf(store),
      ...(includeProducts && { products: await firstProducts(call, storeId) }),
    }
  },
})
