import { z } from 'zod'
import { keyCaller, PLATFORM_ROLE, rolesFrom } from '../foundation/caller.ts'
import { Id, iso, Limit, definedFields, Success, Timestamp } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { cursorField, toPage } from '../operations/paging.ts'
import { firstIdAt, newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Db } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'

interface AuditFilter {
  tenant: string
  sinceMs: number | undefined
  isLatest: boolean
  entityId: string | undefined
  /** Last entry of the previous page. */
  after: string | undefined
  /** Last entry that this page looks at. */
  upTo?: string | undefined
  /** Lists only entries by this actor or about these entities. */
  only: { actor: string; entityIds: readonly string[] } | undefined
  /** Leaves out what agents did by themselves. */
  isWithoutAgents: boolean
  limit: number
}

/** Entries of one tenant, at most `limit`: the oldest first, or with `isLatest` the newest. */
function listAuditEntries(
  db: Db,
  { tenant, sinceMs, isLatest, entityId, after, upTo, only, isWithoutAgents, limit }: AuditFilter,
): Promise<Row<'audit_entry'>[]> {
  let query = db.selectFrom('audit_entry').selectAll().where('tenant', '=', tenant)
  if (sinceMs !== undefined)
    // The id begins with the time, so the index finds the first entry.
    query = query.where('at_ms', '>=', sinceMs).where('entry_id', '>=', firstIdAt('aud', sinceMs - ID_GUARD_MS))
  if (upTo !== undefined) query = query.where('entry_id', isLatest ? '>=' : '<=', upTo)
  if (entityId !== undefined) query = query.where('entity_id', '=', entityId)
  if (after !== undefined) query = query.where('entry_id', isLatest ? '<' : '>', after)
  if (isWithoutAgents) query = query.where('actor', 'not like', 'agt_%')
  if (only)
    query = query.where((eb) => eb.or([eb('actor', '=', only.actor), eb('entity_id', 'in', [...only.entityIds])]))
  return query
    .orderBy('entry_id', isLatest ? 'desc' : 'asc')
    .limit(limit)
    .execute()
}

/** Clocks of several processes may differ by this time, ms. */
const ID_GUARD_MS = 3_600_000
/** Entries that one page looks at for a key that is bound to stores, or without agents. No index has only these entries. */
const LOOKED_AT = 10_000

/** Last entry that a page after `after` looks at; undefined if it may look at all. */
async function endOfPage(
  db: Db,
  { tenant, sinceMs, isLatest, after }: Pick<AuditFilter, 'tenant' | 'sinceMs' | 'isLatest' | 'after'>,
): Promise<string | undefined> {
  const first = sinceMs === undefined ? '' : firstIdAt('aud', sinceMs - ID_GUARD_MS)
  const all = db.selectFrom('audit_entry').select('entry_id').where('tenant', '=', tenant).where('entry_id', '>', first)
  const looked = after === undefined ? all : all.where('entry_id', isLatest ? '<' : '>', after)
  const end = await looked
    .orderBy('entry_id', isLatest ? 'desc' : 'asc')
    .offset(LOOKED_AT - 1)
    .limit(1)
    .executeTakeFirst()
  return end?.entry_id
}

/** Adds an entry for a change that the command line makes without an API call. */
export async function noteChange(
  db: Db,
  entry: Pick<Row<'audit_entry'>, 'tenant' | 'actor' | 'operation' | 'entity_id'>,
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
  roles: [...rolesFrom('admin'), PLATFORM_ROLE],
  summary: 'Lists who changed what, oldest first.',
  description:
    'Lists changes in the account, in the mode of the key. A key that is bound to stores sees changes of these stores, and changes that were made with the key. ' +
    'Its pages may have fewer entries than `limit`: continue while there is a `nextCursor`.',
  changes: false,
  mayBeStale: true,
  request: z.strictObject({
    since: Timestamp.optional(),
    latest: z.literal(true).optional().describe('The newest first.'),
    entityId: Id.optional(),
    withoutAgents: z.literal(true).optional().describe('Leaves out what agents did by themselves.'),
    limit: Limit.optional(),
    cursor: cursorField('aud').optional(),
  }),
  response: z.strictObject({ ...Success, entries: z.array(AuditEntry), nextCursor: z.string().optional() }),
  example: { since: '2026-11-20T00:00:00Z' },
  async run(call, { since, latest, entityId, withoutAgents, limit = DEFAULT_PAGE, cursor }) {
    const caller = keyCaller(call.caller)
    const page = {
      tenant: caller.tenant,
      sinceMs: since === undefined ? undefined : Date.parse(since),
      isLatest: latest === true,
      after: cursor,
    }
    const only = caller.storeIds === null ? undefined : { actor: caller.keyId, entityIds: caller.storeIds }
    const isWithoutAgents = withoutAgents === true
    const upTo = (only || isWithoutAgents) && entityId === undefined ? await endOfPage(call.db, page) : undefined
    const rows = await listAuditEntries(call.db, {
      ...page,
      entityId,
      upTo,
      only,
      isWithoutAgents,
      limit: limit + 1,
    })
    const { items, nextCursor = upTo } = toPage(rows, (row) => row.entry_id, { limit })
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
