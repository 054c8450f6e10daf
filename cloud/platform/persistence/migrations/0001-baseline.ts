import { AGENTS, PROTECTION } from './baseline-protection.ts'
import { ACCOUNTS, STORES, LOYALTY, PURCHASES } from './baseline-tables.ts'
import type { Migration } from './migration.ts'

/** Users of the console, their sessions and failed sign-ins. */
const USERS: readonly string[] = [
  // `email`: ASCII, with small letters. `store_ids`: JSON list of the stores that the user may access; null: all
  // stores of the account. `sandbox_only`: 1: the user may see sandbox data only. `mode`: Mode in which the next
  // session starts. `password_hash`: Null until the user accepts the invitation. `invited_by`: Id of the user, or
  // `command line`. `invitation_hash`: Hash of the token of the open invitation; null: none is open. `totp_secret`:
  // Sealed secret of the authenticator app; null: the user has no second factor. `totp_step`: Number of the 30 s step
  // of the last code. Codes of this step and of earlier ones are used. `recovery_codes`: JSON list with the hashes of
  // the unused recovery codes.
  `CREATE TABLE console_user (
    user_id text PRIMARY KEY, account_id text NOT NULL REFERENCES account (account_id), email text NOT NULL,
    name text NOT NULL, role text NOT NULL, store_ids text, sandbox_only bigint NOT NULL, mode text NOT NULL,
    password_hash text, invited_by text NOT NULL, created_ms bigint NOT NULL, accepted_ms bigint,
    last_sign_in_ms bigint, invitation_hash text UNIQUE, invitation_expires_ms bigint,
    totp_secret text, totp_step bigint NOT NULL, recovery_codes text NOT NULL, UNIQUE (account_id, email))`,
  `CREATE INDEX console_user_by_email ON console_user (email)`,
  // `state`: `pending`: the password was right, and the second factor is missing. `user_agent`: Browser, as it names
  // itself. `totp_next`: Sealed secret of a new authenticator app, which a code must confirm in this session; null:
  // none was begun. `passkey_challenge`: Challenge for a new passkey, which this session may register; null: none was
  // begun.
  `CREATE TABLE user_session (
    session_id text PRIMARY KEY, token_hash text NOT NULL UNIQUE, user_id text NOT NULL REFERENCES console_user (user_id),
    mode text NOT NULL, state text NOT NULL, second_factor bigint NOT NULL, user_agent text NOT NULL,
    created_ms bigint NOT NULL, seen_ms bigint NOT NULL, expires_ms bigint NOT NULL,
    totp_next text, totp_next_expires_ms bigint, passkey_challenge text, passkey_challenge_expires_ms bigint)`,
  `CREATE INDEX user_session_by_user ON user_session (user_id, session_id)`,
  `CREATE INDEX user_session_by_expiry ON user_session (expires_ms)`,
  // A person at an OpenID Connect provider who signs in as a user. One person may be users of several accounts.
  `CREATE TABLE user_identity (
    issuer text NOT NULL, subject text NOT NULL, created_ms bigint NOT NULL,
    user_id text NOT NULL REFERENCES console_user (user_id) ON DELETE CASCADE,
    PRIMARY KEY (issuer, subject, user_id))`,
  `CREATE INDEX user_identity_by_user ON user_identity (user_id)`,
  // A passkey: a key pair of which the cloud stores the public key. `credential_id`: Id that the authenticator gave
  // the key, base64url. `public_key`: COSE key, base64url. `counter`: Number of signatures, as the authenticator
  // counts them; 0 if it does not count. `transports`: JSON list of the ways to reach the authenticator. `backed_up`:
  // 1: the key is copied to other devices of the user.
  `CREATE TABLE user_passkey (
    passkey_id text PRIMARY KEY, credential_id text NOT NULL UNIQUE,
    user_id text NOT NULL REFERENCES console_user (user_id), name text NOT NULL, public_key text NOT NULL,
    counter bigint NOT NULL, transports text NOT NULL, backed_up bigint NOT NULL, created_ms bigint NOT NULL,
    last_used_ms bigint)`,
  `CREATE INDEX user_passkey_by_user ON user_passkey (user_id, passkey_id)`,
  // The challenge of a sign-in with a passkey. Each is valid once.
  `CREATE TABLE used_challenge (challenge text PRIMARY KEY, expires_ms bigint NOT NULL)`,
  `CREATE INDEX used_challenge_by_expiry ON used_challenge (expires_ms)`,
  // Failed sign-ins of one user, e-mail address or client address. `subject`: Hash of the user or address.
  // `since_ms`: Time of the first failure of this period.
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
  // (baseline-tables.ts). `day`: `2026-11-20`, in the store's time zone. `sessions_completed`: Sessions of that day with a
  // purchase that was not cancelled. `receipts`: Receipts issued and refunds made on that day; they never decrease.
  // `till_sales`: Sales of tills, apart from the figures above; `till_receipts` and `till_refunds` never decrease.
  `CREATE TABLE store_day (
    store_id text NOT NULL, day text NOT NULL, tenant text NOT NULL, sessions bigint NOT NULL, sessions_completed bigint NOT NULL,
    completed_checkouts bigint NOT NULL, revenue_cent bigint NOT NULL, items_scanned bigint NOT NULL,
    offer_clicks bigint NOT NULL, offer_favorites bigint NOT NULL, profile_views bigint NOT NULL, messages bigint NOT NULL,
    new_followers bigint NOT NULL, lost_followers bigint NOT NULL, receipts bigint NOT NULL, refunds bigint NOT NULL,
    till_sales bigint NOT NULL, till_receipts bigint NOT NULL, till_refunds bigint NOT NULL, till_cent bigint NOT NULL, till_items bigint NOT NULL,
    slot bigint NOT NULL DEFAULT (pg_backend_pid() % 128), PRIMARY KEY (store_id, day, slot))`,
  // Gross amounts and the tax in them, summed from the receipts and refunds of that day. `rate`: Percent. `is_till`:
  // 1: sales of tills.
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
  `CREATE INDEX follower_by_age ON follower (since_ms)`,
  `CREATE TABLE offer_favorite (
    store_id text NOT NULL, offer_id text NOT NULL, user_id text NOT NULL, tenant text NOT NULL, since_ms bigint NOT NULL,
    PRIMARY KEY (store_id, offer_id, user_id))`,
  `CREATE INDEX offer_favorite_by_user ON offer_favorite (tenant, user_id)`,
  `CREATE INDEX offer_favorite_by_age ON offer_favorite (since_ms)`,
]

