import { z } from 'zod'
import {
  keptReturn,
  keptSale,
  receiptCodeHash,
  refuseWrongLines,
  SaleFields,
  SaleNames,
  TillReturn,
} from '../../../policy/till-sale.ts'
import { ITEM_STATUSES } from '../../../policy/vocabulary.ts'
import { releasesByCode } from '../../../policy/receipts/code-strength.ts'
import { RECEIPT_LIFE } from '../../../policy/receipts/receipt-token.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { Failure, invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { Id, iso, lines, scanned, Success, text, Timestamp } from '../../platform/operations/fields.ts'
import { endsSoon } from '../../platform/operations/job-steps.ts'
import { operation, type Call, type StepContext } from '../../platform/operations/operation.ts'
import { readRow } from '../../platform/operations/validation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'
import { REFUND_EVENTS } from '../checkout/book-refund.ts'
import { COMPLETION_EVENTS } from '../checkout/complete-purchase.ts'
import { recordSale, type SaleResult } from './record-sale.ts'
import { isReceiptExpired } from '../../shop/purchases/present.ts'
import { findPurchase } from '../../shop/purchases/queries.ts'
import { openAgentReceipt } from '../../shop/receipts/agent-receipts.ts'
import { findSale } from './queries.ts'
import { recordReturn, saleKeyOfCode } from './return-goods.ts'
import type { ReturnResult } from './returned-tags.ts'
import { revokeTillSales } from './revoke-till.ts'
import { voidSaleOf } from './void-sale.ts'

/** Operations for the shop's own tills (ADR till-sales). */

const SALES_LIMIT = 500
const LINES_PER_CALL = 5_000

/** Number of lines and their tags, also of malformed ones. */
function sizeOf(lines: unknown): number {
  if (!Array.isArray(lines)) return 0
  const lengthOf = (list: unknown) => (Array.isArray(list) ? list.length : 0)
  return (lines as (Partial<Record<'epcs' | 'tagUids' | 'tagIds', unknown>> | null)[]).reduce(
    (sum, line) => sum + 1 + lengthOf(line?.epcs) + lengthOf(line?.tagUids) + lengthOf(line?.tagIds),
    0,
  )
}
const BODY_LIMIT = 4 * 1024 * 1024
/** Sales per transaction, because each blocks other writers. */
const AT_ONCE = 20

/** A sale as the cloud takes it. */
export const SaleOfCloud = z
  .strictObject({
    ...SaleFields,
    userId: text(128).optional().describe('Who bought, for the history and the loyalty programmes.'),
    loyaltyCard: scanned(200).optional().describe('Who bought, by the code of a loyalty card.'),
  })
  .superRefine(refuseWrongLines)
/**
 * A malformed sale or return is refused alone, so that one faulty till does not stop the others. What is no object is
 * read as an empty one.
 */
const Malformed = z.looseObject({}).catch({})

const Warnings = z
  .array(
    z.strictObject({
      code: z.string(),
      message: z.string(),
      lineId: z.string().optional(),
      tag: z.string().optional(),
    }),
  )
  .describe('What is doubtful. A tag with a warning keeps its status; most warnings are exceptions for people, too.')
const Refused = z
  .array(
    z.strictObject({
      index: z.int(),
      saleId: z.string().optional(),
      error: z.string(),
      code: z.string(),
      field: z.string().optional(),
    }),
  )
  .describe('What was refused, and why. Everything else is recorded.')
type Refused = z.infer<typeof Refused>
const Tag = { tag: z.string(), itemStatus: z.enum(ITEM_STATUSES).optional() }

