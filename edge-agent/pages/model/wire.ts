import type { DenyReason, ItemStatus, Outcome, ProtectionAction } from '../../../policy/vocabulary.ts'

/**
 * The agent's answers as the pages read them. The server converts its own types to these in live-event.ts and
 * pages.tsx, so the compiler finds differences.
 */
export interface PageStatus {
  storeId: string
  storeName: string | null
  online: boolean
  /** ISO; null while online. */
  offlineSince: string | null
  queueDepth: number
  policyVersion: number | null
  stage: 'fresh' | 'stale' | 'expired'
  /** The release that the store's policy needs, if this agent is older; else null. */
  neededRelease: string | null
  clock: 'signed' | 'rtc' | 'home' | 'none'
  /** Why the ledger is not trusted: revoked, forked or restored; null: it is trusted. */
  ledgerDoubt: 'revoked' | 'forked' | 'put_back' | null
  devices: PageDevice[]
  /** What an emergency input opens; null: there is no emergency. */
  emergency: { opened: string[]; lost: string[] } | null
  fault: string | null
}

/** The agent refuses every request for a device in this state. */
export type PageRegistrationFault = 'unknown_device' | 'device_of_another_agent' | 'decommissioned_device'

export interface PageDevice {
  deviceId: string
  driver: string
  state: 'absent' | 'opening' | 'identifying' | 'ready' | 'degraded' | 'stopped' | PageRegistrationFault
  detail: string
  name: string | null
  deviceType: string | null
  /** State of the door behind the lock; only for devices that have one. */
  door?: 'shut' | 'open' | 'forced' | 'left_open' | null
}

export interface PageAnswer {
  authorized: boolean
  action: ProtectionAction
  itemCount: number
  remaining: number
  reason?: DenyReason
  offline: boolean
  /** null: nothing was actuated. */
  outcome: Outcome | null
  itemStatus?: ItemStatus
}

/** A click-and-collect order at its pick-up. */
export interface PageOrder {
  orderId: string
  /** pending, confirmed, preparing, ready, picked_up. */
  status: string
  items: { name: string; quantity: number }[]
  note?: string
}

/** An event at a lane without a request. */
export type PageAlarm = 'unexpected_release' | 'door_forced' | 'door_left_open'

/** Why a scan did not become a request. */
export type NotUnderstood =
  | 'unknown_code'
  | 'needs_connection'
  | 'product_code'
  | 'wrong_badge'
  | 'locked'
  | 'no_store_key'
  | 'out_of_order'

export type PageResult =
  | { kind: 'decision'; answer: PageAnswer; /** The tag that the request named. */ item?: string }
  | { kind: 'operator'; name: string }
  | { kind: 'receipt'; left: number }
  | { kind: 'alarm'; what: PageAlarm }
  | { kind: 'order'; order: PageOrder }
  | { kind: 'not_understood'; why: NotUnderstood }

/** The light of the gate; null if it showed none, as a policy may set for unknown tags. */
export type GateLight = 'green' | 'amber' | 'siren' | null

export type LiveEvent =
  | { type: 'status'; status: PageStatus }
  /** `atMs`: wall clock. `light`: at gates only. */
  | { type: 'result'; deviceId: string; atMs: number; result: PageResult; light?: GateLight }
  | { type: 'operator'; deviceId: string; name: string | null }
  | { type: 'person'; deviceId: string; direction: 'in' | 'out'; count: number }
