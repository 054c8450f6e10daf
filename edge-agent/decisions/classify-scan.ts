import { parseEpc } from '../../policy/gs1/epc.ts'
import { beginsAsElementString } from '../../policy/gs1/element-string.ts'
import { eanOfGtin14 } from '../../policy/gs1/gtin.ts'
import { readProductCode } from '../../policy/gs1/product-code.ts'
import { splitSymbology, type Symbology } from '../../policy/gs1/symbology.ts'
import { extractReceiptToken } from '../../policy/receipts/receipt-token.ts'
import { parseBadge } from '../../policy/operator-verifiers.ts'

/** Kind of a scanned text. Nothing in the text is verified yet. */
export type ScannedCode =
  | { kind: 'receipt'; text: string }
  | { kind: 'token'; text: string }
  | { kind: 'badge'; text: string }
  | { kind: 'epc'; epc: string }
  | { kind: 'ean'; ean: string }
  | { kind: 'unknown' }

/**
 * Recognizes a scanned text by its form. The order of the checks matters: the Base32 of a receipt may look like another
 * form. `reported` is the symbology that the scanner reported apart from the text.
 */
export function classifyScan(scanned: string, reported?: Symbology): ScannedCode {
  const { text: trimmed, symbology = reported } = splitSymbology(scanned.trim())
  const receipt = extractReceiptToken(trimmed)
  if (receipt !== undefined) return { kind: 'receipt', text: receipt }
  if (/^[\w-]{20,}\.[\w-]{20,}\.[\w-]{86}$/.test(trimmed)) return { kind: 'token', text: trimmed }
  if (parseBadge(trimmed).length > 0) return { kind: 'badge', text: trimmed }
  // A printed tag number may look like a product code that a person wrote, so only exact codes count here.
  const read = readProductCode(trimmed, symbology)
  // The GTIN of a trade unit (a case) has no EAN, but it names a product.
  if (read.ok && read.code.isExact) return { kind: 'ean', ean: eanOfGtin14(read.code.gtin14) ?? read.code.gtin14 }
  const isHex = /^[0-9A-Fa-f]{24,}$/.test(trimmed) && !beginsAsElementString(trimmed)
  const epc = isHex || trimmed.startsWith('urn:epc:') ? parseEpc(trimmed) : undefined
  return epc ? { kind: 'epc', epc: epc.hex } : { kind: 'unknown' }
}
