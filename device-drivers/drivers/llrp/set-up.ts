import { first, message } from '../../protocols/llrp/elements.ts'
import type { Message } from '../../protocols/llrp/elements.ts'
import { upperHex } from '../../protocols/llrp/fields.ts'
import type { MessageName } from '../../protocols/llrp/messages.ts'
import { linkKey } from '../../transports/link-settings.ts'
import type { DeviceIdentity } from '../device.ts'
import { capabilitiesIn, misfit } from './capabilities.ts'
import type { ReaderCapabilities } from './capabilities.ts'
import type { LlrpConversation } from './conversation.ts'
import { addRoSpec, readerConfig, ROSPEC_ID } from './reader-settings.ts'
import type { LlrpSettings } from './settings.ts'

export interface SetUpOptions {
  readonly conversation: LlrpConversation
  readonly settings: LlrpSettings
  /**
   * Resolves when the reader has accepted the connection. If the reader refuses the connection, rejects with the
   * reader's reason.
   */
  readonly accepted: Promise<void>
  /** Abandons the set-up. */
  readonly signal: AbortSignal
  /** The outputs with their desired states; called just before they are written. */
  desiredOutputs(): ReadonlyMap<number, boolean>
  /** Called just before all outputs are written. After this call, the caller must write each change itself. */
  onOutputsWritten(): void
}

const EVERYTHING = 0
const IDENTIFICATION = 1
const ALL_SPECS = 0

/** Waits until the reader accepts the connection. Rejects if the connection ends first or `signal` aborts. */
async function untilAccepted({ conversation, accepted, signal }: SetUpOptions): Promise<void> {
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
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    await Promise.race([accepted, over, timeUp])
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/**
 * Configures a reader that has accepted the connection:
 *
 *     accepted → capabilities → DELETE_ROSPEC 0 → SET_READER_CONFIG (events, keepalive, outputs) → ADD, ENABLE_ROSPEC
 *              → ENABLE_EVENTS_AND_REPORTS
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
  if ((settings.kill || settings.eas) && reader.canReachTags)
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
  await ask('ADD_ROSPEC_RESPONSE', (id) => addRoSpec(id, settings, reader))
  await ask('ENABLE_ROSPEC_RESPONSE', (id) => message('ENABLE_ROSPEC', id, { ROSpecID: ROSPEC_ID }))
  conversation.send((id) => message('ENABLE_EVENTS_AND_REPORTS', id, {}))
  const identity: DeviceIdentity = {
    description: `${reader.maker} UHF reader (model ${reader.model}, ${reader.antennas} antennas) at ${linkKey(settings.link)}`,
    firmwareVersion: reader.firmwareVersion,
    ...(serialNumber === null ? {} : { serialNumber }),
  }
  return { identity, reader }
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
