import type { RightClass } from '../../../policy/vocabulary.ts'
import type { Db } from '../../persistence/database.ts'
import { fieldsOf, prepared } from '../../persistence/prepared.ts'
import { preparedInsert } from '../../persistence/prepared-insert.ts'
import type { UnitRightRow } from '../../persistence/tables/protection.ts'

/**
 * What authorizations use up: one row for each (line, unit, class). An item that is paid without a purchase of ours stands for its
 * own unit (../items/standalone-unit.ts): line = item.
 *
 *   free ──lease──▶ leased ──claim──▶ used ──outcome failed──▶ free (a failure more)
 *   used ──outcome unknown──▶ free for staff
 *   free, leased, used ──the goods came back──▶ used for good
 *
 * What stops a second release of a unit in the cloud:
 *   - A device gets no token while the right is used, or leased to another device that may still use it (../leases/leases.ts,
 *     `viewLease`). The look and the new lease are one serializable transaction, that of the operation (operations/perform.ts).
 *   - A device without agent redeems each step of its token once (../redeem/redeem.ts, `claimStep`).
 *   - Agents redeem in their own ledgers (edge-agent/ledger/claims/claims.ts). What they report has happened: it uses the right up,
 *     ends other leases, and a double becomes an exception (../evidence/apply-claim.ts, ../evidence/settle-unit.ts).
 */
export interface UnitKey {
  lineId: string
  unitNo: number
  rightClass: RightClass
  /** Empty when the item is paid without a purchase of ours. */
  purchaseId: string
}

/** After this many failed tries the next one is for staff (decisions §9). */
export const TRIES_BEFORE_STAFF = 2

/** How long a lease outlives its token: the most that a device's clock may be wrong, ms. */
export const LEASE_GUARD_MS = 60_000

const one = prepared((db, p: { lineId: string; unitNo: number; rightClass: string }) =>
  db
    .selectFrom('unit_right')
    .selectAll()
    .where('line_id', '=', p.lineId)
    .where('unit_no', '=', p.unitNo)
    .where('right_class', '=', p.rightClass),
)
const ofPurchase = prepared((db, p: { purchaseId: string; rightClass: string }) =>
  db
    .selectFrom('unit_right')
    .selectAll()
    .where('purchase_id', '=', p.purchaseId)
    .where('right_class', '=', p.rightClass),
)
const upsert = prepared((db, p: Omit<UnitRightRow, 'returned_by' | 'was_given'>) => {
  const changed = fieldsOf(p, [
    'purchase_id',
    'state',
    'nonce',
    'device_id',
    'until_ms',
    'redemption_id',
    'outcome',
    'failures',
  ])
  return db
    .insertInto('unit_right')
    .values({ ...changed, ...fieldsOf(p, ['line_id', 'unit_no', 'right_class']), was_given: 0 })
    .onConflict((c) => c.columns(['line_id', 'unit_no', 'right_class']).doUpdateSet(changed))
})

const writeReturned = prepared((db, p: { lineId: string; unitNo: number; rightClass: string; by: string }) =>
  db
    .updateTable('unit_right')
    .set({ returned_by: p.by })
    .where('line_id', '=', p.lineId)
    .where('unit_no', '=', p.unitNo)
    .where('right_class', '=', p.rightClass),
)

const writeOutcome = prepared(
  (db, p: { redemptionId: string; lineId: string; unitNo: number; rightClass: string; outcome: string }) =>
    db
      .updateTable('unit_right')
      .set({ outcome: p.outcome })
      .where('line_id', '=', p.lineId)
      .where('unit_no', '=', p.unitNo)
      .where('right_class', '=', p.rightClass)
      .where('redemption_id', '=', p.redemptionId),
)

const upsertAll = preparedInsert((db, rows: readonly UnitRightRow[]) =>
  db
    .insertInto('unit_right')
    .values(rows)
    .onConflict((c) =>
      c.columns(['line_id', 'unit_no', 'right_class']).doUpdateSet((eb) => {
        const told = <K extends keyof UnitRightRow>(name: K) => eb.ref(`excluded.${name}`)
        return {
          purchase_id: told('purchase_id'),
          state: told('state'),
          nonce: told('nonce'),
          device_id: told('device_id'),
          until_ms: told('until_ms'),
          redemption_id: told('redemption_id'),
          outcome: told('outcome'),
          failures: told('failures'),
        }
      }),
    ),
)

/** Writes whole rights, each once. */
export function writeRights(db: Db, rows: readonly UnitRightRow[]): Promise<void> {
  return upsertAll(db, rows)
}

