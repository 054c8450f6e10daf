import type { Database as Connection } from 'better-sqlite3'

/**
 * Redemptions with an unknown outcome. Each of them blocks its right until staff act on site. After the cloud has
 * acknowledged the redemption, a later token of the cloud may use the right too. Call all methods inside a transaction
 * of `commit.ts`.
 */
export interface UnresolvedRedemptions {
  /** Adds a redemption. `seq`: its journal row; null if another agent reported the redemption. */
  add(redemptionId: string, seq: number | null): void
  /** The cloud acknowledged all rows up to `seq` at `atS`, s by the clock of the cloud. */
  noteAcknowledged(seq: number, atS: number): void
  isResolvedFor(redemptionId: string, by: Resolver): boolean
  /** Drops acknowledgements with a time after `toS`. */
  rewindTo(toS: number): void
  /** Deletes entries whose redemption was pruned. */
  prune(): void
}

/** The request that tries to use the right again. */
export interface Resolver {
  operator: boolean
  /** Issue time of the presented token, s by the clock of the cloud. */
  issuedS?: number | undefined
  /**
   * Last row that the cloud had acknowledged when this agent requested the token. Undefined if the agent did not
   * request the token.
   */
  reportedSeq?: number | undefined
}

/** Allowed clock difference between processes of the cloud, s. */
const CLOCKS_DIFFER_S = 1

/** Opens the unresolved redemptions of this ledger. */
export function openUnresolvedRedemptions(db: Connection): UnresolvedRedemptions {
  const add = db.prepare('INSERT OR IGNORE INTO unknown_use (redemption_id, seq) VALUES (?, ?)')
  const find = db.prepare<[string], { seq: number | null; told_s: number | null }>(
    'SELECT seq, told_s FROM unknown_use WHERE redemption_id = ?',
  )
  const markAcknowledged = db.prepare('UPDATE unknown_use SET told_s = ? WHERE seq <= ? AND told_s IS NULL')
  const deletePruned = db.prepare(
    'DELETE FROM unknown_use WHERE redemption_id NOT IN (SELECT redemption_id FROM claim UNION SELECT redemption_id FROM used_right UNION SELECT redemption_id FROM home_grant)',
  )
  return {
    add: (redemptionId, seq) => void add.run(redemptionId, seq),
    noteAcknowledged: (seq, atS) => void markAcknowledged.run(atS, seq),
    isResolvedFor(redemptionId, { operator, issuedS = 0, reportedSeq = -1 }) {
      const use = find.get(redemptionId)
      if (!use) return false
      if (operator) return true
      const { seq, told_s: toldS } = use
      if (seq === null || toldS === null) return false
      // The cloud may return an older token again, so the token must be newer than the acknowledgement. Times are whole
      // seconds: the same second suffices only if the agent requested the token after the acknowledgement.
      return seq <= reportedSeq ? issuedS >= toldS : issuedS > toldS + CLOCKS_DIFFER_S
    },
    rewindTo: (toS) => void db.prepare('UPDATE unknown_use SET told_s = NULL WHERE told_s > ?').run(toS),
    prune: () => void deletePruned.run(),
  }
}
