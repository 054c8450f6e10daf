/**
 * AIM symbology identifiers (ISO/IEC 15424): `]`, a letter, a modifier. A scanner can send such an identifier before
 * each text.
 */
export type Symbology =
  | 'code-39'
  | 'code-128'
  | 'gs1-128'
  | 'data-matrix'
  | 'gs1-data-matrix'
  | 'ean-13'
  | 'ean-8'
  | 'ean-add-on'
  | 'gs1-databar'
  | 'codabar'
  | 'code-93'
  | 'code-11'
  | 'itf'
  | 'pdf417'
  | 'qr'
  | 'gs1-qr'
  | 'aztec'
  | 'gs1-aztec'
  | 'maxicode'

/**
 * By letter: the default name, then the names for those modifiers that have another name. Scanners send UPC-A and UPC-E
 * as 13 digits.
 */
const AIM: Readonly<Record<string, readonly [Symbology, Readonly<Record<string, Symbology>>?]>> = {
  A: ['code-39'],
  C: ['code-128', { '1': 'gs1-128' }],
  d: ['data-matrix', { '2': 'gs1-data-matrix', '5': 'gs1-data-matrix' }],
  E: ['ean-13', { '1': 'ean-add-on', '2': 'ean-add-on', '3': 'ean-add-on', '4': 'ean-8' }],
  e: ['gs1-databar'],
  F: ['codabar'],
  G: ['code-93'],
  H: ['code-11'],
  I: ['itf'],
  L: ['pdf417'],
  Q: ['qr', { '3': 'gs1-qr', '4': 'gs1-qr' }],
  z: ['aztec', { '1': 'gs1-aztec', '4': 'gs1-aztec' }],
  U: ['maxicode'],
}

const IDENTIFIER = /^\]([A-Za-z])([0-9A-Za-z])/

/** A scanned text without its identifier, and the kind of code if the scanner reported it. */
interface ScannedText {
  readonly text: string
  readonly symbology?: Symbology
}

/** Separates the identifier from the text, also an identifier without a name here, such as `]X0`. */
export function splitSymbology(line: string): ScannedText {
  const match = IDENTIFIER.exec(line)
  if (!match) return { text: line }
  const [usual, special] = AIM[match[1] ?? ''] ?? []
  const symbology = special?.[match[2] ?? ''] ?? usual
  return { text: line.slice(match[0].length), ...(symbology && { symbology }) }
}
