import { z } from 'zod'
import { zebraTopics } from '../../protocols/zebra-iotc/messages.ts'
import type { ZebraTopics } from '../../protocols/zebra-iotc/messages.ts'
import { linkKey, MqttLink } from '../../transports/link-settings.ts'
import type { Signal } from '../device.ts'
import { LONGEST_SIGNAL_S, SIGNALS } from '../device.ts'
import { DeviceId } from '../driver.ts'
import type { Claim } from '../driver.ts'

const between = (unit: string, from: number, to: number) => {
  const error = `give ${unit}, ${from} to ${to}`
  return z.int({ error }).min(from, { error }).max(to, { error })
}
const gpo = (what: string) => between(`the number of the output (GPO) of the ${what}`, 1, 64)
const topicError = { error: 'give a topic without + and #, such as "zebra/FX9600F0F4B5/data"' }
const topic = z.string(topicError).regex(/^[^+#\0]{1,256}$/, topicError)
const antennaList = z.array(between('the number of an antenna', 1, 64), { error: 'give a list of antennas, such as [1, 2]' }).max(64).default([])
const seconds = { error: `give seconds, 1 to ${LONGEST_SIGNAL_S}` }
const Lamp = z.strictObject({ gpo: gpo('lamp') }, { error: 'give { "gpo": … }' })
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
      .union([topic, Topics], { error: 'give the base of the topics, such as "zebra/FX9600F0F4B5", or { "data": "…", … }' })
      .meta({ description: 'as set on the reader; a base stands for …/data, …/mgmt/cmd, …/mgmt/res, …/ctrl/cmd, …/ctrl/res' }),
    antennas: z
      .strictObject({ inside: antennaList, outside: antennaList }, { error: 'give { "inside": [1], "outside": [2] }' })
      .optional()
      .meta({ description: 'which antennas look into the shop and which to the way out; without it every approach counts as leaving' }),
    siren: z
      .strictObject({ gpo: gpo('siren'), seconds: z.number(seconds).min(1, seconds).max(LONGEST_SIGNAL_S, seconds).default(5) }, { error: 'give { "gpo": …, "seconds": 5 }' })
      .optional(),
    amber: Lamp.optional(),
    green: Lamp.optional(),
    release: z
      .strictObject({ gpo: gpo('barrier or lock'), pulseMs: between('milliseconds', 20, 10_000).default(1_000) }, { error: 'give { "gpo": …, "pulseMs": 1000 }' })
      .optional()
      .meta({ description: 'output that is pulsed to release: a barrier or a lock' }),
    gpoBy: z
      .enum(['management', 'control'], { error: 'use "management" or "control"' })
      .default('management')
      .meta({ description: 'on which interface the reader takes set_gpo' }),
    start: z.boolean({ error: 'use true (the reader is told to read) or false (it reads by itself)' }).default(true),
    requestTimeoutMs: between('milliseconds', 100, 10_000).default(2_000).meta({ description: 'for one answer' }),
  })
  .refine((s) => !(s.siren || s.amber || s.green || s.release) || hasCommands(topicsOf(s), s.gpoBy), {
    error: 'outputs need the topics of the commands and of their responses',
    path: ['topics'],
  })
export type ZebraIotcSettings = z.infer<typeof ZebraIotcSettings>

/** The topics in full. */
export function topicsOf({ topics }: { readonly topics: string | ZebraTopics }): ZebraTopics {
  return typeof topics === 'string' ? zebraTopics(topics) : topics
}

/** Whether commands can be given and their responses heard on this interface. */
export function hasCommands(topics: ZebraTopics, by: 'management' | 'control'): boolean {
  return topics[`${by}Command`] !== undefined && topics[`${by}Response`] !== undefined
}

/** The outputs of the signals that this device has. */
export function signalOutputs(settings: ZebraIotcSettings): Map<Signal, number> {
  return new Map(SIGNALS.flatMap((signal) => (settings[signal] ? [[signal, settings[signal].gpo] as const] : [])))
}

/** An output belongs to one purpose, and a reader to one device. */
export function claimsOf(settings: ZebraIotcSettings): Claim[] {
  const { data } = topicsOf(settings)
  const on = (output: number) => `GPO ${output} of ${data} at ${linkKey(settings.link)}`
  const signals = [...signalOutputs(settings)].map(([signal, output]) => ({ setting: `${signal}.gpo`, on: on(output) }))
  const release = settings.release ? [{ setting: 'release.gpo', on: on(settings.release.gpo) }] : []
  return [{ setting: 'topics', on: `topic ${data} at ${linkKey(settings.link)}` }, ...release, ...signals]
}
