import Sqlite, { type Database as Connection } from 'better-sqlite3'
import { assert } from '../../../policy/assert.ts'

/** The agent's own database: what was used up, what is still to be told, what was believed. */

const SCHEMA_VERSION = 5

const SCHEMA = `
  -- One row for each right that was ever claimed here. A failed one may be tried again under the next attempt.
  CREATE TABLE claim (
    nonce TEXT NOT NULL, right_class TEXT NOT NULL, ordinal INTEGER NOT NULL, attempt INTEGER NOT NULL, redemption_id TEXT NOT NULL,
    device_id TEXT NOT NULL, state TEXT NOT NULL, exp INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    PRIMARY KEY (nonce, right_class, ordinal, attempt)) WITHOUT ROWID, STRICT;
  CREATE INDEX claim_by_redemption ON claim (redemption_id);
  -- Rights of receipts that were used up elsewhere, or here through a token.
  CREATE TABLE used_right (
    cti TEXT NOT NULL, right_class TEXT NOT NULL, ordinal INTEGER NOT NULL, until_s INTEGER NOT NULL, redemption_id TEXT,
    PRIMARY KEY (cti, right_class, ordinal)) WITHOUT ROWID, STRICT;
  -- What is never honoured: tokens that were voided or revoked, receipts of cancelled purchases.
  CREATE TABLE denied (subject TEXT PRIMARY KEY, until_s INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE journal (seq INTEGER PRIMARY KEY, hash TEXT NOT NULL, body TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE mark (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE document (kind TEXT PRIMARY KEY, epoch INTEGER NOT NULL, ver INTEGER NOT NULL, hash TEXT NOT NULL, jws TEXT NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE approval (operator_id TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
  CREATE INDEX approval_by_operator ON approval (operator_id, at_ms);
  CREATE TABLE pairing (hash TEXT PRIMARY KEY, name TEXT NOT NULL, created_ms INTEGER NOT NULL) WITHOUT ROWID, STRICT;
`

/** Redemptions between the agents of a store: what this one gave as the home, and what it has asked of the home. */
const SCHEMA_2 = `
  CREATE TABLE IF NOT EXISTS home_grant (redemption_id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, answer TEXT NOT NULL, state TEXT NOT NULL, exp INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE IF NOT EXISTS home_ask (subject TEXT PRIMARY KEY, redemption_id TEXT NOT NULL, exp INTEGER NOT NULL) WITHOUT ROWID, STRICT;
`

/**
 * Uses of one right stand side by side, so that none hides another: each that was used here through a token or given away as the home,
 * and what the cloud told of others (redemption_id is ''). Of uses of which nobody knows what became: the row that tells so, and when the
 * cloud said that it has it. What was asked of the home stays until that has heard what became of it. And which rights of a receipt the
 * steps of a token stand for that somebody else than this agent was given.
 */
