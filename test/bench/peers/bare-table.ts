import Sqlite from 'better-sqlite3'

/** Minimal store of used nonces: a table with a primary key, with WAL and synchronous=FULL like the ledger. */
export interface BareTable {
  /** Adds one row in a separate durable commit. */
  one(nonce: string, exp: number): void
  /** Adds these rows in one durable commit. */
  together(nonces: readonly string[], exp: number, beforeEach: (index: number) => void): void
  close(): void
}

export function bareTable(file: string): BareTable {
  const db = new Sqlite(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec('CREATE TABLE used (nonce TEXT PRIMARY KEY, exp INTEGER NOT NULL) WITHOUT ROWID, STRICT')
  const insert = db.prepare('INSERT INTO used (nonce, exp) VALUES (?, ?)')
  const together = db.transaction((nonces: readonly string[], exp: number, beforeEach: (index: number) => void) => {
    for (const [i, nonce] of nonces.entries()) {
      beforeEach(i)
      insert.run(nonce, exp)
    }
  })
  return {
    one: (nonce, exp) => void insert.run(nonce, exp),
    together: (...args) => together.immediate(...args),
    close: () => void db.close(),
  }
}
