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
