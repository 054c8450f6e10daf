import type { Signal } from '../../device-drivers/kit/device.ts'
import type { PolicyClaims } from '../../policy/documents/store-documents.ts'
import type { FeedEvent } from '../feed.ts'
import { gateSignal } from '../lanes/gate-signals.ts'
import type { GateLight, LiveEvent } from './model/wire.ts'

const LIGHTS: Record<Signal, GateLight> = { green: 'green', amber: 'amber', siren: 'siren' }

/** Converts an event for the pages. Adds the gate's light to a decision at a gate. */
export function liveEvent(event: FeedEvent, policy: PolicyClaims | undefined): LiveEvent {
  if (event.type !== 'result' || event.result.kind !== 'decision') return event
  const device = policy?.devices.find((d) => d.deviceId === event.deviceId)
  if (device?.deviceType !== 'exit_gate') return event
  const { answer, item } = event.result
  const shown = gateSignal(answer, item !== undefined, policy?.policy)
  return { ...event, light: shown ? LIGHTS[shown.signal] : null }
}
