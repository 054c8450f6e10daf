import { z } from 'zod'
import { ITEM_STATUSES, PROTECTION_TECHNOLOGIES } from '../vocabulary.ts'

/**
 * Each change of an item's status or identifiers gets the next number of its store. The cloud stores only the latest
 * change of an item. A fetch from number 0 returns a snapshot; a fetch from a later number returns the changes after
 * that number. An entry without status means that no item has these identifiers any more. The cloud later deletes such
 * entries with numbers up to `floor`. An agent whose last number is below `floor` therefore fetches the snapshot again.
 */

/** Maximum entries of a page. `DOCUMENT_KINDS.items` also limits the length of the page. */
export const ITEM_PAGE_LIMIT = 2_000

/** Maximum length of a product name in the replica, characters. The cloud shortens longer names. */
export const PRODUCT_NAME_LIMIT = 80

/** Maximum size of a product's small picture, bytes. */
export const PICTURE_BYTES_LIMIT = 4_096
/** Maximum pictures that an agent requests at once. */
export const PICTURES_AT_ONCE = 20

/** Name of a small picture: the SHA-256 of its bytes, base64url. */
export const PictureHash = z.string().regex(/^[A-Za-z0-9_-]{43}$/)

const Name = z.string().min(1).max(128)

export const ItemEntry = z.strictObject({
  seq: z.int().min(1),
  /** If absent, no item has these identifiers any more. */
  status: z.enum(ITEM_STATUSES).optional(),
  epc: Name.optional(),
  tagUid: Name.optional(),
  tagId: Name.optional(),
  /** Price at the last change of the item, cents: the price paid, else the item's own price. */
  price: z.int().min(0).optional(),
  /** Index into the page's `categories`; absent if the item has no category. */
  category: z.int().min(0).optional(),
  /** Index into the page's `brands`; absent if the item has no brand. */
  brand: z.int().min(0).optional(),
  /** Index into the page's `names`; absent if the item has no product. */
  name: z.int().min(0).optional(),
  /** Index into the page's `pictures`; absent if the product has no small picture. */
  picture: z.int().min(0).optional(),
  technology: z.enum(PROTECTION_TECHNOLOGIES).optional(),
  /** True if a recall stops the item; `status` then is `exception_hold`. */
  recalled: z.literal(true).optional(),
  /** True if a till voided the sale of the item, so that tills may ring it up again; `status` then is `cancelled`. */
  voided: z.literal(true).optional(),
  /** True if the item is in a checkout that is not paid yet. */
  paying: z.literal(true).optional(),
})
export type ItemEntry = z.infer<typeof ItemEntry>

/** `items+jwt`: entries in order of `seq`. */
export const ItemsClaims = z.strictObject({
  aud: z.string(),
  iat: z.int().min(0),
  exp: z.int().min(0),
  /** A new epoch starts a new sequence. Entries of earlier epochs are invalid. */
  epoch: z.int().min(0),
  /** Last number that the page covers. */
  ver: z.int().min(0),
  /** Number of the last change before the page; 0 for the first page. */
  after: z.int().min(0),
  floor: z.int().min(0),
  categories: z.array(z.string().max(120)).max(ITEM_PAGE_LIMIT),
  brands: z.array(z.string().max(120)).max(ITEM_PAGE_LIMIT),
  /** Names of products, for people at the lanes. No decision depends on them. */
  names: z.array(z.string().max(PRODUCT_NAME_LIMIT)).max(ITEM_PAGE_LIMIT).optional(),
  /** Hashes of small pictures of products. The agent fetches the pictures and compares them with these hashes. */
  pictures: z.array(PictureHash).max(ITEM_PAGE_LIMIT).optional(),
  entries: z.array(ItemEntry).max(ITEM_PAGE_LIMIT),
})
export type ItemsClaims = z.infer<typeof ItemsClaims>

/** Head of the item sequence in `fresh+jwt`. */
export const ItemsHead = z.strictObject({ epoch: z.int().min(0), ver: z.int().min(0), floor: z.int().min(0) })
export type ItemsHead = z.infer<typeof ItemsHead>
