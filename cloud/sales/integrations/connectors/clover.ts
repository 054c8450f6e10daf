import { z } from 'zod'
import { eurosOf } from '../../../platform/operations/fields.ts'
import { connector, type Page } from '../connector.ts'
import {
  type VendorClient,
  BaseUrlSetting,
  fit,
  readAnswer,
  readRecord,
  Secret,
  urlOf,
  VatSetting,
} from '../vendor-client.ts'
import { cloverSales, type CloverApi } from './clover-sales.ts'

/**
 * Clover, REST API v3 (https://docs.clover.com/dev/reference: Inventory, get all items; Orders; API usage and rate
 * limits). Prices are in cents, and gross if the merchant pays VAT. A tax rate of 19 % is 1,900,000. Lists have pages
 * with an offset.
 */
const PAGE = 500
const RATE_UNIT = 100_000

const HOSTS = {
  eu: 'https://api.eu.clover.com',
  us: 'https://api.clover.com',
  sandbox: 'https://apisandbox.dev.clover.com',
} as const

const CloverCredentials = z.strictObject({
  merchantId: z.string().regex(/^[A-Za-z0-9]{1,40}$/, 'must consist of letters and digits'),
  accessToken: Secret,
  region: z.enum(['eu', 'us', 'sandbox']).optional(),
  vat: VatSetting.optional(),
  tenderId: z
    .string()
    .regex(/^[A-Za-z0-9]{1,40}$/, 'must consist of letters and digits')
    .optional(),
  baseUrl: BaseUrlSetting,
})
type CloverCredentials = z.output<typeof CloverCredentials>

const addressOf = ({ region, baseUrl }: CloverCredentials) => baseUrl ?? HOSTS[region ?? 'eu']

const Items = z.looseObject({ elements: z.array(z.unknown()) })
const elements = <S extends z.ZodType>(schema: S) => z.looseObject({ elements: z.array(schema) }).nullish()
const Item = z.looseObject({
  id: z.string(),
  name: z.string().nullish(),
  code: z.string().nullish(),
  price: z.number(),
  priceType: z.string().nullish(),
  unitName: z.string().nullish(),
  categories: elements(z.looseObject({ name: z.string().nullish() })),
  taxRates: elements(z.looseObject({ rate: z.number().nullish() })),
})

function articleOf(raw: unknown, { vat }: CloverCredentials): Record<string, unknown> | null {
  return readRecord(Item, raw, ({ id, name, code, price, priceType, unitName, categories, taxRates }) => {
    const rate = taxRates?.elements.find((tax) => (tax.rate ?? 0) > 0)?.rate
    return {
      externalProductId: id,
      ean: code,
      name: fit(name, 120),
      // An item with a variable price has no valid price, so it is rejected.
      price: priceType === 'VARIABLE' ? undefined : eurosOf(price),
      vat: typeof rate === 'number' ? rate / RATE_UNIT : Number(vat ?? 19),
      unit: fit(unitName, 40),
      category: fit(categories?.elements[0]?.name, 120),
    }
  })
}

async function readArticles(
  client: VendorClient,
  credentials: CloverCredentials,
  cursor: string | null,
): Promise<Page> {
  const offset = Number(cursor ?? 0)
  const query = { expand: 'categories,taxRates', limit: String(PAGE), offset: String(offset) }
  const url = urlOf(addressOf(credentials), `v3/merchants/${credentials.merchantId}/items`, query)
  const { json } = await client.send({
    method: 'GET',
    url,
    headers: { authorization: `Bearer ${credentials.accessToken}` },
  })
  const { elements: items } = readAnswer(Items, json, 'GET items')
  return {
    records: items.map((item) => articleOf(item, credentials)),
    next: items.length === 0 ? null : String(offset + items.length),
  }
}

function salesApi(client: VendorClient, credentials: CloverCredentials): CloverApi {
  const base = urlOf(addressOf(credentials), `v3/merchants/${credentials.merchantId}`)
  const headers = { authorization: `Bearer ${credentials.accessToken}` }
  return {
    now: () => client.now(),
    get: async (path, query) => (await client.send({ method: 'GET', url: urlOf(base, path, query), headers })).json,
    post: async (path, json) => (await client.send({ method: 'POST', url: urlOf(base, path), headers, json })).json,
  }
}

export const clover = connector<CloverCredentials>({
  name: 'clover',
  sides: ['pos'],
  credentials: CloverCredentials,
  needs: '`merchantId`, `accessToken`, `region`? (eu, us, sandbox), `vat`?, `tenderId` (to write sales)',
  addressOf,
  sourceOf: (credentials) => `${addressOf(credentials)} ${credentials.merchantId}`,
  connect: (credentials, client) => ({
    pull: { articles: (cursor) => readArticles(client, credentials, cursor) },
    push: cloverSales(salesApi(client, credentials), credentials.tenderId),
  }),
})
