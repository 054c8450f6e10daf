import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import { readProductCode } from '../../../policy/gs1/product-code.ts'
import { extractReceiptToken } from '../../../policy/receipts/receipt-token.ts'
import { fetchPurchaseHistory } from '../../sales/checkout/history-operations.ts'
import { searchProducts } from '../../shop/catalogue/operations.ts'
import { storesToRead } from '../components/all-stores.tsx'
import type { PageContext } from '../frame/page.ts'

/** Products whose purchases a search by name finds. */
const NAMED_LIMIT = 5

/**
 * Filters for what a person reads on the page, the receipt or the goods: the end of a number, a product code, the name of
 * a product, a tag, a code that a till printed. A text may mean several of them.
 */
export async function filtersOf(at: PageContext, text: string): Promise<readonly Record<string, string>[]> {
  if (text === '' || text.length > 128) return []
  const read = readProductCode(text)
  if (read.ok && (read.code.isExact || toGtin14(text) !== undefined)) return [{ ean: text }]
  const number = /^(?:.*…\s*)?([0-9A-HJKMNP-TV-Z]{6,26})$/i.exec(text)?.[1]
  const storeIds = storesToRead(at, [])
  const eans = new Set<string>()
  for (const storeId of storeIds) {
    const found = await at.runIfAllowed(searchProducts, { storeId, q: text, limit: NAMED_LIMIT })
    for (const { ean } of found?.products ?? []) if (eans.size < NAMED_LIMIT) eans.add(ean)
  }
  const saleIds = text.length <= 64 ? storeIds.map((storeId) => ({ storeId, saleId: text })) : []
  const numbers = number === undefined ? [] : [{ number }]
  const codes = storeIds.map((storeId) => ({ storeId, receiptCode: text }))
  return [...saleIds, ...codes, ...numbers, ...[...eans].map((ean) => ({ ean })), { tag: text }]
}

/** Id of the purchase whose receipt a scanner read: the address in its QR code, or its token. */
export async function purchaseOfReceipt(at: PageContext, text: string): Promise<string | undefined> {
  const receipt = extractReceiptToken(text)
  if (receipt === undefined) return undefined
  const found = await at.runIfAllowed(fetchPurchaseHistory, { receipt, limit: 1 })
  return found?.purchases[0]?.transactionId
}
