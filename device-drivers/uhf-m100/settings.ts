import { z } from 'zod'
import { M100_REGIONS, type M100Region } from './protocol/messages.ts'
import { LinkSettings } from '../transports/link-settings.ts'
import { type Capabilities, DeviceId } from '../kit/driver.ts'
import { FEEDS_WITH_MINIMUM_RSSI } from '../kit/reader-settings.ts'

const ms = (from: number, to: number) => {
  const error = `give milliseconds, ${from} to ${to}`
  return z.int({ error }).min(from, { error }).max(to, { error })
}
const REGION_NAMES = Object.keys(M100_REGIONS) as [M100Region, ...M100Region[]]
const powerError = { error: 'give dBm, 0 to 30, within the limits of law and reader' }
const HEX_8 = /^[0-9A-Fa-f]{8}$/

const Kill = z.strictObject({
  method: z.literal('kill'),
  password: z
    .string()
    .regex(HEX_8, { error: 'give the kill password of the tags, 8 hex digits' })
    .refine((password) => !/^0+$/.test(password), { error: 'a tag with the kill password 00000000 cannot be killed' }),
})
const Eas = z.strictObject({
  method: z.literal('eas'),
  password: z
    .string()
    .regex(HEX_8, { error: 'give the access password of the tags, 8 hex digits' })
    .default('00000000'),
})

/** A UHF pad or module with an M100 or QM100 chip. */
export const M100Settings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('uhf-m100'),
  link: LinkSettings,
  ...FEEDS_WITH_MINIMUM_RSSI,
  powerDbm: z.number(powerError).min(0, powerError).max(30, powerError).optional().meta({
    description: 'transmit power; default: the setting of the reader',
  }),
  region: z.enum(REGION_NAMES, { error: `use ${REGION_NAMES.map((name) => `"${name}"`).join(', ')}` }).optional(),
  deactivate: z
    .discriminatedUnion('method', [Kill, Eas], {
      error:
        'use {"method": "kill", "password": "8 hex digits"} or {"method": "eas"}, or leave it out for a reader that only reads',
    })
    .optional()
    .meta({ description: 'how a release deactivates the tag; default: not at all' }),
  repeatMs: ms(0, 60_000).default(250).meta({ description: 'interval in which a present tag is reported again' }),
  goneMs: ms(100, 60_000).default(1_000).meta({ description: 'time without a read after which a tag has left' }),
  requestTimeoutMs: ms(50, 5_000).default(500),
})
export type M100Settings = z.infer<typeof M100Settings>

/** The reader releases by writing to the tag, if `deactivate` is set. */
export function m100Capabilities(settings: M100Settings): Capabilities {
  return {
    releases: settings.deactivate ? 'tag' : 'nothing',
    confirmInput: undefined,
    passage: false,
    departures: 'reported',
    antennas: undefined,
    siren: undefined,
    feeds: settings.feeds,
    staffCards: false,
    minimumRssiDbm: settings.nearDbm,
    emergency: undefined,
    opensInEmergency: undefined,
    webhook: undefined,
  }
}