/** Payment providers of stores, payments and refunds. */
const PAYMENTS: readonly string[] = [
  // A replaced configuration that was used for payments is kept, because refunds need its credentials. `sealed`: Keys
  // and account ids as JSON, sealed for `psp_config/{config_id}`.
  `CREATE TABLE psp_config (
    config_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), provider text NOT NULL,
    sealed text NOT NULL, is_current bigint NOT NULL, created_ms bigint NOT NULL)`,
  `CREATE UNIQUE INDEX one_psp_a_store ON psp_config (store_id) WHERE is_current = 1`,
  `CREATE INDEX psp_config_by_store ON psp_config (store_id, provider, created_ms)`,
  // `provider_ref`: The provider's id of the session; null until the provider has responded. `charge_ref`: The
  // provider's id of the payment, if refunds need it. `state`: `asking` until the provider responds, then `open`,
  // then `paid` or `ended`. `ended` becomes `paid` if the money arrives late. `applied`: 1 if this payment paid the
  // purchase. `checks`: Number of status requests to the provider. `due_ms`: Time of the next check.
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
  // `payment_id`: null in the sandbox, where no money moves. `lines`: The returned pieces as a JSON array
  // (shop/purchases/line-value.ts); null if the refund names none. `state`: `held` while authorizations may still be
  // used, then `due` until the provider has accepted the refund. `in_doubt`: 1 if the refund failed but the provider
  // may have executed one of the attempts. Retries must use the same id. `sent_ms`: Time of the first attempt. If a
  // backup lacks it, the time of creation. `outside`: Set if the money moved at the provider without a request of the
  // cloud. `notice_rank`: Order of the newest notice about an outside refund. `counted`: JSON of the amounts that the
  // refund subtracted from the figures of the day; null until the refund is done. `requested_by`: User, API key or
  // job that began the refund; null if it began before this column.
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
  // Data that all branches of an offer share. A job sets `status`. Responses compute the status from the clock
  // instead. `lead_id`: Id of the first branch document. Listings use this id as the offer's id, even if that branch
  // was removed. `due_ms`: Time of the next change of `status`; null: none.
  `CREATE TABLE offer_group (
    group_id text PRIMARY KEY, tenant text NOT NULL, lead_id text NOT NULL UNIQUE, title text NOT NULL, description text NOT NULL,
    description_generated bigint NOT NULL, merchant_color text NOT NULL, tags text, image_url text, quantity bigint,
    valid_from_ms bigint NOT NULL, valid_to_ms bigint NOT NULL, status text NOT NULL, due_ms bigint,
    discount_percent bigint NOT NULL, product_count bigint NOT NULL, store_count bigint NOT NULL, created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL, rev bigint NOT NULL)`,
  `CREATE INDEX offer_group_by_tenant ON offer_group (tenant, lead_id)`,
  `CREATE INDEX offer_group_by_due ON offer_group (due_ms, tenant) WHERE due_ms IS NOT NULL`,
  `CREATE INDEX offer_group_due_of_tenant ON offer_group (tenant, due_ms, group_id) WHERE due_ms IS NOT NULL`,
  // Products at the prices of some branches: JSON of cloud/shop/offers/offer-products.ts.
  `CREATE TABLE offer_list (
    list_id text PRIMARY KEY, tenant text NOT NULL, products text NOT NULL, discount_percent bigint NOT NULL)`,
  `CREATE TABLE offer_price (
    list_id text NOT NULL REFERENCES offer_list (list_id), ean text NOT NULL, price_cent bigint NOT NULL,
    PRIMARY KEY (list_id, ean))`,
  // The validity is a copy from `offer_group`, so that the offers for a basket are one range of one index.
  // `is_active`: 0: the branch was removed from the offer.
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
  // `store_id`: Store whose events the webhook receives; null: all stores of the account. `url`: URL exactly as the
  // merchant sent it. `url_key`: Normalized URL. Registrations with the same normalized URL share one row.
  // `old_secret`: The previous secret, valid until `old_until_ms`. `failed_in_row`: Consecutive failed deliveries.
  // `missed_ms`: Last time at which an event was not queued, because too many deliveries of the account waited.
  `CREATE TABLE webhook (
    webhook_id text PRIMARY KEY, tenant text NOT NULL, store_id text REFERENCES store (store_id), url text NOT NULL,
    url_key text NOT NULL, enabled bigint NOT NULL, disabled_reason text, disabled_ms bigint, secret text NOT NULL,
    old_secret text, old_until_ms bigint, failed_in_row bigint NOT NULL, failing_since_ms bigint, missed_ms bigint, created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL)`,
  `CREATE UNIQUE INDEX webhook_by_target ON webhook (tenant, coalesce(store_id, '*'), url_key)`,
  // `event`: Name of an event, or `*`.
  `CREATE TABLE webhook_subscription (
    tenant text NOT NULL, event text NOT NULL, webhook_id text NOT NULL REFERENCES webhook (webhook_id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, event, webhook_id))`,
  `CREATE INDEX webhook_subscription_by_webhook ON webhook_subscription (webhook_id)`,
  // `due_ms`: Time of the next attempt, or end of the lease while a process sends the delivery; null once the
  // delivery is finished.
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
  // for which the request was opened; each has at most one open request. `requested_by` is the user or key of a call
  // to an alarm. `network`: Hash of the shopper's network while the request is open; null: sent with a secret key, or
  // not by a shopper.
  `CREATE TABLE assistance_request (
    request_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), zone_id text,
    user_id text, reason text NOT NULL, device_id text, purchase_id text, subject text, requested_by text,
    ticket_hash text UNIQUE, status text NOT NULL, message_count bigint NOT NULL, created_ms bigint NOT NULL, updated_ms bigint NOT NULL,
    network text)`,
  `CREATE INDEX assistance_request_by_store ON assistance_request (store_id, request_id)`,
  `CREATE INDEX assistance_request_open ON assistance_request (store_id, status) WHERE status <> 'closed'`,
  `CREATE INDEX assistance_request_open_of_tenant ON assistance_request (tenant, status) WHERE status <> 'closed'`,
  `CREATE UNIQUE INDEX assistance_request_of_subject ON assistance_request (store_id, subject) WHERE status <> 'closed' AND subject IS NOT NULL`,
  `CREATE INDEX assistance_request_by_user ON assistance_request (tenant, user_id)`,
  `CREATE INDEX assistance_request_by_age ON assistance_request (updated_ms)`,
  // `number`: From 1, in the order of sending.
  `CREATE TABLE assistance_message (
    request_id text NOT NULL REFERENCES assistance_request (request_id), number bigint NOT NULL, author text NOT NULL,
    text text NOT NULL, at_ms bigint NOT NULL, PRIMARY KEY (request_id, number))`,
]

