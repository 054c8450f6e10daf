import { z } from 'zod'
import { keyCaller, rolesFrom } from '../foundation/caller.ts'
import { Id, iso, Limit, definedFields, Success, Timestamp } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { cursorField, toPage } from '../operations/paging.ts'
import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Db } from '../persistence/database.ts'
import type { AuditEntryRow, SealRow } from '../persistence/tables/accounts.ts'

interface AuditFilter {
  tenant: string
  sinceMs: number | undefined
  entityId: string | undefined
  /** Last entry of the previous page. */
  after: string | undefined
  /** Lists only entries by this actor or about these entities. */
  only: { actor: string; entityIds: readonly string[] } | undefined
  limit: number
}

/** Entries of one tenant, oldest first, at most `limit`. */
function listAuditEntries(
  db: Db,
  { tenant, sinceMs, entityId, after, only, limit }: AuditFilter,
): Promise<(AuditEntryRow & SealRow)[]> {
  let query = db.selectFrom('audit_entry').selectAll().where('tenant', '=', tenant)
  if (sinceMs !== undefined) query = query.where('at_ms', '>=', sinceMs)
  if (entityId !== undefined) query = query.where('entity_id', '=', entityId)
  if (after !== undefined) query = query.where('entry_id', '>', after)
  if (only)
    query = query.where((eb) => eb.or([eb('actor', '=', only.actor), eb('entity_id', 'in', [...only.entityIds])]))
  return query.orderBy('entry_id').limit(limit).execute()
}

/** Adds an entry for a change that the command line makes without an API call. */
export async function noteChange(
  db: Db,
  entry: Pick<AuditEntryRow, 'tenant' | 'actor' | 'operation' | 'entity_id'>,
  platform: Platform,
): Promise<void> {
  const row = {
    ...entry,
    entry_id: newId('aud', platform),
    request_id: newId('req', platform),
    at_ms: platform.clock.wall(),
  }
  await db.insertInto('audit_entry').values(row).execute()
}

const DEFAULT_PAGE = 100

const AuditEntry = z.strictObject({
  entryId: z.string(),
  at: z.string(),
  actor: z.string().describe('keyId, agentId, `anyone`, `command line` or `retention`.'),
  operation: z.string(),
  entityId: z.string().optional().describe('What was changed.'),
  requestId: z.string(),
  number: z
    .int()
    .optional()
    .describe('Number in the account’s chain; absent for some seconds, until the entry is sealed.'),
  previousHash: z.string().optional(),
  hash: z.string().optional().describe('SHA-256 over number, previousHash and the entry.'),
})

export const fetchAuditLog = operation({
  name: 'fetchAuditLog',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Lists who changed what, oldest first.',
  description:
    'Lists changes in the account, in the mode of the key. A key that is bound to stores sees changes of these stores, and changes that were made with the key.',
  changes: false,
  mayBeStale: true,
  request: z.strictObject({
    since: Timestamp.optional(),
    entityId: Id.optional(),
    limit: Limit.optional(),
    cursor: cursorField('aud').optional(),
  }),
  response: z.strictObject({ ...Success, entries: z.array(AuditEntry), nextCursor: z.string().optional() }),
  example: { since: '2026-11-20T00:00:00Z' },
  async run(call, { since, entityId, limit = DEFAULT_PAGE, cursor }) {
    const caller = keyCaller(call.caller)
    const rows = await listAuditEntries(call.db, {
      tenant: caller.tenant,
      sinceMs: since === undefined ? undefined : Date.parse(since),
      entityId,
      after: cursor,
      only: caller.storeIds === null ? undefined : { actor: caller.keyId, entityIds: caller.storeIds },
      limit: limit + 1,
    })
    const { items, nextCursor } = toPage(rows, (row) => row.entry_id, { limit })
    const entries = items.map((row) => ({
      entryId: row.entry_id,
      at: iso(row.at_ms),
      actor: row.actor,
      operation: row.operation,
      ...definedFields({ entityId: row.entity_id }),
      requestId: row.request_id,
      ...definedFields({ number: row.seq, previousHash: row.prev_hash, hash: row.hash }),
    }))
    return { success: true as const, entries, ...(nextCursor !== undefined && { nextCursor }) }
  },
})
