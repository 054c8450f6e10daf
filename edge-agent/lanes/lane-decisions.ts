import type { DeviceFacts } from '../../policy/devices.ts'
import { hasItemIdentifier } from '../../policy/item-identifiers.ts'
import { rightClassOf, type DenyReason } from '../../policy/vocabulary.ts'
import type { Authorize } from '../decisions/authorize.ts'
import type { AuthorizeAnswer, AuthorizeRequest } from '../decisions/request.ts'
import { findByTag } from '../items/find-item.ts'
import type { Replica } from '../items/replica.ts'
import type { GateRequests } from './gate/gate-requests.ts'
import { goodsOf, unusedRights, type Goods, type ReceiptParts } from './unused-rights.ts'

export interface LaneDecisionsParts extends ReceiptParts {
  items: Pick<Replica, 'find' | 'onlyProductOf'>
  /** The policy's facts about the device; undefined if the policy does not list it. */
  deviceOf(deviceId: string): DeviceFacts | undefined
  authorize: Authorize
  gateRequests: Pick<GateRequests, 'decide'>
}

/** Denials that can come from the receipt: the receipt does not cover the tag, or is not valid. */
const RECEIPT_REASONS: ReadonlySet<DenyReason> = new Set([
  'item_not_paid',
  'no_tagged_goods',
  'store_mismatch',
  'token_invalid',
  'token_expired',
  'token_revoked',
])

/**
 * Decides the requests of lanes: at gates with `GateRequests`, which also switches lights and siren; elsewhere with
 * `authorize`.
 */
export class LaneDecisions {
  readonly #parts: LaneDecisionsParts
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(parts: LaneDecisionsParts) {
    this.#parts = parts
  }

  decide(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const decided = this.#decideAt(request)
    this.#underWay.add(decided)
    return decided.finally(() => this.#underWay.delete(decided))
  }

  /**
   * Decides with the remembered receipt. If that receipt is the reason of a denial and the item is paid, decides again
   * without the receipt. The receipt may belong to another shopper.
   */
  async decideWithOrWithoutReceipt(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const { receipt, ...withoutReceipt } = request
    const first = await this.decide({ ...withoutReceipt, ...(receipt !== undefined && { receipt }) })
    const mayBeReceipt = receipt !== undefined && first.reason !== undefined && RECEIPT_REASONS.has(first.reason)
    const status = mayBeReceipt && findByTag(this.#parts.items, withoutReceipt.identifiers)?.status
    return status === 'paid' || status === 'picked_up' ? this.decide(withoutReceipt) : first
  }

  /**
   * Goods of the request's receipt that are still to be released. Empty if this agent does not know them: it does not
   * know the units that other agents released, so their number must fit the answer.
   */
  goodsLeft({ receipt, action }: AuthorizeRequest, { authorized, remaining }: AuthorizeAnswer): Goods[] {
    if (!authorized || remaining === 0 || receipt === undefined || rightClassOf(action) !== 'release') return []
    const rest = unusedRights(this.#parts, receipt, 'release')
    return rest?.unused.length === remaining ? goodsOf(rest, this.#parts.items) : []
  }

  /** Resolves when all running decisions are stored with their outcomes. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  async #decideAt(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const { deviceOf, gateRequests, authorize } = this.#parts
    const isGate = deviceOf(request.deviceId)?.deviceType === 'exit_gate'
    return isGate ? gateRequests.decide(request) : this.#withRest(request, await authorize(request))
  }

  /** Adds the number of unused units of the receipt, because the answer for a tag covers only one unit. */
  #withRest({ receipt, identifiers, action }: AuthorizeRequest, answer: AuthorizeAnswer): AuthorizeAnswer {
    const isOneUnit = answer.authorized && hasItemIdentifier(identifiers) && rightClassOf(action) === 'release'
    if (!isOneUnit || receipt === undefined) return answer
    const rest = unusedRights(this.#parts, receipt, 'release')
    return rest ? { ...answer, itemCount: rest.claims.units, remaining: rest.unused.length } : answer
  }
}
