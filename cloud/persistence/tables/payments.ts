/** Providers of payments, payments and refunds. Units and forms: ../schema.ts. */

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
  /** The provider's id of the session; null until it has answered. */
  provider_ref: string | null
  /** The provider's id of what was paid, where refunds go by that. */
  charge_ref: string | null
  url: string | null
  amount_cent: number
  currency: string
  /** asking → open → paid or ended; asking → ended; ended → paid when the money comes late. */
  state: 'asking' | 'open' | 'paid' | 'ended'
  /** It is this payment that made the purchase paid. */
  applied: number
  /** How often the provider was asked what became of it. */
  checks: number
  /** When somebody must look next. */
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
  /** JSON array of the lines whose items came back. */
  line_ids: string | null
  reason: string | null
  /** `held` while authorizations may still be used, then `due` until the provider has taken it. */
  state: 'held' | 'due' | 'done' | 'failed'
  /** One that failed though the provider may have carried it out, also while it is tried again: only its own id may ask. */
  in_doubt: number
  attempts: number
  due_ms: number | null
  provider_ref: string | null
  /** What of the day's figures it took back, as JSON; null until it is done, and again when it turns out to have failed. */
  counted: string | null
  created_ms: number
  finished_ms: number | null
}
