import type { AlarmStep } from '../../../policy/vocabulary.ts'
import type { DeviceJournal } from '../../devices/device-journal.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/** What an operator did last about an alarm. */
export interface AlarmState {
  readonly step: AlarmStep
  /** Name of the operator. */
  readonly by: string
}

export interface HandledAlarmsParts {
  ledger: Pick<Ledger, 'commits' | 'journal'>
  journal: Pick<DeviceJournal, 'write'>
  /** Trusted time, ms. */
  nowMs(): number
  /** Called when a state changed and is durable. */
  onHandled(deviceId: string, eventId: string, state: AlarmState): void
}

/** Maximum alarms that operators can still handle at their gates. The oldest are then left to the console. */
export const ALARMS_LIMIT = 200

/**
 *   gate alarms ─▶ raised ─▶ an operator at the gate's display ─▶ handle ─▶ journal row ─▶ cloud
 *
 * The alarms of this agent's gates since its start, and what operators did about them. An operator may handle only these
 * alarms, and the cloud applies the same rule (cloud/protection/evidence/apply-delegated.ts). A later disposition
 * replaces an earlier one. An acknowledgement never replaces a disposition. The display does not show dispositions that
 * were made in the cloud; there, the latest one counts.
 */
export class HandledAlarms {
  readonly #parts: HandledAlarmsParts
  readonly #alarms = new Map<string, { deviceId: string; state?: AlarmState }>()

  constructor(parts: HandledAlarmsParts) {
    this.#parts = parts
  }

  /** Remembers an alarm of a gate. */
  raised(deviceId: string, eventId: string): void {
    this.#alarms.set(eventId, { deviceId })
    const oldest = this.#alarms.keys().next().value
    if (this.#alarms.size > ALARMS_LIMIT && oldest !== undefined) this.#alarms.delete(oldest)
  }

  /** What an operator did about the alarm. Undefined if nobody has handled it. */
  stateOf(eventId: string): AlarmState | undefined {
    return this.#alarms.get(eventId)?.state
  }

  /**
   * Stores what an operator did about an alarm of this gate. Resolves with the state of the alarm when the row is
   * durable, or with undefined if the gate has no such alarm. Throws if the ledger cannot store the row.
   */
  async handle(
    deviceId: string,
    eventId: string,
    { step, operatorId, name }: { step: AlarmStep; operatorId: string; name: string },
  ): Promise<AlarmState | undefined> {
    const alarm = this.#alarms.get(eventId)
    if (alarm?.deviceId !== deviceId) return undefined
    if (isSettled(alarm.state, step)) return alarm.state
    const { ledger, journal, nowMs, onHandled } = this.#parts
    // The row of the alarm itself must come first.
    await journal.write()
    const atMs = nowMs()
    await ledger.commits.durably(() =>
      ledger.journal.append({ atMs, evidence: { kind: 'alarm_handled', eventId, step, operatorId } }),
    )
    // Another operator may have disposed of the alarm during the commit.
    if (isSettled(alarm.state, step)) return alarm.state
    alarm.state = { step, by: name }
    onHandled(deviceId, eventId, alarm.state)
    return alarm.state
  }
}

/** True if the step changes nothing: it is the state already, or it acknowledges an alarm that has a disposition. */
function isSettled(state: AlarmState | undefined, step: AlarmStep): state is AlarmState {
  return state !== undefined && (state.step === step || step === 'acknowledged')
}
