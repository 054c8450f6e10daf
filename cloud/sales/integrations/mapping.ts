import type { DataType, PushFault, TransactionLine } from './connector.ts'
import { z } from 'zod'
import { FIELD_NAMES } from '../../shop/catalogue/product-fields.ts'

/** Finds the ERP article and price of each line of a sale. */

/** Whether prices of an ERP include VAT. */
export const PricesSetting = z.enum(['gross', 'net'])

/** Price of one unit in EUR, with or without VAT. */
export function unitPrice(
  { unitCent, vat }: TransactionLine,
  prices: z.output<typeof PricesSetting> = 'gross',
): number {
  return prices === 'gross' ? unitCent / 100 : Math.round((unitCent / (1 + (vat ?? 0) / 100)) * 100) / 10_000
}

const ArticleNumber = z.string().min(1).max(140)

/**
 * Settings for writing sales to an ERP: article numbers for deposits and for refunded amounts, each for both VAT rates.
 */
export const BOOKING_SETTINGS = {
  depositArticle: ArticleNumber.optional(),
  reducedDepositArticle: ArticleNumber.optional(),
  refundArticle: ArticleNumber.optional(),
  reducedRefundArticle: ArticleNumber.optional(),
}

/** Description of these settings for the API documentation. */
export const BOOKING_NEEDS =
  '`depositArticle`? (to write deposits), `reducedDepositArticle`? (those with 7 %), `refundArticle`? (to write refunds of an amount), `reducedRefundArticle`? (those with 7 %)'

/** Parsed settings. */
export type BookingArticles = { readonly [K in keyof typeof BOOKING_SETTINGS]?: string | undefined }

/** Finds articles in a system; undefined if there is none. */
interface Articles<A> {
  byEan(ean: string): Promise<A | undefined>
  byNumber(number: string): Promise<A | undefined> | A
}

/** Record index and field (`items` or a refund) that faults of these lines contain. */
interface LinesPlace {
  readonly index: number
  readonly field: string
}

type Found<A> = { fault: PushFault } | { found: { line: TransactionLine; article: A }[] }

const MISSING = {
  deposit: {
    code: 'deposit_article_missing',
    message: 'a deposit has no EAN: set credentials.depositArticle to the article on which the system books deposits',
  },
  amount: {
    code: 'refund_article_missing',
    message:
      'this refund is an amount, not goods: set credentials.refundArticle to the article on which the system ' +
      'books such refunds',
  },
}

/**
 * Finds the articles of all lines. Returns a fault if a line has no article, because a system accepts a document only
 * as a whole.
 */
export async function articlesOf<A>(
  lines: readonly TransactionLine[],
  { index, field }: LinesPlace,
  settings: BookingArticles,
  articles: Articles<A>,
): Promise<Found<A>> {
  const found: { line: TransactionLine; article: A }[] = []
  for (const [at, line] of lines.entries()) {
    const place = (name: string) => (field === 'items' ? `items.${at}.${name}` : field)
    const number = line.kind === 'goods' ? undefined : bookingArticle(line, settings)
    if (line.kind !== 'goods' && number === undefined)
      return { fault: { index, field: place('depositOf'), ...MISSING[line.kind] } }
    const article = await articleOf(line.ean, number, articles)
    if (article === undefined)
      return {
        fault: {
          index,
          field: place(number === undefined ? 'ean' : 'depositOf'),
          code: 'unknown_product',
          message:
            number === undefined
              ? 'the system has no article with this EAN'
              : 'the system has no article with the number that the credentials name',
        },
      }
    found.push({ line, article })
  }
  return { found }
}

async function articleOf<A>(
  ean: string | undefined,
  number: string | undefined,
  articles: Articles<A>,
): Promise<A | undefined> {
  if (number !== undefined) return articles.byNumber(number)
  for (const form of ean === undefined ? [] : formsOf(ean)) {
    const article = await articles.byEan(form)
    if (article !== undefined) return article
  }
  return undefined
}

/** Forms in which a system may store an EAN. Many store a UPC-A with its 12 digits. */
function formsOf(ean: string): string[] {
  return ean.startsWith('0') ? [ean, ean.slice(1), ean.padStart(14, '0')] : [ean]
}

function bookingArticle({ vat, kind }: TransactionLine, settings: BookingArticles): string | undefined {
  const [usual, reduced] =
    kind === 'deposit'
      ? [settings.depositArticle, settings.reducedDepositArticle]
      : [settings.refundArticle, settings.reducedRefundArticle]
  return vat === 7 ? (reduced ?? usual) : usual
}

/**
 *   {article_number: "4012…", sell_price: "1,99"}  ─ mapping ─▶  {ean: "4012…", price: "1,99"}
 *
 * Renames a system's fields to ours. Unmapped fields with our names are used as well. All other fields are ignored.
 */
interface Mapping {
  /** Their field, ours, and the steps of a path such as `prices.gross`. */
  readonly entries: readonly { from: string; to: string; steps: readonly string[] }[]
  /** Our fields that a record may name itself. */
  readonly unmapped: readonly string[]
}

