import { z } from 'zod'
import { notFound } from '../foundation/failure.ts'
import { Euros, Id, Success } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import { RawJson } from '../operations/raw-json.ts'
import type { ProductRow } from '../persistence/tables/stores.ts'
import { ownStore } from '../stores/own-store.ts'
import { assertOldPrice, changeProduct, insertIntoStore } from './change-product.ts'
import { assertAcceptable, eanWarning } from './ean.ts'
import { namedProduct, eanOfRequest } from './named-product.ts'
import { eanToStore, endCounting, findDocument, findProduct, listListings } from './queries.ts'
import { priceColumns } from './product-row.ts'
import { toProduct } from './render.ts'
import { BARCODE_FIELDS, checkOldPrice, Product, PRODUCT_CHANGES, PRODUCT_FIELDS, PRODUCT_NAMES } from './schema.ts'
import { SYSTEM_FIELDS, settableFields } from './system-fields.ts'
import { removeListing, writeProducts } from './write-products.ts'
import { rolesFrom } from '../foundation/roles.ts'

const EXAMPLE_STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
const EXAMPLE_PRODUCT = 'prd_01KANX6Y7C3V9Q2M8R5T4W6Z1B'

const ProductAnswer = Product.extend(Success)

/** Returns the stored document of a product. */
async function answerProduct(call: Call, storeId: string, productId: string) {
  const document = await findDocument(call.db, storeId, productId)
  if (!document) throw notFound('product')
  return new RawJson<z.input<typeof ProductAnswer>>(document.doc)
}

/** Finds a product of the account that this store sells; 404 otherwise. */
async function productOfStore(
  call: Call,
  storeId: string,
  names: Parameters<typeof namedProduct>[1],
): Promise<ProductRow> {
  await ownStore(call, storeId)
  const product = await namedProduct(call, names)
  if (!(await findDocument(call.db, storeId, product.product_id))) throw notFound('product')
  return product
}

export const insertProduct = operation({
  name: 'insertProduct',
  together: 'catalogue',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Adds one product to a store.',
  description:
    'The EAN identifies a product. If another store of the account sells it, the product keeps its `productId` ' +
    'and fields, and only the price of this store is added. If this store sells it, the operation fails with ' +
    '409 `already-exists`. A UPC needs the account setting `acceptUpc`. A wrong check digit only causes an entry in `warnings`.',
  changes: true,
  emits: ['product.created'],
  request: z.strictObject({ storeId: Id, ...BARCODE_FIELDS, ...PRODUCT_FIELDS }).superRefine(checkOldPrice),
  response: ProductAnswer.extend({ warnings: z.array(z.string()).optional() }),
  example: {
    storeId: EXAMPLE_STORE,
    ean: '4012345678901',
    name: 'Hafermilch 1 l',
    price: 1.99,
    vat: 7,
    brand: 'Lindwerk',
    category: 'getraenke',
  },
  async run(call, { storeId, ...input }) {
    const store = await ownStore(call, storeId)
    const ean = await eanToStore(call.db, store.tenant, eanOfRequest(input))
    await assertAcceptable(call.db, store.tenant, ean)
    const { product, ignored } = await insertIntoStore(call, store, { ...input, ean })
    call.changed(product.productId)
    call.emit({
      type: 'product.created',
      storeId,
      data: { productId: product.productId, storeId, ean, name: product.name, price: product.price },
    })
    const warnings = ignored.map(
      (name) =>
        `${name} was not changed, because other stores sell this product too; use updateProduct to change it for ` +
        'all',
    )
    const wrongDigit = eanWarning(ean)
    if (wrongDigit !== undefined) warnings.unshift(wrongDigit)
    return { success: true as const, ...product, ...(warnings.length > 0 && { warnings }) }
  },
})

export const updateProduct = operation({
  name: 'updateProduct',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Changes a product.',
  description:
    '`price` and `oldPrice` apply to this store, all other fields to the product in every store. Omitted fields ' +
    'keep their values; null clears an optional field. A new `price` above the stored `oldPrice` removes that. The global price follows the store price while only one ' +
    'store sells the product. You may send back fields that the system sets if they are unchanged.',
  changes: true,
  request: z
    .strictObject({ storeId: Id, ...PRODUCT_NAMES, ...PRODUCT_CHANGES, ...SYSTEM_FIELDS })
    .superRefine(checkOldPrice),
  response: ProductAnswer,
  example: { productId: EXAMPLE_PRODUCT, storeId: EXAMPLE_STORE, price: 1.79, oldPrice: 1.99 },
  async run(call, { storeId, productId, id, ean, barcode, ...input }) {
    const store = await ownStore(call, storeId)
    const names = productId === undefined && id === undefined ? { ean, barcode } : { productId, id }
    const product = await productOfStore(call, storeId, names)
    const priced = await findProduct(call.db, store.tenant, { productId: product.product_id }, storeId)
    if (!priced) throw notFound('product')
    await changeProduct(call, store, product, settableFields(input, { ean, barcode }, toProduct(priced)))
    call.changed(product.product_id)
    return answerProduct(call, storeId, product.product_id)
  },
})

export const registerProductToStore = operation({
  name: 'registerProductToStore',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Adds a product of the account to another store, or sets the price at which a store sells it.',
  description:
    '`oldPrice` is the former price in this store. Without `price` a new store gets the global price, and a store that already sells the product keeps its ' +
    'price.',
  changes: true,
  request: z
    .strictObject({
      storeId: Id,
      ...PRODUCT_NAMES,
      price: Euros.optional(),
      oldPrice: Euros.nullable().optional().describe('The price before, in this store; null removes it.'),
    })
    .superRefine(checkOldPrice),
  response: ProductAnswer,
  example: { productId: EXAMPLE_PRODUCT, storeId: EXAMPLE_STORE, price: 1.89 },
  async run(call, { storeId, price, oldPrice, ...names }) {
    const store = await ownStore(call, storeId)
    const product = await namedProduct(call, names)
    const known = (await listListings(call.db, [product.product_id])).get(product.product_id) ?? []
    if (known.some((listing) => listing.store_id === storeId)) {
      await changeProduct(call, store, product, { price, oldPrice })
    } else {
      const { price_cent = product.price_cent, old_price_cent: stated } = priceColumns({ price, oldPrice })
      const old_price_cent = stated === undefined ? (price === undefined ? product.old_price_cent : null) : stated
      assertOldPrice(price_cent, old_price_cent)
      const listing = { store_id: storeId, price_cent, old_price_cent, updated_ms: call.nowMs }
      await writeProducts(call.db, [{ before: product, after: product, known, listing }])
    }
    call.changed(product.product_id)
    return answerProduct(call, storeId, product.product_id)
  },
})

export const removeProductFromStore = operation({
  name: 'removeProductFromStore',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Removes a product from a store.',
  description:
    'Other stores and past purchases keep the product. If you insert it again, it gets the same `productId`. ' +
    'The stock of this store is no longer counted.',
  changes: true,
  request: z.strictObject({ storeId: Id, ...PRODUCT_NAMES }),
  response: z.strictObject(Success),
  example: { productId: EXAMPLE_PRODUCT, storeId: EXAMPLE_STORE },
  async run(call, { storeId, ...names }) {
    const product = await productOfStore(call, storeId, names)
    await removeListing(call.db, storeId, product)
    await endCounting(call.db, storeId, product.product_id, call.nowMs)
    call.changed(product.product_id)
    return { success: true as const }
  },
})