/** The right of one unit, if it was ever leased or used. */
export async function findRight(db: Db, { lineId, unitNo, rightClass }: UnitKey): Promise<UnitRightRow | undefined> {
  const [row] = await one(db, { lineId, unitNo, rightClass })
  return row
}

/** Rights of all units of a purchase. */
export function rightsOfPurchase(db: Db, purchaseId: string, rightClass: RightClass): Promise<UnitRightRow[]> {
  return ofPurchase(db, { purchaseId, rightClass })
}

/** Why only staff go on with what may have been released. */
export const UNKNOWN_OUTCOME_REASON = 'nobody knows whether the last try worked'

const NOTHING = { nonce: null, device_id: null, until_ms: null, redemption_id: null, outcome: null }

async function write(
  db: Db,
  key: UnitKey,
  row: Partial<UnitRightRow> & { state: string; failures: number },
): Promise<void> {
  await upsert(db, {
    line_id: key.lineId,
    unit_no: key.unitNo,
    right_class: key.rightClass,
    purchase_id: key.purchaseId,
    ...NOTHING,
    ...row,
  })
}

/** The goods of a right that is used came back: whatever becomes of a use that was under way, it stays so. */
export async function storeReturned(db: Db, { lineId, unitNo, rightClass }: UnitKey, by: string): Promise<void> {
  await writeReturned(db, { lineId, unitNo, rightClass, by })
}

export interface Lease {
  nonce: string
  deviceId: string
  untilMs: number
}

/** What is known of a unit's former tries while its right is lent or free. */
export interface Tries {
  failures: number
  /** Nobody knows whether the last one worked: that is so as well once the lease has ended unused. */
  isUnknown: boolean
}

/** Lends the right to an authorization until it expires. */
export function leaseRight(db: Db, key: UnitKey, lease: Lease, tries: Tries): Promise<void> {
  return write(db, key, leasedRow(lease, tries))
}

/** The columns of a right that is lent. */
export function leasedRow({ nonce, deviceId, untilMs }: Lease, { failures, isUnknown }: Tries) {
  return {
    state: 'leased',
    nonce,
    device_id: deviceId,
    until_ms: untilMs,
    failures,
    outcome: isUnknown ? 'unknown' : null,
  }
}

/** The right is used up. */
export function useRight(
  db: Db,
  key: UnitKey,
  use: { nonce: string; deviceId: string; redemptionId: string },
  failures: number,
): Promise<void> {
  return write(db, key, {
    state: 'used',
    nonce: use.nonce,
    device_id: use.deviceId,
    redemption_id: use.redemptionId,
    failures,
  })
}

/** The right is free again. */
export function freeRight(db: Db, key: UnitKey, failures: number): Promise<void> {
  return write(db, key, { state: 'free', failures })
}

/** Notes what became of the use of a right; nothing when the right was meanwhile used by something else. */
export async function storeOutcome(
  db: Db,
  redemptionId: string,
  { lineId, unitNo, rightClass }: UnitKey,
  outcome: string,
): Promise<void> {
  await writeOutcome(db, { redemptionId, lineId, unitNo, rightClass, outcome })
}

/** `staffReason`: why only staff may go on, when the right is not used. */
export type RightView =
  | { state: 'free'; staffReason?: string }
  | { state: 'used' }
  | { state: 'leased'; nonce: string; deviceId: string; staffReason?: string }

/** What a row means now: a lease ends by itself, and what failed or is unknown may be tried again, at last by staff only. */
export function viewRight(row: UnitRightRow | undefined, nowMs: number): RightView {
  if (!row) return { state: 'free' }
  const { failures, isUnknown } = triesOf(row)
  if (row.state === 'used' && !isUnknown) return { state: 'used' }
  const staffReason = isUnknown
    ? UNKNOWN_OUTCOME_REASON
    : failures >= TRIES_BEFORE_STAFF
      ? `${failures} tries have failed`
      : undefined
  const forStaff = staffReason !== undefined && { staffReason }
  if (row.state === 'leased' && (row.until_ms ?? 0) > nowMs)
    return { state: 'leased', nonce: row.nonce ?? '', deviceId: row.device_id ?? '', ...forStaff }
  return { state: 'free', ...forStaff }
}

/** What a row tells of the tries before. */
export function triesOf(row: UnitRightRow | undefined): Tries {
  return { failures: row?.failures ?? 0, isUnknown: row?.outcome === 'unknown' }
}
