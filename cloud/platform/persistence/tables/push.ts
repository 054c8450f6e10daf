/** Push subscriptions and queued notices. Units: ../schema.ts. */

export interface PushSubscriptionRow {
  subscription_id: string
  tenant: string
  /** `web`: a browser, through its push service. `https`: an endpoint of the merchant. */
  kind: string
  /** Topic of the subscription's notices: `user:{userId}`, `store:{storeId}`, `all`, or `session:{sessionId}` for alarms. */
  target: string
  user_id: string | null
  store_id: string | null
  /** Session of a console user. The subscription ends with the session. */
  session_id: string | null
  /** SHA-256 of the endpoint. Registrations with the same hash share one row. */
  endpoint_hash: string
  /**
   * Endpoint and keys as JSON. The JSON is sealed, because a program that has endpoint and keys can send to the
   * browser.
   */
  sealed: string
  /** Number of undeliverable notices since the last delivered notice. */
  failed_in_row: number
  created_ms: number
  updated_ms: number
}

export interface PushDeliveryRow {
  delivery_id: string
  tenant: string
  subscription_id: string
  /** The customer that the notice is about. */
  user_id: string | null
  body: string
  /** `Urgency` of RFC 8030. */
  urgency: string
  /** `Topic` of RFC 8030: a newer notice replaces an older notice that the browser has not fetched. */
  topic: string
  attempts: number
  /** Time of the next attempt, or end of the lease while a process sends the notice. */
  due_ms: number
  lease_id: string | null
  /** The sender discards the notice after this time. */
  expires_ms: number
}
