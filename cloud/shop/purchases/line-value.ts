import type { Row } from '../../platform/persistence/schema.ts'
import type { PricedProduct } from '../catalogue/schema.ts'

/** Pieces of one line that came back. A refund stores a JSON array of them. */
export interface Pieces {
  readonly itemLineId: string
  readonly quantity: number
  /** Numbers of the tagged pieces among them (`purchase_unit.unit_no`). */
  readonly unitNos: readonly number[]
}

/** Pieces that a refund names; empty if it names none. */
export function piecesOf({ lines }: Pick<Row<'refund'>, 'lines'>): Pieces[] {
  return lines === null ? [] : (JSON.parse(lines) as Pieces[])
}

/** Sums pieces by line. */
export function sumPieces(pieces: readonly Pieces[]): Map<string, Pieces> {
  const sums = new Map<string, Pieces>()
  for (const { itemLineId, quantity, unitNos } of pieces) {
    const known = sums.get(itemLineId)
    sums.set(itemLineId, {
      itemLineId,
      quantity: quantity + (known?.quantity ?? 0),
      unitNos: [...(known?.unitNos ?? []), ...unitNos],
    })
  }
  return sums
}

/** The form of the API: without the numbers of tagged pieces. */
export function toReturnedLines(
  refund: Pick<Row<'refund'>, 'lines'>,
): { itemLineId: string; quantity: number; part?: number }[] {
  return piecesOf(refund).map(({ itemLineId, quantity }) => ({
    itemLineId,
    quantity: Math.ceil(quantity),
    ...(!Number.isInteger(quantity) && { part: Math.round(quantity * 1e12) / 1e12 }),
  }))
}

/** Pieces of a line that the sale itself did not take back. A part of weighed goods is a part of their one piece. */
export function soldPieces({ quantity, came_back }: Pick<Row<'purchase_line'>, 'quantity' | 'came_back'>): number {
  return quantity - came_back
}

/**
 * Amount paid for `count` pieces of a line after `before` other pieces came back, cents. The pieces of a line differ by
 * at most one cent, and the dearer ones come back first. So the amounts of all pieces add up to the line.
 */
export function paidForPieces(paidCent: number, quantity: number, before: number, count: number): number {
  const low = Math.floor(paidCent / quantity)
  const dearer = paidCent - low * quantity
  const upTo = (pieces: number) => Math.round(pieces * low + Math.min(pieces, dearer))
  return upTo(before + count) - upTo(before)
}

/**
 * Amount paid for these pieces by line, cents. `paid`: amounts of whole lines. `gone`: pieces that came back before.
 */
export function amountsOfPieces(
  pieces: readonly Pieces[],
  lines: readonly Pick<Row<'purchase_line'>, 'line_id' | 'quantity' | 'came_back' | 'vat'>[],
  paid: ReadonlyMap<string, number>,
  gone: ReadonlyMap<string, Pieces>,
): { lineId: string; rate: number; cent: number }[] {
  return pieces.flatMap(({ itemLineId: lineId, quantity }) => {
    const line = lines.find((each) => each.line_id === lineId)
    if (!line || soldPieces(line) === 0) return []
    const cent = paidForPieces(paid.get(lineId) ?? 0, soldPieces(line), gone.get(lineId)?.quantity ?? 0, quantity)
    return [{ lineId, rate: line.vat, cent }]
  })
}

/** Deposit on a container. A deposit is a separate line of a purchase and never tagged (ADR sales). */
export interface Deposit {
  cent: number
  vat: 7 | 19
}

const NAME = 'Pfand'

/**
 * Deposit on one piece of a product; undefined if there is none. The VAT rate of the deposit is the product's rate,
 * unless the merchant sets another rate.
 */
export function depositOf({ deposit_cent, deposit_vat, vat }: PricedProduct): Deposit | undefined {
  return deposit_cent === null || deposit_cent === 0
    ? undefined
    : { cent: deposit_cent, vat: (deposit_vat ?? vat) as 7 | 19 }
}