/** Pickup orders, their lines and the tagged items that are reserved for them. */
const CLICK_AND_COLLECT: readonly string[] = [
  // `paid`: 1 if the customer has paid. `locker_device_id`: Device of the locker in which the goods wait; null
  // without a locker.
  `CREATE TABLE pickup_order (
    order_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), user_id text NOT NULL,
    status text NOT NULL, total_cent bigint NOT NULL, currency text NOT NULL, note text, pickup_ms bigint,
    estimated_ms bigint NOT NULL, code_hash text NOT NULL, reason text, expires_ms bigint, created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL, picked_up_ms bigint, paid bigint NOT NULL,
    locker_device_id text, rev bigint NOT NULL)`,
  `CREATE INDEX pickup_order_by_store ON pickup_order (store_id, order_id)`,
  `CREATE INDEX pickup_order_by_user ON pickup_order (tenant, user_id, order_id) WHERE user_id IS NOT NULL`,
  `CREATE INDEX pickup_order_by_status ON pickup_order (store_id, status, order_id)`,
  `CREATE INDEX pickup_order_pending ON pickup_order (tenant) WHERE status = 'pending'`,
  // `expires_ms` is null if the order can no longer expire.
  `CREATE INDEX pickup_order_by_expiry ON pickup_order (tenant, expires_ms, order_id) WHERE expires_ms IS NOT NULL`,
  `CREATE INDEX pickup_order_by_locker ON pickup_order (locker_device_id)`,
  `CREATE TABLE pickup_order_line (
    order_id text NOT NULL REFERENCES pickup_order (order_id), line_no bigint NOT NULL, product_id text NOT NULL,
    ean text NOT NULL, name text NOT NULL, price_cent bigint NOT NULL, vat bigint NOT NULL, quantity bigint NOT NULL,
    PRIMARY KEY (order_id, line_no))`,
  // A tagged item reserved for an order.
  `CREATE TABLE pickup_order_item (
    order_id text NOT NULL REFERENCES pickup_order (order_id), item_id text NOT NULL, line_no bigint NOT NULL,
    PRIMARY KEY (order_id, item_id))`,
  `CREATE INDEX pickup_order_item_by_item ON pickup_order_item (item_id)`,
]

