import { z } from 'zod'
import { foldText } from '../../../policy/fold-text.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import { eurosOf, Id, Limit, Offset, QueryNumber, Success, text } from '../../platform/operations/fields.ts'
import { legacyForm, operation, type Call } from '../../platform/operations/operation.ts'
import {
  cursorField,
  pageAfter,
  readPageWithinText,
  pageLimits,
  type PageRequest,
} from '../../platform/operations/paging.ts'
import { RawJson, rawList } from '../../platform/operations/raw-json.ts'
import { ownStore, ownStoreOrOnly } from '../../platform/stores/own-store.ts'
import { labelCent, type Label } from '../../../policy/gs1/in-store-code.ts'
import { scannedProduct } from './scanned-product.ts'
import {
  namedProduct,
  countProducts,
  type ProductDocument,
  findDocument,
  findDocumentByEan,
  listDocuments,
} from './queries.ts'
import { toProduct } from './render.ts'
import { Product, PRODUCT_NAMES } from './schema.ts'
import { searchDocuments } from './search.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'

const DEFAULT_PAGE = 50
const OLDER_DEFAULT_PAGE = 100
const DEFAULT_FOUND = 20

async function productPage(
  call: Call,
  input: PageRequest & { storeId?: string | undefined; category?: string | undefined },
  defaultLimit: number,
) {
  const store = await ownStoreOrOnly(call, input.storeId)
  const page = pageLimits(input, defaultLimit)
  // A blank category filters nothing.
  const category = foldText(input.category ?? '') || undefined
  const { items, nextCursor } = await readPageWithinText(
    (limit, last: ProductDocument | undefined) =>
      listDocuments(call.db, store.store_id, { ...pageAfter(page, last?.product_id), limit }, category),
    (row) => row.product_id,
    (row) => row.doc.length,
    page,
    // A product is short enough to read the whole page at once.
    page.limit + 1,
  )
  const total = await countProducts(call.db, store.store_id, category)
  return { products: rawList<Product>(items.map((row) => row.doc)), total, ...(nextCursor && { nextCursor }) }
}

export const fetchProducts = operation({
  name: 'fetchProducts',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary: 'Lists the products of a store.',
  description: 'Sorted by creation time. `total` is exact. Case and blanks of `category` do not matter.',
  callers: ['secret', 'publishable'],
  changes: false,
  mayBeStale: true,
  request: z.strictObject({
    storeId: Id.optional(),
    category: text(120).optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: cursorField('prd').optional(),
  }),
  response: z.strictObject({
    ...Success,
    products: z.array(Product),
    total: z.int(),
    nextCursor: z.string().optional(),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', limit: 20 },
  get: legacyForm({
    request: z.strictObject({
      storeId: Id.optional(),
      category: text(120).optional(),
      limit: QueryNumber.pipe(Limit).optional(),
      offset: QueryNumber.pipe(Offset).optional(),
      cursor: cursorField('prd').optional(),
    }),
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

const OneProduct = z.strictObject({ ...PRODUCT_NAMES, storeId: Id.optional() })
const LabelAnswer = z.strictObject({
  barcode: z.string().describe('The scanned code.'),
  price: z.number().describe('EUR, the price of the labelled goods.'),
  weightGrams: z.int().optional(),
})
const OneProductAnswer = Product.extend({
  ...Success,
  label: LabelAnswer.optional().describe('Present if the barcode is a label that a scale printed.'),
})

/** Returns the product with the price in `storeId`; without `storeId`, with the global price. */
async function oneProduct(call: Call, { storeId, ...asked }: z.output<typeof OneProduct>) {
  if ((asked.productId ?? asked.id) !== undefined && (asked.ean ?? asked.barcode) !== undefined)
    throw invalid('barcode', 'is sent with an id: send exactly one of them')
  const store = storeId === undefined ? undefined : await ownStore(call, storeId)
  const code = asked.ean ?? asked.barcode
  // Fast path for the most frequent request: one code in one store. An exact EAN match wins over a label.
  const isCodeAlone = asked.productId === undefined && asked.id === undefined && (asked.barcode ?? code) === code
  const known = store && code !== undefined && isCodeAlone ? await findDocumentByEan(call.db, store, code) : undefined
  if (known) return new RawJson<z.input<typeof OneProductAnswer>>(known.doc)
  const scanned = store && code !== undefined ? await scannedProduct(call.db, store, code) : undefined
  const label = scanned?.label && scanned.label.value > 0 ? scanned.label : undefined
  if (label && !label.isSound) throw notFound('product')
  const byCode = (name: string | undefined) => (name === code && label ? label.ean : name)
  const product = await namedProduct(call, { ...asked, ean: byCode(asked.ean), barcode: byCode(asked.barcode) })
  if (storeId === undefined)
    return { success: true as const, ...toProduct({ ...product, store_id: null, priced_ms: 0 }) }
  const document = await findDocument(call.db, storeId, product.product_id)
  if (!document) throw notFound('product')
  if (!label || !scanned) return new RawJson<z.input<typeof OneProductAnswer>>(document.doc)
  return {
    success: true as const,
    ...(JSON.parse(document.doc) as Product),
    label: labelAnswer(label, scanned.product.price_cent),
  }
}

function labelAnswer(label: Label, priceCent: number) {
  return {
    barcode: label.barcode,
    price: eurosOf(labelCent(label, priceCent)),
    ...(label.kind === 'weight' && { weightGrams: label.value }),
  }
}

export const fetchProduct = operation({
  name: 'fetchProduct',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary: 'Returns one product by id or barcode.',
  description:
    'Send exactly one of id and barcode. With `storeId` the price is that of the store, else the global price. With `storeId` the operation also ' +
    'reads codes that the store’s scales print; `label` then contains the price of the labelled goods. For ' +
    'goods sold by weight, `price` is the price of a kilogram.',
  callers: ['secret', 'publishable'],
  changes: false,
  request: OneProduct,
  response: OneProductAnswer,
  example: { productId: 'prd_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  get: legacyForm({ request: OneProduct, response: OneProductAnswer, run: oneProduct }),
  run: oneProduct,
})

export const searchProducts = operation({
  name: 'searchProducts',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary: 'Finds products of a store by the beginnings of words.',
  description:
    'Each word of `q` must begin a word of the name or brand, or begin the EAN. A code that a scale printed ' +
    'finds its product, and so does an EAN in any form. Case and accents do not matter. Whole words come first. Returns 20 products unless ' +
    '`limit` is set.',
  callers: ['secret', 'publishable'],
  changes: false,
  mayBeStale: true,
  request: z.strictObject({ storeId: Id.optional(), q: text(120), limit: Limit.optional() }),
  response: z.strictObject({ ...Success, products: z.array(Product) }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', q: 'bio mil' },
  async run(call, { storeId, q, limit }) {
    const store = await ownStoreOrOnly(call, storeId)
    const found = await searchDocuments(call.db, store.store_id, q, limit ?? DEFAULT_FOUND)
    if (found.length > 0) return { success: true as const, products: rawList<Product>(found) }
    const scanned = await scannedProduct(call.db, store, q.trim())
    const document =
      scanned && scanned.label?.isSound !== false
        ? await findDocument(call.db, store.store_id, scanned.product.product_id)
        : undefined
    return { success: true as const, products: rawList<Product>(document ? [document.doc] : []) }
  },
})
