import { upperHex } from './fields.ts'
import { PARAMETERS } from './parameters.ts'
import { FIRST_TLV, TV_LENGTHS } from './elements.ts'

/** One tag of a report. Fields that the reader did not report are undefined. */
export interface TagSighting {
  /** Upper-case hex of whole bytes. */
  readonly epc: string
  /** Number of the antenna in the reader's numbering, which starts at 1. */
  readonly antenna: number | undefined
  readonly rssiDbm: number | undefined
  /** First sighting by the reader's clock, µs since 1970. */
  readonly utcUs: number | undefined
  /** First sighting, µs since the reader's start; only readers without a clock report this time. */
  readonly uptimeUs: number | undefined
  /** Number of reads in this report. */
  readonly count: number
}

const TV = (
  name: 'EPC_96' | 'AntennaID' | 'PeakRSSI' | 'FirstSeenTimestampUTC' | 'FirstSeenTimestampUptime' | 'TagSeenCount',
) => FIRST_TLV | PARAMETERS[name].type
const EPC_96 = TV('EPC_96')
const ANTENNA = TV('AntennaID')
const RSSI = TV('PeakRSSI')
const FIRST_UTC = TV('FirstSeenTimestampUTC')
const FIRST_UPTIME = TV('FirstSeenTimestampUptime')
const COUNT = TV('TagSeenCount')
const REPORT = PARAMETERS.TagReportData.type
const EPC_DATA = PARAMETERS.EPCData.type
/** Maximum length of an EPC: 31 words, because Gen2 stores the number of words in 5 bits. */
const MAX_EPC_BYTES = 62

const word = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
const micros = (bytes: Uint8Array, at: number): number =>
  (word(bytes, at) * 65_536 + word(bytes, at + 2)) * 4_294_967_296 + word(bytes, at + 4) * 65_536 + word(bytes, at + 6)

/** The two hex digits of every byte, as character codes. */
const DIGITS = new TextEncoder().encode(
  Array.from({ length: 256 }, (_, byte) => upperHex(Uint8Array.of(byte))).join(''),
)
const high = (bytes: Uint8Array, at: number): number => DIGITS[2 * (bytes[at] ?? 0)] ?? 0
const low = (bytes: Uint8Array, at: number): number => DIGITS[2 * (bytes[at] ?? 0) + 1] ?? 0

/**
 * 12 bytes as upper-case hex. One call makes a flat string. Concatenated digits would make a rope string, which a Map
 * flattens at a much higher cost.
 */
function hex96(b: Uint8Array, at: number): string {
  return String.fromCharCode(
    high(b, at),
    low(b, at),
    high(b, at + 1),
    low(b, at + 1),
    high(b, at + 2),
    low(b, at + 2),
    high(b, at + 3),
    low(b, at + 3),
    high(b, at + 4),
    low(b, at + 4),
    high(b, at + 5),
    low(b, at + 5),
    high(b, at + 6),
    low(b, at + 6),
    high(b, at + 7),
    low(b, at + 7),
    high(b, at + 8),
    low(b, at + 8),
    high(b, at + 9),
    low(b, at + 9),
    high(b, at + 10),
    low(b, at + 10),
    high(b, at + 11),
    low(b, at + 11),
  )
}

/** The EPC of an EPCData parameter from `at` to `end`, or null. */
function epcData(bytes: Uint8Array, at: number, end: number): string | null {
  const length = Math.ceil(word(bytes, at + 4) / 8)
  return length > 0 && length <= MAX_EPC_BYTES && at + 6 + length <= end
    ? upperHex(bytes, at + 6, at + 6 + length)
    : null
}

/**
 * Reads one TagReportData from `start` to `end`. Returns null if the report has no EPC, and `malformed` if the parts of
 * the report do not fit.
 */
function sightingIn(bytes: Uint8Array, start: number, end: number): TagSighting | null | 'malformed' {
  let epc: string | null = null
  let antenna: number | undefined
  let rssiDbm: number | undefined
  let utcUs: number | undefined
  let uptimeUs: number | undefined
  let count = 1
  let at = start
  while (at < end) {
    const head = bytes[at] ?? 0
    const length = head >= FIRST_TLV ? (TV_LENGTHS[head - FIRST_TLV] ?? 0) : word(bytes, at + 2)
    if (length === 0 || at + length > end || (head < FIRST_TLV && length < 4)) return 'malformed'
    switch (head) {
      case EPC_96:
        epc = hex96(bytes, at + 1)
        break
      case ANTENNA:
        antenna = word(bytes, at + 1)
        break
      case RSSI:
        rssiDbm = ((bytes[at + 1] ?? 0) << 24) >> 24
        break
      case FIRST_UTC:
        utcUs = micros(bytes, at + 1)
        break
      case FIRST_UPTIME:
        uptimeUs = micros(bytes, at + 1)
        break
      case COUNT:
        count = word(bytes, at + 1)
        break
      case 0:
        if (bytes[at + 1] === EPC_DATA) epc = epcData(bytes, at, at + length)
        break
    }
    at += length
  }
  return epc === null ? null : { epc, antenna, rssiDbm, utcUs, uptimeUs, count }
}

/**
 * Reads the tags of an RO_ACCESS_REPORT in order. Does not decode other parameters, because a gate reports thousands of
 * tags a second. Null if the body is malformed.
 */
export function readTagReports(body: Uint8Array): TagSighting[] | null {
  const seen: TagSighting[] = []
  let at = 0
  while (at < body.length) {
    const head = body[at] ?? 0
    const length = head >= FIRST_TLV ? (TV_LENGTHS[head - FIRST_TLV] ?? 0) : word(body, at + 2)
    if (length === 0 || at + length > body.length || (head < FIRST_TLV && length < 4)) return null
    if (word(body, at) === REPORT) {
      const sighting = sightingIn(body, at + 4, at + length)
      if (sighting === 'malformed') return null
      if (sighting) seen.push(sighting)
    }
    at += length
  }
  return seen
}

/** Whether a report begins with a tag, not with a survey or a vendor's parameter. */
export function isTagReport(body: Uint8Array): boolean {
  return word(body, 0) === REPORT
}