/** Push subscriptions and the notices that wait for delivery. */
const PUSH: readonly string[] = [
  // `kind`: `web`: a browser, through its push service. `https`: an endpoint of the merchant. `target`: Topic of the
  // subscription's notices: `user:{userId}`, `store:{storeId}`, `all`, or `session:{sessionId}` for alarms.
  // `session_id`: Session of a console user. The subscription ends with the session. `endpoint_hash`: SHA-256 of the
  // endpoint. Registrations with the same hash share one row. `sealed`: Endpoint and keys as JSON. The JSON is
  // sealed, because a program that has endpoint and keys can send to the browser. `failed_in_row`: Number of
  // undeliverable notices since the last delivered notice.
  `CREATE TABLE push_subscription (
    subscription_id text PRIMARY KEY, tenant text NOT NULL, kind text NOT NULL, target text NOT NULL, user_id text, store_id text,
    session_id text REFERENCES user_session (session_id) ON DELETE CASCADE,
    endpoint_hash text NOT NULL, sealed text NOT NULL, failed_in_row bigint NOT NULL, created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL)`,
  `CREATE UNIQUE INDEX push_subscription_by_endpoint ON push_subscription (tenant, endpoint_hash, target)`,
  `CREATE INDEX push_subscription_by_target ON push_subscription (tenant, target)`,
  `CREATE INDEX push_subscription_by_tenant ON push_subscription (tenant, subscription_id)`,
  `CREATE INDEX push_subscription_by_user ON push_subscription (tenant, user_id) WHERE user_id IS NOT NULL`,
  `CREATE INDEX push_subscription_by_session ON push_subscription (session_id) WHERE session_id IS NOT NULL`,
  `CREATE INDEX push_subscription_of_users ON push_subscription (tenant, session_id) WHERE session_id IS NOT NULL`,
  // Notices to staff, for which the sender has not found the browsers yet. `about_id`: Event or request for help.
  // `lowest`: Lowest role that gets the notice. `except_id`: User who gets none.
  `CREATE TABLE staff_notice (
    notice_id text PRIMARY KEY, tenant text NOT NULL, about_id text NOT NULL, reason text NOT NULL, store_id text NOT NULL,
    page text NOT NULL, lowest text NOT NULL, except_id text, created_ms bigint NOT NULL)`,
  `CREATE INDEX staff_notice_by_tenant ON staff_notice (tenant, created_ms, notice_id)`,
  // `user_id`: The customer that the notice is about. `urgency`: `Urgency` of RFC 8030. `topic`: `Topic` of RFC 8030:
  // a newer notice replaces an older notice that the browser has not fetched. `due_ms`: Time of the next attempt, or
  // end of the lease while a process sends the notice. `expires_ms`: The sender discards the notice after this time.
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
  // `sealed`: Credentials as JSON, sealed for `integration_connection/{connection_id}`; null if there are none.
  // `lease_id`: Lease of the process that reads the system now.
  `CREATE TABLE integration_connection (
    connection_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), side text NOT NULL,
    system text NOT NULL, sealed text, lease_id text, lease_until_ms bigint NOT NULL, updated_ms bigint NOT NULL)`,
  `CREATE UNIQUE INDEX one_connection_a_system ON integration_connection (store_id, side, system)`,
  // One row per unfinished import, with the cursor of the next page and the counts of the pages read so far.
  // `source`: Hash of the source of the data. `next_cursor`: Cursor of the next page; null: start with the first
  // page. If `is_done` is 1, all pages are read. `counts`: JSON: cloud/sales/integrations/connection.ts.
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
  // `owner_id` is an order or a purchase. `state`: held, or lapsed after the expiry of the reservation. `gives_way`:
  // 1 if a sale by staff or by a server of the merchant may end it, because it is of an unpaid basket of a shopper's
  // app.
  `CREATE TABLE stock_reservation (
    owner_id text NOT NULL, product_id text NOT NULL, tenant text NOT NULL, store_id text NOT NULL, quantity bigint NOT NULL,
    state text NOT NULL, gives_way bigint NOT NULL, expires_ms bigint NOT NULL, PRIMARY KEY (owner_id, product_id))`,
  `CREATE INDEX stock_reservation_held ON stock_reservation (tenant, expires_ms) WHERE state = 'held'`,
  `CREATE INDEX stock_reservation_lapsed ON stock_reservation (expires_ms) WHERE state = 'lapsed'`,
  `CREATE INDEX stock_reservation_by_product ON stock_reservation (store_id, product_id, gives_way, state, expires_ms)`,
]

