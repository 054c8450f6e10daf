import { sql } from 'kysely'
import { type Db, groupBy } from '../../platform/persistence/database.ts'
import { prepared, preparedRows, preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { UNKNOWN_OUTCOME_REASON, viewRight, type RightView, type UnitKey, type UnitRight } from './rights.ts'
import { deleteSome } from '../../platform/persistence/delete-some.ts'

/**
 * A right that the receipt home delegated to another agent of the store (ADR leases). That agent may be offline for long.
 * The cloud grants the right to no other agent until it receives the redemption or an outcome report.
 */
interface DelegatedRight extends UnitKey {
  redemptionId: string
  storeId: string
  /** Agent that received the right. */
  agentId: string
  /** Expiry of the receipt plus clock guard, s since 1970. */
  untilS: number
  homeAgentId: string
  homeEpoch: number
}

type DelegatedRightKey = 'line_id' | 'unit_no' | 'right_class' | 'redemption_id'

/** Retention of unresolved delegated rights after the expiry of the receipt, s. Agents reconnect much sooner. */
const KEEP_AFTER_END = 90 * 86_400

const insert = prepared((db, p: DelegatedRight) =>
  db
    .insertInto('delegated_right')
    .values({
      line_id: p.lineId,
      unit_no: p.unitNo,
      right_class: p.rightClass,
      redemption_id: p.redemptionId,
      purchase_id: p.purchaseId,
      store_id: p.storeId,
      agent_id: p.agentId,
      state: 'delegated',
      until_s: p.untilS,
      home_agent_id: p.homeAgentId,
      home_epoch: p.homeEpoch,
    })
    .onConflict((c) => c.doNothing()),
)
const markDelegated = prepared((db, p: UnitKey) =>
  db
    .insertInto('unit_right')
    .values({
      line_id: p.lineId,
      unit_no: p.unitNo,
      right_class: p.rightClass,
      purchase_id: p.purchaseId,
      state: 'free',
      failures: 0,
      was_given: 1,
    })
    .onConflict((c) => c.columns(['line_id', 'unit_no', 'right_class']).doUpdateSet({ was_given: 1 })),
)
const setState = prepared((db, p: Pick<Row<'delegated_right'>, DelegatedRightKey> & { state: string }) =>
  db
    .updateTable('delegated_right')
    .set({ state: p.state })
    .where('line_id', '=', p.line_id)
    .where('unit_no', '=', p.unit_no)
    .where('right_class', '=', p.right_class)
    .where('redemption_id', '=', p.redemption_id)
    .where('state', '<>', 'failed')
    .returning(['purchase_id', 'line_id']),
)
/** Delegated rights without a redemption and without the outcome `failed`. */
const unresolved = preparedForMany((db, lineIds, p: { rightClass: string }) =>
  db
    .selectFrom('delegated_right')
    .leftJoin('agent', 'agent.agent_id', 'delegated_right.agent_id')
    .leftJoin('redemption', (join) =>
      join
        .onRef('redemption.redemption_id', '=', 'delegated_right.redemption_id')
        .onRef('redemption.line_id', '=', 'delegated_right.line_id')
        .onRef('redemption.unit_no', '=', 'delegated_right.unit_no'),
    )
    .select(['delegated_right.line_id', 'delegated_right.unit_no', 'delegated_right.agent_id'])
    .select(['delegated_right.state', 'delegated_right.until_s', 'agent.revoked_ms'])
    .where('delegated_right.line_id', 'in', lineIds)
    .where('delegated_right.right_class', '=', p.rightClass)
    .where('delegated_right.state', '<>', 'failed')
    .where('redemption.redemption_id', 'is', null),
)

/** Stores a delegation. If the cloud has stored the same delegation before, nothing changes. */
export async function storeDelegated(db: Db, delegated: DelegatedRight): Promise<void> {
  await insert(db, delegated)
  await markDelegated(db, delegated)
}

/** Rights that receipt homes of this store delegated under this redemption id. */
export const findDelegated = preparedRows((db, redemptionId: string, storeId: string) =>
  db
    .selectFrom('delegated_right')
    .selectAll()
    .where('redemption_id', '=', redemptionId)
    .where('store_id', '=', storeId),
)

/** Stores the reported outcome. `failed` is final. */
export async function storeDelegationReturned(
  db: Db,
  rights: readonly Row<'delegated_right'>[],
  state: 'failed' | 'unknown',
): Promise<void> {
  for (const right of rights) await setState(db, { ...right, state })
}

/** A right with its stored row. */
export interface StoredRight {
  key: UnitKey
  row: UnitRight | undefined
}

/**
 * States of rights of one class for a request of agent `agentId`. A right that was delegated to another agent is `used` until that
 * agent reports. If that agent was revoked, or the receipt expired, the outcome is unknown and only staff may continue.
 */
export async function viewGrantableRights(
  db: Db,
  rights: readonly StoredRight[],
  nowMs: number,
  agentId: string | null,
): Promise<RightView[]> {
  const given = rights.filter(({ row }) => row?.was_given && viewRight(row, nowMs).state !== 'used')
  const [first] = given
  const lineIds = given.map(({ key }) => key.lineId)
  const delegated = first ? await unresolved(db, lineIds, { rightClass: first.key.rightClass }) : []
  const toOthers = groupBy(
    delegated.filter((each) => each.agent_id !== agentId),
    ({ line_id, unit_no }) => `${line_id}/${unit_no}`,
  )
  return rights.map(({ key, row }) => {
    const right = viewRight(row, nowMs)
    if (!row?.was_given || right.state === 'used') return right
    const others = toOthers.get(`${key.lineId}/${key.unitNo}`) ?? []
    const isOut = others.some(
      ({ state, revoked_ms, until_s }) => state === 'delegated' && revoked_ms === null && until_s * 1_000 > nowMs,
    )
    if (isOut) return { state: 'used' }
    return others.length === 0 ? right : { ...right, staffReason: right.staffReason ?? UNKNOWN_OUTCOME_REASON }
  })
}

/**
 * Deletes delegated rights with a known outcome when their receipt has expired. Deletes all other delegated rights
 * `KEEP_AFTER_END` later.
 */
export function pruneDelegated(db: Db, nowMs: number): Promise<number> {
  const nowS = Math.floor(nowMs / 1_000)
  return deleteSome(
    db,
    'delegated_right',
    ['line_id', 'unit_no', 'right_class', 'redemption_id'],
    sql`until_s <= ${nowS} AND (state = 'failed' OR until_s <= ${nowS - KEEP_AFTER_END} OR EXISTS (
      SELECT 1 FROM redemption r WHERE r.redemption_id = delegated_right.redemption_id
        AND r.line_id = delegated_right.line_id AND r.unit_no = delegated_right.unit_no))`,
  )
}
