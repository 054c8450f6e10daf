import { hexOfBytes } from '../../kit/protocol/hex.ts'
import { THINGMAGIC } from './frame.ts'
import type { ThingMagicFrame } from './frame.ts'

/** Region numbers of the modules. */
export const THINGMAGIC_REGIONS = {
  northAmerica: 0x01,
  india: 0x04,
  japan: 0x05,
  china: 0x06,
  europe: 0x08,
  korea: 0x09,
  australia: 0x0b,
  newZealand: 0x0c,
  northAmerica2: 0x0d,
  open: 0xff,
} as const
export type ThingMagicRegion = keyof typeof THINGMAGIC_REGIONS

/** Keepalive status while the module reads normally. */
export const STILL_READING = 0x0400
/** Keepalive status: the module is too hot and reads less. */
export const TOO_HOT = 0x0504

/** Status of a round whose antenna reflects too much, mostly because none is connected. */
export const NO_ANTENNA = 0x0505

const STATUSES: Readonly<Record<number, string>> = {
  0x0100: 'wrong length of the data',
  0x0101: 'unknown command',
  0x0102: 'command cannot be carried out',
  0x0103: 'power too high',
  0x0105: 'wrong value',
  0x0106: 'power too low',
  0x010a: 'region not supported',
  0x0400: 'no tag found',
  0x0504: 'too hot',
  0x0505: 'too much is reflected: is an antenna connected?',
}

/** A text of a status, such as `status 0103 (power too high)`. */
export function statusText(status: number): string {
  return `status ${status.toString(16).toUpperCase().padStart(4, '0')} (${STATUSES[status] ?? 'unknown'})`
}

/** A command with its data. */
export function thingMagicCommand(opcode: number, data: readonly number[] = []): ThingMagicFrame {
  return { opcode, status: null, data: Uint8Array.from(data) }
}

const GEN2 = 0x05

/** Selects Gen2 tags. `START_READING` also selects Gen2 tags. */
export const USE_GEN2 = thingMagicCommand(THINGMAGIC.setProtocol, [0, GEN2])
/** Commands the module to report every read of a tag, not only the first. */
export const REPORT_EVERY_READ = thingMagicCommand(THINGMAGIC.setOption, [0x01, 0x0c, 0x00])

/** Bits of the metadata flags, in the order of the metadata. */
const METADATA = {
  count: 1,
  rssi: 2,
  antenna: 4,
  frequency: 8,
  time: 16,
  phase: 32,
  protocol: 64,
  data: 128,
  outputs: 256,
} as const
const ALL_METADATA = 0x01ff

/** Starts reading until `STOP_READING`, with all metadata and a keepalive every 1,000 ms. */
export const START_READING = thingMagicCommand(THINGMAGIC.tagOperation, [
  0,
  0,
  0x01,
  THINGMAGIC.readMany,
  0,
  0,
  GEN2,
  0x07,
  THINGMAGIC.readMany,
  0x10,
  0x00,
  0x1b,
  0x03,
  0xe8,
  ALL_METADATA >> 8,
  ALL_METADATA & 0xff,
])
export const STOP_READING = thingMagicCommand(THINGMAGIC.tagOperation, [0, 0, 0x02])

/** Sets the antennas, which the module uses one after the other, each to send and to receive. */
export function setAntennas(antennas: readonly number[]): ThingMagicFrame {
  return thingMagicCommand(THINGMAGIC.setAntennas, [0x02, ...antennas.flatMap((antenna) => [antenna, antenna])])
}

/** Sets the transmit power, in steps of 0.01 dBm. */
export function setReadPower(dbm: number): ThingMagicFrame {
  const centi = Math.round(dbm * 100)
  return thingMagicCommand(THINGMAGIC.setReadPower, [centi >>> 8, centi & 0xff])
}

/** Makes a pin an output with this level. After power-up all pins are inputs. */
export function useAsOutput(pin: number, on: boolean): ThingMagicFrame {
  return thingMagicCommand(THINGMAGIC.setOutput, [0x01, pin, 0x01, on ? 1 : 0])
}

