import type { Signal } from '../../device-drivers/kit/device.ts'
import { GATE_BEHAVIOUR } from '../../policy/item-status.ts'
import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { AuthorizeAnswer } from '../decisions/request.ts'
import { SIREN_SECONDS } from '../devices/wiring.ts'

/** Light or siren of a gate. Alarms never wait for the ledger (P2). */
interface GateSignal {
  signal: Signal
  seconds: number
  /** True if the agent also records an exception. */
  isAlarm: boolean
}

/** How long green is lit, s. */
export const GREEN_SECONDS = 4
/** How long amber is lit, s. */
export const AMBER_SECONDS = 4

/**
 * Chooses the signal for a decision. Green means that the gate is open. Only tags sound the siren; a denied receipt
 * lights amber. If the agent does not know whether a tag is paid, the policy chooses the signal; the default is amber.
 * `sirenSeconds`: alarm duration of the gate. `isReleased`: an agent of the store has just released the tag.
 */
export function gateSignal(
  answer: AuthorizeAnswer,
  hasTag: boolean,
  policy: ProtectionPolicy | undefined,
  sirenSeconds = SIREN_SECONDS,
  isReleased = false,
): GateSignal | undefined {
  const amber: GateSignal = { signal: 'amber', seconds: AMBER_SECONDS, isAlarm: false }
  // If the gate failed to open, green would send the shopper to a closed gate.
  if (answer.authorized)
    return answer.outcome === 'failed' || answer.outcome === 'unknown'
      ? amber
      : { signal: 'green', seconds: GREEN_SECONDS, isAlarm: false }
  if (!hasTag) return amber
  const siren: GateSignal = { signal: 'siren', seconds: sirenSeconds, isAlarm: true }
  // If the item may leave but the request was denied, amber calls staff.
  if (isReleased) return amber
  if (answer.itemStatus && GATE_BEHAVIOUR[answer.itemStatus] === 'pass') return amber
  // No payment ends a recall, so the age of the status does not matter.
  if (answer.reason === 'recalled') return siren
  // If the status is stale, the item may be paid by now.
  const isKnown = answer.statusAgeSeconds === undefined
  if (answer.itemStatus && isKnown) return siren
  // Without an item status, this reason means that the receipt does not cover the tag.
  if (answer.reason === 'item_not_paid' && isKnown) return siren
  if (policy?.unknownTag === 'siren') return siren
  return policy?.unknownTag === 'ignore' ? undefined : amber
}
