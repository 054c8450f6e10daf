/** Header names in lower case. Values of a repeated header are joined with commas. */
export type HttpHeaders = ReadonlyMap<string, string>

/** Output of the parser, in order: a head, its body in chunks, its end. */
export type HttpPiece =
  | { readonly kind: 'response'; readonly status: number; readonly headers: HttpHeaders }
  | { readonly kind: 'request'; readonly method: string; readonly path: string; readonly headers: HttpHeaders }
  | { readonly kind: 'data'; readonly bytes: Uint8Array }
  | { readonly kind: 'end' }

const MAX_LINE_BYTES = 8_192
const MAX_HEADERS = 100
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

/** Parses HTTP/1.1 (RFC 9112) of one connection. Buffers at most one line of 8 KiB and 100 headers. */
export class HttpParser {
  readonly #reads: 'responses' | 'requests'
  readonly #line = new Uint8Array(MAX_LINE_BYTES)
  #length = 0
  #state: State = 'start'
  #fault: string | null = null
  #first = ''
  #headers = new Map<string, string>()
  #count = 0
  #left = 0

  constructor(reads: 'responses' | 'requests') {
    this.#reads = reads
  }

  push(chunk: Uint8Array): HttpPiece[] {
    const pieces: HttpPiece[] = []
    let at = 0
    while (at < chunk.length && this.#state !== 'broken') {
      if (this.#state === 'fixed' || this.#state === 'chunk' || this.#state === 'until-close') {
        const take = this.#state === 'until-close' ? chunk.length - at : Math.min(this.#left, chunk.length - at)
        pieces.push({ kind: 'data', bytes: chunk.slice(at, at + take) })
        at += take
        if (this.#state === 'until-close') continue
        this.#left -= take
        if (this.#left > 0) continue
        if (this.#state === 'fixed') this.#finish(pieces)
        else this.#state = 'chunk-end'
      } else this.#takeLine(chunk[at++] ?? 0, pieces)
    }
    return pieces
  }

  /** Call this function when the peer has closed the connection. A response without a length is then complete. */
  end(): HttpPiece[] {
    const pieces: HttpPiece[] = []
    if (this.#state === 'until-close') this.#finish(pieces)
    else if (this.#state !== 'start' && this.#state !== 'broken')
      this.#broken('the other side closed in the middle of a message')
    return pieces
  }

  /**
   * Reason why the bytes are not HTTP, or null. After a fault the parser ignores all bytes, because an HTTP stream has
   * no start marks.
   */
  get fault(): string | null {
    return this.#fault
  }

  #broken(why: string): void {
    this.#state = 'broken'
    this.#fault = why
  }

  #finish(pieces: HttpPiece[]): void {
    pieces.push({ kind: 'end' })
    this.#state = 'start'
    this.#left = 0
  }

  #onStart(text: string): void {
    // Empty lines before a head are allowed; some servers send them as keepalives.
    if (text === '') return
    const pattern =
      this.#reads === 'responses' ? /^HTTP\/1\.[01] [1-5]\d\d(?: .*)?$/ : /^[A-Z]{1,20} \S{1,4096} HTTP\/1\.[01]$/
    if (!pattern.test(text)) return this.#broken('this is not HTTP/1.1')
    this.#first = text
    this.#headers = new Map()
    this.#count = 0
    this.#state = 'headers'
  }

  #onHeader(text: string): void {
    const colon = text.indexOf(':')
    const name = text.slice(0, colon).toLowerCase()
    if (colon < 1 || !TOKEN.test(name)) return this.#broken('a header without a name')
    if (++this.#count > MAX_HEADERS) return this.#broken(`more than ${MAX_HEADERS} headers`)
    const value = text.slice(colon + 1).trim()
    const before = this.#headers.get(name)
    this.#headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }

  /** Determines from the headers how the body ends. */
  #onHead(pieces: HttpPiece[]): void {
    const coding = this.#headers.get('transfer-encoding')
    const size = this.#headers.get('content-length')
    if (coding !== undefined && (size !== undefined || coding.toLowerCase() !== 'chunked'))
      return this.#broken('a body whose length cannot be known')
    if (size !== undefined && !/^\d{1,12}$/.test(size)) return this.#broken('a Content-Length that is no number')
    let mayHaveBody = true
    if (this.#reads === 'requests') {
      const [method = '', path = ''] = this.#first.split(' ')
      pieces.push({ kind: 'request', method, path, headers: this.#headers })
    } else {
      const status = Number(this.#first.slice(9, 12))
      if (status < 200) {
        this.#state = 'start'
        return
      }
      pieces.push({ kind: 'response', status, headers: this.#headers })
      mayHaveBody = status !== 204 && status !== 304
    }
    this.#left = Number(size ?? 0)
    if (!mayHaveBody) this.#finish(pieces)
    else if (coding !== undefined) this.#state = 'chunk-size'
    else if (size === undefined && this.#reads === 'responses') this.#state = 'until-close'
    else if (this.#left === 0) this.#finish(pieces)
    else this.#state = 'fixed'
  }

  #onChunkSize(text: string): void {
    const size = /^([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?$/.exec(text)?.[1]
    if (size === undefined) return this.#broken('a chunk without a size')
    this.#left = Number.parseInt(size, 16)
    this.#state = this.#left === 0 ? 'trailers' : 'chunk'
    this.#count = 0
  }

  #onLine(text: string, pieces: HttpPiece[]): void {
    if (this.#state === 'start') return this.#onStart(text)
    if (this.#state === 'chunk-size') return this.#onChunkSize(text)
    if (this.#state === 'headers') return text === '' ? this.#onHead(pieces) : this.#onHeader(text)
    if (this.#state === 'chunk-end' && text !== '') return this.#broken('a chunk longer than its size')
    if (this.#state === 'chunk-end') this.#state = 'chunk-size'
    else if (text === '') this.#finish(pieces)
    else if (++this.#count > MAX_HEADERS) this.#broken(`more than ${MAX_HEADERS} trailers`)
  }

  #takeLine(byte: number, pieces: HttpPiece[]): void {
    if (byte !== LF) {
      if (this.#length === MAX_LINE_BYTES) return this.#broken(`a line over ${MAX_LINE_BYTES} bytes`)
      this.#line[this.#length++] = byte
      return
    }
    const text = String.fromCharCode(...this.#line.subarray(0, this.#length)).replace(/\r$/, '')
    this.#length = 0
    this.#onLine(text, pieces)
  }
}

const text = new TextEncoder()

function head(first: string, headers: Readonly<Record<string, string>>): string {
  return [first, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n')
}

/**
 * Encodes a request with its Content-Length: 0 for a POST or PUT without body, because strict servers refuse such a
 * request without one (RFC 9110, 8.6). Header values must not contain line ends.
 */
export function encodeRequest(request: {
  method: string
  path: string
  headers: Readonly<Record<string, string>>
  body?: string | undefined
}): Uint8Array {
  const body = text.encode(request.body ?? '')
  const hasLength = request.body !== undefined || request.method !== 'GET'
  const size = hasLength ? { 'content-length': String(body.length) } : {}
  const bytes = text.encode(head(`${request.method} ${request.path} HTTP/1.1`, { ...request.headers, ...size }))
  return Uint8Array.from([...bytes, ...body])
}

/**
 * Encodes a response. Without `body`, encodes only the head of a chunked response; `encodeChunk` then encodes the
 * chunks.
 */
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

/** Encodes one chunk. An empty chunk ends the body. */
export function encodeChunk(data: string): Uint8Array {
  const bytes = text.encode(data)
  return Uint8Array.from([...text.encode(`${bytes.length.toString(16)}\r\n`), ...bytes, ...text.encode('\r\n')])
}
