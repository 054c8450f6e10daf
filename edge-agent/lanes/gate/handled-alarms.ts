import { z } from 'zod'
import { ALARM_STATES_LIMIT, AlarmStateReport } from '../../../policy/documents/agent-messages.ts'
import type { AlarmDisposition, AlarmStep } from '../../../policy/vocabulary.ts'
import type { DeviceJournal } from '../../devices/device-journal.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AlarmHandled } from '../../../policy/journal.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'

/** What a person did last about an alarm. */
export interface AlarmState {
  readonly step: AlarmStep
  /** Name of the person. Empty if unknown. */
  readonly by: string
}

export interface HandledAlarmsParts {
  ledger: Pick<Ledger, 'commits' | 'journal'>
  journal: Pick<DeviceJournal, 'write'>
  /** Name of an operator; undefined if the policy does not know the operator. */
  operatorName(operatorId: string): string | undefined
  /** Trusted time, ms. */
  nowMs(): number
  /** Called when the gates begin to wait for what people do about an alarm (`isAwaited`). */
  onAwaited(): void
  /** Called when a state changed and is durable. */
  onHandled(deviceId: string, eventId: string, state: AlarmState): void
}

const AlarmStateReports = z.array(AlarmStateReport)

/** State of the alarms that the cloud is to report, by event id. */
type AwaitedAlarms = ReadonlyMap<string, AlarmState | undefined>

/** Disposition that a person has seen, or `none`. */
type SeenDisposition = AlarmDisposition | 'none'

/** What an operator did, and what the goods are worth that came back. */
interface Handling {
  readonly step: AlarmStep
  readonly operatorId: string
  readonly name: string
  readonly seen?: SeenDisposition
  readonly recoveredCent?: number
}

/** Time after an alarm in which a person is likely to decide about it, ms. */
const AWAITED_MS = 10 * 60_000
/** Alarms that are older than this at the start are left to the console, ms. */
const KEPT_MS = 24 * 3_600_000
/**
 * Maximum alarms of each gate that operators can still handle there. The first to be left to the console are those with
 * a cause, then the oldest. It exceeds what the page of a gate keeps (`OPEN_KEPT`), so each open line learns its cause.
 */
export const ALARMS_LIMIT = 200
/** Maximum alarms of the gates after a restart. */
export const RESTORED_LIMIT = 50
/** Alarms with a cause, or with a newer alarm of their tag, about which each request asks again: the latest ones. */
const CLOSED_ASKED = 50

interface KnownAlarm {
  readonly deviceId: string
  /** EPC or UID; undefined if unknown. */
  readonly tag: string | undefined
  readonly raisedMs: number
  state?: AlarmState
  lastRow: number
}

/**
 *   gate alarms ─▶ raised ─▶ an operator at the gate's display ─▶ handle ─▶ journal row ─▶ cloud
 *                            people in the console ─▶ cloud ─▶ receive
 *
 * The latest alarms of this agent's gates, and what people did about them. After a restart they come from the journal;
 * what people did in the console comes with the next report of the cloud. An operator may handle only these alarms, and the cloud applies the same rule (cloud/protection/evidence/apply-delegated.ts). A later disposition
 * replaces an earlier one. An acknowledgement never replaces a disposition. The cloud decides which disposition is the
 * latest: its report replaces the state of an alarm as soon as it has every row about the alarm.
 */
export class HandledAlarms {
  readonly #parts: HandledAlarmsParts
  /** By event id, the oldest first. */
  readonly #alarms = new Map<string, KnownAlarm>()
  /** Place among the open alarms from which the next request asks, if one request cannot name all. */
  #askedFrom = 0
  /** Events of the alarms before the start, oldest first. */
  readonly #before: readonly ProtectionEvent[]
  /** True if alarms of the last day before the start are missing in `before`. */
  readonly isBeforeCut: boolean

