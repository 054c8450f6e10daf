/** Shopping sessions, purchases, their lines and units. */
export const PURCHASES: readonly string[] = [
  // `purchase_id`: The newest purchase of the session; null before the first checkout. `completed`: Number of paid
  // purchases of this session that were not cancelled. `spot_check_due`: 1: the session was selected for a spot
  // check, which staff still have to do. `vouched`: 1: a secret key sent the userId, so the merchant vouches for it.
  `CREATE TABLE shopping_session (
    session_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), user_id text,
    created_ms bigint NOT NULL, completed bigint NOT NULL DEFAULT 0, spot_check_due bigint NOT NULL DEFAULT 0,
    vouched bigint NOT NULL DEFAULT 0, purchase_id text)`,
  `CREATE INDEX session_by_spot_check ON shopping_session (tenant, user_id) WHERE spot_check_due = 1`,
  // `session_id`: Null for a sale of a till. `value_cent`: Sum of the goods at their values
  // (cloud/shop/purchases/line-value.ts), without coupons. `completed_position`: Position of the transaction that
  // completed the purchase (positions.ts). `till`: JSON of the names that a till gave its sale (`SaleName` of
  // policy/till-sale.ts); null: sold through untag. `fiscal`: Text of the till's fiscal device.
  `CREATE TABLE purchase (
    purchase_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id),
    session_id text, user_id text, checkout_session_id text, status text NOT NULL, currency text NOT NULL,
    total_cent bigint NOT NULL, value_cent bigint NOT NULL, security_tag_mode text NOT NULL, security_tag_status text, price_origin text NOT NULL,
    cti text UNIQUE, receipt_token text, receipt_exp bigint, cancel_reason text, refund_status text, deny_seq bigint,
    created_ms bigint NOT NULL, completed_ms bigint, rev bigint NOT NULL, approval text, approval_reason text, approved_by text,
    payment_by_ms bigint, completed_position bigint, till text, fiscal text)`,
  `CREATE INDEX purchase_by_store ON purchase (store_id, purchase_id)`,
  `CREATE UNIQUE INDEX purchase_by_checkout ON purchase (checkout_session_id)`,
  `CREATE INDEX purchase_by_tenant ON purchase (tenant, purchase_id)`,
  `CREATE INDEX purchase_by_user ON purchase (tenant, user_id, purchase_id)`,
  `CREATE INDEX purchase_by_receipt ON purchase (tenant, receipt_exp, purchase_id) WHERE receipt_exp IS NOT NULL`,
  `CREATE INDEX purchase_by_receipt_of_store ON purchase (store_id, receipt_exp, purchase_id) WHERE receipt_exp IS NOT NULL`,
  `CREATE INDEX purchase_by_total ON purchase (tenant, total_cent, purchase_id)`,
  `CREATE INDEX purchase_awaiting ON purchase (store_id) WHERE approval = 'awaiting'`,
  `CREATE INDEX purchase_awaiting_of_tenant ON purchase (tenant, purchase_id) WHERE approval = 'awaiting'`,
  `CREATE INDEX purchase_unpaid ON purchase (payment_by_ms) WHERE payment_by_ms IS NOT NULL`,
  `CREATE INDEX purchase_by_completion ON purchase (store_id, completed_ms, purchase_id) WHERE completed_ms IS NOT NULL`,
  `CREATE INDEX purchase_by_refund ON purchase (refund_status) WHERE refund_status IS NOT NULL`,
  `CREATE INDEX purchase_by_position ON purchase (store_id, completed_position, purchase_id) WHERE completed_position IS NOT NULL`,
  // `tenant`: Account of the purchase, so that the search by EAN reads no lines of other accounts. `price_cent`:
  // Negative on a coupon line. `list_price_cent`: Price that the store would have charged; null if no till set
  // another price. `deposit_of`: The line that this deposit belongs to. `barcode`: The scanned label of a scale.
  // `expiry`: `YYYY-MM-DD`. `till_line`: Id that the till gave the line of its sale.
  // `came_back`: Pieces that the till's sale itself took back.
  `CREATE TABLE purchase_line (
    line_id text PRIMARY KEY, purchase_id text NOT NULL REFERENCES purchase (purchase_id), line_no bigint NOT NULL,
    name text NOT NULL, ean text, product_id text, price_cent bigint NOT NULL,
    list_price_cent bigint, price_reason text, quantity bigint NOT NULL, vat bigint NOT NULL,
    category text, brand text, price_origin text NOT NULL, serial_number text, tagged bigint NOT NULL, deposit_of text,
    barcode text, weight_grams bigint, kg_price_cent bigint, lot text, expiry text, serial text, till_line text,
    came_back bigint NOT NULL, tenant text NOT NULL)`,
  `CREATE INDEX purchase_line_by_purchase ON purchase_line (purchase_id, line_no)`,
  // Finds the purchases of returned goods without a receipt.
  `CREATE INDEX purchase_line_by_ean ON purchase_line (tenant, ean, purchase_id) WHERE ean IS NOT NULL`,
  // `taken_back`: Status that a cancellation set for the unit's item; null: the item was not returned.
  `CREATE TABLE purchase_unit (
    line_id text NOT NULL REFERENCES purchase_line (line_id), unit_no bigint NOT NULL, purchase_id text NOT NULL, item_id text,
    bound bigint NOT NULL, receipt_index bigint, taken_back text, PRIMARY KEY (line_id, unit_no))`,
  `CREATE INDEX purchase_unit_by_purchase ON purchase_unit (purchase_id)`,
  // Finds the unpaid checkout of an item.
  `CREATE INDEX purchase_unit_by_item ON purchase_unit (item_id) WHERE item_id IS NOT NULL`,
]

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
  // `card_number`: Number of cards that were issued to the member. Only the last one is valid. `card_hash`: SHA-256
  // of the code of the valid card, hex.
  `CREATE TABLE loyalty_member (
    program_id text NOT NULL REFERENCES loyalty_program (program_id), user_id text NOT NULL, balance bigint NOT NULL,
    month text NOT NULL, enrolled_ms bigint NOT NULL, last_qr_ms bigint, last_visit_ms bigint, next_expiry_ms bigint,
    card_number bigint NOT NULL, card_hash text, PRIMARY KEY (program_id, user_id))`,
  `CREATE UNIQUE INDEX loyalty_member_by_card ON loyalty_member (card_hash)`,
  `CREATE INDEX loyalty_member_by_expiry ON loyalty_member (next_expiry_ms)`,
  // `amount` is signed: deductions are negative. `reverses` is the id of the reversed entry. `earned_on_cent`: Amount
  // of the purchase for which the entry was earned, less earlier refunds, cents; null: the whole total.
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
