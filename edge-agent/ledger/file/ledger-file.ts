import Sqlite, { type Database as Connection } from 'better-sqlite3'
import { assert } from '../../../policy/assert.ts'
import { rowHash } from '../../../policy/journal.ts'

/** The fields of a claim's evidence that are compared (policy/journal.ts). */
interface StoredEvidence {
  kind: string
  redemptionId?: string
  nonce?: string
  rightClass?: string
  ordinals?: number[]
  receipt?: { cti: string; ordinals: number[] }
  outcome?: string
}

const STATES = new Set(['claimed', 'confirmed', 'failed', 'unknown'])

/**
 * Compares the claims with the journal, whose rows are chained by hash: SQLite does not notice a flipped bit inside a
 * value, but with another nonce the claim of a unit would no longer block its second release. Returns what differs.
 * Rows that were pruned, or that the cloud reported, have no counterpart and are not compared. Reads each journal row
 * once, about 10 µs.
 */
function findHarm(db: Connection): string | undefined {
  const claimsOf = db.prepare<[string], { nonce: string; right_class: string; ordinal: number; state: string }>(
    'SELECT nonce, right_class, ordinal, state FROM claim WHERE redemption_id = ?',
  )
  const usesOf = db.prepare<[string], { cti: string; right_class: string; ordinal: number }>(
    "SELECT cti, right_class, ordinal FROM used_right WHERE redemption_id = ? AND cti NOT LIKE 'tag:%'",
  )
  const failed = new Set<string>()
  const claims: StoredEvidence[] = []
  let before: { seq: number; hash: string } | undefined
  // A wrong clock can leave gaps when rows are pruned. Then the outcome of a claim may be missing.
  let hasGap = false
  for (const row of db
    .prepare<[], { seq: number; hash: string; body: string }>('SELECT seq, hash, body FROM journal ORDER BY seq')
    .iterate()) {
    if (before?.seq === row.seq - 1 && rowHash(before.hash, row.seq, row.body) !== row.hash)
      return `row ${row.seq} of the journal does not fit its hash`
    hasGap ||= before !== undefined && before.seq !== row.seq - 1
    before = row
    const evidence = evidenceIn(row.body)
    if (evidence === 'unreadable') return `row ${row.seq} of the journal is unreadable`
    if (evidence?.kind === 'claim') claims.push(evidence)
    if (evidence?.kind === 'outcome' && evidence.outcome === 'failed') failed.add(evidence.redemptionId ?? '')
  }
  for (const { redemptionId = '', nonce, rightClass, ordinals = [], receipt } of claims) {
    const rows = claimsOf.all(redemptionId)
    const fits = (row: { nonce: string; right_class: string; ordinal: number; state: string }) =>
      row.nonce === nonce && row.right_class === rightClass && ordinals.includes(row.ordinal) && STATES.has(row.state)
    const isFree = rows.some(({ state }) => state === 'failed')
    if (!rows.every(fits) || (isFree && !hasGap && !failed.has(redemptionId)))
      return `the claim ${redemptionId} differs from its row in the journal`
    if (receipt === undefined) continue
    const { cti, ordinals: used } = receipt
    if (
      usesOf
        .all(redemptionId)
        .some((use) => use.cti !== cti || use.right_class !== rightClass || !used.includes(use.ordinal))
    )
      return `the used right of the claim ${redemptionId} differs from its row in the journal`
  }
  return undefined
}

function evidenceIn(body: string): StoredEvidence | undefined | 'unreadable' {
  try {
    return (JSON.parse(body) as { evidence?: StoredEvidence }).evidence
  } catch {
    return 'unreadable'
  }
}

/** SQLite database of the agent. The database stores claims, journal rows and accepted documents. */

