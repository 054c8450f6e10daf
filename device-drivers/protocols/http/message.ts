/** Header names in lower case; of a repeated one the values with commas. */
export type HttpHeaders = ReadonlyMap<string, string>

/** What a parser finds, in order: a head, its data in pieces as they come, its end. */
export type HttpPiece =
  | { readonly kind: 'response'; readonly status: number; readonly headers: HttpHeaders }
  | { readonly kind: 'request'; readonly method: string; readonly path: string; readonly headers: HttpHeaders }
  | { readonly kind: 'data'; readonly bytes: Uint8Array }
  | { readonly kind: 'end' }

/** HTTP/1.1 as it is read from one connection (RFC 9112). Holds at most one line and the headers of one head. */
export interface HttpParser {
  push(chunk: Uint8Array): HttpPiece[]
  /** The other side has closed: the end of an answer that has no other. */
  end(): HttpPiece[]
  /** What was not HTTP. Nothing more is read after it: on a stream there is no way back. */
  readonly fault: string | null
}

const MOST_LINE_BYTES = 8_192
const MOST_HEADERS = 100
const LF = 0x0a
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

type State =
  | 'start'
  | 'headers'
  | 'fixed'
  | 'until-close'
  | 'chunk-size'
  | 'chunk'
  | 'chunk-end'
  | 'trailers'
  | 'broken'

/** Reads answers (a client's side) or requests (a server's side). */
export function httpParser(reads: 'responses' | 'requests'): HttpParser {
  const line = new Uint8Array(MOST_LINE_BYTES)
  let length = 0
  let state: State = 'start'
  let fault: string | null = null
  let first = ''
  let headers = new Map<string, string>()
  let count = 0
  let left = 0

  function broken(why: string): void {
    state = 'broken'
    fault = why
  }

  function finish(pieces: HttpPiece[]): void {
    pieces.push({ kind: 'end' })
    state = 'start'
    left = 0
  }

  function onStart(text: string): void {
    // Empty lines before a head are allowed, and a keep-alive of some servers.
    if (text === '') return
    const pattern =
      reads === 'responses' ? /^HTTP\/1\.[01] [1-5]\d\d(?: .*)?$/ : /^[A-Z]{1,20} \S{1,4096} HTTP\/1\.[01]$/
    if (!pattern.test(text)) return broken('this is not HTTP/1.1')
    first = text
    headers = new Map()
    count = 0
    state = 'headers'
  }

  function onHeader(text: string): void {
    const colon = text.indexOf(':')
    const name = text.slice(0, colon).toLowerCase()
    if (colon < 1 || !TOKEN.test(name)) return broken('a header without a name')
    if (++count > MOST_HEADERS) return broken(`more than ${MOST_HEADERS} headers`)
    const value = text.slice(colon + 1).trim()
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }

  /** How the body's end will be known. */
  function onHead(pieces: HttpPiece[]): void {
    const coding = headers.get('transfer-encoding')
    const size = headers.get('content-length')
    if (coding !== undefined && (size !== undefined || coding.toLowerCase() !== 'chunked'))
      return broken('a body whose length cannot be known')
    if (size !== undefined && !/^\d{1,12}$/.test(size)) return broken('a Content-Length that is no number')
    let mayHaveBody = true
    if (reads === 'requests') {
      const [method = '', path = ''] = first.split(' ')
      pieces.push({ kind: 'request', method, path, headers })
    } else {
      const status = Number(first.slice(9, 12))
      if (status < 200) {
        state = 'start'
        return
      }
      pieces.push({ kind: 'response', status, headers })
      mayHaveBody = status !== 204 && status !== 304
    }
    left = Number(size ?? 0)
    if (!mayHaveBody) finish(pieces)
    else if (coding !== undefined) state = 'chunk-size'
    else if (size === undefined && reads === 'responses') state = 'until-close'
    else if (left === 0) finish(pieces)
    else state = 'fixed'
  }

  function onChunkSize(text: string): void {
    const size = /^([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?$/.exec(text)?.[1]
    if (size === undefined) return broken('a chunk without a size')
    left = Number.parseInt(size, 16)
    state = left === 0 ? 'trailers' : 'chunk'
    count = 0
  }

  function onLine(text: string, pieces: HttpPiece[]): void {
    if (state === 'start') return onStart(text)
    if (state === 'chunk-size') return onChunkSize(text)
    if (state === 'headers') return text === '' ? onHead(pieces) : onHeader(text)
    if (state === 'chunk-end' && text !== '') return broken('a chunk longer than it says')
    if (state === 'chunk-end') state = 'chunk-size'
    else if (text === '') finish(pieces)
    else if (++count > MOST_HEADERS) broken(`more than ${MOST_HEADERS} trailers`)
  }

  function takeLine(byte: number, pieces: HttpPiece[]): void {
    if (byte !== LF) {
      if (length === MOST_LINE_BYTES) return broken(`a line over ${MOST_LINE_BYTES} bytes`)
      line[length++] = byte
      return
    }
    const text = String.fromCharCode(...line.subarray(0, length)).replace(/\r$/, '')
    length = 0
    onLine(text, pieces)
  }

  return {
    push(chunk) {
      const pieces: HttpPiece[] = []
      let at = 0
      while (at < chunk.length && state !== 'broken') {
        if (state === 'fixed' || state === 'chunk' || state === 'until-close') {
          const take = state === 'until-close' ? chunk.length - at : Math.min(left, chunk.length - at)
          pieces.push({ kind: 'data', bytes: chunk.slice(at, at + take) })
          at += take
          if (state === 'until-close') continue
          left -= take
          if (left > 0) continue
          if (state === 'fixed') finish(pieces)
          else state = 'chunk-end'
        } else takeLine(chunk[at++] ?? 0, pieces)
      }
      return pieces
    },
    end() {
      const pieces: HttpPiece[] = []
      if (state === 'until-close') finish(pieces)
      else if (state !== 'start' && state !== 'broken') broken('the other side closed in the middle of a message')
      return pieces
    },
    get fault() {
      return fault
    },
  }
}

const text = new TextEncoder()

function head(first: string, headers: Readonly<Record<string, string>>): string {
  return [first, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n')
}

/** A request; a body is sent with its length. Values of headers must have no line ends. */
export function encodeRequest(request: {
  method: string
  path: string
  headers: Readonly<Record<string, string>>
  body?: string | undefined
}): Uint8Array {
  const body = text.encode(request.body ?? '')
  const size = request.body === undefined ? {} : { 'content-length': String(body.length) }
  const bytes = text.encode(head(`${request.method} ${request.path} HTTP/1.1`, { ...request.headers, ...size }))
  return Uint8Array.from([...bytes, ...body])
}

/** An answer. Without a body it begins one in chunks, which `encodeChunk` goes on with. */
export function encodeResponse(status: number, headers: Readonly<Record<string, string>>, body?: string): Uint8Array {
  const bytes = text.encode(body ?? '')
  const size: Record<string, string> =
    body === undefined
      ? { 'transfer-encoding': 'chunked' }
      : status === 204
        ? {}
        : { 'content-length': String(bytes.length) }
  return Uint8Array.from([...text.encode(head(`HTTP/1.1 ${status} -`, { ...headers, ...size })), ...bytes])
}

/** One chunk; an empty one ends the body. */
export function encodeChunk(data: string): Uint8Array {
  const bytes = text.encode(data)
  return Uint8Array.from([...text.encode(`${bytes.length.toString(16)}\r\n`), ...bytes, ...text.encode('\r\n')])
}
