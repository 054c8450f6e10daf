/** Pickup orders, their lines and the tagged items that are reserved for them. */
export const CLICK_AND_COLLECT: readonly string[] = [
  `CREATE TABLE pickup_order (
    order_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), user_id text NOT NULL,
    status text NOT NULL, total_cent bigint NOT NULL, currency text NOT NULL, note text, pickup_ms bigint,
    estimated_ms bigint NOT NULL, code_hash text NOT NULL, reason text, expires_ms bigint, created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL, picked_up_ms bigint, paid bigint NOT NULL,
    locker_device_id text, rev bigint NOT NULL)`,
  `CREATE INDEX pickup_order_by_store ON pickup_order (store_id, order_id)`,
  `CREATE INDEX pickup_order_by_status ON pickup_order (store_id, status, order_id)`,
  // `expires_ms` is null if the order can no longer expire.
  `CREATE INDEX pickup_order_by_expiry ON pickup_order (expires_ms)`,
  `CREATE INDEX pickup_order_by_locker ON pickup_order (locker_device_id)`,
  `CREATE TABLE pickup_order_line (
    order_id text NOT NULL REFERENCES pickup_order (order_id), line_no bigint NOT NULL, product_id text NOT NULL,
    ean text NOT NULL, name text NOT NULL, price_cent bigint NOT NULL, vat bigint NOT NULL, quantity bigint NOT NULL,
    PRIMARY KEY (order_id, line_no))`,
  `CREATE TABLE pickup_order_item (
    order_id text NOT NULL REFERENCES pickup_order (order_id), item_id text NOT NULL, line_no bigint NOT NULL,
    PRIMARY KEY (order_id, item_id))`,
  `CREATE INDEX pickup_order_item_by_item ON pickup_order_item (item_id)`,
]
