import { z } from 'zod'
import { PcscLink } from '../transports/link-settings.ts'
import type { Capabilities } from '../kit/capabilities.ts'
import { DeviceId } from '../kit/driver.ts'
import { FEEDS, STAFF_CARDS } from '../kit/feeds-settings.ts'

/** One NFC or HF reader of PC/SC, or one of its slots. */
export const PcscSettings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('pcsc'),
  link: PcscLink,
  ...FEEDS,
  ...STAFF_CARDS,
  ndef: z
    .boolean({ error: 'use true (links and texts on a tag are reported as scans) or false' })
    .default(true)
    .meta({ description: 'read URI and text records from tags and report them as scans' }),
})
export type PcscSettings = z.infer<typeof PcscSettings>

/** The reader releases by switching off the EAS bit of the tag in its field. */
export function pcscCapabilities(settings: PcscSettings): Capabilities {
  return {
    releases: 'tag',
    confirmInput: undefined,
    passage: false,
    departures: 'reported',
    antennas: undefined,
    siren: undefined,
    feeds: settings.feeds,
    staffCards: settings.staffCards,
    minimumRssiDbm: undefined,
    emergency: undefined,
    opensInEmergency: undefined,
    webhook: undefined,
  }
}
