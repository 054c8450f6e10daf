import type { Database as Connection } from 'better-sqlite3'

/**
 * Uses of which nobody here knows whether anything moved. They count as uses until somebody answers for them: staff who stand
 * there, or the cloud, which had been told and so has asked for staff, or has heard from them. One row for each, kept as long as the
 * use itself. Everything runs inside a transaction of `commit.ts`.
 */
export interface UnknownUses {
  /** Row `seq` of the journal tells so; null: another agent has, and what the cloud knows of it is not known here. */
  note(redemptionId: string, seq: number | null): void
  /** At this time (s, by its own clock) the cloud has said that it has everything up to this row. */
  told(seq: number, atS: number): void
  isAnsweredFor(redemptionId: string, by: Answering): boolean
  /** The cloud cannot have said anything later than this, s. */
  setBack(toS: number): void
  /** Forgets those whose use is forgotten. */
  prune(): void
}

/** Who answers for it. */
export interface Answering {
  operator: boolean
  /** When the cloud gave the token that is to be used now, s by its own clock. */
  issuedS?: number | undefined
  /** The row up to which it had this ledger when it was asked for that token; undefined: somebody else asked. */
  heardSeq?: number | undefined
}

/** Two processes of a cloud may differ by so much, s; whole seconds hide as much again. */
const CLOCKS_DIFFER_S = 1

/** The uses in this ledger's table. */
export function openUnknownUses(db: Connection): UnknownUses {
  const add = db.prepare('INSERT OR IGNORE INTO unknown_use (redemption_id, seq) VALUES (?, ?)')
  const find = db.prepare<[string], { seq: number | null; told_s: number | null }>(
    'SELECT seq, told_s FROM unknown_use WHERE redemption_id = ?',
  )
  const noteTold = db.prepare('UPDATE unknown_use SET told_s = ? WHERE seq <= ? AND told_s IS NULL')
  const forget = db.prepare(
    'DELETE FROM unknown_use WHERE redemption_id NOT IN (SELECT redemption_id FROM claim UNION SELECT redemption_id FROM used_right UNION SELECT redemption_id FROM home_grant)',
  )
  return {
    note: (redemptionId, seq) => void add.run(redemptionId, seq),
    told: (seq, atS) => void noteTold.run(atS, seq),
    isAnsweredFor(redemptionId, { operator, issuedS = 0, heardSeq = -1 }) {
      const use = find.get(redemptionId)
      if (!use) return false
      if (operator) return true
      const { seq, told_s: toldS } = use
      if (seq === null || toldS === null) return false
      // What it was asked for with that known may still be a token of before, given out again: of the same second at most.
      return seq <= heardSeq ? issuedS >= toldS : issuedS > toldS + CLOCKS_DIFFER_S
    },
    setBack: (toS) => void db.prepare('UPDATE unknown_use SET told_s = NULL WHERE told_s > ?').run(toS),
    prune: () => void forget.run(),
  }
}
