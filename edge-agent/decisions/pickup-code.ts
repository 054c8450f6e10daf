import type { CloudLink } from '../link/cloud-link.ts'
import { isIdOf } from '../../policy/ids.ts'

/** The receipt of a purchase, or why there is none. The reasons are those of `ScanResult`. */
export type FoundReceipt =
  | { kind: 'receipt'; text: string }
  | {
      kind: 'none'
      why: 'unknown_code' | 'needs_connection' | 'purchase_not_paid' | 'receipt_expired' | 'number_ambiguous'
    }

/** The purchase number that a receipt prints, as a person may type it; undefined if the text is something else. */
export function purchaseNumberIn(text: string): string | undefined {
  const typed = text.trim().toUpperCase().replace(/^PUR_/, 'pur_')
  return isIdOf('pur', typed) ? typed : undefined
}

/** The last six characters of a purchase number, as lists of the console show them; undefined if the text is something else. */
export function numberEndIn(text: string): string | undefined {
  return /^(?:…\s*)?([0-9A-HJKMNP-TV-Z]{6})$/i.exec(text.trim())?.[1]?.toUpperCase()
}

/** Fetches the receipt of a purchase by its number, or by the end of the number, from the cloud. Never throws. */
export async function receiptOfPurchase(
  link: CloudLink,
  named: { purchaseId: string } | { number: string },
): Promise<FoundReceipt> {
  if (!link.isOnline) return { kind: 'none', why: 'needs_connection' }
  const answer = await link.call('generateReceiptQR', named)
  if (answer.kind === 'unreachable') return { kind: 'none', why: 'needs_connection' }
  if (answer.kind === 'refused') {
    if (answer.status === 404 || answer.status === 400) return { kind: 'none', why: 'unknown_code' }
    const { code } = answer
    const isClear = code === 'purchase_not_paid' || code === 'receipt_expired' || code === 'number_ambiguous'
    return { kind: 'none', why: isClear ? code : 'needs_connection' }
  }
  const { token } = answer.body
  return typeof token === 'string' ? { kind: 'receipt', text: token } : { kind: 'none', why: 'needs_connection' }
}

/** An order as the handheld shows it, without data of the customer. */
export interface PickupOrder {
  orderId: string
  status: string
  items: {
    name: string
    quantity: number
    /** Number of tagged items that are reserved for the order. */
    tags: number
  }[]
  note?: string
}

/**
 * `unknown`: no order of this store has this code. `unreachable`: the cloud did not answer; agents have no codes.
 */
export type VerifiedCode = { kind: 'order'; order: PickupOrder } | { kind: 'unknown' } | { kind: 'unreachable' }

const ITEMS_SHOWN = 50

/** True if a text can be a pick-up code: 8 letters or digits, optionally in two groups. */
export function looksLikePickupCode(text: string): boolean {
  return /^[0-9A-Z]{4}[\s-]?[0-9A-Z]{4}$/i.test(text.trim())
}

/** Fetches the order of a code from the cloud. Never throws. */
export async function verifyPickupCode(link: CloudLink, storeId: string, pickupCode: string): Promise<VerifiedCode> {
  if (!link.isOnline) return { kind: 'unreachable' }
  const answer = await link.call('verifyPickupCode', { storeId, pickupCode: pickupCode.trim() })
  if (answer.kind === 'refused' && answer.status === 404) return { kind: 'unknown' }
  if (answer.kind !== 'answered') return { kind: 'unreachable' }
  const { orderId, status, items, note } = answer.body
  const lines = (Array.isArray(items) ? items : []) as { name?: unknown; quantity?: unknown; reservedTags?: unknown }[]
  return {
    kind: 'order',
    order: {
      orderId: String(orderId),
      status: String(status),
      items: lines.slice(0, ITEMS_SHOWN).map(({ name, quantity, reservedTags }) => ({
        name: String(name).slice(0, 200),
        quantity: Number(quantity),
        tags: Array.isArray(reservedTags) ? reservedTags.length : 0,
      })),
      ...(typeof note === 'string' && note !== '' && { note: note.slice(0, 250) }),
    },
  }
}
