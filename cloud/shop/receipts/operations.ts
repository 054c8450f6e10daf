import { z } from 'zod'
import {
  claimedReceipts,
  openReceipt,
  receiptAddress,
  type OpenedReceipt,
} from '../../../policy/receipts/receipt-token.ts'
import { firstIdAt } from '../../../policy/ids.ts'
import { originOf } from '../../platform/foundation/config.ts'
import { type Tenant, rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { Id, Success, scanned } from '../../platform/operations/fields.ts'
import { operationAlias, operation, type Call } from '../../platform/operations/operation.ts'
import {
  purchaseOfCaller,
  purchaseIdOf,
  wholePurchase,
  findFormerSale,
  findPurchaseOfReceipt,
} from '../purchases/queries.ts'
import { isReceiptExpired, toTransactionData } from '../purchases/present.ts'
import { TransactionData } from '../purchases/schema.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import { qrPngBase64 } from '../../platform/foundation/qr-code.ts'
import { openAgentReceipt } from './agent-receipts.ts'

/**
 * What happened to a purchase after its receipt was issued. Refund data that is shown beside the receipt, because the
 * receipt never changes.
 */
interface RefundSummary {
  isCancelled: boolean
  /** True if the buyer still owns at least one piece. */
  hasGoods: boolean
  /** Number of returned pieces of a line. */
  returnedOf(item: TransactionData['items'][number]): number
  refundedCent: number
  remainingCent: number
  /** Pending refunds, cents; null if a refund is pending but its amount is unknown. */
  pendingCent: number | null
  failedCent: number
}

/** Summarises cancellation, returns and refunds for buyer and staff. */
export function refundSummaryOf({
  status,
  refundStatus,
  refunds,
  items,
  totalCent,
  refundedCent,
}: TransactionData): RefundSummary {
  const own = refunds.filter((refund) => refund.kind !== 'late')
  const effective = own.filter((refund) => refund.status !== 'failed')
  const returned = new Map<string, number>()
  for (const { itemLineId, quantity, part = quantity } of effective.flatMap((refund) => refund.lines ?? []))
    returned.set(itemLineId, part + (returned.get(itemLineId) ?? 0))
  const isCancelled = status === 'CANCELLED'
  const pendingCent = sum(own.filter((refund) => refund.status === 'pending'))
  // A retried refund is counted once, by its last result.
  const failed = own.filter(
    (refund, i) =>
      refund.status === 'failed' &&
      !own.some((other, at) => isLater(other, refund, at > i) && isRetryOf(other, refund)),
  )
  return {
    isCancelled,
    hasGoods:
      !isCancelled &&
      items.some(
        ({ itemLineId, priceUnit, quantity, cameBack = 0 }) =>
          priceUnit >= 0 && piecesLeft(quantity - cameBack, returned.get(itemLineId)) > 0,
      ),
    returnedOf: ({ itemLineId, quantity, cameBack = 0 }) =>
      isCancelled ? quantity : cameBack + (returned.get(itemLineId) ?? 0),
    refundedCent,
    remainingCent: totalCent - refundedCent,
    pendingCent: pendingCent === 0 && isCancelled && refundStatus === 'pending' ? null : pendingCent,
    // Reduced by amounts that other refunds have repaid meanwhile.
    failedCent: Math.min(sum(failed), Math.max(0, totalCent - refundedCent - pendingCent)),
  }
}

type Refund = TransactionData['refunds'][number]

/**
 * The order of refunds with the same timestamp is undefined. Therefore a refund that has not failed is treated as the
 * later one.
 */
function isLater(other: Refund, refund: Refund, isBehind: boolean): boolean {
  return other.status === 'failed' ? isBehind : other.createdAt >= refund.createdAt
}

function isRetryOf(later: Refund, { kind, amountCent, lines }: Refund): boolean {
  return later.kind === kind && later.amountCent === amountCent && JSON.stringify(later.lines) === JSON.stringify(lines)
}

function sum(refunds: readonly Refund[]): number {
  return refunds.reduce((cents, refund) => cents + refund.amountCent, 0)
}

/**
 * Time after the purchase for which anyone with the receipt token may read the receipt, ms. Devices accept the receipt
 * for one day only.
 */
const READING_MS = 400 * 86_400_000
const DAY_MS = 86_400_000
/** Days in which the end of a number finds its purchase. */
const NUMBER_DAYS = 30

const ReceiptQr = z.strictObject({
  ...Success,
  token: z.string(),
  url: z.string().describe('Address in the code.'),
  expiresAt: z.string().describe('When devices stop accepting the receipt.'),
  imageBase64: z.string().describe('PNG.'),
})

/** Finds the purchase with this end of its number. No index has it, so the days limit the search. */
async function purchaseOfNumber({ db, caller, nowMs }: Call, number: string): Promise<string> {
  if (caller?.kind !== 'agent') throw invalid('number', 'is only for agents: search with fetchPurchaseHistory')
  const rows = await db
    .selectFrom('purchase')
    .select('purchase_id')
    .where('store_id', '=', caller.storeId)
    .where('purchase_id', '>=', firstIdAt('pur', nowMs - NUMBER_DAYS * DAY_MS))
    .where('purchase_id', 'like', `%${number.toUpperCase()}`)
    .limit(2)
    .execute()
  const [found, other] = rows
  if (!found) throw notFound('purchase')
  if (other) throw precondition('number_ambiguous', 'two purchases end with these characters: send the whole number')
  return found.purchase_id
}

export const generateReceiptQR = operation({
  name: 'generateReceiptQR',
  area: 'receipts',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Returns the QR code of a receipt.',
  description:
    'Every call returns the same receipt. Agents record each used unit, so a reprint releases nothing twice. ' +
    'After 24 hours the operation fails with 409 `receipt_expired`. ' +
    'Agents call it when staff type the number of a purchase, or its last six characters.',
  refusals: ['purchase_not_paid', 'receipt_expired', 'number_ambiguous'],
  callers: ['secret', 'agent'],
  changes: false,
  request: z.strictObject({
    purchaseId: Id.optional(),
    transactionId: Id.optional(),
    id: Id.optional(),
    number: z
      .string()
      .regex(/^[0-9A-HJKMNP-TV-Z]{6}$/i, 'must be the last 6 characters of a number')
      .optional()
      .describe(
        'Only for agents: the last six characters of the number, which staff read on lists. Searches the purchases of the last 30 days in the store of the agent.',
      ),
  }),
  response: ReceiptQr,
  example: { purchaseId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, input) {
    const { number, ...ids } = input
    const purchaseId = number === undefined ? purchaseIdOf(ids) : await purchaseOfNumber(call, number)
    const { purchase } = await purchaseOfCaller(call, purchaseId)
    if (purchase.receipt_token === null || purchase.receipt_exp === null) {
      throw precondition('purchase_not_paid', `a purchase with status ${purchase.status} has no receipt`)
    }
    if (isReceiptExpired(purchase, call.nowMs)) {
      throw precondition(
        'receipt_expired',
        'the receipt expired 24 hours after payment: staff can release goods by `purchaseId` with their ' +
          '`operatorId`; getReceiptFromToken still returns the receipt',
      )
    }
    const url = receiptAddress(originOf(call.services.config), purchase.receipt_token)
    const expiresAt = new Date(purchase.receipt_exp * 1_000).toISOString()
    return { success: true as const, token: purchase.receipt_token, url, expiresAt, imageBase64: qrPngBase64(url) }
  },
})

/** Second name of the operation in the specification. */
export const generateReceiptWithQR = operationAlias('generateReceiptWithQR', generateReceiptQR)

/** Returns the data of the purchase with this receipt token, of any tenant. The token authorizes the reader. */
export async function readPublicReceipt(
  call: Pick<Call, 'db' | 'services' | 'nowMs'>,
  token: string,
): Promise<TransactionData> {
  const purchase = await purchaseOfReceiptText(call, token)
  if (!purchase?.completed_ms || call.nowMs > purchase.completed_ms + READING_MS) throw notFound('receipt')
  return toTransactionData(await wholePurchase(call as Call, purchase), call as Call, 'public')
}

/** Finds the purchase of a receipt by its token or the text of its QR code. */
export async function purchaseOfReceiptText(call: Pick<Call, 'db' | 'services'>, token: string) {
  const nowMs = call.services.platform.clock.wall()
  const opened = (await openCloudReceipt(call, token)) ?? (await openAgentReceipt(call.db, token, nowMs))
  if (!opened?.ok) return undefined
  const { cti, exp, storeId } = opened.claims
  const identity = Buffer.from(cti).toString('hex')
  const purchase = await findPurchaseOfReceipt(call.db, identity)
  const isOther = purchase?.till && Math.abs((purchase.receipt_exp ?? exp) - exp) > OTHER_SALE_SECONDS
  return isOther ? findFormerSale(call.db, { storeId, exp, identity }) : purchase
}

/** Receipts whose ends differ by more than this are of two sales with one number, s. A till repeats it after 90 days. */
const OTHER_SALE_SECONDS = 45 * 86_400

async function openCloudReceipt(
  { db, services }: Pick<Call, 'db' | 'services'>,
  token: string,
): Promise<OpenedReceipt | undefined> {
  const kids = claimedReceipts(token).map(({ kid }) => kid)
  if (kids.length === 0) return undefined
  const key = await db
    .selectFrom('signing_key')
    .select('iss')
    .where('kid', 'in', kids)
    .where('key_use', '=', 'receipt')
    .where('state', '!=', 'revoked')
    .executeTakeFirst()
  if (!key) return undefined
  const { reading } = await services.authority.readyWithin(db, key.iss as Tenant)
  return openReceipt(token, { keys: reading })
}

export const getReceiptFromToken = operation({
  name: 'getReceiptFromToken',
  area: 'receipts',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary: 'Returns a receipt by its token. No authentication.',
  description: 'GET only. Accepts the token or the whole text of the QR code.',
  callers: ['anyone'],
  changes: false,
  getOnly: true,
  request: z.strictObject({ token: scanned(4_096) }),
  response: TransactionData.extend(Success),
  example: { token: '2KCE3IQBE4CE…' },
  async run(call, { token }) {
    return { success: true as const, ...(await readPublicReceipt(call, token)) }
  },
})
