import { assert } from '../../policy/assert.ts'
import type { KnownSale } from './sale-codes.ts'
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

/** A request to perform an action at a device of this agent. */
export interface AuthorizeRequest {
  deviceId: string
  action: ProtectionAction
  /** Authorization token that the caller already has. */
  token?: string | undefined
  /** A receipt token, or the whole text that was scanned. */
  receipt?: string | undefined
  /** True if the receipt stands for a printed code that opens a barrier: it lets no tag pass by its product. */
  isOnlyBarrier?: true | undefined
  /** Sale of a till that a printed code names, if the cloud has not signed its receipt yet, or cannot be reached. */
  sale?: KnownSale | undefined
  /** Pick-up code of an order, which opens its locker. Only the cloud can decide about it. */
  pickupCode?: string | undefined
  identifiers: ItemIdentifiers
  /** Chip of the presented HF tag, if the reader reports it. */
  tagTechnology?: TagTechnology | undefined
  scanSource?: ScanSource | undefined
  /** Operator who approves the request. Taken only from an operator's session. */
  operatorId?: string | undefined
  /** Called before the claim. False: the caller's pairing or the operator's session has ended since the request. */
  isStillAllowed?: (() => boolean) | undefined
  /** True if another right of the same receipt has opened the gate. This right is then used up without a command. */
  isAlreadyOpen?: boolean | undefined
  /** Time at which the tag left, if the request comes later, ISO 8601; by default now. */
  occurredAt?: string | undefined
}

/** Answer to the device, the station or the program. */
export interface AuthorizeAnswer {
  authorized: boolean
  action: ProtectionAction
  expiresAt: string | null
  itemCount: number
  remaining: number
  eventId: string | null
  reason?: DenyReason
  /** True if the agent decided while it was offline. */
  offline: boolean
  /** Null if no device was actuated. Always set for an authorized action that drives an output. */
  outcome: Outcome | null
  itemStatus?: ItemStatus
  /** Age of a stale item status, s. Absent if the status is fresh. */
  statusAgeSeconds?: number
  /** Facts that an offline decision needed but the agent lacked. The strictest rule applied. Never empty. */
  unknownFacts?: readonly ItemFactName[]
}

/** The fields of an answer if no device received a command. */
export const NOTHING_RELEASED = { expiresAt: null, itemCount: 0, remaining: 0, outcome: null } as const

/** Returns the answer unchanged. Throws if the answer grants an action that drives an output, but has no outcome. */
export function assertOutcome(answer: AuthorizeAnswer): AuthorizeAnswer {
  assert(
    !answer.authorized || !drivesOutput(answer.action) || answer.outcome !== null,
    `${answer.action} is authorized without an outcome`,
  )
  return answer
}

/** Permission to use up rights of a token or receipt, or to act by override. Nothing is used up yet. */
export interface Grant {
  /** `item`: an operator approved a paid tag. `override`: an operator opened a fixture without a right. */
  source: 'token' | 'receipt' | 'item' | 'override'
  nonce: string
  /** Rights that may be used: a token's steps from 0, or entries of a receipt. */
  candidates: readonly number[]
  /** True if one actuation uses up all candidates: those that the receipt home granted. */
  all: boolean
  /** Number of units that the permission covers. */
  count: number
  /** Seconds since 1970. */
  exp: number
  receipt?: { cti: string; ordinals: readonly number[] }
  /** Token that the cloud issued for this request. */
  token?: string
  /** For a token: time of issue by the cloud's clock, seconds since 1970. */
  issuedS?: number
  /** For a token that the agent requested: last journal row that the cloud had acknowledged before the request. */
  acknowledgedSeq?: number
  /** True: no unit whose goods have left may be used (`ClaimRequest`). */
  unlessLeft?: boolean
  isolated?: { limit: number }
  /** For a receipt: the receipt home at the time of the decision. */
  homeAtDecision?: { agentId: string; epoch: number }
  /** Id of the request to the receipt home. */
  homeRequestId?: string
  /**
   * Redemption id of the rights that the receipt home granted; equals `homeRequestId`. Absent if the receipt home did
   * not answer.
   */
  homeRedemptionId?: string
  /** Number of rights of the receipt that are unused at the receipt home. */
  remaining?: number
  approval?: { operatorId: string; limit: number }
  /** Id of the cloud's event about the grant; absent if this agent decided alone. */
  eventId?: string
  itemStatus?: ItemStatus
  unknownFacts?: readonly ItemFactName[]
}

/** What the ledger needs of a grant, to claim its rights. */
export function claimOf(grant: Grant) {
  const { source, nonce, candidates, all, exp, receipt, issuedS, acknowledgedSeq: reportedSeq } = grant
  const { unlessLeft, isolated, approval, homeRequestId } = grant
  return {
    source,
    nonce,
    candidates,
    all,
    exp,
    receipt,
    issuedS,
    reportedSeq,
    unlessLeft,
    isolated,
    approval,
    homeRequestId,
  }
}

/** Facts about the item for the answer. */
export interface ItemInfo {
  itemStatus?: ItemStatus
  statusAgeSeconds?: number
  unknownFacts?: readonly ItemFactName[]
}

/** Picks the facts about the item. */
export function itemInfoOf({ itemStatus, statusAgeSeconds, unknownFacts }: ItemInfo): ItemInfo {
  return {
    ...(itemStatus && { itemStatus }),
    ...(statusAgeSeconds !== undefined && { statusAgeSeconds }),
    ...(unknownFacts && { unknownFacts }),
  }
}

export type Verdict =
  | { granted: true; grant: Grant }
  /** For `verify_item_status`, the only action that drives no output. It uses up no right. */
  | ({ granted: true; grant: null; eventId: string | null } & ItemInfo)
  /** `eventId`: the event of the denial, if the cloud has recorded one. */
  | ({ granted: false; reason: DenyReason; eventId?: string } & ItemInfo)

/** Denial that only staff can resolve. */
export const NEEDS_STAFF: Verdict = { granted: false, reason: 'manual_assistance_required' }

export type Denial = Verdict & { granted: false }

export interface RequestContext {
  request: AuthorizeRequest
  device: DeviceFacts
}
