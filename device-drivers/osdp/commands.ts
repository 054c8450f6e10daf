import { buzzer, led, nakText, OSDP_REPLY, outputOff, outputOnFor } from './protocol/messages.ts'
import type { OsdpCommand } from './protocol/messages.ts'
import type { Signal } from '../kit/device.ts'
import type { SwitchAnswer } from '../kit/release.ts'
import type { OsdpAnswer } from './dialogue.ts'
import type { OsdpSettings } from './settings.ts'

/** Converts the answer to an output command into a `SwitchAnswer`. */
export function switchAnswerOf(answer: OsdpAnswer): SwitchAnswer {
  if (answer.kind === 'lost') return answer
  if (answer.kind === 'nak')
    return { kind: 'refused', detail: nakText(answer.code), outputMayHaveMoved: answer.repeated }
  if (answer.code === OSDP_REPLY.ack || answer.code === OSDP_REPLY.outputStatus) return { kind: 'done' }
  return { kind: 'refused', detail: `an answer of another kind (code ${answer.code})`, outputMayHaveMoved: true }
}

/** The command that starts a signal for `ms`, or ends it with 0. Null if the signal is not configured. */
export function signalCommand(settings: OsdpSettings, signal: Signal, ms: number): OsdpCommand | null {
  const { siren } = settings
  if (signal === 'siren') {
    if (!siren) return null
    if ('buzzer' in siren) return buzzer(ms)
    return ms > 0 ? outputOnFor(siren.output, ms) : outputOff(siren.output)
  }
  const lamp = settings[signal]
  return lamp ? led(lamp.led, signal, ms) : null
}
