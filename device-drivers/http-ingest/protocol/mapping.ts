import { impinjEvent } from '../../impinj-iot/protocol/requests.ts'
import {
  antennaOf,
  epcOfBase64,
  epcOfHex,
  objectOf,
  rssiOf,
  type TagSighting,
  utcUsOf,
} from '../../kit/protocol/tag-sighting.ts'

/** Paths to the reads, and to their fields, in a body that a reader posts. */
interface ReadMapping {
  /** Path to the reads, such as `reads[*]` or `data.tags[*]`. `$` is the whole body, `$[*]` each item of a list. */
  readonly reads: string
  /** Paths within one read; `$` is the read itself. */
  readonly epc: string
  readonly epcIs: 'hex' | 'base64'
  readonly antenna?: string | undefined
  /** Ports of up to two multiplexers in a row between the reader's antenna port and the antenna; 0 for none. */
  readonly mux1?: string | undefined
  readonly mux2?: string | undefined
  readonly rssi?: string | undefined
  /** Units of `rssi` per dBm, such as 100 for cdBm. */
  readonly rssiPerDbm: number
  readonly seenAt?: string | undefined
  /** Accepts only reads in which the field at `path` has the value `equals`. */
  readonly only?: { readonly path: string; readonly equals: string } | undefined
}

/** Content of one body. */
interface Mapped {
  readonly sightings: readonly TagSighting[]
  readonly faults: readonly string[]
  /** Antennas that lost their connection or have it again. */
  readonly antennas: readonly { readonly antenna: number; readonly isConnected: boolean }[]
  /** Whether the reader reports that its inventory runs; undefined if it reports nothing about it. */
  readonly isReading?: boolean
  /** Number of items that are no valid reads; 1 if the body has no list of reads. */
  readonly strange: number
}

const NOTHING: Mapped = { sightings: [], faults: [], antennas: [], strange: 0 }

export type Mapper = (body: unknown) => Mapped

/** Maximum changes of antennas in one body. */
const MAX_ANTENNAS = 64

type Step = string | '*'

/** Form of a path such as `a.b[*].c`: field names with dots between them. `[*]` is each item of a list. */
export const PATH = /^(?:\$|[A-Za-z0-9_-]{1,64})(?:\.[A-Za-z0-9_-]{1,64}|\[\*\]){0,15}$/

/** Maximum reads of one body; further reads count as `strange`. */
const MAX_READS_IN_BODY = 5_000

/** Mapping for Keonn's AdvanNet HTTP service with the body template of docs/reference/hardware/http-ingest.md. */
const KEONN: ReadMapping = {
  reads: 'reads[*]',
  epc: 'epc',
  epcIs: 'hex',
  antenna: 'antenna',
  mux1: 'mux1',
  mux2: 'mux2',
  rssi: 'rssi',
  rssiPerDbm: 1,
  seenAt: 'ts',
}

function stepsOf(path: string): Step[] {
  return [...path.matchAll(/\[\*\]|[^.[]+/g)]
    .map(([part]) => (part === '[*]' ? '*' : part))
    .filter((step, i) => !(i === 0 && step === '$'))
}

/** All values that a path matches. Null if the path leads nowhere; an empty list on the path is no fault. */
function follow(value: unknown, steps: readonly Step[]): unknown[] | null {
  let here = [value]
  let misses = 0
  for (const step of steps) {
    const next: unknown[] = []
    for (const one of here) {
      if (step === '*' && Array.isArray(one))
        for (const item of one.slice(0, MAX_READS_IN_BODY + 1)) next.push(item as unknown)
      // Some readers send a single read without its list.
      else if (step === '*' && objectOf(one)) next.push(one)
      else if (step !== '*' && typeof one === 'object' && one !== null && Object.hasOwn(one, step))
        next.push((one as Record<string, unknown>)[step])
      else misses++
    }
    here = next.slice(0, MAX_READS_IN_BODY + 1)
  }
  return here.length === 0 && misses > 0 ? null : here
}

/** Whether a body is a keepalive: null, an empty text, an empty list or an empty object. */
function isEmpty(body: unknown): boolean {
  return body === null || body === '' || (typeof body === 'object' && Object.keys(body).length === 0)
}

const portOf = (value: unknown): number => (value === undefined || value === '' ? 0 : Number(value))
const isPort = (port: number): boolean => Number.isInteger(port) && port >= 0 && port <= 99

/** Number of an antenna behind multiplexers: 10301 is antenna port 1, port 3 of `mux1` and port 1 of `mux2`. */
function antennaBehind(antenna: unknown, mux1: unknown, mux2: unknown): unknown {
  const [first, second] = [portOf(mux1), portOf(mux2)]
  if (first === 0 && second === 0) return antenna
  return isPort(first) && isPort(second) ? Number(antenna) * 10_000 + first * 100 + second : undefined
}

function byMapping(mapping: ReadMapping): Mapper {
  const field = (path: string | undefined) => {
    const steps = path === undefined ? null : stepsOf(path)
    return (read: unknown) => (steps ? follow(read, steps)?.[0] : undefined)
  }
  const reads = stepsOf(mapping.reads)
  const [epc, antenna, mux1, mux2, rssi, seenAt, only] = [
    mapping.epc,
    mapping.antenna,
    mapping.mux1,
    mapping.mux2,
    mapping.rssi,
    mapping.seenAt,
    mapping.only?.path,
  ].map(field)
  const epcOf = mapping.epcIs === 'hex' ? epcOfHex : epcOfBase64

  return (body) => {
    if (isEmpty(body)) return NOTHING
    const found = follow(body, reads)
    if (found === null) return { ...NOTHING, strange: 1 }
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
          ...antennaOf(antennaBehind(antenna?.(read), mux1?.(read), mux2?.(read))),
          ...rssiOf(rssi?.(read), mapping.rssiPerDbm),
          ...(utcUs === null ? {} : { utcUs }),
        })
    }
    return { ...NOTHING, sightings, strange }
  }
}

/** A webhook of an Impinj reader: a list of events; an empty list is a keepalive. */
function byImpinj(body: unknown): Mapped {
  if (isEmpty(body)) return NOTHING
  const events = Array.isArray(body) ? (body as unknown[]) : [body]
  const sightings: TagSighting[] = []
  const faults: string[] = []
  const antennas: Mapped['antennas'][number][] = []
  let isReading: boolean | undefined
  let strange = Math.max(0, events.length - MAX_READS_IN_BODY)
  for (const value of events.slice(0, MAX_READS_IN_BODY)) {
    const event = impinjEvent(value)
    if (event === null) strange++
    else if (event.kind === 'tag') sightings.push(event.sighting)
    else if (event.kind === 'reading') isReading = event.isReading
    else if (event.kind === 'antenna' && antennas.length < MAX_ANTENNAS) antennas.push(event)
    else if (event.kind === 'fault' && faults.length < 10) faults.push(event.detail)
  }
  return { sightings, faults, antennas, strange, ...(isReading !== undefined && { isReading }) }
}

/** Makes a mapper for the bodies of one kind of reader, or for the bodies that a configured mapping describes. */
export function mapper(mapping: ReadMapping | 'keonn' | 'impinj'): Mapper {
  if (mapping === 'impinj') return byImpinj
  return byMapping(mapping === 'keonn' ? KEONN : mapping)
}
