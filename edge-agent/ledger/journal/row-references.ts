import type { Database as Connection } from 'better-sqlite3'

/**
 * Corrects the row numbers in other tables, after the journal has renumbered its rows or voided acknowledgements. Runs
 * inside the journal's transaction.
 */
export interface RowReferences {
  /**
   * Call it when the rows after `acked` have new numbers, the last of which is `head`. The cloud has all earlier rows.
   */
  renumber(acked: number, head: number): void
  /**
   * Voids all acknowledgements. The agent sends again only rows after `acked`, so it discards references to earlier
   * rows.
   */
  resetAcknowledged(acked: number): void
  /** Voids the acknowledgements of rows after `acked`. */
  unacknowledge(acked: number): void
}

/** Opens the references in this ledger's tables. */
export function rowReferences(db: Connection): RowReferences {
  return {
    renumber(acked, head) {
      // References to renumbered rows get the last new number. The acknowledgement of that row never comes before the
      // acknowledgement of the referenced row.
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
