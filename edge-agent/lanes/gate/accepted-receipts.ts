import { parseEpc } from '../../../policy/gs1/epc.ts'
import { receiptEntry, type ReceiptClaims } from '../../../policy/receipts/receipt-claims.ts'
import type { LeavingUnit } from '../../decisions/claim-exit.ts'
import { tagNameOf } from './tags/deduplicate.ts'

/**
 * Receipts that a gate accepted within the last 30 s. Each passing tag takes one unused entry. A tag without an entry
 * makes the gate alarm (ADR gates).
 */
export interface AcceptedReceipts {
  /**
   * Adds an accepted receipt. `unused`: entries with a free exit right. `taken`: tags that already have an entry. No
   * other tag may take these entries.
   */
  add(claims: ReceiptClaims, unused: readonly number[], atMs: number, taken?: readonly TagEntry[]): void
  /**
   * True if the tag has an entry, or takes an unused one now. A paid tag takes only the entry with its own name. An
   * unpaid tag may also take an entry that names only its product.
   */
  covers(tag: string, atMs: number, isPaid?: boolean): boolean
  /** The unit that lets this tag leave. */
  unitOf(tag: string, atMs: number): LeavingUnit | undefined
}

/** A tag and the number of its receipt entry. */
export interface TagEntry {
  readonly tag: string
  readonly entry: number
}

/** Time after the acceptance of a receipt in which its goods may pass, ms. */
const ACCEPTED_MS = 30_000
const RECEIPTS_LIMIT = 20

interface Accepted {
  cti: Uint8Array
  exp: number
  untilMs: number
  /** Key: content of a receipt entry, hex. Value: numbers of the unused units with this entry. */
  left: Map<string, number[]>
  /** Tags with an entry, each with its number. */
  tags: Map<string, number>
}

/** The receipts of one gate. `tagsNow`: tags for which units of a receipt were used meanwhile, also at other devices. */
export function acceptedReceipts(tagsNow: (cti: Uint8Array) => readonly TagEntry[]): AcceptedReceipts {
  let accepted: Accepted[] = []

  function take(receipt: Accepted, tag: string, isPaid: boolean): boolean {
    if (receipt.tags.has(tag)) return true
    const names = entriesFor(receipt.cti, tag, isPaid).filter((entry) => receipt.left.has(entry))
    const used = names.length === 0 ? [] : tagsNow(receipt.cti)
    const own = used.find((each) => each.tag === tag)
    if (own) {
      receipt.tags.set(tag, own.entry)
      return true
    }
    for (const entry of names) {
      const free = (receipt.left.get(entry) ?? []).filter((n) => used.every((each) => each.entry !== n))
      const ordinal = free.shift()
      receipt.left.set(entry, free)
      if (ordinal === undefined) continue
      receipt.tags.set(tag, ordinal)
      return true
    }
    return false
  }

  return {
    add({ cti, entries, exp }, unused, atMs, taken = []) {
      if (!entries) return
      const left = new Map<string, number[]>()
      const gone = new Set(taken.map(({ entry }) => entry))
      for (const n of unused) {
        if (gone.has(n)) continue
        const entry = entries[n]
        if (!entry) continue
        const hex = hexOf(entry)
        left.set(hex, [...(left.get(hex) ?? []), n])
      }
      accepted = accepted.filter((receipt) => receipt.untilMs > atMs).slice(-RECEIPTS_LIMIT + 1)
      const tags = new Map(taken.map(({ tag, entry }) => [tag, entry]))
      accepted.push({ cti, exp, untilMs: atMs + ACCEPTED_MS, left, tags })
    },
    unitOf(tag, atMs) {
      for (const { cti, exp, untilMs, tags } of accepted) {
        const ordinal = tags.get(tag)
        if (ordinal !== undefined && untilMs > atMs) return { cti, ordinal, exp }
      }
      return undefined
    },
    covers: (tag, atMs, isPaid = false) =>
      accepted.some((receipt) => receipt.untilMs > atMs && take(receipt, tag, isPaid)),
  }
}

/**
 * Matches nearby tags with the unused entries of a receipt. If more tags of a product are nearby than the receipt has
 * entries, no tag of that product matches. The agent cannot know which tags belong to the shopper.
 */
export function tagsOfReceipt(
  { cti, entries }: ReceiptClaims,
  unused: readonly number[],
  tags: readonly { tag: string; isPaid: boolean }[],
): TagEntry[] {
  const free = new Map<string, number[]>()
  for (const n of unused) {
    const entry = entries?.[n]
    if (entry) free.set(hexOf(entry), [...(free.get(hexOf(entry)) ?? []), n])
  }
  const byEntry = new Map<string, string[]>()
  for (const { tag, isPaid } of tags) {
    const entry = entriesFor(cti, tag, isPaid).find((each) => free.has(each))
    if (entry !== undefined) byEntry.set(entry, [...(byEntry.get(entry) ?? []), tag])
  }
  return [...byEntry].flatMap(([entry, nearby]) => {
    const numbers = free.get(entry) ?? []
    return nearby.length > numbers.length
      ? []
      : nearby.flatMap((tag, i) => (numbers[i] === undefined ? [] : [{ tag, entry: numbers[i] }]))
  })
}

/**
 * Entries that a tag may take, in hex. These are the entry of the tag and, for an unpaid tag, the entry of the product
 * in its EPC.
 */
function entriesFor(cti: Uint8Array, tag: string, isPaid: boolean): string[] {
  return entriesOf(tag, isPaid)(cti)
}

/** Like `entriesFor`, but reads the tag once for many receipts. */
export function entriesOf(tag: string, isPaid = false): (cti: Uint8Array) => string[] {
  const name = tagNameOf(tag)
  if ('tagUid' in name) return (cti) => [hexOf(receiptEntry(cti, 'tagUid', name.tagUid))]
  const gtin = isPaid ? undefined : parseEpc(name.epc)?.gtin14
  return (cti) => [
    hexOf(receiptEntry(cti, 'epc', name.epc)),
    ...(gtin === undefined ? [] : [hexOf(receiptEntry(cti, 'gtin', gtin))]),
  ]
}

function hexOf(entry: Uint8Array): string {
  return Buffer.from(entry).toString('hex')
}
