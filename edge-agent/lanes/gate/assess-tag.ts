import type { TagName } from '../../../device-drivers/drivers/device.ts'
import { tagOwnerOf, severityOf, type GatePolicy, type Severity } from '../../../policy/gate-policy.ts'
import { GATE_BEHAVIOUR } from '../../../policy/item-status.ts'
import type { ProtectionPolicy } from '../../../policy/store-policy.ts'
import type { KnownItem } from '../../items/item-table.ts'
import { STALE_SECONDS } from '../../items/replica.ts'

/**
 * Why a gate did what it did about a leaving tag. Listed in docs/guides/gate.md.
 *
 * - `paid`: its status lets it leave · `receipt`: a receipt that was shown here covers it
 * - `released`: an agent of the store has released it, and the cloud has said nothing newer of it
 * - `not_paid`: its status does not · `alarm_mask`: such tags always alarm
 * - `foreign_tag`: of another shop · `unknown_tag`: registered nowhere, and nobody can say whose it is
 * - `status_stale`: its status does not let it leave, but is too old to be sure
 * - `bulk`: one of many · `replenishment`: one of very many, which are being moved
 */
export type GateReason =
  | 'paid'
  | 'receipt'
  | 'released'
  | 'not_paid'
  | 'alarm_mask'
  | 'foreign_tag'
  | 'unknown_tag'
  | 'status_stale'
  | 'bulk'
  | 'replenishment'

export interface TagAssessment {
  readonly reason: GateReason
  /** `pass`: nothing is wrong. */
  readonly severity: Severity | 'pass'
  readonly item?: KnownItem
  /** Which rule of the policy said how loud; 0: none of them. */
  readonly rule?: number
}

/** What is known when a tag leaves. */
export interface LeavingTag {
  readonly name: TagName
  readonly item: KnownItem | undefined
  /** Seconds since the items were last known to be complete. */
  readonly ageSeconds: number
  /** What covers it: a receipt that was shown, or a release. */
  coverage(): 'receipt' | 'released' | undefined
}

/** What is to be done about one leaving tag, looked at by itself. */
export function assessTag(tag: LeavingTag, policy: ProtectionPolicy, gate: GatePolicy): TagAssessment {
  const { item } = tag
  if (!item) return assessUnknownTag(tag, policy, gate)
  if (GATE_BEHAVIOUR[item.status] === 'pass') return { reason: 'paid', severity: 'pass', item }
  const covered = tag.coverage()
  if (covered) return { reason: covered, severity: 'pass', item }
  const { severity, rule } = severityOf(gate, item)
  // Whether it was paid since nobody here can know: that is a question for people, unless the policy says otherwise.
  const isLouder = tag.ageSeconds > STALE_SECONDS && severity === 'siren' && policy.unknownTag !== 'siren'
  if (tag.ageSeconds > STALE_SECONDS)
    return { reason: 'status_stale', severity: isLouder ? 'notify' : severity, item, rule }
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

/** The judgement for people, as it stands in `detail` of the event. */
export function explain({ reason, severity, item, rule }: TagAssessment, ageSeconds: number): string {
  const parts = [
    `${severity}: ${reason}`,
    item && `the item is ${item.status}`,
    item?.category && `category ${item.category}`,
    item?.priceCent !== undefined && `${(item.priceCent / 100).toFixed(2)} EUR`,
    rule !== undefined && rule > 0 && `severity by rule ${rule}`,
    reason === 'status_stale' &&
      (Number.isFinite(ageSeconds)
        ? `items last heard of ${Math.round(ageSeconds)} s ago`
        : 'items never heard of completely'),
  ]
  return parts.filter(Boolean).join('; ').slice(0, 300)
}
