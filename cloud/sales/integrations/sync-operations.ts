import { z } from 'zod'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { Credentials, SyncError, type Counts } from './connection.ts'
import { describeSystems } from './connectors.ts'
import { sync, type Synced } from './sync.ts'
import { ERP_SYSTEMS, POS_SYSTEMS, type DataType } from './connector.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'

const RECORDS_LIMIT = 500
const BODY_LIMIT = 2 * 1024 * 1024

const request = {
  storeId: Id,
  credentials: Credentials.describe(
    'Settings of the system. They are stored encrypted and never returned. Optional if they are already stored.',
  ).optional(),
  records: z
    .array(z.record(z.string().max(120), z.unknown()))
    .min(1)
    .max(RECORDS_LIMIT)
    .describe('Records with the system’s own field names. If present, the system is not read.')
    .optional(),
  remember: z
    .boolean()
    .describe(
      'Whether to store the credentials for later calls and pushes (default true). False also deletes stored ones.',
    )
    .optional(),
}

const answer = {
  ...Success,
  _sandbox: z.literal(true).optional(),
  system: z.string(),
  errors: z.array(SyncError).describe('Errors of this call, at most 1,000. Valid records are written anyway.'),
  errorCount: z.int().describe('Records that were not written, over all calls of this round.'),
  hasMore: z.literal(true).optional().describe('A limit ended the call early: call again to continue.'),
  warnings: z.array(z.string()).optional(),
}

const HOW =
  'Reads page by page and stores each page with its cursor. After a crash, an error of the system or a limit ' +
  '(`hasMore`) the next call continues; counts include the whole round. The next call after a complete round ' +
  'starts at the beginning. Clients that accept `text/event-stream` receive `progress` events, then `result`. ' +
  'In the sandbox no system is used and the counts are invented.'

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
  roles: rolesFrom('manager'),
  summary: 'Reads the products of a till system into a store.',
  description: `${HOW} \`credentials\` of ${describeSystems('pos')}. All connectors were tested against simulators only.`,
  changes: true,
  bodyLimit: BODY_LIMIT,
  request: z.strictObject({ system: z.enum(POS_SYSTEMS), ...request }),
  response: z.strictObject({
    ...answer,
    synced: z.strictObject({
      products: z.int(),
      categories: z.int().describe('Distinct categories of the products.'),
      priceUpdates: z.int().describe('Products whose price in the store changed.'),
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
  roles: rolesFrom('manager'),
  summary: 'Reads stock, purchase orders and suppliers of an ERP system into a store.',
  description:
    `${HOW} Stock records set the counted stock (\`setStock\`); orders and suppliers are stored unchanged, and \`fetchERPRecords\` returns them. ` +
    `\`credentials\` of ${describeSystems('erp')}. All connectors were tested against simulators only.`,
  changes: true,
  bodyLimit: BODY_LIMIT,
  request: z.strictObject({
    system: z.enum(ERP_SYSTEMS),
    dataType: z.enum(['stock', 'orders', 'suppliers']).describe('Type of `records` (default stock).').optional(),
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
