import { sql } from 'kysely'
import type { Call } from '../../operations/operation.ts'
import { prepared } from '../../persistence/prepared.ts'

const isReported = prepared((db, p: { storeId: string; like: string }) =>
  db
    .selectFrom('journal_row as j')
    .innerJoin('agent as a', 'a.agent_id', 'j.agent_id')
    .select('j.seq')
    .where('a.store_id', '=', p.storeId)
    // Written out: with a parameter SQLite would not see that the index of these rows will do.
    .where(sql<boolean>`j.applied = 0`)
    .where('j.body', 'like', p.like)
    .limit(1),
)

/**
 * A receipt is known from now on. A restored cloud may have been told what was used of it before: that is applied at once, and
 * not with the next look, until which the same goods could be released again. `cti`: the receipt's identity, hex.
 */
export async function retryEvidenceOfReceipt(call: Call, storeId: string, cti: string): Promise<void> {
  const { authority, entityRegistered } = call.services
  if (authority.cloudGeneration === 1) return
  if ((await isReported(call.db, { storeId, like: `%${cti}%` })).length > 0) call.afterCommit(entityRegistered.notify)
}
