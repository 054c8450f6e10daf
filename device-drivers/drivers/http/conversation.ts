import { deadline } from '../../../policy/platform.ts'
import type { Platform } from '../../../policy/platform.ts'
import { encodeRequest, httpParser } from '../../protocols/http/message.ts'
import type { HttpHeaders, HttpPiece } from '../../protocols/http/message.ts'
import type { ByteLink } from '../../transports/byte-link.ts'
import type { Speaker } from '../../transports/shared-links.ts'

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs: number
  /** Taken back before it is sent; what was sent is waited for. */
  readonly signal?: AbortSignal
  /**
   * Called with the data of a good answer as it comes. The request is answered when the head is there, and the
   * conversation is this stream's from then on.
   */
  readonly onData?: (data: Uint8Array) => void
}

export type HttpAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly headers: HttpHeaders; readonly body: string }
  /** No answer. `handed`: the device may have received the request. */
  | { readonly kind: 'lost'; readonly handed: boolean; readonly detail: string }

/** Requests and answers on one connection, one after the other. */
export interface HttpConversation extends Speaker {
  /** Never rejects. */
  request(request: HttpRequest): Promise<HttpAnswer>
  end(reason: string): void
  readonly isOver: boolean
}

const MOST_WAITING = 32
const MOST_BODY_BYTES = 1_048_576

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

/** Speaks HTTP/1.1 on a link. Its end is the link's end: who wants more joins anew. */
export function startHttp(link: ByteLink, platform: Platform): HttpConversation {
  const parser = httpParser('responses')
  const waiting: Job[] = []
  let open: Open | null = null
  let working = false
  let over: string | null = null
  let tellEnded = (_reason: string) => {}
  const ended = new Promise<string>((resolve) => {
    tellEnded = resolve
  })

  function end(reason: string): void {
    if (over !== null) return
    over = reason
    open?.settle({ kind: 'lost', handed: true, detail: reason })
    for (const job of waiting.splice(0)) job.settle({ kind: 'lost', handed: false, detail: reason })
    tellEnded(reason)
  }

  function onPiece(piece: HttpPiece): void {
    if (!open) return end('an answer that nobody asked for')
    if (piece.kind === 'response') {
      open.status = piece.status
      open.headers = piece.headers
      open.isStream = open.request.onData !== undefined && piece.status >= 200 && piece.status < 300
      if (open.isStream) open.settle({ kind: 'answered', status: open.status, headers: open.headers, body: '' })
    } else if (piece.kind === 'data') {
      if (open.isStream) return open.request.onData?.(piece.bytes)
      open.size += piece.bytes.length
      if (open.size > MOST_BODY_BYTES) return end(`an answer over ${MOST_BODY_BYTES} bytes`)
      open.body.push(piece.bytes)
    } else if (open.isStream) end('the device ended the stream')
    else {
      const { status, headers, settle } = open
      const body = Buffer.concat(open.body).toString('utf8')
      open = null
      settle({ kind: 'answered', status, headers, body })
      if (/\bclose\b/i.test(headers.get('connection') ?? '')) end('the device closes the connection')
    }
  }

  async function listen(): Promise<void> {
    try {
      for await (const chunk of link.bytes) {
        for (const piece of parser.push(chunk)) if (over === null) onPiece(piece)
        if (parser.fault !== null) end(`what answers is no HTTP server (${parser.fault})`)
        if (over !== null) return
      }
      for (const piece of parser.end()) if (over === null) onPiece(piece)
      end(parser.fault ?? 'the other side closed the connection')
    } catch (error) {
      end(error instanceof Error ? error.message : String(error))
    }
  }

  async function exchange({ request, settle }: Job): Promise<void> {
    if (request.signal?.aborted) return settle({ kind: 'lost', handed: false, detail: 'taken back before it was sent' })
    const limit = deadline(platform.timers, request.timeoutMs)
    await new Promise<void>((done) => {
      const answered = (answer: HttpAnswer) => {
        settle(answer)
        done()
      }
      open = { request, settle: answered, status: 0, headers: new Map(), body: [], size: 0, isStream: false }
      // An answer that comes too late would be taken for the next one, so the connection is given up.
      const late = () => end(`no answer within ${request.timeoutMs} ms`)
      limit.signal.addEventListener('abort', late, { once: true })
      link
        .write(encodeRequest(request), limit.signal)
        .catch((error: unknown) => end(error instanceof Error ? error.message : String(error)))
    })
    limit.done()
  }

  async function work(): Promise<void> {
    if (working) return
    working = true
    for (let job = waiting.shift(); job; job = waiting.shift()) {
      if (over !== null) job.settle({ kind: 'lost', handed: false, detail: over })
      else await exchange(job)
    }
    working = false
  }

  void listen()
  return {
    ended,
    end,
    get isOver() {
      return over !== null
    },
    request: (request) =>
      new Promise((settle) => {
        const unsent = (detail: string) => settle({ kind: 'lost', handed: false, detail })
        if (over !== null) return unsent(over)
        if (waiting.length >= MOST_WAITING) return unsent(`${MOST_WAITING} requests wait for this device already`)
        waiting.push({ request, settle })
        void work()
      }),
  }
}

/** The header of HTTP basic authentication (RFC 7617). */
export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`
}
