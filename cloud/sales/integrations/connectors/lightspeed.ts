import { z } from 'zod'
import { connector, type Page, type Push, type PushFault, type TransactionLine } from '../connector.ts'
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
import { BOOKING_SETTINGS, articlesOf, type BookingArticles } from '../mapping.ts'
import { v5 } from 'uuid'
import type { TransactionRefund } from '../transaction-refunds.ts'
import { sendTransactions, type RefundPlace, type Transaction } from '../transaction.ts'

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

/** Requests to one shop, relative to `/api`. */
interface LightspeedApi {
  /** Returns undefined for 404. */
  get(path: string): Promise<unknown>
  /** Throws a `VendorFault` with code `system_refused` for 400 and 422. */
  send(method: 'POST' | 'PUT', path: string, json: object): Promise<unknown>
}

/** Settings that writing sales requires, in addition to a token. */
interface LightspeedWriting extends BookingArticles {
  readonly registerId?: string | undefined
  readonly userId?: string | undefined
  readonly paymentTypeId?: string | undefined
}

const Sale = z.looseObject({
  data: z.looseObject({
    id: z.string(),
    state: z.string().nullish(),
    source: z.looseObject({ id: z.string().nullish() }).nullish(),
    return: z.looseObject({ return_sale_ids: z.array(z.string()).nullish() }).nullish(),
    line_items: z.array(z.looseObject({ id: z.string(), product_id: z.string().nullish() })).nullish(),
  }),
})
type Sale = z.output<typeof Sale>['data']
const Taxes = z.looseObject({
  data: z.array(
    z.looseObject({
      id: z.string(),
      rates: z.array(z.looseObject({ rate: z.number() })).nullish(),
    }),
  ),
})

/** Id of a sale in Lightspeed. The id is derived from shop and sale, so that each push of the sale uses the same id. */
const saleIdOf = (shop: string, id: string) => v5(`${shop}/untag/${id}`, v5.URL)

const round5 = (euros: number) => Math.round(euros * 1e5) / 1e5

interface Line {
  product: { id: string }
  quantity: number
  pricing: { price: number }
  tax: { id: string; amount: number }
}

/** Finds the product id of an EAN or SKU. */
type FindProduct = (code: string) => Promise<string | undefined>

/**
 * Writes sales as closed sales with an id that untag chooses. Refunds of goods become returns of that sale:
 * `actions/return` creates a parked return, and an update with negative quantities closes it. Prices are net; `tax` is
 * the tax of one unit.
 */
function lightspeedSales(api: LightspeedApi, shop: string, writing: LightspeedWriting, findProduct: FindProduct): Push {
  const sales = new LightspeedSales(api, shop, writing, findProduct)
  return {
    dataTypes: ['transactions'],
    batch: 50,
    async send(_dataType, records) {
      const { registerId, userId, paymentTypeId } = writing
      if (registerId === undefined || userId === undefined || paymentTypeId === undefined)
        throw new VendorFault(
          'system_refused',
          'registerId, userId and paymentTypeId are required to write sales to Lightspeed',
        )
      return sendTransactions(records, {
        sale: (transaction, index) => sales.sale(transaction, index),
        refund: (back, place) => sales.refund(back, place),
      })
    },
  }
}

class LightspeedSales {
  readonly #api: LightspeedApi
  readonly #shop: string
  readonly #writing: LightspeedWriting
  readonly #findProduct: FindProduct
  #taxes: ReadonlyMap<number, string> | undefined

  constructor(api: LightspeedApi, shop: string, writing: LightspeedWriting, findProduct: FindProduct) {
    this.#api = api
    this.#shop = shop
    this.#writing = writing
    this.#findProduct = findProduct
  }

