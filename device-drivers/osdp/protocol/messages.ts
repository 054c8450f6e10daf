import { hexOfBytes } from '../../kit/protocol/hex.ts'

/** Supported command codes (SIA OSDP 2.2, Annex A). */
export const OSDP_COMMAND = {
  poll: 0x60,
  id: 0x61,
  capabilities: 0x62,
  localStatus: 0x64,
  inputStatus: 0x65,
  outputStatus: 0x66,
  output: 0x68,
  led: 0x69,
  buzzer: 0x6a,
  keySet: 0x75,
  challenge: 0x76,
  panelCryptogram: 0x77,
} as const

/** Supported reply codes. */
export const OSDP_REPLY = {
  ack: 0x40,
  nak: 0x41,
  id: 0x45,
  capabilities: 0x46,
  localStatus: 0x48,
  inputStatus: 0x49,
  outputStatus: 0x4a,
  card: 0x50,
  deviceCryptogram: 0x76,
  firstMac: 0x78,
  busy: 0x79,
} as const

export const OSDP_NAK = {
  check: 1,
  length: 2,
  unknownCommand: 3,
  sequence: 4,
  noSecurity: 5,
  securityRequired: 6,
  cannotProcess: 9,
} as const

const NAK_TEXTS: Readonly<Record<number, string>> = {
  1: 'bad check of the frame',
  2: 'wrong length of the command',
  3: 'unknown command',
  4: 'wrong sequence number',
  5: 'no secure channel, or not with this key',
  6: 'only in a secure channel',
  7: 'unknown biometric type',
  8: 'unknown biometric format',
  9: 'cannot process this now',
}

/** A text of a NAK code, such as `NAK 3 (unknown command)`. */
export function nakText(code: number): string {
  return `NAK ${code} (${NAK_TEXTS[code] ?? 'unknown code'})`
}

export interface OsdpCommand {
  readonly code: number
  readonly data: Uint8Array
}

/** A command with its data. */
export function osdpCommand(code: number, data: readonly number[] | Uint8Array = []): OsdpCommand {
  return { code, data: Uint8Array.from(data) }
}

const word = (n: number): [number, number] => [n & 0xff, n >>> 8]

/** Time of an output or LED in units of 100 ms, for which the command has 16 bits. */
const ticks = (ms: number): number => Math.min(0xffff, Math.max(1, Math.ceil(ms / 100)))

/** Switches an output off without a time limit, and ends a running timer. */
export function outputOff(output: number): OsdpCommand {
  return osdpCommand(OSDP_COMMAND.output, [output, 1, 0, 0])
}

/** Switches an output on without a time limit, and ends a running timer. */
export function outputOn(output: number): OsdpCommand {
  return osdpCommand(OSDP_COMMAND.output, [output, 2, 0, 0])
}

/** Switches an output on for `ms` (rounded up to 100 ms); the device switches it off. */
export function outputOnFor(output: number, ms: number): OsdpCommand {
  return osdpCommand(OSDP_COMMAND.output, [output, 5, ...word(ticks(ms))])
}

const LED_COLOURS = { black: 0, red: 1, green: 2, amber: 3, blue: 4 } as const

/**
 * Lights an LED of the first reader in one colour for `ms`, then restores its former state. 0 ms restores that state
 * now.
 */
export function led(number: number, colour: keyof typeof LED_COLOURS, ms: number): OsdpCommand {
  const temporary = ms > 0 ? [2, 1, 0, LED_COLOURS[colour], 0, ...word(ticks(ms))] : [1, 0, 0, 0, 0, 0, 0]
  return osdpCommand(OSDP_COMMAND.led, [0, number, ...temporary, 0, 0, 0, 0, 0])
}

/** Pulses the buzzer of the first reader for about `ms` (up to an hour). 0 ms: off now. */
export function buzzer(ms: number): OsdpCommand {
  if (ms <= 0) return osdpCommand(OSDP_COMMAND.buzzer, [0, 1, 0, 0, 0])
  // Each tone and each pause lasts half a second, or longer if 255 repetitions are too few.
  const half = Math.max(5, Math.ceil(ticks(ms) / (2 * 255)))
  return osdpCommand(OSDP_COMMAND.buzzer, [
    0,
    2,
    half,
    half,
    Math.min(255, Math.max(1, Math.round(ticks(ms) / (2 * half)))),
  ])
}

/** Sets the device's own base key. Devices accept this command only in a secure channel. */
export function setKey(key: Uint8Array): OsdpCommand {
  return osdpCommand(OSDP_COMMAND.keySet, [1, key.length, ...key])
}

/** Identity that a device reports. */
export interface OsdpIdentity {
  /** Upper-case hex. */
  readonly vendor: string
  readonly model: number
  readonly version: number
  readonly serialNumber: string
  readonly firmwareVersion: string
}

/** Decodes an identity; null if malformed. */
export function decodeIdentity(data: Uint8Array): OsdpIdentity | null {
  if (data.length < 12) return null
  const [model = 0, version = 0] = data.subarray(3, 5)
  return {
    vendor: hexOfBytes(data.subarray(0, 3)),
    model,
    version,
    serialNumber: String(new DataView(data.buffer, data.byteOffset).getUint32(5, true)),
    firmwareVersion: [...data.subarray(9, 12)].join('.'),
  }
}

/** Decodes the level of compliance and the number of items (inputs, outputs, LEDs), by function code. */
export function decodeCapabilities(data: Uint8Array): Map<number, { level: number; count: number }> {
  const found = new Map<number, { level: number; count: number }>()
  for (let at = 0; at + 3 <= data.length; at += 3)
    found.set(data[at] ?? 0, { level: data[at + 1] ?? 0, count: data[at + 2] ?? 0 })
  return found
}

/** A card as the reader reported it. */
export interface OsdpCard {
  readonly bits: number
  /** Upper-case hex. The device sets the unused bits of the last byte to 0. */
  readonly hex: string
}

/** Maximum bits of a card number. Card numbers become tag ids, and an EPC has at most 496 bits. */
const MAX_CARD_BITS = 496

/**
 * Decodes a card report: one byte for the reader, one for the format, two for the number of bits, then data. Null if
 * malformed.
 */
export function decodeCard(data: Uint8Array): OsdpCard | null {
  const bits = (data[2] ?? 0) | ((data[3] ?? 0) << 8)
  const length = Math.ceil(bits / 8)
  if (bits === 0 || bits > MAX_CARD_BITS || data.length < 4 + length) return null
  return { bits, hex: hexOfBytes(data.subarray(4, 4 + length)) }
}
