import { z } from 'zod'
import { linkKey, TcpLink } from '../../transports/link-settings.ts'
import type { Signal } from '../device.ts'
import { LONGEST_SIGNAL_S, SIGNALS } from '../device.ts'
import { DeviceId } from '../driver.ts'
import type { Claim } from '../driver.ts'
import { FEEDS_FROM_NEAR } from '../feeding.ts'

const numbered = (what: string) => {
  const error = `give the number of the ${what} as the reader counts them, from 1`
  return z.int({ error }).min(1, { error }).max(65_535, { error })
}
const between = (unit: string, from: number, to: number) => {
  const error = `give ${unit}, ${from} to ${to}`
  return z.int({ error }).min(from, { error }).max(to, { error })
}
const gpo = (what: string) => numbered(`output (GPO) of the ${what}`)
const gpi = (what: string) => numbered(`input (GPI) of the ${what}`)
const antennaList = z.array(numbered('antenna'), { error: 'give a list of antennas, such as [1, 2]' }).max(64).readonly().default([])

const Lamp = z.strictObject({ gpo: gpo('lamp') }, { error: 'give { "gpo": … }' })
const secondsError = { error: `give seconds, 1 to ${LONGEST_SIGNAL_S}` }
const Siren = z.strictObject(
  {
    gpo: gpo('siren'),
    seconds: z.number(secondsError).min(1, secondsError).max(LONGEST_SIGNAL_S, secondsError).default(5),
  },
  { error: 'give { "gpo": …, "seconds": 5 }' },
)
const accessPassword = { error: 'give the access password of the tags, 8 hex digits; all 0 for tags without one' }
const killPassword = { error: 'give the kill password of the tags, 8 hex digits that are not all 0' }

/** One UHF reader with its antennas, inputs and outputs, over LLRP. */
export const LlrpSettings = z
  .strictObject({
    deviceId: DeviceId,
    driver: z.literal('llrp'),
    link: TcpLink.meta({ description: 'the reader; LLRP listens on port 5084' }),
    ...FEEDS_FROM_NEAR,
    antennas: z
      .strictObject({ inside: antennaList, outside: antennaList }, { error: 'give { "inside": [1], "outside": [2] }' })
      .optional()
      .meta({ description: 'which antennas look into the shop and which to the way out; without it all are used and every approach counts as leaving' }),
    siren: Siren.optional(),
    amber: Lamp.optional(),
    green: Lamp.optional(),
    release: z
      .strictObject({ gpo: gpo('barrier or lock'), pulseMs: between('milliseconds', 20, 10_000).default(1_000) }, { error: 'give { "gpo": …, "pulseMs": 1000 }' })
      .optional()
      .meta({ description: 'output that is pulsed to release: a barrier or a lock' }),
    kill: z
      .strictObject({ password: z.string(killPassword).regex(/^(?!0{8})[0-9A-Fa-f]{8}$/, killPassword) }, { error: 'give { "password": "…" }' })
      .optional()
      .meta({ description: 'a release kills the tag that it names, for ever' }),
    eas: z
      .strictObject({ password: z.string(accessPassword).regex(/^[0-9A-Fa-f]{8}$/, accessPassword).default('00000000') }, { error: 'give {} or { "password": "…" }' })
      .optional()
      .meta({ description: 'a release switches the EAS bit of the tag that it names off' }),
    passageInput: gpi('passage sensor').optional().meta({ description: 'its rising edge is a passage' }),
    inputs: z
      .array(gpi('sensor'), { error: 'give a list of inputs, such as [2, 3]' })
      .max(16)
      .default([])
      .meta({ description: 'further inputs whose changes are told: beams, doors' }),
    readOnBeam: z
      .strictObject({ gpi: gpi('beam'), seconds: between('seconds', 1, 600).default(10) }, { error: 'give { "gpi": …, "seconds": 10 }' })
      .optional()
      .meta({ description: 'the reader transmits only for so long after this input rose; without it always' }),
    transmitPowerDbm: z
      .number({ error: 'give dBm, 0 to 36, within what your country allows' })
      .min(0, { error: 'give dBm, 0 to 36, within what your country allows' })
      .max(36, { error: 'give dBm, 0 to 36, within what your country allows' })
      .optional()
      .meta({ description: 'at most so much at each antenna port; without it as set on the reader' }),
    session: between('a Gen2 session', 0, 3).default(1).meta({ description: 'Gen2 session: 1 tells a tag again every few seconds, 0 at every look, 2 and 3 once' }),
    tagPopulation: between('a number of tags', 1, 65_535).default(32).meta({ description: 'tags that are in the field at a time, roughly' }),
    rfMode: between('a mode of the reader', 0, 65_535).optional().meta({ description: 'the reader’s mode index; without it as set on the reader' }),
    keepaliveMs: between('milliseconds', 1_000, 60_000).default(5_000).meta({ description: 'how often the reader shows that it is there; three times nothing means lost' }),
    requestTimeoutMs: between('milliseconds', 100, 10_000).default(3_000).meta({ description: 'for one answer' }),
  })
  .refine(({ release, kill }) => !release || !kill, { error: 'a release either pulses an output or kills the tag: remove one', path: ['kill'] })
  .refine(({ release, kill, eas }) => !eas || !(release || kill), { error: 'a release does one thing, pulse an output, kill the tag or switch its EAS bit off: leave one', path: ['eas'] })
  .refine(({ antennas }) => !antennas || antennas.inside.length + antennas.outside.length > 0, {
    error: 'name at least one antenna, or leave antennas out to use all',
    path: ['antennas'],
  })
export type LlrpSettings = z.infer<typeof LlrpSettings>

/** The outputs of the signals that this device has. */
export function signalOutputs(settings: LlrpSettings): Map<Signal, number> {
  const outputs = new Map<Signal, number>()
  for (const signal of SIGNALS) {
    const output = settings[signal]?.gpo
    if (output !== undefined) outputs.set(signal, output)
  }
  return outputs
}

/** The antennas to be used; empty for all that the reader has. */
export function antennasOf({ antennas }: LlrpSettings): number[] {
  return [...new Set([...(antennas?.inside ?? []), ...(antennas?.outside ?? [])])].sort((a, b) => a - b)
}

/** The inputs to be watched. */
export function inputsOf({ passageInput, inputs, readOnBeam }: LlrpSettings): number[] {
  const all = [...inputs, ...(passageInput === undefined ? [] : [passageInput]), ...(readOnBeam ? [readOnBeam.gpi] : [])]
  return [...new Set(all)].sort((a, b) => a - b)
}

/** An output belongs to one purpose. */
export function claimsOf(settings: LlrpSettings): Claim[] {
  const on = (output: number) => `GPO ${output} at ${linkKey(settings.link)}`
  const signals = [...signalOutputs(settings)].map(([signal, output]) => ({ setting: `${signal}.gpo`, on: on(output) }))
  return settings.release ? [{ setting: 'release.gpo', on: on(settings.release.gpo) }, ...signals] : signals
}
