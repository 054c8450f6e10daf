import { z } from 'zod'
import { eurosOf } from '../../../platform/operations/fields.ts'
import { connector, type Page, type Push, type PushFault, type TransactionLine } from '../connector.ts'
import {
  type VendorClient,
  BaseUrlSetting,
  fit,
  readAnswer,
  readRecord,
  Secret,
  urlOf,
  VatSetting,
  VendorFault,
} from '../vendor-client.ts'
import { sendTransactions, type Transaction } from '../transaction.ts'

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
const elements = <S extends z.ZodType>(schema: S) => z.looseObject({ elements: z.array(schema) })
const Item = z.looseObject({
  id: z.string(),
  name: z.string().nullish(),
  code: z.string().nullish(),
  price: z.number(),
  priceType: z.string().nullish(),
  unitName: z.string().nullish(),
  categories: elements(z.looseObject({ name: z.string().nullish() })).nullish(),
  taxRates: elements(z.looseObject({ rate: z.number().nullish() })).nullish(),
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

/** Requests to one merchant, relative to `/v3/merchants/{id}`. */
interface CloverApi {
  /** Unix time, ms. */
  now(): number
  get(path: string, query: Readonly<Record<string, string>>): Promise<unknown>
  post(path: string, json: object): Promise<unknown>
}

/**
 * Maximum age of an order that is searched by title, ms. Clover searches 90 days; one day is a reserve for clock
 * differences.
 */
const FOUND_FOR_MS = 89 * 24 * 60 * 60 * 1_000
/** Maximum number of line items per order. Each unit is one line item. */
const LINE_ITEMS_LIMIT = 3_000
/** Maximum number of line items per request. */
const LINES_AT_ONCE = 100

/** Clover's public API cannot record a refund: /v1/refunds and /v1/credits move money. */
const NO_REFUNDS = 'Clover cannot record a refund of a payment that it did not process: enter this refund at the till'

const Id = z.looseObject({ id: z.string() })
const Orders = elements(
  z.looseObject({ id: z.string(), title: z.string().nullish(), payments: elements(z.unknown()).nullish() }),
)
const TaxRates = elements(z.looseObject({ id: z.string(), rate: z.number().nullish() }))

/**
 * Writes a sale as an order in four steps: order, line items, total, payment record with a tender of the merchant.
 * Clover has no idempotency keys for these steps. A repeated call finds the order by its title and continues with the
 * missing step.
 */
function cloverSales(api: CloverApi, tenderId: string | undefined): Push {
  let rates: ReadonlyMap<number, string> | undefined
  const sale = async (transaction: Transaction, index: number): Promise<PushFault | undefined> => {
    const wrong = unsuitable(transaction, api.now())
    if (wrong) return { index, ...wrong }
    const { id, totalCent, lines } = transaction
    rates ??= await readRates(api)
    const units: object[] = []
    for (const [at, line] of lines.entries()) {
      const rate = line.vat === undefined ? undefined : rates.get(line.vat)
      if (rate === undefined) return unknownTax(line, index, at)
      for (let n = 0; n < line.quantity; n++) units.push(unitOf(line, rate))
    }
    const before = await findOrder(api, id)
    if (before?.isPaid === true) return undefined
    const orderId = before?.id ?? (await createOrder(api, id))
    const written = before ? await countLines(api, orderId) : 0
    if (before && totalCent === 0 && written >= units.length) return undefined
    for (let from = written; from < units.length; from += LINES_AT_ONCE)
      await api.post(`orders/${orderId}/bulk_line_items`, { items: units.slice(from, from + LINES_AT_ONCE) })
    await api.post(`orders/${orderId}`, { total: totalCent })
    // A payment needs a positive amount, so a free sale gets none.
    if (totalCent > 0)
      await api.post(`orders/${orderId}/payments`, {
        tender: { id: tenderId },
        amount: totalCent,
        externalPaymentId: id,
      })
    return undefined
  }
  return {
    dataTypes: ['transactions'],
    batch: 50,
    async send(_dataType, records) {
      if (tenderId === undefined)
        throw new VendorFault('system_refused', 'tenderId is required to write sales to Clover')
      return sendTransactions(records, { sale, refund: NO_REFUNDS })
    },
  }
}

function unsuitable({ completedAt, lines }: Transaction, nowMs: number): Omit<PushFault, 'index'> | undefined {
  if (completedAt === undefined)
    return {
      field: 'completedAt',
      code: 'invalid',
      message: 'completedAt is missing: Clover needs it to find the order again',
    }
  if (nowMs - Date.parse(completedAt) > FOUND_FOR_MS)
    return {
      field: 'completedAt',
      code: 'too_old',
      message:
        'Clover finds only orders of the last 90 days, so an older sale could be written twice: enter it at the ' +
        'till',
    }
  if (lines.reduce((sum, { quantity }) => sum + quantity, 0) <= LINE_ITEMS_LIMIT) return undefined
  return {
    field: 'items',
    code: 'too_many_items',
    message: `Clover accepts at most ${LINE_ITEMS_LIMIT} units per order`,
  }
}

function unitOf({ name, unitCent, ean }: TransactionLine, rate: string): object {
  return {
    name: name.slice(0, 127),
    price: unitCent,
    ...(ean !== undefined && { itemCode: ean }),
    taxRates: [{ id: rate }],
  }
}

async function findOrder(api: CloverApi, id: string): Promise<{ id: string; isPaid: boolean } | undefined> {
  const query = { filter: `title=${id}`, expand: 'payments', limit: '10' }
  const { elements: orders } = readAnswer(Orders, await api.get('orders', query), 'GET orders')
  const found = orders.filter(({ title }) => title === id)
  const order = found.find(({ payments }) => (payments?.elements.length ?? 0) > 0) ?? found[0]
  return order && { id: order.id, isPaid: (order.payments?.elements.length ?? 0) > 0 }
}

async function createOrder(api: CloverApi, title: string): Promise<string> {
  const order = { title, note: 'untag', state: 'open', groupLineItems: true }
  return readAnswer(Id, await api.post('orders', order), 'POST orders').id
}

/** Number of line items of the order that earlier calls wrote. */
async function countLines(api: CloverApi, orderId: string): Promise<number> {
  let count = 0
  while (count <= LINE_ITEMS_LIMIT) {
    const query = { limit: String(LINES_AT_ONCE), offset: String(count) }
    const page = readAnswer(
      elements(z.unknown()),
      await api.get(`orders/${orderId}/line_items`, query),
      'GET line_items',
    )
    if (page.elements.length === 0) return count
    count += page.elements.length
  }
  return count
}

/** Ids of the merchant's tax rates, by percent. */
async function readRates(api: CloverApi): Promise<ReadonlyMap<number, string>> {
  const { elements: rates } = readAnswer(TaxRates, await api.get('tax_rates', { limit: '100' }), 'GET tax_rates')
  return new Map(rates.map(({ id, rate }) => [(rate ?? 0) / RATE_UNIT, id]))
}

function unknownTax({ vat }: TransactionLine, index: number, at: number): PushFault {
  return {
    index,
    field: `items.${at}.vat`,
    code: 'unknown_tax',
    message:
      vat === undefined ? 'vat is missing: Clover requires it' : `Clover has no tax rate of ${vat} %: add it there`,
  }
}