/** Our fields by data type. */
const TARGETS: Readonly<Record<DataType, readonly string[]>> = {
  articles: [
    'ean',
    'barcode',
    'name',
    'price',
    'oldPrice',
    'vat',
    ...FIELD_NAMES,
    'tagged',
    'flags',
    'externalProductId',
  ],
  stock: ['ean', 'barcode', 'productId', 'quantity', 'externalProductId'],
  orders: ['externalId', 'number', 'status', 'supplierId', 'orderedAt', 'expectedAt', 'total', 'currency', 'lines'],
  suppliers: ['externalId', 'name', 'email', 'phone', 'address', 'countryCode', 'vatId'],
}

/** Fields that null clears. All other fields ignore null, because systems send null for unknown values. */
export const CLEARED_BY_NULL = ['oldPrice', 'deposit', 'depositVat'] as const

/** Targets that the specification's mapping also contains. The cloud ignores their values and calculates its own. */
const FIGURES = ['receiptCount', 'scanAndGo.revenueCent']

const EVERY_TARGET: ReadonlySet<string> = new Set([...Object.values(TARGETS).flat(), ...FIGURES])

/** The specification defines the default mapping for articles. */
const DEFAULTS: Readonly<Record<DataType, Readonly<Record<string, string>>>> = {
  articles: {
    article_number: 'ean',
    article_name: 'name',
    sell_price: 'price',
    tax_rate: 'vat',
    category: 'category',
    unit: 'unit',
    image_url: 'imageUrl',
    external_id: 'externalProductId',
    receipt_number: 'receiptCount',
    revenue: 'scanAndGo.revenueCent',
  },
  stock: { article_number: 'ean', stock: 'quantity', external_id: 'externalProductId' },
  orders: {
    external_id: 'externalId',
    id: 'externalId',
    order_number: 'number',
    supplier_id: 'supplierId',
    ordered_at: 'orderedAt',
    expected_at: 'expectedAt',
  },
  suppliers: {
    external_id: 'externalId',
    id: 'externalId',
    supplier_name: 'name',
    country: 'countryCode',
    vat_id: 'vatId',
  },
}

/** Maximum depth of a field path, such as `prices.gross`. */
const STEPS_LIMIT = 5

/** Entries of a mapping that contain none of our field names. */
export function unknownTargets(written: Readonly<Record<string, string>>): string[] {
  return Object.entries(written).flatMap(([from, to]) => (EVERY_TARGET.has(to) || EVERY_TARGET.has(from) ? [] : [from]))
}

/** Default mapping with a merchant's entries, `{their field: our field}`. Also accepts `{our field: their field}`. */
export function mappingOf(dataType: DataType, written: Readonly<Record<string, string>> = {}): Mapping {
  const own = Object.entries(written).map(([from, to]) =>
    EVERY_TARGET.has(to) ? ([from, to] as const) : ([to, from] as const),
  )
  const targets = new Set(own.map(([, to]) => to))
  const defaults = Object.entries(DEFAULTS[dataType]).filter(([, to]) => !targets.has(to))
  const wanted = TARGETS[dataType]
  // Keyed by their field: a later entry replaces an earlier one.
  const targetOf = new Map([...defaults, ...own])
  return {
    entries: [...targetOf]
      .filter(([, to]) => wanted.includes(to))
      .map(([from, to]) => ({ from, to, steps: from.includes('.') ? from.split('.').slice(0, STEPS_LIMIT) : [] })),
    unmapped: wanted.filter((name) => !targetOf.has(name)),
  }
}

/**
 * Maps a record. If several fields map to one of our fields, the last field with a value is used. A mapped field has
 * priority over a field with our name.
 */
export function mapRecord(
  record: Readonly<Record<string, unknown>>,
  dataType: DataType,
  mapping: Mapping,
): Record<string, unknown> {
  const made: Record<string, unknown> = {}
  const take = (name: string, value: unknown) => {
    if (isStated(value) || (value === null && made[name] === undefined && isClearedByNull(dataType, name)))
      made[name] = value
  }
  for (const name of mapping.unmapped) take(name, ownValue(record, name))
  for (const { from, to, steps } of mapping.entries) take(to, valueAt(record, from, steps))
  return made
}

function isClearedByNull(dataType: DataType, name: string): boolean {
  return dataType === 'articles' && (CLEARED_BY_NULL as readonly string[]).includes(name)
}

function isStated(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** Reads only own properties, so that names such as `constructor` have no value. */
function ownValue(record: unknown, name: string): unknown {
  return typeof record === 'object' && record !== null && Object.hasOwn(record, name)
    ? (record as Record<string, unknown>)[name]
    : undefined
}

function valueAt(record: unknown, field: string, steps: readonly string[]): unknown {
  const direct = ownValue(record, field)
  if (direct !== undefined || steps.length === 0) return direct
  let at = record
  for (const step of steps) at = ownValue(at, step)
  return at
}
