import { z } from 'zod'
import { hexOfBytes } from '../kit/protocol/hex.ts'
import { DEFAULT_KEY } from './protocol/secure-channel.ts'
import { linkKey, LinkSettings } from '../transports/link-settings.ts'
import { TAG_ABSENT_MS, type Capabilities, DeviceId, type ExclusiveResource } from '../kit/driver.ts'
import { LONGEST_SIGNAL_S } from '../kit/device.ts'
import { OpenSeconds } from '../kit/door-watch.ts'
import { emergencySetting, OPENS_IN_EMERGENCY } from '../kit/emergency-input.ts'
import { FEEDS, STAFF_CARDS } from '../kit/reader-settings.ts'

const whole = (from: number, to: number, error: string) => z.int({ error }).min(from, { error }).max(to, { error })
const ms = (from: number, to: number) => whole(from, to, `give milliseconds, ${from} to ${to}`)
const numberOf = (what: string) => whole(0, 255, `give the number of the ${what}, counted from 0 (0 to 255)`)

const Led = z.strictObject({ led: numberOf('LED') }, { error: 'give { "led": 0 }' })
const secondsError = { error: `give seconds, 1 to ${LONGEST_SIGNAL_S}` }
const seconds = z.number(secondsError).min(1, secondsError).max(LONGEST_SIGNAL_S, secondsError).default(5)
const Siren = z.union(
  [
    z.strictObject({ output: numberOf('output of the siren'), seconds }),
    z.strictObject({ buzzer: z.literal(true), seconds }),
  ],
  { error: 'give { "output": …, "seconds": 5 } or { "buzzer": true, "seconds": 5 }' },
)
const keyError = 'give the base key (SCBK) of this device, 32 hex digits'

/** One device on an OSDP line: a card reader, a lock or cabinet, or both. */
export const OsdpSettings = z
  .strictObject({
    deviceId: DeviceId,
    driver: z.literal('osdp'),
    link: LinkSettings,
    ...FEEDS,
    ...STAFF_CARDS,
    address: whole(0, 126, 'give the address of the device on its line, 0 to 126').default(0),
    check: z.enum(['crc', 'checksum'], { error: 'use "crc", or "checksum" for devices without' }).default('crc'),
    key: z
      .string({ error: keyError })
      .regex(/^[0-9A-Fa-f]{32}$/, { error: keyError })
      .refine((key) => key.toUpperCase() !== hexOfBytes(DEFAULT_KEY), {
        error: 'this default key is public; generate a key of 16 random bytes',
      })
      .optional(),
    installMode: z
      .boolean({ error: 'use true only while a new device is being installed' })
      .default(false)
      .meta({ description: 'a device that has only the default key receives `key`' }),
    insecure: z.boolean({ error: 'use true only for a device without a secure channel' }).default(false),
    output: numberOf('output that releases').optional(),
    confirmInput: numberOf('input that shows the release').optional(),
    pulseMs: ms(100, 60_000).multipleOf(100, { error: 'OSDP counts in 100 ms: give 100, 200, …' }).default(500),
    passageInput: numberOf('input of the passage sensor').optional(),
    emergency: emergencySetting(numberOf('emergency input')),
    opensInEmergency: OPENS_IN_EMERGENCY,
    door: z
      .strictObject(
        { input: numberOf('door sensor, which is 1 while the door is open'), openSeconds: OpenSeconds },
        { error: 'give { "input": …, "openSeconds": 30 }' },
      )
      .optional()
      .meta({ description: 'door behind the lock: relocks when it opens, reports a door that is forced or left open' }),
    cards: z
      .enum(['tags', 'scans'], { error: 'use "tags" or "scans"' })
      .default('tags')
      .meta({ description: 'how a card is reported: a tag with its number as tagUid, or a scanned text' }),
    siren: Siren.optional(),
    amber: Led.optional(),
    green: Led.optional(),
    requestTimeoutMs: ms(50, 2_000).default(200),
    pollMs: ms(20, 1_000).default(50),
  })
  .refine(({ key, insecure }) => (key !== undefined) !== insecure, {
    error:
      'give the base key of this device, or "insecure": true (without a key) for a device without a secure channel',
    path: ['key'],
  })
  .refine(({ door, output }) => door === undefined || output !== undefined, {
    error: 'a door needs its lock; give "output" too',
    path: ['door'],
  })
  .refine(({ confirmInput, output }) => confirmInput === undefined || output !== undefined, {
    error: 'an input confirms an output; give "output" too',
    path: ['confirmInput'],
  })
export type OsdpSettings = z.infer<typeof OsdpSettings>

/** The address and the outputs that only this device may use. */
export function exclusiveResourcesOf(settings: OsdpSettings): ExclusiveResource[] {
  const at = `address ${settings.address} at ${linkKey(settings.link)}`
  const { siren: sounder } = settings
  const siren =
    sounder && 'output' in sounder ? [{ setting: 'siren.output', key: `output ${sounder.output} of ${at}` }] : []
  const release =
    settings.output === undefined ? [] : [{ setting: 'output', key: `output ${settings.output} of ${at}` }]
  // Two devices with one address would disturb each other's sequence numbers.
  return [{ setting: 'address', key: at }, ...release, ...siren]
}

/** If the settings name an output, the device releases by this output. Cards count as tags. */
export function osdpCapabilities(settings: OsdpSettings): Capabilities {
  return {
    releases: settings.output === undefined ? 'nothing' : 'output',
    confirmInput: settings.confirmInput,
    passage: settings.passageInput !== undefined,
    departures: { afterMs: TAG_ABSENT_MS },
    antennas: undefined,
    siren: settings.siren,
    feeds: settings.feeds,
    staffCards: settings.staffCards,
    minimumRssiDbm: undefined,
    emergency: settings.emergency,
    opensInEmergency: settings.opensInEmergency,
    webhook: undefined,
  }
}
