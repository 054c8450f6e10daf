import type { RightClass } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { unitsOfAuthorization } from '../leases/authorizations.ts'
import { denyRights, hasAgents, receiptOrdinals } from '../rights/deny-list.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'
import { sql } from 'kysely'
import { prepared } from '../../platform/persistence/prepared.ts'

const isReported = prepared((db, p: { storeId: string; cti: string }) =>
  db
    .selectFrom('journal_row as j')
    .innerJoin('agent as a', 'a.agent_id', 'j.agent_id')
    .select('j.seq')
    .where('a.store_id', '=', p.storeId)
    // SQL literal, because SQLite would not use the partial index with a parameter.
    .where(sql<boolean>`j.applied = 0`)
    .where('j.about', '=', p.cti)
    .limit(1),
)

/**
 * Retries unapplied rows if one of them names this receipt. Agents may have reported uses of the receipt before the
 * restored cloud knew it. The immediate retry prevents a second release. `cti`: id of the receipt, hex.
 */
export async function retryEvidenceOfReceipt(
  call: Call,
  { store_id: storeId, till }: Pick<Row<'purchase'>, 'store_id' | 'till'>,
  cti: string,
): Promise<void> {
  const { authority, entityRegistered } = call.services
  // A barrier may open by the code of a till before the till's agent reports the sale.
  if (authority.cloudGeneration === 1 && till === null) return
  if ((await isReported(call.db, { storeId, cti })).length > 0) call.afterCommit(entityRegistered.notify)
}

/** Informs the receipt home of receipt rights that the cloud leases to other agents and devices (ADR leases). */

const GUARD_SECONDS = 60

/** Receipt rights that an authorization covers. The agent marks these rights used when it claims the token. */
export async function receiptRights(db: Db, purchase: Row<'purchase'>, row: Row<'protection_authorization'>) {
  if (purchase.cti === null) return {}
  const units = (await unitsOfAuthorization(db, row.nonce)).map((u) => ({ lineId: u.line_id, unitNo: u.unit_no }))
  return {
    receiptRights: {
      cti: purchase.cti,
      rightClass: row.right_class as RightClass,
      ordinals: await receiptOrdinals(db, purchase.purchase_id, units),
    },
  }
}

/**
 * Puts leased rights on the deny list, so that the receipt home does not honour these rights during the lease. An agent
 * that requested the token itself knows the lease from the response. If this agent is the receipt home, no entry is
 * needed. If a program requested the token, the entry names the agent of the device as lease holder.
 */
export async function publishLease(
  call: Call,
  store: Row<'store'>,
  purchase: Row<'purchase'>,
  row: Row<'protection_authorization'>,
): Promise<void> {
  const { agent_id: agentId, nonce } = row
  const isOwnRequest = call.caller.kind === 'agent' && call.caller.agentId === agentId
  if ((isOwnRequest && agentId === policyOf(store).home) || !(await hasAgents(call.db, store.store_id))) return
  call.requireAlone()
  const units = (await unitsOfAuthorization(call.db, nonce)).map((u) => ({ lineId: u.line_id, unitNo: u.unit_no }))
  const lease = { nonce, ...(!isOwnRequest && agentId !== null && { agentId }) }
  await denyRights(call, purchase, row.right_class as RightClass, units, row.exp + GUARD_SECONDS, lease)
}
