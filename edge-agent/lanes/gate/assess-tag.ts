import type { TagName } from '../../../device-drivers/kit/device.ts'
import {
  tagOwnerOf,
  severityOf,
  type GatePolicy,
  type Severity,
  type ProtectionPolicy,
} from '../../../policy/store-policy.ts'
import { GATE_BEHAVIOUR } from '../../../policy/item-status.ts'
import type { KnownItem } from '../../items/item-table.ts'
import { STALE_SECONDS } from '../../items/replica.ts'

/**
 * Reason of a gate's assessment of a leaving tag (docs/guides/gate.md).
 *
 * - `paid`: the item's status allows it to leave
 * - `receipt`: a receipt that was presented at the gate covers the tag
 * - `released`: an agent of the store released the unit, and the cloud has sent no newer status
 * - `sold_piece`: a till sold a piece of the product without naming its tag, and the policy lets a tag pass for it
 * - `recalled`: a recall stops the item, also if it is paid
 * - `not_paid`: the item's status does not allow it to leave
 * - `alarm_mask`: by the policy, tags with this EPC mask always alarm
 * - `foreign_tag`: the tag belongs to another shop
 * - `unknown_tag`: the tag is not registered, and its owner is unknown
 * - `status_stale`: the item's status does not allow it to leave, but the status is stale
 * - `bulk`: many unpaid items leave together
 * - `replenishment`: very many unpaid items leave, because staff move goods
 */
export type GateReason =
  | 'paid'
  | 'receipt'
  | 'released'
  | 'sold_piece'
  | 'recalled'
  | 'not_paid'
  | 'alarm_mask'
  | 'foreign_tag'
  | 'unknown_tag'
  | 'status_stale'
  | 'bulk'
  | 'replenishment'

export interface TagAssessment {
  readonly reason: GateReason
  /** `pass`: no alarm. */
  readonly severity: Severity | 'pass'
  readonly item?: KnownItem
  /** Rule of the policy that set the severity; 0: none. */
  readonly rule?: number
}

/** Facts about a leaving tag. */
interface LeavingTag {
  readonly name: TagName
  readonly item: KnownItem | undefined
  /** Age of the replica, s. */
  readonly ageSeconds: number
  /** Returns what allows an unpaid tag to leave: a presented receipt, a release, or a piece that a till sold. */
  coverage(): 'receipt' | 'released' | 'sold_piece' | undefined
}

/**
 * True if a receipt or a release may let the tag leave. Every other status is stronger than both, such as a hold (ADR
 * releases).
 */
export function mayBeCovered(item: KnownItem | undefined): boolean {
  return item === undefined || item.status === 'sellable' || GATE_BEHAVIOUR[item.status] === 'pass'
}

/** Assesses one leaving tag, without regard to other tags. */
export function assessTag(tag: LeavingTag, policy: ProtectionPolicy, gate: GatePolicy): TagAssessment {
  const { item } = tag
  if (!item) return assessUnknownTag(tag, policy, gate)
  if (GATE_BEHAVIOUR[item.status] === 'pass') return { reason: 'paid', severity: 'pass', item }
  const covered = mayBeCovered(item) ? tag.coverage() : undefined
  if (covered) return { reason: covered, severity: 'pass', item }
  // No payment ends a recall, so neither the age of the status nor the value of the goods matters.
  if (item.recalled) return { reason: 'recalled', severity: 'siren', item }
  const { severity, rule } = severityOf(gate, item)
  // If the status is stale, the shopper may have paid by now. So the gate notifies staff instead of sounding the siren,
  // unless the policy demands the siren even for unregistered tags.
  const isSoftened = tag.ageSeconds > STALE_SECONDS && severity === 'siren' && policy.unknownTag !== 'siren'
  if (tag.ageSeconds > STALE_SECONDS)
    return { reason: 'status_stale', severity: isSoftened ? 'notify' : severity, item, rule }
  return { reason: 'not_paid', severity, item, rule }
}

function assessUnknownTag(tag: LeavingTag, policy: ProtectionPolicy, gate: GatePolicy): TagAssessment {
  const owner = tagOwnerOf(gate, 'epc' in tag.name ? tag.name.epc : undefined)
  if (owner === 'foreign') return { reason: 'foreign_tag', severity: 'pass' }
  const covered = tag.coverage()
  if (covered) return { reason: covered, severity: 'pass' }
  if (owner === 'alarm') return { reason: 'alarm_mask', severity: 'siren' }
  if (policy.unknownTag === 'ignore') return { reason: 'unknown_tag', severity: 'pass' }
  return { reason: 'unknown_tag', severity: policy.unknownTag }
}

/** Describes the assessment for people, for `detail` of the event. */
export function explain({ reason, severity, item, rule }: TagAssessment, ageSeconds: number): string {
  const parts = [
    `${severity}: ${reason}`,
    item && `the item is ${item.status}`,
    item?.category && `category ${item.category}`,
    item?.priceCent !== undefined && `${(item.priceCent / 100).toFixed(2)} EUR`,
    rule !== undefined && rule > 0 && `severity by rule ${rule}`,
    reason === 'status_stale' &&
      (Number.isFinite(ageSeconds)
        ? `items are ${Math.round(ageSeconds)} s old`
        : 'items were never received completely'),
  ]
  return parts.filter(Boolean).join('; ').slice(0, 300)
}

/** Reads severity and reason from a text of `explain`. Undefined if the text is another one. */
export function readExplained(detail: string): { severity: string; reason: string } | undefined {
  const [, severity, reason] = /^(siren|notify|silent): (\w+)(?:;|$)/.exec(detail) ?? []
  return severity === undefined || reason === undefined ? undefined : { severity, reason }
}
