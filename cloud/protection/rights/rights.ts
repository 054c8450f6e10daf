import { RIGHT_CLASSES, type RightClass } from '../../../policy/vocabulary.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { fieldsOf, insertChunks, prepared, preparedRows, preparedInsert } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** A right as decisions read it. `denied`, which they do not, says that the deny list names it (deny-used-rights.ts). */
export type UnitRight = Omit<Row<'unit_right'>, 'denied'>

/**
 * Key of a release right: one database row per line, unit and right class. An item that was paid at another till has a
 * standalone unit (../items/standalone-unit.ts), whose line id is the item id.
 */
export interface UnitKey {
  lineId: string
  unitNo: number
  rightClass: RightClass
  /** Empty for the standalone unit of an item that was paid at another till. */
  purchaseId: string
}

/** Key of a receipt's own right (`PASS`): a barrier opens once for each receipt. */
export function passOf(purchaseId: string): UnitKey & { rightClass: 'exit' } {
  return { lineId: purchaseId, unitNo: 0, rightClass: 'exit', purchaseId }
}

/** True if this is the receipt's own right, and not that of a unit. */
export function isPass({ line_id, purchase_id }: Pick<UnitRight, 'line_id' | 'purchase_id'>): boolean {
  return line_id === purchase_id
}

/** Number of failed attempts after which only staff may continue (ADR releases). */
const TRIES_BEFORE_STAFF = 2

/** Time for which a lease continues after its token expires, ms: the maximum clock error of a device. */
export const LEASE_GUARD_MS = 60_000

