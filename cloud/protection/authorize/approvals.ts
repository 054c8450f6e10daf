import { sql } from 'kysely'
import type { DecisionFacts } from '../../../policy/decide.ts'
import { foldText } from '../../../policy/fold-text.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { fieldsOf, prepared, preparedRow } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import type { TargetUnit } from './authorization-target.ts'
import { deleteSome } from '../../platform/persistence/delete-some.ts'

/**
 * Counts the grants that need an operator, per operator and hour (`operatorOverridesPerHour`, ADR releases). The cloud
 * counts its own grants. Agents count their own grants in their ledgers.
 */

const HOUR_MS = 3_600_000
/**
 * Tolerance for the clock of another process, ms. Rows with a later time are ignored, because a process with a wrong
 * clock wrote them.
 */
const AHEAD_MS = 60_000

const insert = prepared((db, p: Row<'operator_approval'>) =>
  db.insertInto('operator_approval').values(fieldsOf(p, ['nonce', 'store_id', 'operator_id', 'at_ms'])),
)
const recentApprovals = prepared((db, p: { storeId: string; operatorId: string; fromMs: number; toMs: number }) =>
  db
    .selectFrom('operator_approval')
    .select((eb) => [eb.fn.countAll<number>().as('count'), eb.fn.min<number | null>('at_ms').as('first_ms')])
    .where('store_id', '=', p.storeId)
    .where('operator_id', '=', p.operatorId)
    .where('at_ms', '>', p.fromMs)
    .where('at_ms', '<=', p.toMs),
)

const approvalOf = preparedRow((db, nonce: string) =>
  db.selectFrom('operator_approval').select('operator_id').where('nonce', '=', nonce),
)

/** Approvals of one operator within the last hour. */
export interface Approvals {
  count: number
  /** Time at which the oldest approval is one hour old, ms. Absent if there are no approvals. */
  endsMs?: number
}

/**
 * Reads the recent approvals of the request's operator. Returns undefined if the limit does not apply: without an
 * operator, for a past request, for a status check, or if this operator's approval of the exchanged token was counted.
 */
export async function approvalsOf(
  { db, nowMs }: Call,
  { context: { store, operatorId: operator, isPast }, action, exchanged }: AuthorizationRequest,
): Promise<Approvals | undefined> {
  if (!store || operator === null || isPast || action === 'verify_item_status') return undefined
  const operatorId = foldText(operator)
  if (exchanged && (await approvalOf(db, exchanged.nonce))?.operator_id === operatorId) return undefined
  const [row] = await recentApprovals(db, {
    storeId: store.store_id,
    operatorId,
    fromMs: nowMs - HOUR_MS,
    toMs: nowMs + AHEAD_MS,
  })
  const first = row?.first_ms ?? null
  return { count: Number(row?.count ?? 0), ...(first !== null && { endsMs: Number(first) + HOUR_MS }) }
}

/**
 * Facts about approvals for the decision. If the device already holds the lease, leaves out the count, because the
 * approval of the lease is already counted. Staff open fixtures as routine work, so only a second opening is limited.
 */
export function approvalFacts(
  approvals: Approvals | undefined,
  { facts: { action }, lease: { own, overridden, right } }: Pick<TargetUnit, 'facts' | 'lease'>,
): Pick<DecisionFacts, 'approvals' | 'overridesLease'> {
  const isRoutine = action === 'unlock_fixture' && right !== 'used' && !overridden
  return {
    ...(approvals && !own && !isRoutine && { approvals: approvals.count }),
    ...(overridden && { overridesLease: true as const }),
  }
}

/** Counts an authorization that only the operator's approval made possible. */
export async function recordApproval(
  { db, nowMs }: Call,
  { nonce, store_id, operator_id }: Row<'protection_authorization'>,
): Promise<void> {
  if (operator_id !== null) await insert(db, { nonce, store_id, operator_id: foldText(operator_id), at_ms: nowMs })
}

/** Deletes approvals that are older than an hour. */
export function pruneApprovals(db: Db, nowMs: number): Promise<number> {
  return deleteSome(db, 'operator_approval', ['nonce'], sql`at_ms <= ${nowMs - HOUR_MS}`)
}
