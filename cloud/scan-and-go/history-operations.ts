import { z } from 'zod'
import { Id, Limit, Offset, QueryNumber, Success, text } from '../operations/fields.ts'
import { legacyForm, operation } from '../operations/operation.ts'
import { cursorField } from '../operations/paging.ts'
import { readHistory } from './history.ts'
import { toPurchase, toTransactionData } from '../purchases/present.ts'
import { Purchase, TransactionData } from '../purchases/schema.ts'
import { rolesFrom } from '../foundation/roles.ts'

const DEFAULT_PAGE = 20
const OLDER_DEFAULT_PAGE = 50
const Paging = { total: z.int(), totalIsEstimate: z.literal(true).optional(), nextCursor: z.string().optional() }

export const fetchPurchaseHistory = operation({
  name: 'fetchPurchaseHistory',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Lists purchases, the newest first.',
  description:
    'All purchases, or only those of one store or one shopper. Omits QR codes of receipts; `fetchPurchase` ' +
    'returns them.',
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    userId: text(128).optional(),
    awaitingApproval: z.literal(true).optional().describe('Only baskets that await `approveCheckout`.'),
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
      limit: QueryNumber.pipe(Limit).optional(),
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
