import { z } from 'zod'
import { dayOf } from '../../shop/analytics/store-days.ts'
import { sharesLeft, sharesOf, shareRefund, type TaxShare } from '../../shop/analytics/count-purchases.ts'
import type { PushFault, TransactionLine } from './connector.ts'

/** A completed refund of a sale. */
export interface TransactionRefund {
  readonly id: string
  /** ISO 8601 in UTC. */
  readonly completedAt: string | undefined
  /** Day of the refund in the store's time zone. */
  readonly day: string | undefined
  readonly amountCent: number
  /** Refunded goods and deposits, or an amount for each VAT rate. The amounts add up to `amountCent`. */
  readonly lines: readonly TransactionLine[]
}

const Cents = z.int().min(0)
const Euros = z.number().min(0).max(1_000_000)

/** Time in either form of the API: ISO 8601 or Unix time in ms. */
export const Moment = z
  .union([z.iso.datetime({ offset: true }), z.int().min(0).max(Date.parse('9999-12-31'))])
  .nullish()
  .transform((value) => (value === undefined || value === null ? undefined : new Date(value)))

/** An entry of `refunds[]`, in cents or EUR. */
export const SentRefund = z
  .looseObject({
    refundId: z.string().min(1).max(60),
    kind: z.enum(['whole', 'part', 'late']).nullish(),
    status: z.enum(['pending', 'done', 'failed']).nullish(),
    amountCent: Cents.nullish(),
    amount: Euros.nullish(),
    lines: z
      .array(z.looseObject({ itemLineId: z.string().max(128), quantity: z.int().min(1).max(100_000).nullish() }))
      .max(1_000)
      .nullish(),
    completedAt: Moment,
  })
  .refine(({ amountCent, amount }) => typeof amountCent === 'number' || typeof amount === 'number', {
    path: ['amountCent'],
    message: 'is missing: send amountCent (cents) or amount (EUR)',
  })
type SentRefund = z.output<typeof SentRefund>

/** A line of the sale with the id that refunds use. */
export interface NamedLine {
  readonly itemLineId: string | undefined
  readonly line: TransactionLine
}

interface Stated {
  readonly isCancelled: boolean
  readonly totalCent: number
  /** Refunded amount in the record, cents; 0 if absent. */
  readonly refundedCent: number
  /** Name of the field that contains that amount. */
  readonly field: string
}

type Read = { refunds: TransactionRefund[] } | { fault: Omit<PushFault, 'index'> }

/**
 * Reads the completed refunds of a sale. Ignores refunds of `late` payments, because these payments never belonged to
 * the sale.
 *
 * Returns a fault if `refunds[]` add up to less than the refunded amount in the record. Without this check, the books
 * could show too much revenue.
 */
export function readRefunds(sent: readonly SentRefund[], lines: readonly NamedLine[], stated: Stated): Read {
  const done = sent.filter(
    (refund) => (refund.status ?? 'done') === 'done' && refund.kind !== 'late' && centOf(refund) > 0,
  )
  const sum = done.reduce((total, refund) => total + centOf(refund), 0)
  if (sum > stated.totalCent) return { fault: invalid('the refunds exceed the sale') }
  const fault = unexplained(stated, sum)
  return fault ? { fault } : refundsOf(done, lines)
}

function unexplained(stated: Stated, sum: number): Omit<PushFault, 'index'> | undefined {
  if (stated.isCancelled && (sum < stated.totalCent || sum === 0))
    return {
      field: 'status',
      code: 'taken_back',
      message:
        'the purchase was cancelled, but refunds[] do not contain its whole amount: push it again after ' +
        'payment.refunded',
    }
  if (sum >= stated.refundedCent) return undefined
  return {
    field: stated.field,
    code: 'taken_back',
    message:
      'refunds[] contain less than the refunded amount: send the refunds[] that fetchPurchase and exportSalesData ' +
      'return',
  }
}

