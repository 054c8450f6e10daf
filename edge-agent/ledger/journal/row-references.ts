import type { Database as Connection } from 'better-sqlite3'

/** Updates stored row numbers after the journal changed its numbers. Runs inside the journal's transaction. */
export interface RowReferences {
  /** The rows after `acked` have new numbers and end with `head`. The cloud has all earlier rows. */
  renumber(acked: number, head: number): void
  /** The cloud may lack all rows after `acked`. Rows up to it are not sent again. */
  resetAcknowledged(acked: number): void
  /** The cloud has everything up to `acked`, and nothing after it. */
  unacknowledge(acked: number): void
}

/** Opens the references in this ledger's tables. */
export function rowReferences(db: Connection): RowReferences {
  return {
    renumber(acked, head) {
      // The end of all instead of each row: that is acknowledged a moment later, and no sooner.
      db.prepare("UPDATE mark SET value = ? WHERE name = 'isolated_seq'").run(String(head))
      db.prepare('UPDATE unknown_use SET seq = CASE WHEN seq <= ? THEN 0 ELSE ? END WHERE seq IS NOT NULL').run(
        acked,
        head,
      )
    },
    resetAcknowledged(acked) {
      db.prepare('UPDATE unknown_use SET told_s = NULL, seq = CASE WHEN seq > ? THEN seq END').run(acked)
    },
    unacknowledge: (acked) => void db.prepare('UPDATE unknown_use SET told_s = NULL WHERE seq > ?').run(acked),
  }
}
