/**
 * EAS bits of Gen2 chips. The Gen2 standard defines none. NXP's UCODE chips have a "product status flag", which a gate
 * can query without a list of items. LLRP can switch the flag only if the chip accepts the standard Write; some chips
 * need a command of their maker.
 *
 * Sources: NXP's data sheets SL3ICS1002/1202 (G2XM, G2XL: ChangeEAS) and SL3S1203/1213 (G2iL: bits of the configuration
 * word); ThingMagic's manual of the M5e, "ChangeConfig" (ones toggle bits; bit 0x20F is the flag); ThingMagic's Mercury
 * API (`TMR_NXP_UCODE7_ConfigWord`: the lowest bit). Model numbers: public lists of chips by TID.
 */
export type EasOfChip =
  /** The chip toggles each bit of the word for which a 1 is written. */
  | { readonly kind: 'toggle'; readonly chip: string }
  /** LLRP cannot switch the bit; `why` is the reason. */
  | { readonly kind: 'none'; readonly why: string }

/** Position of the flag: Gen2 bank 1 (EPC), bit 0x20F, the lowest of the word at bit 0x200. */
export const EAS_WORD = { bank: 1, word: 0x20, mask: 0x0001 } as const

/** Identification of a chip: the first two words of Gen2 bank 2 (TID). */
export const TID_WORDS = { bank: 2, word: 0, count: 2 } as const

const EPCGLOBAL = 0xe2
const NXP = 0x006
const MAKERS: Readonly<Record<number, string>> = {
  0x001: 'Impinj',
  0x003: 'Alien',
  0x006: 'NXP',
  0x00b: 'EM Microelectronic',
}

const TOGGLED: Readonly<Record<number, string>> = {
  0x810: 'UCODE 7',
  0x890: 'UCODE 7',
  0x811: 'UCODE 7m',
  0x891: 'UCODE 7m',
  0x894: 'UCODE 8',
  0x994: 'UCODE 8m',
}
const OWN_COMMAND: Readonly<Record<number, string>> = {
  0x003: 'UCODE G2XM (ChangeEAS)',
  0x004: 'UCODE G2XL (ChangeEAS)',
  0x806: 'UCODE G2iL (ChangeConfig)',
  0x906: 'UCODE G2iL (ChangeConfig)',
  0x807: 'UCODE G2iL+ (ChangeConfig)',
  0x80a: 'UCODE G2iM (ChangeConfig)',
  0x80b: 'UCODE G2iM+ (ChangeConfig)',
}

/** How to switch the EAS bit of the chip with these first two words of the TID. */
export function easOfChip([first = 0, second = 0]: readonly number[]): EasOfChip {
  const tid = [first, second].map((word) => word.toString(16).toUpperCase().padStart(4, '0')).join('')
  // Fields of the TID, with their lengths in bits: class (8), flags (3), maker (9), model (12); see Gen2, 6.3.2.1.3.
  if (first >> 8 !== EPCGLOBAL) return { kind: 'none', why: `its TID ${tid} does not tell what chip it is` }
  const maker = ((first & 0x1f) << 4) | (second >> 12)
  const model = second & 0xfff
  const own = maker === NXP ? OWN_COMMAND[model] : undefined
  if (own)
    return { kind: 'none', why: `the EAS bit of an ${own} needs a command of its maker, which LLRP does not have` }
  const chip = maker === NXP ? TOGGLED[model] : undefined
  if (chip) return { kind: 'toggle', chip }
  return { kind: 'none', why: `of this chip (${MAKERS[maker] ?? `maker ${maker}`}, TID ${tid}) no EAS bit is known` }
}
