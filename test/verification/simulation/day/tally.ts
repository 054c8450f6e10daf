import type { JournalBody } from '../../../../policy/journal.ts'

/** Counts of the day, from ledgers and shoppers. */
export interface Tally {
  /** Numbers of shoppers. */
  came: number
  left: number
  bought: number
  thieves: number
  cancelled: number
  returned: number
  /** Number of goods that were paid and carried out. */
  unitsSold: number
  unitsStolen: number
  /** Of `unitsSold`: goods that a till sold. Their tags stay on. */
  unitsOfTills: number
  /** How often staff had to help: at a device, or at the gate because of an alarm. */
  staffCalls: number
  /** Shoppers who had paid, and for whom the gate alarmed. */
  needlessAlarms: number
  /** Number of answers from agents. */
  decisions: number
  granted: number
  offline: number
  /** Number of requests without an answer. The shopper repeats these requests. */
  unanswered: number
  /** CPU time of the process from request to answer, ms. */
  readonly decisionMs: number[]
  /** Last alarm of each tag: its true time, ms, and the detail that the gate reported. */
  readonly alarms: Map<string, { atMs: number; detail: string }>
  alarmsOfThieves: number
  /** Called for each durable row. */
  row(body: JournalBody, atMs: number): void
}

/** Creates empty counts. */
export function newTally(): Tally {
  const alarms: Tally['alarms'] = new Map()
  return {
    came: 0,
    left: 0,
    bought: 0,
    thieves: 0,
    cancelled: 0,
    returned: 0,
    unitsSold: 0,
    unitsStolen: 0,
    unitsOfTills: 0,
    staffCalls: 0,
    needlessAlarms: 0,
    decisions: 0,
    granted: 0,
    offline: 0,
    unanswered: 0,
    decisionMs: [],
    alarms,
    alarmsOfThieves: 0,
    row({ event }, atMs) {
      if (event?.reason === 'gate_alarm' && event.epc !== undefined)
        alarms.set(event.epc, { atMs, detail: event.detail ?? '' })
    },
  }
}
