/** Webhooks, their subscriptions, deliveries and attempts. */
export const WEBHOOKS: readonly string[] = [
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
