import type { Database as Connection } from 'better-sqlite3'
import type { JournalBody } from '../../../../policy/journal.ts'
import { ALARM_STEPS } from '../../../../policy/vocabulary.ts'
import type { Chance } from '../virtual/chance.ts'

/** A forged disposition names one of this many newest alarms of the cloud. */
const NEWEST = 6

/**
 * Rows that a lying agent forges about alarms at gates of other agents. One function reports an alarm, which any agent
 * of the store may do. The other records a disposition, which only the agent of the gate may do. Each disposition names
 * a new operator, which is added to `operators`.
 */
export function forgedAlarms(
  chance: Chance,
  facts: () => { agentId: string; storeId: string; nowMs: number },
  operators: Set<string>,
): ((db: Connection) => JournalBody | undefined)[] {
  let count = 0
  const one = <T>(rows: readonly T[]) => (rows.length === 0 ? undefined : chance.one(rows))

  function report(db: Connection): JournalBody | undefined {
    const { agentId, storeId, nowMs } = facts()
    const gates = db
      .prepare<[string, string], { device_id: string }>(
        "SELECT device_id FROM device WHERE store_id = ? AND device_type = 'exit_gate' AND agent_id IS NOT NULL AND agent_id <> ?",
      )
      .all(storeId, agentId)
    const deviceId = one(gates)?.device_id
    if (deviceId === undefined) return undefined
    const event = {
      type: 'protection.exception.raised',
      eventId: `evt_lie_alarm_${++count}`,
      occurredAt: new Date(nowMs).toISOString(),
      storeId,
      deviceId,
      reason: 'gate_alarm',
    } as const
    return { atMs: Math.floor(nowMs), event }
  }

  function dispose(db: Connection): JournalBody | undefined {
    const { agentId, nowMs } = facts()
    const alarms = db
      .prepare<[string, number], { event_id: string }>(
        `SELECT e.event_id AS event_id FROM protection_event e JOIN device d ON d.device_id = e.device_id
         WHERE d.agent_id <> ? AND e.body LIKE '%"reason":"gate_alarm"%' ORDER BY e.rowid DESC LIMIT ?`,
      )
      .all(agentId, NEWEST)
    const eventId = one(alarms)?.event_id
    if (eventId === undefined) return undefined
    const operatorId = `op_lie_${++count}`
    operators.add(operatorId)
    const evidence = { kind: 'alarm_handled', eventId, step: chance.one(ALARM_STEPS), operatorId } as const
    return { atMs: Math.floor(nowMs), evidence }
  }

  return [report, dispose]
}