  constructor(parts: HandledAlarmsParts) {
    this.#parts = parts
    const rows = parts.ledger.journal.alarmsSince(parts.nowMs() - KEPT_MS)
    const alarms = rows.flatMap(({ body: { event } }) => (event && event.deviceId !== undefined ? [event] : []))
    this.#before = alarms.slice(-RESTORED_LIMIT)
    this.isBeforeCut = alarms.length > RESTORED_LIMIT
    for (const { deviceId = '', eventId, epc, tagUid } of this.#before) this.#remember(deviceId, eventId, epc ?? tagUid)
    for (const { seq, body } of rows) if (body.evidence?.kind === 'alarm_handled') this.#restore(body.evidence, seq)
  }

  /** Events of the alarms before the start of the agent, oldest first, for the display of their gate. */
  get before(): readonly ProtectionEvent[] {
    return this.#before
  }

  #restore({ eventId, step, operatorId }: AlarmHandled, seq: number): void {
    const alarm = this.#alarms.get(eventId)
    if (!alarm) return
    alarm.lastRow = seq
    if (isSettled(alarm.state, step)) return
    alarm.state = { step, by: this.#parts.operatorName(operatorId) ?? '' }
  }

  /** Remembers an alarm of a gate. */
  raised(deviceId: string, eventId: string, tag?: string): void {
    const wasAwaited = this.isAwaited()
    this.#remember(deviceId, eventId, tag)
    if (!wasAwaited) this.#parts.onAwaited()
  }

  /** True for some minutes after an alarm, until its cause is recorded: a guard may look at the gate and the console. */
  isAwaited(): boolean {
    const sinceMs = this.#parts.nowMs() - AWAITED_MS
    return [...this.#alarms.values()].some((alarm) => alarm.raisedMs > sinceMs && isOpen(alarm))
  }

  #remember(deviceId: string, eventId: string, tag: string | undefined): void {
    this.#alarms.set(eventId, { deviceId, tag, lastRow: 0, raisedMs: this.#parts.nowMs() })
    const ofGate = [...this.#alarms].filter(([, alarm]) => alarm.deviceId === deviceId)
    if (ofGate.length <= ALARMS_LIMIT) return
    const newest = this.#newestOfTags()
    const [forgotten] = ofGate.find(([id, alarm]) => !isOpen(alarm) || !newest(id, alarm)) ?? ofGate[0] ?? []
    if (forgotten !== undefined) this.#alarms.delete(forgotten)
  }

  /** Tells whether an alarm is the newest of its tag. The cloud knows an earlier one no longer as an open alarm. */
  #newestOfTags(): (eventId: string, alarm: KnownAlarm) => boolean {
    const newest = new Map([...this.#alarms].map(([eventId, { tag }]) => [tag, eventId]))
    return (eventId, { tag }) => tag === undefined || newest.get(tag) === eventId
  }

  /** What a person did about the alarm. Undefined if it is open. */
  stateOf(eventId: string): AlarmState | undefined {
    return this.#alarms.get(eventId)?.state
  }

  /**
   * All open alarms, and the last others. If there are more than one request can name, requests ask in turns. Alarms
   * about which the cloud lacks a row are left out: its report would be out of date.
   */
  request(): AwaitedAlarms {
    const { acked } = this.#parts.ledger.journal
    const isNewest = this.#newestOfTags()
    const alarms = [...this.#alarms].filter(([, { lastRow }]) => lastRow <= acked)
    const open = alarms.filter(([eventId, alarm]) => isOpen(alarm) && isNewest(eventId, alarm))
    const closed = alarms.filter(([eventId, alarm]) => !isOpen(alarm) || !isNewest(eventId, alarm)).slice(-CLOSED_ASKED)
    const room = ALARM_STATES_LIMIT - closed.length
    if (this.#askedFrom >= open.length) this.#askedFrom = 0
    const asked = open.slice(this.#askedFrom, this.#askedFrom + room)
    this.#askedFrom += room
    return new Map([...closed, ...asked].map(([eventId, { state }]) => [eventId, state]))
  }

  /** Accepts the report of the cloud about requested alarms, except those that an operator has handled meanwhile. */
  receive(awaited: AwaitedAlarms, answer: unknown): void {
    for (const { eventId, step, by } of AlarmStateReports.safeParse(answer).data ?? []) {
      const alarm = this.#alarms.get(eventId)
      if (!alarm || !awaited.has(eventId) || alarm.state !== awaited.get(eventId)) continue
      if (alarm.state?.step === step && alarm.state.by === by) continue
      this.#setState(eventId, alarm, { step, by })
    }
  }

  /** A cause also ends the earlier open alarms of the tag, which another gate may still show: only the newest is asked about. */
  #setState(eventId: string, alarm: KnownAlarm, state: AlarmState): void {
    alarm.state = state
    this.#parts.onHandled(alarm.deviceId, eventId, state)
    if (alarm.tag === undefined || isOpen(alarm)) return
    for (const [earlierId, earlier] of this.#alarms) {
      if (earlierId === eventId) return
      if (earlier.tag !== alarm.tag || !isOpen(earlier)) continue
      earlier.state = state
      this.#parts.onHandled(earlier.deviceId, earlierId, state)
    }
  }

  /**
   * Stores what an operator did about an alarm of this gate. Resolves with the state of the alarm when the row is
   * durable, or with undefined if the gate has no such alarm. Stores nothing and resolves with `isChanged` if the alarm
   * has another disposition than the operator has `seen`. Throws if the ledger cannot store the row.
   */
  async handle(
    deviceId: string,
    eventId: string,
    { step, operatorId, name, seen, recoveredCent }: Handling,
  ): Promise<{ state: AlarmState; isChanged: boolean } | undefined> {
    const alarm = this.#alarms.get(eventId)
    if (alarm?.deviceId !== deviceId) return undefined
    if (recoveredCent === undefined && isSettled(alarm.state, step)) return { state: alarm.state, isChanged: false }
    if (isUnseen(alarm.state, seen)) return { state: alarm.state, isChanged: true }
    const { ledger, journal, nowMs } = this.#parts
    // The row of the alarm itself must come first.
    await journal.write()
    const atMs = nowMs()
    const value = recoveredCent === undefined ? {} : { recoveredCent }
    await ledger.commits.durably(() => {
      alarm.lastRow = ledger.journal.append({
        atMs,
        evidence: { kind: 'alarm_handled', eventId, step, operatorId, ...value },
      })
    })
    // Another operator may have disposed of the alarm during the commit.
    if (isSettled(alarm.state, step)) return { state: alarm.state, isChanged: false }
    const state = { step, by: name }
    this.#setState(eventId, alarm, state)
    return { state, isChanged: false }
  }
}

/** True if no cause of the alarm is recorded. */
function isOpen({ state }: KnownAlarm): boolean {
  return state === undefined || state.step === 'acknowledged'
}

/** True if the step changes nothing: it is the state already, or it acknowledges an alarm that has a disposition. */
function isSettled(state: AlarmState | undefined, step: AlarmStep): state is AlarmState {
  return state !== undefined && (state.step === step || step === 'acknowledged')
}

/** True if the alarm has a disposition that the operator has not seen. */
function isUnseen(state: AlarmState | undefined, seen: SeenDisposition | undefined): state is AlarmState {
  return state !== undefined && state.step !== 'acknowledged' && seen !== undefined && seen !== state.step
}
