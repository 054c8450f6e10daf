import type { Database as Connection } from 'better-sqlite3'
import type { Outcome, RightClass } from '../../../policy/vocabulary.ts'
import type { Claims } from '../claims/claims.ts'

/**
 *   open ── claimed ──▶ used ── confirmed ──▶ deleted: the receipt home already counts the right as used
 *     │                   └───── failed, unknown ──┐
 *     └── abandoned ───────────────────────────────┴─▶ reported to the receipt home until it acknowledges ──▶ deleted
 *
 * Requests of this agent to the receipt home. If the answer to a request is lost, the receipt home may have reserved
 * rights that this agent does not use. Only this agent can report that the rights are unused. Call all methods inside a
 * transaction of `commit.ts`.
 */
export interface StoredHomeRequests {
  /**
   * Returns the redemption id of the open request for `subject`. Stores a new request with `newId` if there is none.
   */
  begin(subject: string, newId: string, rights: RequestedRights): string
  /** Deletes a request that the receipt home refused. */
  remove(redemptionId: string): void
  /** True until a claim uses the request, or the agent abandons it. */
  isOpen(redemptionId: string): boolean
  /**
   * Links the request with the claim that uses it. `granted`: the units that the receipt home granted; absent if the
   * answer was lost.
   */
  noteClaim(redemptionId: string, claimId: string, granted?: readonly number[]): void
  /** Stores the outcome of the claim. */
  noteOutcome(claimId: string, outcome: Outcome): void
  /** Ids of requests without a claim. */
  openIds(): string[]
  /** Ends a request without a claim. The agent then reports the request to the receipt home as `failed`. */
  abandon(redemptionId: string): void
  /**
   * Due outcome reports, oldest first. Skips a `failed` report while another redemption of this ledger uses the right.
   */
  dueReports(): OutcomeReport[]
  /** True if reports are due or may become due. */
  readonly hasReports: boolean
  noteDelivered(redemptionId: string): void
  prune(before: number): void
}

interface RequestedRights {
  /** Agent id of the receipt home. */
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
  /** Home epoch of the request. */
  homeEpoch: number
  cti: string
  rightClass: RightClass
  /** The granted units, or all requested units if the answer was lost. */
  candidates: number[]
  exp: number
  outcome: 'failed' | 'unknown'
}

/** Maximum reports in one round. */
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
    // A later outcome report must name exactly the granted units.
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
