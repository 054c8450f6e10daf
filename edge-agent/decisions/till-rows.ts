import type { TillEvidence } from '../../policy/journal.ts'
import type { KeptReturn, KeptSale, SaleName } from '../../policy/till-sale.ts'
import type { TillTag } from '../items/till-tags.ts'

/** Journal rows of what a till reports. */

/** Journal row of a sale. `announced`: another agent announced it before. `mayReturn`: its lines may take tags back. */
export function saleRow(
  sale: KeptSale,
  items: [number, number],
  more: { resold: string[]; announced: Pick<TillTag, 'storedMs'> | undefined; mayReturn: boolean },
): Extract<TillEvidence, { kind: 'sale' }> {
  const { resold, announced, mayReturn } = more
  return {
    kind: 'sale',
    sale,
    items,
    ...(resold.length > 0 && { resold }),
    ...(announced && { announcedMs: Math.floor(announced.storedMs) }),
    ...(!mayReturn && { withoutReturns: true as const }),
  }
}

/** The row of a return. The cloud may not have the sale yet that its receipt or code names. */
export function returnRow(
  request: KeptReturn,
  saleKey: string | undefined,
): Extract<TillEvidence, { kind: 'sale_return' }> {
  const isNamed = request.receipt !== undefined || request.codeHash !== null
  return { kind: 'sale_return', return: request, ...(isNamed && saleKey !== undefined && { sale: saleKey }) }
}

/** The row of a void. */
export function voidRow(
  { saleId, tillId, series }: SaleName,
  reason: string | undefined,
): Extract<TillEvidence, { kind: 'sale_void' }> {
  return {
    kind: 'sale_void',
    saleId,
    ...(tillId !== undefined && { tillId }),
    ...(series !== undefined && { series }),
    ...(reason !== undefined && { reason }),
  }
}
