import {
  IMPINJ_PATHS,
  gpiRequest,
  gpoRequest,
  inventoryRequest,
  presetPath,
  impinjEvent,
  type ImpinjEvent,
} from './protocol/requests.ts'
import { objectOf, type TagSighting, utcUsOf } from '../kit/protocol/tag-sighting.ts'
import { webHost, type WebChannel } from '../transports/link-settings.ts'
import { setUpEnded, type DeviceIdentity } from '../kit/device.ts'
import { type HttpAnswer, HttpConversation } from '../kit/http/conversation.ts'
import { jsonOf, refusalDetail, type RestClient, type RestRequest } from '../kit/http/rest-client.ts'
import type { ReaderClock } from '../llrp/reader-clock.ts'
import { antennasOf, inputsOf, type ImpinjIotSettings } from './settings.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Noise } from '../kit/protocol/codec.ts'
import { jsonLines, type JsonItem } from '../kit/protocol/json-lines.ts'
import type { LinkProtocol, Membership, SharedLinks } from '../transports/shared-links.ts'
import type { Session } from '../kit/device-link.ts'

interface DataStreamOptions {
  readonly link: WebChannel
  readonly links: SharedLinks
  readonly platform: Platform
  readonly authorization: string
  readonly timeoutMs: number
  onTags(sightings: readonly TagSighting[]): void
  onInput(change: ImpinjEvent & { readonly kind: 'input' }): void
  onAntenna(change: ImpinjEvent & { readonly kind: 'antenna' }): void
  onFault(detail: string): void
  onNoise(noise: Noise | null): void
}

/** Maximum size of one event. An event has some hundred bytes, or some thousand if it contains tag memory. */
const MAX_EVENT_BYTES = 65_536

/** The reader's event stream, which has its own connection. */
export interface DataStream {
  /**
   * Resolves when the reader has accepted the stream request; otherwise rejects. When the stream ends, the session ends
   * too. `silenceMs` is the maximum time without a byte.
   */
  open(session: Session, signal: AbortSignal, silenceMs: number): Promise<void>
}

/** Ends the session after `silenceMs` without a byte. */
function watchSilence(
  { clock, timers }: Platform,
  session: Session,
  silenceMs: number,
  lastReceivedAt: () => number,
): void {
  const check = () => {
    const left = lastReceivedAt() + silenceMs - clock.elapsed()
    if (left <= 0) return session.end(`the reader's stream has been silent for ${silenceMs / 1_000} s`)
    const cancel = timers.after(left, () => {
      session.over.removeEventListener('abort', cancel)
      check()
    })
    session.over.addEventListener('abort', cancel, { once: true })
  }
  if (!session.over.aborted) check()
}

/** Makes the stream. It opens no connection before `open`. */
export function dataStream(options: DataStreamOptions): DataStream {
  const { link, links, platform, timeoutMs } = options
  const { clock } = platform
  const protocol: LinkProtocol<HttpConversation> = {
    name: 'HTTP stream',
    start: (opened) => new HttpConversation(opened, platform),
  }

  function onEvents(items: readonly JsonItem[]): void {
    const sightings: TagSighting[] = []
    for (const { value, text } of items) {
      const event = impinjEvent(value)
      if (event === null)
        options.onNoise({
          bytes: text.length,
          detail: 'a line that is no event of a reader; check the firmware of the reader',
          sample: Buffer.from(text.slice(0, 400)),
        })
      else if (event.kind === 'tag') sightings.push(event.sighting)
      else if (event.kind === 'input') options.onInput(event)
      else if (event.kind === 'antenna') options.onAntenna(event)
      else if (event.kind === 'fault') options.onFault(event.detail)
    }
    if (sightings.length > 0) options.onTags(sightings)
  }

  async function requestStream(
    member: Membership<HttpConversation>,
    session: Session,
    silenceMs: number,
  ): Promise<void> {
    const lines = jsonLines(MAX_EVENT_BYTES)
    let lastReceivedAt = clock.elapsed()
    const answer = await member.client.request({
      method: 'GET',
      path: IMPINJ_PATHS.stream,
      headers: { host: webHost(link), authorization: options.authorization },
      timeoutMs,
      onData(data) {
        lastReceivedAt = clock.elapsed()
        onEvents(lines.push(data))
        options.onNoise(lines.takeNoise())
      },
    })
    if (answer.kind === 'lost' || answer.status !== 200)
      throw new Error(`its stream: the reader ${refusalDetail(answer)}`)
    member.markResponsive()
    watchSilence(platform, session, silenceMs, () => lastReceivedAt)
  }

  return {
    async open(session, signal, silenceMs) {
      const member = await links
        .join(link, protocol, signal, () => {})
        .catch((error: unknown) => {
          throw signal.aborted ? setUpEnded('the connection of its stream', signal) : error
        })
      session.over.addEventListener('abort', () => member.leave(), { once: true })
      void member.lost.then((reason) => session.end(reason))
      if (session.over.aborted) member.leave()
      try {
        await requestStream(member, session, silenceMs)
        if (signal.aborted) throw setUpEnded('its stream', signal)
      } catch (error) {
        member.leave()
        throw error
      }
    },
  }
}

interface SetUpOptions {
  readonly rest: RestClient
  readonly settings: ImpinjIotSettings
  readonly clock: ReaderClock
  readonly signal: AbortSignal
  /** The outputs with their desired states. */
  desiredOutputs(): ReadonlyMap<number, boolean>
}

