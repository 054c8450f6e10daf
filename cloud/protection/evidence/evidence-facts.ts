import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import { preparedForMany } from '../../persistence/prepared-many.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { PurchaseRow, PurchaseUnitRow } from '../../persistence/tables/purchases.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { findDevice } from '../store-documents/device-queries.ts'
import { findHomeIn } from '../receipt-home/receipt-homes.ts'

export type ReceiptPurchase = Pick<
  PurchaseRow,
  'purchase_id' | 'tenant' | 'store_id' | 'status' | 'cti' | 'receipt_exp'
>
type StoreDefaults = Pick<StoreRow, 'workflow_type' | 'protection_technology'>
type FactUnit = Pick<PurchaseUnitRow, 'purchase_id' | 'line_id' | 'unit_no' | 'receipt_index'>

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
    .select(['purchase_id', 'line_id', 'unit_no', 'receipt_index'])
    .where('purchase_id', 'in', ids),
)
const agentsWith = prepared((db, p: { storeId: string }) =>
  db.selectFrom('agent').select(['agent_id', 'replaced_by']).where('store_id', '=', p.storeId),
)

const storeWith = prepared((db, p: { storeId: string }) =>
  db.selectFrom('store').select(['workflow_type', 'protection_technology']).where('store_id', '=', p.storeId),
)

/** Who saw something: an agent, or null for a device without agent, in a store. */
interface Reporter {
  agentId: string | null
  storeId: string
}

/**
 * What evidence is judged by and does not change: read once in a transaction, and for the rows of a batch all at once.
 * Nothing in here is a right, a redemption or an authorization: those are read when they count.
 */
export class EvidenceFacts {
  readonly #db: Db
  readonly #tenant: string
  readonly #authorizations = new Map<string, boolean>()
  readonly #purchases = new Map<string, ReceiptPurchase | undefined>()
  readonly #units = new Map<string, FactUnit[]>()
  readonly #devices = new Map<string, DeviceRow | undefined>()
  readonly #stores = new Map<string, StoreDefaults | undefined>()
  readonly #agents = new Map<string, ReadonlyMap<string, string | null>>()
  readonly #homes = new Map<string, string | undefined>()

  /** Facts of this transaction. */
  constructor(db: Db, tenant: string) {
    this.#db = db
    this.#tenant = tenant
  }

  /** Reads what rows with these nonces will ask for; answers the lines that they are about. */
  async prepare(nonces: Iterable<string>): Promise<Set<string>> {
    const asked = [...nonces]
    await this.#readAuthorizations(asked)
    await this.#readPurchases(asked.filter((nonce) => this.#authorizations.get(nonce) === false))
    const purchaseIds = asked.flatMap((nonce) => this.#purchases.get(nonce)?.purchase_id ?? [])
    await this.#readUnits(purchaseIds)
    return new Set(purchaseIds.flatMap((id) => this.#units.get(id)?.map((unit) => unit.line_id) ?? []))
  }

  /** Whether the nonce is that of an authorization, of any tenant. */
  async isAuthorization(nonce: string): Promise<boolean> {
    await this.#readAuthorizations([nonce])
    return this.#authorizations.get(nonce) === true
  }

  /** The purchase of a receipt, of any tenant, as it was before this transaction. */
  async purchaseOfReceipt(cti: string): Promise<ReceiptPurchase | undefined> {
    await this.#readPurchases([cti])
    return this.#purchases.get(cti)
  }

  /** Its tagged units and their numbers in the receipt. */
  async unitsOf(purchaseId: string): Promise<readonly FactUnit[]> {
    await this.#readUnits([purchaseId])
    return this.#units.get(purchaseId) ?? []
  }

  async device(deviceId: string): Promise<DeviceRow | undefined> {
    if (!this.#devices.has(deviceId)) this.#devices.set(deviceId, await findDevice(this.#db, this.#tenant, deviceId))
    return this.#devices.get(deviceId)
  }

  /** What a store says of its devices where they say nothing themselves. */
  async store(storeId: string): Promise<StoreDefaults | undefined> {
    if (!this.#stores.has(storeId)) this.#stores.set(storeId, (await storeWith(this.#db, { storeId }))[0])
    return this.#stores.get(storeId)
  }

  /** The agents of a store. */
  async agentsOf(storeId: string): Promise<readonly string[]> {
    return [...(await this.#successors(storeId)).keys()]
  }

  /** Whether this agent was the receipt home of its store in this epoch, or goes on with the ledger of the one that was. */
  async isHomeIn(epoch: number, witness: Reporter): Promise<boolean> {
    const home = await this.#homeIn(witness.storeId, epoch)
    return home !== undefined && (await this.isOwn(home, witness))
  }

  /** Whether what was given to `owner` is this witness's to tell: its own, or of one whose ledger it goes on with. */
  async isOwn(owner: string | null, { agentId, storeId }: Reporter): Promise<boolean> {
    if (owner === agentId) return true
    if (owner === null || agentId === null) return false
    const known = await this.#successors(storeId)
    // Bounded by the agents of the store, should two name each other.
    let next: string | null = owner
    for (let n = 0; n < known.size && next !== null && next !== agentId; n++) next = known.get(next) ?? null
    return next === agentId
  }

  async #readAuthorizations(nonces: Iterable<string>): Promise<void> {
    const asked = [...nonces].filter((nonce) => !this.#authorizations.has(nonce))
    for (const nonce of asked) this.#authorizations.set(nonce, false)
    for (const { nonce } of await authorizationsWith(this.#db, asked)) this.#authorizations.set(nonce, true)
  }

  async #readPurchases(ctis: Iterable<string>): Promise<void> {
    const asked = [...ctis].filter((cti) => !this.#purchases.has(cti))
    for (const cti of asked) this.#purchases.set(cti, undefined)
    for (const row of await purchasesWith(this.#db, asked)) this.#purchases.set(row.cti ?? '', row)
  }

  async #readUnits(purchaseIds: Iterable<string>): Promise<void> {
    const asked = [...purchaseIds].filter((id) => !this.#units.has(id))
    for (const id of asked) this.#units.set(id, [])
    for (const row of await unitsWith(this.#db, asked)) this.#units.get(row.purchase_id)?.push(row)
  }

  /** The agents of a store, each with the one that goes on with its ledger. */
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
