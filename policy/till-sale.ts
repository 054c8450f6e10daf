import { hash } from 'node:crypto'
import { z } from 'zod'
import { hasDecimals } from './decimals.ts'
import { toGtin14 } from './gs1/gtin.ts'
import { readProductCode } from './gs1/product-code.ts'
import { isIdShaped } from './ids.ts'
import { comparableIdentifier, normaliseIdentifiers, type ItemIdentifierInput } from './item-identifiers.ts'
import { isPrintable, normalForm } from './printable.ts'

/** Sales of a shop's own tills, as the cloud and the agents take them (ADR till-sales). */

/** Maximum number of lines of a sale. */
const SALE_LINES_LIMIT = 500
/** Maximum number of pieces of a line. */
const SALE_QUANTITY_LIMIT = 100_000
/** Maximum price of a piece, cents. */
const PRICE_LIMIT = 100_000_000
const TAGS_LIMIT = 1_000
/** Tags of a sale or return, in all lists. */
export const SALE_TAGS_LIMIT = 2_000
/** How far the clock of a till may be ahead, ms. A later time is recorded as now. */
export const SALE_AHEAD_MS = 5 * 60_000
/** Age from which a sale gives no rights, ms. */
export const SALE_AGE_MS = 24 * 3_600_000
const HOUR_MS = 3_600_000

/**
 * Number of the hour in which a sale counts against the limits of its till: the hour of the sale, at most a day before
 * it was stored, and never later.
 */
export function hourOfSale({ occurredAt }: { occurredAt: string }, storedMs: number): number {
  const atMs = Math.min(storedMs, Math.max(Date.parse(occurredAt), storedMs - SALE_AGE_MS))
  return Math.floor(atMs / HOUR_MS)
}

/** Time after which an open sale ends, ms. */
export const OPEN_SALE_MS = 30 * 60_000
/** Maximum number of open sales of a till. */
export const OPEN_SALES_LIMIT = 20
/** Returns that wait for one sale, which apply together when it arrives. */
export const WAITING_RETURNS_LIMIT = 10

const name = (max: number) =>
  z
    .string()
    .overwrite((s) => normalForm(s))
    .min(1)
    .max(max)
    .refine(isPrintable, 'must be one line without control or format characters')
const scanned = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((s) => !/[\u0000-\u001f\u007f]/.test(s), 'must not contain control characters')
const Id = z.string().max(128).refine(isIdShaped, 'is not an id')
const Tags = z.array(scanned(200)).min(1).max(TAGS_LIMIT).optional()

/** Names of the tags of one or more pieces. */
const TagNames = { epcs: Tags, tagUids: Tags, tagIds: Tags }
export interface NamedTags {
  readonly epcs?: readonly string[] | undefined
  readonly tagUids?: readonly string[] | undefined
  readonly tagIds?: readonly string[] | undefined
}

/** Names of a sale: unique in a store for at least 90 days, with the day or Z number as `series` for longer. */
export const SaleNames = {
  saleId: name(64).describe('Number of the receipt at the till.'),
  tillId: name(64).optional().describe('The till. Sales of different tills may have the same numbers.'),
  series: name(64).optional().describe('Day or Z number, if the till starts its numbers again within 90 days.'),
}
export interface SaleName {
  readonly saleId: string
  readonly tillId?: string | undefined
  readonly series?: string | undefined
}

export const SaleLine = z
  .strictObject({
    lineId: name(64).optional().describe('Default: the position of the line, from 1.'),
    ean: scanned(200).optional(),
    productId: Id.optional(),
    name: name(120).optional(),
    quantity: z
      .number()
      .min(-SALE_QUANTITY_LIMIT)
      .max(SALE_QUANTITY_LIMIT)
      .refine((q) => q !== 0, 'must not be 0')
      .refine((q) => hasDecimals(q, 3), 'must have at most 3 decimals')
      .describe('Decimals for weighed goods. Negative for goods that come back in the same sale.'),
    priceUnit: z
      .int()
      .min(-PRICE_LIMIT)
      .max(PRICE_LIMIT)
      .describe('Cents. Negative for discounts and returned empties.'),
    vat: z.literal([0, 7, 19], { error: 'must be 0, 7 or 19' }),
    ...TagNames,
  })
  .refine((line) => tagCountOf(line) <= Math.max(1, Math.abs(line.quantity)), {
    path: ['quantity'],
    message: 'is less than the number of tags in one list of this line',
  })
