import { z } from 'zod'
import { holderOf, sharedSlots } from '../../platform/foundation/shared-slots.ts'
import { Id } from '../../platform/operations/fields.ts'
import { operation, type Call, type StepContext } from '../../platform/operations/operation.ts'
import { FileField, FormBoolean, UploadedFile } from '../../platform/operations/validation.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { acceptsUpc } from './ean.ts'
import {
  ImportAnswer,
  recordImport,
  warningsOf,
  refuseUpc,
  ROW_ERRORS_LIMIT,
  rowErrors,
  BATCH_LIMIT,
  upsertProducts,
  type Upserted,
} from './upsert-products.ts'
import { READ_PRODUCTS, type ReadProducts } from './import/read-products.ts'
import { findByEans, listingsIn } from './queries.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'

/** Maximum size of the form, bytes: a file of 20 MB and 64 KB for the other fields. */
const FORM_LIMIT = 20 * 1024 * 1024 + 64 * 1024
/** Reading a file takes up to 100 MB of memory. */
const withSlot = sharedSlots(
  { atWork: 3, atWorkOfOne: 2, waiting: 20, waitingOfOne: 2 },
  { text: 'the server is already reading other files; try again in 5 s', retryAfter: 5 },
)

type Batch = ReadProducts['products']

function importBatch(
  work: StepContext,
  storeId: string,
  batch: Batch,
  countsOfLast: (batch: Upserted) => Parameters<typeof recordImport>[2] | undefined,
): Promise<Upserted> {
  return work.step(async (call) => {
    const store = await ownStore(call, storeId)
    const upserted = await upsertProducts(call, store, batch)
    const counts = countsOfLast(upserted)
    if (counts) recordImport(call, storeId, counts)
    return upserted
  })
}

/** Dry run: counts the rows to import, and those whose product the store already sells. Writes nothing. */
async function tryBatch(call: Call, storeId: string, batch: Batch): Promise<Upserted> {
  const store = await ownStore(call, storeId)
  const known = await findByEans(
    call.db,
    store.tenant,
    batch.map(({ product }) => product.ean),
  )
  const here = await listingsIn(
    call.db,
    storeId,
    [...known.values()].map((row) => row.product_id),
  )
  return { imported: batch.length, updated: here.size }
}

/** Turns rows with a UPC into errors, in the order of the rows, unless the account accepts UPCs. */
function withoutUpc(read: ReadProducts, isAccepted: boolean): ReadProducts {
  const errors = rowErrors()
  const products = read.products.filter(
    ({ index, row, product }) => !refuseUpc(product.ean, isAccepted, { index, row }, errors),
  )
  if (errors.count() === 0) return read
  const listed = [...read.errors.listed, ...errors.listed].toSorted((a, b) => a.index - b.index)
  return {
    ...read,
    products,
    errors: { listed: listed.slice(0, ROW_ERRORS_LIMIT), total: read.errors.total + errors.count() },
  }
}

export const importProducts = operation({
  name: 'importProducts',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Imports products from a spreadsheet: .xlsx or .csv, up to 10,000 rows.',
  description:
    'Send a multipart form with the file as `file`; templates are at `/templates/products.xlsx` and ' +
    '`/templates/products.csv`. Valid rows are imported even if others are invalid, 500 in one transaction; ' +
    '`errors[]` names the invalid rows. A file that cannot be read as a whole is rejected, and nothing is ' +
    'imported. With `dryRun` nothing is written. Clients that accept `text/event-stream` receive `progress` ' +
    'events, then `result`. You can safely send the same file again.',
  changes: true,
  emits: ['product.bulk_imported'],
  multipart: { fileField: 'file', limit: FORM_LIMIT, alsoJson: false },
  request: z.strictObject({ storeId: Id, file: FileField, dryRun: FormBoolean.optional() }),
  response: ImportAnswer.extend({
    rows: z.int().describe('Rows that are not empty, without the header.'),
    dryRun: z.boolean(),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', file: new UploadedFile('products.xlsx', new Uint8Array()) },
  async steps(work, { storeId, file, dryRun = false }) {
    const takesUpc = await work.read(async (call) => acceptsUpc(call.db, (await ownStore(call, storeId)).tenant))
    const { rows, products, errors, warnings } = withoutUpc(
      await withSlot(holderOf(work.caller), () => work.services.uploads.run(READ_PRODUCTS, file.bytes, 'file')),
      takesUpc,
    )
    const sum: Upserted = { imported: 0, updated: 0 }
    for (let at = 0; at < products.length; at += BATCH_LIMIT) {
      const batch = products.slice(at, at + BATCH_LIMIT)
      const isLast = at + BATCH_LIMIT >= products.length
      const countsOfLast = ({ imported, updated }: Upserted) =>
        isLast
          ? { imported: sum.imported + imported, updated: sum.updated + updated, errorCount: errors.total }
          : undefined
      const done = dryRun
        ? await work.read((call) => tryBatch(call, storeId, batch))
        : await importBatch(work, storeId, batch, countsOfLast)
      sum.imported += done.imported
      sum.updated += done.updated
      work.progress({ rows, done: at + batch.length, imported: sum.imported, errors: errors.total })
    }
    const all = [...warnings, ...warningsOf(products)]
    const counts = { ...sum, errors: [...errors.listed], errorCount: errors.total }
    return { success: true as const, ...counts, rows, dryRun, ...(all.length > 0 && { warnings: all }) }
  },
})
