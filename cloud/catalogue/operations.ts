import { z } from 'zod'
import { knownCaller } from '../operations/caller.ts'
import { invalid, notFound } from '../operations/failure.ts'
import { Id, Limit, Offset, QueryNumber, Success, text } from '../operations/fields.ts'
import { olderForm, operation, type Call } from '../operations/operation.ts'
import { nextOf, pageOf, type PageRequest } from '../operations/paging.ts'
import { ownStore, ownStoreOrOnly } from '../stores/own-store.ts'
import { countProducts, findProduct, listProducts } from './queries.ts'
import { Product, toProduct, type PricedProduct } from './schema.ts'

const DEFAULT_PAGE = 50
const OLDER_DEFAULT_PAGE = 100

async function productPage(call: Call, input: PageRequest & { storeId?: string | undefined; category?: string | undefined }, defaultLimit: number) {
  const store = await ownStoreOrOnly(call, input.storeId)
  const page = pageOf(input, defaultLimit)
  const rows = await listProducts(call.db, store.store_id, { ...page, limit: page.limit + 1 }, input.category)
  const { items, nextCursor } = nextOf(rows, (row) => row.product_id, page)
  return { products: items.map(toProduct), total: await countProducts(call.db, store.store_id, input.category), ...(nextCursor && { nextCursor }) }
}

export const fetchProducts = operation({
  name: 'fetchProducts',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  summary: 'Lists the products of a store.',
  callers: ['secret', 'publishable'],
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    category: text(120).optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: Id.optional(),
  }),
  response: z.strictObject({ ...Success, products: z.array(Product), total: z.int(), nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', limit: 20 },
  get: olderForm({
    request: z.strictObject({ storeId: Id.optional(), category: text(120).optional(), limit: QueryNumber.pipe(Limit).optional(), cursor: Id.optional() }),
    response: z.strictObject({ ...Success, data: z.array(Product), total: z.int(), nextCursor: z.string().optional() }),
    async run(call, input) {
      const { products, ...rest } = await productPage(call, input, OLDER_DEFAULT_PAGE)
      return { success: true as const, data: products, ...rest }
    },
  }),
  async run(call, input) {
    return { success: true as const, ...(await productPage(call, input, DEFAULT_PAGE)) }
  },
})

/** One of productId, id (either), barcode or ean; several must mean the same. */
const ProductNames = z.strictObject({
  productId: Id.optional(),
  id: Id.optional(),
  barcode: text(14).optional(),
  ean: text(14).optional(),
  storeId: Id.optional(),
})

async function namedProduct(call: Call, input: z.output<typeof ProductNames>): Promise<PricedProduct> {
  const { tenant } = knownCaller(call.caller)
  if (input.storeId !== undefined) await ownStore(call, input.storeId)
  const productId = agreeing('productId', input.productId, input.id)
  const ean = agreeing('ean', input.ean, input.barcode)
  if (productId === undefined && ean === undefined) throw invalid('productId', 'is missing: name the product by productId or barcode', 'missing')
  const byId = productId === undefined ? undefined : await findProduct(call.db, tenant, { productId }, input.storeId)
  const byEan = ean === undefined ? undefined : await findProduct(call.db, tenant, { ean }, input.storeId)
  if (byId && byEan && byId.product_id !== byEan.product_id) throw invalid('ean', 'names another product than productId')
  const product = productId === undefined ? byEan : byId
  if (!product || (ean !== undefined && product.ean !== ean)) throw notFound('product')
  return product
}

function agreeing(field: string, a: string | undefined, b: string | undefined): string | undefined {
  if (a !== undefined && b !== undefined && a !== b) throw invalid(field, 'is given twice, with different values')
  return a ?? b
}

export const fetchProduct = operation({
  name: 'fetchProduct',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  summary: 'Answers one product, by its id or its barcode.',
  description: 'With `storeId` at that store’s price, else at the global one.',
  callers: ['secret', 'publishable'],
  changes: false,
  request: ProductNames,
  response: Product.extend(Success),
  example: { barcode: '4012345678901' },
  get: olderForm({
    request: ProductNames,
    response: Product.extend(Success),
    async run(call, input) {
      return { success: true as const, ...toProduct(await namedProduct(call, input)) }
    },
  }),
  async run(call, input) {
    return { success: true as const, ...toProduct(await namedProduct(call, input)) }
  },
})
