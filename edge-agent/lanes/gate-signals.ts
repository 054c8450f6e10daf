import type { Signal } from '../../device-drivers/drivers/device.ts'
import { GATE_BEHAVIOUR } from '../../policy/item-status.ts'
import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { AuthorizeAnswer } from '../decisions/request.ts'
import { SIREN_SECONDS } from '../devices/wiring.ts'

/** What a gate shows and sounds. Protective signals never wait for the ledger (P2). */
export interface GateSignal {
  signal: Signal
  seconds: number
  /** An alarm is told as an exception, with its reason. */
  isAlarm: boolean
}

/** How long green is lit, s. */
export const GREEN_SECONDS = 4
/** How long amber is lit, s. */
export const AMBER_SECONDS = 4

/**
 * Green is for a way that is open. Only tags sound the siren: a refused receipt by itself lights amber (contracts §4). A tag whose
 * payment state cannot be known does what the policy says, by default no more than amber. `sirenSeconds` is the gate's own.
 */
export function gateSignal(
  answer: AuthorizeAnswer,
  hasTag: boolean,
  policy: ProtectionPolicy | undefined,
  sirenSeconds = SIREN_SECONDS,
): GateSignal | undefined {
  const amber: GateSignal = { signal: 'amber', seconds: AMBER_SECONDS, isAlarm: false }
  // Nobody is sent to a way that has stayed shut.
  if (answer.authorized)
    return answer.outcome === 'failed' || answer.outcome === 'unknown'
      ? amber
      : { signal: 'green', seconds: GREEN_SECONDS, isAlarm: false }
  if (!hasTag) return amber
  const siren: GateSignal = { signal: 'siren', seconds: sirenSeconds, isAlarm: true }
  // A refused item whose status lets it leave is for staff, not for the siren.
  if (answer.itemStatus && GATE_BEHAVIOUR[answer.itemStatus] === 'pass') return amber
  // What was heard too long ago may be paid by now.
  const isKnown = answer.statusAgeSeconds === undefined
  if (answer.itemStatus && isKnown) return siren
  // A receipt that does not cover the tag: the tag is known not to be paid by it.
  if (answer.reason === 'item_not_paid' && isKnown) return siren
  if (policy?.unknownTag === 'siren') return siren
  return policy?.unknownTag === 'ignore' ? undefined : amber
}
