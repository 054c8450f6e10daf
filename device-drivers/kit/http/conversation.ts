import { deadline, type Platform } from '../../../policy/platform.ts'
import { encodeRequest, HttpParser, type HttpHeaders, type HttpPiece } from '../protocol/http-message.ts'
import type { ByteLink } from '../../transports/byte-link.ts'
import type { ProtocolClient } from '../../transports/shared-links.ts'

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs: number
  /** Cancels the request before it is sent; a sent request waits for its answer. */
  readonly signal?: AbortSignal
  /**
   * Receives the body of a 2xx response in chunks. The request then ends as `answered` when the headers arrive. After
   * that the connection carries only this stream.
   */
  readonly onData?: (data: Uint8Array) => void
}

export type HttpAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly headers: HttpHeaders; readonly body: string }
  /** No answer. `possiblySent`: the device may have received the request. */
  | { readonly kind: 'lost'; readonly possiblySent: boolean; readonly detail: string }

const MAX_WAITING = 32
const MAX_BODY_BYTES = 1_048_576
/** Maximum parts of a body. Each takes memory of its own, however small it is. */
const MAX_BODY_PARTS = 16_384

interface Job {
  readonly request: HttpRequest
  readonly settle: (answer: HttpAnswer) => void
}

interface Open extends Job {
  status: number
  headers: HttpHeaders
  readonly body: Uint8Array[]
  size: number
  isStream: boolean
}

/**
 * HTTP/1.1 client (RFC 9112) on one connection: requests and responses, one after the other. A response has at most
 * 1 MiB. When the connection ends, join the link again.
 */
export class HttpConversation implements ProtocolClient {
  readonly #link: ByteLink
  readonly #platform: Platform
  readonly #parser = new HttpParser('responses')
  readonly #waiting: Job[] = []
  #open: Open | null = null
  #working = false
  #endReason: string | null = null
  #resolveEnded = (_reason: string) => {}
  readonly ended = new Promise<string>((resolve) => {
    this.#resolveEnded = resolve
  })

  constructor(link: ByteLink, platform: Platform) {
    this.#link = link
    this.#platform = platform
    void this.#listen()
  }

  end(reason: string): void {
    if (this.#endReason !== null) return
    this.#endReason = reason
    this.#open?.settle({ kind: 'lost', possiblySent: true, detail: reason })
    for (const job of this.#waiting.splice(0)) job.settle({ kind: 'lost', possiblySent: false, detail: reason })
    this.#resolveEnded(reason)
  }

  get isOver(): boolean {
    return this.#endReason !== null
  }

  /** Never rejects. */
  request(request: HttpRequest): Promise<HttpAnswer> {
    return new Promise((settle) => {
      const unsent = (detail: string) => settle({ kind: 'lost', possiblySent: false, detail })
      if (this.#endReason !== null) return unsent(this.#endReason)
      if (this.#waiting.length >= MAX_WAITING) return unsent(`${MAX_WAITING} requests wait for this device already`)
      this.#waiting.push({ request, settle })
      void this.#work()
    })
  }

  #onPart(piece: HttpPiece): void {
    if (!this.#open) return this.end('an answer without a request')
    if (piece.kind === 'response') {
      this.#open.status = piece.status
      this.#open.headers = piece.headers
      this.#open.isStream = this.#open.request.onData !== undefined && piece.status >= 200 && piece.status < 300
      if (this.#open.isStream)
        this.#open.settle({ kind: 'answered', status: this.#open.status, headers: this.#open.headers, body: '' })
    } else if (piece.kind === 'data') {
      if (this.#open.isStream) return this.#open.request.onData?.(piece.bytes)
      this.#open.size += piece.bytes.length
      if (this.#open.size > MAX_BODY_BYTES) return this.end(`an answer over ${MAX_BODY_BYTES} bytes`)
      if (this.#open.body.length >= MAX_BODY_PARTS) return this.end(`an answer in over ${MAX_BODY_PARTS} parts`)
      this.#open.body.push(piece.bytes)
    } else if (this.#open.isStream) this.end('the device ended the stream')
    else {
      const { status, headers, settle } = this.#open
      const body = Buffer.concat(this.#open.body).toString('utf8')
      this.#open = null
      settle({ kind: 'answered', status, headers, body })
      if (/\bclose\b/i.test(headers.get('connection') ?? '')) this.end('the device closes the connection')
    }
  }

  async #listen(): Promise<void> {
    try {
      for await (const chunk of this.#link.bytes) {
        for (const piece of this.#parser.push(chunk)) if (this.#endReason === null) this.#onPart(piece)
        if (this.#parser.fault !== null) this.end(`the peer is no HTTP server (${this.#parser.fault})`)
        if (this.#endReason !== null) return
      }
      for (const piece of this.#parser.end()) if (this.#endReason === null) this.#onPart(piece)
      this.end(this.#parser.fault ?? 'the other side closed the connection')
    } catch (error) {
      this.end(error instanceof Error ? error.message : String(error))
    }
  }

  async #exchange({ request, settle }: Job): Promise<void> {
    if (request.signal?.aborted)
      return settle({ kind: 'lost', possiblySent: false, detail: 'cancelled before it was sent' })
    const limit = deadline(this.#platform.timers, request.timeoutMs)
    await new Promise<void>((done) => {
      const answered = (answer: HttpAnswer) => {
        settle(answer)
        done()
      }
      this.#open = { request, settle: answered, status: 0, headers: new Map(), body: [], size: 0, isStream: false }
      // Ends the connection, because a late response would otherwise be taken for the answer to the next request.
      const late = () => this.end(`no answer within ${request.timeoutMs} ms`)
      limit.signal.addEventListener('abort', late, { once: true })
      this.#link
        .write(encodeRequest(request), limit.signal)
        .catch((error: unknown) => this.end(error instanceof Error ? error.message : String(error)))
    })
    limit.done()
  }

  async #work(): Promise<void> {
    if (this.#working) return
    this.#working = true
    for (let job = this.#waiting.shift(); job; job = this.#waiting.shift()) {
      if (this.#endReason !== null) job.settle({ kind: 'lost', possiblySent: false, detail: this.#endReason })
      else await this.#exchange(job)
    }
    this.#working = false
  }
}

/** The header of HTTP basic authentication (RFC 7617). */
export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`
}
