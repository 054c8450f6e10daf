import type { Db } from '../persistence/database.ts'
import { preparedRow } from '../persistence/prepared.ts'
import type { Row } from '../persistence/schema.ts'
import { foldText } from '../../../policy/fold-text.ts'
import { knownCaller, maySee } from '../foundation/caller.ts'
import { invalid } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'

/** Finds a store of any tenant. */
export const findStore = preparedRow((db, storeId: string) =>
  db.selectFrom('store').selectAll().where('store_id', '=', storeId),
)

/** A store without its policy, which may be as long as all else of a hundred stores. */
export type ListedStore = Omit<Row<'store'>, 'policy'>

const LISTED: Readonly<Record<keyof ListedStore, true>> = {
  store_id: true,
  tenant: true,
  legal_name: true,
  trading_name: true,
  street: true,
  city: true,
  postal_code: true,
  country_code: true,
  lat: true,
  lng: true,
  phone: true,
  email: true,
  website: true,
  package: true,
  has_scan_and_go: true,
  has_offers: true,
  opening_hours: true,
  media: true,
  social: true,
  psp_account_id: true,
  security_tag_mode: true,
  security_tag_hint: true,
  protection_technology: true,
  device_type: true,
  workflow_type: true,
  policy_version: true,
  document_version: true,
  deny_seq: true,
  created_ms: true,
  in_store_codes: true,
  gln: true,
  min_agent: true,
}
export const LISTED_COLUMNS = Object.keys(LISTED) as readonly (keyof ListedStore)[]

/** Stores of a tenant sorted by id, which is the order of creation. */
export function listStores(db: Db, tenant: string, limit: number): Promise<ListedStore[]> {
  return db
    .selectFrom('store')
    .select(LISTED_COLUMNS)
    .where('tenant', '=', tenant)
    .orderBy('store_id')
    .limit(limit)
    .execute()
}

/**
 * Increases the version of the store's signed policy document. Call this function after each change of policy, devices
 * or operators.
 */
export async function raiseDocumentVersion(db: Db, storeId: string): Promise<void> {
  await db
    .updateTable('store')
    .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
    .where('store_id', '=', storeId)
    .execute()
}

/** Increases it for these stores of an account; null: for all. Returns the ids of the stores. */
export async function raiseDocumentVersions(
  db: Db,
  tenant: string,
  storeIds: readonly string[] | null,
): Promise<string[]> {
  let update = db
    .updateTable('store')
    .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
    .where('tenant', '=', tenant)
  if (storeIds) update = update.where('store_id', 'in', storeIds)
  return (await update.returning('store_id').execute()).map((row) => row.store_id)
}

/** Number of stores of a tenant. */
export async function countStores(db: Db, tenant: string): Promise<number> {
  const { count } = await db
    .selectFrom('store')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('tenant', '=', tenant)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Inserts a store. */
export async function insertStoreRow(db: Db, row: Row<'store'>): Promise<void> {
  await db.insertInto('store').values(row).execute()
}

/** Updates columns of a store. */
export async function updateStoreRow(db: Db, storeId: string, set: Partial<Row<'store'>>): Promise<void> {
  await db.updateTable('store').set(set).where('store_id', '=', storeId).execute()
}

/** Distinct packages of a tenant's stores, without this store. */
export async function packagesOfOthers(db: Db, tenant: string, storeId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('store')
    .select('package')
    .distinct()
    .where('tenant', '=', tenant)
    .where('store_id', '!=', storeId)
    .execute()
  return rows.map((row) => row.package)
}

/** Number of receipts that each of these stores has issued. Stores without receipts are missing. */
export async function countReceipts(db: Db, storeIds: readonly string[]): Promise<Map<string, number>> {
  if (storeIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('store_day')
    .select((eb) => ['store_id', eb.fn.sum<number>('receipts').as('receipts')] as const)
    .where('store_id', 'in', storeIds)
    .groupBy('store_id')
    .execute()
  return new Map(rows.map((row) => [row.store_id, row.receipts]))
}

/** Coordinates, degrees. */
export interface Position {
  lat: number
  lng: number
}

const EARTH_RADIUS_KM = 6_371

/** Great-circle distance in km (haversine). */
export function distanceKm(a: Position, b: Position): number {
  const radians = (degrees: number) => (degrees * Math.PI) / 180
  const dLat = radians(b.lat - a.lat)
  const dLng = radians(b.lng - a.lng)
  const h = Math.sin(dLat / 2) ** 2 + Math.cos(radians(a.lat)) * Math.cos(radians(b.lat)) * Math.sin(dLng / 2) ** 2
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(h)))
}

