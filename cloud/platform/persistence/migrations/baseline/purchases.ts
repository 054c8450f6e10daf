/** Shopping sessions, purchases, their lines and units. */
export const PURCHASES: readonly string[] = [
  `CREATE TABLE shopping_session (
    session_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), user_id text,
    created_ms bigint NOT NULL, completed bigint NOT NULL DEFAULT 0, spot_check_due bigint NOT NULL DEFAULT 0,
    vouched bigint NOT NULL DEFAULT 0, purchase_id text)`,
  `CREATE INDEX session_by_spot_check ON shopping_session (tenant, user_id) WHERE spot_check_due = 1`,
  `CREATE TABLE purchase (
    purchase_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id),
    session_id text NOT NULL, user_id text, checkout_session_id text, status text NOT NULL, currency text NOT NULL,
    total_cent bigint NOT NULL, value_cent bigint NOT NULL, security_tag_mode text NOT NULL, security_tag_status text, price_origin text NOT NULL,
    cti text UNIQUE, receipt_token text, receipt_exp bigint, cancel_reason text, refund_status text, deny_seq bigint,
    created_ms bigint NOT NULL, completed_ms bigint, rev bigint NOT NULL, approval text, approval_reason text, approved_by text,
    payment_by_ms bigint, completed_position bigint)`,
  `CREATE INDEX purchase_by_store ON purchase (store_id, purchase_id)`,
  `CREATE UNIQUE INDEX purchase_by_checkout ON purchase (checkout_session_id)`,
  `CREATE INDEX purchase_by_tenant ON purchase (tenant, purchase_id)`,
  `CREATE INDEX purchase_by_user ON purchase (tenant, user_id, purchase_id)`,
  `CREATE INDEX purchase_awaiting ON purchase (store_id) WHERE approval = 'awaiting'`,
  `CREATE INDEX purchase_unpaid ON purchase (payment_by_ms) WHERE payment_by_ms IS NOT NULL`,
  `CREATE INDEX purchase_by_completion ON purchase (store_id, completed_ms, purchase_id) WHERE completed_ms IS NOT NULL`,
  `CREATE INDEX purchase_by_refund ON purchase (refund_status) WHERE refund_status IS NOT NULL`,
  `CREATE INDEX purchase_by_position ON purchase (store_id, completed_position, purchase_id) WHERE completed_position IS NOT NULL`,
  `CREATE TABLE purchase_line (
    line_id text PRIMARY KEY, purchase_id text NOT NULL REFERENCES purchase (purchase_id), line_no bigint NOT NULL,
    name text NOT NULL, ean text, product_id text, price_cent bigint NOT NULL,
    list_price_cent bigint, price_reason text, quantity bigint NOT NULL, vat bigint NOT NULL,
    category text, brand text, price_origin text NOT NULL, serial_number text, tagged bigint NOT NULL, deposit_of text,
    barcode text, weight_grams bigint, kg_price_cent bigint, lot text, expiry text, serial text)`,
  `CREATE INDEX purchase_line_by_purchase ON purchase_line (purchase_id, line_no)`,
  // Finds the purchases of returned goods without a receipt.
  `CREATE INDEX purchase_line_by_ean ON purchase_line (ean, purchase_id) WHERE ean IS NOT NULL`,
  `CREATE TABLE purchase_unit (
    line_id text NOT NULL REFERENCES purchase_line (line_id), unit_no bigint NOT NULL, purchase_id text NOT NULL, item_id text,
    bound bigint NOT NULL, receipt_index bigint, taken_back text, PRIMARY KEY (line_id, unit_no))`,
  `CREATE INDEX purchase_unit_by_purchase ON purchase_unit (purchase_id)`,
  // Finds the unpaid checkout of an item.
  `CREATE INDEX purchase_unit_by_item ON purchase_unit (item_id) WHERE item_id IS NOT NULL`,
]
