import { assert } from '../../policy/assert.ts'
import type { DeviceFacts } from '../../policy/devices.ts'
import type { ItemIdentifiers } from '../../policy/item-identifiers.ts'
import {
  drivesOutput,
  type DenyReason,
  type ItemFactName,
  type ItemStatus,
  type Outcome,
  type ProtectionAction,
  type ScanSource,
  type TagTechnology,
} from '../../policy/vocabulary.ts'

/** Somebody wants a device of this agent to do something. */
export interface AuthorizeRequest {
  deviceId: string
  action: ProtectionAction
  /** An authorization token that somebody else fetched. */
  token?: string | undefined
  /** A receipt token, or the whole text that was scanned. */
  receipt?: string | undefined
  identifiers: ItemIdentifiers
  /** Chip of the presented HF tag, if the reader can tell. */
  tagTechnology?: TagTechnology | undefined
  scanSource?: ScanSource | undefined
  /** Who stands behind it: only ever out of an operator's session. */
  operatorId?: string | undefined
  /** What would move has moved already, under another right of the same receipt: this one is used up, and moves nothing. */
  isAlreadyOpen?: boolean | undefined
  /** When that was, where it is not now; ISO 8601. */
  occurredAt?: string | undefined
}

/** What the device, the station or the program is told (contracts §6). */
export interface AuthorizeAnswer {
  authorized: boolean
  action: ProtectionAction
  expiresAt: string | null
  itemCount: number
  remaining: number
  eventId: string | null
  reason?: DenyReason
  /** Decided with no working connection to the cloud. */
  offline: boolean
  /** null: nothing was actuated. Never null with `authorized` for an action that drives an output. */
  outcome: Outcome | null
  itemStatus?: ItemStatus
  /** The status is as old as this, and may have changed since. */
  statusAgeSeconds?: number
  /** Of an offline decision: what a rule needed to know of the item and was unknown, so the strictest rule counted. Never empty. */
  unknownFacts?: readonly ItemFactName[]
}

/** The fields of an answer for which no device was commanded. */
export const NOTHING_RELEASED = { expiresAt: null, itemCount: 0, remaining: 0, outcome: null } as const

/** The answer as it is; throws where an action that drives an output is authorized without an outcome. */
export function assertOutcome(answer: AuthorizeAnswer): AuthorizeAnswer {
  assert(
    !answer.authorized || !drivesOutput(answer.action) || answer.outcome !== null,
    `${answer.action} is authorized without an outcome`,
  )
  return answer
}

/** Leave to use rights up, from a token or a receipt, or to act on an operator's word. Nothing is used up yet. */
export interface Grant {
  /** `override`: an operator alone stands for it. */
  source: 'token' | 'receipt' | 'override'
  nonce: string
  /** Rights that may be used: a token's steps from 0, or entries of a receipt. */
  candidates: readonly number[]
  /** All of them at once, with one actuation: leaving with a receipt. */
  all: boolean
  /** How many units it is about altogether. */
  count: number
  /** Seconds since 1970. */
  exp: number
  receipt?: { cti: string; ordinals: readonly number[] }
  /** The token that the cloud gave for this request. */
  token?: string
  /** Of a token: when the cloud gave it, s by its clock. */
  issuedS?: number
  /** Of one that was fetched for this: up to which row the cloud had the ledger when it was asked. */
  acknowledgedSeq?: number
  isolated?: { limit: number }
  /** Of a receipt: whom this agent took for the home when it decided. */
  home?: { agentId: string; epoch: number }
  /** Under which id the home was asked. */
  homeRequestId?: string
  /** It has given these rights under this id, the same. */
  homeRedemptionId?: string
  /** How many the home has left, where it was asked. */
  remaining?: number
  approval?: { operatorId: string; limit: number }
  /** The event that granted it, where the cloud did. */
  eventId?: string
  itemStatus?: ItemStatus
  unknownFacts?: readonly ItemFactName[]
}

/** What is known of the item, for the answer. */
export interface ItemInfo {
  itemStatus?: ItemStatus
  statusAgeSeconds?: number
  unknownFacts?: readonly ItemFactName[]
}

/** What an answer says of the item. */
export function itemInfoOf({ itemStatus, statusAgeSeconds, unknownFacts }: ItemInfo): ItemInfo {
  return {
    ...(itemStatus && { itemStatus }),
    ...(statusAgeSeconds !== undefined && { statusAgeSeconds }),
    ...(unknownFacts && { unknownFacts }),
  }
}

export type Verdict =
  | { granted: true; grant: Grant }
  /** Nothing is to be used up: asking for an item's status, the one action that drives no output. */
  | ({ granted: true; grant: null; eventId: string | null } & ItemInfo)
  /** `eventId`: the cloud has recorded it already. */
  | ({ granted: false; reason: DenyReason; eventId?: string } & ItemInfo)

/** The agent releases nothing by itself: staff must look. */
export const NEEDS_STAFF: Verdict = { granted: false, reason: 'manual_assistance_required' }

export type Denial = Verdict & { granted: false }

export interface RequestContext {
  request: AuthorizeRequest
  device: DeviceFacts
}
