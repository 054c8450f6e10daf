import type { DecisionFacts } from '../../../policy/decide.ts'
import type { ProtectionAction } from '../../../policy/vocabulary.ts'
import type { Call } from '../../operations/operation.ts'
import type { Db } from '../../persistence/database.ts'
import { fieldsOf, prepared } from '../../persistence/prepared.ts'
import type { OperatorApprovalRow, ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import type { RequestContext } from './request-context.ts'
import type { LeaseView } from '../leases/leases.ts'

/**
 * How often somebody of the staff answers for what nobody else may release (`operatorOverridesPerHour`, contracts §6). Counted where it is
 * granted: what agents decide alone stands in their ledgers and is counted there, what they ask for is counted here.
 */

const HOUR_MS = 3_600_000
/** Another process' clock may be ahead by so much; what lies later was counted by a clock that was wrong. */
const AHEAD_MS = 60_000

const insert = prepared((db, p: OperatorApprovalRow) =>
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

/** What somebody has approved within the hour. */
export interface Approvals {
  count: number
  /** When the first of them no longer counts, ms; undefined: there is none. */
  endsMs?: number
}

/**
 * What the operator of a request has approved lately; undefined where a grant would be no approval: without operator, of something past, and
 * by a token that is shown, for which it was counted when that was given. Opening a fixture is the daily work of staff, not an exception.
 */
export async function approvalsOf(
  { db, nowMs }: Call,
  { store, operatorId, isPast, wasApproved }: RequestContext,
  action: ProtectionAction,
): Promise<Approvals | undefined> {
  if (
    !store ||
    operatorId === null ||
    isPast ||
    wasApproved ||
    action === 'unlock_fixture' ||
    action === 'verify_item_status'
  )
    return undefined
  const [row] = await recentApprovals(db, {
    storeId: store.store_id,
    operatorId,
    fromMs: nowMs - HOUR_MS,
    toMs: nowMs + AHEAD_MS,
  })
  const first = row?.first_ms ?? null
  return { count: Number(row?.count ?? 0), ...(first !== null && { endsMs: Number(first) + HOUR_MS }) }
}

/** What a decision is told of it. What the device has already is given again without being counted. */
export function approvalFacts(
  approvals: Approvals | undefined,
  { own, overridden }: LeaseView,
): Pick<DecisionFacts, 'approvals' | 'goesPast'> {
  return { ...(approvals && !own && { approvals: approvals.count }), ...(overridden && { goesPast: true as const }) }
}

/** Counts a grant that rests on its operator's word. */
export async function recordApproval(
  { db, nowMs }: Call,
  { nonce, store_id, operator_id }: ProtectionAuthorizationRow,
): Promise<void> {
  if (operator_id !== null) await insert(db, { nonce, store_id, operator_id, at_ms: nowMs })
}

/** Forgets what no longer counts. */
export async function pruneApprovals(db: Db, nowMs: number): Promise<void> {
  await db
    .deleteFrom('operator_approval')
    .where('at_ms', '<=', nowMs - HOUR_MS)
    .execute()
}
