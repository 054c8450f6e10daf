import { deadline, type Platform, type Timers } from '../../policy/platform.ts'
import { all, first, message, type Message } from './protocol/elements.ts'
import { upperHex } from './protocol/fields.ts'
import type { MessageName } from './protocol/messages.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { DeviceIdentity } from '../kit/device.ts'
import { capabilitiesIn, misfit, type ReaderCapabilities } from './capabilities.ts'
import type { LlrpConversation } from './conversation.ts'
import { addRoSpec, readerConfig, ROSPEC_ID, type Transmitter } from './reader-settings.ts'
import { untilReading, connectionRefusal } from './reading.ts'
import { sessionFindings, type LlrpSettings } from './settings.ts'
import { decodeMessage } from './protocol/binary.ts'
import { llrpCodec } from './protocol/frames.ts'
import { probeLink, type LinkFactory } from '../transports/byte-link.ts'

interface SetUpOptions {
  readonly conversation: LlrpConversation
  readonly settings: LlrpSettings
  readonly timers: Timers
  /**
   * Resolves when the reader has accepted the connection. If the reader refuses the connection, rejects with the
   * reader's reason.
   */
  readonly accepted: Promise<void>
  /** Abandons the set-up. */
  readonly signal: AbortSignal
  /** The outputs with their desired states; called just before they are written. */
  desiredOutputs(): ReadonlyMap<number, boolean>
  /** Receives whether the reader detects this antenna. */
  onAntenna(antenna: number, isConnected: boolean): void
  /** Called just before all outputs are written. After this call, the caller must write each change itself. */
  onOutputsWritten(): void
}

const EVERYTHING = 0
const IDENTIFICATION = 1
const ANTENNA_PROPERTIES = 2
const ANTENNAS = 3
const ALL_SPECS = 0

/** A reader that starts sends its first event late. */
const FIRST_EVENT_MS = 5_000

/** Waits until the reader accepts the connection. Rejects if the connection ends first or no event comes. */
async function untilAccepted({ conversation, settings, accepted, signal, timers }: SetUpOptions): Promise<void> {
  const limit = deadline(timers, Math.max(FIRST_EVENT_MS, 2 * settings.requestTimeoutMs), signal)
  let giveUp = () => {}
  const timeUp = new Promise<never>((_, reject) => {
    giveUp = () =>
      reject(
        new Error(
          'the reader accepts the connection but sends no connection event; check the port (LLRP uses 5084), and whether the reader is still starting',
        ),
      )
  })
  const over = conversation.ended.then((reason): never => {
    throw new Error(`${reason} before it accepted the client; is another program connected to it?`)
  })
  over.catch(() => {})
  timeUp.catch(() => {})
  limit.signal.addEventListener('abort', giveUp, { once: true })
  try {
    await Promise.race([accepted, over, timeUp])
  } finally {
    limit.signal.removeEventListener('abort', giveUp)
    limit.done()
  }
}

/**
 * Configures a reader that has accepted the connection:
 *
 *     accepted → capabilities → DELETE_ROSPEC 0 → DELETE_ACCESSSPEC 0 → SET_READER_CONFIG (events, keepalive, outputs) → ADD, ENABLE_ROSPEC
 *              → GET_ROSPECS until the ROSpec is active → ENABLE_EVENTS_AND_REPORTS
 *
 * The reader keeps its other settings, such as region and power. Rejects with an error that names the fix.
 */
export async function setUpReader(
  options: SetUpOptions,
): Promise<{ identity: DeviceIdentity; reader: ReaderCapabilities }> {
  const { conversation, settings, signal } = options
  const { requestTimeoutMs: timeoutMs } = settings

  async function ask<A extends MessageName>(answer: A, make: (id: number) => Message): Promise<Message<A>> {
    let requestName = ''
    const makeNamed = (id: number) => {
      const request = make(id)
      requestName = request.name
      return request
    }
    const answered = await conversation.request(answer, makeNamed, { timeoutMs, signal })
    if (answered.kind === 'answered') return answered.message
    throw new Error(
      answered.kind === 'refused' ? `the reader refuses ${requestName}: ${answered.detail}` : answered.detail,
    )
  }

  await untilAccepted(options)
  const capabilities = await ask('GET_READER_CAPABILITIES_RESPONSE', (id) =>
    message('GET_READER_CAPABILITIES', id, { RequestedData: EVERYTHING }),
  )
  const reader = capabilitiesIn(capabilities)
  if (!reader) throw new Error('the reader does not report its capabilities')
  const wrong = misfit(settings, reader)
  if (wrong !== null) throw new Error(`${wrong}; check the settings of ${settings.deviceId}`)

  await ask('DELETE_ROSPEC_RESPONSE', (id) => message('DELETE_ROSPEC', id, { ROSpecID: ALL_SPECS }))
  // AccessSpecs of other programs would read, write or kill the tags that pass.
  if (reader.hasAccessSpecs)
    await ask('DELETE_ACCESSSPEC_RESPONSE', (id) => message('DELETE_ACCESSSPEC', id, { AccessSpecID: ALL_SPECS }))
  await ask('SET_READER_CONFIG_RESPONSE', (id) => {
    const config = readerConfig(id, settings, reader, options.desiredOutputs())
    // This call may come before the message is sent. The reader executes messages in order, so a later write of a
    // single output takes effect after this message.
    options.onOutputsWritten()
    return config
  })
  conversation.expectMessageWithin(3 * settings.keepaliveMs)
  const serialNumber = await serialOf(options)
  if (settings.antennas) await reportAntennas(options)
  const transmitters = settings.transmitPowerDbm === undefined ? [] : await transmittersOf(options)
  await ask('ADD_ROSPEC_RESPONSE', (id) => addRoSpec(id, settings, reader, transmitters))
  await ask('ENABLE_ROSPEC_RESPONSE', (id) => message('ENABLE_ROSPEC', id, { ROSpecID: ROSPEC_ID }))
  await untilReading(conversation, settings, options.timers, signal)
  // It has no answer. Some readers take one message from a TCP segment, so no other follows at once.
  conversation.send((id) => message('ENABLE_EVENTS_AND_REPORTS', id, {}))
  const identity: DeviceIdentity = {
    description: `${reader.maker} UHF reader (model ${reader.model}, ${reader.antennas} antennas) at ${linkKey(settings.link)}`,
    firmwareVersion: reader.firmwareVersion,
    ...(serialNumber === null ? {} : { serialNumber }),
    findings: sessionFindings(settings),
  }
  return { identity, reader }
}