export type SaleLine = z.output<typeof SaleLine>

const RECEIPT_CODE = /^[\x21-\x7e]{8,128}$/

const STATES = ['open', 'paid', 'void'] as const

/** One sale of a till. The cloud takes also who bought (`CustomerOfSale`); an agent does not. */
export const SaleFields = {
  ...SaleNames,
  state: z
    .enum(STATES)
    .optional()
    .describe('Default `paid`. An `open` sale releases nothing and ends after 30 minutes; at most 20 a till.'),
  version: z.int().min(1).max(1_000_000).optional().describe('Rises with each change of an open sale. Default 1.'),
  occurredAt: z.iso
    .datetime({ offset: true })
    .describe('Time at the till, for people. Deadlines count from recording.'),
  totalCent: z.int().min(-PRICE_LIMIT).max(PRICE_LIMIT).optional().describe('Total that the till took.'),
  receiptCodes: z
    .array(z.string().regex(RECEIPT_CODE, 'must be 8 to 128 printable ASCII characters without spaces'))
    .max(4)
    .optional()
    .describe('Codes that the till prints on the receipt.'),
  fiscal: z
    .string()
    .max(2_000)
    .refine((s) => isPrintable(s.replaceAll(/[\t\n\r]/g, '')), 'must not contain control or format characters')
    .optional()
    .describe('Text of the fiscal device, as on the receipt.'),
  lines: z.array(SaleLine).min(1).max(SALE_LINES_LIMIT),
}
export const TillSale = z.strictObject(SaleFields).superRefine(refuseWrongLines)
export type TillSale = z.output<typeof TillSale>

/** `receiptCodeHash`. */
export const CodeHash = z.string().regex(/^[0-9a-f]{32}$/)
const { receiptCodes: _codes, ...KeptFields } = SaleFields
/** A sale as agents and cloud keep it: with hashes of the codes that the till printed, because a code opens a barrier. */
export const KeptSale = z
  .strictObject({ ...KeptFields, codeHashes: z.array(CodeHash).max(4) })
  .superRefine(refuseWrongLines)
export type KeptSale = z.output<typeof KeptSale>

/** The form in which a sale is kept. */
export function keptSale<T extends TillSale>(
  storeId: string,
  { receiptCodes = [], ...sale }: T,
): Omit<T, 'receiptCodes'> & { codeHashes: string[] } {
  return { ...sale, codeHashes: [...new Set(receiptCodes.map((code) => receiptCodeHash(storeId, code)))].sort() }
}

const lengthOf = (tags: readonly string[] | undefined) => tags?.length ?? 0

/** Reports a line id that two lines have, too many tags, and amounts above those of any sale. */
export function refuseWrongLines({ lines }: { lines: readonly SaleLine[] }, context: z.RefinementCtx): void {
  refuseManyTags(lines, context)
  const cents = lines.reduce((sum, line) => sum + Math.abs(lineCentOf(line)), 0)
  if (cents > PRICE_LIMIT)
    context.addIssue({
      code: 'custom',
      path: ['lines'],
      message: `have amounts of more than ${PRICE_LIMIT / 100} EUR together: check quantity and priceUnit, in cents`,
    })
  const known = new Set<string>()
  for (const [i, line] of lines.entries()) {
    const id = lineIdOf(line, i)
    if (known.has(id)) context.addIssue({ code: 'custom', path: ['lines', i, 'lineId'], message: 'is sent twice' })
    known.add(id)
  }
}

/** Number of the names in all lists of tags. */
export function nameCountOf(lists: readonly NamedTags[]): number {
  return lists.reduce(
    (sum, { epcs, tagUids, tagIds }) => sum + lengthOf(epcs) + lengthOf(tagUids) + lengthOf(tagIds),
    0,
  )
}

function refuseManyTags(lists: readonly NamedTags[], context: z.RefinementCtx): void {
  const count = nameCountOf(lists)
  if (count > SALE_TAGS_LIMIT)
    context.addIssue({
      code: 'custom',
      path: ['lines'],
      message: `name ${count} tags; the maximum is ${SALE_TAGS_LIMIT}`,
    })
}

