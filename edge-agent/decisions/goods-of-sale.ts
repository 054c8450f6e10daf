import { toGtin14 } from '../../policy/gs1/gtin.ts'
import { receiptEntry, type ReceiptClaims } from '../../policy/receipts/receipt-claims.ts'
import { RECEIPT_LIFE } from '../../policy/receipts/receipt-token.ts'
import { cancelledTags, saleTagKey, tagsOf, type TillSale } from '../../policy/till-sale.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { KnownItem } from '../items/item-table.ts'
import type { Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { TillReports } from '../ledger/till-reports.ts'
import type { Trust } from '../trust/trust.ts'
import type { KnownSale } from './sale-codes.ts'

/** Characters of an entry in hex. */
const ENTRY_CHARACTERS = 8
const HELD: ReadonlySet<ItemStatus> = new Set(['exception_hold'])
/** Statuses that a till gives goods that came back. */
const BACK: ReadonlySet<ItemStatus> = new Set(['returned', 'cancelled', 'sellable'])
/** Most tags of tills that one decision compares with a receipt. */
const BACK_LIMIT = 50_000
const KINDS = { E: 'epc', U: 'tagUid', T: 'tagId' } as const

/**
 * The products and tags of a sale as the entries of a receipt (ADR receipts), in hex, so that other agents can compare
 * them with recalls and holds, and learn nothing else.
 */
export function encodeGoods(saleKey: string, { lines }: Pick<TillSale, 'lines'>): string {
  const cti = Buffer.from(saleKey, 'hex')
  const cancelled = cancelledTags({ lines })
  const entries = lines
    .filter(({ quantity }) => quantity > 0)
    .flatMap((line) => {
      const gtin = line.ean === undefined ? undefined : toGtin14(line.ean)
      const tags = tagsOf(line).filter((tag) => tag.isValid && !cancelled.has(saleTagKey(tag)))
      const names = tags.map(({ kind, id }) => receiptEntry(cti, kind, id))
      return gtin === undefined ? names : [receiptEntry(cti, 'gtin', gtin), ...names]
    })
  return [...new Set(entries.map(hexOf))].join('')
}

interface Parts {
  trust: Pick<Trust, 'policy'>
  ledger: Pick<Ledger, 'claims' | 'till'>
  items: Pick<Replica, 'find' | 'findByKey' | 'namesIn'>
}

/** The tagged goods of a sale that this agent knows, as tills or other agents reported them. */
export function itemsOfSale({ ledger, items }: Pick<Parts, 'ledger' | 'items'>, { sale }: KnownSale): KnownItem[] {
  return ledger.till.paidBy(sale).flatMap((name) => items.findByKey(name) ?? [])
}

/**
 * Why the goods of a sale must stay, although its code has not been used: one of them is recalled or on hold. An agent
 * does not know which goods carry tags, so one stops the code, and staff look.
 */
export function whyGoodsStay(
  { trust, ledger, items }: Parts,
  { sale, goods }: KnownSale,
): 'recalled' | 'item_not_paid' | 'manual_assistance_required' | undefined {
  const cti = Buffer.from(sale, 'hex')
  const entries = new Set<string>()
  for (let at = 0; at < goods.length; at += ENTRY_CHARACTERS) entries.add(goods.slice(at, at + ENTRY_CHARACTERS))
  const gtins = trust.policy?.recalledGtins ?? []
  if (gtins.some((gtin) => entries.has(hexOf(receiptEntry(cti, 'gtin', gtin))))) return 'recalled'
  if (Array.from({ length: Math.max(1, entries.size) }).some((_, n) => ledger.claims.isRecalled(sale, n)))
    return 'recalled'
  const held = items.namesIn(HELD)
  if (!held) return 'manual_assistance_required'
  for (const { kind, name } of held) {
    const item = entries.has(hexOf(receiptEntry(cti, kind, name))) ? items.find(kind, name) : undefined
    if (item?.status === 'exception_hold') return item.recalled ? 'recalled' : 'item_not_paid'
  }
  return undefined
}

/**
 * Units of a receipt that came back to a till after it was signed, as tills or other agents reported. The cloud denies
 * them, but this agent may not have heard of it. Undefined if there are too many reports to tell.
 */
export function unitsBack(
  { ledger }: Pick<Parts, 'ledger'>,
  { cti, exp, entries = [] }: ReceiptClaims,
): ReadonlySet<number> | undefined {
  const names = entries.length === 0 ? [] : ledger.till.in(BACK, BACK_LIMIT)
  if (names.length >= BACK_LIMIT) return undefined
  const numbers = new Map(entries.map((entry, n) => [hexOf(entry), n]))
  const back = new Set<number>()
  for (const name of names) {
    const kind = KINDS[name[0] as keyof typeof KINDS]
    const n = kind && numbers.get(hexOf(receiptEntry(cti, kind, name.slice(1))))
    if (n !== undefined && isBackSince(ledger.till, name, exp)) back.add(n)
  }
  return back
}

/** True if a till reported after a receipt was signed that these goods came back. */
export function isBackSince(till: TillReports, name: string, exp: number): boolean {
  const tag = till.tag(name)
  return tag !== undefined && BACK.has(tag.status) && tag.storedMs > (exp - RECEIPT_LIFE) * 1_000
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
