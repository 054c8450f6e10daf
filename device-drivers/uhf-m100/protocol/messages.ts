import { bytesOfHex, hexOfBytes } from '../../kit/protocol/hex.ts'
import type { M100Frame } from './frame.ts'

/** Supported command codes (M100 & QM100 firmware manual). */
export const M100 = {
  information: 0x03,
  setRegion: 0x07,
  setSelect: 0x0c,
  setSelectMode: 0x12,
  poll: 0x22,
  pollMany: 0x27,
  stop: 0x28,
  kill: 0x65,
  setPower: 0xb6,
  getPower: 0xb7,
  changeEas: 0xe3,
  /** The code of an answer that refuses a command. It is no command itself. */
  refusal: 0xff,
} as const

/** Parameters of `information`. */
export const M100_INFORMATION = { hardware: 0, software: 1, maker: 2 } as const

/** Regions, which determine the channels. */
export const M100_REGIONS = { china900: 1, america: 2, europe: 3, china800: 4, korea: 6 } as const
export type M100Region = keyof typeof M100_REGIONS

/** Code for a poll that no tag answered. A pad without tags sends this code all the time. */
export const NO_TAG = 0x15

const REFUSALS: Readonly<Record<number, string>> = {
  0x09: 'the tag cannot be read',
  0x10: 'the tag cannot be written',
  0x12: 'no such tag to kill',
  0x13: 'no such tag to lock',
  [NO_TAG]: 'no tag',
  0x16: 'wrong access password',
  0x17: 'wrong command or parameters',
  0x1b: 'no such tag for the EAS bit',
  0x20: 'no free channel',
}

/**
 * Kinds of access that a tag refused, by the high half byte of the code. The low half byte is the Gen2 error code of
 * the tag.
 */
const TAG_REFUSALS: Readonly<Record<number, string>> = {
  0xa0: 'read',
  0xb0: 'write',
  0xc0: 'lock',
  0xd0: 'kill',
  0xe0: 'block lock',
}

/** A text of a refusal, such as `error 16 (wrong access password)`. */
export function refusalText(code: number): string {
  const tag = TAG_REFUSALS[code & 0xf0]
  const meaning = REFUSALS[code] ?? (tag ? `the tag refuses: ${tag}, code ${code & 0x0f}` : 'unknown')
  return `error ${hexOfBytes(Uint8Array.of(code))} (${meaning})`
}

/** A command with its parameters. */
export function m100Command(command: number, parameters: readonly number[] = []): M100Frame {
  return { type: 'command', command, parameters: Uint8Array.from(parameters) }
}

/** Polls up to 65,535 times. The reader does not report the end of the polls. */
export function pollMany(times: number): M100Frame {
  return m100Command(M100.pollMany, [0x22, times >>> 8, times & 0xff])
}

/** Sets the transmit power, in steps of 0.01 dBm. */
export function setPower(dbm: number): M100Frame {
  const centi = Math.round(dbm * 100)
  return m100Command(M100.setPower, [centi >>> 8, centi & 0xff])
}

/**
 * Applies the selection to all commands but polls (mode 2). The manual says that Set Select does this, too, but
 * published firmware starts in mode 1, in which a kill hits any tag in the field.
 */
export function applySelection(): M100Frame {
  return m100Command(M100.setSelectMode, [0x02])
}

/** Selects the tag for the next kill or EAS command, by its whole EPC in hex. Does not affect polls. */
export function selectTag(epc: string): M100Frame {
  const mask = bytesOfHex(epc)
  // Target S0, action 0, bank 1 (EPC), from bit 20h (after CRC and PC), not truncated.
  return m100Command(M100.setSelect, [0x01, 0, 0, 0, 0x20, mask.length * 8, 0, ...mask])
}

/** Kills the selected tag for ever; `password` has 8 hex digits, not all zero. */
export function killTag(password: string): M100Frame {
  return m100Command(M100.kill, [...bytesOfHex(password)])
}

/** Sets or clears the EAS bit of the selected tag, an NXP UCODE G2XM or G2XL. Other chips have another command. */
export function changeEas(password: string, on: boolean): M100Frame {
  return m100Command(M100.changeEas, [...bytesOfHex(password), on ? 1 : 0])
}

/** One tag of a poll. */
interface M100Tag {
  /** Upper-case hex. */
  readonly epc: string
  readonly rssiDbm: number
}

/**
 * Decodes a notice. Its fields, with their lengths in bytes: RSSI (1), PC (2), EPC, CRC (2). Null if the frame is no
 * tag.
 */
export function decodeTag({ type, command, parameters }: M100Frame): M100Tag | null {
  if (type !== 'notice' || (command !== M100.poll && command !== M100.pollMany)) return null
  const length = parameters.length - 5
  if (length < 2 || length > 62 || length % 2 !== 0) return null
  return { epc: hexOfBytes(parameters.subarray(3, 3 + length)), rssiDbm: ((parameters[0] ?? 0) << 24) >> 24 }
}

/** The code of an answer that refuses a command, else null. */
export function refusalOf({ type, command, parameters }: M100Frame): number | null {
  return type === 'answer' && command === M100.refusal ? (parameters[0] ?? 0) : null
}

/**
 * The EPC in the answer to a kill or EAS command. The answer consists of the length of PC and EPC, PC (2 bytes), EPC,
 * and state. Null if malformed.
 */
export function tagOfAnswer({ parameters }: M100Frame): string | null {
  const length = parameters[0] ?? 0
  if (length < 4 || parameters.length < 1 + length) return null
  return hexOfBytes(parameters.subarray(3, 1 + length))
}
