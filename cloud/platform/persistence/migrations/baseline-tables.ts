/**
 * Accounts, their keys and registrations; the audit chain, stored responses, the outbox and values of the whole
 * installation.
 */
export const ACCOUNTS: readonly string[] = [
  `CREATE TABLE account (
    account_id text PRIMARY KEY, name text NOT NULL UNIQUE, package text NOT NULL, status text NOT NULL,
    created_ms bigint NOT NULL)`,
  // Settings of an account in one mode. An account without a row has the defaults. `accept_upc`: 1: the catalogue
  // takes UPC-A, UPC-E and EAN-8 with a leading zero.
  `CREATE TABLE account_setting (tenant text PRIMARY KEY, accept_upc bigint NOT NULL)`,
  // `details` contains the submitted fields under the column names of a store. `claim_hash` is the hash of the claim
  // code of a registration without an account. `kind`: `store`: submitted with a key. `account`: submitted without a
  // key; approval creates an account. `tenant`: Tenant that submitted the registration; null: submitted without a
  // key. `network`: Hash of the sender's network or account, until the request was decided and is a day old; null:
  // submitted with a key.
  `CREATE TABLE registration (
    registration_id text PRIMARY KEY, kind text NOT NULL, account_id text REFERENCES account (account_id), tenant text,
    company_name text NOT NULL, details text NOT NULL, claim_hash text, status text NOT NULL, reason text, store_id text,
    submitted_ms bigint NOT NULL, decided_ms bigint, test_claimed_ms bigint, live_claimed_ms bigint,
    network text)`,
  `CREATE INDEX registration_by_network ON registration (network, submitted_ms) WHERE network IS NOT NULL`,
  `CREATE INDEX registration_by_status ON registration (status, registration_id)`,
  `CREATE INDEX registration_by_tenant ON registration (tenant, registration_id)`,
  // `replaced_by`: The key that replaced this one (`rollApiKey`).
  `CREATE TABLE api_key (
    key_id text PRIMARY KEY, account_id text NOT NULL REFERENCES account (account_id), mode text NOT NULL, kind text NOT NULL,
    hash text NOT NULL UNIQUE, shown text NOT NULL, name text NOT NULL, store_ids text, created_ms bigint NOT NULL,
    expires_ms bigint, last_used_ms bigint, revoked_ms bigint, replaced_by text)`,
  `CREATE INDEX api_key_by_account ON api_key (account_id, mode, key_id)`,
  // Columns that sealing sets; null until then. `seq`: Number in the chain of its tenant, from 1.
  `CREATE TABLE audit_entry (
    entry_id text PRIMARY KEY, tenant text NOT NULL, at_ms bigint NOT NULL, actor text NOT NULL, operation text NOT NULL,
    entity_id text, request_id text NOT NULL, seq bigint, prev_hash text, hash text)`,
  `CREATE INDEX audit_entry_by_tenant ON audit_entry (tenant, entry_id)`,
  `CREATE INDEX audit_entry_by_entity ON audit_entry (tenant, entity_id, entry_id)`,
  `CREATE UNIQUE INDEX audit_entry_chain ON audit_entry (tenant, seq) WHERE seq IS NOT NULL`,
  `CREATE INDEX audit_entry_unsealed ON audit_entry (tenant, entry_id) WHERE seq IS NULL`,
  // Last entry of a tenant's chain. `pruned_seq`: Last entry that was deleted because of its age; 0 and an empty hash
  // if none was.
  `CREATE TABLE audit_head (
    tenant text PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL, pruned_seq bigint NOT NULL DEFAULT 0,
    pruned_hash text NOT NULL DEFAULT '')`,
  // `valid_until_ms`: End of the lease of a running request, ms; null once the response is stored.
  `CREATE TABLE idempotency (
    tenant text NOT NULL, operation text NOT NULL, key_hash text NOT NULL, request_hash text NOT NULL, status bigint NOT NULL,
    body text NOT NULL, valid_until_ms bigint, created_ms bigint NOT NULL, PRIMARY KEY (tenant, operation, key_hash))`,
  `CREATE INDEX idempotency_by_age ON idempotency (created_ms)`,
  `CREATE INDEX idempotency_running ON idempotency (created_ms) WHERE status = 0`,
  // `seq`: Sequence number of the event; null until the dispatcher has planned its deliveries. `webhook_id`: The only
  // webhook that receives this event, if it is a test event; null for all other events.
  `CREATE TABLE outbox_event (
    event_id text NOT NULL, tenant text NOT NULL, store_id text, type text NOT NULL, at_ms bigint NOT NULL, data text NOT NULL,
    seq bigint, webhook_id text, PRIMARY KEY (event_id, tenant))`,
  `CREATE INDEX outbox_event_unplanned ON outbox_event (tenant, event_id) WHERE seq IS NULL`,
  `CREATE INDEX outbox_event_by_seq ON outbox_event (seq)`,
  `CREATE INDEX outbox_event_of_tenant ON outbox_event (tenant, seq)`,
  `CREATE INDEX outbox_event_by_age ON outbox_event (at_ms)`,
  `CREATE TABLE installation (name text PRIMARY KEY, value text NOT NULL)`,
  // One row: the offset between transaction ids and positions (positions.ts).
  `CREATE TABLE position_offset (id bigint PRIMARY KEY, value bigint NOT NULL)`,
  // A task that one process at a time does for all processes. `holder`: Id of the process. `beat`: The holder raises
  // this number regularly. If the number stays the same, another process takes over the lease.
  `CREATE TABLE process_lease (name text PRIMARY KEY, holder text NOT NULL, beat bigint NOT NULL)`,
  // An erased customer. A restored backup repeats the erasure. `sealed`: Tenant and customer id as JSON, sealed.
  // `done_ms`: Null while the erasure is incomplete.
  `CREATE TABLE erasure (erasure_id text PRIMARY KEY, sealed text NOT NULL, at_ms bigint NOT NULL, done_ms bigint)`,
]

