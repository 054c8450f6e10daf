import { z } from 'zod'
import { LONGEST_SIGNAL_S, SIGNALS, type Finding, type Signal } from './device.ts'
import type { ExclusiveResource } from './driver.ts'

/** Common settings of UHF readers that have antennas, inputs and outputs. */

/** Schema of an integer within limits; `unit` completes the error message. */
export function boundedInt(unit: string, from: number, to: number): z.ZodInt {
  const error = `give ${unit}, ${from} to ${to}`
  return z.int({ error }).min(from, { error }).max(to, { error })
}

/** Schema of an input or output number. `what` is the purpose of that input or output, for the error message. */
export type NumberSetting = (what: string) => z.ZodInt

/** Antennas by direction. `without` is the part of the description that names the effect of missing antennas. */
export function antennaSettings(antenna: z.ZodInt, without: string) {
  const list = z.array(antenna, { error: 'give a list of antennas, such as [1, 2]' }).max(64).default([])
  return (
    z
      .strictObject({ inside: list, outside: list }, { error: 'give { "inside": [1], "outside": [2] }' })
      // A gate would take each read of such an antenna for one outside, and never alarm.
      .refine(({ inside, outside }) => !inside.some((antenna) => outside.includes(antenna)), {
        error: 'each antenna is either inside or outside',
      })
      .optional()
      .meta({
        description: `which antennas face the shop and which face the exit; without it ${without}every approach counts as leaving`,
      })
  )
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

/** The inputs whose changes are reported. */
export function inputSettings(gpi: NumberSetting, example: string) {
  return {
    passageInput: gpi('passage sensor').optional().meta({ description: 'its rising edge is a passage' }),
    inputs: z
      .array(gpi('sensor'), { error: `give a list of inputs, such as ${example}` })
      .max(16)
      .default([])
      .meta({ description: 'further inputs whose changes are reported: beams, doors' }),
  }
}

interface Antennas {
  readonly antennas?: { readonly inside: readonly number[]; readonly outside: readonly number[] } | undefined
}

/** True if `antennas` is missing or names at least one antenna. */
export function hasAntennas({ antennas }: Antennas): boolean {
  return !antennas || antennas.inside.length + antennas.outside.length > 0
}

/** True if the reader sees both sides of a gate, so that the order of its reads shows the direction. */
export function hasBothSides({ antennas }: Antennas): boolean {
  return antennas !== undefined && antennas.inside.length > 0 && antennas.outside.length > 0
}

/** Warns of a session in which a tag stays silent after a read, at a reader that sees both sides of a gate. */
export function sessionWarning(session: number): Finding {
  const silence = session === 1 ? 'for up to 5 s' : 'while it stays in the field, and for seconds after it'
  return {
    code: 'reader_session',
    detail: `in session ${session} a tag is silent ${silence} after a read; if the reader queries only target A, the gate misses walks: set "session": 0`,
    isWarning: true,
  }
}

/** The configured antennas, sorted. */
export function configuredAntennas({ antennas }: Antennas): number[] {
  return sortedUnique([...(antennas?.inside ?? []), ...(antennas?.outside ?? [])])
}

/** The numbers without duplicates, sorted. */
export function sortedUnique(numbers: readonly number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b)
}

type Outputs = Readonly<Partial<Record<Signal | 'release', { readonly gpo: number } | undefined>>>

/** The outputs of the configured signals. */
export function signalOutputs(settings: Outputs): Map<Signal, number> {
  return new Map(SIGNALS.flatMap((signal) => (settings[signal] ? [[signal, settings[signal].gpo] as const] : [])))
}

/** The outputs as exclusive resources; `where` names the reader. */
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
