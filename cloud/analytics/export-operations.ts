import { z } from 'zod'
import { knownCaller, maySee } from '../foundation/caller.ts'
import { invalid } from '../foundation/failure.ts'
import { Id, Success } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { ownStore } from '../stores/own-store.ts'
import { listStores } from '../stores/queries.ts'
import { addDays, startOfDay } from './days.ts'
import { asCsv, asJson } from './sales-files.ts'
import { readSales } from './sales.ts'
import { Day, Sale, SALE_COLUMNS } from './schema.ts'
import { rolesFrom } from '../foundation/roles.ts'

/** Stores per export. */
const STORES_LIMIT = 10_000

export const exportSalesData = operation({
  name: 'exportSalesData',
  area: 'analytics',
  minimumPackage: 'PRIME',
  roles: rolesFrom('manager'),
  summary: 'Exports all paid purchases between two dates as JSON or CSV.',
  description:
    'Both dates are inclusive. The stores follow one another, and each store’s oldest purchase comes first. The ' +
    'response is streamed and may be long. CSV has one row per purchase line. Amounts are in cents. Cancelled ' +
    'purchases are included with status CANCELLED. `refundedCent` is the amount refunded so far, per line and in ' +
    'total. The export contains no data of the shopper.',
  changes: false,
  mayBeStale: true,
  formats: [
    {
      format: 'csv',
      contentType: 'text/csv',
      description: `With \`format\` \`csv\`: RFC 4180 in UTF-8 with the columns ${SALE_COLUMNS.join(', ')}.`,
    },
  ],
  request: z.strictObject({
    from: Day,
    to: Day,
    storeId: Id.optional().describe('Default: all own stores.'),
    format: z.enum(['json', 'csv']).optional().describe('Default `json`.'),
  }),
  response: z.strictObject({ ...Success, from: z.string(), to: z.string(), sales: z.array(Sale), count: z.int() }),
  example: { from: '2026-11-01', to: '2026-11-30', format: 'csv' },
  async stream(reading, { from, to, storeId, format = 'json' }) {
    if (to < from) throw invalid('to', 'is before from')
    const caller = knownCaller(reading.caller)
    const storeIds = await reading.read(async (call) => {
      if (storeId !== undefined) return [(await ownStore(call, storeId)).store_id]
      const stores = await listStores(call.db, caller.tenant, STORES_LIMIT)
      return stores.filter((store) => maySee(caller, store)).map((store) => store.store_id)
    })
    const pages = readSales(reading, storeIds, startOfDay(from), startOfDay(addDays(to, 1)))
    const fileName = `sales-${from}-${to}.${format}`
    if (format === 'csv')
      return { contentType: 'text/csv; charset=utf-8; header=present', fileName, chunks: asCsv(pages) }
    return { contentType: 'application/json', chunks: asJson(pages, { from, to }) }
  },
})