/** Runs rows in short transactions of a few, each row alone: a refused row does not stop the others. */
async function runEach<T extends { saleId?: unknown }, R>(
  work: StepContext,
  storeId: string,
  rows: readonly T[],
  run: (call: Call, store: Row<'store'>, row: T) => Promise<{ isNew: boolean; result: R }>,
): Promise<{ recorded: number; repeated: number; results: R[]; errors: Refused }> {
  const sums = { recorded: 0, repeated: 0, results: [] as R[], errors: [] as Refused }
  for (let first = 0; first < rows.length;) {
    const done = await work.step(async (call) => {
      const isOver = endsSoon(call.services.platform.clock)
      const store = await ownStore(call, storeId)
      call.changed(store.store_id)
      const part = { rows: 0, recorded: 0, repeated: 0, results: [] as R[], errors: [] as Refused }
      for (const [i, row] of rows.slice(first, first + AT_ONCE).entries()) {
        try {
          const { isNew, result } = await run(call, store, row)
          part.results.push(result)
          part[isNew ? 'recorded' : 'repeated']++
        } catch (error) {
          if (!(error instanceof Failure)) throw error
          part.errors.push({ index: first + i, ...numberOf(row), ...refusalOf(error) })
        }
        part.rows++
        if (isOver()) break
      }
      return part
    })
    sums.recorded += done.recorded
    sums.repeated += done.repeated
    sums.results.push(...done.results)
    sums.errors.push(...done.errors)
    first += done.rows
    work.progress({ done: first, total: rows.length })
  }
  return sums
}

function refusalOf({ code, message, extras }: Failure): Pick<Refused[number], 'error' | 'code' | 'field'> {
  const [detail] = extras.details ?? []
  return { error: message, code: extras.reason ?? detail?.code ?? code, ...(detail && { field: detail.path }) }
}

const numberOf = ({ saleId }: { saleId?: unknown }): { saleId?: string } =>
  typeof saleId === 'string' ? { saleId: saleId.slice(0, 64) } : {}

export const recordSales = operation({
  name: 'recordSales',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: [],
  callers: ['secret'],
  summary: 'Records sales of your own tills, so that their goods leave without an alarm.',
  description:
    'Each sale is recorded once, by store, `tillId`, `series` and `saleId`; a repetition gets the first answer. ' +
    'The tags of a sale count as paid, its receipt releases its labels, and `checkout.completed` is sent. A well-formed sale is always recorded: ' +
    'what is doubtful is a warning, and that tag keeps its status. Sales of different content with the same names are refused. ' +
    'A sale older than 24 hours gives no rights. Without network, send the sale to an agent of the store (`POST /v1/sales`).',
  changes: true,
  bodyLimit: BODY_LIMIT,
  rows: 'sales',
  request: z.strictObject({
    storeId: Id,
    sales: z
      .array(z.union([SaleOfCloud, Malformed]))
      .min(1)
      .max(SALES_LIMIT)
      .describe(
        `At most ${LINES_PER_CALL} lines and tags together. A malformed sale is listed in \`errors\`; the others are recorded.`,
      ),
  }),
  response: z.strictObject({
    ...Success,
    recorded: z.int(),
    repeated: z.int().describe('Sales that were recorded before with the same content, by whichever way.'),
    results: z.array(
      z.strictObject({
        saleId: z.string(),
        purchaseId: z.string().optional().describe('Absent for an open sale.'),
        receiptToken: z.string().optional().describe('For the QR code of the printed receipt.'),
        items: z.array(z.strictObject({ lineId: z.string(), ...Tag })),
        warnings: Warnings,
      }),
    ),
    errors: Refused,
  }),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    sales: [
      {
        saleId: '4711',
        tillId: 'till-3',
        series: 'Z-0815',
        occurredAt: '2026-11-20T09:00:00Z',
        totalCent: 8_990,
        lines: [
          { ean: '4012345678901', name: 'Jacke', quantity: 1, priceUnit: 8_990, vat: 19, tagIds: ['HT-2-001-1'] },
        ],
      },
    ],
  },
  emits: [...COMPLETION_EVENTS, ...REFUND_EVENTS, 'securityTag.deactivated'],
  async steps(work, { storeId, sales }) {
    const count = sales.reduce<number>((sum, { lines: all }) => sum + sizeOf(all), 0)
    if (count > LINES_PER_CALL)
      throw invalid(
        'sales',
        `have ${count} lines and tags together; the maximum is ${LINES_PER_CALL}: send fewer sales at once`,
        'too_many',
      )
    const done = await runEach<{ saleId?: unknown }, SaleResult>(work, storeId, sales, (call, store, sent) =>
      recordSale(call, store, keptSale(storeId, readRow(SaleOfCloud, sent)), { storedMs: call.nowMs }),
    )
    return { success: true as const, ...done }
  },
})

