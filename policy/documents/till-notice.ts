import { z } from 'zod'
import { SOLD_PIECES_LIMIT } from '../sold-pieces.ts'
import { CodeHash } from '../till-sale.ts'
import { ITEM_STATUSES } from '../vocabulary.ts'

/** What the tills of one agent reported, for the other agents of the store (ADR till-sales). */

/** Lifetime of a notice, s. The agent signs a new notice for each delivery. */
export const TILL_NOTICE_LIFE = 60
/** Maximum tags, and codes, of a notice. */
export const NOTICE_TAGS_LIMIT = 1_000
/**
 * Characters of JSON that a sender puts into a notice. Signed and encoded they are 83 kB at most, which every receiver
 * takes.
 */
export const NOTICE_CHARACTERS = 60_000

/** Characters of the entries of a sale: 500 lines with five entries of products and lots each, 2,000 tags, and a till. */
const GOODS_CHARACTERS = (500 * 5 + 2_000 + 1) * 8

/** Highest rank of a report about a tag. At this rank, the status counts at which gates alarm. */
export const RANK_LIMIT = 2 ** 31

/** `saleKeyOf`. */
const SaleKey = z.string().regex(/^[0-9a-f]{32}$/)

/** A sale that opens a barrier by a code which its till printed, or whose signed receipt has no room for its goods. */
const SoldCode = z.strictObject({
  code: CodeHash,
  /** `saleKeyOf`, the identity of its receipt. */
  sale: SaleKey,
  /** When the receipt expires, s since 1970. */
  exp: z.int().min(0),
  /** By the total of the sale (`riskClassOf`). */
  riskClass: z.int().min(0).max(3),
  /** Its products and tags: entries of 4 bytes in hex (`receiptEntry`). */
  goods: z
    .string()
    .regex(/^(?:[0-9a-f]{8})*$/)
    .max(GOODS_CHARACTERS),
})
export type SoldCode = z.infer<typeof SoldCode>

/**
 * Pieces that a sale sold without naming their tags (`passByProduct` of the policy). `count` above 0: so many were sold.
 * -1: `tag` has passed a gate for one of them. 0: the sale has no pieces any more, because goods came back.
 */
const SoldPiece = z
  .strictObject({
    sale: SaleKey,
    /** `productHash`; empty if `count` is 0. */
    product: z.string().regex(/^(?:[0-9a-f]{32})?$/),
    /** Key of the tag (`Replica.keysOf`); empty unless `count` is -1. */
    tag: z.string().max(220),
    count: z.int().min(-1).max(SOLD_PIECES_LIMIT),
    /** Until when a tag may pass for a sold piece, s since 1970. */
    exp: z.int().min(0),
  })
  .refine(({ product, tag, count }) => (product === '') === (count === 0) && (tag !== '') === (count === -1))
export type SoldPiece = z.infer<typeof SoldPiece>

/** `till+jwt`, signed by the agent that took the reports. It names tags and hashes of codes and products, and no prices or people. */
export const TillNotice = z.strictObject({
  /** Store id. */
  aud: z.string(),
  iat: z.int().min(0),
  exp: z.int().min(0),
  iss: z.string().min(1).max(128),
  tags: z
    .array(
      z.strictObject({
        name: z.string().min(2).max(220),
        status: z.enum(ITEM_STATUSES),
        rank: z.int().min(1).max(RANK_LIMIT),
        epoch: z.int().min(0),
        ver: z.int().min(0).nullable(),
        /** `saleKeyOf` the sale that made the tag paid, or whose end made it alarm. Of a sale or return itself: its content. */
        sale: SaleKey.nullable(),
      }),
    )
    .max(NOTICE_TAGS_LIMIT),
  codes: z.array(SoldCode).max(NOTICE_TAGS_LIMIT),
  pieces: z.array(SoldPiece).max(NOTICE_TAGS_LIMIT),
  /**
   * Numbers of the sender's changes: the notice has those after `after`, up to `last`. Absent from a notice that the
   * receipt home forwards.
   */
  changes: z.strictObject({ after: z.int().min(0), last: z.int().min(0) }).optional(),
})
export type TillNotice = z.infer<typeof TillNotice>

/** Leaves out what no receiver takes, so that it does not stop what comes after it. Returns the number of these, too. */
export function withoutUnfit<T extends Pick<TillNotice, 'tags' | 'codes' | 'pieces'>>(said: T): [T, number] {
  const { tags, codes, pieces } = TillNotice.shape
  const fit = {
    ...said,
    tags: said.tags.filter((tag) => tags.element.safeParse(tag).success),
    codes: said.codes.filter((code) => codes.element.safeParse(code).success),
    pieces: said.pieces.filter((piece) => pieces.element.safeParse(piece).success),
  }
  const count = (of: typeof said) => of.tags.length + of.codes.length + of.pieces.length
  return [fit, count(said) - count(fit)]
}