/** Sets the level of an output pin. */
export function setOutput(pin: number, on: boolean): ThingMagicFrame {
  return thingMagicCommand(THINGMAGIC.setOutput, [pin, on ? 1 : 0])
}

/** True if the answer to `currentProgram` says that the boot loader runs, which reads no tags. */
export function isBootLoader({ data }: ThingMagicFrame): boolean {
  return ((data[0] ?? 0) & 3) === 1
}

/**
 * Decodes a version answer; each field has 4 bytes: boot loader, hardware, date, firmware, protocols. Null if
 * malformed.
 */
export function decodeVersion({ data }: ThingMagicFrame): { hardware: string; firmware: string } | null {
  if (data.length < 16) return null
  const dotted = (from: number) => hexOfBytes(data.subarray(from, from + 4)).replace(/(..)(?=.)/g, '$1.')
  return { hardware: dotted(4), firmware: dotted(12) }
}

interface ThingMagicTag {
  /** Upper-case hex. */
  readonly epc: string
  readonly rssiDbm?: number
  /** Number of the antenna, from 1. */
  readonly antenna?: number
}

/** Maximum length of an EPC, bytes: 496 bits. */
const MAX_EPC_BYTES = 62

/**
 * Length of each metadatum, bytes. The metadatum of the lowest bit comes first. `data` begins with its own length,
 * which has 2 bytes.
 */
const LENGTHS: readonly (readonly [number, number])[] = [
  [METADATA.count, 1],
  [METADATA.rssi, 1],
  [METADATA.antenna, 1],
  [METADATA.frequency, 3],
  [METADATA.time, 4],
  [METADATA.phase, 2],
  [METADATA.protocol, 1],
  [METADATA.data, 2],
  [METADATA.outputs, 1],
]

/**
 * Decodes a tag report. Its fields, with their lengths in bytes: option (1), search flags (2), metadata flags (2),
 * count (1), metadata, number of bits (2), PC (2), XPC words (0 to 4), EPC, CRC (2).
 * Null if the frame is no tag report.
 */
export function decodeThingMagicTag({ opcode, status, data }: ThingMagicFrame): ThingMagicTag | null {
  if (opcode !== THINGMAGIC.readMany || status !== 0 || data.length < 12) return null
  const flags = ((data[3] ?? 0) << 8) | (data[4] ?? 0)
  let at = 6
  let rssiDbm: number | undefined
  let antenna: number | undefined
  for (const [flag, length] of LENGTHS) {
    if (!(flags & flag)) continue
    if (flag === METADATA.rssi) rssiDbm = ((data[at] ?? 0) << 24) >> 24
    // The high half byte is the sending antenna.
    if (flag === METADATA.antenna) antenna = (data[at] ?? 0) >>> 4
    at += length + (flag === METADATA.data ? Math.ceil((((data[at] ?? 0) << 8) | (data[at + 1] ?? 0)) / 8) : 0)
  }
  const bytes = (((data[at] ?? 0) << 8) | (data[at + 1] ?? 0)) / 8
  // The XI bit of the PC announces the word XPC_W1, whose XEB bit announces XPC_W2 (ISO/IEC 18000-63).
  const hasXpc = ((data[at + 2] ?? 0) & 0x02) !== 0
  const xpcLength = hasXpc ? (((data[at + 4] ?? 0) & 0x80) !== 0 ? 4 : 2) : 0
  const epcLength = bytes - 4 - xpcLength
  const isEpc = Number.isInteger(bytes) && epcLength >= 2 && epcLength <= MAX_EPC_BYTES && epcLength % 2 === 0
  if (!isEpc || data.length !== at + 2 + bytes) return null
  const epcAt = at + 4 + xpcLength
  const epc = hexOfBytes(data.subarray(epcAt, epcAt + epcLength))
  return { epc, ...(rssiDbm === undefined ? {} : { rssiDbm }), ...(antenna ? { antenna } : {}) }
}
