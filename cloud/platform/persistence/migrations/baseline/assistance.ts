/** Zones of a store, requests for help and their messages. */
export const ASSISTANCE: readonly string[] = [
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
