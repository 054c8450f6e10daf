import { z } from 'zod'
import { linkKey, TcpLink } from '../transports/link-settings.ts'
import { TAG_ABSENT_MS, type Capabilities, DeviceId, type ExclusiveResource } from '../kit/driver.ts'
import type { Finding } from '../kit/device.ts'
import { emergencySetting, OPENS_IN_EMERGENCY } from '../kit/emergency-input.ts'
import {
  FEEDS_WITH_MINIMUM_RSSI,
  antennaSettings,
  boundedInt,
  sortedUnique,
  inputSettings,
  configuredAntennas,
  hasAntennas,
  hasBothSides,
  outputResources,
  outputSettings,
  sessionWarning,
} from '../kit/reader-settings.ts'

const portNumber = (what: string) => {
  const error = `give the number of the ${what} as the reader counts them, from 1`
  return z.int({ error }).min(1, { error }).max(65_535, { error })
}
const gpo = (what: string) => portNumber(`output (GPO) of the ${what}`)
const gpi = (what: string) => portNumber(`input (GPI) of the ${what}`)
const accessPassword = { error: 'give the access password of the tags, 8 hex digits; all 0 for tags without one' }
const killPassword = { error: 'give the kill password of the tags, 8 hex digits that are not all 0' }

/** One UHF reader with its antennas, inputs and outputs, over LLRP. */
export const LlrpSettings = z
  .strictObject({
    deviceId: DeviceId,
    driver: z.literal('llrp'),
    link: TcpLink.meta({ description: 'the reader; LLRP listens on port 5084' }),
    ...FEEDS_WITH_MINIMUM_RSSI,
    antennas: antennaSettings(portNumber('antenna'), 'all are used and '),
    ...outputSettings(gpo),
    kill: z
      .strictObject(
        { password: z.string(killPassword).regex(/^(?!0{8})[0-9A-Fa-f]{8}$/, killPassword) },
        { error: 'give { "password": "…" }' },
      )
      .optional()
      .meta({ description: 'a release kills the tag that it names, for ever' }),
    eas: z
      .strictObject(
        {
          password: z
            .string(accessPassword)
            .regex(/^[0-9A-Fa-f]{8}$/, accessPassword)
            .default('00000000'),
        },
        { error: 'give {} or { "password": "…" }' },
      )
      .optional()
      .meta({ description: 'a release switches the EAS bit of the tag that it names off' }),
    ...inputSettings(gpi, '[2, 3]'),
    emergency: emergencySetting(gpi('emergency switch')),
    opensInEmergency: OPENS_IN_EMERGENCY,
    readOnBeam: z
      .strictObject(
        { gpi: gpi('beam'), seconds: boundedInt('seconds', 1, 600).default(10) },
        { error: 'give { "gpi": …, "seconds": 10 }' },
      )
      .optional()
      .meta({ description: 'the reader transmits only for this time after this input rose; default: always' }),
    transmitPowerDbm: z
      .number({ error: 'give dBm, 0 to 36, within what your country allows' })
      .min(0, { error: 'give dBm, 0 to 36, within what your country allows' })
      .max(36, { error: 'give dBm, 0 to 36, within what your country allows' })
      .optional()
      .meta({ description: 'maximum at each antenna port; default: the setting of the reader' }),
    session: boundedInt('a Gen2 session', 0, 3).optional().meta({
      description:
        'Gen2 session: 0 reports a tag at every read, 1 every few seconds, 2 and 3 once; default: 0 with antennas inside and outside, otherwise 1',
    }),
    tagPopulation: boundedInt('a number of tags', 1, 65_535)
      .default(32)
      .meta({ description: 'approximate number of tags in the field at a time' }),
    rfMode: boundedInt('a mode of the reader', 0, 65_535)
      .optional()
      .meta({ description: 'the reader’s mode index; default: the setting of the reader' }),
    keepaliveMs: boundedInt('milliseconds', 1_000, 60_000)
      .default(5_000)
      .meta({ description: 'keepalive interval; after three missing keepalives the reader counts as lost' }),
    requestTimeoutMs: boundedInt('milliseconds', 100, 10_000).default(3_000).meta({ description: 'for one answer' }),
  })
  .refine(({ release, kill }) => !release || !kill, {
    error: 'a release either pulses an output or kills the tag: remove one',
    path: ['kill'],
  })
  .refine(({ release, kill, eas }) => !eas || !(release || kill), {
    error: 'a release does one thing, pulse an output, kill the tag or switch its EAS bit off: leave one',
    path: ['eas'],
  })
  .refine(hasAntennas, {
    error: 'name at least one antenna, or leave antennas out to use all',
    path: ['antennas'],
  })
export type LlrpSettings = z.infer<typeof LlrpSettings>

/** The antennas to use; empty for all. */
export function antennasOf(settings: LlrpSettings): number[] {
  return configuredAntennas(settings)
}

/** The Gen2 session. A reader that sees both sides of a gate must read a tag again within a walk. */
export function sessionOf(settings: LlrpSettings): number {
  return settings.session ?? (hasBothSides(settings) ? 0 : 1)
}

/** Warns of a session in which a tag may stay silent outside after a read inside. */
export function sessionFindings(settings: LlrpSettings): Finding[] {
  const session = sessionOf(settings)
  return session > 0 && hasBothSides(settings) ? [sessionWarning(session)] : []
}

/** The inputs to watch. */
export function inputsOf({ passageInput, inputs, emergency, readOnBeam }: LlrpSettings): number[] {
  return sortedUnique([
    ...inputs,
    ...(passageInput === undefined ? [] : [passageInput]),
    ...(emergency ? [emergency.input] : []),
    ...(readOnBeam ? [readOnBeam.gpi] : []),
  ])
}

/** The outputs that only this device may use. Each output has one purpose. */
export function exclusiveResourcesOf(settings: LlrpSettings): ExclusiveResource[] {
  return outputResources(settings, `at ${linkKey(settings.link)}`)
}

/**
 * Time without a read after which a tag has left, by Gen2 session, ms. In sessions 1 to 3 a tag is silent for a time
 * after each read.
 */
const ABSENT_IN_SESSION_MS = [TAG_ABSENT_MS, 6_000, 60_000, 60_000]

/** The reader releases by an output, by killing the tag, or by clearing its EAS bit. */
export function llrpCapabilities(settings: LlrpSettings): Capabilities {
  return {
    releases: settings.release ? 'output' : settings.kill || settings.eas ? 'tag' : 'nothing',
    confirmInput: undefined,
    passage: settings.passageInput !== undefined,
    departures: { afterMs: ABSENT_IN_SESSION_MS[sessionOf(settings)] ?? TAG_ABSENT_MS },
    antennas: settings.antennas,
    siren: settings.siren,
    feeds: settings.feeds,
    staffCards: false,
    minimumRssiDbm: settings.nearDbm,
    emergency: settings.emergency,
    opensInEmergency: settings.opensInEmergency,
    webhook: undefined,
  }
}
