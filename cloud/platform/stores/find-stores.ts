import { foldText } from '../../../policy/fold-text.ts'
import { knownCaller, maySee } from '../foundation/caller.ts'
import { invalid } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { centroid, distanceKm, type Position } from './distance.ts'
import { listStores } from './queries.ts'

export interface StoreFilter {
  city?: string | undefined
  /** Radius, km. */
  radius?: number | undefined
  lat?: number | undefined
  lng?: number | undefined
}

/** Maximum number of stores of one tenant that a listing reads. */
const STORES_LIMIT = 10_000

/** Stores of the caller in a city or within a radius (ADR 0005), sorted by creation time. */
export async function findStores(call: Call, filter: StoreFilter): Promise<StoreRow[]> {
  const caller = knownCaller(call.caller)
  const own = (await listStores(call.db, caller.tenant, STORES_LIMIT)).filter((store) => maySee(caller, store))
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

function centerOf({ lat, lng, city }: StoreFilter, inCity: readonly StoreRow[]): Position | undefined {
  if (lat !== undefined && lng !== undefined) return { lat, lng }
  if (lat !== undefined || lng !== undefined)
    throw invalid(lat === undefined ? 'lat' : 'lng', 'is required together with the other coordinate', 'missing')
  if (city === undefined) throw invalid('radius', 'needs a centre: send city, or lat and lng')
  return centroid(inCity.flatMap((store) => positionOf(store) ?? []))
}

function positionOf(store: StoreRow): Position | undefined {
  return store.lat === null || store.lng === null ? undefined : { lat: store.lat, lng: store.lng }
}
