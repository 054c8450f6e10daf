import { errorOfAnswer, UntagError } from './error.ts'
import { isGet } from './operation-rules.ts'
import { exchange } from './exchange.ts'
import type { ClientPlatform } from './platform.ts'

/** A call that can be sent repeatedly. */
export interface Outgoing {
  readonly operation: string
  readonly baseUrl: string
  readonly key: string | undefined
  readonly request: Readonly<Record<string, unknown>>
  readonly idempotencyKey: string | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** Content types of text exports. */
const TEXT_FORM = /^(?:text\/csv|application\/x-ndjson)\b/i

/** Sends a call once. Returns the JSON, or the text of an export. Throws an `UntagError`, or the signal's reason. */
export async function send(call: Outgoing, platform: ClientPlatform): Promise<unknown> {
  const { response, text } = await exchange({ ...call, url: addressOf(call), init: requestOf(call) }, platform)
  if (!response.ok) throw errorOfAnswer(response.status, response.headers, text, platform.now())
  if (TEXT_FORM.test(response.headers.get('content-type') ?? '')) return text
  const requestId = response.headers.get('x-request-id') ?? undefined
  try {
    const answer: unknown = JSON.parse(text)
    if (typeof answer === 'object' && answer !== null) return answer
  } catch {
    // The error below reports the cause.
  }
  throw new UntagError('the response is no JSON object: check that baseUrl is the address of the API', {
    status: response.status,
    code: 'bad-answer',
    requestId,
  })
}

function addressOf({ operation, baseUrl, request }: Outgoing): string {
  if (!isGet(operation)) return `${baseUrl}/${operation}`
  const parameters = Object.entries(request).filter(([, value]) => value !== undefined)
  return `${baseUrl}/${operation}?${new URLSearchParams(parameters.map(([name, value]) => [name, String(value)] as [string, string])).toString()}`
}

function requestOf({ operation, key, request, idempotencyKey }: Outgoing): RequestInit {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (key !== undefined) headers['authorization'] = `Bearer ${key}`
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  if (isGet(operation)) return { method: 'GET', headers }
  // `fetch` sets the content type of a form with its boundary.
  if (Object.values(request).some(isFile)) return { method: 'POST', headers, body: formOf(request) }
  headers['content-type'] = 'application/json'
  return { method: 'POST', headers, body: JSON.stringify(request) }
}

function isFile(value: unknown): value is Blob {
  return value instanceof Blob
}

function formOf(request: Readonly<Record<string, unknown>>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(request)) {
    if (value === undefined) continue
    if (isFile(value)) form.append(name, value, (value as { name?: string }).name ?? name)
    else form.append(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
  }
  return form
}