const BASELINE = `
  -- One row for each claim of a right. A retry after a failed claim has the next attempt number.
  CREATE TABLE claim (
    nonce TEXT NOT NULL, right_class TEXT NOT NULL, ordinal INTEGER NOT NULL, attempt INTEGER NOT NULL, redemption_id TEXT NOT NULL,
    device_id TEXT NOT NULL, state TEXT NOT NULL, exp INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    PRIMARY KEY (nonce, right_class, ordinal, attempt)) WITHOUT ROWID, STRICT;
  CREATE INDEX claim_by_redemption ON claim (redemption_id);
  -- Used rights of receipts: a token used the right here, this receipt home delegated it, or the cloud reported a use at another agent.
  -- Uses that the cloud reported have the redemption id '', and leases 'lease ' with the nonce of the token. A right may have several uses, each in its own row.
  CREATE TABLE used_right (
    cti TEXT NOT NULL, right_class TEXT NOT NULL, ordinal INTEGER NOT NULL, until_s INTEGER NOT NULL, redemption_id TEXT NOT NULL,
    PRIMARY KEY (cti, right_class, ordinal, redemption_id)) WITHOUT ROWID, STRICT;
  CREATE INDEX used_right_by_redemption ON used_right (redemption_id);
  -- EPC of the goods for which a unit of a receipt was used: each unit is for one tag. has_left: the tag left for it, also
  -- at a gate that is not sure of the direction and uses no exit right.
  CREATE TABLE unit_tag (
    cti TEXT NOT NULL, ordinal INTEGER NOT NULL, epc TEXT NOT NULL, until_s INTEGER NOT NULL,
    has_left INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (cti, ordinal)) WITHOUT ROWID, STRICT;
  CREATE INDEX unit_tag_by_epc ON unit_tag (epc);
  -- Which right of a receipt each step of a token uses, as the deny list of the cloud reports it.
  CREATE TABLE token_right (
    nonce TEXT NOT NULL, step INTEGER NOT NULL, cti TEXT NOT NULL, ordinal INTEGER NOT NULL, until_s INTEGER NOT NULL,
    PRIMARY KEY (nonce, step)) WITHOUT ROWID, STRICT;
  -- Redemptions with outcome unknown. seq: journal row that reports the outcome; told_s: when the cloud acknowledged that row, s.
  CREATE TABLE unknown_use (redemption_id TEXT PRIMARY KEY, seq INTEGER, told_s INTEGER) WITHOUT ROWID, STRICT;
  -- Voided tokens, revoked tokens and receipts of cancelled purchases, which the agent never honours; and recalled units
  -- of receipts as cti/ordinal, until the recall ends.
  CREATE TABLE denied (subject TEXT PRIMARY KEY, until_s INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE journal (seq INTEGER PRIMARY KEY, hash TEXT NOT NULL, body TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE mark (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE document (
    kind TEXT PRIMARY KEY, epoch INTEGER NOT NULL, ver INTEGER NOT NULL, hash TEXT NOT NULL, jws TEXT NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE approval (operator_id TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
  CREATE INDEX approval_by_operator ON approval (operator_id, at_ms);
  -- Receipts that were honoured while isolated, until the cloud has acknowledged their claims.
  CREATE TABLE isolated_receipt (cti TEXT PRIMARY KEY) WITHOUT ROWID, STRICT;
  -- rights: what the program may report, such as 'sales returns'.
  CREATE TABLE pairing (hash TEXT PRIMARY KEY, name TEXT NOT NULL, created_ms INTEGER NOT NULL, rights TEXT NOT NULL, till TEXT NOT NULL) WITHOUT ROWID, STRICT;
  -- Sales that tills reported here (ADR till-sales). seq: journal row. content is '' for a void without its sale.
  CREATE TABLE sale (
    sale_key TEXT PRIMARY KEY, till_id TEXT NOT NULL, state TEXT NOT NULL, version INTEGER NOT NULL, content TEXT NOT NULL, tags TEXT NOT NULL,
    returned TEXT NOT NULL, answer TEXT NOT NULL, remaining TEXT NOT NULL, value_cent INTEGER NOT NULL, hour INTEGER NOT NULL, stored_ms INTEGER NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE INDEX sale_by_till ON sale (till_id, stored_ms);
  CREATE INDEX sale_by_hour ON sale (till_id, hour, value_cent);
  CREATE INDEX sale_by_time ON sale (stored_ms);
  CREATE INDEX sale_by_row ON sale (seq);
  -- sale_key, request: of a return that waits for its sale.
  CREATE TABLE till_return (
    return_key TEXT PRIMARY KEY, content TEXT NOT NULL, answer TEXT NOT NULL, sale_key TEXT, request TEXT,
    stored_ms INTEGER NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE INDEX return_by_time ON till_return (stored_ms);
  CREATE INDEX waiting_return ON till_return (sale_key) WHERE sale_key IS NOT NULL;
  -- Status of a tag by a till's report, until the agent's items contain it; 'R', 'S' and 'Q' and an identity, too.
  -- rank: number of reports about the tag, of which the highest counts. sender: agent that reported it; '' for this one.
  -- seq: journal row. epoch, ver: position of the item sequence that contains it, once the cloud has acknowledged that
  -- row; before, the epoch of seen. change: number of this change, for notices to other agents. sale: that made the tag
  -- paid, or whose end made it alarm. seen: what the items contained when this agent took the report.
  CREATE TABLE till_tag (
    name TEXT PRIMARY KEY, status TEXT NOT NULL, rank INTEGER NOT NULL, sender TEXT NOT NULL, stored_ms INTEGER NOT NULL,
    seq INTEGER NOT NULL, epoch INTEGER, ver INTEGER, change INTEGER NOT NULL, sale TEXT, seen INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  -- Codes that tills printed, as hashes, and the sales that they name. sender, change: as in till_tag. notice: the notice
  -- of another agent that announced it, which this agent as the receipt home forwards.
  CREATE TABLE till_code (
    code TEXT NOT NULL, sale TEXT NOT NULL, exp INTEGER NOT NULL, risk_class INTEGER NOT NULL, goods TEXT NOT NULL, sender TEXT NOT NULL, change INTEGER NOT NULL,
    notice TEXT, PRIMARY KEY (code, sale)) WITHOUT ROWID, STRICT;
  CREATE INDEX till_code_change ON till_code (change) WHERE sender = '';
  CREATE INDEX till_code_end ON till_code (exp);
  CREATE TABLE till_notice (hash TEXT PRIMARY KEY, text TEXT NOT NULL, exp INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE INDEX till_notice_end ON till_notice (exp);
  -- Pieces that tills sold without naming their tags, tags that passed for them, and ends of both (till-pieces.ts).
  CREATE TABLE till_piece (
    sale TEXT NOT NULL, product TEXT NOT NULL, tag TEXT NOT NULL, count INTEGER NOT NULL, exp INTEGER NOT NULL, sender TEXT NOT NULL,
    change INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (sale, product, tag)) WITHOUT ROWID, STRICT;
  CREATE INDEX till_piece_of_product ON till_piece (product, exp) WHERE count > 0;
  CREATE INDEX till_piece_change ON till_piece (change) WHERE sender = '';
  CREATE INDEX till_piece_end ON till_piece (exp);
  CREATE INDEX till_tag_waiting ON till_tag (seq) WHERE ver IS NULL;
  CREATE INDEX till_tag_back ON till_tag (status, stored_ms) WHERE status IN ('returned', 'cancelled', 'sellable');
  CREATE INDEX till_tag_of_sale ON till_tag (sale) WHERE sale IS NOT NULL;
  CREATE INDEX till_tag_change ON till_tag (change) WHERE sender = '';
  -- Browsers that were paired with a one-time link, and unused links.
  CREATE TABLE browser (hash TEXT PRIMARY KEY, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE pairing_link (hash TEXT PRIMARY KEY, created_ms INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  -- home_grant: answers of this agent as the receipt home. home_ask: requests of this agent to the receipt home.
  -- A request stays until the home has its outcome. home_epoch: epoch of the home that the agent sent the request to.
  CREATE TABLE home_grant (
    redemption_id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, answer TEXT NOT NULL, state TEXT NOT NULL, exp INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE home_ask (
    redemption_id TEXT PRIMARY KEY, subject TEXT NOT NULL, home TEXT NOT NULL, home_epoch INTEGER NOT NULL, cti TEXT NOT NULL, right_class TEXT NOT NULL,
    candidates TEXT NOT NULL, exp INTEGER NOT NULL, state TEXT NOT NULL, claim_id TEXT) WITHOUT ROWID, STRICT;
`

