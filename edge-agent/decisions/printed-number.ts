import { isIdOf } from '../../policy/ids.ts'
import type { CloudLink } from '../link/cloud-link.ts'

/** The receipt of a purchase, or why there is none. The reasons are those of `ScanResult`. */
export type FoundReceipt =
  | { kind: 'receipt'; text: string }
  | { kind: 'none'; why: 'unknown_code' | 'needs_connection' | 'purchase_not_paid' | 'receipt_expired' }

/** The purchase number that a receipt prints, as a person may type it; undefined if the text is something else. */
export function purchaseNumberIn(text: string): string | undefined {
  const typed = text.trim().toUpperCase().replace(/^PUR_/, 'pur_')
  return isIdOf('pur', typed) ? typed : undefined
}

/** Fetches the receipt of a purchase from the cloud. Never throws. */
export async function receiptOfPurchase(link: CloudLink, purchaseId: string): Promise<FoundReceipt> {
  if (!link.isOnline) return { kind: 'none', why: 'needs_connection' }
  const answer = await link.call('generateReceiptQR', { purchaseId })
  if (answer.kind === 'unreachable') return { kind: 'none', why: 'needs_connection' }
  if (answer.kind === 'refused') {
    if (answer.status === 404 || answer.status === 400) return { kind: 'none', why: 'unknown_code' }
    const { code } = answer
    return { kind: 'none', why: code === 'purchase_not_paid' || code === 'receipt_expired' ? code : 'needs_connection' }
  }
  const { token } = answer.body
  return typeof token === 'string' ? { kind: 'receipt', text: token } : { kind: 'none', why: 'needs_connection' }
}