/** Reports which antennas the reader detects. A reader sends no event for an antenna that was never connected. */
async function reportAntennas({ conversation, settings, signal, onAntenna }: SetUpOptions): Promise<void> {
  const answer = await conversation.request(
    'GET_READER_CONFIG_RESPONSE',
    (id) =>
      message('GET_READER_CONFIG', id, {
        AntennaID: 0,
        RequestedData: ANTENNA_PROPERTIES,
        GPIPortNum: 0,
        GPOPortNum: 0,
      }),
    { timeoutMs: settings.requestTimeoutMs, signal },
  )
  if (answer.kind === 'lost') throw new Error(answer.detail)
  if (answer.kind === 'refused') return
  for (const { fields } of all(answer.message, 'AntennaProperties'))
    onAntenna(fields.AntennaID, fields.AntennaConnected)
}

/** The present channels of the antennas, of which the driver changes only the power. Empty if the reader reports none. */
async function transmittersOf({ conversation, settings, signal }: SetUpOptions): Promise<Transmitter[]> {
  const answer = await conversation.request(
    'GET_READER_CONFIG_RESPONSE',
    (id) => message('GET_READER_CONFIG', id, { AntennaID: 0, RequestedData: ANTENNAS, GPIPortNum: 0, GPOPortNum: 0 }),
    { timeoutMs: settings.requestTimeoutMs, signal },
  )
  if (answer.kind === 'lost') throw new Error(answer.detail)
  if (answer.kind === 'refused') return []
  return all(answer.message, 'AntennaConfiguration').flatMap((configuration) => {
    const now = first(configuration, 'RFTransmitter')?.fields
    if (!now) return []
    return { antenna: configuration.fields.AntennaID, hopTableId: now.HopTableID, channelIndex: now.ChannelIndex }
  })
}

/** The reader's id, usually its MAC address; null if the reader reports no id. */
async function serialOf({ conversation, settings, signal }: SetUpOptions): Promise<string | null> {
  const answer = await conversation.request(
    'GET_READER_CONFIG_RESPONSE',
    (id) =>
      message('GET_READER_CONFIG', id, { AntennaID: 0, RequestedData: IDENTIFICATION, GPIPortNum: 0, GPOPortNum: 0 }),
    { timeoutMs: settings.requestTimeoutMs, signal },
  )
  if (answer.kind === 'lost') throw new Error(answer.detail)
  const fields = answer.kind === 'answered' ? first(answer.message, 'Identification')?.fields : undefined
  return fields && fields.ReaderID.length > 0 ? upperHex(fields.ReaderID) : null
}

const PROBE_BYTES = 65_536

/**
 * Waits for the first message of an LLRP reader and disconnects; the reader keeps its settings. Returns why the reader
 * would refuse a client, or null. Rejects if no LLRP reader answers within 3 s.
 */
export async function probeReader(open: LinkFactory, platform: Platform): Promise<string | null> {
  const codec = llrpCodec()
  const refusal = await probeLink(open, platform, {
    maxBytes: PROBE_BYTES,
    read(chunk) {
      for (const frame of codec.push(chunk)) {
        const received = decodeMessage(frame)
        const answer = received.name === 'READER_EVENT_NOTIFICATION' ? connectionRefusal(received) : undefined
        if (answer !== undefined) return answer
      }
      return undefined
    },
  })
  if (refusal === undefined) throw new Error('the peer does not speak LLRP; check address and port (5084)')
  return refusal
}
