import { newId } from '../../../policy/ids.ts'
import { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { accountOf, type Tenant, isAtLeast, type Package } from '../foundation/caller.ts'
import { precondition } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import type { Row } from '../persistence/schema.ts'
import { countStores, insertStoreRow } from './queries.ts'
import type { StoreFields } from './store-input.ts'
import type { Db } from '../persistence/database.ts'

type Ids = readonly (string | null | undefined)[]

/** Names that people see instead of ids, by id. */
interface ShownNames {
  /** A device without a name has the name of its gate. */
  readonly devices: ReadonlyMap<string, string>
  /** Operators and users of the account. */
  readonly staff: ReadonlyMap<string, string>
  readonly agents: ReadonlyMap<string, string>
}

/** Reads the names of these devices, members of staff and agents. */
export async function shownNames(
  db: Db,
  tenant: string,
  ids: { devices: Ids; staff: Ids; agents?: Ids },
): Promise<ShownNames> {
  return {
    devices: await deviceNames(db, tenant, distinct(ids.devices)),
    staff: await staffNames(db, tenant, distinct(ids.staff)),
    agents: await agentNames(db, tenant, distinct(ids.agents ?? [])),
  }
}

async function agentNames(db: Db, tenant: string, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('agent')
    .select(['agent_id', 'name'])
    .where('tenant', '=', tenant)
    .where('agent_id', 'in', ids)
    .execute()
  return new Map(rows.flatMap(({ agent_id, name }) => named(agent_id, name)))
}

function distinct(ids: Ids): string[] {
  return [...new Set(ids.filter((id) => typeof id === 'string'))]
}

async function deviceNames(db: Db, tenant: string, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('device')
    .select(['device_id', 'name', 'gate_id'])
    .where('tenant', '=', tenant)
    .where('device_id', 'in', ids)
    .execute()
  return new Map(rows.flatMap(({ device_id, name, gate_id }) => named(device_id, name ?? gate_id)))
}

async function staffNames(db: Db, tenant: string, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const operators = await db
    .selectFrom('operator')
    .select(['operator_id', 'name'])
    .where('tenant', '=', tenant)
    .where('operator_id', 'in', ids)
    .execute()
  const users = await db
    .selectFrom('console_user')
    .select(['user_id', 'name', 'email'])
    .where('account_id', '=', accountOf(tenant))
    .where('user_id', 'in', ids)
    .execute()
  return new Map([
    ...operators.map(({ operator_id, name }) => [operator_id, name] as const),
    ...users.map(({ user_id, name, email }) => [user_id, name || email] as const),
  ])
}

function named(id: string, name: string | null): [string, string][] {
  return name === null ? [] : [[id, name]]
}

/** Maximum number of stores per tenant. Listings read all stores. */
export const STORES_LIMIT = 10_000

/** Creates a store with the default policy. Throws 409 `too_many_stores` if the tenant has 10,000 stores. */
export async function makeStore(
  call: Call,
  tenant: Tenant,
  fields: StoreFields,
  chosenPackage: Package,
): Promise<Row<'store'>> {
  if ((await countStores(call.db, tenant)) >= STORES_LIMIT)
    throw precondition('too_many_stores', `the account has ${STORES_LIMIT} stores, which is the maximum`)
  const legalName = fields.legal_name ?? fields.trading_name ?? ''
  const row: Row<'store'> = {
    store_id: newId('st', call.services.platform),
    tenant,
    legal_name: legalName,
    trading_name: legalName,
    street: '',
    city: '',
    postal_code: '',
    country_code: '',
    lat: null,
    lng: null,
    phone: null,
    email: null,
    website: null,
    opening_hours: null,
    media: null,
    social: null,
    psp_account_id: null,
    security_tag_mode: 'none',
    security_tag_hint: null,
    protection_technology: null,
    device_type: null,
    workflow_type: null,
    in_store_codes: null,
    gln: null,
    ...defaultFeatures(tenant, chosenPackage),
    ...fields,
    package: chosenPackage,
    policy: JSON.stringify(ProtectionPolicy.parse({})),
    policy_version: 1,
    min_agent: null,
    document_version: 1,
    deny_seq: 0,
    created_ms: call.nowMs,
  }
  await insertStoreRow(call.db, row)
  return row
}

/** Default features of a store with this package. Stores in the sandbox always have scan and go. */
export function defaultFeatures(
  tenant: string,
  chosenPackage: Package,
): Pick<Row<'store'>, 'has_scan_and_go' | 'has_offers'> {
  const inSandbox = tenant.endsWith('.test')
  return {
    has_scan_and_go: inSandbox || isAtLeast(chosenPackage, 'GROW') ? 1 : 0,
    has_offers: isAtLeast(chosenPackage, 'GO') ? 1 : 0,
  }
}