/** Builds the deposit line that follows the line of the goods. */
export function depositLine(
  goods: Row<'purchase_line'>,
  deposit: Deposit,
  made: { lineId: string; lineNo: number },
): Row<'purchase_line'> {
  return {
    ...goods,
    line_id: made.lineId,
    line_no: made.lineNo,
    name: NAME,
    ean: null,
    product_id: null,
    price_cent: deposit.cent,
    list_price_cent: null,
    price_reason: null,
    vat: deposit.vat,
    brand: null,
    serial_number: null,
    tagged: 0,
    deposit_of: goods.line_id,
    barcode: null,
    weight_grams: null,
    kg_price_cent: null,
    lot: null,
    expiry: null,
    serial: null,
    till_line: null,
    came_back: 0,
  }
}

/** Gross cents of a line and its VAT rate in percent. */
export interface GrossAmount {
  cent: number
  rate: number
}

type VatBreakdown = Record<string, { net: number; tax: number }>

/**
 * Calculates VAT per rate from gross sums: tax = gross × rate / (100 + rate), rounded half up (ADR catalogue). Rounding each
 * line would change the total of most baskets.
 */
export function vatBreakdown(amounts: readonly GrossAmount[]): VatBreakdown {
  const gross = new Map<number, number>()
  for (const { cent, rate } of amounts) gross.set(rate, (gross.get(rate) ?? 0) + cent)
  const rates = [...gross].sort(([a], [b]) => a - b)
  return Object.fromEntries(
    rates.map(([rate, cent]) => {
      const tax = Math.floor((2 * cent * rate + 100 + rate) / (2 * (100 + rate)))
      return [String(rate), { net: cent - tax, tax }]
    }),
  )
}

/**
 * Price by which policies judge one unit of a line, cents: the higher of price and list price. A discount never makes
 * goods look cheap to a rule (ADR sales).
 */
export function valueOf(line: Pick<Row<'purchase_line'>, 'price_cent' | 'list_price_cent'>): number {
  return Math.max(line.price_cent, line.list_price_cent ?? 0)
}

/** True for a line that lowers the total and sells nothing. */
export function isCoupon(line: Pick<Row<'purchase_line'>, 'price_cent'>): boolean {
  return line.price_cent < 0
}

/**
 * Amount paid for each line, cents. Coupons (negative amounts) lower the other lines of their VAT rate in proportion, and
 * are 0 themselves.
 */
export function afterCoupons(amounts: readonly GrossAmount[]): number[] {
  const paid = amounts.map(({ cent }) => Math.max(0, cent))
  for (const rate of new Set(amounts.flatMap((amount) => (amount.cent < 0 ? amount.rate : [])))) {
    const ofRate = amounts.flatMap((amount, i) => (amount.rate === rate ? i : []))
    // A sale of a till may give back more than it sells.
    const left = Math.max(0, sum(ofRate.map((i) => amounts[i]?.cent ?? 0)))
    const shares = prorate(
      left,
      ofRate.map((i) => paid[i] ?? 0),
    )
    for (const [n, i] of ofRate.entries()) paid[i] = shares[n] ?? 0
  }
  return paid
}

/**
 * Amount paid for each line of a purchase after coupons, cents. Goods that a till's sale took back are no coupon: their
 * value was paid, too.
 */
export function paidByLine(
  lines: readonly Pick<Row<'purchase_line'>, 'line_id' | 'price_cent' | 'quantity' | 'came_back' | 'vat'>[],
): Map<string, number> {
  const amounts = lines.map((line) => ({ cent: line.price_cent * soldPieces(line), rate: line.vat }))
  const ofRate = afterCoupons(amounts)
  // A till may state a discount at another VAT rate than the goods have.
  const total = Math.max(0, sum(amounts.map(({ cent }) => cent)))
  const paid = total < sum(ofRate) ? prorate(total, ofRate) : ofRate
  return new Map(lines.map((line, i) => [line.line_id, paid[i] ?? 0]))
}

/**
 * Splits whole cents in proportion to weights. A share is at most its weight. The largest remainders receive the cents
 * lost by rounding.
 */
export function prorate(cent: number, weights: readonly number[]): number[] {
  const total = sum(weights)
  if (total === 0) return weights.map(() => 0)
  const shares = weights.map((weight) => Math.floor((cent * weight) / total))
  const byRemainder = weights
    .map((weight, i) => ({ i, remainder: (cent * weight) % total }))
    .sort((a, b) => b.remainder - a.remainder || a.i - b.i)
  for (const { i } of byRemainder.slice(0, cent - sum(shares))) shares[i] = (shares[i] ?? 0) + 1
  return shares
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
