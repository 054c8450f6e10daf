/** Who is told of events, and what became of telling them. Units and forms: ../schema.ts. */

export interface WebhookRow {
  webhook_id: string
  tenant: string
  /** The only store whose events it gets; null: all of the account. */
  store_id: string | null
  /** As it was given. */
  url: string
  /** As the URL parser writes it: what makes two registrations the same. */
  url_key: string
  enabled: number
  disabled_reason: string | null
  disabled_ms: number | null
  secret: string
  /** The secret before the last roll, until then. */
  old_secret: string | null
  old_until_ms: number | null
  /** Deliveries that were given up, with none in between that arrived. */
  failed_in_row: number
  failing_since_ms: number | null
  created_ms: number
  updated_ms: number
}

export interface WebhookSubscriptionRow {
  tenant: string
  /** The name of an event, or `*`. */
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
  /** When it is next to be sent, or the end of the lease of who is sending it; null once it is over. */
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
