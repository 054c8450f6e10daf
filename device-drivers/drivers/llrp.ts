import { assert } from '../../policy/assert.ts'
import type { Platform } from '../../policy/platform.ts'
import { message } from '../protocols/llrp/elements.ts'
import type { Message } from '../protocols/llrp/elements.ts'
import type { TagSighting } from '../protocols/llrp/tag-reports.ts'
import type { LinkProtocol, SharedLinks } from '../transports/shared-links.ts'
import type { RunningCommand } from './command-queue.ts'
import { deviceLink } from './device-link.ts'
import { result } from './device.ts'
import type { DeviceCommand, DeviceIdentity, ProtectionDevice, TagRead } from './device.ts'
import type { Driver } from './driver.ts'
import { emergencyEvent } from './emergency-input.ts'
import { eventQueue } from './event-queue.ts'
import { watchLevel } from './level-watch.ts'
import { settled } from './link-device.ts'
import type { ReaderCapabilities } from './llrp/capabilities.ts'
import { startConversation } from './llrp/conversation.ts'
import type { LlrpConversation, LlrpListener } from './llrp/conversation.ts'
import { switchEasOff } from './llrp/eas.ts'
import { readInputLevel } from './llrp/input-level.ts'
import { killTag } from './llrp/kill.ts'
import { eventsIn, isClosing, refusalIn, stampOf } from './llrp/notifications.ts'
import { startPulse } from './llrp/pulse.ts'
import { readerClock } from './llrp/reader-clock.ts'
import type { ReaderClock } from './llrp/reader-clock.ts'
import { outputWrite } from './llrp/reader-settings.ts'
import { signalOutputs } from './reader-settings.ts'
import { claimsOf, llrpCapabilities, LlrpSettings } from './llrp/settings.ts'
import { setUpReader } from './llrp/set-up.ts'
import { isEpc, tagAccess } from './llrp/tag-access.ts'
import type { TagAccess } from './llrp/tag-access.ts'
import { noiseReport } from './noise-report.ts'
import { outputCommands } from './output-commands.ts'
import { wantedOutputs } from './wanted-outputs.ts'
import type { WriteAnswer } from './write-answer.ts'

const GOODBYE_WITHIN_MS = 2_000
const NOT_CONNECTED = 'the reader is not connected'
const NO_PASSWORD = '00000000'

/** One connection and what is known on it. */
interface Connection {
  readonly conversation: LlrpConversation
  readonly greeting: Promise<void>
  readonly access: TagAccess
  /** Null until the reader is set up. */
  reader: ReaderCapabilities | null
  /** The reader has its settings, so single outputs may be written. */
  takesOutputs: boolean
}