/**
 * Stores and products. The catalogue reads derived data: one rendered document per store and product (`doc`), search
 * terms and counts. The derived data is computed from `product` and `store_product`.
 */
export const STORES: readonly string[] = [
  // `in_store_codes`: Patterns of the store's own barcodes, JSON; null: the default patterns. `gln`: 13 digits.
  // `min_agent`: `minAgent` of the policy. `policy`: Up to 160 kB, so lists do not read it. It is the last column,
  // because SQLite walks through a long text to reach the columns after it.
  `CREATE TABLE store (
    store_id text PRIMARY KEY, tenant text NOT NULL, legal_name text NOT NULL, trading_name text NOT NULL, street text NOT NULL,
    city text NOT NULL, postal_code text NOT NULL, country_code text NOT NULL, lat double precision, lng double precision,
    phone text, email text, website text, package text NOT NULL, has_scan_and_go bigint NOT NULL, has_offers bigint NOT NULL,
    opening_hours text, media text, social text, psp_account_id text,
    security_tag_mode text NOT NULL, security_tag_hint text, protection_technology text, device_type text, workflow_type text,
    policy_version bigint NOT NULL, document_version bigint NOT NULL, deny_seq bigint NOT NULL,
    created_ms bigint NOT NULL, in_store_codes text, gln text, min_agent text, policy text NOT NULL)`,
  `CREATE INDEX store_by_tenant ON store (tenant, store_id)`,
  // `nutrition`: JSON. `media_snapshot`: Address of the uploaded image. `deposit_cent`: Deposit for one piece.
  // `deposit_vat`: VAT rate of the deposit, percent; null: the product's rate.
  `CREATE TABLE product (
    product_id text PRIMARY KEY, tenant text NOT NULL, ean text NOT NULL, name text NOT NULL, name_lower text NOT NULL,
    brand text, brand_lower text, price_cent bigint NOT NULL, old_price_cent bigint, vat bigint NOT NULL, category text,
    unit text, description text, image_url text, weight text, is_organic bigint, is_vegan bigint, allergens text,
    requires_human_verification bigint NOT NULL, tagged bigint NOT NULL, created_ms bigint NOT NULL, updated_ms bigint NOT NULL,
    nutrition text, media_snapshot text, from_pos bigint NOT NULL DEFAULT 0, pos_product_id text, deposit_cent bigint,
    deposit_vat bigint, UNIQUE (tenant, ean))`,
  // Small picture of an uploaded image, for the agents. `image_url`: Address of the image, as products name it.
  // `hash`: SHA-256 of the picture, base64url. `bytes`: WebP, base64url.
  `CREATE TABLE product_picture (image_url text PRIMARY KEY, hash text NOT NULL, bytes text NOT NULL)`,
  // Bytes of the pictures that a tenant uploaded, also of those that it replaced: their files stay.
  `CREATE TABLE image_room (tenant text PRIMARY KEY, bytes bigint NOT NULL)`,
  `CREATE INDEX product_picture_by_hash ON product_picture (hash)`,
  // `category`: The product's category, folded, for filters. Null if it is blank. `updated_ms`: Time of the last
  // price change in this store. `doc`: JSON of the product with this store's price, as responses contain it. `words`:
  // The search terms of the product, with a space before and after each. `listing_no`: Number of this listing in the
  // search index; unique in the store.
  `CREATE TABLE store_product (
    store_id text NOT NULL REFERENCES store (store_id), product_id text NOT NULL REFERENCES product (product_id),
    price_cent bigint NOT NULL, old_price_cent bigint, category text, updated_ms bigint NOT NULL DEFAULT 0,
    doc text NOT NULL DEFAULT '', words text NOT NULL, listing_no bigint NOT NULL, PRIMARY KEY (store_id, product_id))`,
  // The number after CACHE is LISTING_BLOCK of listing-numbers.ts. Dropping the table drops the sequence, too.
  `CREATE SEQUENCE listing_number MINVALUE 0 CACHE 4096 OWNED BY store_product.listing_no`,
  `CREATE UNIQUE INDEX store_product_by_number ON store_product (store_id, listing_no)`,
  `CREATE INDEX store_product_by_product ON store_product (product_id, store_id)`,
  `CREATE INDEX store_product_by_category ON store_product (store_id, category, product_id)`,
  // Changed products. A job writes their listings in the stores after `after_store`, then from the first store if
  // `again` is 1. `queued_ms`: Time of the change. An account's products are processed in this order. `again`: 1 if
  // the product changed again: all its listings must be written once more after this pass. `is_news`: 1 if agents
  // must receive the items of the product again.
  `CREATE TABLE listing_refresh (
    product_id text PRIMARY KEY REFERENCES product (product_id), tenant text NOT NULL, queued_ms bigint NOT NULL,
    after_store text NOT NULL, again bigint NOT NULL, is_news bigint NOT NULL)`,
  `CREATE INDEX listing_refresh_by_tenant ON listing_refresh (tenant, queued_ms, product_id)`,
  // Sorted by bytes, because a prefix search is a range of bytes. A row contains all listings of one block that have
  // the word (shop/catalogue/search-queries.ts). `block`: Listing number divided by `LISTING_BLOCK`. `products`: The
  // listings, as shop/catalogue/search-queries.ts writes them.
  `CREATE TABLE product_word (
    store_id text NOT NULL, word text COLLATE "C" NOT NULL, block bigint NOT NULL, products text NOT NULL,
    PRIMARY KEY (store_id, word, block)) /* clustered */`,
  // These tables stay empty. PostgreSQL transactions lock them (ADR database).
  `CREATE TABLE gate_catalogue (unused bigint)`,
  `CREATE TABLE gate_sales (unused bigint)`,
  // The category '' stands for all categories. A count is the sum over all slots. Each connection to PostgreSQL adds to
  // a row of its own, so that concurrent writers do not wait for each other.
  `CREATE TABLE product_count (
    store_id text NOT NULL, category text NOT NULL, slot bigint NOT NULL DEFAULT (pg_backend_pid() % 128),
    products bigint NOT NULL, PRIMARY KEY (store_id, category, slot))`,
]

