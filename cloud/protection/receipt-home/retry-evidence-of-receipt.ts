import { sql } from 'kysely'
import type { Call } from '../../platform/operations/operation.ts'
import { prepared } from '../../platform/persistence/prepared.ts'

const isReported = prepared((db, p: { storeId: string; like: string }) =>
  db
    .selectFrom('journal_row as j')
    .innerJoin('agent as a', 'a.agent_id', 'j.agent_id')
    .select('j.seq')
    .where('a.store_id', '=', p.storeId)
    // SQL literal, because SQLite would not use the partial index with a parameter.
    .where(sql<boolean>`j.applied = 0`)
    .where('j.body', 'like', p.like)
    .limit(1),
)

/**
 * Retries unapplied rows if one of them names this receipt. Agents may have reported uses of the receipt before the
 * restored cloud knew it. The immediate retry prevents a second release. `cti`: id of the receipt, hex.
 */
export async function retryEvidenceOfReceipt(call: Call, storeId: string, cti: string): Promise<void> {
  const { authority, entityRegistered } = call.services
  if (authority.cloudGeneration === 1) return
  if ((await isReported(call.db, { storeId, like: `%${cti}%` })).length > 0) call.afterCommit(entityRegistered.notify)
}
