import { hash } from 'node:crypto'
import { z } from 'zod'
import { DOCUMENT_KINDS } from './documents/kinds.ts'
import { KeptReturn, KeptSale, SALE_TAGS_LIMIT, SaleNames } from './till-sale.ts'
import { ProtectionEvent } from './protection-events.ts'
import { UNSTORABLE_TEXT, unstorableField } from './untrusted-json.ts'
import { ALARM_STEPS, OUTCOMES, RIGHT_CLASSES } from './vocabulary.ts'

/**
 * Rows that an agent sends to the cloud. The rows are numbered without gaps and chained by hash, so the cloud detects a
 * lost, changed or repeated row. A row contains evidence, an event, or both.
 */

const name = (max: number) => z.string().min(1).max(max)
const Nonce = name(64)

/** Maximum number of units of a purchase. */
export const UNITS_LIMIT = 2_000

/** Maximum value of recovered goods: the highest amount of the API, cents. */
export const MAX_RECOVERED_CENT = 100_000_000

/** Numbers of rights, each at most once. */
export const Ordinals = z
  .array(z.int().min(0).max(100_000))
  .min(1)
  .max(UNITS_LIMIT)
  .refine((ordinals) => new Set(ordinals).size === ordinals.length, 'names a right twice')

/** True: the agent had no trusted time, so that `atMs` is only the earliest time at which it can have been. */
const UNTIMED = z.literal(true).optional()

const Claim = z
  .strictObject({
    kind: z.literal('claim'),
    redemptionId: name(64),
    /** Nonce of the token, identity of the receipt in hex, or a random text for an item. */
    nonce: Nonce,
    /** `item`: an operator approved the release of a tag without token or receipt. */
    source: z.enum(['token', 'receipt', 'item']),
    rightClass: z.enum(RIGHT_CLASSES),
    /** Used rights, numbered from 0: step − 1 of a token, or entry number of a receipt; `[0]` for an item. */
    ordinals: Ordinals,
    deviceId: name(128),
    operatorId: z.string().max(128).optional(),
    /** Only for a token: the receipt right of each ordinal, because a restored cloud may not know the token. */
    receipt: z.strictObject({ cti: Nonce, ordinals: Ordinals }).optional(),
    /** Only for an item: the tag that the device or the operator read. */
    item: z
      .strictObject({ epc: name(128).optional(), tagUid: name(128).optional(), tagId: name(128).optional() })
      .optional(),
  })
  .refine(({ source, ordinals }) => source !== 'item' || ordinals.length === 1, 'an item has one right')

