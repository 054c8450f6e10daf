import type { Outcome } from '../../../policy/vocabulary.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { insertChunks, preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import {
  addRedemption,
  addRedemptions,
  findRedemptions,
  redemptionsOfLines,
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
  storeOutcome,
  useRight,
  writeRights,
  type Lease,
  type Tries,
  type UnitKey,
  type UnitRight,
} from './rights.ts'

const withIds = preparedForMany((db, ids) => db.selectFrom('redemption').selectAll().where('redemption_id', 'in', ids))
const rightsOfLines = preparedForMany((db, ids) => db.selectFrom('unit_right').selectAll().where('line_id', 'in', ids))

/**
 * Redemptions and rights within a transaction. `prepare` reads the rows of a batch together. For these rows, `flush`
 * writes new redemptions and changed rights together. The methods read and write all other rows directly in the
 * database.
 */
export class RedemptionBatch {
  readonly #db: Db
  readonly #tenant: string
  /** Redemption ids and purchase lines that `prepare` has read. */
  readonly #ids = new Set<string>()
  readonly #lines = new Set<string>()
  /** Rows of these ids and lines, by key. */
  readonly #redemptions = new Map<string, Row<'redemption'>>()
  readonly #byId = new Map<string, Row<'redemption'>[]>()
  readonly #byUnit = new Map<string, Row<'redemption'>[]>()
  readonly #rights = new Map<string, UnitRight>()
  /** Keys of the rows that `flush` must write. */
  readonly #added = new Set<string>()
  readonly #changed = new Set<string>()

  /** Batch for units of this tenant in this transaction. */
  constructor(db: Db, tenant: string) {
    this.#db = db
    this.#tenant = tenant
  }

