import { z } from 'zod'
import { connector, type Page } from '../connector.ts'
import {
  type VendorClient,
  VendorFault,
  amountOf,
  BaseUrlSetting,
  fit,
  readAnswer,
  readRecord,
  Secret,
  urlOf,
  VatSetting,
} from '../vendor-client.ts'
import { BOOKING_SETTINGS } from '../mapping.ts'
import { lightspeedSales, type FindProduct, type LightspeedApi } from './lightspeed-sales.ts'

/**
 * Lightspeed Retail X-Series, API 2026-04 (https://x-series-api.lightspeedhq.com: versioning by date, pagination, rate
 * limiting). Sales: https://x-series-api.lightspeedhq.com/v2026.04/docs/sales_101 and …/sales_returns. Lists have pages
 * by version: `after` is the greatest version so far, and an empty page is the last. Retry-After is a date.
 */
const VERSION = '2026-04'
const PAGE = '200'
/** Maximum number of product pages that one push reads: together 100,000 products. */
const PRODUCT_PAGES_LIMIT = 500

const Uuid = z.string().regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, 'must be a UUID')
const LightspeedCredentials = z.strictObject({
  domainPrefix: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be the part of the shop’s address before .retail.lightspeed.app'),
  accessToken: Secret,
  vat: VatSetting.optional(),
  registerId: Uuid.optional(),
  userId: Uuid.optional(),
  paymentTypeId: Uuid.optional(),
  depositArticle: BOOKING_SETTINGS.depositArticle,
  reducedDepositArticle: BOOKING_SETTINGS.reducedDepositArticle,
  baseUrl: BaseUrlSetting,
})
type LightspeedCredentials = z.output<typeof LightspeedCredentials>

const addressOf = ({ domainPrefix, baseUrl }: LightspeedCredentials) =>
  baseUrl ?? `https://${domainPrefix}.retail.lightspeed.app`

const Products = z.looseObject({
  data: z.array(z.unknown()),
  version: z.looseObject({ max: z.number().nullish() }).nullish(),
})
const Named = z.looseObject({ name: z.string().nullish() })
const Price = z.union([z.number(), z.string()])
const Product = z.looseObject({
  id: z.string(),
  name: z.string().nullish(),
  variant_name: z.string().nullish(),
  sku: z.string().nullish(),
  product_codes: z.array(z.looseObject({ type: z.string().nullish(), code: z.string() })).nullish(),
  price_including_tax: Price.nullish(),
  price_excluding_tax: Price.nullish(),
  brand: Named.nullish(),
  product_category: Named.nullish(),
  image_url: z.string().nullish(),
  has_variants: z.boolean().nullish(),
  is_active: z.boolean().nullish(),
  deleted_at: z.string().nullish(),
})
type Product = z.output<typeof Product>

const RATES = [7, 19] as const

/** VAT rate from net and gross price. Both prices are rounded, so the function returns the nearest VAT rate. */
function rateOf({ price_including_tax, price_excluding_tax }: Product): number | undefined {
  const [gross, net] = [Number(price_including_tax), Number(price_excluding_tax)]
  const percent = net > 0 && gross > net ? (gross / net - 1) * 100 : Number.NaN
  return RATES.find((rate) => Math.abs(percent - rate) < 1)
}

function articleOf(product: Product, { vat }: LightspeedCredentials): Record<string, unknown> {
  const codes = product.product_codes ?? []
  const code = codes.find(({ type }) => type === 'EAN') ?? codes.find(({ type }) => type === 'UPC')
  return {
    externalProductId: product.id,
    ean: code?.code ?? product.sku,
    name: fit(product.variant_name ?? product.name, 120),
    price: amountOf(product.price_including_tax),
    vat: rateOf(product) ?? Number(vat ?? 19),
    brand: fit(product.brand?.name, 120),
    category: fit(product.product_category?.name, 120),
    imageUrl: product.image_url,
  }
}

/** False for families of variants, deleted products and inactive products. */
function isSold(raw: unknown): boolean {
  const product = Product.safeParse(raw).data
  return (
    product === undefined ||
    !(product.has_variants === true || product.is_active === false || typeof product.deleted_at === 'string')
  )
}

async function readProducts(
  client: VendorClient,
  credentials: LightspeedCredentials,
  cursor: string | null,
): Promise<{ data: unknown[]; next: string | null }> {
  const url = urlOf(addressOf(credentials), `api/${VERSION}/products`, { page_size: PAGE, after: cursor ?? undefined })
  const { json } = await client.send({
    method: 'GET',
    url,
    headers: { authorization: `Bearer ${credentials.accessToken}` },
  })
  const { data, version } = readAnswer(Products, json, 'GET products')
  return { data, next: data.length === 0 || typeof version?.max !== 'number' ? null : String(version.max) }
}

async function readArticles(
  client: VendorClient,
  credentials: LightspeedCredentials,
  cursor: string | null,
): Promise<Page> {
  const { data, next } = await readProducts(client, credentials, cursor)
  const records = data
    .filter(isSold)
    .map((raw) => readRecord(Product, raw, (product) => articleOf(product, credentials)))
  return { records, next }
}

/** Finds products by EAN, UPC or SKU. Reads each page of the product list at most once, and only if it is needed. */
function productFinder(client: VendorClient, credentials: LightspeedCredentials): FindProduct {
  const ids = new Map<string, string>()
  let cursor: string | null | undefined
  let pages = 0
  return async (code) => {
    while (!ids.has(code) && cursor !== null) {
      if (++pages > PRODUCT_PAGES_LIMIT)
        throw new VendorFault('system_refused', 'Lightspeed has more products than a push can search for this one')
      const { data, next } = await readProducts(client, credentials, cursor ?? null)
      for (const raw of data.filter(isSold)) {
        const product = Product.safeParse(raw).data
        if (!product) continue
        for (const own of [product.sku, ...(product.product_codes ?? []).map((each) => each.code)])
          if (typeof own === 'string' && !ids.has(own)) ids.set(own, product.id)
      }
      cursor = next
    }
    return ids.get(code)
  }
}

function salesApi(client: VendorClient, credentials: LightspeedCredentials): LightspeedApi {
  const base = urlOf(addressOf(credentials), 'api')
  const headers = { authorization: `Bearer ${credentials.accessToken}` }
  return {
    async get(path) {
      const { status, json } = await client.send({ method: 'GET', url: urlOf(base, path), headers, expected: [404] })
      return status === 404 ? undefined : json
    },
    send: async (method, path, json) => (await client.send({ method, url: urlOf(base, path), headers, json })).json,
  }
}

export const lightspeed = connector<LightspeedCredentials>({
  name: 'lightspeed',
  sides: ['pos'],
  credentials: LightspeedCredentials,
  needs:
    '`domainPrefix`, `accessToken`, `vat`? (Retail X-Series); to write sales `registerId`, `userId`, `paymentTypeId`, `depositArticle`? (an SKU), `reducedDepositArticle`?',
  addressOf,
  sourceOf: addressOf,
  connect: (credentials, client) => ({
    pull: { articles: (cursor) => readArticles(client, credentials, cursor) },
    push: lightspeedSales(
      salesApi(client, credentials),
      addressOf(credentials),
      credentials,
      productFinder(client, credentials),
    ),
  }),
})