  async sale(transaction: Transaction, index: number): Promise<PushFault | undefined> {
    const id = saleIdOf(this.#shop, transaction.id)
    if (await this.#read(id)) return undefined
    const made = await this.#linesOf(transaction.lines, { index, field: 'items' })
    if ('fault' in made) return made.fault
    const document = this.#documentOf(transaction.id, made.lines, transaction.totalCent, transaction.completedAt)
    const answer = readAnswer(Sale, await this.#api.send('POST', `${VERSION}/sales`, { id, ...document }), 'POST sales')
    if (answer.data.id !== id)
      throw new VendorFault('answer_not_understood', 'Lightspeed assigned its own id to the sale: check the sale there')
    return undefined
  }

  async refund(back: TransactionRefund, place: RefundPlace): Promise<PushFault | undefined> {
    if (back.lines.some(({ kind }) => kind === 'amount'))
      return {
        index: place.index,
        field: place.field,
        code: 'refund_not_supported',
        message: 'Lightspeed can only refund goods, not amounts: enter this refund at the till',
      }
    const parked = await this.#returnFor(saleIdOf(this.#shop, place.sale.id), back.id)
    if (parked.state === 'closed') return undefined
    const made = await this.#linesOf(back.lines, place)
    if ('fault' in made) return made.fault
    const left = [...(parked.line_items ?? [])]
    const lines = made.lines.map((line) => {
      const at = left.findIndex(({ product_id }) => product_id === line.product.id)
      const [own] = at < 0 ? [] : left.splice(at, 1)
      return { ...(own && { id: own.id }), ...line, quantity: -line.quantity }
    })
    await this.#api.send(
      'PUT',
      `${VERSION}/sales/${encodeURIComponent(parked.id)}`,
      this.#documentOf(back.id, lines, -back.amountCent, back.completedAt),
    )
    return undefined
  }

  /** Finds the return document that an earlier call created for this refund. Creates one if there is none. */
  async #returnFor(saleId: string, refundId: string): Promise<Sale> {
    const known = await this.#read(saleId)
    for (const id of known?.return?.return_sale_ids ?? []) {
      const back = await this.#read(id)
      if (back?.source?.id === refundId) return back
    }
    const json = await this.#api.send('POST', `${VERSION}/sales/${saleId}/actions/return`, {})
    return readAnswer(Sale, json, 'POST actions/return').data
  }

  async #linesOf(
    lines: readonly TransactionLine[],
    place: { index: number; field: string },
  ): Promise<{ fault: PushFault } | { lines: Line[] }> {
    const articles = await articlesOf(lines, place, this.#writing, {
      byEan: this.#findProduct,
      byNumber: this.#findProduct,
    })
    if ('fault' in articles) return articles
    this.#taxes ??= await readTaxes(this.#api)
    const made: Line[] = []
    for (const [at, { line, article }] of articles.found.entries()) {
      const taxId = line.vat === undefined ? undefined : this.#taxes.get(line.vat)
      if (taxId === undefined) return { fault: unknownTax(line, place, at) }
      const gross = line.unitCent / 100
      const amount = round5(gross - gross / (1 + (line.vat ?? 0) / 100))
      const pricing = { price: round5(gross - amount) }
      made.push({ product: { id: article }, quantity: line.quantity, pricing, tax: { id: taxId, amount } })
    }
    return { lines: made }
  }

  async #read(id: string): Promise<Sale | undefined> {
    const json = await this.#api.get(`${VERSION}/sales/${encodeURIComponent(id)}`)
    return json === undefined ? undefined : readAnswer(Sale, json, 'GET sales').data
  }

  #documentOf(id: string, lines: readonly Line[], cents: number, date: string | undefined) {
    const { registerId, userId, paymentTypeId } = this.#writing
    return {
      source: { author_id: userId, register_id: registerId, id, type: 'untag' },
      state: 'closed',
      ...(date !== undefined && { date }),
      line_items: lines,
      payments:
        cents === 0
          ? []
          : [{ type: { config_id: paymentTypeId }, amount: cents / 100, source: { register_id: registerId } }],
    }
  }
}

/** Ids of the shop's taxes by rate in percent. */
async function readTaxes(api: LightspeedApi): Promise<ReadonlyMap<number, string>> {
  const { data } = readAnswer(Taxes, await api.get('2.0/taxes'), 'GET taxes')
  return new Map(
    data.map(({ id, rates }) => [Math.round((rates ?? []).reduce((sum, { rate }) => sum + rate, 0) * 1e4) / 100, id]),
  )
}

function unknownTax(
  { vat }: TransactionLine,
  { index, field }: { index: number; field: string },
  at: number,
): PushFault {
  return {
    index,
    field: field === 'items' ? `items.${at}.vat` : field,
    code: 'unknown_tax',
    message:
      vat === undefined ? 'vat is missing: Lightspeed requires it' : `Lightspeed has no tax of ${vat} %: add it there`,
  }
}