/** Shopping sessions, purchases, their lines and units. */
export const PURCHASES: readonly string[] = [
  // `purchase_id`: The newest purchase of the session; null before the first checkout. `completed`: Number of paid
  // purchases of this session that were not cancelled. `spot_check_due`: 1: the session was selected for a spot
  // check, which staff still have to do. `vouched`: 1: a secret key sent the userId, so the merchant vouches for it.
  `CREATE TABLE shopping_session (
    session_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), user_id text,
    created_ms bigint NOT NULL, completed bigint NOT NULL DEFAULT 0, spot_check_due bigint NOT NULL DEFAULT 0,
    vouched bigint NOT NULL DEFAULT 0, purchase_id text)`,
  // Exports and erasures of a customer's data, as `pickup_order_by_user`.
  `CREATE INDEX session_by_user ON shopping_session (tenant, user_id, session_id) WHERE user_id IS NOT NULL`,
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
  // Last characters of the number, as people read them from a list.
  `CREATE INDEX purchase_by_end ON purchase (tenant, (substr(purchase_id, 25, 6)), purchase_id)`,
  `CREATE INDEX purchase_by_total ON purchase (tenant, total_cent, purchase_id)`,
  `CREATE INDEX purchase_awaiting ON purchase (store_id) WHERE approval = 'awaiting'`,
  `CREATE INDEX purchase_awaiting_of_tenant ON purchase (tenant, purchase_id) WHERE approval = 'awaiting'`,
  `CREATE INDEX purchase_unpaid ON purchase (tenant, payment_by_ms, purchase_id) WHERE payment_by_ms IS NOT NULL`,
  `CREATE INDEX purchase_by_completion ON purchase (store_id, completed_ms, purchase_id) WHERE completed_ms IS NOT NULL`,
  `CREATE INDEX purchase_by_refund ON purchase (tenant, store_id, (coalesce(deny_seq, 0)), purchase_id)
    WHERE refund_status = 'pending'`,
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
  `CREATE INDEX loyalty_member_by_expiry ON loyalty_member (program_id, next_expiry_ms, user_id)
    WHERE next_expiry_ms IS NOT NULL`,
  // `amount` is signed: deductions are negative. `reverses` is the id of the reversed entry. `earned_on_cent`: Amount
  // of the purchase for which the entry was earned, less earlier refunds, cents; null: the whole total.
  `CREATE TABLE loyalty_entry (
    entry_id text PRIMARY KEY, tenant text NOT NULL, program_id text NOT NULL, user_id text NOT NULL, kind text NOT NULL,
    amount bigint NOT NULL, balance bigint NOT NULL, source text, transaction_id text, reward_id text, reverses text,
    month text NOT NULL, at_ms bigint NOT NULL, expires_ms bigint, earned_on_cent bigint,
    FOREIGN KEY (program_id, user_id) REFERENCES loyalty_member (program_id, user_id))`,
  `CREATE INDEX loyalty_entry_by_member ON loyalty_entry (program_id, user_id, entry_id)`,
  `CREATE INDEX loyalty_entry_by_month ON loyalty_entry (program_id, month, kind, amount)`,
  `CREATE INDEX loyalty_entry_reversing ON loyalty_entry (reverses) WHERE reverses IS NOT NULL`,
  `CREATE INDEX loyalty_entry_by_transaction ON loyalty_entry (tenant, transaction_id)`,
  // Each `transaction_id` earns at most once in a program.
  `CREATE UNIQUE INDEX loyalty_earned_once ON loyalty_entry (program_id, transaction_id) WHERE kind = 'earn'`,
  // Sums of the entries by month and kind; kind 'join' counts new members. The transaction of an entry also updates
  // these sums.
  `CREATE TABLE loyalty_month (
    program_id text NOT NULL, month text NOT NULL, kind text NOT NULL, amount bigint NOT NULL, entries bigint NOT NULL,
    PRIMARY KEY (program_id, month, kind))`,
]
