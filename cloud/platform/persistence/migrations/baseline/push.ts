/** Push subscriptions and the notices that wait for delivery. */
export const PUSH: readonly string[] = [
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
