import { WrongUsage } from './options.ts'
import { errorText } from './error-text.ts'
import { connectionFault } from './connection-fault.ts'
import { fetchTrustingFile } from './tls/private-ca.ts'

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
      const response = await send(`${baseUrl}/${operation}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        redirect: 'error',
      }).catch((error: unknown) => {
        throw new Error(
          `${baseUrl} cannot be reached: ${connectionFault(error, baseUrl, ADDRESS_SETTING) ?? `${errorText(error)}; check ${ADDRESS_SETTING}`}`,
          { cause: error },
        )
      })
      const answer = await bodyOf(response)
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

async function bodyOf(response: Response): Promise<Record<string, unknown> | undefined> {
  try {
    const value: unknown = await response.json()
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
