import { WrongUsage } from './options.ts'

/** An account's own operations over HTTP, for commands that are the user of an API. */
export interface ApiClient {
  /** Answers with the body and the time of the server, ms since 1970; throws with the API's own sentence. */
  call(operation: string, body: object): Promise<{ body: Record<string, unknown>; serverMs: number }>
}

const ANSWER_WITHIN_MS = 15_000

/** With this key at this address. Throws `WrongUsage` when either is missing. */
export function apiClient({ api, key }: { api: string | undefined; key: string | undefined }): ApiClient {
  const faults = [...(api === undefined ? ['--api URL is needed: the base URL of the API'] : []), ...(key === undefined ? ['--key KEY is needed, or UNTAG_KEY: a secret key'] : [])]
  if (faults.length > 0) throw new WrongUsage(faults)
  return {
    async call(operation, body) {
      const response = await fetch(`${api}/${operation}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        redirect: 'error',
      })
      const answer = (await response.json()) as Record<string, unknown>
      if (!response.ok) throw new ApiRefusal(`${operation}: ${String(answer['error'])} (${String(answer['code'])})`, response.status)
      return { body: answer, serverMs: Date.parse(response.headers.get('date') ?? '') || Date.now() }
    },
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