export const getReceiptFromCode = operation({
  name: 'getReceiptFromCode',
  area: 'receipts',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  callers: ['secret', 'agent'],
  summary: 'Finds the receipt of a sale by a code that its till printed.',
  description:
    'The code is one of `receiptCodes` of the sale, or the receipt that an agent signed for it. Returns 404 for an unknown code, and 409 ' +
    '`code_of_several_sales` if two sales of the last 24 hours printed it. Agents call it when a shopper presents the code at a gate or station.',
  refusals: ['code_of_several_sales', 'receipt_expired', 'agent_revoked'],
  changes: false,
  request: z.strictObject({ storeId: Id, code: scanned(1_024).describe('As scanned.') }),
  response: z.strictObject({
    ...Success,
    purchaseId: z.string(),
    token: z.string().describe('Receipt token, for `verifyProtectedItem` and agents.'),
    expiresAt: z.string().describe('When devices stop accepting the receipt.'),
    releases: z
      .boolean()
      .describe(
        'False: the code only opens a barrier, by the policy (`tillSales.codes`) or because it has too few random bits. Use the receipt for nothing else.',
      ),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', code: '20261120-3-4711-8F2K' },
  async run(call, { storeId, code }) {
    const store = await ownStore(call, storeId)
    const { saleKey, releases } = await printedSale(call, store, code)
    const sale = await findSale(call.db, saleKey)
    const purchase = sale?.purchase_id && (await findPurchase(call.db, store.tenant, sale.purchase_id))
    if (!purchase || purchase.receipt_token === null || purchase.receipt_exp === null)
      throw notFound('sale with this code')
    if (isReceiptExpired(purchase, call.nowMs))
      throw precondition('receipt_expired', 'the receipt expired 24 hours after the sale: staff decide')
    const { purchase_id: purchaseId, receipt_token: token, receipt_exp: expS } = purchase
    return { success: true as const, purchaseId, token, expiresAt: iso(expS * 1_000), releases }
  },
})

/**
 * Identity of the sale that printed this text: a code, or the receipt that an agent signed. `releases`: it stands for
 * the receipt, and does not only open a barrier. Throws 404 and 409.
 */
async function printedSale(
  call: Call,
  store: Row<'store'>,
  text: string,
): Promise<{ saleKey: string; releases: boolean }> {
  const receipt = await openAgentReceipt(call.db, text, call.nowMs)
  if (!receipt) {
    const code = receiptCodeHash(store.store_id, text)
    return {
      saleKey: await saleKeyOfCode(call, store, code, call.nowMs - RECEIPT_LIFE * 1_000),
      releases: releasesByCode(policyOf(store).tillSales.codes, text),
    }
  }
  if (receipt.ok && receipt.claims.storeId === store.store_id)
    return { saleKey: Buffer.from(receipt.claims.cti).toString('hex'), releases: true }
  if (!receipt.ok && receipt.fault === 'key_revoked')
    throw precondition('agent_revoked', 'the agent that signed this receipt was revoked: staff decide')
  throw notFound('sale with this receipt')
}

export const recordReturns = operation({
  name: 'recordReturns',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Records goods that came back to your own tills: their tags alarm again.',
  description:
    'Name the sale by `saleId`, `purchaseId`, `receipt` or `code`, or only the goods by their tags. No money moves: the till paid it. ' +
    'A return whose sale is not here yet waits for it (`waiting`), and after 7 days is an exception. ' +
    'Purchases whose money untag took are returned with refundPayment.',
  changes: true,
  bodyLimit: BODY_LIMIT,
  rows: 'returns',
  request: z.strictObject({
    storeId: Id,
    returns: z
      .array(z.union([TillReturn, Malformed]))
      .min(1)
      .max(SALES_LIMIT)
      .describe('A malformed return is listed in `errors`; the others are recorded.'),
  }),
  response: z.strictObject({
    ...Success,
    recorded: z.int(),
    repeated: z.int(),
    results: z.array(
      z.strictObject({
        returnId: z.string(),
        purchaseId: z.string().optional(),
        amountCent: z.int().optional().describe('What was paid for the goods.'),
        items: z.array(z.strictObject(Tag)),
        waiting: z.literal(true).optional().describe('The sale is not here yet.'),
      }),
    ),
    errors: Refused,
  }),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    returns: [
      {
        returnId: 'R-1',
        saleId: '4711',
        tillId: 'till-3',
        series: 'Z-0815',
        lines: [{ lineId: '1' }],
        resellable: true,
      },
    ],
  },
  emits: [...REFUND_EVENTS, 'securityTag.deactivated'],
  async steps(work, { storeId, returns }) {
    const count = returns.reduce<number>((sum, { lines: all, ...named }) => sum + sizeOf(all) + sizeOf([named]), 0)
    if (count > LINES_PER_CALL)
      throw invalid('returns', `have ${count} lines and tags together; the maximum is ${LINES_PER_CALL}`, 'too_many')
    const done = await runEach<{ saleId?: unknown }, ReturnResult>(work, storeId, returns, (call, store, sent) =>
      recordReturn(call, store, keptReturn(storeId, readRow(TillReturn, sent)), { storedMs: call.nowMs }),
    )
    return { success: true as const, ...done }
  },
})

export const voidSale = operation({
  name: 'voidSale',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: [],
  callers: ['secret'],
  summary: 'Voids a sale of your own till: its rights end, and its goods alarm again.',
  description:
    'A void whose sale is not here yet waits for it (`waiting`), and after 7 days is an exception. `released` lists the pieces whose tag ' +
    'was off or that had left: they are on hold, and the exception `released_then_voided` is raised. `markPurchaseCancelled` does the same by `purchaseId`.',
  changes: true,
  request: z.strictObject({ storeId: Id, ...SaleNames, reason: lines(300).optional() }),
  response: z.strictObject({
    ...Success,
    purchaseId: z.string().optional(),
    waiting: z.literal(true).optional(),
    released: z.array(z.strictObject({ lineId: z.string(), unit: z.int() })),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', saleId: '4711', tillId: 'till-3', series: 'Z-0815' },
  emits: [...REFUND_EVENTS],
  async run(call, { storeId, reason, ...name }) {
    const store = await ownStore(call, storeId)
    call.changed(store.store_id)
    return { success: true as const, ...(await voidSaleOf(call, store, name, { reason, storedMs: call.nowMs })) }
  },
})

export const revokeTill = operation({
  name: 'revokeTill',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: [],
  callers: ['secret'],
  summary: 'Stops a till that cannot be trusted: its sales release nothing any more.',
  description:
    'Further sales of this `tillId` are recorded, but give no rights, also at agents, once they have the new policy. Its sales since `sinceAt` (default: now) are voided in their effect: unused ' +
    'rights end, and their goods alarm or are on hold. There is no way back: give the till a new `tillId` when it can be trusted again.',
  changes: true,
  request: z.strictObject({ storeId: Id, tillId: text(64), sinceAt: Timestamp.optional() }),
  response: z.strictObject({
    ...Success,
    tillId: z.string(),
    revokedAt: z.string(),
    sinceAt: z.string(),
    held: z.int().describe('Sales whose rights ended.'),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', tillId: 'till-3', sinceAt: '2026-11-20T08:00:00Z' },
  emits: [],
  async steps(work, { storeId, tillId, sinceAt }) {
    const { revokedMs, sinceMs, held } = await revokeTillSales(work, storeId, tillId, sinceAt)
    return { success: true as const, tillId, revokedAt: iso(revokedMs), sinceAt: iso(sinceMs), held }
  },
})
