import { z } from 'zod'
import { listDocuments } from '../../shop/catalogue/queries.ts'
import { Product } from '../../shop/catalogue/schema.ts'
import { Id, Limit, Offset, QueryNumber, Success, text } from '../../platform/operations/fields.ts'
import { legacyForm, operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, pageLimits, slicePage, toPage, type PageRequest } from '../../platform/operations/paging.ts'
import { rawList } from '../../platform/operations/raw-json.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { countReceipts, findStoreIds } from '../../platform/stores/queries.ts'
import { countRows, ownStore, storesById } from '../../platform/stores/own-store.ts'
import {
  CONTACT,
  contactOf,
  Store,
  StoreMasterData,
  StoreName,
  toMasterData,
  toStore,
} from '../../platform/stores/schema.ts'
import { knownCaller, rolesFrom, type KnownCaller } from '../../platform/foundation/caller.ts'

const DEFAULT_PAGE = 100
/** Maximum number of names in the response of fetchStoreNames. */
const NAMES_PAGE = 1_000
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
      const { stores: items, total, nextCursor } = await pageOfStores(call, input)
      const receipts = await countReceipts(
        call.db,
        items.map((s) => s.store_id),
      )
      return {
        success: true as const,
        data: items.map((store) => toMasterData(store, receipts.get(store.store_id) ?? 0)),
        total,
        ...(nextCursor && { nextCursor }),
      }
    },
  }),
  async run(call, input) {
    const { stores, total, nextCursor } = await pageOfStores(call, input)
    return { success: true as const, stores: stores.map(toStore), total, ...(nextCursor && { nextCursor }) }
  },
})

/** Filters by ids and places, and reads the stores of the page only: an account may have 10,000. */
async function pageOfStores(call: Call, input: PageRequest & Parameters<typeof findStoreIds>[1]) {
  const ids = await findStoreIds(call, input)
  const { items, nextCursor } = slicePage(ids, (id) => id, pageLimits(input, DEFAULT_PAGE))
  const byId = await storesById(call, items)
  const stores = items.map((id) => byId.get(id)).filter((store) => store !== undefined)
  return { stores, total: ids.length, nextCursor }
}

export const fetchStoreNames = operation({
  name: 'fetchStoreNames',
  area: 'stores',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary: 'Lists names and addresses of the stores of the account, for a choice.',
  description: 'Faster than fetchStores for accounts with many stores. Sorted by creation time.',
  changes: false,
  request: z.strictObject({
    limit: z.int().min(1).max(NAMES_PAGE).optional().describe(`Default: ${NAMES_PAGE}.`),
    cursor: cursorField('st').optional(),
  }),
  response: z.strictObject({
    ...Success,
    stores: z.array(StoreName),
    total: z.int(),
    nextCursor: z.string().optional(),
  }),
  example: { limit: 100 },
  async run(call, input) {
    const { db } = call
    const page = pageLimits(input, NAMES_PAGE)
    const own = storesOf(db, knownCaller(call.caller))
    const rows = await own
      .select(['store_id as storeId', 'trading_name as tradingName', 'street', 'city'])
      .where('store_id', '>', page.after ?? '')
      .orderBy('store_id')
      .limit(page.limit + 1)
      .execute()
    const { items: stores, nextCursor } = toPage(rows, (row) => row.storeId, page)
    const isWhole = page.after === undefined && nextCursor === undefined
    const total = isWhole ? stores.length : await countRows(db, own.select('store_id'))
    return { success: true as const, stores, total, ...(nextCursor && { nextCursor }) }
  },
})

/** The stores that a caller may see. */
function storesOf(db: Db, caller: KnownCaller) {
  const ofTenant = db.selectFrom('store').where('tenant', '=', caller.tenant)
  const bound = caller.kind === 'agent' ? [caller.storeId] : caller.storeIds
  // A list for SQL must not be empty.
  return bound === null ? ofTenant : ofTenant.where('store_id', 'in', [...bound, '-'])
}

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
