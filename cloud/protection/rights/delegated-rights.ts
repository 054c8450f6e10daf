import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { GivenRightRow, UnitRightRow } from '../../persistence/tables/protection.ts'
import { UNKNOWN_OUTCOME_REASON, viewRight, type RightView, type UnitKey } from './rights.ts'

/**
 *   home gives ─ told ─▶ nobody else is granted it ─ the other's own word of it comes, or the home's that nothing came of it ─▶ over
 *
 * Rights of receipts that their home has given to another agent of the store, which may be cut off from the cloud for long.
 */
export interface DelegatedRight extends UnitKey {
  redemptionId: string
  storeId: string
  /** To whom. */
  agentId: string
  /** When the receipt has ended for every clock, s since 1970. */
  untilS: number
  homeAgentId: string
  homeEpoch: number
}

type GivenRightKey = 'line_id' | 'unit_no' | 'right_class' | 'redemption_id'

/** Of what nobody has ever told anything, s after the receipt's end: much longer than an agent is away. */
const KEEP_AFTER_END = 90 * 86_400

const insert = prepared((db, p: DelegatedRight) =>
  db
    .insertInto('given_right')
    .values({
      line_id: p.lineId,
      unit_no: p.unitNo,
      right_class: p.rightClass,
      redemption_id: p.redemptionId,
      purchase_id: p.purchaseId,
      store_id: p.storeId,
      agent_id: p.agentId,
      state: 'given',
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
const setState = prepared((db, p: Pick<GivenRightRow, GivenRightKey> & { state: string }) =>
  db
    .updateTable('given_right')
    .set({ state: p.state })
    .where('line_id', '=', p.line_id)
    .where('unit_no', '=', p.unit_no)
    .where('right_class', '=', p.right_class)
    .where('redemption_id', '=', p.redemption_id)
    .where('state', '<>', 'failed')
    .returning(['purchase_id', 'line_id']),
)
const byRedemption = prepared((db, p: { redemptionId: string; storeId: string }) =>
  db
    .selectFrom('given_right')
    .selectAll()
    .where('redemption_id', '=', p.redemptionId)
    .where('store_id', '=', p.storeId),
)
/** Those of which whoever has them has not told anything. */
const unresolved = prepared((db, p: { lineId: string; unitNo: number; rightClass: string }) =>
  db
    .selectFrom('given_right')
    .leftJoin('agent', 'agent.agent_id', 'given_right.agent_id')
    .leftJoin('redemption', (join) =>
      join
        .onRef('redemption.redemption_id', '=', 'given_right.redemption_id')
        .onRef('redemption.line_id', '=', 'given_right.line_id')
        .onRef('redemption.unit_no', '=', 'given_right.unit_no'),
    )
    .select(['given_right.agent_id', 'given_right.state', 'given_right.until_s', 'agent.revoked_ms'])
    .where('given_right.line_id', '=', p.lineId)
    .where('given_right.unit_no', '=', p.unitNo)
    .where('given_right.right_class', '=', p.rightClass)
    .where('given_right.state', '<>', 'failed')
    .where('redemption.redemption_id', 'is', null),
)

/** Keeps that a home has given this right away; nothing when that is known. */
export async function storeDelegated(db: Db, given: DelegatedRight): Promise<void> {
  await insert(db, given)
  await markDelegated(db, given)
}

/** The rights that homes of this store gave under this redemption id. */
export async function findDelegated(db: Db, redemptionId: string, storeId: string): Promise<GivenRightRow[]> {
  return byRedemption(db, { redemptionId, storeId })
}

/** Stores the outcome that was reported for these rights. Nothing follows after `failed`. */
export async function storeDelegationReturned(
  db: Db,
  rights: readonly GivenRightRow[],
  state: 'failed' | 'unknown',
): Promise<void> {
  for (const right of rights) await setState(db, { ...right, state })
}

/**
 * What a right means now to whoever asks for the agent `agentId`: what its home has given to another agent counts as used, until that agent
 * has told itself what became of it. Nobody knows of one that was revoked, and tells nothing any more, nor once the receipt is over, when
 * agents and homes forget what was asked and never used.
 */
export async function viewGrantableRight(
  db: Db,
  key: UnitKey,
  row: UnitRightRow | undefined,
  nowMs: number,
  agentId: string | null,
): Promise<RightView> {
  const right = viewRight(row, nowMs)
  if (!row?.was_given || right.state === 'used') return right
  const others = (await unresolved(db, key)).filter((given) => given.agent_id !== agentId)
  if (others.some((given) => given.state === 'given' && given.revoked_ms === null && given.until_s * 1_000 > nowMs))
    return { state: 'used' }
  return others.length === 0 ? right : { ...right, staffReason: right.staffReason ?? UNKNOWN_OUTCOME_REASON }
}

/** Forgets what was given of receipts that are over, once it is known what became of it, or nobody will ever tell. */
export async function pruneDelegated(db: Db, nowMs: number): Promise<void> {
  const nowS = Math.floor(nowMs / 1_000)
  await db
    .deleteFrom('given_right')
    .where('until_s', '<=', nowS)
    .where(({ or, eb, exists, selectFrom }) =>
      or([
        eb('state', '=', 'failed'),
        eb('until_s', '<=', nowS - KEEP_AFTER_END),
        exists(
          selectFrom('redemption')
            .select('redemption.redemption_id')
            .whereRef('redemption.redemption_id', '=', 'given_right.redemption_id')
            .whereRef('redemption.line_id', '=', 'given_right.line_id')
            .whereRef('redemption.unit_no', '=', 'given_right.unit_no'),
        ),
      ]),
    )
    .execute()
}
