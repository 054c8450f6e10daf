import type { AlarmHandled } from '../../../policy/journal.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { acknowledgeAlarm, findAlarm, writeDisposition } from '../records/alarm-queries.ts'
import type { EvidenceScope, EvidenceSource } from './evidence-scope.ts'
import { raiseForeignEvidence } from './foreign-evidence.ts'

/**
 * Applies what an operator did about an alarm at a gate's display. Only the agent of the gate may report it. Returns
 * false if the cloud does not know the alarm (yet).
 *
 * Its time is the trusted time of the agent, but at most now: an agent must not outlast later dispositions.
 */
export async function applyAlarmHandled(
  scope: EvidenceScope,
  source: EvidenceSource,
  { eventId, step, operatorId }: AlarmHandled,
): Promise<boolean> {
  const { db, tenant, facts, nowMs } = scope
  const alarm = await findAlarm(db, tenant, eventId)
  if (!alarm) return false
  const { deviceId } = JSON.parse(alarm.body) as ProtectionEvent
  const gate = deviceId === undefined ? undefined : await facts.device(deviceId)
  if (!gate || alarm.store_id !== source.storeId || !(await facts.isOwn(gate.agent_id, source))) {
    const detail = 'an agent handled an alarm of a gate that is not its own'
    await raiseForeignEvidence(scope, source, { kind: 'alarm_handled', about: eventId, detail })
    return true
  }
  const atMs = Math.min(source.atMs, nowMs)
  const storeId = alarm.store_id
  if (step === 'acknowledged') {
    await acknowledgeAlarm(db, { storeId, eventId, by: operatorId, atMs })
    return true
  }
  await writeDisposition(db, {
    earlier: null,
    event_id: eventId,
    tenant,
    store_id: storeId,
    disposition: step,
    operator_id: operatorId,
    recovered_cent: null,
    disposed_ms: atMs,
  })
  return true
}
