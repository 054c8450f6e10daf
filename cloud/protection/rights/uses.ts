import type { Outcome } from '../../../policy/vocabulary.ts'
import type { Db } from '../../persistence/database.ts'
import { inChunks } from '../../persistence/in-chunks.ts'
import { preparedForMany } from '../../persistence/prepared-many.ts'
import type { RedemptionRow, UnitRightRow } from '../../persistence/tables/protection.ts'
import {
  addRedemption,
  addRedemptions,
  findRedemptions,
  redemptionsOfUnit,
  unusedLease,
  updateOutcome,
  type NewRedemption,
} from './redemptions.ts'
import {
  findRight,
  freeRight,
  leasedRow,
  leaseRight,
  noteOutcome,
  useRight,
  writeRights,
  type Lease,
  type Tries,
  type UnitKey,
} from './rights.ts'

/**
 *   prepare ─ ofId · ofUnit · right · add · setOutcome · use · free … ─ flush
 *
 * Redemptions and rights of units as they stand in a transaction. For a batch they are read together beforehand, and written
 * together at the end. What was not prepared is read when it is asked for, and written at once.
 */
export interface Uses {
  prepare(redemptionIds: Iterable<string>, lineIds: Iterable<string>): Promise<void>
  /** Writes what has changed: before anybody else reads or writes rights or redemptions in this transaction. */
  flush(): Promise<void>
  /** Somebody else has written some: all is read again. */
  forget(): void
  /** The tenant's redemptions of this id, one for each step, as they are now. */
  ofId(redemptionId: string): Promise<RedemptionRow[]>
  ofUnit(key: UnitKey): Promise<readonly RedemptionRow[]>
  right(key: UnitKey): Promise<UnitRightRow | undefined>
  /** Adds a fact; false when it was known. */
  add(redemption: NewRedemption): Promise<boolean>
  setOutcome(row: RedemptionRow, outcome: Outcome): Promise<void>
  use(key: UnitKey, use: { nonce: string; deviceId: string; redemptionId: string }, failures: number): Promise<void>
  lease(key: UnitKey, lease: Lease, tries: Tries): Promise<void>
  free(key: UnitKey, failures: number): Promise<void>
  /** Of the authorizations that cover the unit and whose step nobody has used, the one that ends last. */
  unusedLease(key: UnitKey): Promise<{ nonce: string; device_id: string; exp: number } | undefined>
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
  /** Names of what is not written yet. */
  const [added, changed] = [new Set<string>(), new Set<string>()]

  function note(read: RedemptionRow): void {
    const name = redemptionName(read)
    if (redemptions.has(name)) return
    redemptions.set(name, read)
    if (read.tenant === tenant) addTo(byId, read.redemption_id, read)
    if (read.line_id !== null) addTo(byUnit, unitName(read.line_id, read.unit_no, read.right_class), read)
  }

  /** False when the right was not prepared. */
  function noteRight(key: UnitKey, right: Partial<UnitRightRow> & { state: string; failures: number }): boolean {
    if (!lines.has(key.lineId)) return false
    const { lineId: line_id, unitNo: unit_no, rightClass: right_class, purchaseId: purchase_id } = key
    const known = rights.get(nameOf(key))
    const nothing = { nonce: null, device_id: null, until_ms: null, redemption_id: null, outcome: null }
    rights.set(nameOf(key), {
      line_id,
      unit_no,
      right_class,
      purchase_id,
      returned_by: known?.returned_by ?? null,
      was_given: known?.was_given ?? 0,
      ...nothing,
      ...right,
    })
    changed.add(nameOf(key))
    return true
  }

  async function flush(): Promise<void> {
    for (const chunk of inChunks([...added].flatMap((name) => redemptions.get(name) ?? [])))
      await addRedemptions(db, chunk)
    for (const chunk of inChunks([...changed].flatMap((name) => rights.get(name) ?? []))) await writeRights(db, chunk)
    added.clear()
    changed.clear()
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
    flush,
    forget() {
      for (const known of [ids, lines, redemptions, byId, byUnit, rights, added, changed]) known.clear()
    },
    async ofId(redemptionId) {
      if (!ids.has(redemptionId)) return findRedemptions(db, tenant, redemptionId)
      // Copies: whoever asked compares with what was.
      return (byId.get(redemptionId) ?? [])
        .map((row) => ({ ...row }))
        .toSorted((a, b) => compare(a.nonce, b.nonce) || a.step - b.step)
    },
    async ofUnit(key) {
      return lines.has(key.lineId) ? (byUnit.get(nameOf(key)) ?? []) : redemptionsOfUnit(db, key)
    },
    async right(key) {
      return lines.has(key.lineId) ? rights.get(nameOf(key)) : findRight(db, key)
    },
    async add(redemption) {
      const row = { ...redemption, outcome: null, resolved_by: null, reported: null }
      const name = redemptionName(row)
      const [hasId, hasLine] = [ids.has(row.redemption_id), row.line_id === null || lines.has(row.line_id)]
      if (!hasId || !hasLine) {
        if (!(await addRedemption(db, redemption))) return false
        if (hasId || hasLine) note(row)
        return true
      }
      if (redemptions.has(name)) return false
      note(row)
      added.add(name)
      return true
    },
    async setOutcome(row, outcome) {
      const known = redemptions.get(redemptionName(row))
      if (known) known.outcome = outcome
      if (!added.has(redemptionName(row))) await updateOutcome(db, row, outcome)
    },
    async use(key, { nonce, deviceId, redemptionId }, failures) {
      const isNoted = noteRight(key, {
        state: 'used',
        nonce,
        device_id: deviceId,
        redemption_id: redemptionId,
        failures,
      })
      if (!isNoted) await useRight(db, key, { nonce, deviceId, redemptionId }, failures)
    },
    async free(key, failures) {
      if (!noteRight(key, { state: 'free', failures })) await freeRight(db, key, failures)
    },
    async lease(key, lease, tries) {
      if (!noteRight(key, leasedRow(lease, tries))) await leaseRight(db, key, lease, tries)
    },
    async unusedLease(key) {
      await flush()
      return unusedLease(db, key)
    },
    async noteOutcome(redemptionId, key, outcome) {
      if (!lines.has(key.lineId)) return noteOutcome(db, redemptionId, key, outcome)
      const right = rights.get(nameOf(key))
      if (right?.redemption_id !== redemptionId) return
      right.outcome = outcome
      changed.add(nameOf(key))
    },
  }
}

function redemptionName({
  nonce,
  step,
  redemption_id,
}: Pick<RedemptionRow, 'nonce' | 'step' | 'redemption_id'>): string {
  // Agents choose ids and nonces: no two may come to the same name.
  return `${step}/${nonce.length}/${nonce}/${redemption_id}`
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
