import { z } from 'zod'
import { zebraTopics, type ZebraTopics } from './protocol/messages.ts'
import { linkKey, MqttLink } from '../transports/link-settings.ts'
import { TAG_ABSENT_MS, type Capabilities, DeviceId, type ExclusiveResource } from '../kit/driver.ts'
import { OPENS_IN_EMERGENCY } from '../kit/emergency-input.ts'
import {
  FEEDS_WITH_MINIMUM_RSSI,
  antennaSettings,
  boundedInt,
  outputResources,
  outputSettings,
} from '../kit/reader-settings.ts'

const gpo = (what: string) => boundedInt(`the number of the output (GPO) of the ${what}`, 1, 64)
const topicError = { error: 'give a topic without + and #, such as "zebra/FX9600F0F4B5/data"' }
const topic = z.string(topicError).regex(/^[^+#\0]{1,256}$/, topicError)
const Topics = z.strictObject({
  data: topic,
  managementCommand: topic.optional(),
  managementResponse: topic.optional(),
  controlCommand: topic.optional(),
  controlResponse: topic.optional(),
})

/** One Zebra reader with the IoT Connector, which publishes to a broker. */
export const ZebraIotcSettings = z
  .strictObject({
    deviceId: DeviceId,
    driver: z.literal('zebra-iotc'),
    link: MqttLink,
    topics: z
      .union([topic, Topics], {
        error: 'give the base of the topics, such as "zebra/FX9600F0F4B5", or { "data": "…", … }',
      })
      .meta({
        description: 'as set on the reader; a base stands for …/data, …/mgmt/cmd, …/mgmt/res, …/ctrl/cmd, …/ctrl/res',
      }),
    ...FEEDS_WITH_MINIMUM_RSSI,
    antennas: antennaSettings(boundedInt('the number of an antenna', 1, 64), ''),
    ...outputSettings(gpo),
    opensInEmergency: OPENS_IN_EMERGENCY,
    gpoBy: z
      .enum(['management', 'control'], { error: 'use "management" or "control"' })
      .default('management')
      .meta({ description: 'interface on which the reader accepts set_gpo' }),
    start: z
      .boolean({ error: 'use true (the agent starts reading) or false (the reader starts by itself)' })
      .default(true),
    setMode: z
      .boolean({ error: 'use true (the agent sets the operating mode) or false (it only checks the mode)' })
      .default(false)
      .meta({
        description:
          'the agent sets an operating mode that reports each read, if the reader has another one at connect',
      }),
    requestTimeoutMs: boundedInt('milliseconds', 100, 10_000).default(2_000).meta({ description: 'for one answer' }),
  })
  .refine((s) => !(s.siren || s.amber || s.green || s.release) || hasCommands(topicsOf(s), s.gpoBy), {
    error: 'outputs need the topics of the commands and of their responses',
    path: ['topics'],
  })
  .refine((s) => !s.setMode || (hasCommands(topicsOf(s), 'control') && s.start), {
    error: 'setMode needs the topics controlCommand and controlResponse, and "start": true',
    path: ['setMode'],
  })
export type ZebraIotcSettings = z.infer<typeof ZebraIotcSettings>

/** The topics of the reader. A string is the base from which all topics are derived. */
export function topicsOf({ topics }: { readonly topics: string | ZebraTopics }): ZebraTopics {
  return typeof topics === 'string' ? zebraTopics(topics) : topics
}

/** True if this interface has topics for commands and for responses. */
export function hasCommands(topics: ZebraTopics, by: 'management' | 'control'): boolean {
  return topics[`${by}Command`] !== undefined && topics[`${by}Response`] !== undefined
}

/** The data topic and the outputs that only this device may use. */
export function exclusiveResourcesOf(settings: ZebraIotcSettings): ExclusiveResource[] {
  const { data } = topicsOf(settings)
  const reader = linkKey(settings.link)
  return [
    { setting: 'topics', key: `topic ${data} at ${reader}` },
    ...outputResources(settings, `of ${data} at ${reader}`),
  ]
}

/** The reader releases by an output. The IoT Connector reports no inputs. */
export function zebraIotcCapabilities(settings: ZebraIotcSettings): Capabilities {
  return {
    releases: settings.release ? 'output' : 'nothing',
    confirmInput: undefined,
    passage: false,
    departures: { afterMs: TAG_ABSENT_MS },
    antennas: settings.antennas,
    siren: settings.siren,
    feeds: settings.feeds,
    staffCards: false,
    minimumRssiDbm: settings.nearDbm,
    emergency: undefined,
    opensInEmergency: settings.opensInEmergency,
    webhook: undefined,
  }
}
