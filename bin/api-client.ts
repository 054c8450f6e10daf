import { WrongUsage } from './options.ts'
import { whatWentWrong } from './what-went-wrong.ts'

/** An account's own operations over HTTP, for commands that are the user of an API. */
export interface ApiClient {
  /** Answers with the body and the time of the server, ms since 1970; throws with the API's own sentence. */
  call(operation: string, body: object): Promise<{ body: Record<string, unknown>; serverMs: number }>
}

const ANSWER_WITHIN_MS = 15_000

/** With this key at this address. Throws `WrongUsage` when there is no key. */
export function apiClient({ baseUrl, key }: { baseUrl: string; key: string | undefined }): ApiClient {
  if (key === undefined) throw new WrongUsage(['--key KEY is needed, or UNTAG_KEY: a secret key'])
  return {
    async call(operation, body) {
      const response = await fetch(`${baseUrl}/${operation}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        redirect: 'error',
      }).catch((error: unknown) => {
        throw new Error(`${baseUrl} cannot be reached: ${whatWentWrong(error)}; check --base-url`, { cause: error })
      })
      const answer = await bodyOf(response)
      if (!answer)
        throw new ApiRefusal(
          `${baseUrl} answers ${response.status} and no JSON: check --base-url, which ends in /api/v1`,
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

/** The API said no: asking again will not help, unless it was too busy. */
export class ApiRefusal extends Error {
  override name = 'ApiRefusal'
  readonly status: number
  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}
