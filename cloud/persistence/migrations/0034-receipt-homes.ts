import type { Migration } from './migration.ts'

/** What the cloud judges the reports of receipt homes by: who was home in which epoch, and keys that agents signed with before. */
export const RECEIPT_HOMES: Migration = {
  name: '0034-receipt-homes',
  statements: [
    // The present home is in the store's policy.
    `CREATE TABLE former_home (store_id text NOT NULL, home_epoch bigint NOT NULL, agent_id text NOT NULL, PRIMARY KEY (store_id, home_epoch))`,
    `CREATE TABLE agent_former_key (agent_id text NOT NULL, x text NOT NULL, retired_ms bigint NOT NULL, PRIMARY KEY (agent_id, x))`,
    `CREATE INDEX agent_former_key_by_age ON agent_former_key (retired_ms)`,
    // Null in rows of an earlier release: no report frees them, and they end with the receipt.
    `ALTER TABLE given_right ADD COLUMN home_agent_id text`,
    `ALTER TABLE given_right ADD COLUMN home_epoch bigint`,
  ],
}
