import type { ItemIdentifiers } from '../../../policy/item-identifiers.ts'
import type { DenyReason, RightClass, Outcome } from '../../../policy/vocabulary.ts'
import type { Evidence } from '../../../policy/journal.ts'
import type { Database as Connection } from 'better-sqlite3'
import type { Metadata } from '../file/watermark.ts'

interface LimitedRequest {
  /** Identity of the receipt, for an isolated claim. */
  nonce: string
  /** Set for isolated claims; `limit`: maximum receipts, from the policy. */
  isolated?: { limit: number } | undefined
  /** Set if an operator approved the grant. `limit`: maximum approvals per hour. */
  approval?: { operatorId: string; limit: number } | undefined
  nowMs: number
}

const HOUR_MS = 3_600_000
const ISOLATED_COUNT = 'isolated_count'
/** Metadata key: number of the journal row of the last isolated claim. */
const LAST_ISOLATED_ROW = 'isolated_seq'
/** Metadata key: number of isolated receipts whose claims the cloud has acknowledged. */
const ACKNOWLEDGED_COUNT = 'isolated_told'

/**
 * Limits of receipts that are honoured while isolated, and of approvals per operator and hour. A receipt counts once,
 * however many of its units are released. Receipts count until the cloud has acknowledged the journal row of the last
 * isolated claim. If the cloud may have lost that row, they count again.
 */
export class ClaimLimits {
  readonly #db: Connection
  readonly #metadata: Metadata
  readonly #approvals
  readonly #approve
  readonly #find
  readonly #add
  readonly #clear

