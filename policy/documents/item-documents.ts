import { z } from 'zod'
import { ITEM_STATUSES, PROTECTION_TECHNOLOGIES } from '../vocabulary.ts'

/**
 *   changes of a store's items ── 1 · 2 · 3 · … · ver ──▶ pages (after, ver] ──▶ the same items at every gate
 *
 * Every change of an item's status or names takes the next number of its store; of each item only the
 * latest change is kept. So a page holds what moved last within (after, ver]: followed from 0 the pages
 * are a snapshot, from anywhere else they are the changes since. A name that no item has any more is told
 * as gone; such words are forgotten in time, up to `floor`: whoever stands below it begins anew.
 */

/** Entries of one page at most; its length is bounded besides (DOCUMENT_KINDS.items). */
export const ITEM_PAGE_LIMIT = 2_000

const Name = z.string().min(1).max(128)

export const ItemEntry = z.strictObject({
  seq: z.int().min(1),
  /** Absent: these names belong to no item any more. */
  status: z.enum(ITEM_STATUSES).optional(),
  epc: Name.optional(),
  tagUid: Name.optional(),
  tagId: Name.optional(),
  /** Cents: what was paid for the item, else its own price; as it was when the item changed last. */
  price: z.int().min(0).optional(),
  /** Index into the page's `categories`; absent: the item has none. */
  category: z.int().min(0).optional(),
  /** Index into the page's `brands`; absent: the item has none. */
  brand: z.int().min(0).optional(),
  technology: z.enum(PROTECTION_TECHNOLOGIES).optional(),
  /** Named in a checkout that has not been paid yet. */
  paying: z.literal(true).optional(),
})
export type ItemEntry = z.infer<typeof ItemEntry>

/** `items+jwt`: entries in the order of their numbers. */
export const ItemsClaims = z.strictObject({
  aud: z.string(),
  iat: z.int().min(0),
  exp: z.int().min(0),
  /** Another sequence: everything before counts for nothing. */
  epoch: z.int().min(0),
  /** The page tells everything up to this number. */
  ver: z.int().min(0),
  /** It follows on this number: 0 at the beginning. */
  after: z.int().min(0),
  floor: z.int().min(0),
  categories: z.array(z.string().max(120)).max(ITEM_PAGE_LIMIT),
  brands: z.array(z.string().max(120)).max(ITEM_PAGE_LIMIT),
  entries: z.array(ItemEntry).max(ITEM_PAGE_LIMIT),
})
export type ItemsClaims = z.infer<typeof ItemsClaims>

/** What `fresh+jwt` says of the items. */
export const ItemsHead = z.strictObject({ epoch: z.int().min(0), ver: z.int().min(0), floor: z.int().min(0) })
export type ItemsHead = z.infer<typeof ItemsHead>
