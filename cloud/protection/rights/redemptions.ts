import { CLOUD_LEDGER } from '../../../policy/documents/authorization.ts'
import type { Outcome } from '../../../policy/vocabulary.ts'
import type { Db } from '../../platform/persistence/database.ts'
import {
  fieldsOf,
  prepared,
  preparedRows,
  preparedInsert,
  preparedForMany,
} from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { UnitKey } from './rights.ts'

/** Rows of redemptions. Each row names its unit, and rows are never deleted. */

export type NewRedemption = Omit<Row<'redemption'>, 'outcome' | 'resolved_by' | 'reported'>

const insert = prepared((db, p: NewRedemption) =>
  db
    .insertInto('redemption')
    .values(
      fieldsOf(p, [
        'nonce',
        'step',
        'redemption_id',
        'tenant',
        'source',
        'agent_id',
        'device_id',
        'at_ms',
        'event_id',
        'line_id',
        'unit_no',
        'right_class',
      ]),
    )
    .onConflict((c) => c.columns(['nonce', 'step', 'redemption_id']).doNothing())
    .returning('step'),
)
/** All redemptions of the units of these lines. */
export const redemptionsOfLines = preparedForMany((db, lineIds) =>
  db.selectFrom('redemption').selectAll().where('line_id', 'in', lineIds),
)

/** All redemptions of a unit's right. */
export const redemptionsOfUnit = prepared((db, p: UnitKey) =>
  db
    .selectFrom('redemption')
    .selectAll()
    .where('line_id', '=', p.lineId)
    .where('unit_no', '=', p.unitNo)
    .where('right_class', '=', p.rightClass),
)

/** Unused authorizations of a unit, except voided ones, which no agent will use. */
const unusedOf = prepared((db, p: { purchaseId: string; lineId: string; unitNo: number; rightClass: string }) =>
  db
    .selectFrom('protection_authorization as a')
    .innerJoin('authorization_unit as u', 'u.nonce', 'a.nonce')
    .select(['a.nonce', 'a.device_id', 'a.exp'])
    .where('a.purchase_id', '=', p.purchaseId)
    .where('a.right_class', '=', p.rightClass)
    .where('u.line_id', '=', p.lineId)
    .where('u.unit_no', '=', p.unitNo)
    .where('a.voided_ms', 'is', null)
    // Leaves out revoked authorizations of the cloud's ledger, because the cloud rejects them.
    .where((eb) => eb.or([eb('a.revoked_ms', 'is', null), eb('a.ledger', '!=', CLOUD_LEDGER)]))
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('redemption as r')
            .select('r.nonce')
            .whereRef('r.nonce', '=', 'a.nonce')
            .whereRef('r.step', '=', eb('u.ordinal', '+', 1)),
        ),
      ),
    )
    .orderBy('a.exp', 'desc')
    .limit(1),
)

/** Adds a redemption. Returns false if the redemption already exists. */
export async function addRedemption(db: Db, redemption: NewRedemption): Promise<boolean> {
  return (await insert(db, redemption)).length > 0
}

/** Adds redemptions that must not exist yet. */
export const addRedemptions = preparedInsert((db, rows: readonly Row<'redemption'>[]) =>
  db.insertInto('redemption').values(rows),
)

/** Redemptions with this id in this tenant, one per step. */
export const findRedemptions = preparedRows((db, tenant: string, redemptionId: string) =>
  db
    .selectFrom('redemption')
    .selectAll()
    .where('redemption_id', '=', redemptionId)
    .where('tenant', '=', tenant)
    .orderBy('nonce')
    .orderBy('step'),
)

const writeOutcome = prepared((db, p: { nonce: string; step: number; redemptionId: string; outcome: string }) =>
  db
    .updateTable('redemption')
    .set({ outcome: p.outcome })
    .where('nonce', '=', p.nonce)
    .where('step', '=', p.step)
    .where('redemption_id', '=', p.redemptionId),
)

/** Stores the outcome that an agent or device reported. */
export async function updateOutcome(
  db: Db,
  { nonce, step, redemption_id: redemptionId }: Row<'redemption'>,
  outcome: Outcome,
): Promise<void> {
  await writeOutcome(db, { nonce, step, redemptionId, outcome })
}

/**
 * Changes a redemption: its valid outcome (`outcome`), the operator who resolved it (`resolved_by`), or the outcome
 * that the device reported (`reported`).
 */
export async function updateRedemption(
  db: Db,
  { nonce, step, redemption_id }: Row<'redemption'>,
  change: Partial<Pick<Row<'redemption'>, 'outcome' | 'resolved_by' | 'reported'>>,
): Promise<void> {
  await db
    .updateTable('redemption')
    .set(change)
    .where('nonce', '=', nonce)
    .where('step', '=', step)
    .where('redemption_id', '=', redemption_id)
    .execute()
}

/** Of the unused authorizations of a unit, the one that expires last. */
export async function unusedLease(
  db: Db,
  { purchaseId, lineId, unitNo, rightClass }: UnitKey,
): Promise<{ nonce: string; device_id: string; exp: number } | undefined> {
  const [lease] = await unusedOf(db, { purchaseId, lineId, unitNo, rightClass })
  return lease
}
