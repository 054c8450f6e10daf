import type { Migration } from './migration.ts'

/** What staff look at and settle, which unit each redemption was for, and what becomes of agents whose ledger is not what it was. */
export const RECONCILIATION: Migration = {
  name: '0020-reconciliation',
  statements: [
    `ALTER TABLE protection_exception ADD COLUMN event_id text`,
    // How often it was told, and when last; null: once.
    `ALTER TABLE protection_exception ADD COLUMN times bigint NOT NULL DEFAULT 1`,
    `ALTER TABLE protection_exception ADD COLUMN last_ms bigint`,
    `ALTER TABLE protection_exception ADD COLUMN acknowledged_by text`,
    `CREATE INDEX protection_exception_by_store ON protection_exception (store_id, exception_id)`,
    // The unit whose right it used up, so that all of one unit can be looked at together; null for a fixture.
    `ALTER TABLE redemption ADD COLUMN line_id text`,
    `ALTER TABLE redemption ADD COLUMN unit_no bigint`,
    `ALTER TABLE redemption ADD COLUMN right_class text`,
    // The operator who said what became of it, and what the device had said.
    `ALTER TABLE redemption ADD COLUMN resolved_by text`,
    `ALTER TABLE redemption ADD COLUMN reported text`,
    `UPDATE redemption SET
      right_class = (SELECT a.right_class FROM protection_authorization a WHERE a.nonce = redemption.nonce),
      line_id = (SELECT u.line_id FROM authorization_unit u WHERE u.nonce = redemption.nonce AND u.ordinal = redemption.step - 1),
      unit_no = (SELECT u.unit_no FROM authorization_unit u WHERE u.nonce = redemption.nonce AND u.ordinal = redemption.step - 1)
      WHERE source = 'token'`,
    // What a receipt's redemption used up stands in the right that it used up.
    `UPDATE redemption SET
      right_class = (SELECT MIN(r.right_class) FROM unit_right r WHERE r.redemption_id = redemption.redemption_id),
      line_id = (SELECT MIN(u.line_id) FROM purchase_unit u JOIN purchase p ON p.purchase_id = u.purchase_id WHERE p.cti = redemption.nonce AND u.receipt_index = redemption.step - 1),
      unit_no = (SELECT MIN(u.unit_no) FROM purchase_unit u JOIN purchase p ON p.purchase_id = u.purchase_id WHERE p.cti = redemption.nonce AND u.receipt_index = redemption.step - 1)
      WHERE source = 'receipt'`,
    `CREATE INDEX redemption_by_unit ON redemption (line_id, unit_no, right_class)`,
    `CREATE INDEX journal_row_unapplied ON journal_row (agent_id, generation, seq) WHERE applied = 0`,
    // Until then the agent's claims need the cloud's yes: its ledger was put back. While fork_ms stands, it exists twice.
    `ALTER TABLE agent ADD COLUMN online_only_until_ms bigint`,
    `ALTER TABLE agent ADD COLUMN fork_ms bigint`,
    // What it last said of itself (JSON), for people.
    `ALTER TABLE agent ADD COLUMN state text`,
    // What decisions rested on (JSON), kept for a while: another policy can be tried on them. Prices and brands, never a customer.
    `CREATE TABLE protection_decision (
      event_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, at_ms bigint NOT NULL, reason text, facts text NOT NULL)`,
    `CREATE INDEX protection_decision_by_store ON protection_decision (store_id, at_ms, event_id)`,
    `CREATE INDEX protection_decision_by_age ON protection_decision (at_ms)`,
  ],
}