const ofWholePurchase = prepared((db, p: { purchaseId: string }) =>
  db.selectFrom('unit_right').selectAll().where('purchase_id', '=', p.purchaseId),
)
const upsert = prepared((db, p: Omit<UnitRight, 'returned_by' | 'was_given'>) => {
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

const WRITTEN = [
  'purchase_id',
  'state',
  'nonce',
  'device_id',
  'until_ms',
  'redemption_id',
  'outcome',
  'failures',
] as const satisfies readonly (keyof UnitRight)[]

/** Inserts rows of rights; of rights that exist, only these columns change. */
const upsertOf = (columns: readonly (keyof UnitRight)[]) =>
  preparedInsert((db, rows: readonly UnitRight[]) =>
    db
      .insertInto('unit_right')
      .values(rows)
      .onConflict((c) =>
        c
          .columns(['line_id', 'unit_no', 'right_class'])
          .doUpdateSet((eb) => Object.fromEntries(columns.map((name) => [name, eb.ref(`excluded.${name}`)]))),
      ),
  )

const upsertAll = upsertOf(WRITTEN)
const upsertReturned = upsertOf([...WRITTEN, 'returned_by'])

const rightsOfUnit = prepared((db, p: UnitKey) =>
  db
    .selectFrom('unit_right')
    .selectAll()
    .where('line_id', '=', p.lineId)
    .where('unit_no', '=', p.unitNo)
    .where('right_class', '=', p.rightClass),
)

/** Writes complete rows of rights. `rows` may contain each right at most once. */
export async function writeRights(db: Db, rows: readonly UnitRight[]): Promise<void> {
  await upsertAll(
    db,
    rows.map((row) => fieldsOf(row, COLUMNS)),
  )
}

/** Columns that a change of a right writes. A stored row has others, too. */
const COLUMNS = [
  ...(['line_id', 'unit_no', 'right_class', 'purchase_id', 'state', 'nonce', 'device_id', 'until_ms'] as const),
  ...(['redemption_id', 'outcome', 'failures', 'returned_by', 'was_given'] as const),
]

/** Right of a unit; undefined before its first lease or use. */
export async function findRight(db: Db, key: UnitKey): Promise<UnitRight | undefined> {
  return (await rightsOfUnit(db, key))[0]
}

/** Rights of one class of a purchase's units. */
export const rightsOfPurchase = preparedRows((db, purchaseId: string, rightClass: RightClass) =>
  db.selectFrom('unit_right').selectAll().where('purchase_id', '=', purchaseId).where('right_class', '=', rightClass),
)

/** Name of a right in a map. */
export function rightName({ lineId, unitNo, rightClass }: Omit<UnitKey, 'purchaseId'>): string {
  return `${lineId}/${unitNo}/${rightClass}`
}

/** Rights of all classes of a purchase's units, by `rightName`. */
export async function allRightsOf(db: Db, purchaseId: string): Promise<Map<string, UnitRight>> {
  const rows = await ofWholePurchase(db, { purchaseId })
  return new Map(
    rows.map((row) => [
      rightName({ lineId: row.line_id, unitNo: row.unit_no, rightClass: row.right_class as RightClass }),
      row,
    ]),
  )
}

/** Most rights that are looked up one by one. */
const LOOK_UPS = 100

/** Like `allRightsOf`, but certain only for these units: a purchase may have thousands of others. */
export async function rightsOfUnits(
  db: Db,
  purchaseId: string,
  units: readonly Pick<UnitKey, 'lineId' | 'unitNo'>[],
): Promise<Map<string, UnitRight>> {
  const keys = RIGHT_CLASSES.flatMap((rightClass) => units.map((unit) => ({ ...unit, rightClass, purchaseId })))
  if (keys.length > LOOK_UPS) return allRightsOf(db, purchaseId)
  const found = new Map<string, UnitRight>()
  for (const key of keys) {
    const row = await findRight(db, key)
    if (row) found.set(rightName(key), row)
  }
  return found
}

/** Reason why only staff may continue after an unknown outcome. */
export const UNKNOWN_OUTCOME_REASON = 'it is unknown whether the last try worked'

const NOTHING = { nonce: null, device_id: null, until_ms: null, redemption_id: null, outcome: null }

async function write(
  db: Db,
  key: UnitKey,
  row: Partial<UnitRight> & { state: string; failures: number },
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

/**
 * Marks the rights used, and that their goods were returned. A later outcome no longer changes the rights. `by`: id of
 * the return.
 */
export async function storeReturned(
  db: Db,
  rights: readonly { key: UnitKey; row: UnitRight | undefined }[],
  by: string,
  nowMs: number,
): Promise<void> {
  const rows = rights.map(({ key, row }) => ({
    ...rowOf(key, row, {
      ...(row && viewRight(row, nowMs).state === 'used'
        ? row
        : { state: 'used', nonce: by, device_id: '', redemption_id: by, failures: row?.failures ?? 0 }),
    }),
    returned_by: by,
  }))
  for (const chunk of insertChunks(rows)) await upsertReturned(db, chunk)
}

/** Undoes `storeReturned` for a unit that did not come back: what was not used before is free again. */
export async function undoReturned(db: Db, { lineId, unitNo }: Pick<UnitKey, 'lineId' | 'unitNo'>): Promise<void> {
  const ofUnit = db
    .updateTable('unit_right')
    .where('line_id', '=', lineId)
    .where('unit_no', '=', unitNo)
    .where('returned_by', 'is not', null)
  await ofUnit
    .set({ state: 'free', nonce: null, device_id: null, redemption_id: null })
    .whereRef('redemption_id', '=', 'returned_by')
    .execute()
  await ofUnit.set({ returned_by: null }).execute()
}

/** Marks rights used that are not, because their goods count as gone: no device reports an outcome. `by`: what says so. */
export async function storeGone(db: Db, keys: readonly UnitKey[], by: string): Promise<void> {
  const used = { state: 'used', nonce: by, device_id: '', redemption_id: by, failures: 0 }
  for (const chunk of insertChunks(keys.map((key) => rowOf(key, undefined, used)))) await writeRights(db, chunk)
}

/** A complete row: `change` on top of the key. */
function rowOf(
  { lineId, unitNo, rightClass, purchaseId }: UnitKey,
  known: UnitRight | undefined,
  change: Partial<UnitRight> & { state: string; failures: number },
): UnitRight {
  const { state, nonce = null, device_id = null, until_ms = null, redemption_id = null, outcome = null } = change
  return {
    line_id: lineId,
    unit_no: unitNo,
    right_class: rightClass,
    purchase_id: purchaseId,
    state,
    nonce,
    device_id,
    until_ms,
    redemption_id,
    outcome,
    failures: change.failures,
    returned_by: known?.returned_by ?? null,
    was_given: known?.was_given ?? 0,
  }
}

export interface Lease {
  nonce: string
  deviceId: string
  untilMs: number
}

/** Earlier release attempts of a unit. */
export interface Tries {
  failures: number
  /** True if the outcome of the last attempt is unknown. A later lease without a claim does not change this value. */
  isUnknown: boolean
}

/** Leases the rights to an authorization until `lease.untilMs`. */
export async function leaseRights(
  db: Db,
  units: readonly { key: UnitKey; tries: Tries }[],
  lease: Lease,
): Promise<void> {
  const rows = units.map(({ key, tries }) => rowOf(key, undefined, leasedRow(lease, tries)))
  for (const chunk of insertChunks(rows)) await writeRights(db, chunk)
}

/** Leases the right to an authorization until `lease.untilMs`. */
export function leaseRight(db: Db, key: UnitKey, lease: Lease, tries: Tries): Promise<void> {
  return write(db, key, leasedRow(lease, tries))
}

/** Columns of a leased right. */
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

/** Marks the right used. */
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

/** Frees the right. */
export function freeRight(db: Db, key: UnitKey, failures: number): Promise<void> {
  return write(db, key, { state: 'free', failures })
}

/** Stores the outcome of a use, if this redemption is still the one that uses the right. */
export async function storeOutcome(
  db: Db,
  redemptionId: string,
  { lineId, unitNo, rightClass }: UnitKey,
  outcome: string,
): Promise<void> {
  await writeOutcome(db, { redemptionId, lineId, unitNo, rightClass, outcome })
}

/** State of a right. `staffReason` is set if only staff may continue. */
export type RightView =
  | { state: 'free'; staffReason?: string }
  | { state: 'used' }
  | { state: 'leased'; nonce: string; deviceId: string; staffReason?: string }

/**
 *   free ──lease──▶ leased ──claim──▶ used ──outcome failed──▶ free (one more failure)
 *   used ──outcome unknown──▶ free for staff only
 *   free, leased, used ──goods returned──▶ used permanently
 *
 * Current state of a right. A right is free again after its lease has expired, and after a failed or unknown use.
 *
 * The cloud prevents a second release of a unit in three ways:
 *   - The cloud issues no token while the right is used, or while a lease of another device may still be honoured
 *     (../leases/leases.ts, `viewLease`). One transaction checks the right and writes its row with the lease
 *     (cloud/platform/operations/perform.ts). On PostgreSQL this transaction is serializable. Only plain releases of
 *     one unit by `verifyProtectedItem` run at repeatable read, together with others: two of them for one unit write
 *     the same row, so one of them is repeated (ADR database).
 *   - A device without an agent redeems each step of its token once (../redeem/redeem-operations.ts, `claimStep`).
 *   - Agents redeem in their own ledgers (edge-agent/ledger/claims/claims.ts). A reported claim marks the right used
 *     and ends other leases. A second claim raises an exception (../evidence/apply-claim.ts,
 *     ../evidence/apply-outcome.ts).
 */
export function viewRight(row: UnitRight | undefined, nowMs: number): RightView {
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

/** Number of failed attempts, and whether the last outcome is unknown. */
export function triesOf(row: UnitRight | undefined): Tries {
  return { failures: row?.failures ?? 0, isUnknown: row?.outcome === 'unknown' }
}
