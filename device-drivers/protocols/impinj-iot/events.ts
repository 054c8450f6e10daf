import { antennaOf, epcOfBase64, epcOfHex, objectOf, rssiOf } from '../tag-sighting.ts'
import type { TagSighting } from '../tag-sighting.ts'
import { utcUsOf } from '../timestamps.ts'

/** One event of the reader's data stream, webhook or broker (schema `ReaderEvent` of the reader's OpenAPI document 1.7.0). */
export type ImpinjEvent =
  | { readonly kind: 'tag'; readonly sighting: TagSighting }
  /** Something that a person should look at. */
  | { readonly kind: 'fault'; readonly detail: string }
  /** An event that says nothing about tags. */
  | { readonly kind: 'other' }

/** Null for what is no event of such a reader, or one about a tag without its EPC. */
export function impinjEvent(value: unknown): ImpinjEvent | null {
  const event = objectOf(value)
  if (!event) return null
  const tag = objectOf(event['tagInventoryEvent'])
  if (tag) return tagEvent(event, tag)
  const antenna = objectOf(event['antennaDisconnectedEvent'])
  if (antenna) return { kind: 'fault', detail: `antenna ${String(antenna['antennaPort'] ?? '?').slice(0, 8)} is not connected` }
  const overflow = objectOf(event['overflowEvent'])
  if (overflow) return { kind: 'fault', detail: `the reader has thrown away ${String(overflow['eventsPurged'] ?? 'some').slice(0, 12)} events that were not fetched in time` }
  return typeof event['eventType'] === 'string' || typeof event['timestamp'] === 'string' ? { kind: 'other' } : null
}

function tagEvent(event: Record<string, unknown>, tag: Record<string, unknown>): ImpinjEvent | null {
  const epc = epcOfHex(tag['epcHex']) ?? epcOfBase64(tag['epc'])
  if (epc === null) return null
  const utcUs = utcUsOf(tag['lastSeenTime']) ?? utcUsOf(event['timestamp'])
  return {
    kind: 'tag',
    sighting: { epc, ...antennaOf(tag['antennaPort']), ...rssiOf(tag['peakRssiCdbm'], 100), ...(utcUs === null ? {} : { utcUs }) },
  }
}
