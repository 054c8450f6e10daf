import { deadline, type Platform } from '../../../policy/platform.ts'
import { readUntrustedJson } from '../../../policy/untrusted-json.ts'
import { webHost, type WebChannel } from '../../transports/link-settings.ts'
import type { LinkProtocol, Membership, SharedLinks } from '../../transports/shared-links.ts'
import { deviceLink } from '../device-link.ts'
import { HttpConversation, type HttpAnswer, type HttpRequest } from './conversation.ts'

export interface RestRequest {
  readonly method: HttpRequest['method']
  readonly path: string
  readonly body?: object
  readonly signal?: AbortSignal
  /** Time limit of the answer, ms; default: the client's. */
  readonly timeoutMs?: number
  /**
   * True for a request that must not be executed twice. The client repeats other requests if the device closed the idle
   * connection.
   */
  readonly once?: boolean
}

/**
 * Sends requests to a device over a persistent connection. The client reopens a connection that the device has closed.
 */
export interface RestClient {
  /** Opens a connection. Retries until `signal` aborts, and reports each failure. */
  connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void>
  /** Never rejects. */
  request(request: RestRequest): Promise<HttpAnswer>
  leave(): void
}

interface RestOptions {
  readonly link: WebChannel
  readonly links: SharedLinks
  readonly platform: Platform
  readonly timeoutMs: number
  readonly headers: Readonly<Record<string, string>>
}

/** A client for one device. */
export function restClient({ link, links, platform, timeoutMs, headers }: RestOptions): RestClient {
  const protocol: LinkProtocol<HttpConversation> = {
    name: 'HTTP',
    start: (opened) => new HttpConversation(opened, platform),
  }
  const common = { host: webHost(link), accept: 'application/json', ...headers }
  const line = deviceLink(links, link, protocol)
  let opening: Promise<Membership<HttpConversation>> | null = null

  /** Concurrent requests share one attempt to reconnect. */
  async function reopened(): Promise<Membership<HttpConversation>> {
    const limit = deadline(platform.timers, timeoutMs)
    opening ??= line.connect(limit.signal, () => {})
    try {
      return await opening
    } finally {
      opening = null
      limit.done()
    }
  }

  async function send(
    current: Membership<HttpConversation>,
    { method, path, body, signal, timeoutMs: limitMs = timeoutMs }: RestRequest,
  ): Promise<HttpAnswer> {
    const json = body === undefined ? {} : { body: JSON.stringify(body) }
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const answer = await current.client.request({
      method,
      path,
      headers: { ...common, ...type },
      ...json,
      timeoutMs: limitMs,
      ...(signal && { signal }),
    })
    if (answer.kind === 'answered') current.markResponsive()
    return answer
  }

  return {
    async connect(signal, onFailure) {
      await line.connect(signal, onFailure)
    },
    async request(request) {
      const from = platform.clock.elapsed()
      const open = line.member?.client.isOver === false ? line.member : null
      if (open) {
        const answer = await send(open, request)
        const isStale =
          answer.kind === 'lost' &&
          !(answer.possiblySent && request.once) &&
          platform.clock.elapsed() - from < (request.timeoutMs ?? timeoutMs)
        if (!isStale || request.signal?.aborted) return answer
      }
      try {
        return await send(await reopened(), request)
      } catch (error) {
        return {
          kind: 'lost',
          possiblySent: open !== null,
          detail: error instanceof Error ? error.message : String(error),
        }
      }
    },
    leave: line.leave,
  }
}

/** A text for a person about a request that the device did not execute. */
export function refusalDetail(answer: HttpAnswer): string {
  if (answer.kind === 'lost') return answer.detail
  const text = answer.body.replaceAll(/\s+/g, ' ').slice(0, 200)
  return `answered ${answer.status}${text === '' ? '' : `: ${text}`}`
}

/** The JSON of a 2xx response, or undefined. */
export function jsonOf(answer: HttpAnswer): unknown {
  if (answer.kind === 'lost' || answer.status < 200 || answer.status > 299) return undefined
  return readUntrustedJson(answer.body)
}
