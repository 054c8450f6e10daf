import { WrongUsage } from '../host/options.ts'
import { errorText } from '../host/output.ts'
import { fetchTrustingFile, fetchTrusting, type SendRequest, certificateFault } from '../host/tls/private-ca.ts'
import { ANSWER_LIMIT, type Fetch } from '../edge-agent/link/wire/http-client.ts'

/** Causes that an error of `fetch` or of a client may nest. */
const CAUSES_LIMIT = 5

/**
 * Why a server at `url` cannot be reached, with the remedy. `setting`: the option or variable with the address, for the
 * remedy. Undefined for errors of another kind, such as a timeout.
 */
export function connectionFault(error: unknown, url: string, setting: string): string | undefined {
  const cause = deepestCause(error)
  const { code = '', message = '' } = cause as NodeJS.ErrnoException
  const { protocol, host, hostname } = new URL(url)
  if (code === 'ECONNREFUSED')
    return `no program answers at ${host} (ECONNREFUSED): is the cloud running? If it has another address, set ${setting}`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `no address is known for the host ${hostname} (${code}): check ${setting} and the network`
  // Servers of http answer a TLS handshake with text, or close the connection.
  if (protocol === 'https:' && (/^ERR_SSL_|^EPROTO$/.test(code) || /wrong version number/.test(message)))
    return `the server does not speak TLS (${code}): if it serves http, set ${setting} to http://${host}/…`
  // Servers of https close a connection that begins with http.
  if (protocol === 'http:' && /^UND_ERR_SOCKET$|^HPE_|^ECONNRESET$/.test(code))
    return `the server closed the connection without an answer (${code}): if it serves https, set ${setting} to https://${host}/…`
  return certificateFault(cause)
}

function deepestCause(error: unknown): unknown {
  let cause = error
  for (let i = 0; i < CAUSES_LIMIT && cause instanceof Error && cause.cause !== undefined; i++) cause = cause.cause
  return cause
}

/**
 * `fetch` for an agent, with a limit for the decompressed response. The server may be an attacker instead of the cloud
 * or the receipt home. An endless response must not exhaust the agent's memory.
 */
export const boundedFetch: Fetch = boundedBy((url, init) => fetch(url, init))

/** `boundedFetch` that also trusts the certificates of a private CA, if there are any. */
export function agentFetch(ca: string | undefined): Fetch {
  return ca === undefined ? boundedFetch : boundedBy(fetchTrusting(ca))
}

function boundedBy(send: SendRequest): Fetch {
  return async (url, init) => {
    const { status, body } = await send(url, init)
    return { status, text: (onPart) => textOf(body, onPart, init.signal) }
  }
}

/**
 * Reads a body to its end, to the limit of its size, or until the signal. The body listens to the signal itself, because
 * Node.js may forget the signal of a request whose answer has begun.
 */
async function textOf(
  body: ReadableStream<Uint8Array> | null,
  onPart: () => void,
  signal: AbortSignal,
): Promise<string> {
  const reader = body?.getReader()
  const stop = () => void reader?.cancel().catch(() => undefined)
  signal.addEventListener('abort', stop, { once: true })
  const parts: Uint8Array[] = []
  let size = 0
  try {
    for (;;) {
      signal.throwIfAborted()
      const part = (await reader?.read())?.value
      if (part === undefined) break
      onPart()
      size += part.length
      if (size > ANSWER_LIMIT) throw new Error(`the answer has over ${ANSWER_LIMIT} bytes`)
      parts.push(part)
    }
    signal.throwIfAborted()
    return Buffer.concat(parts).toString('utf8')
  } finally {
    signal.removeEventListener('abort', stop)
    // Closes the connection if the body has not ended.
    stop()
  }
}

/** Reads JSON from an answer until the signal of its request. Throws if it takes longer, is too long or no JSON. */
export async function jsonWithin({ body }: Response, signal: AbortSignal): Promise<unknown> {
  return JSON.parse(await textOf(body, () => undefined, signal))
}

/** Calls operations of the API for a command. */
export interface ApiClient {
  /**
   * Returns the response body and the server's time, ms since 1970. Throws an `ApiRefusal` with the API's error text.
   */
  call(operation: string, body: object): Promise<{ body: Record<string, unknown>; serverMs: number }>
}

/** The settings with the address of the API, for error texts. */
export const ADDRESS_SETTING = '--base-url or UNTAG_API'

const ANSWER_WITHIN_MS = 15_000

/** Creates a client for this address and key. Throws `WrongUsage` without a key. */
export function apiClient({
  baseUrl,
  key,
  ca,
}: {
  baseUrl: string
  key: string | undefined
  ca: string | undefined
}): ApiClient {
  if (key === undefined) throw new WrongUsage(['--key KEY or UNTAG_KEY is needed: a secret key'])
  const send = fetchTrustingFile(ca)
  return {
    async call(operation, body) {
      const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
      const response = await send(`${baseUrl}/${operation}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify(body),
        signal,
        redirect: 'error',
      }).catch((error: unknown) => {
        throw new Error(
          `${baseUrl} cannot be reached: ${connectionFault(error, baseUrl, ADDRESS_SETTING) ?? `${errorText(error)}; check ${ADDRESS_SETTING}`}`,
          { cause: error },
        )
      })
      const answer = await bodyOf(response, signal)
      if (!answer)
        throw new ApiRefusal(
          `${baseUrl} responds with ${response.status} without JSON: check --base-url, which ends in /api/v1`,
          response.status,
        )
      if (!response.ok)
        throw new ApiRefusal(`${operation}: ${String(answer['error'])} (${String(answer['code'])})`, response.status)
      return { body: answer, serverMs: Date.parse(response.headers.get('date') ?? '') || Date.now() }
    },
  }
}

async function bodyOf(response: Response, signal: AbortSignal): Promise<Record<string, unknown> | undefined> {
  try {
    const value = await jsonWithin(response, signal)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The API responded with an error. A retry helps only for status 429 and 5xx. */
export class ApiRefusal extends Error {
  override name = 'ApiRefusal'
  readonly status: number
  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}
