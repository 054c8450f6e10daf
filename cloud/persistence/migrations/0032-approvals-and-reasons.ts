import type { Migration } from './migration.ts'

/** Which grants rested on an operator's word, what was scanned for one, and who moved an item by hand, and why. */
export const APPROVALS_AND_REASONS: Migration = {
  name: '0032-approvals-and-reasons',
  statements: [
    // Kept for as long as the limit of the policy looks back.
    `CREATE TABLE operator_approval (nonce text PRIMARY KEY, store_id text NOT NULL, operator_id text NOT NULL, at_ms bigint NOT NULL)`,
    `CREATE INDEX operator_approval_by_operator ON operator_approval (store_id, operator_id, at_ms)`,
    `CREATE INDEX operator_approval_by_age ON operator_approval (at_ms)`,
    `ALTER TABLE protection_authorization ADD COLUMN scan_source text`,
    `ALTER TABLE item_move ADD COLUMN reason text`,
    `ALTER TABLE item_move ADD COLUMN operator_id text`,
  ],
}