const ReturnFields = {
  returnId: name(64).describe('Number of the return, unique in the store. A repetition is answered as the first.'),
  saleId: name(64).optional().describe('The sale, with `tillId` and `series` as it was recorded.'),
  tillId: name(64).optional(),
  series: name(64).optional(),
  purchaseId: Id.optional().describe('The sale, by the id that recordSales returned.'),
  receipt: scanned(4_000).optional().describe('The sale, by the text of its receipt’s QR code.'),
  code: scanned(128).optional().describe('The sale, by a code that its till printed.'),
  lines: z
    .array(
      z.strictObject({
        lineId: name(64),
        quantity: z
          .number()
          .min(0.001)
          .max(SALE_QUANTITY_LIMIT)
          .optional()
          .describe('Default: the named tags, or all that is left of the line.'),
        ...TagNames,
      }),
    )
    .min(1)
    .max(SALE_LINES_LIMIT)
    .optional()
    .describe('Default: the tags below, or all that is left of the sale.'),
  ...TagNames,
  resellable: z.boolean().optional().describe('True: the goods go back on sale. Default: they wait as `returned`.'),
  occurredAt: z.iso.datetime({ offset: true }).optional(),
  reason: name(300).optional(),
}
/** Goods that came back to a till. */
export const TillReturn = z
  .strictObject(ReturnFields)
  .superRefine(({ lines = [], ...named }, context) => refuseManyTags([named, ...lines], context))
export type TillReturn = z.output<typeof TillReturn>

const { code: _code, ...KeptReturnFields } = ReturnFields
/** A return as agents and cloud keep it: with the hash of the code that names its sale. */
export const KeptReturn = z
  .strictObject({ ...KeptReturnFields, codeHash: CodeHash.nullable() })
  .superRefine(({ lines = [], ...named }, context) => refuseManyTags([named, ...lines], context))
export type KeptReturn = z.output<typeof KeptReturn>

/** The form in which a return is kept. */
export function keptReturn(storeId: string, { code, ...request }: TillReturn): KeptReturn {
  return { ...request, codeHash: code === undefined ? null : receiptCodeHash(storeId, code) }
}

/** True if a return names tags. */
export function namesTags({ lines = [], ...named }: KeptReturn): boolean {
  return [named, ...lines].some((list) => tagsOf(list).length > 0)
}

/** Why a return does not say which sale or goods it is about: the field, and what to do. Undefined: it does. */
export function whyReturnUnclear(request: KeptReturn): { field: string; message: string } | undefined {
  const { saleId, purchaseId, receipt, codeHash, lines } = request
  const names = { saleId, purchaseId, receipt, code: codeHash ?? undefined }
  const [first, second] = Object.entries(names).flatMap(([name, value]) => (value === undefined ? [] : [name]))
  if (second !== undefined) return { field: second, message: `excludes ${first ?? ''}: name the sale once` }
  const hasTags = tagsOf(request).length > 0
  if (lines && hasTags) return { field: 'lines', message: 'excludes tags outside of the lines' }
  if (lines && first === undefined)
    return { field: 'lines', message: 'needs a sale: send saleId, purchaseId, receipt or code' }
  return undefined
}

/** Key of a return in its store. */
export function returnKeyOf(storeId: string, { returnId }: Pick<KeptReturn, 'returnId'>): string {
  return hash('sha256', JSON.stringify(['untag/return/1', storeId, returnId]), 'hex')
}

/** Hash of what a return says, without its time. */
export function returnContent(request: KeptReturn): string {
  const said = {
    ...request,
    occurredAt: undefined,
    resellable: request.resellable === true,
    epcs: tagsSaid(request),
    tagUids: undefined,
    tagIds: undefined,
    lines: request.lines?.map(({ lineId, quantity, ...named }) => ({ lineId, quantity, tags: tagsSaid(named) })),
  }
  return hash('sha256', JSON.stringify(Object.entries(said).sort(([a], [b]) => (a < b ? -1 : 1))), 'hex')
}

/** The tags of a list in one form, in whichever way they were written. */
const tagsSaid = (named: NamedTags): string[] =>
  tagsOf(named)
    .map(({ kind, id }) => `${kind} ${comparableIdentifier(kind, id)}`)
    .sort()

