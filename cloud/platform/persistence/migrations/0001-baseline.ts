import { ACCOUNTS } from './baseline/accounts.ts'
import { AGENTS } from './baseline/agents.ts'
import { PROTECTION } from './baseline/protection.ts'
import { STORES } from './baseline/stores.ts'
import type { Migration } from './migration.ts'

/** Shopping sessions, purchases, their lines and units. */
const PURCHASES: readonly string[] = [
  `CREATE TABLE shopping_session (
    session_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), user_id text,
    created_ms bigint NOT NULL, completed bigint NOT NULL DEFAULT 0, spot_check_due bigint NOT NULL DEFAULT 0,
    vouched bigint NOT NULL DEFAULT 0, purchase_id text)`,
  `CREATE INDEX session_by_spot_check ON shopping_session (tenant, user_id) WHERE spot_check_due = 1`,
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
  `CREATE INDEX purchase_unpaid ON purchase (payment_by_ms) WHERE payment_by_ms IS NOT NULL`,
  `CREATE INDEX purchase_by_completion ON purchase (store_id, completed_ms, purchase_id) WHERE completed_ms IS NOT NULL`,
  `CREATE INDEX purchase_by_refund ON purchase (refund_status) WHERE refund_status IS NOT NULL`,
  `CREATE INDEX purchase_by_position ON purchase (store_id, completed_position, purchase_id) WHERE completed_position IS NOT NULL`,
  `CREATE TABLE purchase_line (
    line_id text PRIMARY KEY, purchase_id text NOT NULL REFERENCES purchase (purchase_id), line_no bigint NOT NULL,
    name text NOT NULL, ean text, product_id text, price_cent bigint NOT NULL,
    list_price_cent bigint, price_reason text, quantity bigint NOT NULL, vat bigint NOT NULL,
    category text, brand text, price_origin text NOT NULL, serial_number text, tagged bigint NOT NULL, deposit_of text,
    barcode text, weight_grams bigint, kg_price_cent bigint, lot text, expiry text, serial text, till_line text,
    tenant text NOT NULL)`,
  `CREATE INDEX purchase_line_by_purchase ON purchase_line (purchase_id, line_no)`,
  // Finds the purchases of returned goods without a receipt.
  `CREATE INDEX purchase_line_by_ean ON purchase_line (tenant, ean, purchase_id) WHERE ean IS NOT NULL`,
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
const LOYALTY: readonly string[] = [
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

/** Users of the console, their sessions and failed sign-ins. */
const USERS: readonly string[] = [
  `CREATE TABLE console_user (
    user_id text PRIMARY KEY, account_id text NOT NULL REFERENCES account (account_id), email text NOT NULL,
    name text NOT NULL, role text NOT NULL, store_ids text, sandbox_only bigint NOT NULL, mode text NOT NULL,
    password_hash text, invited_by text NOT NULL, created_ms bigint NOT NULL, accepted_ms bigint,
    last_sign_in_ms bigint, invitation_hash text UNIQUE, invitation_expires_ms bigint,
    totp_secret text, totp_step bigint NOT NULL, recovery_codes text NOT NULL, UNIQUE (account_id, email))`,
  `CREATE INDEX console_user_by_email ON console_user (email)`,
  `CREATE TABLE user_session (
    session_id text PRIMARY KEY, token_hash text NOT NULL UNIQUE, user_id text NOT NULL REFERENCES console_user (user_id),
    mode text NOT NULL, state text NOT NULL, second_factor bigint NOT NULL, user_agent text NOT NULL,
    created_ms bigint NOT NULL, seen_ms bigint NOT NULL, expires_ms bigint NOT NULL,
    totp_next text, totp_next_expires_ms bigint, passkey_challenge text, passkey_challenge_expires_ms bigint)`,
  `CREATE INDEX user_session_by_user ON user_session (user_id, session_id)`,
  `CREATE INDEX user_session_by_expiry ON user_session (expires_ms)`,
  `CREATE TABLE user_identity (
    issuer text NOT NULL, subject text NOT NULL, created_ms bigint NOT NULL,
    user_id text NOT NULL REFERENCES console_user (user_id) ON DELETE CASCADE,
    PRIMARY KEY (issuer, subject, user_id))`,
  `CREATE INDEX user_identity_by_user ON user_identity (user_id)`,
  `CREATE TABLE user_passkey (
    passkey_id text PRIMARY KEY, credential_id text NOT NULL UNIQUE,
    user_id text NOT NULL REFERENCES console_user (user_id), name text NOT NULL, public_key text NOT NULL,
    counter bigint NOT NULL, transports text NOT NULL, backed_up bigint NOT NULL, created_ms bigint NOT NULL,
    last_used_ms bigint)`,
  `CREATE INDEX user_passkey_by_user ON user_passkey (user_id, passkey_id)`,
  `CREATE TABLE used_challenge (challenge text PRIMARY KEY, expires_ms bigint NOT NULL)`,
  `CREATE INDEX used_challenge_by_expiry ON used_challenge (expires_ms)`,
  `CREATE TABLE sign_in_failure (subject text PRIMARY KEY, count bigint NOT NULL, since_ms bigint NOT NULL)`,
  `CREATE INDEX sign_in_failure_by_age ON sign_in_failure (since_ms)`,
]

/**
 * Counters per store and day, closings, followers and favourite offers. A counter changes in the transaction that
 * causes the change.
 */
const ANALYTICS: readonly string[] = [
  // `day` is a date in the store's time zone. `receipts` and `refunds` count what happened on that day and never
  // decrease. Later cancellations reduce the other counters. A figure is the sum over all slots, as in product_count
  // (stores.ts).
  `CREATE TABLE store_day (
    store_id text NOT NULL, day text NOT NULL, tenant text NOT NULL, sessions bigint NOT NULL, sessions_completed bigint NOT NULL,
    completed_checkouts bigint NOT NULL, revenue_cent bigint NOT NULL, items_scanned bigint NOT NULL,
    offer_clicks bigint NOT NULL, offer_favorites bigint NOT NULL, profile_views bigint NOT NULL, messages bigint NOT NULL,
    new_followers bigint NOT NULL, lost_followers bigint NOT NULL, receipts bigint NOT NULL, refunds bigint NOT NULL,
    till_sales bigint NOT NULL, till_receipts bigint NOT NULL, till_refunds bigint NOT NULL, till_cent bigint NOT NULL, till_items bigint NOT NULL,
    slot bigint NOT NULL DEFAULT (pg_backend_pid() % 128), PRIMARY KEY (store_id, day, slot))`,
  // Gross amounts and the tax in them, summed from the receipts and refunds of that day.
  `CREATE TABLE store_day_vat (
    store_id text NOT NULL, day text NOT NULL, rate bigint NOT NULL, is_till bigint NOT NULL, tenant text NOT NULL, sales_cent bigint NOT NULL,
    sales_tax_cent bigint NOT NULL, refund_cent bigint NOT NULL, refund_tax_cent bigint NOT NULL,
    slot bigint NOT NULL DEFAULT (pg_backend_pid() % 128), PRIMARY KEY (store_id, day, rate, is_till, slot))`,
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

/** Payment providers of stores, payments and refunds. */
const PAYMENTS: readonly string[] = [
  // A replaced configuration that was used for payments is kept, because refunds need its credentials.
  `CREATE TABLE psp_config (
    config_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), provider text NOT NULL,
    sealed text NOT NULL, is_current bigint NOT NULL, created_ms bigint NOT NULL)`,
  `CREATE UNIQUE INDEX one_psp_a_store ON psp_config (store_id) WHERE is_current = 1`,
  `CREATE INDEX psp_config_by_store ON psp_config (store_id, provider, created_ms)`,
  `CREATE TABLE payment (
    payment_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL,
    purchase_id text NOT NULL REFERENCES purchase (purchase_id), config_id text NOT NULL REFERENCES psp_config (config_id),
    provider text NOT NULL, provider_ref text, charge_ref text, url text, amount_cent bigint NOT NULL, currency text NOT NULL,
    state text NOT NULL, applied bigint NOT NULL, checks bigint NOT NULL, due_ms bigint, created_ms bigint NOT NULL,
    paid_ms bigint)`,
  `CREATE INDEX payment_by_purchase ON payment (purchase_id)`,
  `CREATE INDEX payment_by_ref ON payment (config_id, provider_ref)`,
  `CREATE INDEX payment_by_charge ON payment (config_id, charge_ref) WHERE charge_ref IS NOT NULL`,
  `CREATE UNIQUE INDEX one_open_payment ON payment (purchase_id) WHERE state IN ('asking', 'open')`,
  `CREATE INDEX payment_by_due ON payment (due_ms) WHERE due_ms IS NOT NULL`,
  `CREATE TABLE refund (
    refund_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL,
    purchase_id text NOT NULL REFERENCES purchase (purchase_id), payment_id text REFERENCES payment (payment_id),
    kind text NOT NULL, amount_cent bigint NOT NULL, currency text NOT NULL, lines text, reason text, state text NOT NULL,
    in_doubt bigint NOT NULL, attempts bigint NOT NULL, sent_ms bigint, due_ms bigint, provider_ref text,
    outside text, notice_rank bigint, created_ms bigint NOT NULL, finished_ms bigint, counted text, requested_by text)`,
  `CREATE INDEX refund_by_purchase ON refund (purchase_id)`,
  `CREATE INDEX refund_by_due ON refund (due_ms) WHERE due_ms IS NOT NULL`,
  `CREATE INDEX refund_by_payment ON refund (payment_id)`,
]

/**
 * Offers. `offer_group` contains the data that all branches share; `offer` is the document of one store. `offer_list`
 * contains products and prices. Branches with the same prices share a list.
 */
const OFFERS: readonly string[] = [
  `CREATE TABLE offer_group (
    group_id text PRIMARY KEY, tenant text NOT NULL, lead_id text NOT NULL UNIQUE, title text NOT NULL, description text NOT NULL,
    description_generated bigint NOT NULL, merchant_color text NOT NULL, tags text, image_url text, quantity bigint,
    valid_from_ms bigint NOT NULL, valid_to_ms bigint NOT NULL, status text NOT NULL, due_ms bigint,
    discount_percent bigint NOT NULL, product_count bigint NOT NULL, store_count bigint NOT NULL, created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL, rev bigint NOT NULL)`,
  `CREATE INDEX offer_group_by_tenant ON offer_group (tenant, lead_id)`,
  `CREATE INDEX offer_group_by_due ON offer_group (due_ms) WHERE due_ms IS NOT NULL`,
  `CREATE TABLE offer_list (
    list_id text PRIMARY KEY, tenant text NOT NULL, products text NOT NULL, discount_percent bigint NOT NULL)`,
  `CREATE TABLE offer_price (
    list_id text NOT NULL REFERENCES offer_list (list_id), ean text NOT NULL, price_cent bigint NOT NULL,
    PRIMARY KEY (list_id, ean))`,
  // The validity is a copy from `offer_group`, so that the offers for a basket are one range of one index.
  `CREATE TABLE offer (
    offer_id text PRIMARY KEY, tenant text NOT NULL, group_id text NOT NULL REFERENCES offer_group (group_id),
    branch_no bigint NOT NULL, store_id text NOT NULL REFERENCES store (store_id),
    list_id text NOT NULL REFERENCES offer_list (list_id), is_active bigint NOT NULL, valid_from_ms bigint NOT NULL,
    valid_to_ms bigint NOT NULL, click_count bigint NOT NULL, favorited_count bigint NOT NULL, created_ms bigint NOT NULL)`,
  `CREATE INDEX offer_by_group ON offer (group_id, branch_no)`,
  `CREATE UNIQUE INDEX one_branch_a_store ON offer (group_id, store_id) WHERE is_active = 1`,
  `CREATE INDEX offer_by_store ON offer (store_id, is_active, valid_to_ms)`,
  `CREATE INDEX offer_by_list ON offer (list_id)`,
]

/** Webhooks, their subscriptions, deliveries and attempts. */
const WEBHOOKS: readonly string[] = [
  `CREATE TABLE webhook (
    webhook_id text PRIMARY KEY, tenant text NOT NULL, store_id text REFERENCES store (store_id), url text NOT NULL,
    url_key text NOT NULL, enabled bigint NOT NULL, disabled_reason text, disabled_ms bigint, secret text NOT NULL,
    old_secret text, old_until_ms bigint, failed_in_row bigint NOT NULL, failing_since_ms bigint, missed_ms bigint, created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL)`,
  `CREATE UNIQUE INDEX webhook_by_target ON webhook (tenant, coalesce(store_id, '*'), url_key)`,
  `CREATE TABLE webhook_subscription (
    tenant text NOT NULL, event text NOT NULL, webhook_id text NOT NULL REFERENCES webhook (webhook_id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, event, webhook_id))`,
  `CREATE INDEX webhook_subscription_by_webhook ON webhook_subscription (webhook_id)`,
  `CREATE TABLE webhook_delivery (
    delivery_id text PRIMARY KEY, tenant text NOT NULL, webhook_id text NOT NULL, event_id text NOT NULL, type text NOT NULL,
    store_id text, status text NOT NULL, attempts bigint NOT NULL, first_ms bigint, due_ms bigint, lease_id text,
    created_ms bigint NOT NULL, finished_ms bigint)`,
  `CREATE INDEX webhook_delivery_pending ON webhook_delivery (webhook_id, due_ms, delivery_id) WHERE status = 'pending'`,
  `CREATE INDEX webhook_delivery_waiting ON webhook_delivery (tenant) WHERE status = 'pending'`,
  `CREATE INDEX webhook_delivery_by_tenant ON webhook_delivery (tenant, delivery_id)`,
  `CREATE INDEX webhook_delivery_by_webhook ON webhook_delivery (webhook_id, delivery_id)`,
  `CREATE INDEX webhook_delivery_by_age ON webhook_delivery (created_ms)`,
  `CREATE TABLE webhook_attempt (
    delivery_id text NOT NULL REFERENCES webhook_delivery (delivery_id) ON DELETE CASCADE, attempt bigint NOT NULL,
    at_ms bigint NOT NULL, took_ms bigint NOT NULL, status bigint, error text, answer text, PRIMARY KEY (delivery_id, attempt))`,
]

/** Zones of a store, requests for help and their messages. */
const ASSISTANCE: readonly string[] = [
  `CREATE TABLE zone (
    zone_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
    created_ms bigint NOT NULL)`,
  `CREATE INDEX zone_by_store ON zone (store_id, zone_id)`,
  // `ticket_hash` is the hash of the secret in the address of the shopper's page. `subject` is the denial or alarm
  // for which the request was opened; each has at most one open request. `requested_by` is the user or key of a call to
  // an alarm.
  `CREATE TABLE assistance_request (
    request_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), zone_id text,
    user_id text, reason text NOT NULL, device_id text, purchase_id text, subject text, requested_by text,
    ticket_hash text UNIQUE, status text NOT NULL, message_count bigint NOT NULL, created_ms bigint NOT NULL, updated_ms bigint NOT NULL,
    network text)`,
  `CREATE INDEX assistance_request_by_store ON assistance_request (store_id, request_id)`,
  `CREATE INDEX assistance_request_open ON assistance_request (store_id, status) WHERE status <> 'closed'`,
  `CREATE UNIQUE INDEX assistance_request_of_subject ON assistance_request (store_id, subject) WHERE status <> 'closed' AND subject IS NOT NULL`,
  `CREATE INDEX assistance_request_by_user ON assistance_request (tenant, user_id)`,
  `CREATE INDEX assistance_request_by_age ON assistance_request (updated_ms)`,
  `CREATE TABLE assistance_message (
    request_id text NOT NULL REFERENCES assistance_request (request_id), number bigint NOT NULL, author text NOT NULL,
    text text NOT NULL, at_ms bigint NOT NULL, PRIMARY KEY (request_id, number))`,
]

/** Pickup orders, their lines and the tagged items that are reserved for them. */
const CLICK_AND_COLLECT: readonly string[] = [
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

/** Push subscriptions and the notices that wait for delivery. */
const PUSH: readonly string[] = [
  `CREATE TABLE push_subscription (
    subscription_id text PRIMARY KEY, tenant text NOT NULL, kind text NOT NULL, target text NOT NULL, user_id text, store_id text,
    session_id text REFERENCES user_session (session_id) ON DELETE CASCADE,
    endpoint_hash text NOT NULL, sealed text NOT NULL, failed_in_row bigint NOT NULL, created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL)`,
  `CREATE UNIQUE INDEX push_subscription_by_endpoint ON push_subscription (tenant, endpoint_hash, target)`,
  `CREATE INDEX push_subscription_by_target ON push_subscription (tenant, target)`,
  `CREATE INDEX push_subscription_by_user ON push_subscription (tenant, user_id) WHERE user_id IS NOT NULL`,
  `CREATE INDEX push_subscription_by_session ON push_subscription (session_id) WHERE session_id IS NOT NULL`,
  `CREATE INDEX push_subscription_of_users ON push_subscription (tenant, session_id) WHERE session_id IS NOT NULL`,
  `CREATE TABLE push_delivery (
    delivery_id text PRIMARY KEY, tenant text NOT NULL,
    subscription_id text NOT NULL REFERENCES push_subscription (subscription_id) ON DELETE CASCADE, user_id text,
    body text NOT NULL, urgency text NOT NULL, topic text NOT NULL, attempts bigint NOT NULL, due_ms bigint NOT NULL,
    lease_id text, expires_ms bigint NOT NULL)`,
  `CREATE INDEX push_delivery_due ON push_delivery (tenant, due_ms, delivery_id)`,
  `CREATE INDEX push_delivery_by_subscription ON push_delivery (subscription_id)`,
  `CREATE INDEX push_delivery_by_user ON push_delivery (tenant, user_id) WHERE user_id IS NOT NULL`,
]

/** Connections to tills and ERP systems, the progress of each import, and records of an ERP. */
const INTEGRATIONS: readonly string[] = [
  `CREATE TABLE integration_connection (
    connection_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), side text NOT NULL,
    system text NOT NULL, sealed text, lease_id text, lease_until_ms bigint NOT NULL, updated_ms bigint NOT NULL)`,
  `CREATE UNIQUE INDEX one_connection_a_system ON integration_connection (store_id, side, system)`,
  // One row per unfinished import, with the cursor of the next page and the counts of the pages read so far.
  `CREATE TABLE integration_pull (
    store_id text NOT NULL REFERENCES store (store_id), side text NOT NULL, system text NOT NULL, data_type text NOT NULL,
    tenant text NOT NULL, source text NOT NULL, next_cursor text, is_done bigint NOT NULL, counts text NOT NULL,
    started_ms bigint NOT NULL, updated_ms bigint NOT NULL, PRIMARY KEY (store_id, side, system, data_type))`,
  `CREATE TABLE erp_record (
    store_id text NOT NULL REFERENCES store (store_id), data_type text NOT NULL, system text NOT NULL,
    external_id text COLLATE "C" NOT NULL, tenant text NOT NULL, doc text NOT NULL, updated_ms bigint NOT NULL,
    PRIMARY KEY (store_id, data_type, system, external_id))`,
]

/**
 * Stock levels and reservations. `reserved` is the sum of the reservations with state `held`. Each transaction that
 * changes a reservation also updates `reserved`. If a product has no row, or `on_hand` is null, its stock is unknown.
 */
const STOCK: readonly string[] = [
  `CREATE TABLE stock_level (
    store_id text NOT NULL REFERENCES store (store_id), product_id text NOT NULL REFERENCES product (product_id), on_hand bigint,
    reserved bigint NOT NULL CHECK (reserved >= 0), updated_ms bigint NOT NULL, PRIMARY KEY (store_id, product_id))`,
  `CREATE TABLE stock_reservation (
    owner_id text NOT NULL, product_id text NOT NULL, store_id text NOT NULL, quantity bigint NOT NULL, state text NOT NULL,
    gives_way bigint NOT NULL, expires_ms bigint NOT NULL, PRIMARY KEY (owner_id, product_id))`,
  `CREATE INDEX stock_reservation_by_expiry ON stock_reservation (state, expires_ms)`,
  `CREATE INDEX stock_reservation_by_product ON stock_reservation (store_id, product_id, gives_way, state, expires_ms)`,
]

/** Sales of tills: their identities, printed codes, returns, revoked tills and limits. */
const TILLS: readonly string[] = [
  `CREATE TABLE till_sale (
    sale_key text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), till_id text,
    series text, sale_id text NOT NULL, state text NOT NULL, version bigint NOT NULL, content text,
    purchase_id text REFERENCES purchase (purchase_id), result text, agent_id text, stored_ms bigint NOT NULL, due_ms bigint)`,
  `CREATE UNIQUE INDEX till_sale_by_purchase ON till_sale (purchase_id)`,
  `CREATE INDEX till_sale_by_number ON till_sale (store_id, sale_id)`,
  `CREATE INDEX till_sale_by_till ON till_sale (store_id, till_id, stored_ms)`,
  `CREATE INDEX till_sale_by_due ON till_sale (due_ms) WHERE due_ms IS NOT NULL`,
  `CREATE INDEX till_sale_by_time ON till_sale (stored_ms)`,
  `CREATE TABLE receipt_code (
    store_id text NOT NULL, code text NOT NULL, sale_key text NOT NULL, stored_ms bigint NOT NULL,
    PRIMARY KEY (store_id, code, sale_key))`,
  `CREATE INDEX receipt_code_by_time ON receipt_code (stored_ms)`,
  `CREATE TABLE till_return (
    return_key text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), sale_key text NOT NULL,
    body text NOT NULL, content text NOT NULL, result text, stored_ms bigint NOT NULL, due_ms bigint)`,
  `CREATE INDEX till_return_by_time ON till_return (stored_ms)`,
  `CREATE INDEX till_return_by_sale ON till_return (sale_key)`,
  `CREATE INDEX till_return_by_due ON till_return (due_ms) WHERE due_ms IS NOT NULL`,
  `CREATE TABLE till_revocation (
    store_id text NOT NULL REFERENCES store (store_id), till_id text NOT NULL, tenant text NOT NULL, since_ms bigint NOT NULL,
    revoked_ms bigint NOT NULL, PRIMARY KEY (store_id, till_id))`,
  `CREATE TABLE till_hour (
    store_id text NOT NULL, till_id text NOT NULL, hour bigint NOT NULL, sales bigint NOT NULL, value_cent bigint NOT NULL,
    PRIMARY KEY (store_id, till_id, hour))`,
]

/** Signing keys, sealed secrets and the newest signed document of each kind. */
const AUTHORITY: readonly string[] = [
  `CREATE TABLE signing_key (
    kid text PRIMARY KEY, iss text NOT NULL, key_use text NOT NULL, x text NOT NULL, sealed text NOT NULL, state text NOT NULL,
    created_ms bigint NOT NULL, changed_ms bigint NOT NULL DEFAULT 0)`,
  `CREATE UNIQUE INDEX one_active_key ON signing_key (iss, key_use) WHERE state = 'active'`,
  `CREATE UNIQUE INDEX one_next_key ON signing_key (iss, key_use) WHERE state = 'next'`,
  `CREATE TABLE sealed_secret (name text PRIMARY KEY, sealed text NOT NULL)`,
  `CREATE TABLE signed_document (
    kind text NOT NULL, aud text NOT NULL, epoch bigint NOT NULL, ver bigint NOT NULL, hash text NOT NULL, jws text NOT NULL,
    iat bigint NOT NULL, PRIMARY KEY (kind, aud))`,
]

/**
 * The schema of release 0.1.0. Each file in `baseline/` creates the tables that the file of the same name in
 * `../tables` describes.
 *
 * The SQL is portable and uses no date functions. Ids are texts that the cloud creates, money is whole cents, times are
 * whole ms since 1970, booleans are 0 and 1, JSON is text. `tenant` is `{accountId}.{mode}`: test and live data never
 * mix.
 */
export const BASELINE: Migration = {
  name: '0001-baseline',
  // A table comes after the tables that it references.
  statements: [
    ...ACCOUNTS,
    ...USERS,
    ...AUTHORITY,
    ...STORES,
    ...STOCK,
    ...OFFERS,
    ...PURCHASES,
    ...TILLS,
    ...PAYMENTS,
    ...CLICK_AND_COLLECT,
    ...LOYALTY,
    ...ANALYTICS,
    ...ASSISTANCE,
    ...INTEGRATIONS,
    ...WEBHOOKS,
    ...PUSH,
    ...AGENTS,
    ...PROTECTION,
  ],
}
