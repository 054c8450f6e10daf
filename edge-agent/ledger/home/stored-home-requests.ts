import type { Database as Connection } from 'better-sqlite3'
import type { Outcome, RightClass } from '../../../policy/vocabulary.ts'
import type { Claims } from '../claims/claims.ts'

/**
 *   asked ── claimed ──▶ used ── confirmed ──▶ (gone: the home has it for used)
 *     │                   └───── failed, unknown ──┐
 *     └── nobody goes on with it ──────────────────┴─▶ told until the home has heard ──▶ (gone)
 *
 * Requests of this agent to the receipt home. An answer may get lost: the home then reserves a right that nobody uses, and only this
 * ledger can report that. Call all methods inside a transaction of `commit.ts`.
 */
export interface StoredHomeRequests {
  /** Returns the redemption id of the request. An open request for the same subject keeps its id. */
  begin(subject: string, newId: string, rights: RequestedRights): string
  /** Deletes a request that the home refused. */
  remove(redemptionId: string): void
  /** True until a claim uses the request. */
  isOpen(redemptionId: string): boolean
  /** The rights are used under this claim: those that the home has `granted` under this id, or, where its answer could not be heard, whichever. */
  noteClaim(redemptionId: string, claimId: string, granted?: readonly number[]): void
  /** What became of the claim. */
  noteOutcome(claimId: string, outcome: Outcome): void
  /** Ids of requests without a claim. */
  openIds(): string[]
  /** Ends a request without a claim. The agent reports it to the home as `failed`. */
  abandon(redemptionId: string): void
  /** Outcome reports that are due, oldest first. Skips rights that another redemption of this ledger uses. */
  dueReports(): OutcomeReport[]
  /** True if reports are due or may become due. */
  readonly hasReports: boolean
  noteDelivered(redemptionId: string): void
  prune(before: number): void
}

export interface RequestedRights {
  /** The agent that is asked. */
  home: string
  homeEpoch: number
  cti: string
  rightClass: RightClass
  candidates: readonly number[]
  exp: number
}

/** Report to the receipt home. `failed`: the right is unused. `unknown`: the device's outcome is unknown. */
export interface OutcomeReport {
  redemptionId: string
  home: string
  /** The epoch of the home that was asked. */
  homeEpoch: number
  cti: string
  rightClass: RightClass
  /** The units that the home gave, or all that it was asked for if its answer was lost. */
  candidates: number[]
  exp: number
  outcome: 'failed' | 'unknown'
}

/** Reports in one round. */
const REPORTS_LIMIT = 1_000

/** Opens the requests in this ledger's tables. */
export function openStoredHomeRequests(db: Connection, claims: Pick<Claims, 'isFreeHere'>): StoredHomeRequests {
  const openOf = db.prepare<[string], { redemption_id: string }>(
    "SELECT redemption_id FROM home_ask WHERE subject = ? AND state = 'asked'",
  )
  const add = db.prepare(
    "INSERT INTO home_ask (redemption_id, subject, home, home_epoch, cti, right_class, candidates, exp, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'asked')",
  )
  const open = db.prepare<[], { redemption_id: string }>("SELECT redemption_id FROM home_ask WHERE state = 'asked'")
  const one = db.prepare<[string], { state: string }>('SELECT state FROM home_ask WHERE redemption_id = ?')
  const use = db.prepare(
    "UPDATE home_ask SET state = 'used', claim_id = ?, candidates = COALESCE(?, candidates) WHERE redemption_id = ? AND state = 'asked'",
  )
  const setOutcome = db.prepare("UPDATE home_ask SET state = ? WHERE claim_id = ? AND state = 'used'")
  const endOfClaim = db.prepare('DELETE FROM home_ask WHERE claim_id = ?')
  const setUnused = db.prepare("UPDATE home_ask SET state = 'failed' WHERE redemption_id = ? AND state = 'asked'")
  const end = db.prepare('DELETE FROM home_ask WHERE redemption_id = ?')
  const due = db.prepare<[number], Omit<OutcomeReport, 'candidates'> & { candidates: string }>(
    "SELECT redemption_id AS redemptionId, home, home_epoch AS homeEpoch, cti, right_class AS rightClass, candidates, exp, state AS outcome FROM home_ask WHERE state IN ('failed', 'unknown') ORDER BY redemption_id LIMIT ?",
  )
  const waiting = db.prepare<[], { n: number }>("SELECT COUNT(*) AS n FROM home_ask WHERE state <> 'asked'")
  return {
    begin(subject, newId, { home, homeEpoch, cti, rightClass, candidates, exp }) {
      const known = openOf.get(subject)
      if (known) return known.redemption_id
      add.run(newId, subject, home, homeEpoch, cti, rightClass, JSON.stringify(candidates), exp)
      return newId
    },
    remove: (redemptionId) => void end.run(redemptionId),
    isOpen: (redemptionId) => one.get(redemptionId)?.state === 'asked',
    // What the home gave under other ids does not keep this report back.
    noteClaim: (redemptionId, claimId, granted) =>
      void use.run(claimId, granted === undefined ? null : JSON.stringify(granted), redemptionId),
    noteOutcome(claimId, outcome) {
      if (outcome === 'confirmed') endOfClaim.run(claimId)
      else setOutcome.run(outcome, claimId)
    },
    openIds: () => open.all().map(({ redemption_id: id }) => id),
    abandon: (redemptionId) => void setUnused.run(redemptionId),
    dueReports: () =>
      due.all(REPORTS_LIMIT).flatMap((row) => {
        const report: OutcomeReport = { ...row, candidates: JSON.parse(row.candidates) as number[] }
        const isFree =
          report.outcome === 'unknown' ||
          report.candidates.every((ordinal) => claims.isFreeHere(report.cti, report.rightClass, ordinal))
        return isFree ? [report] : []
      }),
    get hasReports() {
      return (waiting.get()?.n ?? 0) > 0
    },
    noteDelivered: (redemptionId) => void end.run(redemptionId),
    prune: (before) => void db.prepare('DELETE FROM home_ask WHERE exp <= ?').run(before),
  }
}
