import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { utcUsOf } from '../protocols/timestamps.ts'
import { zebraTags } from '../protocols/zebra-iotc/messages.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { Membership, SharedLinks } from '../transports/shared-links.ts'
import type { RunningCommand } from './command-queue.ts'
import { deviceLink } from './device-link.ts'
import { result } from './device.ts'
import type { DeviceIdentity, ProtectionDevice } from './device.ts'
import type { Driver } from './driver.ts'
import { eventQueue } from './event-queue.ts'
import { settled } from './link-device.ts'
import { startPulse } from './llrp/pulse.ts'
import { readerClock } from './llrp/reader-clock.ts'
import { brokerUse, MQTT_LINE } from './mqtt/line.ts'
import type { MqttLine } from './mqtt/line.ts'
import { noiseReport } from './noise-report.ts'
import { outputCommands } from './output-commands.ts'
import { openSession } from './session.ts'
import type { Session } from './session.ts'
import { readOf } from './tag-read.ts'
import { wantedOutputs } from './wanted-outputs.ts'
import type { WriteAnswer } from './write-answer.ts'
import { zebraCommands } from './zebra-iotc/commands.ts'
import type { ZebraAnswer, ZebraCommands } from './zebra-iotc/commands.ts'
import { signalOutputs } from './reader-settings.ts'
import { claimsOf, hasCommands, topicsOf, zebraIotcCapabilities, ZebraIotcSettings } from './zebra-iotc/settings.ts'

const LOOK_EVERY_MS = 3_000
const MOST_MISSED = 2
/** Between two rounds a radio may be shown as inactive. */
const MOST_INACTIVE = 3
const NOT_CONNECTED = 'the reader is not connected'

interface Conversation extends Session {
  readonly commands: ZebraCommands
}