const SCHEMA_3 = `
  CREATE TABLE IF NOT EXISTS token_right (nonce TEXT NOT NULL, step INTEGER NOT NULL, cti TEXT NOT NULL, ordinal INTEGER NOT NULL, until_s INTEGER NOT NULL, PRIMARY KEY (nonce, step)) WITHOUT ROWID, STRICT;
  CREATE TABLE IF NOT EXISTS unknown_use (redemption_id TEXT PRIMARY KEY, seq INTEGER, told_s INTEGER) WITHOUT ROWID, STRICT;
  INSERT OR IGNORE INTO unknown_use SELECT DISTINCT redemption_id, (SELECT COALESCE(MAX(seq), 0) FROM journal), NULL FROM claim WHERE state = 'unknown';
  CREATE TABLE used_right_3 (
    cti TEXT NOT NULL, right_class TEXT NOT NULL, ordinal INTEGER NOT NULL, until_s INTEGER NOT NULL, redemption_id TEXT NOT NULL,
    PRIMARY KEY (cti, right_class, ordinal, redemption_id)) WITHOUT ROWID, STRICT;
  INSERT INTO used_right_3 SELECT cti, right_class, ordinal, until_s, COALESCE(redemption_id, '') FROM used_right;
  -- What the cloud told of others stood in the same row: where staff may go on, it may have.
  INSERT OR IGNORE INTO used_right_3 SELECT cti, right_class, ordinal, until_s, '' FROM used_right
    WHERE redemption_id IN (SELECT redemption_id FROM claim WHERE state IN ('claimed', 'commanded', 'unknown'));
  DROP TABLE used_right;
  ALTER TABLE used_right_3 RENAME TO used_right;
  DROP TABLE IF EXISTS home_ask;
  CREATE TABLE home_ask (
    redemption_id TEXT PRIMARY KEY, subject TEXT NOT NULL, home TEXT NOT NULL, cti TEXT NOT NULL, right_class TEXT NOT NULL,
    candidates TEXT NOT NULL, exp INTEGER NOT NULL, state TEXT NOT NULL, claim_id TEXT) WITHOUT ROWID, STRICT;
  -- A number of a former generation: no row of this one ever had it.
  UPDATE mark SET value = (SELECT CAST(COALESCE(MAX(seq), 0) AS TEXT) FROM journal)
    WHERE name = 'isolated_seq' AND CAST(value AS INTEGER) > (SELECT COALESCE(MAX(seq), 0) FROM journal);
`

/** The epoch of the receipt home that was asked: the outcome report names it. */
const SCHEMA_4 = 'ALTER TABLE home_ask ADD COLUMN home_epoch INTEGER;'

/** Browsers that were paired with a one-time link, and the links that are still unused. */
const SCHEMA_5 = `
  CREATE TABLE IF NOT EXISTS browser (hash TEXT PRIMARY KEY, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE IF NOT EXISTS pairing_link (hash TEXT PRIMARY KEY, created_ms INTEGER NOT NULL) WITHOUT ROWID, STRICT;
`

/** The file is no ledger any more, whatever it was: only a fresh one helps. */
export class LedgerDamaged extends Error {
  override name = 'LedgerDamaged'
}

/** Opens the ledger. Durable commits are not a wish: the pragmas are set on every open and read back. Throws `LedgerDamaged` when there is nothing to go on with. */
export function openLedgerFile(file: string): Connection {
  const db = new Sqlite(file, { timeout: 2_000 })
  try {
    return prepareLedger(db, file)
  } catch (error) {
    db.close()
    const { code } = error as { code?: string }
    throw code !== undefined && /^SQLITE_(CORRUPT|NOTADB)/.test(code) ? damaged(file, error) : error
  }
}

function damaged(file: string, cause?: unknown): LedgerDamaged {
  return new LedgerDamaged(
    `${file} is damaged: enrol this agent anew with untag edge enrol --replace, which puts it aside; the cloud keeps what was reported`,
    { cause },
  )
}

function prepareLedger(db: Connection, file: string): Connection {
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.pragma('trusted_schema = OFF')
  db.pragma('cell_size_check = ON')
  db.pragma('journal_size_limit = 16777216')
  assert(db.pragma('synchronous', { simple: true }) === 2, `${file}: synchronous is not FULL`)
  assert(db.pragma('journal_mode', { simple: true }) === 'wal', `${file}: journal_mode is not WAL`)
  if (db.pragma('quick_check', { simple: true }) !== 'ok') throw damaged(file)
  const version = db.pragma('user_version', { simple: true }) as number
  assert(version <= SCHEMA_VERSION, `${file} was written by a newer untag: upgrade this one`)
  if (version < SCHEMA_VERSION) {
    db.transaction(() => {
      if (version < 1) db.exec(SCHEMA)
      if (version < 2) db.exec(SCHEMA_2)
      if (version < 3) db.exec(SCHEMA_3)
      if (version < 4) db.exec(SCHEMA_4)
      db.exec(SCHEMA_5)
      db.pragma(`user_version = ${SCHEMA_VERSION}`)
    }).immediate()
  }
  return db
}
