import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import { firstIdentifier } from '../../../policy/item-identifiers.ts'
import {
  MAX_ENTRIES,
  receiptEntry,
  receiptIdentity,
  SHOPPER_PRICED,
  type UnitFacts,
} from '../../../policy/receipts/receipt-claims.ts'
import { RECEIPT_LIFE, signReceiptForQr } from '../../../policy/receipts/receipt-token.ts'
import { saleIdentity, type SaleName } from '../../../policy/till-sale.ts'
import { riskClassOf, type ProtectionPolicy } from '../../../policy/store-policy.ts'
import type { TenantKeys } from '../../platform/authority/key-loader.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { definedFields } from '../../platform/operations/fields.ts'

/** A tagged unit, the item bound to it (if any) and the facts that the policy uses. */
export interface ReceiptUnit {
  unit: Row<'purchase_unit'>
  line: Row<'purchase_line'>
  item: Row<'protected_item'> | undefined
  facts: UnitFacts
}

interface NewReceipt {
  /** Hex. */
  cti: string
  token: string
  /** Seconds since 1970. */
  exp: number
  /** Index of each unit in the receipt, in the order of the input units. */
  indexes: number[]
}

/**
 * Builds and signs the receipt of a completed purchase. The address in the QR code of the receipt starts with `origin`.
 */
export function makeReceipt(
  purchase: Row<'purchase'>,
  store: Row<'store'>,
  policy: ProtectionPolicy,
  units: readonly ReceiptUnit[],
  completedMs: number,
  keys: TenantKeys,
  origin: string,
): NewReceipt {
  const { till } = purchase
  // Agents make the receipt of a till's sale with the same identity.
  const cti =
    till === null
      ? receiptIdentity(keys.receiptSecret, purchase.purchase_id)
      : saleIdentity(purchase.store_id, JSON.parse(till) as SaleName)
  const entries = units.map((u, n) => ({ n, entry: receiptEntry(cti, ...matchKeyOf(u)), facts: u.facts }))
  const sorted = entries.toSorted((a, b) => Buffer.compare(a.entry, b.entry) || a.n - b.n)
  const exp = Math.floor(completedMs / 1_000) + RECEIPT_LIFE
  const token = signReceiptForQr(
    origin,
    {
      storeId: store.store_id,
      exp,
      cti,
      units: units.length,
      riskClass: purchase.price_origin === 'shopper' ? SHOPPER_PRICED : riskClassOf(purchase.value_cent),
      policyVersion: store.document_version,
      ...(tellsUnitsApart(purchase, units.length) && {
        entries: sorted.map((e) => e.entry),
        facts: sorted.map((e) => e.facts),
      }),
    },
    policy,
    keys.receipt,
  )
  const indexes = new Array<number>(units.length)
  for (const [index, { n }] of sorted.entries()) indexes[n] = index
  return { cti: Buffer.from(cti).toString('hex'), token, exp, indexes }
}

/**
 * True if the receipt has entries. It has none if the shopper's app set the prices, or above 32 units. Agents then cannot
 * match tags, so only staff can release the goods, also offline (ADR sales).
 */
export function tellsUnitsApart({ price_origin }: Pick<Row<'purchase'>, 'price_origin'>, units: number): boolean {
  return units <= MAX_ENTRIES && price_origin !== 'shopper'
}

/** Identifier by which a gate matches a unit: of the bound item, else of the product, else of the line. */
function matchKeyOf({ line, item }: ReceiptUnit): [kind: Parameters<typeof receiptEntry>[1], id: string] {
  const bound = item && firstIdentifier(definedFields({ epc: item.epc, tagUid: item.tag_uid, tagId: item.tag_id }))
  if (bound) return [bound.kind, bound.id]
  const gtin = line.ean === null ? undefined : toGtin14(line.ean)
  return gtin === undefined ? ['itemLineId', line.line_id] : ['gtin', gtin]
}