  async prepare(redemptionIds: Iterable<string>, lineIds: Iterable<string>): Promise<void> {
    const newIds = [...redemptionIds].filter((id) => !this.#ids.has(id))
    const known = await withIds(this.#db, newIds)
    const newLines = [...lineIds, ...known.flatMap((row) => row.line_id ?? [])].filter((id) => !this.#lines.has(id))
    const [ofThese, rightRows] = [await redemptionsOfLines(this.#db, newLines), await rightsOfLines(this.#db, newLines)]
    for (const id of newIds) this.#ids.add(id)
    for (const id of newLines) this.#lines.add(id)
    for (const row of [...known, ...ofThese]) this.#cache(row)
    for (const row of rightRows) this.#rights.set(unitName(row.line_id, row.unit_no, row.right_class), row)
  }

  /** Writes all changes. Call it before other code reads or writes rights or redemptions in this transaction. */
  async flush(): Promise<void> {
    for (const chunk of insertChunks([...this.#added].flatMap((name) => this.#redemptions.get(name) ?? [])))
      await addRedemptions(this.#db, chunk)
    for (const chunk of insertChunks([...this.#changed].flatMap((name) => this.#rights.get(name) ?? [])))
      await writeRights(this.#db, chunk)
    this.#added.clear()
    this.#changed.clear()
  }

  /** Discards all cached rows. Call it after other code wrote rights or redemptions. */
  reset(): void {
    for (const known of [this.#ids, this.#lines, this.#redemptions, this.#byId, this.#byUnit]) known.clear()
    for (const known of [this.#rights, this.#added, this.#changed]) known.clear()
  }

  /** Redemptions with this id in this tenant, one per step, including unwritten changes. */
  async ofId(redemptionId: string): Promise<Row<'redemption'>[]> {
    if (!this.#ids.has(redemptionId)) return findRedemptions(this.#db, this.#tenant, redemptionId)
    // Returns copies, because callers compare the copies with later versions of the rows.
    return (this.#byId.get(redemptionId) ?? [])
      .map((row) => ({ ...row }))
      .toSorted((a, b) => compare(a.nonce, b.nonce) || a.step - b.step)
  }

  async ofUnit(key: UnitKey): Promise<readonly Row<'redemption'>[]> {
    return this.#lines.has(key.lineId) ? (this.#byUnit.get(nameOf(key)) ?? []) : redemptionsOfUnit(this.#db, key)
  }

  async right(key: UnitKey): Promise<UnitRight | undefined> {
    return this.#lines.has(key.lineId) ? this.#rights.get(nameOf(key)) : findRight(this.#db, key)
  }

  /** Adds a redemption. Returns false if the redemption exists already. */
  async add(redemption: NewRedemption): Promise<boolean> {
    const row = { outcome: null, resolved_by: null, reported: null, ...redemption }
    const name = redemptionName(row)
    const [hasId, hasLine] = [this.#ids.has(row.redemption_id), row.line_id === null || this.#lines.has(row.line_id)]
    if (!hasId || !hasLine) {
      if (!(await addRedemption(this.#db, redemption))) return false
      if (hasId || hasLine) this.#cache(row)
      return true
    }
    if (this.#redemptions.has(name)) return false
    this.#cache(row)
    this.#added.add(name)
    return true
  }

  async setOutcome(row: Row<'redemption'>, outcome: Outcome): Promise<void> {
    const known = this.#redemptions.get(redemptionName(row))
    if (known) known.outcome = outcome
    if (!this.#added.has(redemptionName(row))) await updateOutcome(this.#db, row, outcome)
  }

  async use(
    key: UnitKey,
    use: { nonce: string; deviceId: string; redemptionId: string },
    failures: number,
  ): Promise<void> {
    const { nonce, deviceId: device_id, redemptionId: redemption_id } = use
    const isCached = this.#cacheRight(key, { state: 'used', nonce, device_id, redemption_id, failures })
    if (!isCached) await useRight(this.#db, key, use, failures)
  }

  async lease(key: UnitKey, lease: Lease, tries: Tries): Promise<void> {
    if (!this.#cacheRight(key, leasedRow(lease, tries))) await leaseRight(this.#db, key, lease, tries)
  }

  async free(key: UnitKey, failures: number): Promise<void> {
    if (!this.#cacheRight(key, { state: 'free', failures })) await freeRight(this.#db, key, failures)
  }

  /** Of the unused authorizations of the unit, the one that expires last. */
  async unusedLease(key: UnitKey): Promise<{ nonce: string; device_id: string; exp: number } | undefined> {
    await this.flush()
    return unusedLease(this.#db, key)
  }

  async storeOutcome(redemptionId: string, key: UnitKey, outcome: Outcome): Promise<void> {
    if (!this.#lines.has(key.lineId)) return storeOutcome(this.#db, redemptionId, key, outcome)
    const right = this.#rights.get(nameOf(key))
    if (right?.redemption_id !== redemptionId) return
    right.outcome = outcome
    this.#changed.add(nameOf(key))
  }

  #cache(read: Row<'redemption'>): void {
    const name = redemptionName(read)
    if (this.#redemptions.has(name)) return
    this.#redemptions.set(name, read)
    if (read.tenant === this.#tenant) addTo(this.#byId, read.redemption_id, read)
    if (read.line_id !== null) addTo(this.#byUnit, unitName(read.line_id, read.unit_no, read.right_class), read)
  }

  /** Stores a right in the cache. Returns false if `prepare` has not read the purchase line of the right. */
  #cacheRight(key: UnitKey, right: Partial<UnitRight> & { state: string; failures: number }): boolean {
    if (!this.#lines.has(key.lineId)) return false
    const { lineId: line_id, unitNo: unit_no, rightClass: right_class, purchaseId: purchase_id } = key
    const known = this.#rights.get(nameOf(key))
    const nothing = { nonce: null, device_id: null, until_ms: null, redemption_id: null, outcome: null }
    this.#rights.set(nameOf(key), {
      line_id,
      unit_no,
      right_class,
      purchase_id,
      returned_by: known?.returned_by ?? null,
      was_given: known?.was_given ?? 0,
      ...nothing,
      ...right,
    })
    this.#changed.add(nameOf(key))
    return true
  }
}

function redemptionName({
  nonce,
  step,
  redemption_id,
}: Pick<Row<'redemption'>, 'nonce' | 'step' | 'redemption_id'>): string {
  // Agents choose ids and nonces, so the key must be unambiguous.
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

function addTo(lists: Map<string, Row<'redemption'>[]>, name: string, row: Row<'redemption'>): void {
  const list = lists.get(name)
  if (list) list.push(row)
  else lists.set(name, [row])
}
