/** Payment providers of stores, payments and refunds. */
export const PAYMENTS: readonly string[] = [
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
    outside text, notice_rank bigint, created_ms bigint NOT NULL, finished_ms bigint, counted text)`,
  `CREATE INDEX refund_by_purchase ON refund (purchase_id)`,
  `CREATE INDEX refund_by_due ON refund (due_ms) WHERE due_ms IS NOT NULL`,
  `CREATE INDEX refund_by_payment ON refund (payment_id)`,
]
