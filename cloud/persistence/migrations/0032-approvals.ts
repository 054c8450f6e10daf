import type { Migration } from './migration.ts'

/** Which grants rested on an operator's word. */
export const APPROVALS: Migration = {
  name: '0032-approvals',
  statements: [
    // Kept for as long as the limit of the policy looks back.
    `CREATE TABLE operator_approval (nonce text PRIMARY KEY, store_id text NOT NULL, operator_id text NOT NULL, at_ms bigint NOT NULL)`,
    `CREATE INDEX operator_approval_by_operator ON operator_approval (store_id, operator_id, at_ms)`,
    `CREATE INDEX operator_approval_by_age ON operator_approval (at_ms)`,
  ],
}
