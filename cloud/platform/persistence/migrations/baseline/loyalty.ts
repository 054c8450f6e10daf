/**
 * Loyalty programs, members and entries. Amounts are whole: points, stamps, or cents of a cashback. Entries never
 * change. A member's balance is the sum of the member's entries. The transaction of an entry also updates the balance.
 */
export const LOYALTY: readonly string[] = [
  `CREATE TABLE loyalty_program (
    program_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
    type text NOT NULL, earning_methods text NOT NULL, points_per_euro_milli bigint NOT NULL, stamps_per_visit bigint NOT NULL,
    cashback_basis_points bigint NOT NULL, points_valid_months bigint, rewards text NOT NULL, tiers text NOT NULL,
    is_active bigint NOT NULL, created_ms bigint NOT NULL, updated_ms bigint NOT NULL)`,
  `CREATE INDEX loyalty_program_by_store ON loyalty_program (store_id, program_id)`,
  `CREATE INDEX loyalty_program_by_tenant ON loyalty_program (tenant, program_id)`,
  `CREATE TABLE loyalty_member (
    program_id text NOT NULL REFERENCES loyalty_program (program_id), user_id text NOT NULL, balance bigint NOT NULL,
    month text NOT NULL, enrolled_ms bigint NOT NULL, last_qr_ms bigint, last_visit_ms bigint, next_expiry_ms bigint,
    card_number bigint NOT NULL, card_hash text, PRIMARY KEY (program_id, user_id))`,
  `CREATE UNIQUE INDEX loyalty_member_by_card ON loyalty_member (card_hash)`,
  `CREATE INDEX loyalty_member_by_expiry ON loyalty_member (next_expiry_ms)`,
  `CREATE TABLE loyalty_entry (
    entry_id text PRIMARY KEY, tenant text NOT NULL, program_id text NOT NULL, user_id text NOT NULL, kind text NOT NULL,
    amount bigint NOT NULL, balance bigint NOT NULL, source text, transaction_id text, reward_id text, reverses text,
    month text NOT NULL, at_ms bigint NOT NULL, expires_ms bigint, earned_on_cent bigint,
    FOREIGN KEY (program_id, user_id) REFERENCES loyalty_member (program_id, user_id))`,
  `CREATE INDEX loyalty_entry_by_member ON loyalty_entry (program_id, user_id, entry_id)`,
  `CREATE INDEX loyalty_entry_by_month ON loyalty_entry (program_id, month, kind, amount)`,
  `CREATE INDEX loyalty_entry_by_transaction ON loyalty_entry (tenant, transaction_id)`,
  // Each `transaction_id` earns at most once in a program.
  `CREATE UNIQUE INDEX loyalty_earned_once ON loyalty_entry (program_id, transaction_id) WHERE kind = 'earn'`,
  // Sums of the entries by month and kind; kind 'join' counts new members. The transaction of an entry also updates
  // these sums.
  `CREATE TABLE loyalty_month (
    program_id text NOT NULL, month text NOT NULL, kind text NOT NULL, amount bigint NOT NULL, entries bigint NOT NULL,
    PRIMARY KEY (program_id, month, kind))`,
]