/** Id of a line: the till's own, or its position from 1. */
export function lineIdOf({ lineId }: Pick<SaleLine, 'lineId'>, index: number): string {
  return lineId ?? String(index + 1)
}

/** Greatest number of tags in one list: a piece may be named by several kinds of tag. */
export function tagCountOf({ epcs = [], tagUids = [], tagIds = [] }: NamedTags): number {
  return Math.max(epcs.length, tagUids.length, tagIds.length)
}

/**
 * Identity of a sale in every ledger and on every receipt, 16 bytes: SHA-256 of store, till, series and number. It is
 * the same wherever the sale was recorded.
 */
export function saleIdentity(storeId: string, { saleId, tillId = '', series = '' }: SaleName): Uint8Array {
  const text = JSON.stringify(['untag/sale/1', storeId, tillId, series, saleId])
  return hash('sha256', text, 'buffer').subarray(0, 16)
}

/** `saleIdentity` in hex. */
export function saleKeyOf(storeId: string, sale: SaleName): string {
  return Buffer.from(saleIdentity(storeId, sale)).toString('hex')
}

/** True if a scanned text can be one of `receiptCodes`. */
export function looksLikeReceiptCode(text: string): boolean {
  return RECEIPT_CODE.test(text)
}

/** Hash of a receipt code in its store, 16 bytes in hex. Agents and cloud look codes up by it. */
export function receiptCodeHash(storeId: string, code: string): string {
  return hash('sha256', JSON.stringify(['untag/receipt-code/1', storeId, code]), 'hex').slice(0, 32)
}

/**
 * Hash of what a sale says, in one canonical form: equal for equal sales, however they were written and whoever took
 * them. Excludes state, version and customer.
 */
export function saleContent(sale: KeptSale): string {
  const lines = sale.lines.map((line, i) => [
    lineIdOf(line, i),
    line.ean === undefined ? null : (toGtin14(line.ean) ?? line.ean),
    line.productId ?? null,
    line.name ?? null,
    Math.round(line.quantity * 1_000),
    line.priceUnit,
    line.vat,
    tagsSaid(line),
  ])
  const { occurredAt, totalCent = null, codeHashes, fiscal = null } = sale
  const content = ['untag/sale-content/1', Date.parse(occurredAt), totalCent, codeHashes, fiscal, lines]
  return hash('sha256', JSON.stringify(content), 'hex')
}

/** A tag of a sale. `id` is normalised, if the till sent a valid one. */
export interface SaleTag {
  readonly kind: 'epc' | 'tagUid' | 'tagId'
  readonly id: string
  /** False: not a valid identifier, so no item can have it. */
  readonly isValid: boolean
}

const KINDS = [
  ['epcs', 'epc'],
  ['tagUids', 'tagUid'],
  ['tagIds', 'tagId'],
] as const

/** Tags of lines, because each step of a sale needs them, and an EPC takes long to read. */
const tagsOfLines = new WeakMap<NamedTags, readonly SaleTag[]>()

/** Tags that a line names, each once. The line must not change. */
export function tagsOf(line: NamedTags): readonly SaleTag[] {
  const known = tagsOfLines.get(line)
  if (known) return known
  const tags = new Map<string, SaleTag>()
  for (const [list, kind] of KINDS)
    for (const sent of line[list] ?? []) {
      const normal = normaliseIdentifiers({ [kind]: sent } as ItemIdentifierInput)
      const id = (normal.ok ? normal.identifiers[kind] : undefined) ?? sent
      const key = `${kind} ${comparableIdentifier(kind, id)}`
      if (!tags.has(key)) tags.set(key, { kind, id, isValid: normal.ok })
    }
  const found = [...tags.values()]
  tagsOfLines.set(line, found)
  return found
}

/** Key of a tag in sets. */
export function saleTagKey({ kind, id }: SaleTag): string {
  return `${kind} ${comparableIdentifier(kind, id)}`
}

/** Hash of a tag of a sale, 4 bytes in hex, for a list of tags beside their sale. */
export function saleTagHash(tag: SaleTag): string {
  return hash('sha256', saleTagKey(tag), 'hex').slice(0, 8)
}