  constructor(db: Connection, metadata: Metadata) {
    this.#db = db
    this.#metadata = metadata
    this.#approvals = db.prepare<[string, number], { n: number }>(
      'SELECT COUNT(*) AS n FROM approval WHERE operator_id = ? AND at_ms > ?',
    )
    this.#approve = db.prepare('INSERT INTO approval (operator_id, at_ms) VALUES (?, ?)')
    this.#find = db.prepare<[string], { cti: string }>('SELECT cti FROM isolated_receipt WHERE cti = ?')
    this.#add = db.prepare('INSERT OR IGNORE INTO isolated_receipt (cti) VALUES (?)')
    this.#clear = db.prepare('DELETE FROM isolated_receipt')
  }

  get isolatedCount(): number {
    return this.#read(ISOLATED_COUNT)
  }

  /** True if this receipt is counted already, so that its other units need no further count. */
  isCounted(cti: string): boolean {
    return this.#find.get(cti) !== undefined
  }

  isReached({ nonce, isolated, approval, nowMs }: LimitedRequest): boolean {
    if (isolated && !this.isCounted(nonce) && this.isolatedCount >= isolated.limit) return true
    return (
      approval !== undefined && (this.#approvals.get(approval.operatorId, nowMs - HOUR_MS)?.n ?? 0) >= approval.limit
    )
  }

  count({ nonce, isolated, approval, nowMs }: LimitedRequest): void {
    if (isolated && this.#add.run(nonce).changes > 0) this.#write(ISOLATED_COUNT, this.isolatedCount + 1)
    if (approval) this.#approve.run(approval.operatorId, nowMs)
  }

  /** Stores the number of the journal row of the last isolated claim. */
  noteRow(seq: number): void {
    this.#write(LAST_ISOLATED_ROW, seq)
  }

  /** Call it when the cloud has acknowledged all rows up to `seq`. */
  noteAcknowledged(seq: number): void {
    const count = this.isolatedCount
    if (count === 0 || seq < this.#read(LAST_ISOLATED_ROW)) return
    this.#write(ACKNOWLEDGED_COUNT, this.#read(ACKNOWLEDGED_COUNT) + count)
    this.#write(ISOLATED_COUNT, 0)
    this.#clear.run()
  }

  /** Call it when the cloud may lack rows after `seq`. */
  resetAcknowledged(seq: number): void {
    // Counts all acknowledged receipts again, because the agent does not know which ones the cloud has.
    if (this.#read(LAST_ISOLATED_ROW) > seq)
      this.#write(ISOLATED_COUNT, this.isolatedCount + this.#read(ACKNOWLEDGED_COUNT))
    this.#write(ACKNOWLEDGED_COUNT, 0)
  }

  prune(beforeS: number): void {
    this.#db.prepare('DELETE FROM approval WHERE at_ms < ?').run(beforeS * 1_000 - HOUR_MS)
  }

  rewindTo(toS: number): void {
    this.#db.prepare('DELETE FROM approval WHERE at_ms > ?').run(toS * 1_000)
  }

  #read(name: string): number {
    return Number(this.#metadata.get(name) ?? 0)
  }

  #write(name: string, value: number): void {
    this.#metadata.set(name, String(value))
  }
}

/** The rights that one redemption tries to use up. */
export interface ClaimRequest extends LimitedRequest {
  redemptionId: string
  /** `item`: an operator approved a named, paid tag. `override`: an operator opened a fixture without a right. */
  source: 'token' | 'receipt' | 'item' | 'override'
  /** The token's nonce, the receipt's identity in hex, or a random text. */
  nonce: string
  /** The tag that the request names. */
  tag?: ItemIdentifiers | undefined
  rightClass: RightClass
  /** Rights that the claim may use. The claim uses the first free right, or with `all` every free right. */
  candidates: readonly number[]
  all: boolean
  /** Expiry of the token or receipt, s since 1970. */
  exp: number
  deviceId: string
  /** For a token: the receipt rights that its steps use, in the order of the steps. */
  receipt?: { cti: string; ordinals: readonly number[] } | undefined
  /** Issue time of a token by the clock of the cloud, s. */
  issuedS?: number | undefined
  /** Last journal row that the cloud had when this agent requested the token. */
  reportedSeq?: number | undefined
  operatorId?: string | undefined
  /**
   * True: use no right of a unit whose goods have left. Who shows a receipt that names no tags, afterwards, has other
   * goods.
   */
  unlessLeft?: boolean | undefined
  /** Id of the home request. Equal to `redemptionId` if the receipt home granted the rights. */
  homeRequestId?: string | undefined
  /** Called inside the transaction. Returns false if the decision is no longer valid, so that staff must decide. */
  isStillValid?: (() => boolean) | undefined
}

/**
 * Prefix of the redemption ids of overrides. The journal rows of overrides have no evidence, because they use up no
 * right.
 */
export const OVERRIDE_PREFIX = 'ovr'

export type ClaimResult = { ok: true; ordinals: number[]; remaining: number } | { ok: false; reason: DenyReason }

/** Returns the evidence of a claim for its journal row. An override has no evidence, because it uses no right. */
export function claimEvidence(
  { redemptionId, nonce, source, rightClass, deviceId, operatorId, receipt, tag }: ClaimRequest,
  ordinals: number[],
): { evidence?: Evidence } {
  if (source === 'override') return {}
  return {
    evidence: {
      kind: 'claim',
      redemptionId,
      nonce,
      source,
      rightClass,
      ordinals,
      deviceId,
      ...(operatorId !== undefined && { operatorId }),
      ...receiptEvidence(receipt, ordinals),
      ...(source === 'item' && { item: tagOf(tag) }),
    },
  }
}

/** Returns the evidence of an outcome. An override has no evidence, because it used no right. */
export function outcomeEvidence(redemptionId: string, outcome: Outcome): { evidence?: Evidence } {
  return redemptionId.startsWith(`${OVERRIDE_PREFIX}_`) ? {} : { evidence: { kind: 'outcome', redemptionId, outcome } }
}

/** The identifiers of a tag. An item line is no tag. */
function tagOf({ itemLineId: _line, ...tag }: ItemIdentifiers = {}): Omit<ItemIdentifiers, 'itemLineId'> {
  return tag
}

/**
 * Returns the receipt rights that a token's claim used. A cloud that lost the token in a restore needs these rights.
 */
function receiptEvidence(
  receipt: ClaimRequest['receipt'],
  claimed: readonly number[],
): { receipt?: { cti: string; ordinals: number[] } } {
  const ordinals = claimed.flatMap((step) => receipt?.ordinals[step] ?? [])
  return receipt && ordinals.length > 0 && ordinals.length === claimed.length
    ? { receipt: { cti: receipt.cti, ordinals } }
    : {}
}
