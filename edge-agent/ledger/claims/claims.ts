import type { Database as Connection } from 'better-sqlite3'
import type { DenyReason, Outcome, RightClass } from '../../../policy/vocabulary.ts'
import { openUnknownUses, type Answering, type UnknownUses } from './unknown-uses.ts'

/**
 *   claimed ──▶ commanded ──▶ confirmed | failed | unknown
 *
 * Using rights up, each at most once, durable before anything moves (P1, P2). Everything here runs
 * inside a transaction of `commit.ts` and checks before it writes.
 */
export interface ClaimRequest {
  redemptionId: string
  /** `override`: an operator's word, for which there is neither. */
  source: 'token' | 'receipt' | 'override'
  /** The token's nonce, the receipt's identity in hex, or a random text. */
  nonce: string
  rightClass: RightClass
  /** The rights that may be used: the lowest free one is taken, or all free ones with `all`. */
  candidates: readonly number[]
  all: boolean
  /** Seconds since 1970: end of the token or receipt. */
  exp: number
  deviceId: string
  /** For a token: which rights of a receipt its steps use up. */
  receipt?: { cti: string; ordinals: readonly number[] } | undefined
  /** For a token: when the cloud gave it, s by its clock. */
  issuedS?: number | undefined
  /** For one that was fetched for this: up to which row the cloud had this ledger when it was asked. */
  heardSeq?: number | undefined
  /** Claims without word from the home are counted; `limit` is what the policy allows. */
  isolated?: { limit: number } | undefined
  /** The grant rests on this operator's word; `limit` per hour. */
  approval?: { operatorId: string; limit: number } | undefined
  operatorId?: string | undefined
  /** What was asked of the home for this. When it has given the rights, that is the redemption id. */
  homeAsk?: string | undefined
  /** Whether what it was decided by is still so; asked as it is used up. */
  holds?: (() => boolean) | undefined
  nowMs: number
}

/** How ids of overrides begin. Their rows carry no evidence: no authorization of the cloud was used up (P2, "recorded override"). */
export const OVERRIDE_ID = 'ovr'

export type Claimed = { ok: true; ordinals: number[]; remaining: number } | { ok: false; reason: DenyReason }

/** In the place of a redemption id: what the cloud told of others. */
const BY_OTHERS = ''

/** After so many failed tries the next one is for staff. */
const TRIES = 2
const HOUR_MS = 3_600_000
/** A receipt that a token was given for was there before it, so it ends at most so long after the token, seconds. */
const RECEIPT_LIFE = 24 * 3_600

interface ClaimRow {
  redemption_id: string
  attempt: number
  state: string
}

export interface OpenClaim {
  redemption_id: string
  nonce: string
  device_id: string
}

export interface Claims {
  readonly unknown: UnknownUses
  claim(request: ClaimRequest): Claimed
  markCommanded(redemptionId: string): void
  /** Writes what became of a claim; false when it was settled already. */
  settle(redemptionId: string, outcome: Outcome): boolean
  /** Claims that a crash left without outcome. */
  open(): OpenClaim[]
  /** Whether the right of a receipt is free here; `mayGoOn`: uses besides that hold nobody up. */
  isFree(
    cti: string,
    rightClass: RightClass,
    ordinal: number,
    nowMs: number,
    operator: boolean,
    mayGoOn?: (redemptionId: string) => boolean,
  ): boolean
  /** Whether it is free but for what the cloud told of others: nothing here has used it, or staff may go on. */
  isFreeHere(cti: string, rightClass: RightClass, ordinal: number): boolean
  /** Steps of a token that were claimed. */
  claimedSteps(nonce: string): number
  /** Never to be honoured: false when it was claimed already. */
  deny(subject: string, until: number): void
  isDenied(subject: string): boolean
  /** Rights of a receipt that were used up elsewhere. */
  useElsewhere(cti: string, rightClass: RightClass, ordinals: readonly number[], until: number): void
  /** A token's steps stand for these rights of a receipt, in their order: whichever of the two is used, the other is used up with it. */
  standsFor(
    nonce: string,
    rights: { cti: string; rightClass: RightClass; ordinals: readonly number[]; until: number },
  ): void
  /** The rights that a token stands for, as far as the cloud has told. */
  receiptOf(nonce: string): ClaimRequest['receipt']
  readonly isolatedCount: number
  /** Receipts that ended at or before this are never honoured again, seconds since 1970. */
  readonly floor: number
  /** The cloud has everything up to this row, as it said at this time (s): isolated claims up to it no longer count. */
  acknowledged(seq: number, atS?: number): void
  /** Whoever acknowledged what follows on row `seq` may have been nobody: isolated claims count until the cloud says again that it has them. Call it inside a transaction. */
  doubtAcknowledged(seq: number): void
  /** Notes which journal row holds an isolated claim. */
  countedIn(seq: number): void
  /** Forgets what has ended before this time (seconds); nothing that ends at or before it is honoured again, whatever the clock says. */
  prune(before: number): void
  /** It is no later than this, s: what was forgotten by a wrong time may not be honoured again. */
  setBack(toS: number): void
}

