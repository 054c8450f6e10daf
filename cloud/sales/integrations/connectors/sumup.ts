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

/**
 * SumUp POS, formerly Goodtill (https://support.thegoodtill.com/support/api, https://apidoc.thegoodtill.com). A login
 * returns a short-lived token. One response contains all products. SumUp's payment API has no articles. The fields for
 * EAN and VAT differ by shop: `eanField` and `vat` of the credentials name them.
 */
const HOST = 'https://api.thegoodtill.com'
/** Products per page of this connector. SumUp itself returns all products in one response. */
const PAGE = 500

const SumupCredentials = z.strictObject({
  subdomain: z.string().min(1).max(100),
  username: z.string().min(1).max(256),
  password: Secret,
  outletId: z.string().min(1).max(100).optional(),
  eanField: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,59}$/, 'must be the name of a product field, such as product_sku')
    .optional(),
  vat: VatSetting.optional(),
  baseUrl: BaseUrlSetting,
})
type SumupCredentials = z.output<typeof SumupCredentials>

const addressOf = ({ baseUrl }: SumupCredentials) => baseUrl ?? HOST

const Listed = z.looseObject({ status: z.boolean().nullish(), data: z.array(z.unknown()) })
const Category = z.looseObject({ id: z.string(), name: z.string() })
const flag = z.union([z.boolean(), z.number(), z.string()]).nullish()
const Product = z.looseObject({
  id: z.string(),
  product_name: z.string().nullish(),
  selling_price: z.union([z.string(), z.number()]).nullish(),
  category_id: z.string().nullish(),
  outlet_id: z.string().nullish(),
  active: flag,
  shareable: flag,
  image: z.string().nullish(),
})

const isOn = (value: z.output<typeof flag>) => value === true || value === 1 || value === '1'

interface Shop {
  products: readonly unknown[]
  categories: ReadonlyMap<string, string>
}

async function readShop(client: VendorClient, credentials: SumupCredentials): Promise<Shop> {
  const base = addressOf(credentials)
  const { subdomain, username, password, outletId } = credentials
  const login = await client.send({
    method: 'POST',
    url: urlOf(base, 'api/login'),
    json: { subdomain, username, password },
    repeatable: true,
    expected: [422],
  })
  if (login.status === 422)
    throw new VendorFault('credentials_refused', 'SumUp POS rejects subdomain, username or password', { status: 422 })
  const { token } = readAnswer(z.looseObject({ token: z.string().min(1) }), login.json, 'the login')
  const headers = { authorization: `Bearer ${token}`, ...(outletId !== undefined && { 'outlet-id': outletId }) }
  const list = async (what: string) =>
    readAnswer(
      Listed,
      (await client.send({ method: 'GET', url: urlOf(base, `api/${what}`), headers })).json,
      `GET ${what}`,
    ).data
  const categories = (await list('categories')).flatMap((raw) => Category.safeParse(raw).data ?? [])
  return {
    products: (await list('products')).filter((raw) => isSold(raw, outletId)),
    categories: new Map(categories.map(({ id, name }) => [id, name])),
  }
}

function isSold(raw: unknown, outletId: string | undefined): boolean {
  const product = Product.safeParse(raw).data
  if (!product) return true
  if (product.active !== undefined && product.active !== null && !isOn(product.active)) return false
  return outletId === undefined || isOn(product.shareable) || product.outlet_id === outletId
}

function articleOf(
  raw: unknown,
  { categories }: Shop,
  { eanField, vat }: SumupCredentials,
): Record<string, unknown> | null {
  return readRecord(Product, raw, (product) => ({
    externalProductId: product.id,
    ean: product[eanField ?? 'product_sku'],
    name: fit(product.product_name, 120),
    price: amountOf(product.selling_price),
    vat: Number(vat ?? 19),
    category: fit(categories.get(product.category_id ?? ''), 120),
    imageUrl: product.image?.startsWith('http') === true ? product.image : undefined,
  }))
}

function pullArticles(client: VendorClient, credentials: SumupCredentials): (cursor: string | null) => Promise<Page> {
  let shop: Shop | undefined
  return async (cursor) => {
    shop ??= await readShop(client, credentials)
    const known = shop
    const from = Number(cursor ?? 0)
    const records = known.products.slice(from, from + PAGE).map((raw) => articleOf(raw, known, credentials))
    return { records, next: from + PAGE < known.products.length ? String(from + PAGE) : null }
  }
}

export const sumup = connector<SumupCredentials>({
  name: 'sumup',
  sides: ['pos'],
  credentials: SumupCredentials,
  needs: '`subdomain`, `username`, `password`, `outletId`?, `eanField`? (product_sku), `vat`? (SumUp POS)',
  takesNoRecords:
    'untag cannot write finished sales to SumUp POS: its External Sale API accepts only orders that staff ' +
    'complete at the till, and requires a Vendor-Id that SumUp issues. Use exportSalesData instead',
  addressOf,
  sourceOf: (credentials) => `${addressOf(credentials)} ${credentials.subdomain} ${credentials.outletId ?? ''}`,
  connect: (credentials, client) => ({ pull: { articles: pullArticles(client, credentials) } }),
})
