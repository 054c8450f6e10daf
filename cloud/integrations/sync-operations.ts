import { z } from 'zod'
import { Id, Success } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { Credentials } from './connection.ts'
import { describeSystems } from './connectors.ts'
import type { Counts } from './pull-state.ts'
import { SyncError } from './sync-error.ts'
import { sync, type Synced } from './sync.ts'
import { ERP_SYSTEMS, POS_SYSTEMS, type DataType } from './systems.ts'

const RECORDS_LIMIT = 500
const BODY_LIMIT = 2 * 1024 * 1024

const request = {
  storeId: Id,
  credentials: Credentials.describe(
    'What the system asks for. Kept encrypted, never answered. Once they are kept they may be left out.',
  ).optional(),
  records: z
    .array(z.record(z.string().max(120), z.unknown()))
    .min(1)
    .max(RECORDS_LIMIT)
    .describe('Instead of asking the system: its records, under its own names.')
    .optional(),
  remember: z
    .boolean()
    .describe(
      'Whether to keep the credentials for later calls and for pushes (default true). False also forgets those that are kept.',
    )
    .optional(),
}

const answer = {
  ...Success,
  _sandbox: z.literal(true).optional(),
  system: z.string(),
  errors: z.array(SyncError).describe('Of this call, at most 1,000. Good records are taken all the same.'),
  errorCount: z.int().describe('Records that were not taken, over all calls of this round.'),
  hasMore: z.literal(true).optional().describe('A limit was reached: call again, and it goes on there.'),
  warnings: z.array(z.string()).optional(),
}

const HOW =
  'Reads page by page; each page is durable with its cursor. After a crash, a fault of the system or a limit (`hasMore`) the next call goes on where this one stopped; counts are those of the whole round. ' +
  'A round that is over begins at the beginning. Who accepts `text/event-stream` gets `progress` events, then `result`. In the sandbox no system is asked and the counts are made up.'

function rest({ isSandbox, counts, errors, hasMore, warnings }: Synced) {
  return {
    ...(isSandbox && { _sandbox: true as const }),
    errors,
    errorCount: failedOf(counts),
    ...(hasMore && { hasMore: true as const }),
    ...(warnings.length > 0 && { warnings }),
  }
}

const takenOf = (counts: ReadonlyMap<DataType, Counts>, type: DataType) => counts.get(type)?.taken ?? 0
const failedOf = (counts: ReadonlyMap<DataType, Counts>) =>
  [...counts.values()].reduce((sum, { failed }) => sum + failed, 0)

function posCounts(counts: ReadonlyMap<DataType, Counts>) {
  const articles = counts.get('articles')
  return {
    products: articles?.taken ?? 0,
    categories: articles?.categories.length ?? 0,
    priceUpdates: articles?.repriced ?? 0,
  }
}

function erpCounts(counts: ReadonlyMap<DataType, Counts>) {
  return { stock: takenOf(counts, 'stock'), orders: takenOf(counts, 'orders'), suppliers: takenOf(counts, 'suppliers') }
}

export const syncPOS = operation({
  name: 'syncPOS',
  area: 'integrations',
  minimumPackage: 'GROW',
  summary: 'Reads the products of a till system into a store.',
  description: `${HOW} \`credentials\` of ${describeSystems('pos')}. Every connector was tested against a simulator only.`,
  changes: true,
  bodyLimit: BODY_LIMIT,
  request: z.strictObject({ system: z.enum(POS_SYSTEMS), ...request }),
  response: z.strictObject({
    ...answer,
    synced: z.strictObject({
      products: z.int(),
      categories: z.int().describe('Different ones among the products.'),
      priceUpdates: z.int().describe('Products that the store had at another price.'),
    }),
  }),
  example: {
    system: 'generic',
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    credentials: { baseUrl: 'https://till.example/api', token: 'token-of-the-shop' },
  },
  answer: {
    success: true,
    system: 'generic',
    synced: { products: 120, categories: 8, priceUpdates: 3 },
    errors: [],
    errorCount: 0,
  },
  emits: ['integration.pos.synced'],
  async steps(work, input) {
    const { system, storeId } = input
    const done = await sync(work, 'pos', input, (call, counts) => {
      const failed = failedOf(counts)
      call.emit({
        type: 'integration.pos.synced',
        storeId,
        data: { storeId, system, synced: posCounts(counts), ...(failed > 0 && { failed }) },
      })
    })
    return { success: true as const, system, synced: posCounts(done.counts), ...rest(done) }
  },
})

export const syncERP = operation({
  name: 'syncERP',
  area: 'integrations',
  minimumPackage: 'GROW',
  summary: 'Reads stock, purchase orders and suppliers of an ERP system into a store.',
  description:
    `${HOW} Stock sets what the store counts (\`setStock\`); orders and suppliers are kept as they are and read by \`fetchERPRecords\`. ` +
    `\`credentials\` of ${describeSystems('erp')}. Every connector was tested against a simulator only.`,
  changes: true,
  bodyLimit: BODY_LIMIT,
  request: z.strictObject({
    system: z.enum(ERP_SYSTEMS),
    dataType: z.enum(['stock', 'orders', 'suppliers']).describe('What `records` are (default stock).').optional(),
    ...request,
  }),
  response: z.strictObject({
    ...answer,
    synced: z.strictObject({ stock: z.int(), orders: z.int(), suppliers: z.int() }),
  }),
  example: {
    system: 'generic',
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    credentials: { baseUrl: 'https://erp.example/api', username: 'untag', password: 'password-of-the-shop' },
  },
  answer: {
    success: true,
    system: 'generic',
    synced: { stock: 120, orders: 4, suppliers: 2 },
    errors: [],
    errorCount: 0,
  },
  emits: ['integration.erp.synced'],
  async steps(work, input) {
    const { system, storeId } = input
    const done = await sync(work, 'erp', input, (call, counts) => {
      const failed = failedOf(counts)
      call.emit({
        type: 'integration.erp.synced',
        storeId,
        data: { storeId, system, synced: erpCounts(counts), ...(failed > 0 && { failed }) },
      })
    })
    return { success: true as const, system, synced: erpCounts(done.counts), ...rest(done) }
  },
})
