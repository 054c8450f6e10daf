import { foldText } from '../../../policy/fold-text.ts'
import { knownCaller, maySee } from '../foundation/caller.ts'
import { invalid } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import type { Row } from '../persistence/schema.ts'
import { listStores } from './queries.ts'

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

/** Stores of the caller in a city or within a radius (ADR catalogue), sorted by creation time. */
export async function findStores(call: Call, filter: StoreFilter): Promise<Row<'store'>[]> {
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

function centerOf({ lat, lng, city }: StoreFilter, inCity: readonly Row<'store'>[]): Position | undefined {
  if (lat !== undefined && lng !== undefined) return { lat, lng }
  if (lat !== undefined || lng !== undefined)
    throw invalid(lat === undefined ? 'lat' : 'lng', 'is required together with the other coordinate', 'missing')
  if (city === undefined) throw invalid('radius', 'needs a centre: send city, or lat and lng')
  return centroid(inCity.flatMap((store) => positionOf(store) ?? []))
}

function positionOf(store: Row<'store'>): Position | undefined {
  return store.lat === null || store.lng === null ? undefined : { lat: store.lat, lng: store.lng }
}