/** Mean of the positions; undefined for an empty list. */
function centroid(positions: readonly Position[]): Position | undefined {
  if (positions.length === 0) return undefined
  const sum = positions.reduce((s, p) => ({ lat: s.lat + p.lat, lng: s.lng + p.lng }), { lat: 0, lng: 0 })
  return { lat: sum.lat / positions.length, lng: sum.lng / positions.length }
}

interface StoreFilter {
  city?: string | undefined
  /** Radius, km. */
  radius?: number | undefined
  lat?: number | undefined
  lng?: number | undefined
}

/** Maximum number of stores of one tenant that a listing reads. */
const STORES_LIMIT = 10_000

/** Ids of the stores of the caller, sorted by creation time. */
async function visibleStoreIds(call: Call): Promise<string[]> {
  const caller = knownCaller(call.caller)
  const rows = await call.db
    .selectFrom('store')
    .select(['store_id', 'tenant'])
    .where('tenant', '=', caller.tenant)
    .orderBy('store_id')
    .limit(STORES_LIMIT)
    .execute()
  return rows.filter((store) => maySee(caller, store)).map((store) => store.store_id)
}

/** What the filters of a listing read of each store. The other columns are read for one page only. */
type Place = Pick<Row<'store'>, 'store_id' | 'city' | 'lat' | 'lng'>

/** Ids of the stores of the caller in a city or within a radius (ADR catalogue), sorted by creation time. */
export async function findStoreIds(call: Call, filter: StoreFilter): Promise<string[]> {
  if (filter.city === undefined && filter.radius === undefined) return visibleStoreIds(call)
  const caller = knownCaller(call.caller)
  const rows = await call.db
    .selectFrom('store')
    .select(['store_id', 'tenant', 'city', 'lat', 'lng'])
    .where('tenant', '=', caller.tenant)
    .orderBy('store_id')
    .limit(STORES_LIMIT)
    .execute()
  const own = rows.filter((store) => maySee(caller, store))
  return placesIn(own, filter).map((store) => store.store_id)
}

function placesIn(own: readonly Place[], filter: StoreFilter): readonly Place[] {
  const city = filter.city === undefined ? undefined : foldText(filter.city)
  const inCity = city === undefined ? own : own.filter((store) => foldText(store.city) === city)
  if (filter.radius === undefined) return inCity
  const center = centerOf(filter, inCity)
  const { radius } = filter
  // With a radius, the city only defines the centre.
  return own.filter((store) => {
    const position = positionOf(store)
    return position !== undefined && center !== undefined && distanceKm(center, position) <= radius
  })
}

function centerOf({ lat, lng, city }: StoreFilter, inCity: readonly Place[]): Position | undefined {
  if (lat !== undefined && lng !== undefined) return { lat, lng }
  if (lat !== undefined || lng !== undefined)
    throw invalid(lat === undefined ? 'lat' : 'lng', 'is required together with the other coordinate', 'missing')
  if (city === undefined) throw invalid('radius', 'needs a centre: send city, or lat and lng')
  return centroid(inCity.flatMap((store) => positionOf(store) ?? []))
}

function positionOf(store: Place): Position | undefined {
  return store.lat === null || store.lng === null ? undefined : { lat: store.lat, lng: store.lng }
}
