import { z } from 'zod'
import { validationFindings, findingMessage } from '../../../policy/validation-findings.ts'
import { dayOf } from '../../shop/analytics/store-days.ts'
import { sharesOf } from '../../shop/analytics/count-purchases.ts'
import { afterCoupons } from '../../shop/purchases/line-value.ts'
import type { PushedRecord, PushFault, TransactionLine } from './connector.ts'
import { Moment, readRefunds, SentRefund, type NamedLine, type TransactionRefund } from './transaction-refunds.ts'
import { VendorFault } from './vendor-client.ts'

/** A paid purchase for other systems: the original sale and its completed refunds. */
export interface Transaction {
  readonly id: string
  /** ISO 8601 in UTC. */
  readonly completedAt: string | undefined
  /** Day in the store's time zone, for systems that book by day. */
  readonly day: string | undefined
  readonly currency: string
  readonly totalCent: number
  readonly lines: readonly TransactionLine[]
  /** The oldest first. */
  readonly refunds: readonly TransactionRefund[]
}

/** Maximum number of refunds per record. */
const REFUNDS_LIMIT = 100

const Cents = z.int().min(0)
const Euros = z.number().min(0).max(1_000_000)

const Item = z.looseObject({
  itemLineId: z.string().max(128).nullish(),
  name: z.string().min(1).max(300),
  ean: z.string().max(14).nullish(),
  quantity: z.int().min(1).max(100_000),
  priceUnit: z.number().min(-100_000_000).max(100_000_000),
  vat: z.number().min(0).max(100).nullish(),
  refundedCent: Cents.nullish(),
  depositOf: z.string().max(128).nullish(),
})

const Sent = z.looseObject({
  transactionId: z.string().min(1).max(60),
  completedAt: Moment,
  status: z.enum(['CREATED', 'PENDING_PAYMENT', 'SUCCESS', 'UNLOADED', 'CANCELLED']).nullish(),
  currency: z.string().length(3).nullish(),
  totalCent: Cents.nullish(),
  total: Euros.nullish(),
  refundedCent: Cents.nullish(),
  refunded: Euros.nullish(),
  refunds: z.array(SentRefund).max(REFUNDS_LIMIT).nullish(),
  items: z.array(Item).min(1).max(500),
})
type Sent = z.output<typeof Sent>

/**
 * Reads a record in one of three forms: an item of exportSalesData (cents), a purchase of the API (EUR; its receipt
 * contains EAN and VAT of the lines), or a purchase's transaction data (cents; `id`, times in ms).
 */
export function readTransaction(
  record: PushedRecord,
  index: number,
): { transaction: Transaction } | { fault: PushFault } {
  const { at, form } = plainForm(record)
  const read = Sent.safeParse(form)
  if (!read.success) {
    const [finding] = validationFindings(read.error.issues, form)
    const there = finding && { ...finding, path: [...at, ...finding.path] }
    return {
      fault: {
        index,
        field: there?.path.join('.') ?? '',
        code: 'invalid',
        message: there ? findingMessage(there) : 'invalid',
      },
    }
  }
  const made = transactionOf(read.data)
  if ('transaction' in made) return made
  return { fault: { index, ...made.fault, field: [...at, made.fault.field].join('.') } }
}

type Fields = Readonly<Record<string, unknown>>

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function plainItem(item: unknown): unknown {
  return isFields(item) ? { ...item, priceUnit: item['priceUnit'] ?? item['price'] } : item
}

/** Converts a purchase to the field names of the export. `at` is the path of the fields in the record. */
function plainForm(record: PushedRecord): { at: string[]; form: Fields } {
  const { receipt } = record
  const isWrapped = isFields(receipt) && Array.isArray(receipt['items'])
  const { items, ...rest } = isWrapped ? receipt : record
  const form = {
    ...rest,
    transactionId: rest['transactionId'] ?? rest['purchaseId'] ?? rest['id'],
    completedAt: rest['completedAt'] ?? rest['timestamp'],
    items: Array.isArray(items) ? items.map(plainItem) : items,
  }
  return { at: isWrapped ? ['receipt'] : [], form }
}

function transactionOf(sent: Sent): { transaction: Transaction } | { fault: Omit<PushFault, 'index'> } {
  const { transactionId, completedAt, status, currency, totalCent, total, items } = sent
  if (status === 'CREATED' || status === 'PENDING_PAYMENT')
    return {
      fault: { field: 'status', code: 'not_paid', message: 'this purchase is not paid, so there is no sale to write' },
    }
  const isCents = typeof totalCent === 'number'
  const cents = (amount: number) => (isCents ? Math.round(amount) : Math.round(amount * 100))
  const sold: NamedLine[] = items.map(({ itemLineId, name, ean, quantity, priceUnit, vat, depositOf }) => ({
    itemLineId: itemLineId ?? undefined,
    line: {
      name,
      ean: ean ?? undefined,
      quantity,
      unitCent: cents(priceUnit),
      vat: vat ?? undefined,
      kind: typeof depositOf === 'string' ? 'deposit' : 'goods',
    },
  }))
  const named = withoutCoupons(sold)
  if (!named)
    return { fault: { field: 'items', code: 'invalid', message: 'the coupons exceed the goods of a VAT rate' } }
  const lines = named.map(({ line }) => line)
  const sum = named.reduce((all, { line }) => all + line.quantity * line.unitCent, 0)
  const statedCent = isCents ? totalCent : typeof total === 'number' ? Math.round(total * 100) : sum
  const back = refundedOf(sent)
  const stated = { isCancelled: status === 'CANCELLED', totalCent: statedCent, ...back }
  const read = readRefunds(sent.refunds ?? [], named, stated)
  if ('fault' in read) return read
  const transaction = {
    id: transactionId,
    completedAt: completedAt?.toISOString(),
    day: completedAt && dayOf(completedAt.getTime()),
    currency: currency ?? 'EUR',
    totalCent: statedCent,
    lines,
    refunds: read.refunds,
  }
  return { transaction }
}

