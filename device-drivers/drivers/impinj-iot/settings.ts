import { z } from 'zod'
import { linkKey, WebLink } from '../../transports/link-settings.ts'
import type { Signal } from '../device.ts'
import { LONGEST_SIGNAL_S, SIGNALS } from '../device.ts'
import { DeviceId } from '../driver.ts'
import type { Claim } from '../driver.ts'

const between = (unit: string, from: number, to: number) => {
  const error = `give ${unit}, ${from} to ${to}`
  return z.int({ error }).min(from, { error }).max(to, { error })
}
const gpi = (what: string) => between(`the number of the input (GPI) of the ${what}`, 1, 64)
const gpo = (what: string) => between(`the number of the output (GPO) of the ${what}`, 1, 64)
const antennaList = z.array(between('the number of an antenna port', 1, 64), { error: 'give a list of antennas, such as [1, 2]' }).max(64).default([])
const seconds = { error: `give seconds, 1 to ${LONGEST_SIGNAL_S}` }
const Lamp = z.strictObject({ gpo: gpo('lamp') }, { error: 'give { "gpo": … }' })
const word = (error: string, most = 128) => z.string({ error }).min(1, { error }).max(most, { error })

/** One Impinj reader with the IoT device interface (R700, R720), over its REST interface. */
export const ImpinjIotSettings = z
  .strictObject({
    deviceId: DeviceId,
    driver: z.literal('impinj-iot'),
    link: WebLink,
    user: word('give the user name on the reader').refine((name) => !name.includes(':'), { error: 'a user name has no colon' }).default('root'),
    password: word('give the password of that user on the reader'),
    antennas: z
      .strictObject({ inside: antennaList, outside: antennaList }, { error: 'give { "inside": [1], "outside": [2] }' })
      .optional()
      .meta({ description: 'which antennas look into the shop and which to the way out; without it every approach counts as leaving' }),
    preset: word('give the name of an inventory preset on the reader', 64)
      .optional()
      .meta({ description: 'an inventory that is kept on the reader; without it one is made of the settings below' }),
    transmitPowerDbm: z
      .number({ error: 'give dBm, 0 to 36, within what your country allows' })
      .min(0, { error: 'give dBm, 0 to 36, within what your country allows' })
      .max(36, { error: 'give dBm, 0 to 36, within what your country allows' })
      .default(30),
    rfMode: between('a mode of the reader', 0, 65_535).default(1002).meta({ description: 'RF mode; which ones there are depends on the region' }),
    session: between('a Gen2 session', 0, 3).default(1),
    searchMode: z
      .enum(['single-target', 'dual-target', 'single-target-with-tagfocus', 'single-target-b-to-a', 'dual-target-with-b-to-a-select'], {
        error: 'use "dual-target" or another search mode of the reader',
      })
      .default('dual-target'),
    tagPopulation: between('a number of tags', 1, 32_768).default(32).meta({ description: 'tags that are in the field at a time, roughly' }),
    siren: z
      .strictObject({ gpo: gpo('siren'), seconds: z.number(seconds).min(1, seconds).max(LONGEST_SIGNAL_S, seconds).default(5) }, { error: 'give { "gpo": …, "seconds": 5 }' })
      .optional(),
    amber: Lamp.optional(),
    green: Lamp.optional(),
    release: z
      .strictObject({ gpo: gpo('barrier or lock'), pulseMs: between('milliseconds', 20, 10_000).default(1_000) }, { error: 'give { "gpo": …, "pulseMs": 1000 }' })
      .optional()
      .meta({ description: 'output that is pulsed to release: a barrier or a lock' }),
    passageInput: gpi('passage sensor').optional().meta({ description: 'its rising edge is a passage' }),
    inputs: z
      .array(gpi('sensor'), { error: 'give a list of inputs, such as [2]' })
      .max(16)
      .default([])
      .meta({ description: 'further inputs whose changes are told: beams, doors' }),
    readWhile: z
      .strictObject({ gpi: gpi('beam') }, { error: 'give { "gpi": … }' })
      .optional()
      .meta({ description: 'the reader transmits only while this input is high; without it always' }),
    keepaliveSeconds: between('seconds', 1, 60).default(5).meta({ description: 'how often an idle stream shows that it is there; three times nothing means lost' }),
    requestTimeoutMs: between('milliseconds', 100, 10_000).default(2_000).meta({ description: 'for one answer' }),
  })
  .refine(({ preset, readWhile }) => preset === undefined || !readWhile, { error: 'an inventory that is kept on the reader has its own triggers: remove one', path: ['readWhile'] })
  .refine(({ antennas }) => !antennas || antennas.inside.length + antennas.outside.length > 0, {
    error: 'name at least one antenna, or leave antennas out',
    path: ['antennas'],
  })
export type ImpinjIotSettings = z.infer<typeof ImpinjIotSettings>

/** The outputs of the signals that this device has. */
export function signalOutputs(settings: ImpinjIotSettings): Map<Signal, number> {
  return new Map(SIGNALS.flatMap((signal) => (settings[signal] ? [[signal, settings[signal].gpo] as const] : [])))
}

/** The antennas to be used; port 1 when none is named. */
export function antennasOf({ antennas }: ImpinjIotSettings): number[] {
  const named = new Set([...(antennas?.inside ?? []), ...(antennas?.outside ?? [])])
  return named.size === 0 ? [1] : [...named].sort((a, b) => a - b)
}

/** The inputs to be told of. */
export function inputsOf({ passageInput, inputs, readWhile }: ImpinjIotSettings): number[] {
  const all = [...inputs, ...(passageInput === undefined ? [] : [passageInput]), ...(readWhile ? [readWhile.gpi] : [])]
  return [...new Set(all)].sort((a, b) => a - b)
}

/** An output belongs to one purpose. */
export function claimsOf(settings: ImpinjIotSettings): Claim[] {
  const on = (output: number) => `GPO ${output} at ${linkKey(settings.link)}`
  const signals = [...signalOutputs(settings)].map(([signal, output]) => ({ setting: `${signal}.gpo`, on: on(output) }))
  return settings.release ? [{ setting: 'release.gpo', on: on(settings.release.gpo) }, ...signals] : signals
}
