import { antennaOf, epcOfHex, objectOf, rssiOf, type TagSighting, utcUsOf } from '../../kit/protocol/tag-sighting.ts'

/**
 * Messages of Zebra's IoT Connector over MQTT: FX7500, FX9600, ATR7000, FXR90 ("Raw MQTT payloads" 1.0.0,
 * zebradevs.github.io/rfid-ziotc-docs). Also tag data of the handhelds RFD40 and RFD90 (MQTT API 1.22.0,
 * techdocs.zebra.com).
 */

/** The topics below a base, named as in Zebra's examples. */
export function zebraTopics(base: string): Readonly<Record<keyof ZebraTopics, string>> {
  return {
    data: `${base}/data`,
    managementCommand: `${base}/mgmt/cmd`,
    managementResponse: `${base}/mgmt/res`,
    controlCommand: `${base}/ctrl/cmd`,
    controlResponse: `${base}/ctrl/res`,
  }
}

export interface ZebraTopics {
  readonly data: string
  readonly managementCommand?: string | undefined
  readonly managementResponse?: string | undefined
  readonly controlCommand?: string | undefined
  readonly controlResponse?: string | undefined
}

export type ZebraCommand = 'get_version' | 'get_status' | 'get_mode' | 'set_mode' | 'set_gpo' | 'start' | 'stop'

/** Encodes a command. */
export function zebraCommand(command: ZebraCommand, id: string, payload: object): string {
  return JSON.stringify({ command, command_id: id, payload })
}

export interface ZebraResponse {
  readonly command: string
  readonly id: string
  readonly isSuccess: boolean
  readonly payload: Record<string, unknown>
}

/** Decodes a response; null if `value` is no response. */
export function zebraResponse(value: unknown): ZebraResponse | null {
  const message = objectOf(value)
  const [command, id, response] = [message?.['command'], message?.['command_id'], message?.['response']]
  if (typeof command !== 'string' || typeof id !== 'string' || (response !== 'success' && response !== 'failure'))
    return null
  return { command, id, isSuccess: response === 'success', payload: objectOf(message?.['payload']) ?? {} }
}

/** The tags of one message of the data topic. */
interface ZebraTags {
  readonly sightings: readonly TagSighting[]
  /** Number of items in the message that are no valid events or tags. */
  readonly strange: number
}

/** Maximum tags of one message; readers send at most 256 KB. */
const MAX_TAGS = 5_000

/** Memory banks other than the EPC. Their content is no tag id. */
const OTHER_BANKS: ReadonlySet<unknown> = new Set(['tid', 'user', 'reserved'])

/**
 * Reads the tags of an event or a list of events. Depending on the firmware, the data of an event is one tag, a list of
 * tags, or an object with the list `tagData`. Ignores barcodes and events without tags.
 */
export function zebraTags(value: unknown): ZebraTags {
  const sightings: TagSighting[] = []
  let strange = 0
  const events = Array.isArray(value) ? (value as unknown[]) : [value]
  let others = 0
  strange += Math.max(0, events.length - MAX_TAGS)
  for (const item of events.slice(0, MAX_TAGS)) {
    const event = objectOf(item)
    const tags = event && (isTag(event) ? [event] : tagsIn(event['data']))
    if (!tags || (tags.length === 0 && !isOtherEvent(event))) strange++
    if (!tags) continue
    strange += Math.max(0, tags.length - (MAX_TAGS - sightings.length))
    for (const tag of tags.slice(0, MAX_TAGS - sightings.length)) {
      const record = objectOf(tag)
      if (record && OTHER_BANKS.has(record['format'])) {
        others++
        continue
      }
      const epc = epcOfHex(record?.['idHex']) ?? epcOfHex(record?.['EPCid']) ?? epcOfHex(record?.['EPC'])
      const utcUs = utcUsOf(record?.['timestamp']) ?? utcUsOf(event?.['timestamp'])
      if (epc === null) strange++
      else
        sightings.push({
          epc,
          ...antennaOf(record?.['antenna']),
          ...rssiOf(record?.['peakRssi']),
          ...(utcUs === null ? {} : { utcUs }),
        })
    }
  }
  // A reader may report further banks beside the EPC, but not in its place.
  return { sightings, strange: sightings.length === 0 ? strange + others : strange }
}

function tagsIn(data: unknown): unknown[] {
  if (Array.isArray(data)) return data as unknown[]
  const record = objectOf(data)
  if (!record) return []
  if (Array.isArray(record['tagData'])) return record['tagData'] as unknown[]
  return isTag(record) ? [record] : []
}

function isTag(record: Record<string, unknown>): boolean {
  return ['idHex', 'EPCid', 'EPC'].some((key) => key in record)
}

/** Operating modes, which an event of tag data names as its type. */
const MODES: ReadonlySet<unknown> = new Set(['SIMPLE', 'INVENTORY', 'PORTAL', 'CONVEYOR', 'CUSTOM'])

/** Whether an object without tags is an event of the reader, such as a heartbeat, or an empty keepalive. */
function isOtherEvent(event: Record<string, unknown>): boolean {
  const names = Object.keys(event)
  if (MODES.has(event['type']) && objectOf(event['data'])) return false
  return (
    names.length === 0 || names.some((name) => ['data', 'type', 'eventType', 'timestamp', 'component'].includes(name))
  )
}