export const Evidence = z.discriminatedUnion('kind', [
  /** A redemption used rights. The row is durable before the device moves. */
  Claim,
  /** Outcome of a claim. */
  z.strictObject({
    kind: z.literal('outcome'),
    redemptionId: name(64),
    outcome: z.enum(OUTCOMES),
  }),
  /** The agent voided the token. */
  z.strictObject({ kind: z.literal('void'), nonce: Nonce }),
  /** The receipt home delegates rights to another agent. That agent claims the rights under the same redemption id. */
  z.strictObject({
    kind: z.literal('delegated'),
    redemptionId: name(64),
    /** Identity of the receipt in hex. */
    nonce: Nonce,
    rightClass: z.enum(RIGHT_CLASSES),
    ordinals: Ordinals,
    agentId: name(128),
    /** `homeEpoch` in which the sender is the receipt home. A row without `homeEpoch` has no effect. */
    homeEpoch: z.int().min(0).optional(),
  }),
  /** The other agent reported `failed` or `unknown` to the receipt home. */
  z.strictObject({
    kind: z.literal('delegation_returned'),
    redemptionId: name(64),
    outcome: z.enum(['failed', 'unknown']),
    /** The signed outcome report of that agent (`ask+jwt`). A row without this report has no effect. */
    report: name(DOCUMENT_KINDS.homeRequest.maxLength).optional(),
  }),
  /** A till sold. `items`: epoch and number of the item sequence that the agent knew. */
  z.strictObject({
    kind: z.literal('sale'),
    sale: KeptSale,
    items: z.tuple([z.int().min(0), z.int().min(0)]),
    /** Tags (`saleTagHash`) of goods that came back at an agent before, which the cloud may not know yet. */
    resold: z
      .array(z.string().regex(/^[0-9a-f]{8}$/))
      .min(1)
      .max(SALE_TAGS_LIMIT)
      .optional(),
    /** When this agent stored that another agent announced the sale, ms: the till repeats it here. */
    announcedMs: z.int().min(0).optional(),
    untimed: UNTIMED,
    /** By a program without the right `returns`: its lines take no tags back, and its void ends only an open sale. */
    withoutReturns: z.literal(true).optional(),
  }),
  z.strictObject({ kind: z.literal('sale_void'), ...SaleNames, reason: name(300).optional() }),
  z.strictObject({
    kind: z.literal('sale_return'),
    return: KeptReturn,
    untimed: UNTIMED,
    /** `saleKeyOf` the sale, if the return names it by its receipt or code. */
    sale: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .optional(),
  }),
  /** A gate let a tag pass for a piece that a till sold without naming its tag. */
  z.strictObject({
    kind: z.literal('sale_piece'),
    /** `saleKeyOf`. */
    sale: z.string().regex(/^[0-9a-f]{32}$/),
    epc: name(128),
  }),
  /** An operator acknowledged or disposed of an alarm at a gate of this agent. */
  z.strictObject({
    kind: z.literal('alarm_handled'),
    /** Event of the alarm. */
    eventId: name(128),
    step: z.enum(ALARM_STEPS),
    operatorId: name(128),
    /** Value of recovered goods. */
    recoveredCent: z.int().min(0).max(MAX_RECOVERED_CENT).optional(),
  }),
])
export type Evidence = z.infer<typeof Evidence>
/** What a till reported to an agent, and what a gate let pass because of it. */
export type TillEvidence = Extract<Evidence, { kind: 'sale' | 'sale_void' | 'sale_return' | 'sale_piece' }>
export type SalePiece = Extract<Evidence, { kind: 'sale_piece' }>
export type AlarmHandled = Extract<Evidence, { kind: 'alarm_handled' }>

/**
 * Maximum bytes of a sale, void or return in a row. Its row, with hashes of 2,000 resold tags of 11 bytes each, must fit
 * alone into a batch: 192 kB before base64url. 500 lines with names of 120 letters, codes and a tag each have 140 kB.
 */
export const REPORT_BYTES_LIMIT = 160 * 1_024

/** Content of a row. The row hash covers this content, the row number and the previous hash. */
export const JournalBody = z
  .strictObject({
    /** Trusted time, ms since 1970. */
    atMs: z.int().min(0),
    evidence: Evidence.optional(),
    event: ProtectionEvent.optional(),
  })
  // The texts of a signed batch pass no other check, and one that cannot be stored would stop all later rows.
  .superRefine((body, context) => {
    const path = unstorableField(body)
    if (path !== undefined) context.addIssue({ code: 'custom', path, message: UNSTORABLE_TEXT })
  })
export type JournalBody = z.infer<typeof JournalBody>

export const JournalRow = z.strictObject({
  seq: z.int().min(1),
  hash: z.string().length(43),
  body: JournalBody,
})
export type JournalRow = z.infer<typeof JournalRow>

/** A row whose body is not validated yet, because a newer release or a faulty agent may have written the row. */
export const UncheckedRow = z.strictObject({ ...JournalRow.shape, body: z.record(z.string(), z.unknown()) })
export type UncheckedRow = z.infer<typeof UncheckedRow>

/** Hash before the first row of a ledger. */
export function genesisHash(ledgerId: string, generation: number): string {
  return hash('sha256', `untag/ledger/1\0${ledgerId}\0${generation}`, 'base64url')
}

/** SHA-256 of the previous hash, the number and the JSON of the body as sent. */
export function rowHash(previous: string, seq: number, bodyJson: string): string {
  return hash('sha256', `${previous}\n${seq}\n${bodyJson}`, 'base64url')
}
