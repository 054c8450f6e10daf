import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Db } from '../persistence/database.ts'
import type { AuditEntryRow, SealRow } from '../persistence/tables/accounts.ts'

export interface AuditFilter {
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
export function listAuditEntries(
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
