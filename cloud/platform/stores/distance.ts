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
export function centroid(positions: readonly Position[]): Position | undefined {
  if (positions.length === 0) return undefined
  const sum = positions.reduce((s, p) => ({ lat: s.lat + p.lat, lng: s.lng + p.lng }), { lat: 0, lng: 0 })
  return { lat: sum.lat / positions.length, lng: sum.lng / positions.length }
}