/** Claims in this ledger's tables. */
export function openClaims(db: Connection): Claims {
  const latest = db.prepare<[string, string, number], ClaimRow>(
    'SELECT redemption_id, attempt, state FROM claim WHERE nonce = ? AND right_class = ? AND ordinal = ? ORDER BY attempt DESC LIMIT 1',
  )
  const insert = db.prepare(
    'INSERT INTO claim (nonce, right_class, ordinal, attempt, redemption_id, device_id, state, exp, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  )
  const setState = db.prepare(
    "UPDATE claim SET state = ? WHERE redemption_id = ? AND state IN ('claimed', 'commanded')",
  )
  const unsettled = db.prepare<[], OpenClaim>(
    "SELECT DISTINCT redemption_id, nonce, device_id FROM claim WHERE state IN ('claimed', 'commanded')",
  )
  const steps = db.prepare<[string], { n: number }>('SELECT COUNT(*) AS n FROM claim WHERE nonce = ?')
  const usesOf = db.prepare<[string, string, number], { until_s: number; redemption_id: string }>(
    'SELECT until_s, redemption_id FROM used_right WHERE cti = ? AND right_class = ? AND ordinal = ?',
  )
  const useRight = db.prepare(
    'INSERT INTO used_right (cti, right_class, ordinal, until_s, redemption_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT (cti, right_class, ordinal, redemption_id) DO UPDATE SET until_s = MAX(until_s, excluded.until_s)',
  )
  const freeRights = db.prepare('DELETE FROM used_right WHERE redemption_id = ?')
  const bind = db.prepare(
    'INSERT INTO token_right (nonce, step, cti, ordinal, until_s) VALUES (?, ?, ?, ?, ?) ON CONFLICT (nonce, step) DO NOTHING',
  )
  const boundTo = db.prepare<[string], { cti: string; ordinal: number }>(
    'SELECT cti, ordinal FROM token_right WHERE nonce = ? ORDER BY step',
  )
  const claimOf = db.prepare<[string, string, number], { redemption_id: string; state: string }>(
    'SELECT redemption_id, state FROM claim WHERE nonce = ? AND right_class = ? AND ordinal = ? ORDER BY attempt DESC LIMIT 1',
  )
  const denied = db.prepare<[string], { until_s: number }>('SELECT until_s FROM denied WHERE subject = ?')
  const addDenied = db.prepare(
    'INSERT INTO denied (subject, until_s) VALUES (?, ?) ON CONFLICT (subject) DO UPDATE SET until_s = MAX(until_s, excluded.until_s)',
  )
  const approvals = db.prepare<[string, number], { n: number }>(
    'SELECT COUNT(*) AS n FROM approval WHERE operator_id = ? AND at_ms > ?',
  )
  const approve = db.prepare('INSERT INTO approval (operator_id, at_ms) VALUES (?, ?)')
  const readMark = db.prepare<[string], { value: string }>('SELECT value FROM mark WHERE name = ?')
  const writeMark = db.prepare(
    'INSERT INTO mark (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )

  const unknown = openUnknownUses(db)

  const mark = (name: string) => Number(readMark.get(name)?.value ?? 0)

  /** The attempt under which a right may be claimed now, or undefined. */
  function freeAttempt(
    nonce: string,
    rightClass: RightClass,
    ordinal: number,
    by: Answering,
    isReceipt: boolean,
  ): number | undefined {
    const row = latest.get(nonce, rightClass, ordinal)
    if (!row) return 0
    // A token's step is used up by any claim; a receipt's right is free again after a failure.
    const again =
      isReceipt &&
      (row.state === 'failed'
        ? by.operator || row.attempt + 1 < TRIES
        : row.state === 'unknown' && unknown.isAnsweredFor(row.redemption_id, by))
    return again ? row.attempt + 1 : undefined
  }

  function isUsedElsewhere(cti: string, rightClass: RightClass, ordinal: number, nowMs: number): boolean {
    return usesOf
      .all(cti, rightClass, ordinal)
      .some((use) => use.redemption_id === BY_OTHERS && use.until_s * 1_000 > nowMs)
  }

  /** Whether nothing here has used a right of a receipt up: no token, no other agent by our leave, not the receipt. Each use by itself, so that one that is unknown hides no other. */
  function isFreeHere(
    cti: string,
    rightClass: RightClass,
    ordinal: number,
    by: Answering,
    mayGoOn: (redemptionId: string) => boolean = () => false,
  ): boolean {
    const isUsed = usesOf
      .all(cti, rightClass, ordinal)
      .some(({ redemption_id: id }) => id !== BY_OTHERS && !unknown.isAnsweredFor(id, by) && !mayGoOn(id))
    return !isUsed && freeAttempt(cti, rightClass, ordinal, by, true) !== undefined
  }

  /**
   * Whether a token's step would use up a right of a receipt that was used up here. What the cloud told of
   * others does not count: it knew that when it gave the token.
   */
  function receiptAllows(request: ClaimRequest, by: Answering, step: number): boolean {
    const ordinal = request.receipt?.ordinals[step]
    if (!request.receipt || ordinal === undefined) return true
    return isFreeHere(request.receipt.cti, request.rightClass, ordinal, by)
  }

  const receiptFloor = () => Math.max(mark('floor'), mark('receipt_floor'))

  const isPruned = ({ exp, source }: ClaimRequest) => exp <= (source === 'receipt' ? receiptFloor() : mark('floor'))
  const isRevoked = ({ nonce, receipt }: ClaimRequest) =>
    denied.get(nonce) !== undefined || (receipt !== undefined && denied.get(receipt.cti) !== undefined)

  function overLimit({ isolated, approval, nowMs }: ClaimRequest): boolean {
    if (isolated && mark('isolated_count') >= isolated.limit) return true
    return approval !== undefined && (approvals.get(approval.operatorId, nowMs - HOUR_MS)?.n ?? 0) >= approval.limit
  }

  return {
    unknown,
    claim(request) {
      if (isPruned(request)) return { ok: false, reason: 'token_expired' }
      const isReceipt = request.source === 'receipt'
      const by = { operator: request.operatorId !== undefined, issuedS: request.issuedS, heardSeq: request.heardSeq }
      const free = request.candidates.flatMap((ordinal) => {
        const { nonce, rightClass, nowMs } = request
        if (
          isReceipt &&
          (isUsedElsewhere(nonce, rightClass, ordinal, nowMs) || !isFreeHere(nonce, rightClass, ordinal, by))
        )
          return []
        const attempt = freeAttempt(nonce, rightClass, ordinal, by, isReceipt)
        return attempt === undefined || !receiptAllows(request, by, ordinal) ? [] : [{ ordinal, attempt }]
      })
      const taken = request.all ? free : free.slice(0, 1)
      // Before revocation: the agent voids a token that the cloud issued for a right which is used here already.
      if (taken.length === 0) return { ok: false, reason: 'already_redeemed' }
      if (isRevoked(request)) return { ok: false, reason: 'token_revoked' }
      if (overLimit(request)) return { ok: false, reason: 'limit_exceeded' }
      for (const { ordinal, attempt } of taken) {
        const { nonce, rightClass, redemptionId, deviceId, exp, nowMs } = request
        insert.run(nonce, rightClass, ordinal, attempt, redemptionId, deviceId, 'claimed', exp, nowMs)
        const right = request.receipt?.ordinals[ordinal]
        if (request.receipt && right !== undefined)
          useRight.run(request.receipt.cti, rightClass, right, exp + RECEIPT_LIFE, redemptionId)
      }
      if (request.isolated) writeMark.run('isolated_count', String(mark('isolated_count') + 1))
      if (request.approval) approve.run(request.approval.operatorId, request.nowMs)
      return { ok: true, ordinals: taken.map((t) => t.ordinal), remaining: free.length - taken.length }
    },
    markCommanded: (redemptionId) => void setState.run('commanded', redemptionId),
    settle(redemptionId, outcome) {
      const settled = setState.run(outcome, redemptionId).changes > 0
      // What failed has used nothing up: the unit may be tried again.
      if (settled && outcome === 'failed') freeRights.run(redemptionId)
      return settled
    },
    open: () => unsettled.all(),
    isFree: (cti, rightClass, ordinal, nowMs, operator, mayGoOn) =>
      !isUsedElsewhere(cti, rightClass, ordinal, nowMs) && isFreeHere(cti, rightClass, ordinal, { operator }, mayGoOn),
    isFreeHere: (cti, rightClass, ordinal) => isFreeHere(cti, rightClass, ordinal, { operator: true }),
    claimedSteps: (nonce) => steps.get(nonce)?.n ?? 0,
    deny: (subject, until) => void addDenied.run(subject, until),
    isDenied: (subject) => denied.get(subject) !== undefined,
    useElsewhere(cti, rightClass, ordinals, until) {
      for (const ordinal of ordinals) useRight.run(cti, rightClass, ordinal, until, BY_OTHERS)
    },
    standsFor(nonce, { cti, rightClass, ordinals, until }) {
      for (const [step, ordinal] of ordinals.entries()) {
        bind.run(nonce, step, cti, ordinal, until)
        // It may have been claimed before this came.
        const claim = claimOf.get(nonce, rightClass, step)
        if (claim && claim.state !== 'failed')
          useRight.run(cti, rightClass, ordinal, until + RECEIPT_LIFE, claim.redemption_id)
      }
    },
    receiptOf(nonce) {
      const rows = boundTo.all(nonce)
      const [first] = rows
      return first && { cti: first.cti, ordinals: rows.map(({ ordinal }) => ordinal) }
    },
    get isolatedCount() {
      return mark('isolated_count')
    },
    get floor() {
      return receiptFloor()
    },
    countedIn: (seq) => void writeMark.run('isolated_seq', String(seq)),
    acknowledged(seq, atS) {
      if (atS !== undefined) unknown.told(seq, atS)
      const count = mark('isolated_count')
      if (count === 0 || seq < mark('isolated_seq')) return
      writeMark.run('isolated_told', String(mark('isolated_told') + count))
      writeMark.run('isolated_count', '0')
    },
    doubtAcknowledged(seq) {
      // All that ever were: how many of them the cloud has heard of nobody here knows.
      if (mark('isolated_seq') > seq)
        writeMark.run('isolated_count', String(mark('isolated_count') + mark('isolated_told')))
      writeMark.run('isolated_told', '0')
    },
    prune(before) {
      if (before <= mark('floor')) return
      writeMark.run('floor', String(before))
      db.prepare("DELETE FROM claim WHERE exp <= ? AND state NOT IN ('claimed', 'commanded')").run(before)
      for (const table of ['denied', 'used_right', 'token_right'])
        db.prepare(`DELETE FROM ${table} WHERE until_s <= ?`).run(before)
      db.prepare('DELETE FROM approval WHERE at_ms < ?').run(before * 1_000 - HOUR_MS)
      unknown.prune()
    },
    setBack(toS) {
      db.prepare('DELETE FROM approval WHERE at_ms > ?').run(toS * 1_000)
      unknown.setBack(toS)
      if (mark('floor') <= toS) return
      // Uses and denials of receipts that live are among what was forgotten. Tokens of before count no more anyway.
      writeMark.run('receipt_floor', String(toS + RECEIPT_LIFE))
      writeMark.run('floor', String(toS))
    },
  }
}
