import { hash } from 'node:crypto'
import { z } from 'zod'
import { DOCUMENT_KINDS } from './documents/kinds.ts'
import { isStorableText, ProtectionEvent, UNSTORABLE_TEXT } from './protection-events.ts'
import { OUTCOMES, RIGHT_CLASSES } from './vocabulary.ts'

/**
 * What an agent's ledger tells the cloud: rows numbered without holes and chained by hash, so that a
 * lost, altered or doubled row shows. A row carries evidence (what was used up), an event, or both.
 */

const name = (max: number) => z.string().min(1).max(max).refine(isStorableText, UNSTORABLE_TEXT)
const Nonce = name(64)

export const Evidence = z.discriminatedUnion('kind', [
  /** Rights were used up: durable before any actuator moved. */
  z.strictObject({
    kind: z.literal('claim'),
    redemptionId: name(64),
    /** The token's nonce, or the receipt's identity in hex. */
    nonce: Nonce,
    source: z.enum(['token', 'receipt']),
    rightClass: z.enum(RIGHT_CLASSES),
    /** Which of the rights, 0-based: step − 1 of a token, the entry's number of a receipt. */
    ordinals: z.array(z.int().min(0).max(100_000)).min(1).max(100_000),
    deviceId: name(128),
    operatorId: z.string().max(128).refine(isStorableText, UNSTORABLE_TEXT).optional(),
    /** Of a token: which right of which receipt each ordinal stands for, should the cloud have forgotten the token (a restore). */
    receipt: z
      .strictObject({ cti: Nonce, ordinals: z.array(z.int().min(0).max(100_000)).min(1).max(100_000) })
      .optional(),
  }),
  /** What became of a claim. */
  z.strictObject({
    kind: z.literal('outcome'),
    redemptionId: name(64),
    outcome: z.enum(OUTCOMES),
  }),
  /** The agent will never honour this nonce. */
  z.strictObject({ kind: z.literal('void'), nonce: Nonce }),
  /** As the home of receipts: rights were given to another agent, which may be cut off from the cloud and claims them under the same id. */
  z.strictObject({
    kind: z.literal('delegated'),
    redemptionId: name(64),
    /** The receipt's identity in hex. */
    nonce: Nonce,
    rightClass: z.enum(RIGHT_CLASSES),
    ordinals: z.array(z.int().min(0).max(100_000)).min(1).max(100_000),
    agentId: name(128),
    /** The epoch in which the sender gave them as the receipt home. A row without it has no effect. */
    homeEpoch: z.int().min(0).optional(),
  }),
  /** The other agent reported to the receipt home that it did not use them, or that the outcome is unknown. */
  z.strictObject({
    kind: z.literal('delegation_returned'),
    redemptionId: name(64),
    outcome: z.enum(['failed', 'unknown']),
    /** The `ask+jwt` with which that agent reported the outcome. A row without it has no effect. */
    report: z
      .string()
      .min(1)
      .max(DOCUMENT_KINDS.homeRequest.maxLength)
      .refine(isStorableText, UNSTORABLE_TEXT)
      .optional(),
  }),
])
export type Evidence = z.infer<typeof Evidence>

/** What the hash covers besides the row before. */
export const JournalBody = z.strictObject({
  /** Trusted time, ms since 1970. */
  atMs: z.int().min(0),
  evidence: Evidence.optional(),
  event: ProtectionEvent.optional(),
})
export type JournalBody = z.infer<typeof JournalBody>

export const JournalRow = z.strictObject({
  seq: z.int().min(1),
  hash: z.string().length(43),
  body: JournalBody,
})
export type JournalRow = z.infer<typeof JournalRow>

/** A row of which only the place in its chain is known yet: what it says may be of a newer release, or of a device that tells nonsense. */
export const UncheckedRow = z.strictObject({ ...JournalRow.shape, body: z.record(z.string(), z.unknown()) })
export type UncheckedRow = z.infer<typeof UncheckedRow>

/** The hash before the first row of a ledger. */
export function genesisHash(ledgerId: string, generation: number): string {
  return hash('sha256', `untag/ledger/1\0${ledgerId}\0${generation}`, 'base64url')
}

/** The hash of a row: SHA-256 over the hash before it, its number and the JSON of its body as it is sent. */
export function rowHash(previous: string, seq: number, bodyJson: string): string {
  return hash('sha256', `${previous}\n${seq}\n${bodyJson}`, 'base64url')
}