/** True for a line whose tags come back. Some tills void a piece by a negative price; discounts and empties have no tags. */
export function takesBack(line: Pick<SaleLine, 'quantity' | 'priceUnit' | 'epcs' | 'tagUids' | 'tagIds'>): boolean {
  return line.quantity < 0 || (line.priceUnit < 0 && tagCountOf(line) > 0)
}

/** True for a line whose goods leave with the shopper: not for what comes back, discounts and empties. */
export function isSoldLine({ quantity, priceUnit }: Pick<SaleLine, 'quantity' | 'priceUnit'>): boolean {
  return quantity > 0 && priceUnit >= 0
}

/** GTIN-14 of a line, if it is the same on all its labels: not for goods that a scale labels. */
export function gtinOfLine({ ean, productId }: Pick<SaleLine, 'ean' | 'productId'>): string | undefined {
  const read = ean === undefined || productId !== undefined ? undefined : readProductCode(ean.trim())
  const gtin = read?.ok ? read.code.gtin14 : undefined
  return gtin === undefined || /^0(?:2|02|0{5}[02])/.test(gtin) ? undefined : gtin
}

/**
 * Finds the lines of a sale that take back pieces of the product that they name: by their tags, by a negative quantity, or
 * by the negated price of a line that sells it. At another negative price a line is a discount.
 */
export function cancelledProducts({ lines }: Pick<TillSale, 'lines'>): (line: SaleLine) => boolean {
  const nameOf = (gtin: string, priceUnit: number) => `${gtin} ${priceUnit}`
  const sold = new Set(lines.filter(isSoldLine).map((line) => nameOf(gtinOfLine(line) ?? '', line.priceUnit)))
  return (line) => {
    const gtin = gtinOfLine(line)
    return takesBack(line) || (!isSoldLine(line) && gtin !== undefined && sold.has(nameOf(gtin, -line.priceUnit)))
  }
}

/**
 * True if goods leave with the shopper: of one product, more is sold than comes back. A line that takes back what it does
 * not name by its GTIN may have cancelled a line of the same amount, or be a discount of the whole price: then the sale
 * must have a total. Empties may be worth more than the goods. A slip of returns, empties, coupons or cancelled lines
 * opens no barrier.
 */
export function sellsGoods(sale: Pick<TillSale, 'lines'>): boolean {
  const left = new Map<string, number>()
  const isCancelled = cancelledProducts(sale)
  const sold = sale.lines.filter(isSoldLine)
  const soldCent = new Set(sold.flatMap((line) => [line.priceUnit, lineCentOf(line)]))
  soldCent.add(sold.reduce((sum, line) => sum + lineCentOf(line), 0))
  let isClear = true
  for (const line of sale.lines) {
    const gtin = gtinOfLine(line)
    const isSold = isSoldLine(line)
    if (isSold || (gtin !== undefined && isCancelled(line))) {
      const count = isSold ? line.quantity : -Math.abs(line.quantity)
      left.set(gtin ?? '', (left.get(gtin ?? '') ?? 0) + count)
    } else if (soldCent.has(Math.abs(lineCentOf(line))) || soldCent.has(Math.abs(line.priceUnit))) isClear = false
  }
  return [...left.values()].some((quantity) => quantity > 0) && (isClear || saleCentOf(sale) > 0)
}

/** Amount of a line, cents, rounded half up as tills do. */
export function lineCentOf({ quantity, priceUnit }: Pick<SaleLine, 'quantity' | 'priceUnit'>): number {
  const cent = (Math.round(quantity * 1_000) * priceUnit) / 1_000
  return Math.sign(cent) * Math.round(Math.abs(cent))
}

/**
 * Value of a sale for the limits of its till, cents: of each line that sells goods, the till's price or that of its
 * tagged goods, whichever is higher. A till states its own prices.
 */
export function saleValueOf({ lines }: Pick<TillSale, 'lines'>, priceOf: (tag: SaleTag) => number | undefined): number {
  return lines.filter(isSoldLine).reduce((sum, line) => {
    const tagged = tagsOf(line).reduce((cents, tag) => cents + (priceOf(tag) ?? 0), 0)
    return sum + Math.max(0, lineCentOf(line), tagged)
  }, 0)
}

/** Total of a sale by its lines, cents. */
export function saleCentOf({ lines }: Pick<TillSale, 'lines'>): number {
  return lines.reduce((sum, line) => sum + lineCentOf(line), 0)
}
