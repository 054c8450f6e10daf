import type { Database as Connection } from 'better-sqlite3'

/**
 * Uses of which nobody here knows whether anything moved. They count as uses until somebody answers for them: staff who stand
 * there, or the cloud, which had been told and so has asked for staff, or has heard from them. One row for each, kept as long as the
 * use itself. Everything runs inside a transaction of `commit.ts`.
 */
export interface UnresolvedRedemptions {
  /** Row `seq` of the journal tells so; null: another agent has, and what the cloud knows of it is not known here. */
  add(redemptionId: string, seq: number | null): void
  /** At this time (s, by its own clock) the cloud has said that it has everything up to this row. */
  noteAcknowledged(seq: number, atS: number): void
  isResolvedFor(redemptionId: string, by: Resolver): boolean
  /** The cloud cannot have said anything later than this, s. */
  rewindTo(toS: number): void
  /** Forgets those whose use is forgotten. */
  prune(): void
}

/** Who answers for it. */
export interface Resolver {
  operator: boolean
  /** When the cloud gave the token that is to be used now, s by its own clock. */
  issuedS?: number | undefined
  /** The row up to which it had this ledger when it was asked for that token; undefined: somebody else asked. */
  reportedSeq?: number | undefined
}

/** Two processes of a cloud may differ by so much, s; whole seconds hide as much again. */
const CLOCKS_DIFFER_S = 1

/** The uses in this ledger's table. */
export function openUnresolvedRedemptions(db: Connection): UnresolvedRedemptions {
  const add = db.prepare('INSERT OR IGNORE INTO unknown_use (redemption_id, seq) VALUES (?, ?)')
  const find = db.prepare<[string], { seq: number | null; told_s: number | null }>(
    'SELECT seq, told_s FROM unknown_use WHERE redemption_id = ?',
  )
  const noteTold = db.prepare('UPDATE unknown_use SET told_s = ? WHERE seq <= ? AND told_s IS NULL')
  const forget = db.prepare(
    'DELETE FROM unknown_use WHERE redemption_id NOT IN (SELECT redemption_id FROM claim UNION SELECT redemption_id FROM used_right UNION SELECT redemption_id FROM home_grant)',
  )
  return {
    add: (redemptionId, seq) => void add.run(redemptionId, seq),
    noteAcknowledged: (seq, atS) => void noteTold.run(atS, seq),
    isResolvedFor(redemptionId, { operator, issuedS = 0, reportedSeq = -1 }) {
      const use = find.get(redemptionId)
      if (!use) return false
      if (operator) return true
      const { seq, told_s: toldS } = use
      if (seq === null || toldS === null) return false
      // What it was asked for with that known may still be a token of before, given out again: of the same second at most.
      return seq <= reportedSeq ? issuedS >= toldS : issuedS > toldS + CLOCKS_DIFFER_S
    },
    rewindTo: (toS) => void db.prepare('UPDATE unknown_use SET told_s = NULL WHERE told_s > ?').run(toS),
    prune: () => void forget.run(),
  }
}