/**
 * In order of application. `user_version` of the file is the number of applied migrations. Never change a released
 * migration; add a new one.
 */
const MIGRATIONS: readonly string[] = [BASELINE]

/** SQLite cannot read the file. The agent must be re-enrolled with a new ledger file. */
export class LedgerDamaged extends Error {
  override name = 'LedgerDamaged'
}

/**
 * Opens the ledger. Sets the pragmas for durable commits on each open and verifies them. Throws `LedgerDamaged` if the
 * file is unusable.
 */
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
    `${file} is damaged: re-enrol this agent with untag edge enrol --replace, which sets the file aside; reported rows are in the cloud`,
    { cause },
  )
}

function prepareLedger(db: Connection, file: string): Connection {
  // A commit changes few rows in several tables, and writes whole pages.
  db.pragma('page_size = 1024')
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.pragma('trusted_schema = OFF')
  db.pragma('cell_size_check = ON')
  db.pragma('journal_size_limit = 16777216')
  assert(db.pragma('synchronous', { simple: true }) === 2, `${file}: synchronous is not FULL`)
  assert(db.pragma('journal_mode', { simple: true }) === 'wal', `${file}: journal_mode is not WAL`)
  if (db.pragma('integrity_check(1)', { simple: true }) !== 'ok') throw damaged(file)
  const version = db.pragma('user_version', { simple: true }) as number
  if (version > MIGRATIONS.length)
    throw new Error(`${file} was written by a newer release of untag: install that release`)
  if (version < MIGRATIONS.length) {
    db.transaction(() => {
      for (const migration of MIGRATIONS.slice(version)) db.exec(migration)
      db.pragma(`user_version = ${MIGRATIONS.length}`)
    }).immediate()
  }
  const harm = findHarm(db)
  if (harm !== undefined) throw damaged(file, new Error(harm))
  return db
}
