import type { Migration } from './migration.ts'

/** What homes of receipts gave to other agents, which may be cut off from the cloud. */
export const GIVEN_RIGHTS: Migration = {
  name: '0033-given-rights',
  statements: [
    `CREATE TABLE given_right (
      line_id text NOT NULL, unit_no bigint NOT NULL, right_class text NOT NULL, redemption_id text NOT NULL, purchase_id text NOT NULL,
      store_id text NOT NULL, agent_id text NOT NULL, state text NOT NULL, until_s bigint NOT NULL, PRIMARY KEY (line_id, unit_no, right_class, redemption_id))`,
    `CREATE INDEX given_right_by_redemption ON given_right (redemption_id)`,
    `CREATE INDEX given_right_by_end ON given_right (until_s)`,
    // Only where it is set is the other table looked at.
    `ALTER TABLE unit_right ADD COLUMN was_given bigint NOT NULL DEFAULT 0`,
  ],
}
