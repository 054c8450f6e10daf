import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import { preparedForMany } from '../../persistence/prepared-many.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { PurchaseRow, PurchaseUnitRow } from '../../persistence/tables/purchases.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { findDevice } from '../devices/device-queries.ts'
import { findHomeIn } from '../receipt-home/receipt-homes.ts'

/**
 * What evidence is judged by and does not change: read once in a transaction, and for the rows of a batch all at once.
 * Nothing in here is a right, a redemption or an authorization: those are read when they count.
 */
export interface EvidenceFacts {
  /** Reads what rows with these nonces will ask for; answers the lines that they are about. */
  prepare(nonces: Iterable<string>): Promise<Set<string>>
  /** Whether the nonce is that of an authorization, of any tenant. */
  isAuthorization(nonce: string): Promise<boolean>
  /** The purchase of a receipt, of any tenant, as it was before this transaction. */
  purchaseOfReceipt(cti: string): Promise<ReceiptPurchase | undefined>
  /** Its tagged units and their numbers in the receipt. */
  unitsOf(purchaseId: string): Promise<readonly FactUnit[]>
  device(deviceId: string): Promise<DeviceRow | undefined>
  /** What a store says of its devices where they say nothing themselves. */
  store(storeId: string): Promise<StoreDefaults | undefined>
  /** The agents of a store. */
  agentsOf(storeId: string): Promise<readonly string[]>
  /** Whether this agent was the receipt home of its store in this epoch, or goes on with the ledger of the one that was. */
  isHomeIn(epoch: number, witness: { agentId: string | null; storeId: string }): Promise<boolean>
  /** Whether what was given to `owner` is this witness's to tell: its own, or of one whose ledger it goes on with. */
  isOwn(owner: string | null, witness: { agentId: string | null; storeId: string }): Promise<boolean>
}

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

/** Facts of this transaction. */
export function evidenceFacts(db: Db, tenant: string): EvidenceFacts {
  const authorizations = new Map<string, boolean>()
  const purchases = new Map<string, ReceiptPurchase | undefined>()
  const units = new Map<string, FactUnit[]>()
  const devices = new Map<string, DeviceRow | undefined>()
  const stores = new Map<string, StoreDefaults | undefined>()
  const agents = new Map<string, ReadonlyMap<string, string | null>>()
  const homes = new Map<string, string | undefined>()

  async function readAuthorizations(nonces: Iterable<string>): Promise<void> {
    const asked = [...nonces].filter((nonce) => !authorizations.has(nonce))
    for (const nonce of asked) authorizations.set(nonce, false)
    for (const { nonce } of await authorizationsWith(db, asked)) authorizations.set(nonce, true)
  }

  async function readPurchases(ctis: Iterable<string>): Promise<void> {
    const asked = [...ctis].filter((cti) => !purchases.has(cti))
    for (const cti of asked) purchases.set(cti, undefined)
    for (const row of await purchasesWith(db, asked)) purchases.set(row.cti ?? '', row)
  }

  async function readUnits(purchaseIds: Iterable<string>): Promise<void> {
    const asked = [...purchaseIds].filter((id) => !units.has(id))
    for (const id of asked) units.set(id, [])
    for (const row of await unitsWith(db, asked)) units.get(row.purchase_id)?.push(row)
  }

  /** The agents of a store, each with the one that goes on with its ledger. */
  async function successors(storeId: string): Promise<ReadonlyMap<string, string | null>> {
    const known =
      agents.get(storeId) ?? new Map((await agentsWith(db, { storeId })).map((row) => [row.agent_id, row.replaced_by]))
    agents.set(storeId, known)
    return known
  }

  async function homeIn(storeId: string, epoch: number): Promise<string | undefined> {
    const name = `${storeId} ${epoch}`
    if (!homes.has(name)) homes.set(name, await findHomeIn(db, storeId, epoch))
    return homes.get(name)
  }

  async function isOwn(
    owner: string | null,
    { agentId, storeId }: { agentId: string | null; storeId: string },
  ): Promise<boolean> {
    if (owner === agentId) return true
    if (owner === null || agentId === null) return false
    const known = await successors(storeId)
    // Bounded by the agents of the store, should two name each other.
    let next: string | null = owner
    for (let n = 0; n < known.size && next !== null && next !== agentId; n++) next = known.get(next) ?? null
    return next === agentId
  }

  return {
    isOwn,
    async isHomeIn(epoch, witness) {
      const home = await homeIn(witness.storeId, epoch)
      return home !== undefined && (await isOwn(home, witness))
    },
    async prepare(nonces) {
      const asked = [...nonces]
      await readAuthorizations(asked)
      await readPurchases(asked.filter((nonce) => authorizations.get(nonce) === false))
      const purchaseIds = asked.flatMap((nonce) => purchases.get(nonce)?.purchase_id ?? [])
      await readUnits(purchaseIds)
      return new Set(purchaseIds.flatMap((id) => units.get(id)?.map((unit) => unit.line_id) ?? []))
    },
    async isAuthorization(nonce) {
      await readAuthorizations([nonce])
      return authorizations.get(nonce) === true
    },
    async purchaseOfReceipt(cti) {
      await readPurchases([cti])
      return purchases.get(cti)
    },
    async unitsOf(purchaseId) {
      await readUnits([purchaseId])
      return units.get(purchaseId) ?? []
    },
    async device(deviceId) {
      if (!devices.has(deviceId)) devices.set(deviceId, await findDevice(db, tenant, deviceId))
      return devices.get(deviceId)
    },
    async store(storeId) {
      if (!stores.has(storeId)) stores.set(storeId, (await storeWith(db, { storeId }))[0])
      return stores.get(storeId)
    },
    agentsOf: async (storeId) => [...(await successors(storeId)).keys()],
  }
}
