import { z } from 'zod'
import { PATH } from './protocol/mapping.ts'
import { PushLink } from '../transports/link-settings.ts'
import { TAG_ABSENT_MS, type Capabilities } from '../kit/capabilities.ts'
import { DeviceId } from '../kit/driver.ts'
import { FEEDS_WITH_MINIMUM_RSSI } from '../kit/feeds-settings.ts'
import { antennaSettings, boundedInt } from '../kit/reader-settings.ts'

const pathError = { error: 'give a path such as "data.reads[*]", "epc" or "$"' }
const path = z.string(pathError).regex(PATH, pathError)
const single = path.refine((value) => !value.includes('*'), { error: 'give a path to one field, without [*]' })
const secretError = { error: 'give a secret of this device alone, 16 to 128 characters without spaces' }
const perDbm = { error: 'give how many parts are 1 dBm, 1 to 1000' }
const silence = { error: 'give seconds, 5 to 86400' }

const Mapping = z.strictObject({
  reads: path.meta({ description: 'path of the reads: "reads[*]"; "$" for a body that is one read' }),
  epc: single,
  epcIs: z.enum(['hex', 'base64'], { error: 'use "hex" or "base64"' }).default('hex'),
  antenna: single.optional(),
  mux1: single.optional().meta({
    description: 'port of a multiplexer: antenna 10301 is antenna port 1, port 3 of mux1 and port 1 of mux2',
  }),
  mux2: single.optional(),
  rssi: single.optional(),
  rssiPerDbm: z.number(perDbm).min(1, perDbm).max(1_000, perDbm).default(1),
  seenAt: single.optional().meta({ description: 'the reader’s time of the read: ISO 8601, or s, ms or µs since 1970' }),
  only: z
    .strictObject({ path: single, equals: z.string().max(128) })
    .optional()
    .meta({ description: 'only reads in which this field has this value' }),
})

/** One reader that posts its reads to the agent by HTTP. */
export const HttpIngestSettings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('http-ingest'),
  link: PushLink,
  secret: z
    .string(secretError)
    .regex(/^[!-~]{16,128}$/, secretError)
    .meta({ description: 'secret that the reader sends: as bearer token, as password, or in X-Untag-Secret' }),
  mapping: z
    .union([z.enum(['keonn', 'impinj']), Mapping], { error: 'use "keonn", "impinj", or { "reads": "…", "epc": "…" }' })
    .meta({ description: 'paths of the reads in the body that the reader sends' }),
  ...FEEDS_WITH_MINIMUM_RSSI,
  antennas: antennaSettings(boundedInt('the number of an antenna', 1, 65_535), ''),
  clock: z
    .enum(['reader', 'arrival'], {
      error: 'use "reader" (the reader’s timestamps, corrected) or "arrival" (the time of the post)',
    })
    .default('reader'),
  silentAfterSeconds: z.int(silence).min(5, silence).max(86_400, silence).optional().meta({
    description: 'time without a post after which the reader counts as lost, for readers that also post without reads',
  }),
})
export type HttpIngestSettings = z.infer<typeof HttpIngestSettings>

/** The setting of the reader with which it reports each read. */
export function reportingAdvice({ mapping }: HttpIngestSettings): string {
  if (mapping === 'keonn') return 'set the inventory tag TTL of its HTTP service to 0'
  if (mapping === 'impinj')
    return 'start its inventory with "dual-target" or session 0, and without a reporting interval'
  return 'let it report every read: set the time between two reports of a tag to 0'
}

/** The reader posts its reads; the agent cannot command it. */
export function httpIngestCapabilities(settings: HttpIngestSettings): Capabilities {
  return {
    releases: 'nothing',
    confirmInput: undefined,
    passage: false,
    departures: { afterMs: TAG_ABSENT_MS },
    antennas: settings.antennas,
    siren: undefined,
    feeds: settings.feeds,
    staffCards: false,
    minimumRssiDbm: settings.nearDbm,
    // An emergency input must be wired; a post over the network must not replace it.
    emergency: undefined,
    opensInEmergency: undefined,
    webhook: { name: settings.link.push, secret: settings.secret },
  }
}
