import { impinjEvent } from '../impinj-iot/events.ts'
import { antennaOf, epcOfBase64, epcOfHex, rssiOf } from '../tag-sighting.ts'
import type { TagSighting } from '../tag-sighting.ts'
import { utcUsOf } from '../timestamps.ts'

/** Paths to the reads, and to their fields, in a body that a reader posts. */
export interface ReadMapping {
  /** Path to the reads, such as `reads[*]` or `data.tags[*]`. `$` is the whole body, `$[*]` each item of a list. */
  readonly reads: string
  /** Paths within one read; `$` is the read itself. */
  readonly epc: string
  readonly epcIs: 'hex' | 'base64'
  readonly antenna?: string | undefined
  readonly rssi?: string | undefined
  /** Units of `rssi` per dBm, such as 100 for cdBm. */
  readonly rssiPerDbm: number
  readonly seenAt?: string | undefined
  /** Accepts only reads in which the field at `path` has the value `equals`. */
  readonly only?: { readonly path: string; readonly equals: string } | undefined
}

/** Content of one body. */
export interface Mapped {
  readonly sightings: readonly TagSighting[]
  readonly faults: readonly string[]
  /** Number of items in the list of reads that are no valid reads. */
  readonly strange: number
}

export type Mapper = (body: unknown) => Mapped

type Step = string | '*'

/** Form of a path such as `a.b[*].c`: field names with dots between them. `[*]` is each item of a list. */
export const PATH = /^(?:\$|[A-Za-z0-9_-]{1,64})(?:\.[A-Za-z0-9_-]{1,64}|\[\*\]){0,15}$/

/** Maximum reads of one body; further reads count as `strange`. */
export const MAX_READS_IN_BODY = 5_000

/** Mapping for Keonn's AdvanNet HTTP service with the body template of docs/reference/hardware/http-ingest.md. */
const KEONN: ReadMapping = {
  reads: 'reads[*]',
  epc: 'epc',
  epcIs: 'hex',
  antenna: 'antenna',
  rssi: 'rssi',
  rssiPerDbm: 1,
  seenAt: 'ts',
}

function stepsOf(path: string): Step[] {
  return [...path.matchAll(/\[\*\]|[^.[]+/g)]
    .map(([part]) => (part === '[*]' ? '*' : part))
    .filter((step, i) => !(i === 0 && step === '$'))
}

/** All values that a path matches. */
function follow(value: unknown, steps: readonly Step[]): unknown[] {
  let here = [value]
  for (const step of steps) {
    const next: unknown[] = []
    for (const one of here) {
      if (step === '*' && Array.isArray(one))
        for (const item of one.slice(0, MAX_READS_IN_BODY + 1)) next.push(item as unknown)
      else if (step !== '*' && typeof one === 'object' && one !== null && Object.hasOwn(one, step))
        next.push((one as Record<string, unknown>)[step])
    }
    here = next.slice(0, MAX_READS_IN_BODY + 1)
  }
  return here
}

function byMapping(mapping: ReadMapping): Mapper {
  const field = (path: string | undefined) => {
    const steps = path === undefined ? null : stepsOf(path)
    return (read: unknown) => (steps ? follow(read, steps)[0] : undefined)
  }
  const reads = stepsOf(mapping.reads)
  const [epc, antenna, rssi, seenAt, only] = [
    mapping.epc,
    mapping.antenna,
    mapping.rssi,
    mapping.seenAt,
    mapping.only?.path,
  ].map(field)
  const epcOf = mapping.epcIs === 'hex' ? epcOfHex : epcOfBase64

  return (body) => {
    const found = follow(body, reads)
    const sightings: TagSighting[] = []
    let strange = Math.max(0, found.length - MAX_READS_IN_BODY)
    for (const read of found.slice(0, MAX_READS_IN_BODY)) {
      if (mapping.only && String(only?.(read)) !== mapping.only.equals) continue
      const code = epcOf(epc?.(read))
      const utcUs = utcUsOf(seenAt?.(read))
      if (code === null) strange++
      else
        sightings.push({
          epc: code,
          ...antennaOf(antenna?.(read)),
          ...rssiOf(rssi?.(read), mapping.rssiPerDbm),
          ...(utcUs === null ? {} : { utcUs }),
        })
    }
    return { sightings, faults: [], strange }
  }
}

/** A webhook of an Impinj reader: a list of events; an empty list is a keepalive. */
function byImpinj(body: unknown): Mapped {
  const events = Array.isArray(body) ? (body as unknown[]) : [body]
  const sightings: TagSighting[] = []
  const faults: string[] = []
  let strange = Math.max(0, events.length - MAX_READS_IN_BODY)
  for (const value of events.slice(0, MAX_READS_IN_BODY)) {
    const event = impinjEvent(value)
    if (event === null) strange++
    else if (event.kind === 'tag') sightings.push(event.sighting)
    else if (event.kind === 'fault' && faults.length < 10) faults.push(event.detail)
  }
  return { sightings, faults, strange }
}

/** Makes a mapper for the bodies of one kind of reader, or for the bodies that a configured mapping describes. */
export function mapper(mapping: ReadMapping | 'keonn' | 'impinj'): Mapper {
  if (mapping === 'impinj') return byImpinj
  return byMapping(mapping === 'keonn' ? KEONN : mapping)
}
