import type { Db } from '../../platform/persistence/database.ts'
import { prepared, preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { hasRecalls, recallsIn, type StoreRecalls } from '../items/recalls.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { findDevice } from '../store-facts/device-queries.ts'
import { PASS } from '../../../policy/receipts/receipt-claims.ts'
import { findHomeIn } from '../receipt-home/home-move.ts'
import { passOf } from '../rights/rights.ts'

export type ReceiptPurchase = Pick<
  Row<'purchase'>,
  'purchase_id' | 'tenant' | 'store_id' | 'status' | 'cti' | 'receipt_exp'
>
type StoreDefaults = Pick<Row<'store'>, 'workflow_type' | 'protection_technology'>
type FactUnit = Pick<Row<'purchase_unit'>, 'purchase_id' | 'line_id' | 'unit_no' | 'receipt_index' | 'item_id'>

/** Statuses in which goods must stay although they were not returned (ADR releases). */
export const STOPPED_STATUSES = [
  'exception_hold',
  'reserved_bopis',
  'transfer_in_transit',
] as const satisfies readonly ItemStatus[]

const authorizationsWith = preparedForMany((db, nonces) =>
  db.selectFrom('protection_authorization').select('nonce').where('nonce', 'in', nonces),
)
const purchasesWith = preparedForMany((db, ctis) =>
  db
    .selectFrom('purchase')
    .select(['purchase_id', 'tenant', 'store_id', 'status', 'cti', 'receipt_exp'])
    .where('cti', 'in', ctis),
)
const unitsWith = preparedForMany((db, ids) =>
  db
    .selectFrom('purchase_unit')
    .select(['purchase_id', 'line_id', 'unit_no', 'receipt_index', 'item_id'])
    .where('purchase_id', 'in', ids),
)
const stoppedWith = preparedForMany((db, itemIds) =>
  db
    .selectFrom('item_move')
    .select('item_id')
    .distinct()
    .where('item_id', 'in', itemIds)
    .where('to_status', 'in', [...STOPPED_STATUSES]),
)
const agentsWith = prepared((db, p: { storeId: string }) =>
  db.selectFrom('agent').select(['agent_id', 'replaced_by']).where('store_id', '=', p.storeId),
)

const storeWith = prepared((db, p: { storeId: string }) =>
  db.selectFrom('store').select(['workflow_type', 'protection_technology']).where('store_id', '=', p.storeId),
)

/** The receipt itself. */
function passUnit(purchaseId: string): FactUnit {
  const { lineId, unitNo } = passOf(purchaseId)
  return { purchase_id: purchaseId, line_id: lineId, unit_no: unitNo, receipt_index: PASS, item_id: null }
}

/** Agent that reports, or null for a device without an agent. */
interface Reporter {
  agentId: string | null
  storeId: string
}

/**
 * Facts that do not change while the cloud applies evidence. `prepare` loads them for all rows of a batch with few
 * reads. Rights, redemptions and rows of authorizations do change, so they are not cached here.
 */
export class EvidenceFacts {
  readonly #db: Db
  readonly #tenant: string
  readonly #authorizations = new Map<string, boolean>()
  readonly #purchases = new Map<string, ReceiptPurchase | undefined>()
  readonly #units = new Map<string, FactUnit[]>()
  /** Units of these purchases by line and number. */
  readonly #unitsByKey = new Map<string, FactUnit>()
  /** Whether an item ever had one of `STOPPED_STATUSES`. */
  readonly #stopped = new Map<string, boolean>()
  readonly #devices = new Map<string, Row<'device'> | undefined>()
  readonly #stores = new Map<string, StoreDefaults | undefined>()
  readonly #agents = new Map<string, ReadonlyMap<string, string | null>>()
  readonly #homes = new Map<string, string | undefined>()
  #hasRecalls: Promise<boolean> | undefined

  constructor(db: Db, tenant: string) {
    this.#db = db
    this.#tenant = tenant
  }

  /**
   * Loads the facts for journal rows with these nonces. Returns the ids of the purchase lines on the receipts with
   * these nonces.
   */
  async prepare(nonces: Iterable<string>): Promise<Set<string>> {
    const missing = [...nonces]
    await this.#readAuthorizations(missing)
    await this.#readPurchases(missing.filter((nonce) => this.#authorizations.get(nonce) === false))
    const purchaseIds = missing.flatMap((nonce) => this.#purchases.get(nonce)?.purchase_id ?? [])
    await this.#readUnits(purchaseIds)
    return new Set(purchaseIds.flatMap((id) => this.#units.get(id)?.map((unit) => unit.line_id) ?? []))
  }

  /** True if an authorization of any tenant has this nonce. */
  async isAuthorization(nonce: string): Promise<boolean> {
    await this.#readAuthorizations([nonce])
    return this.#authorizations.get(nonce) === true
  }

  /** Purchase of a receipt of any tenant. The result does not include later changes of this transaction. */
  async purchaseOfReceipt(cti: string): Promise<ReceiptPurchase | undefined> {
    await this.#readPurchases([cti])
    return this.#purchases.get(cti)
  }

  /** Tagged units of a purchase, and the receipt itself as the unit `passOf`, with their numbers on the receipt. */
  async unitsOf(purchaseId: string): Promise<readonly FactUnit[]> {
    await this.#readUnits([purchaseId])
    return this.#units.get(purchaseId) ?? []
  }

  /** A tagged unit with its item: the one that was sold by its tag, or that a token was bound to. */
  async unitOf(
    purchaseId: string,
    { lineId, unitNo }: { lineId: string; unitNo: number },
  ): Promise<FactUnit | undefined> {
    await this.#readUnits([purchaseId])
    return this.#unitsByKey.get(`${lineId}/${unitNo}`)
  }

  /** True if the item ever had one of `STOPPED_STATUSES`. */
  async wasEverStopped(itemId: string): Promise<boolean> {
    await this.#readStopped([itemId])
    return this.#stopped.get(itemId) === true
  }

  /** True if the account ever had a recall. */
  hasRecalls(): Promise<boolean> {
    return (this.#hasRecalls ??= hasRecalls(this.#db, this.#tenant))
  }

  /** Recalls of the store that were active at that time. */
  recallsAt(storeId: string, atMs: number): Promise<StoreRecalls> {
    return recallsIn(this.#db, { tenant: this.#tenant, store_id: storeId }, atMs)
  }

  async device(deviceId: string): Promise<Row<'device'> | undefined> {
    if (!this.#devices.has(deviceId)) this.#devices.set(deviceId, await findDevice(this.#db, this.#tenant, deviceId))
    return this.#devices.get(deviceId)
  }

  /** Default workflow type and technology of a store. */
  async store(storeId: string): Promise<StoreDefaults | undefined> {
    if (!this.#stores.has(storeId)) this.#stores.set(storeId, (await storeWith(this.#db, { storeId }))[0])
    return this.#stores.get(storeId)
  }

  /** Ids of a store's agents. */
  async agentsOf(storeId: string): Promise<readonly string[]> {
    return [...(await this.#successors(storeId)).keys()]
  }

  /** True if the reporter, or a predecessor whose ledger the reporter continues, was the receipt home in this epoch. */
  async isHomeIn(epoch: number, reporter: Reporter): Promise<boolean> {
    const home = await this.#homeIn(reporter.storeId, epoch)
    return home !== undefined && (await this.isOwn(home, reporter))
  }

  /** True if `owner` is the reporter, or a predecessor whose ledger the reporter continues. */
  async isOwn(owner: string | null, { agentId, storeId }: Reporter): Promise<boolean> {
    if (owner === agentId) return true
    if (owner === null || agentId === null) return false
    const known = await this.#successors(storeId)
    // The number of agents limits the loop: in a damaged database, two agents could name each other as successor.
    let next: string | null = owner
    for (let n = 0; n < known.size && next !== null && next !== agentId; n++) next = known.get(next) ?? null
    return next === agentId
  }

  async #readAuthorizations(nonces: Iterable<string>): Promise<void> {
    const missing = [...nonces].filter((nonce) => !this.#authorizations.has(nonce))
    for (const nonce of missing) this.#authorizations.set(nonce, false)
    for (const { nonce } of await authorizationsWith(this.#db, missing)) this.#authorizations.set(nonce, true)
  }

  async #readPurchases(ctis: Iterable<string>): Promise<void> {
    const missing = [...ctis].filter((cti) => !this.#purchases.has(cti))
    for (const cti of missing) this.#purchases.set(cti, undefined)
    for (const row of await purchasesWith(this.#db, missing)) this.#purchases.set(row.cti ?? '', row)
  }

  async #readUnits(purchaseIds: Iterable<string>): Promise<void> {
    const missing = [...purchaseIds].filter((id) => !this.#units.has(id))
    for (const id of missing) this.#units.set(id, [])
    const rows: FactUnit[] = [...(await unitsWith(this.#db, missing)), ...missing.map(passUnit)]
    for (const row of rows) {
      this.#units.get(row.purchase_id)?.push(row)
      this.#unitsByKey.set(`${row.line_id}/${row.unit_no}`, row)
    }
    await this.#readStopped(rows.flatMap(({ item_id: itemId }) => itemId ?? []))
  }

  async #readStopped(itemIds: readonly string[]): Promise<void> {
    const missing = itemIds.filter((id) => !this.#stopped.has(id))
    if (missing.length === 0) return
    for (const id of missing) this.#stopped.set(id, false)
    for (const { item_id: itemId } of await stoppedWith(this.#db, missing)) this.#stopped.set(itemId, true)
  }

  /** Agents of a store with their successors. */
  async #successors(storeId: string): Promise<ReadonlyMap<string, string | null>> {
    const known =
      this.#agents.get(storeId) ??
      new Map((await agentsWith(this.#db, { storeId })).map((row) => [row.agent_id, row.replaced_by]))
    this.#agents.set(storeId, known)
    return known
  }

  async #homeIn(storeId: string, epoch: number): Promise<string | undefined> {
    const name = `${storeId} ${epoch}`
    if (!this.#homes.has(name)) this.#homes.set(name, await findHomeIn(this.#db, storeId, epoch))
    return this.#homes.get(name)
  }
}
