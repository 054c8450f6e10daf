import type { Migration } from './migration.ts'

/** When a signing key came into its state; the keys that agents change to; where the agents of a store reach each other. */
export const KEYS_AND_HOMES: Migration = {
  name: '0021-keys-and-homes',
  statements: [
    `ALTER TABLE signing_key ADD COLUMN changed_ms bigint NOT NULL DEFAULT 0`,
    `UPDATE signing_key SET changed_ms = created_ms`,
    `CREATE UNIQUE INDEX one_next_key ON signing_key (iss, key_use) WHERE state = 'next'`,
    // The key that an agent wants to change to, until it has used it.
    `ALTER TABLE agent ADD COLUMN next_x text`,
    // Where other agents of the store reach this one, as it last said itself.
    `ALTER TABLE agent ADD COLUMN home_url text`,
    // What the present home must have taken before it honours receipts from before it was one.
    `CREATE TABLE home_move (store_id text PRIMARY KEY REFERENCES store (store_id), moved_s bigint NOT NULL, deny_seq bigint NOT NULL)`,
    `CREATE UNIQUE INDEX agent_by_next_key ON agent (next_x) WHERE next_x IS NOT NULL`,
  ],
}
