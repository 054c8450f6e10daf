import { parseEpc } from '../../policy/gs1/epc.ts'
import { parseDigitalLink, parseElementString } from '../../policy/gs1/element-string.ts'
import { eanOfGtin14, hasValidCheckDigit } from '../../policy/gs1/gtin.ts'
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
 * form.
 */
export function classifyScan(text: string): ScannedCode {
  const trimmed = text.trim()
  const receipt = extractReceiptToken(trimmed)
  if (receipt !== undefined) return { kind: 'receipt', text: receipt }
  if (/^[\w-]{20,}\.[\w-]{20,}\.[\w-]{86}$/.test(trimmed)) return { kind: 'token', text: trimmed }
  if (parseBadge(trimmed).length > 0) return { kind: 'badge', text: trimmed }
  if (/^\d{8}$|^\d{13}$/.test(trimmed) && hasValidCheckDigit(trimmed)) return { kind: 'ean', ean: trimmed }
  // UPC-A, from scanners that do not convert it to EAN-13.
  if (/^\d{12}$/.test(trimmed) && hasValidCheckDigit(trimmed)) return { kind: 'ean', ean: `0${trimmed}` }
  // The GTIN of a trade unit (a case) has no EAN, but it names a product.
  const item = parseDigitalLink(trimmed) ?? parseElementString(trimmed)
  if (item) return { kind: 'ean', ean: eanOfGtin14(item.gtin14) ?? item.gtin14 }
  const epc = /^[0-9A-Fa-f]{24,}$|^urn:epc:/.test(trimmed) ? parseEpc(trimmed) : undefined
  return epc ? { kind: 'epc', epc: epc.hex } : { kind: 'unknown' }
}
