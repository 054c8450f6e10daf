import { z } from 'zod'
import { objectOf } from '../kit/protocol/tag-sighting.ts'
import { linkKey, WebLink } from '../transports/link-settings.ts'
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

const gpi = (what: string) => boundedInt(`the number of the input (GPI) of the ${what}`, 1, 64)
const gpo = (what: string) => boundedInt(`the number of the output (GPO) of the ${what}`, 1, 64)
const textSetting = (error: string, most = 128) => z.string({ error }).min(1, { error }).max(most, { error })

/** One Impinj reader with the IoT device interface (R700). */
export const ImpinjIotSettings = z
  .strictObject({
    deviceId: DeviceId,
    driver: z.literal('impinj-iot'),
    link: WebLink,
    user: textSetting('give the user name on the reader')
      .refine((name) => !name.includes(':'), { error: 'a user name has no colon' })
      .default('root'),
    password: textSetting('give the password of that user on the reader'),
    ...FEEDS_WITH_MINIMUM_RSSI,
    antennas: antennaSettings(boundedInt('the number of an antenna port', 1, 64), ''),
    preset: textSetting('give the name of an inventory preset on the reader', 64)
      .optional()
      .meta({ description: 'a stored inventory of the reader; without it the settings below define one' }),
    transmitPowerDbm: z
      .number({ error: 'give dBm, 0 to 36, within what your country allows' })
      .min(0, { error: 'give dBm, 0 to 36, within what your country allows' })
      .max(36, { error: 'give dBm, 0 to 36, within what your country allows' })
      .default(30),
    rfMode: boundedInt('a mode of the reader', 0, 65_535).default(1003).meta({
      description: 'RF mode: 1003 for tags that move, 1002 for tags that lie still; others depend on the region',
    }),
    session: boundedInt('a Gen2 session', 0, 3).default(1),
    searchMode: z
      .enum(
        [
          'single-target',
          'dual-target',
          'single-target-with-tagfocus',
          'single-target-b-to-a',
          'dual-target-with-b-to-a-select',
        ],
        {
          error: 'use "dual-target" or another search mode of the reader',
        },
      )
      .default('dual-target'),
    tagPopulation: boundedInt('a number of tags', 1, 32_768)
      .default(32)
      .meta({ description: 'approximate number of tags in the field at a time' }),
    ...outputSettings(gpo),
    ...inputSettings(gpi, '[2]'),
    emergency: emergencySetting(gpi('emergency switch')),
    opensInEmergency: OPENS_IN_EMERGENCY,
    readWhile: z
      .strictObject({ gpi: gpi('beam') }, { error: 'give { "gpi": … }' })
      .optional()
      .meta({ description: 'the reader transmits only while this input is high; default: always' }),
    keepaliveSeconds: boundedInt('seconds', 1, 60).default(5).meta({
      description:
        'keepalive interval of an idle stream; after three missing keepalives the reader counts as lost. 30 on firmware that cannot set it',
    }),
    requestTimeoutMs: boundedInt('milliseconds', 100, 10_000).default(2_000).meta({ description: 'for one answer' }),
  })
  .refine(({ preset, readWhile }) => preset === undefined || !readWhile, {
    error: 'a stored inventory has its own triggers: remove one of the two',
    path: ['readWhile'],
  })
  .refine(hasAntennas, {
    error: 'name at least one antenna, or leave antennas out',
    path: ['antennas'],
  })
export type ImpinjIotSettings = z.infer<typeof ImpinjIotSettings>

/** The antennas to use; port 1 if none is configured. */
export function antennasOf(settings: ImpinjIotSettings): number[] {
  const named = configuredAntennas(settings)
  return named.length === 0 ? [1] : named
}

/**
 * Finds a session in which a tag may stay silent outside after a read inside. `preset` is the stored inventory of the
 * reader, if it has been read. A session of the settings is meant so, and only warned of.
 */
export function sessionFindings(settings: ImpinjIotSettings, preset: Record<string, unknown> | null): Finding[] {
  if (!hasBothSides(settings)) return []
  const stored = Array.isArray(preset?.['antennaConfigs']) ? preset['antennaConfigs'].map((each) => objectOf(each)) : []
  const used =
    settings.preset === undefined
      ? [{ inventorySession: settings.session, inventorySearchMode: settings.searchMode }]
      : stored
  const silent = used.find((each) => {
    const { inventorySession: session, inventorySearchMode: mode } = each ?? {}
    return session !== 0 && typeof mode === 'string' && !mode.startsWith('dual-target')
  })
  if (!silent) return []
  if (settings.preset === undefined) return [sessionWarning(settings.session)]
  return [
    {
      code: 'reader_session',
      detail: `the preset "${settings.preset}" queries ${String(silent.inventorySearchMode)} in session ${String(silent.inventorySession)}, so the gate misses walks; set its "inventorySearchMode" to "dual-target", or leave "preset" out`,
      isWarning: false,
    },
  ]
}

/** The inputs to enable on the reader. */
export function inputsOf({ passageInput, inputs, emergency, readWhile }: ImpinjIotSettings): number[] {
  return sortedUnique([
    ...inputs,
    ...(passageInput === undefined ? [] : [passageInput]),
    ...(emergency ? [emergency.input] : []),
    ...(readWhile ? [readWhile.gpi] : []),
  ])
}

/** The outputs that only this device may use. Each output has one purpose. */
export function exclusiveResourcesOf(settings: ImpinjIotSettings): ExclusiveResource[] {
  return outputResources(settings, `at ${linkKey(settings.link)}`)
}

/** The reader releases by an output, and reports each read of a tag. */
export function impinjIotCapabilities(settings: ImpinjIotSettings): Capabilities {
  return {
    releases: settings.release ? 'output' : 'nothing',
    confirmInput: undefined,
    passage: settings.passageInput !== undefined,
    departures: { afterMs: TAG_ABSENT_MS },
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
