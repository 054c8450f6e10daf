import type { Migration } from './migration.ts'

/**
 * The first schema. Portable by rule: text ids made by us, whole cents, whole ms since 1970, 0/1 for
 * yes and no, JSON as text, no date functions. `tenant` is `{accountId}.{mode}`: test and live never meet.
 */
export const FIRST: Migration = {
  name: '0001-first',
  statements: [
    // — accounts —
    `CREATE TABLE account (
      account_id text PRIMARY KEY, name text NOT NULL UNIQUE, package text NOT NULL, status text NOT NULL, created_ms bigint NOT NULL)`,
    `CREATE TABLE api_key (
      key_id text PRIMARY KEY, account_id text NOT NULL REFERENCES account (account_id), mode text NOT NULL, kind text NOT NULL,
      hash text NOT NULL UNIQUE, shown text NOT NULL, name text NOT NULL, store_ids text, created_ms bigint NOT NULL,
      expires_ms bigint, last_used_ms bigint, revoked_ms bigint)`,
    `CREATE TABLE audit_entry (
      entry_id text PRIMARY KEY, tenant text NOT NULL, at_ms bigint NOT NULL, actor text NOT NULL, operation text NOT NULL,
      entity_id text, request_id text NOT NULL)`,
    `CREATE INDEX audit_entry_by_tenant ON audit_entry (tenant, entry_id)`,
    `CREATE TABLE idempotency (
      tenant text NOT NULL, operation text NOT NULL, key_hash text NOT NULL, request_hash text NOT NULL, status bigint NOT NULL,
      body text NOT NULL, basis text, valid_until_ms bigint, created_ms bigint NOT NULL, PRIMARY KEY (tenant, operation, key_hash))`,
    `CREATE INDEX idempotency_by_age ON idempotency (created_ms)`,

    // — stores and catalogue —
    `CREATE TABLE store (
      store_id text PRIMARY KEY, tenant text NOT NULL, legal_name text NOT NULL, trading_name text NOT NULL, street text NOT NULL,
      city text NOT NULL, postal_code text NOT NULL, country_code text NOT NULL, lat double precision, lng double precision,
      phone text, email text, website text, package text NOT NULL, has_scan_and_go bigint NOT NULL, has_offers bigint NOT NULL,
      opening_hours text, media text, social text, psp_account_id text, receipt_count bigint NOT NULL,
      security_tag_mode text NOT NULL, security_tag_hint text, protection_technology text, device_type text, workflow_type text,
      policy text NOT NULL, policy_version bigint NOT NULL, document_version bigint NOT NULL, deny_seq bigint NOT NULL,
      created_ms bigint NOT NULL)`,
    `CREATE INDEX store_by_tenant ON store (tenant, store_id)`,
    `CREATE TABLE product (
      product_id text PRIMARY KEY, tenant text NOT NULL, ean text NOT NULL, name text NOT NULL, name_lower text NOT NULL, brand text,
      brand_lower text, price_cent bigint NOT NULL, old_price_cent bigint, vat bigint NOT NULL, category text, unit text,
      description text, image_url text, weight text, is_organic bigint, is_vegan bigint, allergens text,
      requires_human_verification bigint NOT NULL, tagged bigint NOT NULL, created_ms bigint NOT NULL, updated_ms bigint NOT NULL,
      UNIQUE (tenant, ean))`,
    `CREATE TABLE store_product (
      store_id text NOT NULL REFERENCES store (store_id), product_id text NOT NULL REFERENCES product (product_id),
      price_cent bigint NOT NULL, old_price_cent bigint, PRIMARY KEY (store_id, product_id))`,

    // — scan and go —
    `CREATE TABLE shopping_session (
      session_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), user_id text,
      created_ms bigint NOT NULL)`,
    `CREATE TABLE purchase (
      purchase_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), session_id text NOT NULL,
      user_id text, checkout_session_id text, status text NOT NULL, currency text NOT NULL, total_cent bigint NOT NULL,
      security_tag_mode text NOT NULL, security_tag_status text, price_origin text NOT NULL, cti text UNIQUE, receipt_token text,
      receipt_exp bigint, cancel_reason text, refund_status text, deny_seq bigint, created_ms bigint NOT NULL, completed_ms bigint, rev bigint NOT NULL)`,
    `CREATE INDEX purchase_by_store ON purchase (store_id, purchase_id)`,
    `CREATE UNIQUE INDEX purchase_by_checkout ON purchase (checkout_session_id)`,
    `CREATE TABLE purchase_line (
      line_id text PRIMARY KEY, purchase_id text NOT NULL REFERENCES purchase (purchase_id), line_no bigint NOT NULL, name text NOT NULL,
      ean text, product_id text, price_cent bigint NOT NULL, quantity bigint NOT NULL, vat bigint NOT NULL, category text, brand text,
      price_origin text NOT NULL, serial_number text, tagged bigint NOT NULL)`,
    `CREATE INDEX purchase_line_by_purchase ON purchase_line (purchase_id, line_no)`,
    `CREATE TABLE purchase_unit (
      line_id text NOT NULL REFERENCES purchase_line (line_id), unit_no bigint NOT NULL, purchase_id text NOT NULL,
      item_id text, bound bigint NOT NULL, receipt_index bigint, PRIMARY KEY (line_id, unit_no))`,
    `CREATE INDEX purchase_unit_by_purchase ON purchase_unit (purchase_id)`,

    // — protection —
    `CREATE TABLE protected_item (
      item_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), epc text, tag_uid text,
      tag_id text, tag_technology text, protection_technology text, serial_number text, product_id text, ean text, brand text,
      category text, price_cent bigint, item_status text NOT NULL, purchase_id text, line_id text, unit_no bigint, rev bigint NOT NULL,
      created_ms bigint NOT NULL, updated_ms bigint NOT NULL,
      UNIQUE (tenant, epc), UNIQUE (tenant, tag_uid), UNIQUE (tenant, tag_id))`,
    `CREATE TABLE agent (
      agent_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
      x text NOT NULL UNIQUE, ledger_id text NOT NULL UNIQUE, generation bigint NOT NULL, last_seq bigint NOT NULL, head_hash text NOT NULL,
      deny_seq bigint NOT NULL, enrolled_ms bigint NOT NULL, last_seen_ms bigint NOT NULL, revoked_ms bigint)`,
    `CREATE INDEX agent_by_store ON agent (store_id)`,
    `CREATE TABLE enrolment_code (
      code_hash text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, name text NOT NULL, expires_ms bigint NOT NULL,
      tries bigint NOT NULL, agent_id text)`,
    `CREATE TABLE agent_challenge (
      challenge_hash text PRIMARY KEY, agent_id text NOT NULL, expires_ms bigint NOT NULL)`,
    `CREATE TABLE agent_session (
      token_hash text PRIMARY KEY, agent_id text NOT NULL, expires_ms bigint NOT NULL)`,
    `CREATE TABLE device (
      device_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), agent_id text,
      device_type text NOT NULL, name text, zone_id text, lane_id text, gate_id text, firmware_version text, capabilities text NOT NULL,
      technologies text NOT NULL, workflow_type text, registered_ms bigint NOT NULL, last_seen_ms bigint, revoked_ms bigint)`,
    `CREATE INDEX device_by_store ON device (store_id, device_id)`,
    `CREATE TABLE operator (
      operator_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
      verifiers text NOT NULL, created_ms bigint NOT NULL, removed_ms bigint)`,
    `CREATE INDEX operator_by_store ON operator (store_id)`,
    `CREATE TABLE protection_authorization (
      nonce text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, device_id text NOT NULL, agent_id text, ledger text NOT NULL,
      action text NOT NULL, right_class text NOT NULL, count bigint NOT NULL, purchase_id text, item_id text, ith_kind text, ith_id text,
      event_id text NOT NULL, risk_class bigint NOT NULL, policy_version bigint NOT NULL, key_version bigint NOT NULL,
      iat bigint NOT NULL, exp bigint NOT NULL, revoked_ms bigint, voided_ms bigint, operator_id text, rev bigint NOT NULL)`,
    `CREATE INDEX authorization_by_purchase ON protection_authorization (purchase_id)`,
    `CREATE TABLE authorization_unit (
      nonce text NOT NULL, ordinal bigint NOT NULL, line_id text NOT NULL, unit_no bigint NOT NULL, PRIMARY KEY (nonce, ordinal))`,
    // One row per right: that there is one is what makes a second live lease impossible.
    `CREATE TABLE unit_right (
      line_id text NOT NULL, unit_no bigint NOT NULL, right_class text NOT NULL, purchase_id text NOT NULL, state text NOT NULL,
      nonce text, device_id text, until_ms bigint, redemption_id text, outcome text, failures bigint NOT NULL,
      PRIMARY KEY (line_id, unit_no, right_class))`,
    `CREATE INDEX unit_right_by_purchase ON unit_right (purchase_id)`,
    `CREATE TABLE redemption (
      nonce text NOT NULL, step bigint NOT NULL, redemption_id text NOT NULL, tenant text NOT NULL, source text NOT NULL, agent_id text,
      device_id text NOT NULL, at_ms bigint NOT NULL, event_id text NOT NULL, outcome text, PRIMARY KEY (nonce, step, redemption_id))`,
    `CREATE INDEX redemption_by_id ON redemption (redemption_id)`,
    `CREATE TABLE journal_row (
      ledger_id text NOT NULL, generation bigint NOT NULL, seq bigint NOT NULL, agent_id text NOT NULL, hash text NOT NULL, body text NOT NULL,
      applied bigint NOT NULL, received_ms bigint NOT NULL, PRIMARY KEY (ledger_id, generation, seq))`,
    `CREATE TABLE protection_event (
      event_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, type text NOT NULL, device_id text, purchase_id text,
      occurred_ms bigint NOT NULL, processed_ms bigint NOT NULL, body text NOT NULL)`,
    `CREATE INDEX protection_event_by_store ON protection_event (store_id, processed_ms, event_id)`,
    `CREATE TABLE protection_exception (
      exception_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, kind text NOT NULL, subject text NOT NULL,
      device_id text, purchase_id text, detail text NOT NULL, raised_ms bigint NOT NULL, acknowledged_ms bigint, note text,
      UNIQUE (tenant, kind, subject))`,
    `CREATE TABLE deny_entry (
      store_id text NOT NULL, seq bigint NOT NULL, body text NOT NULL, until_s bigint NOT NULL, PRIMARY KEY (store_id, seq))`,

    // — authority and messages —
    `CREATE TABLE signing_key (
      kid text PRIMARY KEY, iss text NOT NULL, key_use text NOT NULL, x text NOT NULL, sealed text NOT NULL, state text NOT NULL,
      created_ms bigint NOT NULL)`,
    `CREATE UNIQUE INDEX one_active_key ON signing_key (iss, key_use) WHERE state = 'active'`,
    `CREATE TABLE sealed_secret (name text PRIMARY KEY, sealed text NOT NULL)`,
    `CREATE TABLE signed_document (
      kind text NOT NULL, aud text NOT NULL, epoch bigint NOT NULL, ver bigint NOT NULL, hash text NOT NULL, jws text NOT NULL,
      iat bigint NOT NULL, PRIMARY KEY (kind, aud))`,
    `CREATE TABLE installation (name text PRIMARY KEY, value text NOT NULL)`,
    `CREATE TABLE outbox_event (
      event_id text PRIMARY KEY, tenant text NOT NULL, store_id text, type text NOT NULL, at_ms bigint NOT NULL, data text NOT NULL)`,
    `CREATE INDEX outbox_event_by_tenant ON outbox_event (tenant, event_id)`,
  ],
}
