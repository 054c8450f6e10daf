import { z } from 'zod'
import { keyCaller } from '../foundation/caller.ts'
import { Id, iso, Limit, definedFields, Success, Timestamp } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { cursorField, toPage } from '../operations/paging.ts'
import { listAuditEntries } from './audit-queries.ts'
import { rolesFrom } from '../foundation/roles.ts'

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
