/** Zones, requests for help and their messages. Units: ../schema.ts. */

export interface ZoneRow {
  zone_id: string
  tenant: string
  store_id: string
  name: string
  created_ms: number
}

export interface AssistanceRequestRow {
  request_id: string
  tenant: string
  store_id: string
  zone_id: string | null
  user_id: string | null
  reason: 'shopper' | 'manual_assistance_required' | 'exception_hold' | 'alarm'
  device_id: string | null
  purchase_id: string | null
  subject: string | null
  requested_by: string | null
  ticket_hash: string | null
  status: 'open' | 'answered' | 'closed'
  message_count: number
  created_ms: number
  updated_ms: number
  /** Hash of the shopper's network while the request is open; null: sent with a secret key, or not by a shopper. */
  network: string | null
}

export interface AssistanceMessageRow {
  request_id: string
  /** From 1, in the order of sending. */
  number: number
  author: 'shopper' | 'staff'
  text: string
  at_ms: number
}