/**
 * Lowers the goods by the coupons of their VAT rate, because most systems accept no negative lines. Units of one line
 * may then differ by one cent and become two lines. Returns undefined if coupons exceed the goods.
 */
function withoutCoupons(sold: readonly NamedLine[]): NamedLine[] | undefined {
  if (sold.every(({ line }) => line.unitCent >= 0)) return [...sold]
  const amounts = sold.map(({ line }) => ({ cent: line.unitCent * line.quantity, rate: line.vat ?? 0 }))
  if (sharesOf(amounts).some(({ cent }) => cent < 0)) return undefined
  const paid = afterCoupons(amounts)
  return sold.flatMap(({ itemLineId, line }, i) => {
    if (line.unitCent < 0) return []
    const cent = paid[i] ?? 0
    const low = Math.floor(cent / line.quantity)
    const dearer = cent - low * line.quantity
    return [
      { itemLineId, line: { ...line, unitCent: low + 1, quantity: dearer } },
      { itemLineId, line: { ...line, unitCent: low, quantity: line.quantity - dearer } },
    ].filter((part) => part.line.quantity > 0)
  })
}

/**
 * Returns the refunded amount in the record and the name of its field. Without a total, adds up the amounts of the
 * lines.
 */
function refundedOf({ refundedCent, refunded, items }: Sent): { refundedCent: number; field: string } {
  if ((refundedCent ?? 0) > 0) return { refundedCent: refundedCent ?? 0, field: 'refundedCent' }
  if ((refunded ?? 0) > 0) return { refundedCent: Math.round((refunded ?? 0) * 100), field: 'refunded' }
  const ofLines = items.reduce((sum, item) => sum + (item.refundedCent ?? 0), 0)
  const first = items.findIndex((item) => (item.refundedCent ?? 0) > 0)
  return { refundedCent: ofLines, field: `items.${first}.refundedCent` }
}

/** Writes sales and refunds to a system. A fault of a refund names a field of the refund, or no field. */
interface TransactionWriter {
  /** Writes a sale, if the system does not have it yet. */
  sale(transaction: Transaction, index: number): Promise<PushFault | undefined>
  /**
   * Writes a refund of a written sale, if the system does not have it yet. A text means that the system supports no
   * refunds, and states the reason.
   */
  readonly refund: string | ((refund: TransactionRefund, place: RefundPlace) => Promise<PushFault | undefined>)
}

/** Where a refund belongs: its sale, the index of the record, and the field. */
export interface RefundPlace {
  readonly sale: Transaction
  readonly index: number
  readonly field: string
}

/**
 * Writes sales and their refunds one by one. A rejection becomes a fault of its record. Other failures end the call. A
 * repeated call then finds out which records the system already has.
 */
export async function sendTransactions(
  records: readonly PushedRecord[],
  writer: TransactionWriter,
): Promise<PushFault[]> {
  const faults: PushFault[] = []
  for (const [index, record] of records.entries()) {
    const read = readTransaction(record, index)
    const fault = 'fault' in read ? read.fault : await sendOne(read.transaction, index, writer)
    if (fault) faults.push(fault)
  }
  return faults
}

async function sendOne(sale: Transaction, index: number, writer: TransactionWriter): Promise<PushFault | undefined> {
  const { refund: write } = writer
  if (sale.refunds.length === 0) return faultOfRefusal(index, '', () => writer.sale(sale, index))
  // If the system supports no refunds, writes neither sale nor refund. The sale alone would make the revenue in the
  // books too high.
  if (typeof write === 'string') return { index, field: 'refunds', code: 'refund_not_supported', message: write }
  const fault = await faultOfRefusal(index, '', () => writer.sale(sale, index))
  if (fault) return fault
  for (const [n, refund] of sale.refunds.entries()) {
    const field = `refunds.${n}`
    const refused = await faultOfRefusal(index, field, () => write(refund, { sale, index, field }))
    if (refused) return refused
  }
  return undefined
}

async function faultOfRefusal(
  index: number,
  field: string,
  send: () => Promise<PushFault | undefined>,
): Promise<PushFault | undefined> {
  try {
    return await send()
  } catch (error) {
    if (!(error instanceof VendorFault) || error.code !== 'system_refused') throw error
    return { index, field, code: 'refused', message: error.message }
  }
}

/** Formats EUR with two decimals. */
export function decimal(cents: number): string {
  return (cents / 100).toFixed(2)
}
