import { unhex } from './apdu.ts'

/** Custom commands of NXP's ICODE SLI family (SLIX data sheet, "custom commands"): code, then NXP's number 04. */
const SET_EAS = 0xa2
const RESET_EAS = 0xa3
const EAS_ALARM = 0xa5
const NXP = 0x04
/** ISO 15693 request flags: high data rate, addressed to one UID. */
const ADDRESSED = 0x22
const ERROR_FLAG = 0x01

/** True if a UID (printed form, hex) starts with E0 04 01, as those of NXP's ICODE SLI, SLIX and SLIX2 do. */
export function isIcodeSli(uid: string): boolean {
  return uid.startsWith('E00401') && uid.length === 16
}

/** Makes a command to one tag. On the air the last byte of the UID comes first. */
function addressed(code: number, uid: string): Uint8Array {
  return Uint8Array.of(ADDRESSED, code, NXP, ...unhex(uid).toReversed())
}

/**
 * The frame that switches the EAS bit of one tag on (`set`: gates alarm) or off. The tag keeps the bit without power.
 */
export function easFrame(what: 'set' | 'reset', uid: string): Uint8Array {
  return addressed(what === 'set' ? SET_EAS : RESET_EAS, uid)
}

/**
 * The frame that tests the EAS bit. A tag answers with its EAS sequence if the bit is on, and does not answer if it
 * is off.
 */
export function easAlarmFrame(uid: string): Uint8Array {
  return addressed(EAS_ALARM, uid)
}

const ERRORS: Record<number, string> = {
  0x01: 'the tag has no such command',
  0x02: 'the tag does not know the command',
  0x03: 'the tag has no such option',
  0x0f: 'the tag refuses; its EAS may be protected by a password',
  0x10: 'no such block',
  0x11: 'locked already',
  0x12: 'the EAS bit is locked',
  0x13: 'the tag could not write',
}

/**
 * Decodes a tag's answer to a command. `refused` is null if the tag executed the command. Returns null if the frame is
 * no answer of a tag.
 */
export function tagAnswer(frame: Uint8Array): { readonly refused: string | null } | null {
  const [flags, code] = frame
  if (flags === undefined) return null
  if ((flags & ERROR_FLAG) === 0) return { refused: null }
  return { refused: ERRORS[code ?? 0] ?? `error ${(code ?? 0).toString(16).padStart(2, '0')}` }
}