function openZebra(settings: ZebraIotcSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  const { timers } = platform
  const topics = topicsOf(settings)
  const isManaged = hasCommands(topics, 'management')
  const isControlled = hasCommands(topics, 'control') && settings.start
  const queue = eventQueue()
  const noise = noiseReport(platform, queue.put)
  const clock = readerClock(platform.clock)
  const onFault = (detail: string) => queue.put({ type: 'fault', detail })
  const outputs = wantedOutputs({
    release: settings.release?.gpo,
    signals: signalOutputs(settings),
    opensInEmergency: settings.opensInEmergency,
    setting: 'gpo',
    platform,
    write,
  })
  const line = deviceLink(links, settings.link, MQTT_LINE, (reason) => session?.end(reason))
  let session: Conversation | null = null

  const setGpo = ({ commands }: Conversation, port: number, state: boolean) =>
    commands.ask(settings.gpoBy, 'set_gpo', { port, state })

  async function write(output: number, on: boolean): Promise<WriteAnswer> {
    if (!session || session.over.aborted) return { kind: 'lost', handed: false, detail: NOT_CONNECTED }
    const current = session
    const answer = await setGpo(current, output, on)
    // In which state the output is nobody knows: a new session writes all of them again.
    if (answer.kind === 'lost' && answer.handed) current.end(answer.detail)
    return answer
  }

  function onMessage(topic: string, payload: Uint8Array, commands: ZebraCommands): void {
    let value: unknown
    try {
      value = JSON.parse(Buffer.from(payload).toString('utf8'))
    } catch {
      return noise.add({ bytes: payload.length, detail: `a message on ${topic} that is no JSON` })
    }
    if (topic !== topics.data) return commands.onResponse(value)
    const { sightings, strange } = zebraTags(value)
    if (strange > 0) noise.add({ bytes: payload.length, detail: 'tag data without a tag in it' })
    queue.putReads(sightings.map((sighting) => readOf(sighting, clock)))
  }

  async function must(what: string, asked: Promise<ZebraAnswer>): Promise<Record<string, unknown>> {
    const answer = await asked
    if (answer.kind === 'answered') return answer.payload
    throw new Error(
      `${what}: ${answer.detail}${answer.kind === 'lost' ? '; is the reader on, and does it use this broker and these topics?' : ''}`,
    )
  }

  /** Ends the session when the reader no longer answers, or no longer reads. */
  async function lookAfter(current: Conversation): Promise<void> {
    let missed = 0
    let inactive = 0
    for (;;) {
      await pause(timers, LOOK_EVERY_MS, current.over).catch(() => {})
      if (current.over.aborted) return
      const answer = await current.commands.ask('management', 'get_status')
      missed = answer.kind === 'answered' ? 0 : missed + 1
      if (answer.kind !== 'answered' && missed === MOST_MISSED) return current.end(answer.detail)
      if (answer.kind !== 'answered' || !isControlled) continue
      inactive = isActive(answer.payload) === false ? inactive + 1 : 0
      if (inactive === MOST_INACTIVE) {
        onFault('the reader had stopped to read; it is started again')
        return current.end('the reader no longer reads')
      }
    }
  }

  async function begin(current: Conversation, member: Membership<MqttLine>): Promise<DeviceIdentity> {
    const { commands } = current
    await member.speaker.accepted
    const heard = [topics.data, topics.managementResponse, topics.controlResponse].filter(
      (topic) => topic !== undefined,
    )
    const leave = await member.speaker.subscribe([...new Set(heard)], (topic, payload) =>
      onMessage(topic, payload, commands),
    )
    current.over.addEventListener('abort', leave, { once: true })
    if (current.over.aborted) leave()
    member.heard()
    const version = isManaged ? await must('its version', commands.ask('management', 'get_version')) : {}
    const status = isManaged ? await must('its status', commands.ask('management', 'get_status')) : {}
    const utcUs = utcUsOf(status['systemTime'])
    if (utcUs !== null) clock.set({ utcUs })
    for (const output of outputs.atConnect().keys()) {
      // Looked up at the last moment: a signal that comes meanwhile is written behind this one.
      const on = outputs.atConnect().get(output) === true
      await must(`output ${output}`, setGpo(current, output, on))
    }
    if (isControlled) await startReading(commands)
    const text = (key: string) => (typeof version[key] === 'string' ? version[key].slice(0, 100) : undefined)
    const [firmwareVersion, serialNumber] = [text('readerApplication'), text('serialNumber')]
    return {
      description: `Zebra ${text('model') ?? 'reader'} on ${topics.data} at ${linkKey(settings.link)}`,
      ...(firmwareVersion === undefined ? {} : { firmwareVersion }),
      ...(serialNumber === undefined ? {} : { serialNumber }),
    }
  }

  /** A reader that reads already refuses to be started. */
  async function startReading(commands: ZebraCommands): Promise<void> {
    const started = await commands.ask('control', 'start', { doNotPersistState: true })
    if (started.kind === 'answered') return
    const status = started.kind === 'refused' && isManaged ? await commands.ask('management', 'get_status') : null
    if (status?.kind !== 'answered' || isActive(status.payload) !== true)
      await must('starting to read', Promise.resolve(started))
  }

  async function identify(signal: AbortSignal): Promise<DeviceIdentity> {
    const member = line.joined()
    session?.end('identified anew')
    const commands = zebraCommands(member.speaker, topics, platform, settings.requestTimeoutMs)
    const current: Conversation = { ...openSession(), commands }
    session = current
    void current.lost.then((reason) => commands.end(reason))
    const tooLate = () => current.end('no answer in time')
    signal.addEventListener('abort', tooLate, { once: true })
    try {
      const given = current.lost.then((reason): never => {
        throw new Error(reason)
      })
      const identity = await Promise.race([begin(current, member), given])
      if (isManaged) void lookAfter(current)
      return identity
    } catch (error) {
      current.end('not identified')
      throw error
    } finally {
      signal.removeEventListener('abort', tooLate)
    }
  }

  function release(signal: AbortSignal): RunningCommand {
    const refuse = (...why: Parameters<typeof result>): RunningCommand => settled(result(...why))
    if (!settings.release)
      return refuse('failed', false, 'not_supported', 'no release is configured; add "release": { "gpo": … }')
    if (!session || session.over.aborted) return refuse('failed', false, 'not_ready', NOT_CONNECTED)
    const { gpo, pulseMs } = settings.release
    return startPulse({
      gpo,
      pulseMs,
      timers,
      signal,
      write: (on) => write(gpo, on),
      isHeldOpen: () => outputs.isHeldOpen,
      onPulse: () => outputs.pulse(),
      onFault,
    })
  }

  async function sayGoodbye(): Promise<void> {
    const current = session
    if (!current || current.over.aborted) return
    const stop = isControlled ? [current.commands.ask('control', 'stop')] : []
    await Promise.all([...outputs.toSwitchOff().map((output) => setGpo(current, output, false)), ...stop])
  }

  function letGo(): void {
    session?.end('closed')
    line.leave()
    noise.stop()
    queue.end()
  }

  const commands = outputCommands({
    platform,
    outputs,
    release: (_command, signal) => release(signal),
    sayGoodbye,
    letGo,
  })
  return {
    async connect(signal, onFailure) {
      session?.end('connected anew')
      await line.connect(signal, onFailure)
    },
    identify,
    untilLost: () => session?.lost ?? Promise.resolve('the link was lost'),
    events: queue.events,
    ...commands,
  }
}

/** Whether the radio is on; readers spell the field in two ways. Null when it is not told. */
function isActive(status: Record<string, unknown>): boolean | null {
  const told = status['radioActivity'] ?? status['radioActivitiy']
  return typeof told === 'string' ? told === 'active' : null
}

/** Zebra readers with the IoT Connector: tag reads, sirens and lamps, barriers, over an MQTT broker. */
export const zebraIotcDriver: Driver<ZebraIotcSettings, typeof ZebraIotcSettings> = {
  name: 'zebra-iotc',
  settings: ZebraIotcSettings,
  linkUse: ({ link }) => brokerUse(link),
  claims: claimsOf,
  capabilities: zebraIotcCapabilities,
  open: openZebra,
}
