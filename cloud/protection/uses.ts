import type { Outcome } from '../../policy/vocabulary.ts'
import type { Db } from '../persistence/database.ts'
import { preparedForMany } from '../persistence/prepared-many.ts'
import type { RedemptionRow, UnitRightRow } from '../persistence/tables/protection.ts'
import { addRedemption, findRedemptions, redemptionsOfUnit, updateOutcome, type NewRedemption } from './redemptions.ts'
import { findRight, freeRight, noteOutcome, useRight, type UnitKey } from './rights.ts'

/**
 * Redemptions and rights of units as they stand in a transaction. For a batch they are read at once beforehand (`prepare`);
 * every change is written at once, and noted here. What was not prepared is read when it is asked for.
 */
export interface Uses {
  prepare(redemptionIds: Iterable<string>, lineIds: Iterable<string>): Promise<void>
  /** Somebody else is about to write rights or redemptions in this transaction: all is read again. */
  forget(): void
  /** The tenant's redemptions of this id, one for each step, as they are now. */
  ofId(redemptionId: string): Promise<RedemptionRow[]>
  ofUnit(key: UnitKey): Promise<readonly RedemptionRow[]>
  right(key: UnitKey): Promise<UnitRightRow | undefined>
  /** Adds a fact; false when it was known. */
  add(redemption: NewRedemption): Promise<boolean>
  setOutcome(row: RedemptionRow, outcome: Outcome): Promise<void>
  use(key: UnitKey, use: { nonce: string; deviceId: string; redemptionId: string }, failures: number): Promise<void>
  free(key: UnitKey, failures: number): Promise<void>
  noteOutcome(redemptionId: string, key: UnitKey, outcome: Outcome): Promise<void>
}

const withIds = preparedForMany((db, ids) => db.selectFrom('redemption').selectAll().where('redemption_id', 'in', ids))
const ofLines = preparedForMany((db, ids) => db.selectFrom('redemption').selectAll().where('line_id', 'in', ids))
const rightsOfLines = preparedForMany((db, ids) => db.selectFrom('unit_right').selectAll().where('line_id', 'in', ids))

/** Uses of this tenant's units in this transaction. */
export function usesIn(db: Db, tenant: string): Uses {
  const ids = new Set<string>()
  const lines = new Set<string>()
  /** By their keys: what is known of the ids and lines above. */
  const redemptions = new Map<string, RedemptionRow>()
  const byId = new Map<string, RedemptionRow[]>()
  const byUnit = new Map<string, RedemptionRow[]>()
  const rights = new Map<string, UnitRightRow>()

  function note(read: RedemptionRow): void {
    const name = `${read.nonce}/${read.step}/${read.redemption_id}`
    if (redemptions.has(name)) return
    redemptions.set(name, read)
    if (read.tenant === tenant) addTo(byId, read.redemption_id, read)
    if (read.line_id !== null) addTo(byUnit, unitName(read.line_id, read.unit_no, read.right_class), read)
  }

  function noteRight(key: UnitKey, right: Partial<UnitRightRow> & { state: string; failures: number }): void {
    if (!lines.has(key.lineId)) return
    const { lineId: line_id, unitNo: unit_no, rightClass: right_class, purchaseId: purchase_id } = key
    const nothing = { nonce: null, device_id: null, until_ms: null, redemption_id: null, outcome: null }
    rights.set(nameOf(key), { line_id, unit_no, right_class, purchase_id, ...nothing, ...right })
  }

  return {
    async prepare(redemptionIds, lineIds) {
      const askedIds = [...redemptionIds].filter((id) => !ids.has(id))
      const known = await withIds(db, askedIds)
      const askedLines = [...lineIds, ...known.flatMap((row) => row.line_id ?? [])].filter((id) => !lines.has(id))
      const [ofThese, rightRows] = [await ofLines(db, askedLines), await rightsOfLines(db, askedLines)]
      for (const id of askedIds) ids.add(id)
      for (const id of askedLines) lines.add(id)
      for (const row of [...known, ...ofThese]) note(row)
      for (const row of rightRows) rights.set(unitName(row.line_id, row.unit_no, row.right_class), row)
    },
    forget() {
      for (const known of [ids, lines, redemptions, byId, byUnit, rights]) known.clear()
    },
    async ofId(redemptionId) {
      if (!ids.has(redemptionId)) return findRedemptions(db, tenant, redemptionId)
      // Copies: whoever asked compares with what was.
      return (byId.get(redemptionId) ?? []).map((row) => ({ ...row })).toSorted((a, b) => compare(a.nonce, b.nonce) || a.step - b.step)
    },
    async ofUnit(key) {
      return lines.has(key.lineId) ? (byUnit.get(nameOf(key)) ?? []) : redemptionsOfUnit(db, key)
    },
    async right(key) {
      return lines.has(key.lineId) ? rights.get(nameOf(key)) : findRight(db, key)
    },
    async add(redemption) {
      if (!(await addRedemption(db, redemption))) return false
      if (ids.has(redemption.redemption_id) || lines.has(redemption.line_id ?? '')) note({ ...redemption, outcome: null, resolved_by: null, reported: null })
      return true
    },
    async setOutcome(row, outcome) {
      await updateOutcome(db, row, outcome)
      const known = redemptions.get(`${row.nonce}/${row.step}/${row.redemption_id}`)
      if (known) known.outcome = outcome
    },
    async use(key, { nonce, deviceId, redemptionId }, failures) {
      await useRight(db, key, { nonce, deviceId, redemptionId }, failures)
      noteRight(key, { state: 'used', nonce, device_id: deviceId, redemption_id: redemptionId, failures })
    },
    async free(key, failures) {
      await freeRight(db, key, failures)
      noteRight(key, { state: 'free', failures })
    },
    async noteOutcome(redemptionId, key, outcome) {
      await noteOutcome(db, redemptionId, key, outcome)
      const right = rights.get(nameOf(key))
      if (right?.redemption_id === redemptionId) right.outcome = outcome
    },
  }
}

function nameOf({ lineId, unitNo, rightClass }: UnitKey): string {
  return unitName(lineId, unitNo, rightClass)
}

function unitName(lineId: string, unitNo: number | null, rightClass: string | null): string {
  return `${lineId}/${unitNo}/${rightClass}`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

function addTo(lists: Map<string, RedemptionRow[]>, name: string, row: RedemptionRow): void {
  const list = lists.get(name)
  if (list) list.push(row)
  else lists.set(name, [row])
}
