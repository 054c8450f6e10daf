import type { TagTechnology } from '../../../policy/vocabulary.ts'

/** Answer to reset. Contactless cards send no ATR, so the reader makes one. */
interface Atr {
  readonly historical: Uint8Array
  /** True if the check byte is right, or the protocols need none. */
  readonly checked: boolean
  /** `T` of each offered protocol. */
  readonly protocols: readonly number[]
}

/** RID of the PC/SC Workgroup. In the ATR of a storage card, the numbers of the card follow this RID. */
const PCSC_RID = [0xa0, 0x00, 0x00, 0x03, 0x06]

/** Parses an ATR (ISO/IEC 7816-3 §8). Returns null if the ATR is truncated, is too long or has no valid start. */
export function parseAtr(bytes: Uint8Array): Atr | null {
  const [ts, t0] = bytes
  if ((ts !== 0x3b && ts !== 0x3f) || t0 === undefined || bytes.length > 33) return null
  const protocols: number[] = []
  let at = 2
  for (let y: number | null = t0 >> 4; y !== null;) {
    // Skips TA, TB and TC. The next byte is TD, which lists the interface bytes that follow.
    at += (y & 1) + ((y >> 1) & 1) + ((y >> 2) & 1)
    if ((y & 8) === 0) break
    const td = bytes[at++]
    if (td === undefined) return null
    protocols.push(td & 0x0f)
    y = td >> 4
  }
  const historical = bytes.slice(at, at + (t0 & 0x0f))
  if (historical.length < (t0 & 0x0f)) return null
  const end = at + historical.length
  // With T=0 alone there is no check byte.
  const needsCheck = protocols.some((t) => t !== 0)
  if (bytes.length !== end + (needsCheck ? 1 : 0)) return null
  const checked = !needsCheck || bytes.subarray(1).reduce((sum, byte) => sum ^ byte, 0) === 0
  return { historical, checked, protocols: protocols.length > 0 ? protocols : [0] }
}

/**
 * The numbers of a storage card (PC/SC part 3, supplement for contactless cards): SS for its standard and part, NN
 * for its chip. Returns null for other cards.
 */
function storageCard(atr: Atr): { readonly standard: number; readonly chip: number } | null {
  const [category, tag, length, ...rest] = atr.historical
  if (category !== 0x80 || tag !== 0x4f || length === undefined || length < 8 || rest.length < length) return null
  if (!PCSC_RID.every((byte, i) => rest[i] === byte)) return null
  const [standard = 0, high = 0, low = 0] = rest.slice(PCSC_RID.length)
  return { standard, chip: high * 256 + low }
}

/**
 * Chips with commands of their own, by chip number (NN, see `storageCard`). MIFARE Plus in security level 1 acts as
 * Classic.
 */
const CHIPS: Record<number, TagTechnology> = {
  0x0001: 'MifareClassic', // 1K
  0x0002: 'MifareClassic', // 4K
  0x0003: 'MifareUltralight', // and NTAG
  0x0026: 'MifareClassic', // Mini
  0x0036: 'MifareClassic', // Plus SL1 2K
  0x0037: 'MifareClassic', // Plus SL1 4K
  0x003a: 'MifareUltralight', // C
  0x003d: 'MifareUltralight', // EV1
}

/**
 * Technology by standard number (SS, see `storageCard`). Each part of a standard has its own number: ISO 14443 A (parts
 * 1 to 3), ISO 14443 B (parts 1 to 3), ISO 15693 (parts 1 to 4). The driver supports neither FeliCa (11) nor cards with
 * contacts (0D to 10).
 */
const STANDARDS: Record<number, TagTechnology> = {
  0x01: 'NfcA',
  0x02: 'NfcA',
  0x03: 'NfcA',
  0x05: 'NfcB',
  0x06: 'NfcB',
  0x07: 'NfcB',
  0x09: 'NfcV',
  0x0a: 'NfcV',
  0x0b: 'NfcV',
  0x0c: 'NfcV',
}

/**
 * The technology of a tag, from the reader's ATR. Undefined for FeliCa and contact cards, and for a wrong check byte.
 */
export function tagTechnology(bytes: Uint8Array): TagTechnology | undefined {
  const atr = parseAtr(bytes)
  if (!atr?.checked) return undefined
  const storage = storageCard(atr)
  if (storage) {
    const standard = STANDARDS[storage.standard]
    // If the standard is NfcV or NfcB, ignores the chip number, because all listed chips have ISO 14443 A.
    return standard === 'NfcV' || standard === 'NfcB' ? standard : (CHIPS[storage.chip] ?? standard)
  }
  // ISO 14443-4 cards: 3B 8n 80 01, then the card's historical bytes.
  const [, t0 = 0, td1, td2] = bytes
  return t0 >> 4 === 8 && td1 === 0x80 && td2 === 0x01 ? 'IsoDep' : undefined
}
