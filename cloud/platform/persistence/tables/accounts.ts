import type { Generated } from 'kysely'

/** Accounts, keys, audit log, stored responses and events. Units: ../schema.ts. */

export interface AccountRow {
  account_id: string
  name: string
  package: string
  status: string
  created_ms: number
}

/** Settings of an account in one mode. An account without a row has the defaults. */
export interface AccountSettingRow {
  tenant: string
  /** 1: the catalogue takes UPC-A, UPC-E and EAN-8 with a leading zero. */
  accept_upc: number
}

export interface ApiKeyRow {
  key_id: string
  account_id: string
  mode: string
  kind: string
  hash: string
  shown: string
  name: string
  store_ids: string | null
  created_ms: number
  expires_ms: number | null
  last_used_ms: number | null
  revoked_ms: number | null
  /** The key that replaced this one (`rollApiKey`). */
  replaced_by: string | null
}

export interface RegistrationRow {
  registration_id: string
  /** `store`: submitted with a key. `account`: submitted without a key; approval creates an account. */
  kind: 'store' | 'account'
  account_id: string | null
  /** Tenant that submitted the registration; null: submitted without a key. */
  tenant: string | null
  company_name: string
  details: string
  claim_hash: string | null
  /** Hash of the sender's network or account, until the request was decided and is a day old; null: submitted with a key. */
  network: string | null
  status: 'pending' | 'approved' | 'rejected'
  reason: string | null
  store_id: string | null
  submitted_ms: number
  decided_ms: number | null
  test_claimed_ms: number | null
  live_claimed_ms: number | null
}

export interface AuditEntryRow {
  entry_id: string
  tenant: string
  at_ms: number
  actor: string
  operation: string
  entity_id: string | null
  request_id: string
}

/** Columns that sealing sets; null until then. */
export interface SealRow {
  /** Number in the chain of its tenant, from 1. */
  seq: number | null
  prev_hash: string | null
  hash: string | null
}

/** Last entry of a tenant's chain. */
export interface AuditHeadRow {
  tenant: string
  seq: number
  hash: string
  /** Last entry that was deleted because of its age; 0 and an empty hash if none was. */
  pruned_seq: Generated<number>
  pruned_hash: Generated<string>
}

export interface IdempotencyRow {
  tenant: string
  operation: string
  key_hash: string
  request_hash: string
  status: number
  body: string
  /** End of the lease of a running request, ms; null once the response is stored. */
  valid_until_ms: number | null
  created_ms: number
}

export interface OutboxEventRow {
  event_id: string
  tenant: string
  store_id: string | null
  type: string
  at_ms: number
  data: string
  /** Sequence number of the event; null until the dispatcher has planned its deliveries. */
  seq: number | null
  /** The only webhook that receives this event, if it is a test event; null for all other events. */
  webhook_id: string | null
}

export interface InstallationRow {
  name: string
  value: string
}

/** One row: the offset between transaction ids and positions (../positions.ts). */
export interface PositionOffsetRow {
  id: number
  value: number
}

/** A task that one process at a time does for all processes. */
export interface ProcessLeaseRow {
  name: string
  /** Id of the process. */
  holder: string
  /** The holder raises this number regularly. If the number stays the same, another process takes over the lease. */
  beat: number
}

/** An erased customer. A restored backup repeats the erasure. */
export interface ErasureRow {
  erasure_id: string
  /** Tenant and customer id as JSON, sealed. */
  sealed: string
  at_ms: number
  /** Null while the erasure is incomplete. */
  done_ms: number | null
}