function setUpError(what: string, answer: HttpAnswer, settings: ImpinjIotSettings): Error {
  if (answer.kind === 'answered' && (answer.status === 401 || answer.status === 403)) {
    return new Error(`the reader refuses user "${settings.user}" (${answer.status}); check user and password`)
  }
  if (answer.kind === 'answered' && answer.status === 404 && what === 'its description') {
    return new Error('there is no Impinj IoT device interface; choose it as the RFID interface on the reader')
  }
  if (answer.kind === 'answered' && answer.status === 404 && what === 'its inputs') {
    return new Error(
      'this firmware has no inputs (GPI) on the IoT device interface: update the reader, or take passageInput, inputs, emergency and readWhile away',
    )
  }
  return new Error(
    `${what}: the reader ${answer.kind === 'answered' ? refusalDetail(answer) : `gave no answer (${answer.detail})`}`,
  )
}

/** Keepalive interval of firmware whose interval cannot be set (OpenAPI document 1.6.0). */
const FIXED_KEEPALIVE_SECONDS = 30

const START_WITHIN_MS = 10_000

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, 100) : undefined

/**
 * Configures a connected reader: reads its identity and clock, writes its outputs, then restarts the inventory. A
 * running inventory has unknown settings. Rejects with an error that names the fix.
 */
export async function setUpReader({
  rest,
  settings,
  clock,
  signal,
  desiredOutputs,
}: SetUpOptions): Promise<{ identity: DeviceIdentity; keepaliveSeconds: number }> {
  async function requestOrThrow(
    what: string,
    request: RestRequest,
    alsoGood: readonly number[] = [],
  ): Promise<Record<string, unknown>> {
    if (signal.aborted) throw setUpEnded(what, signal)
    const answer = await rest.request({ ...request, signal })
    const isGood =
      answer.kind === 'answered' && ((answer.status >= 200 && answer.status < 300) || alsoGood.includes(answer.status))
    if (!isGood) throw setUpError(what, answer, settings)
    return objectOf(jsonOf(answer)) ?? {}
  }

  const system = await requestOrThrow('its description', { method: 'GET', path: IMPINJ_PATHS.system })
  const image = await requestOrThrow('its firmware', { method: 'GET', path: IMPINJ_PATHS.image }, [404])
  const status = await requestOrThrow('its status', { method: 'GET', path: IMPINJ_PATHS.status })
  const utcUs = utcUsOf(status['time'])
  if (utcUs !== null) clock.set({ utcUs })
  const outputs = desiredOutputs()
  if (outputs.size > 0)
    await requestOrThrow('its outputs', { method: 'PUT', path: IMPINJ_PATHS.gpos, body: gpoRequest(outputs) })

  const inputs = inputsOf(settings)
  if (inputs.length > 0) {
    const gpi = gpiRequest(await requestOrThrow('its inputs', { method: 'GET', path: IMPINJ_PATHS.gpis }), inputs)
    if ('missing' in gpi)
      throw new Error(`there is no input (GPI) ${gpi.missing}; check the settings of ${settings.deviceId}`)
    await requestOrThrow('its inputs', { method: 'PUT', path: IMPINJ_PATHS.gpis, body: gpi.body })
  }
  const stream = await requestOrThrow(
    'its stream settings',
    { method: 'GET', path: IMPINJ_PATHS.streamSettings },
    [404],
  )
  // Firmware without these settings has no such field, and a fixed interval.
  const hasKeepaliveSetting = 'keepAliveIntervalSeconds' in stream
  if (hasKeepaliveSetting && stream['keepAliveIntervalSeconds'] !== settings.keepaliveSeconds) {
    await requestOrThrow('its stream settings', {
      method: 'PUT',
      path: IMPINJ_PATHS.streamSettings,
      body: { ...stream, keepAliveIntervalSeconds: settings.keepaliveSeconds },
    })
  }
  // Readers take seconds to stop and start an inventory.
  const timeoutMs = Math.max(START_WITHIN_MS, settings.requestTimeoutMs)
  // Status 409 means that nothing was running.
  await requestOrThrow('stopping what it does', { method: 'POST', path: IMPINJ_PATHS.stop, timeoutMs }, [409])
  const { preset } = settings
  if (preset === undefined)
    await requestOrThrow('starting to read', {
      method: 'POST',
      path: IMPINJ_PATHS.start,
      timeoutMs,
      body: inventoryRequest({ ...settings, antennas: antennasOf(settings), readWhile: settings.readWhile?.gpi }),
    })
  else
    await requestOrThrow(`starting the preset ${preset}`, {
      method: 'POST',
      path: presetPath(preset),
      body: {},
      timeoutMs,
    })

  const model = textOf(system['productModel']) ?? textOf(system['productDescription']) ?? 'reader'
  const serialNumber = textOf(system['serialNumber']) ?? textOf(status['serialNumber'])
  const firmwareVersion = textOf(image['primaryFirmware'])
  const identity: DeviceIdentity = {
    description: `Impinj ${model} at ${webHost(settings.link)}`,
    ...(serialNumber === undefined ? {} : { serialNumber }),
    ...(firmwareVersion === undefined ? {} : { firmwareVersion }),
  }
  return { identity, keepaliveSeconds: hasKeepaliveSetting ? settings.keepaliveSeconds : FIXED_KEEPALIVE_SECONDS }
}