function openLlrp(settings: LlrpSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  const { clock, timers } = platform
  const { requestTimeoutMs: timeoutMs } = settings
  const queue = eventQueue()
  const noise = noiseReport(platform, queue.put)
  const connections = new WeakMap<LlrpConversation, Connection>()

  const onFault = (detail: string) => queue.put({ type: 'fault', detail })
  const outputs = wantedOutputs({
    release: settings.release?.gpo,
    signals: signalOutputs(settings),
    opensInEmergency: settings.opensInEmergency,
    setting: 'gpo',
    platform,
    write,
  })

  const connection = (): Connection | null => (line.member ? (connections.get(line.member.speaker) ?? null) : null)

  async function write(output: number, on: boolean): Promise<WriteAnswer> {
    const current = connection()
    if (!current?.takesOutputs) return { kind: 'lost', handed: false, detail: NOT_CONNECTED }
    const answer = await current.conversation.request(
      'SET_READER_CONFIG_RESPONSE',
      (id) => outputWrite(id, output, on),
      { timeoutMs },
    )
    // A reader that does not answer has the output in a state that nobody knows: a new connection writes all of them again.
    if (answer.kind === 'lost') current.conversation.end(answer.detail)
    if (answer.kind === 'refused' && !on) onFault(`output ${output} could not be switched off: ${answer.detail}`)
    return answer
  }

  function tellEmergency(input: number, level: boolean): void {
    const event = emergencyEvent(settings.emergency, input, level)
    if (event) queue.put(event)
  }

  /** Reads the emergency input now and from now on. Rejects if the reader does not tell its level. */
  async function watchEmergency({ conversation }: Connection): Promise<void> {
    if (!settings.emergency) return
    const { input } = settings.emergency
    const read = () => readInputLevel(conversation, input, timeoutMs)
    const level = await read()
    if (level === null)
      throw new Error(`the reader does not tell the level of input (GPI) ${input}, so it cannot serve as "emergency"`)
    tellEmergency(input, level)
    const over = new AbortController()
    void conversation.ended.then(() => over.abort())
    void watchLevel({
      timers,
      over: over.signal,
      read,
      onLevel: (now) => tellEmergency(input, now),
      onSilent: () => conversation.end(`the reader no longer tells the level of input (GPI) ${input}`),
    })
  }

  /** Turns what a reader tells into events. */
  function listen(
    readers: ReaderClock,
    greet: (refusal: string | null) => void,
    end: (reason: string) => void,
  ): LlrpListener {
    const readOf = ({ epc, antenna, rssiDbm, utcUs, uptimeUs }: TagSighting): TagRead => ({
      tag: { epc },
      seenAtMs: readers.seenAt({ utcUs, uptimeUs }),
      ...(antenna === undefined ? {} : { antenna }),
      ...(rssiDbm === undefined ? {} : { rssiDbm }),
    })
    let isGreeted = false

    function onNotification(notification: Message<'READER_EVENT_NOTIFICATION'>): void {
      const refusal = refusalIn(notification)
      if (refusal !== undefined && !isGreeted) {
        isGreeted = true
        readers.set(stampOf(notification))
        greet(refusal)
        if (refusal !== null) return end(refusal)
      } else if (refusal !== undefined && refusal !== null) onFault('another program tried to connect to this reader')
      if (isClosing(notification)) return end('the reader closes the connection')
      const ageMs = clock.elapsed() - readers.seenAt(stampOf(notification))
      for (const event of eventsIn(notification, ageMs, settings.passageInput)) {
        queue.put(event)
        if (event.type === 'input') tellEmergency(event.input, event.on)
      }
    }

    return { onTags: (seen) => queue.putReads(seen.map(readOf)), onNotification, onNoise: noise.add }
  }

  // Made for this device alone: a reader serves one client.
  const protocol: LinkProtocol<LlrpConversation> = {
    name: 'llrp',
    start(link) {
      let greet = (_refusal: string | null) => {}
      const greeting = new Promise<void>((resolve, reject) => {
        greet = (refusal) => (refusal === null ? resolve() : reject(new Error(refusal)))
      })
      greeting.catch(() => {})
      const listener = listen(readerClock(clock), greet, (reason) => conversation.end(reason))
      const conversation = startConversation(link, platform, listener)
      const access = tagAccess(conversation, listener, timers, timeoutMs)
      connections.set(conversation, { conversation, greeting, access, reader: null, takesOutputs: false })
      return conversation
    },
  }

  const line = deviceLink(links, settings.link, protocol)

  async function connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    line.member?.speaker.end('connected anew')
    await line.connect(signal, onFailure)
  }

  async function identify(signal: AbortSignal): Promise<DeviceIdentity> {
    const member = line.joined()
    const current = connection()
    assert(current, 'each conversation has its connection')
    const { conversation, greeting } = current
    const { identity, reader } = await setUpReader({
      conversation,
      greeting,
      settings,
      signal,
      wanted: () => outputs.atConnect(),
      onOutputsWritten: () => {
        current.takesOutputs = true
      },
    }).catch((error: unknown) => {
      current.takesOutputs = false
      throw error
    })
    await watchEmergency(current)
    if (conversation.isOver) throw new Error('the link was lost')
    current.reader = reader
    member.heard()
    return identity
  }

  function release(command: DeviceCommand & { kind: 'release' }, signal: AbortSignal): RunningCommand {
    const current = connection()
    const refuse = (...why: Parameters<typeof result>): RunningCommand => settled(result(...why))
    if (!current?.reader || current.conversation.isOver) return refuse('failed', false, 'not_ready', NOT_CONNECTED)
    if (settings.release) {
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
    const { kill, eas } = settings
    if (!kill && !eas)
      return refuse('failed', false, 'not_supported', 'no release is configured; add "release": { "gpo": … }')
    if (!current.reader.canReachTags)
      return refuse('failed', false, 'not_supported', 'the reader says that it does no operations on single tags')
    if (!command.tag || !('epc' in command.tag) || !isEpc(command.tag.epc))
      return refuse('failed', false, 'not_supported', 'the command must name the EPC of the tag')
    const { epc } = command.tag
    const { access } = current
    const done = kill
      ? killTag(access, epc, kill.password, signal)
      : switchEasOff({ access, epc, password: eas?.password ?? NO_PASSWORD, signal })
    const outcome = done.catch((error: unknown) =>
      result('unknown', true, 'answer_lost', `fault in the driver: ${String(error)}`),
    )
    return { outcome, finished: outcome }
  }

  async function sayGoodbye(signal: AbortSignal): Promise<void> {
    const current = connection()
    if (!current?.takesOutputs) return
    const ask = { timeoutMs: GOODBYE_WITHIN_MS, signal }
    const { conversation } = current
    // Sent in one go, so that the reader has all of it even when it answers late.
    await Promise.all([
      ...outputs
        .toSwitchOff()
        .map((output) =>
          conversation.request('SET_READER_CONFIG_RESPONSE', (id) => outputWrite(id, output, false), ask),
        ),
      conversation.request('DELETE_ROSPEC_RESPONSE', (id) => message('DELETE_ROSPEC', id, { ROSpecID: 0 }), ask),
      conversation.request('CLOSE_CONNECTION_RESPONSE', (id) => message('CLOSE_CONNECTION', id, {}), ask),
    ])
  }

  function letGo(): void {
    line.member?.speaker.end('closed')
    line.leave()
    noise.stop()
    queue.end()
  }

  const { execute, close } = outputCommands({ platform, outputs, release, sayGoodbye, letGo })
  return {
    connect,
    identify,
    untilLost: line.lost,
    execute,
    events: queue.events,
    close,
  }
}

/** UHF readers and gates that speak LLRP: tag reads, sirens and lamps, barriers, passage sensors. */
export const llrpDriver: Driver<LlrpSettings, typeof LlrpSettings> = {
  name: 'llrp',
  settings: LlrpSettings,
  // A reader serves one client.
  linkUse: () => null,
  claims: claimsOf,
  capabilities: llrpCapabilities,
  open: openLlrp,
}
