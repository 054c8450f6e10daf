import type { Finding } from '../../../device-drivers/kit/device.ts'
import type { AlarmStep, DenyReason, ItemStatus, Outcome, ProtectionAction } from '../../../policy/vocabulary.ts'

/**
 * The answers of the agent, in the form that the pages read. live-event.ts and pages.tsx assign the server's types to
 * these types, so the compiler finds differences.
 */
export interface PageStatus {
  storeId: string
  storeName: string | null
  online: boolean
  /** Time since which the agent is offline, ISO 8601; null while online. */
  offlineSince: string | null
  queueDepth: number
  policyVersion: number | null
  stage: 'fresh' | 'stale' | 'expired'
  /** Release that the store's policy needs. Null if this agent is new enough. */
  neededRelease: string | null
  clock: 'signed' | 'rtc' | 'home' | 'none'
  /** Why the ledger is untrusted: revoked, forked, or restored (`put_back`). Null if the ledger is trusted. */
  ledgerDoubt: 'revoked' | 'forked' | 'put_back' | null
  /** The agent's copy of the store's items. Its age is null until it was complete once. */
  items: { ageSeconds: number | null }
  devices: PageDevice[]
  /** Devices that an emergency opens, and unreadable inputs. Null without an emergency. */
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
  /** The device that receives the reads or scans of this one. */
  feeds: string | null
  /** What a person must change at the connected device. */
  findings: readonly Finding[]
  /** State of the door behind the lock. Absent for devices without a door. */
  door?: 'shut' | 'open' | 'forced' | 'left_open' | null
}

export interface PageAnswer {
  authorized: boolean
  action: ProtectionAction
  itemCount: number
  remaining: number
  reason?: DenyReason
  offline: boolean
  /** Null if no device was actuated. */
  outcome: Outcome | null
  itemStatus?: ItemStatus
}

/** Units of a receipt with the same category, brand and price. Category and brand may be empty. */
export interface PageGoods {
  /** Name of the product, if it is the only one with these facts. */
  name?: string
  category: string
  brand: string
  priceCent: number
  quantity: number
}

/** When (ISO 8601) and where the labels of a receipt were released. */
export interface PageUsedReceipt {
  at: string
  deviceName?: string
}

/** A click-and-collect order that a customer picks up. */
export interface PageOrder {
  orderId: string
  /** pending, confirmed, preparing, ready, picked_up. */
  status: string
  items: { name: string; quantity: number }[]
  note?: string
}

/** Alarms that a device raises without a request. */
export type PageAlarm = 'unexpected_release' | 'door_forced' | 'door_left_open'

/** Why a scan led to no decision. */
export type NotUnderstood =
  | 'unknown_code'
  | 'needs_connection'
  | 'needs_staff'
  | 'purchase_not_paid'
  | 'receipt_expired'
  | 'number_ambiguous'
  | 'code_for_exit'
  | 'unknown_code_or_number'
  | 'product_code'
  | 'wrong_badge'
  | 'locked'
  | 'no_store_key'
  | 'out_of_order'

export type PageResult =
  /**
   * `item`: the tag that the request named. `product`: name of its product. `picture`: hash of its picture. `next`: goods
   * of the receipt that are not released yet. `alarmId`: id of a gate alarm. `emergency`: raised during one. `used`: the last release by a receipt that
   * has nothing left.
   */
  | {
      kind: 'decision'
      answer: PageAnswer
      item?: string
      product?: string
      picture?: string
      next?: readonly PageGoods[]
      /** Further goods of the receipt, which only staff release. */
      forStaff?: number
      alarmId?: string
      emergency?: true
      used?: PageUsedReceipt
    }
  | { kind: 'operator'; name: string }
  | { kind: 'receipt'; left: number; next?: readonly PageGoods[]; used?: PageUsedReceipt }
  | { kind: 'alarm'; what: PageAlarm }
  | { kind: 'order'; order: PageOrder }
  | { kind: 'not_understood'; why: NotUnderstood }

/** What a person did last about a gate alarm. `by`: name of the person, empty if unknown. */
export interface PageAlarmState {
  step: AlarmStep
  by: string
}

/** Light of the gate. Null if the gate showed no light: a policy may ignore unknown tags. */
export type GateLight = 'green' | 'amber' | 'siren' | null

export type LiveEvent =
  | { type: 'status'; status: PageStatus }
  /** `atMs`: wall clock. `light`: at gates only. */
  | { type: 'result'; deviceId: string; atMs: number; result: PageResult; light?: GateLight }
  | { type: 'operator'; deviceId: string; name: string | null }
  | ({ type: 'alarm'; deviceId: string; alarmId: string } & PageAlarmState)
  | { type: 'person'; deviceId: string; direction: 'in' | 'out'; count: number }

/** A result that a lane may still show, for pages that open later. `ageMs`: time since the result. */
export interface RecentResult {
  ageMs: number
  result: PageResult
  light?: GateLight
}

/** Outputs that the set-up page tests. */
export type PageTestedOutput = 'green' | 'amber' | 'siren' | 'release'
/** Duration of a walk test on the set-up page, s. */
export const WALK_SECONDS = 20