function refundsOf(done: readonly SentRefund[], lines: readonly NamedLine[]): Read {
  const refunds: TransactionRefund[] = []
  const returned = new Map<NamedLine, number>()
  const gone: TaxShare[] = []
  for (const refund of done) {
    const amountCent = centOf(refund)
    const goods = returnedBy(refund, amountCent, lines, returned)
    const back =
      goods?.map(({ named, quantity }) => linePart(named.line, quantity)) ?? amounts(refund, amountCent, lines, gone)
    if (back.reduce((sum, line) => sum + costOf(line), 0) !== amountCent)
      return { fault: invalid('the refunds exceed the price of the items') }
    for (const { named, quantity } of goods ?? []) returned.set(named, quantity + (returned.get(named) ?? 0))
    gone.push(...sharesBy(back))
    const { refundId: id, completedAt } = refund
    refunds.push({
      id,
      completedAt: completedAt?.toISOString(),
      day: completedAt && dayOf(completedAt.getTime()),
      amountCent,
      lines: back,
    })
  }
  return { refunds }
}

/** Pieces of a line. */
interface Part {
  named: NamedLine
  quantity: number
}

/**
 * Returns the pieces that the refund names, or all remaining pieces for a whole refund. Returns undefined if the
 * refunded amount differs from the price of the pieces.
 */
function returnedBy(
  { lines: wanted, kind }: SentRefund,
  amountCent: number,
  lines: readonly NamedLine[],
  returned: ReadonlyMap<NamedLine, number>,
): Part[] | undefined {
  if (!wanted && kind === 'part') return undefined
  const left = lines.map((named) => ({ named, quantity: named.line.quantity - (returned.get(named) ?? 0) }))
  const goods = wanted ? wanted.flatMap(({ itemLineId, quantity }) => takeFrom(left, itemLineId, quantity)) : left
  const parts = goods.filter(({ quantity }) => quantity > 0)
  const cost = parts.reduce((sum, { named, quantity }) => sum + named.line.unitCent * quantity, 0)
  return parts.length > 0 && cost === amountCent ? parts : undefined
}

/** Takes pieces of a line; without `quantity`, all that are left. A line with coupons may be two lines here. */
function takeFrom(left: readonly Part[], itemLineId: string, quantity: number | null | undefined): Part[] {
  let wanted = quantity ?? Infinity
  return left.flatMap((part) => {
    if (part.named.itemLineId !== itemLineId) return []
    const taken = Math.min(wanted, part.quantity)
    wanted -= taken
    return [{ named: part.named, quantity: taken }]
  })
}

function linePart(line: TransactionLine, quantity: number): TransactionLine {
  return quantity === line.quantity ? line : { ...line, quantity, sold: line }
}

/** Splits an amount by VAT rate, as the daily closing does. */
function amounts(
  { refundId, lines: wanted }: SentRefund,
  amountCent: number,
  lines: readonly NamedLine[],
  gone: readonly TaxShare[],
): TransactionLine[] {
  const line = (unitCent: number, vat: number | undefined): TransactionLine => ({
    name: `Refund ${refundId}`,
    ean: undefined,
    quantity: 1,
    unitCent,
    vat,
    kind: 'amount',
  })
  if (lines.some((named) => named.line.vat === undefined)) return [line(amountCent, undefined)]
  const all = lines.map((named) => ({ named, quantity: named.line.quantity }))
  const named = (wanted ?? []).flatMap(({ itemLineId, quantity }) => takeFrom(all, itemLineId, quantity))
  const left = sharesLeft(sharesBy(lines.map((each) => each.line)), gone)
  const own = sharesBy(named.map((part) => linePart(part.named.line, part.quantity)))
  return shareRefund(left, own, amountCent).map(({ cent, rate }) => line(cent, rate))
}

function sharesBy(lines: readonly TransactionLine[]): TaxShare[] {
  return sharesOf(lines.map((line) => ({ cent: costOf(line), rate: line.vat ?? 0 })))
}

const costOf = ({ quantity, unitCent }: TransactionLine) => quantity * unitCent

function centOf({ amountCent, amount }: SentRefund): number {
  return typeof amountCent === 'number' ? amountCent : Math.round((amount ?? 0) * 100)
}

const invalid = (message: string) => ({ field: 'refunds', code: 'invalid', message })
