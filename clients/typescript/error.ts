import type { AgentErrorCode } from '../../edge-agent/http/error-codes.ts'

/** One invalid field of a request. */
export interface UntagErrorDetail {
  path: string
  code: string
  message: string
}

/** Fields of an error response. docs/reference/errors.md lists the codes. */
interface UntagErrorFields {
  /** HTTP status; 0 if no response arrived. */
  status: number
  /** Error code of the API, or a code of the client: `network`, `timeout` or `bad-answer`. */
  code: string
  reason?: string | undefined
  /** What the caller can do next. */
  fix?: string | undefined
  details?: readonly UntagErrorDetail[] | undefined
  allowedNext?: readonly string[] | undefined
  requestId?: string | undefined
  requiredUpgrade?: string | undefined
  currentPackage?: string | undefined
  /** Delay that the server requests, ms. */
  retryAfterMs?: number | undefined
}

/** A call that the API rejected or did not answer. */
export class UntagError extends Error {
  override name = 'UntagError'
  readonly status: number
  readonly code: string
  readonly reason: string | undefined
  readonly fix: string | undefined
  readonly details: readonly UntagErrorDetail[]
  readonly allowedNext: readonly string[]
  readonly requestId: string | undefined
  readonly requiredUpgrade: string | undefined
  readonly currentPackage: string | undefined
  readonly retryAfterMs: number | undefined
  constructor(message: string, fields: UntagErrorFields, options?: { cause?: unknown }) {
    super(message, options)
    this.status = fields.status
    this.code = fields.code
    this.reason = fields.reason
    this.fix = fields.fix
    this.details = fields.details ?? []
    this.allowedNext = fields.allowedNext ?? []
    this.requestId = fields.requestId
    this.requiredUpgrade = fields.requiredUpgrade
    this.currentPackage = fields.currentPackage
    this.retryAfterMs = fields.retryAfterMs
  }

  /** Path of the first invalid field. */
  get field(): string | undefined {
    return this.details[0]?.path
  }
}

/** Converts an error response; `body` is its text. */
export function errorOfAnswer(status: number, headers: Headers, body: string, nowMs: number): UntagError {
  const fields = parseObject(body)
  const text = (name: string) => (typeof fields[name] === 'string' ? fields[name] : undefined)
  return new UntagError(text('error') ?? `the server answered ${status}`, {
    status,
    code: text('code') ?? CODE_OF_STATUS[status] ?? 'bad-answer',
    reason: text('reason'),
    fix: text('fix'),
    details: Array.isArray(fields['details']) ? (fields['details'] as UntagErrorDetail[]) : undefined,
    allowedNext: Array.isArray(fields['allowedNext']) ? (fields['allowedNext'] as string[]) : undefined,
    requestId: text('requestId') ?? headers.get('x-request-id') ?? undefined,
    requiredUpgrade: text('requiredUpgrade'),
    currentPackage: text('currentPackage'),
    retryAfterMs: retryAfterMs(headers.get('retry-after'), nowMs),
  })
}

/** Codes for responses of proxies, which have no error body. */
const CODE_OF_STATUS: Readonly<Record<number, string>> = {
  401: 'unauthenticated',
  403: 'permission-denied',
  404: 'not-found',
  413: 'payload-too-large',
  429: 'resource-exhausted',
  500: 'internal',
  502: 'unavailable',
  503: 'unavailable',
  504: 'unavailable',
}

function parseObject(body: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** `Retry-After` in ms: seconds, or a date (RFC 9110 §10.2.3). */
function retryAfterMs(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}

/** Error code of the agent, or of the client if no usable response arrived. */
export type AgentFaultCode = AgentErrorCode | keyof typeof CLIENT_FIXES

/** Fixes for errors of the client itself. */
const CLIENT_FIXES = {
  network: 'Check that the agent runs and that baseUrl is its address.',
  timeout: 'Look at the device before you send the request again: it may have moved.',
  'bad-answer': 'Check that baseUrl is the address of an agent, without a path.',
} as const

/** A request that the agent rejected or did not answer. */
export class AgentError extends UntagError {
  override name = 'AgentError'
  declare readonly code: AgentFaultCode
  declare readonly fix: string

  constructor(error: UntagError) {
    // Agents always send a fix. An error without a fix comes from a proxy or from this client.
    const own = error.code in CLIENT_FIXES ? (error.code as keyof typeof CLIENT_FIXES) : 'bad-answer'
    const fields = error.fix === undefined ? { code: own, fix: CLIENT_FIXES[own] } : {}
    super(error.message, { ...error, ...fields }, { cause: error.cause })
  }
}

/** Converts an `UntagError` to an `AgentError`. Returns any other error unchanged, such as the reason of a signal. */
export function asAgentError(error: unknown): unknown {
  return error instanceof UntagError && !(error instanceof AgentError) ? new AgentError(error) : error
}
