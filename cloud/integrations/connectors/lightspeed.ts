import { z } from 'zod'
import { connector, type Page } from '../connector.ts'
import type { VendorClient } from '../vendor-client.ts'
import { amountOf, BaseUrlSetting, fit, readAnswer, readRecord, Secret, urlOf, VatSetting } from '../vendor-values.ts'

/**
 * Lightspeed Retail X-Series, API 2026-04 (https://x-series-api.lightspeedhq.com: versioning by date, pagination, rate limiting).
 * Pages go by version: `after` is the greatest version that was seen, until a page is empty. Retry-After is a date.
 */
const VERSION = '2026-04'
const PAGE = '200'

const LightspeedCredentials = z.strictObject({
  domainPrefix: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'is the part of the shop’s address before .retail.lightspeed.app'),
  accessToken: Secret,
  vat: VatSetting.optional(),
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

/** The rate that makes the net price the gross one; both are rounded, so that the nearer of the two counts. */
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

/** A family of variants is not sold by itself; what was deleted or switched off is not sold at all. */
function isSold(raw: unknown): boolean {
  const product = Product.safeParse(raw).data
  return (
    product === undefined ||
    !(product.has_variants === true || product.is_active === false || typeof product.deleted_at === 'string')
  )
}

async function readArticles(
  client: VendorClient,
  credentials: LightspeedCredentials,
  cursor: string | null,
): Promise<Page> {
  const url = urlOf(addressOf(credentials), `api/${VERSION}/products`, { page_size: PAGE, after: cursor ?? undefined })
  const { json } = await client.ask({
    method: 'GET',
    url,
    headers: { authorization: `Bearer ${credentials.accessToken}` },
  })
  const { data, version } = readAnswer(Products, json, 'GET products')
  const records = data
    .filter(isSold)
    .map((raw) => readRecord(Product, raw, (product) => articleOf(product, credentials)))
  return { records, next: data.length === 0 || typeof version?.max !== 'number' ? null : String(version.max) }
}

export const lightspeed = connector<LightspeedCredentials>({
  name: 'lightspeed',
  sides: ['pos'],
  credentials: LightspeedCredentials,
  needs: '`domainPrefix`, `accessToken`, `vat`? (Retail X-Series)',
  addressOf,
  sourceOf: addressOf,
  connect: (credentials, client) => ({ pull: { articles: (cursor) => readArticles(client, credentials, cursor) } }),
})
