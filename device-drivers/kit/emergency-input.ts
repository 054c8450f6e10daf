import { z } from 'zod'
import type { DeviceEvent } from './device.ts'

/** A wired input that a fire panel or an emergency switch drives. */
export interface EmergencyInput {
  readonly input: number
  readonly wiring: Wiring
  /** True if every siren of the agent falls silent while the emergency lasts. */
  readonly silenceSirens: boolean
}

const WIRINGS = ['normally_closed', 'normally_open'] as const
/**
 * `normally_closed`: no current means emergency, so a cut wire starts an emergency. `normally_open`: current means
 * emergency.
 */
type Wiring = (typeof WIRINGS)[number]

/**
 * The setting `emergency` of a driver that reads the level of its inputs. `input` is the schema of the driver's input
 * numbers.
 */
export function emergencySetting(input: z.ZodInt) {
  return z
    .strictObject(
      {
        input,
        wiring: z.enum(WIRINGS, {
          error: 'use "normally_closed" (a cut wire counts as an emergency) or "normally_open"',
        }),
        silenceSirens: z.boolean({ error: 'use true (sirens are silent during an emergency) or false' }).default(false),
      },
      { error: 'give { "input": …, "wiring": "normally_closed" }' },
    )
    .optional()
    .meta({ description: 'fire panel or emergency switch; the agent opens every device with "opensInEmergency": true' })
}

/** The setting `opensInEmergency` of a driver with a releasing output. */
export const OPENS_IN_EMERGENCY = z
  .boolean({ error: 'use true (a way out, or a cabinet that must open) or false (it stays as it is)' })
  .optional()
  .meta({
    description: 'true: the agent holds the output on while an emergency input is active; false: it does not move',
  })

/** True if this level of the input means an emergency. `level`: true while the input reads 1. */
export function isEmergency({ wiring }: Pick<EmergencyInput, 'wiring'>, level: boolean): boolean {
  return level === (wiring === 'normally_open')
}

/** The event for a level of an input. Undefined if `input` is not the emergency input. */
export function emergencyEvent(
  emergency: EmergencyInput | undefined,
  input: number,
  level: boolean,
): DeviceEvent | undefined {
  if (emergency?.input !== input) return undefined
  return { type: 'emergency', on: isEmergency(emergency, level) }
}
