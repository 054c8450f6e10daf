import { antennaOf, epcOfBase64, epcOfHex, objectOf, rssiOf } from '../../kit/protocol/tag-sighting.ts'
import type { TagSighting } from '../../kit/protocol/tag-sighting.ts'
import { utcUsOf } from '../../kit/protocol/timestamps.ts'
import { TRANSITIONS } from './requests.ts'

/** One event of the reader's stream, webhook or broker (schema `ReaderEvent` of the OpenAPI document 1.7.0). */
export type ImpinjEvent =
  | { readonly kind: 'tag'; readonly sighting: TagSighting }
  /** An input changed at `utcUs` of the reader's clock (schema of firmware 8). */
  | { readonly kind: 'input'; readonly input: number; readonly on: boolean; readonly utcUs: number | undefined }
  /** An antenna lost its connection or has it again. */
  | { readonly kind: 'antenna'; readonly antenna: number; readonly isConnected: boolean }
  /** The inventory runs, or stopped. */
  | { readonly kind: 'reading'; readonly isReading: boolean }
  /** A fault that a person must look at. */
  | { readonly kind: 'fault'; readonly detail: string }
  /** Another event, which the drivers ignore. */
  | { readonly kind: 'other' }

/** Converts an event. Null if `value` is no event, or if a tag has no EPC. */
export function impinjEvent(value: unknown): ImpinjEvent | null {
  const event = objectOf(value)
  if (!event) return null
  const tag = objectOf(event['tagInventoryEvent'])
  if (tag) return tagEvent(event, tag)
  const transition = objectOf(event['gpiTransitionEvent'])
  if (transition) return inputEvent(event, transition)
  const lost = antennaOf(objectOf(event['antennaDisconnectedEvent'])?.['antennaPort']).antenna
  if (lost !== undefined) return { kind: 'antenna', antenna: lost, isConnected: false }
  const found = antennaOf(objectOf(event['antennaConnectedEvent'])?.['antennaPort']).antenna
  if (found !== undefined) return { kind: 'antenna', antenna: found, isConnected: true }
  const inventory = objectOf(event['inventoryStatusEvent'])?.['inventoryStatus']
  if (inventory === 'running' || inventory === 'idle') return { kind: 'reading', isReading: inventory === 'running' }
  const overflow = objectOf(event['overflowEvent'])
  if (overflow)
    return {
      kind: 'fault',
      detail: `the reader has discarded ${String(overflow['eventsPurged'] ?? 'some').slice(0, 12)} events that were not fetched in time`,
    }
  return typeof event['eventType'] === 'string' || typeof event['timestamp'] === 'string' ? { kind: 'other' } : null
}

const LEVELS: Readonly<Record<string, boolean>> = { [TRANSITIONS.rise]: true, [TRANSITIONS.fall]: false }

function inputEvent(event: Record<string, unknown>, { gpi, transition }: Record<string, unknown>): ImpinjEvent | null {
  const on = typeof transition === 'string' && Object.hasOwn(LEVELS, transition) ? LEVELS[transition] : undefined
  if (on === undefined || !Number.isInteger(gpi)) return null
  return { kind: 'input', input: gpi as number, on, utcUs: utcUsOf(event['timestamp']) ?? undefined }
}

/** A text for a person about an antenna. */
export function antennaText({ antenna, isConnected }: { antenna: number; isConnected: boolean }): string {
  return isConnected ? `antenna ${antenna} is connected again` : `antenna ${antenna} is not connected`
}

function tagEvent(event: Record<string, unknown>, tag: Record<string, unknown>): ImpinjEvent | null {
  const epc = epcOfHex(tag['epcHex']) ?? epcOfBase64(tag['epc'])
  if (epc === null) return null
  const utcUs = utcUsOf(tag['lastSeenTime']) ?? utcUsOf(event['timestamp'])
  return {
    kind: 'tag',
    sighting: {
      epc,
      ...antennaOf(tag['antennaPort']),
      ...rssiOf(tag['peakRssiCdbm'], 100),
      ...(utcUs === null ? {} : { utcUs }),
    },
  }
}
