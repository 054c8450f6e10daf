import { receiptEntry, type ReceiptClaims } from '../../../policy/receipts/receipt-claims.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Trust } from '../trust.ts'

/**
 * Numbers of the units of a receipt that a recall stops, although no item with a tag shows it. The policy names the
 * products of which all goods are recalled. The deny list names the units whose line states a recalled lot, and those of
 * receipts that do not tell their goods apart.
 */
export function recalledUnits(
  { trust, ledger }: { trust: Pick<Trust, 'policy'>; ledger: Pick<Ledger, 'claims'> },
  { cti, units, entries = [] }: ReceiptClaims,
): ReadonlySet<number> {
  const gtins = entries.length > 0 ? (trust.policy?.recalledGtins ?? []) : []
  const recalled = new Set(gtins.map((gtin) => hexOf(receiptEntry(cti, 'gtin', gtin))))
  const id = hexOf(cti)
  const isRecalled = (n: number, entry = entries[n]) =>
    (entry !== undefined && recalled.has(hexOf(entry))) || ledger.claims.isRecalled(id, n)
  return new Set(Array.from({ length: units }, (_, n) => n).filter((n) => isRecalled(n)))
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
