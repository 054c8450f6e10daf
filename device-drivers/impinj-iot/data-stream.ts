import type { Platform } from '../../policy/platform.ts'
import type { Noise } from '../kit/protocol/codec.ts'
import { impinjEvent } from './protocol/events.ts'
import type { ImpinjEvent } from './protocol/events.ts'
import { IMPINJ_PATHS } from './protocol/requests.ts'
import { jsonLines } from '../kit/protocol/json-lines.ts'
import type { JsonItem } from '../kit/protocol/json-lines.ts'
import type { TagSighting } from '../kit/protocol/tag-sighting.ts'
import { webHost } from '../transports/link-settings.ts'
import type { WebChannel } from '../transports/link-settings.ts'
import type { LinkProtocol, Membership, SharedLinks } from '../transports/shared-links.ts'
import { setUpEnded } from '../kit/device.ts'
import { startHttp } from '../kit/http/conversation.ts'
import type { HttpConversation } from '../kit/http/conversation.ts'
import { refusalDetail } from '../kit/http/rest-client.ts'
import type { Session } from '../kit/session.ts'

export interface DataStreamOptions {
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
    start: (opened) => startHttp(opened, platform),
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