/** Sales of tills: their identities, printed codes, returns, revoked tills and limits. */
const TILLS: readonly string[] = [
  // `sale_key`: Identity of the sale, 16 bytes in hex; also the `cti` of its receipt (policy/till-sale.ts).
  // `content`: Hash of the content; null for a void that arrived before its sale. `purchase_id`: Null for an open
  // sale, and for a void before its sale. `result`: JSON of the answer, for repetitions; null before payment.
  // `agent_id`: Agent that recorded the sale; null: the cloud. `stored_ms`: When an agent or the cloud stored it.
  // `due_ms`: End of an open sale; when a void without a sale becomes an exception. Else null.
  `CREATE TABLE till_sale (
    sale_key text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), till_id text,
    series text, sale_id text NOT NULL, state text NOT NULL, version bigint NOT NULL, content text,
    purchase_id text REFERENCES purchase (purchase_id), result text, agent_id text, stored_ms bigint NOT NULL, due_ms bigint)`,
  `CREATE UNIQUE INDEX till_sale_by_purchase ON till_sale (purchase_id)`,
  `CREATE INDEX till_sale_by_number ON till_sale (store_id, sale_id)`,
  `CREATE INDEX till_sale_by_till ON till_sale (store_id, till_id, stored_ms, sale_key)`,
  `CREATE INDEX till_sale_by_due ON till_sale (tenant, due_ms) WHERE due_ms IS NOT NULL`,
  `CREATE INDEX till_sale_by_time ON till_sale (stored_ms)`,
  // Hash of a printed code, of which a store may have several sales.
  `CREATE TABLE receipt_code (
    store_id text NOT NULL, code text NOT NULL, sale_key text NOT NULL, stored_ms bigint NOT NULL,
    PRIMARY KEY (store_id, code, sale_key))`,
  `CREATE INDEX receipt_code_by_time ON receipt_code (stored_ms)`,
  // A return that arrived. `body`: JSON of the return, while it waits for its sale. `result`: JSON of the answer;
  // null while the return waits for its sale. `due_ms`: When a return without a sale becomes an exception; null once
  // it was applied.
  `CREATE TABLE till_return (
    return_key text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), sale_key text NOT NULL,
    body text NOT NULL, content text NOT NULL, result text, stored_ms bigint NOT NULL, due_ms bigint)`,
  `CREATE INDEX till_return_by_time ON till_return (stored_ms)`,
  `CREATE INDEX till_return_by_sale ON till_return (sale_key, store_id)`,
  `CREATE INDEX till_return_by_due ON till_return (tenant, due_ms) WHERE due_ms IS NOT NULL`,
  // A sale or return of a till that names a tagged piece (cloud/sales/tills/piece-history.ts). `report_key`: `sale_key`
  // of a sale, `return_key` of a return. `purchase_id`, `line_id`: Of the sale; null for a return. `sale_key`: Sale that
  // a return names; else null. `is_again`: 1 if the seller knew a return that may not be here. `resellable`: 1 if the returned goods may
  // be sold again. `names_tag`: 1 for a return that names the tag. `is_booked`: 1 for a sale whose return is booked, and
  // for a return that is booked.
  `CREATE TABLE piece_report (
    item_id text NOT NULL, report_key text NOT NULL, tenant text NOT NULL, store_id text NOT NULL, purchase_id text, line_id text,
    sale_key text, agent_id text, at_ms bigint NOT NULL, is_again bigint NOT NULL, resellable bigint NOT NULL,
    names_tag bigint NOT NULL, is_booked bigint NOT NULL,
    PRIMARY KEY (item_id, report_key))`,
  `CREATE INDEX piece_report_by_key ON piece_report (report_key)`,
  `CREATE INDEX piece_report_by_time ON piece_report (at_ms)`,
  // Sales of a till since `since_ms` are on hold.
  `CREATE TABLE till_revocation (
    store_id text NOT NULL REFERENCES store (store_id), till_id text NOT NULL, tenant text NOT NULL, since_ms bigint NOT NULL,
    revoked_ms bigint NOT NULL, PRIMARY KEY (store_id, till_id))`,
  // What a till sold in an hour, for the limits of the policy. `hour`: Hours since 1970.
  `CREATE TABLE till_hour (
    store_id text NOT NULL, till_id text NOT NULL, hour bigint NOT NULL, sales bigint NOT NULL, value_cent bigint NOT NULL,
    PRIMARY KEY (store_id, till_id, hour))`,
  `CREATE INDEX till_hour_by_hour ON till_hour (hour)`,
]

