/**
 * Counters per store and day, closings, followers and favourite offers. A counter changes in the transaction that
 * causes the change.
 */
export const ANALYTICS: readonly string[] = [
  // `day` is a date in the store's time zone. `receipts` and `refunds` count what happened on that day and never
  // decrease. Later cancellations reduce the other counters. A figure is the sum over all slots, as in product_count
  // (stores.ts).
  `CREATE TABLE store_day (
    store_id text NOT NULL, day text NOT NULL, tenant text NOT NULL, sessions bigint NOT NULL, sessions_completed bigint NOT NULL,
    completed_checkouts bigint NOT NULL, revenue_cent bigint NOT NULL, items_scanned bigint NOT NULL,
    offer_clicks bigint NOT NULL, offer_favorites bigint NOT NULL, profile_views bigint NOT NULL, messages bigint NOT NULL,
    new_followers bigint NOT NULL, lost_followers bigint NOT NULL, receipts bigint NOT NULL, refunds bigint NOT NULL,
    slot bigint NOT NULL DEFAULT (pg_backend_pid() % 128), PRIMARY KEY (store_id, day, slot))`,
  // Gross amounts and the tax in them, summed from the receipts and refunds of that day.
  `CREATE TABLE store_day_vat (
    store_id text NOT NULL, day text NOT NULL, rate bigint NOT NULL, tenant text NOT NULL, sales_cent bigint NOT NULL,
    sales_tax_cent bigint NOT NULL, refund_cent bigint NOT NULL, refund_tax_cent bigint NOT NULL,
    slot bigint NOT NULL DEFAULT (pg_backend_pid() % 128), PRIMARY KEY (store_id, day, rate, slot))`,
  `CREATE TABLE store_closing (
    store_id text NOT NULL, number bigint NOT NULL, tenant text NOT NULL, from_day text NOT NULL, to_day text NOT NULL,
    closed_ms bigint NOT NULL, body text NOT NULL, PRIMARY KEY (store_id, number), UNIQUE (store_id, to_day))`,
  `CREATE TABLE follower (
    store_id text NOT NULL, user_id text NOT NULL, tenant text NOT NULL, since_ms bigint NOT NULL,
    PRIMARY KEY (store_id, user_id))`,
  `CREATE INDEX follower_by_user ON follower (tenant, user_id)`,
  `CREATE TABLE offer_favorite (
    store_id text NOT NULL, offer_id text NOT NULL, user_id text NOT NULL, tenant text NOT NULL, since_ms bigint NOT NULL,
    PRIMARY KEY (store_id, offer_id, user_id))`,
  `CREATE INDEX offer_favorite_by_user ON offer_favorite (tenant, user_id)`,
]
