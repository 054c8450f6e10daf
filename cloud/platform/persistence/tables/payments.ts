/** Payment providers, payments and refunds. Units: ../schema.ts. */

export interface PspConfigRow {
  config_id: string
  tenant: string
  store_id: string
  provider: string
  /** Keys and account ids as JSON, sealed for `psp_config/{config_id}`. */
  sealed: string
  is_current: number
  created_ms: number
}

export interface PaymentRow {
  payment_id: string
  tenant: string
  store_id: string
  purchase_id: string
  config_id: string
  provider: string
  /** The provider's id of the session; null until the provider has responded. */
  provider_ref: string | null
  /** The provider's id of the payment, if refunds need it. */
  charge_ref: string | null
  url: string | null
  amount_cent: number
  currency: string
  /**
   * `asking` until the provider responds, then `open`, then `paid` or `ended`. `ended` becomes `paid` if the money
   * arrives late.
   */
  state: 'asking' | 'open' | 'paid' | 'ended'
  /** 1 if this payment paid the purchase. */
  applied: number
  /** Number of status requests to the provider. */
  checks: number
  /** Time of the next check. */
  due_ms: number | null
  created_ms: number
  paid_ms: number | null
}

export interface RefundRow {
  refund_id: string
  tenant: string
  store_id: string
  purchase_id: string
  /** null in the sandbox, where no money moves. */
  payment_id: string | null
  kind: 'whole' | 'part' | 'late'
  amount_cent: number
  currency: string
  /** The returned pieces as a JSON array (shop/purchases/line-value.ts); null if the refund names none. */
  lines: string | null
  reason: string | null
  /** `held` while authorizations may still be used, then `due` until the provider has accepted the refund. */
  state: 'held' | 'due' | 'done' | 'failed'
  /** 1 if the refund failed but the provider may have executed one of the attempts. Retries must use the same id. */
  in_doubt: number
  attempts: number
  /** Time of the first attempt. If a backup lacks it, the time of creation. */
  sent_ms: number | null
  due_ms: number | null
  provider_ref: string | null
  /** Set if the money moved at the provider without a request of the cloud. */
  outside: 'refund' | 'dispute' | null
  /** Order of the newest notice about an outside refund. */
  notice_rank: number | null
  /** JSON of the amounts that the refund subtracted from the figures of the day; null until the refund is done. */
  counted: string | null
  created_ms: number
  finished_ms: number | null
  /** User, API key or job that began the refund; null if it began before this column. */
  requested_by: string | null
}
