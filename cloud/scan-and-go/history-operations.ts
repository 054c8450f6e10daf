import { z } from 'zod'
import { Id, Limit, Offset, QueryNumber, Success, scanned, text, ProductCodeText } from '../operations/fields.ts'
import { legacyForm, operation } from '../operations/operation.ts'
import { cursorField } from '../operations/paging.ts'
import { readHistory } from './history.ts'
import { toPurchase, toTransactionData } from '../purchases/present.ts'
import { Purchase, TransactionData } from '../purchases/schema.ts'
import { rolesFrom } from '../foundation/roles.ts'

const DEFAULT_PAGE = 20
const OLDER_DEFAULT_PAGE = 50
/** What a customer without a receipt brings or remembers. */
const SEARCH_FIELDS = {
  ean: ProductCodeText.optional().describe('Purchases with this product. The EAN in any form.'),
  tag: scanned(128).optional().describe('Purchases of the tagged item: its EPC, tag UID or printed number.'),
  number: z
    .string()
    .regex(/^[0-9A-HJKMNP-TV-Z]{6,26}$/i, 'must be the last 6 to 26 characters of a number')
    .optional()
    .describe('Last characters of the number of the purchase, as lists show them. Searches the last 90 days.'),
  day: z.iso.date().optional().describe('Purchases that were paid on this day, in the time zone of the store.'),
}
const TotalCent = z
  .int()
  .min(0)
  .describe('Purchases with this total. Without `day`, `ean` or `tag`, searches the last 30 days.')
const Paging = { total: z.int(), totalIsEstimate: z.literal(true).optional(), nextCursor: z.string().optional() }

export const fetchPurchaseHistory = operation({
  name: 'fetchPurchaseHistory',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Lists purchases, the newest first.',
  description:
    'All purchases, or only those of one store or one shopper. To find a purchase without its number, send `ean` or ' +
    '`tag` of the goods, the end of its number, or `day` and `totalCent`. Omits QR codes of receipts; `fetchPurchase` ' +
    'returns them.',
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    userId: text(128).optional(),
    awaitingApproval: z.literal(true).optional().describe('Only baskets that await `approveCheckout`.'),
    ...SEARCH_FIELDS,
    totalCent: TotalCent.optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: cursorField('pur').optional(),
  }),
  response: z.strictObject({ ...Success, purchases: z.array(Purchase), ...Paging }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', limit: 20 },
  get: legacyForm({
    request: z.strictObject({
      storeId: Id.optional(),
      userId: text(128).optional(),
      awaitingApproval: z
        .literal('true')
        .transform(() => true as const)
        .optional(),
      ...SEARCH_FIELDS,
      totalCent: QueryNumber.pipe(TotalCent).optional(),
      limit: QueryNumber.pipe(Limit).optional(),
      offset: QueryNumber.pipe(Offset).optional(),
      cursor: cursorField('pur').optional(),
    }),
    response: z.strictObject({ ...Success, data: z.array(TransactionData), ...Paging }),
    async run(call, input) {
      const { purchases, ...rest } = await readHistory(call, input, OLDER_DEFAULT_PAGE)
      return { success: true as const, data: purchases.map((whole) => toTransactionData(whole, call, 'list')), ...rest }
    },
  }),
  async run(call, input) {
    const { purchases, ...rest } = await readHistory(call, input, DEFAULT_PAGE)
    return { success: true as const, purchases: purchases.map((whole) => toPurchase(whole, call, 'list')), ...rest }
  },
})
