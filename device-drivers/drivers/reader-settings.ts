import { z } from 'zod'
import { LONGEST_SIGNAL_S, SIGNALS, type Signal } from './device.ts'
import type { ExclusiveResource } from './driver.ts'

/** What UHF readers with antennas, inputs and outputs of their own have in common in their settings. */

/** A whole number within limits, with the word for people. */
export function boundedInt(unit: string, from: number, to: number): z.ZodInt {
  const error = `give ${unit}, ${from} to ${to}`
  return z.int({ error }).min(from, { error }).max(to, { error })
}

/** How a reader counts what of it is named. */
export type NumberSetting = (what: string) => z.ZodInt

/** Which antennas look where; `without` says what it means to leave them out. */
export function antennaSettings(antenna: z.ZodInt, without: string) {
  const list = z.array(antenna, { error: 'give a list of antennas, such as [1, 2]' }).max(64).default([])
  return z
    .strictObject({ inside: list, outside: list }, { error: 'give { "inside": [1], "outside": [2] }' })
    .optional()
    .meta({
      description: `which antennas look into the shop and which to the way out; without it ${without}every approach counts as leaving`,
    })
}

/** The outputs for signals and for a release. */
export function outputSettings(gpo: NumberSetting) {
  const lamp = z.strictObject({ gpo: gpo('lamp') }, { error: 'give { "gpo": … }' }).optional()
  const seconds = { error: `give seconds, 1 to ${LONGEST_SIGNAL_S}` }
  return {
    siren: z
      .strictObject(
        { gpo: gpo('siren'), seconds: z.number(seconds).min(1, seconds).max(LONGEST_SIGNAL_S, seconds).default(5) },
        { error: 'give { "gpo": …, "seconds": 5 }' },
      )
      .optional(),
    amber: lamp,
    green: lamp,
    release: z
      .strictObject(
        { gpo: gpo('barrier or lock'), pulseMs: boundedInt('milliseconds', 20, 10_000).default(1_000) },
        { error: 'give { "gpo": …, "pulseMs": 1000 }' },
      )
      .optional()
      .meta({ description: 'output that is pulsed to release: a barrier or a lock' }),
  }
}

/** The inputs that are told of. */
export function inputSettings(gpi: NumberSetting, example: string) {
  return {
    passageInput: gpi('passage sensor').optional().meta({ description: 'its rising edge is a passage' }),
    inputs: z
      .array(gpi('sensor'), { error: `give a list of inputs, such as ${example}` })
      .max(16)
      .default([])
      .meta({ description: 'further inputs whose changes are told: beams, doors' }),
  }
}

interface Antennas {
  readonly antennas?: { readonly inside: readonly number[]; readonly outside: readonly number[] } | undefined
}

/** Whether antennas are left out, or at least one is named. */
export function hasAntennas({ antennas }: Antennas): boolean {
  return !antennas || antennas.inside.length + antennas.outside.length > 0
}

/** The antennas that are named, in order. */
export function configuredAntennas({ antennas }: Antennas): number[] {
  return sortedUnique([...(antennas?.inside ?? []), ...(antennas?.outside ?? [])])
}

/** Each of these numbers once, in order. */
export function sortedUnique(numbers: readonly number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b)
}

type Outputs = Readonly<Partial<Record<Signal | 'release', { readonly gpo: number } | undefined>>>

/** The outputs of the signals that this device has. */
export function signalOutputs(settings: Outputs): Map<Signal, number> {
  return new Map(SIGNALS.flatMap((signal) => (settings[signal] ? [[signal, settings[signal].gpo] as const] : [])))
}

/** An output belongs to one purpose; `where` says of what it is one. */
export function outputResources(settings: Outputs, where: string): ExclusiveResource[] {
  const resource = (setting: string, gpo: number): ExclusiveResource => ({
    setting: `${setting}.gpo`,
    key: `GPO ${gpo} ${where}`,
  })
  return [
    ...(settings.release ? [resource('release', settings.release.gpo)] : []),
    ...[...signalOutputs(settings)].map(([signal, gpo]) => resource(signal, gpo)),
  ]
}
