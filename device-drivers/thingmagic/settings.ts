import { z } from 'zod'
import { THINGMAGIC_REGIONS } from './protocol/messages.ts'
import type { ThingMagicRegion } from './protocol/messages.ts'
import { LinkSettings } from '../transports/link-settings.ts'
import type { Capabilities } from '../kit/capabilities.ts'
import { DeviceId } from '../kit/driver.ts'
import { FEEDS_WITH_MINIMUM_RSSI } from '../kit/feeds-settings.ts'

const whole = (from: number, to: number, error: string) => z.int({ error }).min(from, { error }).max(to, { error })
const REGION_NAMES = Object.keys(THINGMAGIC_REGIONS) as [ThingMagicRegion, ...ThingMagicRegion[]]
const powerError = { error: 'give dBm, 0 to 31.5, within the limits of law and module' }
const Lamp = z.strictObject(
  { output: whole(1, 4, 'give the number of the pin, 1 to 4') },
  { error: 'give { "output": 1 }' },
)

/** A UHF reader module of ThingMagic (M6e, Nano, Micro, M7e) on a serial line. */
export const ThingMagicSettings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('thingmagic'),
  link: LinkSettings,
  ...FEEDS_WITH_MINIMUM_RSSI,
  region: z.enum(REGION_NAMES, {
    error: `give the region of the place of installation: ${REGION_NAMES.map((name) => `"${name}"`).join(', ')}`,
  }),
  antennas: z
    .array(whole(1, 4, 'antennas are numbered 1 to 4'), { error: 'give a list such as [1]' })
    .min(1, { error: 'give at least one antenna' })
    .max(4)
    .default([1]),
  powerDbm: z.number(powerError).min(0, powerError).max(31.5, powerError).optional(),
  siren: Lamp.optional(),
  amber: Lamp.optional(),
  green: Lamp.optional(),
  repeatMs: whole(0, 60_000, 'give milliseconds, 0 to 60000').default(250),
  goneMs: whole(100, 60_000, 'give milliseconds, 100 to 60000').default(1_000),
  requestTimeoutMs: whole(50, 5_000, 'give milliseconds, 50 to 5000').default(1_000),
})
export type ThingMagicSettings = z.infer<typeof ThingMagicSettings>

/** The module only reads. Its setting `antennas` lists the antennas to use, not their direction. */
export function thingMagicCapabilities(settings: ThingMagicSettings): Capabilities {
  return {
    releases: 'nothing',
    confirmInput: undefined,
    passage: false,
    departures: 'reported',
    antennas: undefined,
    siren: settings.siren && { seconds: undefined },
    feeds: settings.feeds,
    staffCards: false,
    minimumRssiDbm: settings.nearDbm,
    emergency: undefined,
    opensInEmergency: undefined,
    webhook: undefined,
  }
}
