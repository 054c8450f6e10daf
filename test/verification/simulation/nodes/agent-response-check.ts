import type { Hono } from 'hono'
import type { z } from 'zod'
import { AgentFault } from '../../../../edge-agent/http/response-schemas.ts'
import { AGENT_ERRORS, type AgentErrorCode } from '../../../../edge-agent/http/error-codes.ts'
import { AGENT_OPERATIONS, errorsOf, type AgentOperation } from '../../../../edge-agent/http/operations.ts'
import { validationFindings, findingMessage } from '../../../../policy/validation-findings.ts'

const OPERATIONS = new Map<string, AgentOperation>(
  Object.values<AgentOperation>(AGENT_OPERATIONS).map((operation) => [
    `${operation.method} ${operation.path}`,
    operation,
  ]),
)
const JSON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/** One answer of an agent. */
export interface AgentResponse {
  method: string
  /** Path with or without a query. */
  path: string
  status: number
  headers: Headers
  text: string
}

/** Returns how an answer contradicts the agent's API description, or undefined if it matches. */
export function responseFault({ method, path, status, headers, text }: AgentResponse): string | undefined {
  const operation = OPERATIONS.get(`${method} ${path.split('?')[0]}`)
  const type = headers.get('content-type')?.split(';')[0] ?? ''
  const isJson = type === 'application/json'
  const wrongHeader = Object.entries(JSON_HEADERS).find(([name, value]) => isJson && headers.get(name) !== value)
  if (wrongHeader) return `${wrongHeader[0]} is ${headers.get(wrongHeader[0])}`
  if (method === 'HEAD') return undefined
  if (operation && (status === 200 || status === operation.alsoStatus)) {
    const expected = operation.contentType ?? 'application/json'
    if (type !== expected) return `content-type is ${type}, not ${expected}`
    return isJson ? mismatch(operation.response, text) : undefined
  }
  // Answers of pages are checked only if they are JSON errors.
  return status < 400 || !isJson ? undefined : faultIn(status, text, operation)
}

function faultIn(status: number, text: string, operation: AgentOperation | undefined): string | undefined {
  const wrong = mismatch(AgentFault, text)
  if (wrong !== undefined) return wrong
  const { code } = JSON.parse(text) as { code: AgentErrorCode }
  if (AGENT_ERRORS[code]?.status !== status) return `${code} has no status ${status}`
  if (operation && !errorsOf(operation).has(code)) return `${code} is no error of this operation`
  return code === 'internal' ? 'an internal error' : undefined
}

function mismatch(schema: z.ZodType, text: string): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'no JSON'
  }
  const parsed = schema.safeParse(value)
  return parsed.success ? undefined : validationFindings(parsed.error.issues, value).map(findingMessage).join('; ')
}

/** Throws if an answer contradicts the agent's API description. */
export function assertResponseMatchesApi(answer: AgentResponse): void {
  const wrong = responseFault(answer)
  if (wrong !== undefined)
    throw new Error(`${answer.method} ${answer.path} → ${answer.status} ${answer.text.slice(0, 500)}: ${wrong}`)
}

/** Throws if an event contradicts the agent's API description. */
export function assertEventMatchesApi(data: string): void {
  const wrong = mismatch(AGENT_OPERATIONS.events.response, data)
  if (wrong !== undefined) throw new Error(`event ${data.slice(0, 500)}: ${wrong}`)
}

/** Wraps an app so that it throws if an answer contradicts the API description. Event streams are not checked. */
export function checkedApp(app: Pick<Hono, 'fetch'>): Pick<Hono, 'fetch'> {
  return {
    async fetch(request, env) {
      const answer = await app.fetch(request, env)
      const { pathname } = new URL(request.url)
      if (answer.headers.get('content-type') !== 'text/event-stream')
        assertResponseMatchesApi({
          method: request.method,
          path: pathname,
          status: answer.status,
          headers: answer.headers,
          text: await answer.clone().text(),
        })
      return answer
    },
  }
}