/** Signing keys, sealed secrets and the newest signed document of each kind. */
const AUTHORITY: readonly string[] = [
  // `changed_ms`: Time of the last change of `state`.
  `CREATE TABLE signing_key (
    kid text PRIMARY KEY, iss text NOT NULL, key_use text NOT NULL, x text NOT NULL, sealed text NOT NULL, state text NOT NULL,
    created_ms bigint NOT NULL, changed_ms bigint NOT NULL DEFAULT 0)`,
  `CREATE INDEX signing_key_by_issuer ON signing_key (iss)`,
  `CREATE UNIQUE INDEX one_active_key ON signing_key (iss, key_use) WHERE state = 'active'`,
  `CREATE UNIQUE INDEX one_next_key ON signing_key (iss, key_use) WHERE state = 'next'`,
  `CREATE TABLE sealed_secret (name text PRIMARY KEY, sealed text NOT NULL)`,
  `CREATE TABLE signed_document (
    kind text NOT NULL, aud text NOT NULL, epoch bigint NOT NULL, ver bigint NOT NULL, hash text NOT NULL, jws text NOT NULL,
    iat bigint NOT NULL, PRIMARY KEY (kind, aud))`,
]

/**
 * The schema of release 0.1.0. The tables to which many others refer are in `baseline-tables.ts` and `baseline-protection.ts`.
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
