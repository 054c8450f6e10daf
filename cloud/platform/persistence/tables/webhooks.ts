/** Webhooks, deliveries and attempts. Units: ../schema.ts. */

export interface WebhookRow {
  webhook_id: string
  tenant: string
  /** Store whose events the webhook receives; null: all stores of the account. */
  store_id: string | null
  /** URL exactly as the merchant sent it. */
  url: string
  /** Normalized URL. Registrations with the same normalized URL share one row. */
  url_key: string
  enabled: number
  disabled_reason: string | null
  disabled_ms: number | null
  secret: string
  /** The previous secret, valid until `old_until_ms`. */
  old_secret: string | null
  old_until_ms: number | null
  /** Consecutive failed deliveries. */
  failed_in_row: number
  failing_since_ms: number | null
  /** Last time at which an event was not queued, because too many deliveries of the account waited. */
  missed_ms: number | null
  created_ms: number
  updated_ms: number
}

export interface WebhookSubscriptionRow {
  tenant: string
  /** Name of an event, or `*`. */
  event: string
  webhook_id: string
}

export interface WebhookDeliveryRow {
  delivery_id: string
  tenant: string
  webhook_id: string
  event_id: string
  type: string
  store_id: string | null
  status: string
  attempts: number
  first_ms: number | null
  /**
   * Time of the next attempt, or end of the lease while a process sends the delivery; null once the delivery is
   * finished.
   */
  due_ms: number | null
  lease_id: string | null
  created_ms: number
  finished_ms: number | null
}

export interface WebhookAttemptRow {
  delivery_id: string
  attempt: number
  at_ms: number
  took_ms: number
  status: number | null
  error: string | null
  answer: string | null
}
