import { z } from 'zod'
import { Id, iso, Limit, Offset, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { toPage, pageLimits, invalidCursor } from '../../platform/operations/paging.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { listErpRecords } from './queries.ts'
import { canonical, ERP_SYSTEMS } from './systems.ts'
import { rolesFrom } from '../../platform/foundation/roles.ts'

const DEFAULT_PAGE = 50

const ErpRecord = z.looseObject({ externalId: z.string(), updatedAt: z.string() })

export const fetchERPRecords = operation({
  name: 'fetchERPRecords',
  area: 'integrations',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Lists purchase orders or suppliers that syncERP has stored.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    dataType: z.enum(['orders', 'suppliers']),
    system: z.enum(ERP_SYSTEMS).describe('Default generic.').optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: z.string().optional().describe('The `nextCursor` of the previous page.'),
  }),
  response: z.strictObject({ ...Success, records: z.array(ErpRecord), nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', dataType: 'suppliers' },
  answer: {
    success: true,
    records: [{ externalId: 'S-17', name: 'Lindwerk GmbH', updatedAt: '2026-11-20T09:00:00.000Z' }],
  },
  async run(call, { storeId, dataType, system = 'generic', ...paging }) {
    await ownStore(call, storeId)
    const page = pageLimits(paging, DEFAULT_PAGE)
    const after = page.after === undefined ? undefined : readCursor(dataType, page.after)
    const rows = await listErpRecords(call.db, storeId, dataType, canonical(system), {
      ...page,
      after,
      limit: page.limit + 1,
    })
    const { items, nextCursor } = toPage(rows, (row) => row.external_id, page)
    const records = items.map(({ doc, updated_ms }) => ({
      ...(JSON.parse(doc) as { externalId: string }),
      updatedAt: iso(updated_ms),
    }))
    return { success: true as const, records, ...(nextCursor && { nextCursor: writeCursor(dataType, nextCursor) }) }
  },
})

/** External ids have no fixed form, so the prefix distinguishes a cursor from other texts. */
function writeCursor(dataType: string, externalId: string): string {
  return Buffer.from(`${dataType}/${externalId}`).toString('base64url')
}

function readCursor(dataType: string, cursor: string): string {
  const read = Buffer.from(cursor, 'base64url').toString()
  // PostgreSQL rejects NUL characters.
  if (!read.startsWith(`${dataType}/`) || read.includes('\0')) throw invalidCursor()
  return read.slice(dataType.length + 1)
}
