import { deadline, pause, retryDelays, type Platform } from '../../../policy/platform.ts'
import { readUntrustedJson } from '../../../policy/untrusted-json.ts'
import {
  type TargetRules,
  OutgoingFault,
  type OutgoingAnswer,
  type OutgoingHttp,
} from '../../platform/outgoing/outgoing-http.ts'
import { Failure, invalid } from '../../platform/foundation/failure.ts'
import { z } from 'zod'

/** Reason of a failed request to a merchant's system; docs/reference/errors.md explains the codes. */
type VendorFaultCode =
  | 'credentials_refused'
  | 'system_refused'
  | 'system_unavailable'
  | 'rate_limited'
  | 'answer_not_understood'
  | 'url_refused'

/** A failed request to a merchant's system. The message contains no text of the system and no credentials. */
export class VendorFault extends Error {
  override name = 'VendorFault'
  readonly code: VendorFaultCode
  /** HTTP status, if there was a response. */
  readonly status: number | undefined
  /** Response body, for connectors that can find the faulty records in it. */
  readonly json: unknown
  /** Seconds until the request may be repeated. */
  readonly retryAfter: number | undefined
  constructor(
    code: VendorFaultCode,
    message: string,
    more: { status?: number; json?: unknown; retryAfter?: number } = {},
  ) {
    super(message)
    this.code = code
    this.status = more.status
    this.json = more.json
    this.retryAfter = more.retryAfter
  }
}

const RETRY_AFTER_S = 30

/** Converts a fault to the API error: 400 if other credentials may help, 503 if a later attempt may help. */
export function failureOf(fault: VendorFault): Failure {
  const { code, message } = fault
  if (code === 'credentials_refused' || code === 'system_refused' || code === 'url_refused')
    return invalid('credentials', message, code)
  const reason =
    code === 'answer_not_understood'
      ? ({ reason: 'answer_not_understood' } as const)
      : ({ reason: 'system_unavailable' } as const)
  return new Failure('unavailable', message, {
    ...reason,
    retryAfter: fault.retryAfter ?? RETRY_AFTER_S,
    details: [{ path: 'system', code, message }],
  })
}

/**
 * All requests to merchants' systems use this client. If a request may be repeated, the client repeats it after
 * `RETRYABLE_STATUSES` or a missing response. The client makes at most five attempts, within the time limit of the
 * call. Other error statuses and invalid responses become a `VendorFault` at once.
 */
export interface VendorRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Whole address. The URL must have the same origin as the address in the credentials. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as a form. */
  readonly form?: Readonly<Record<string, string>>
  /**
   * True if the request may be repeated: it only reads or has an idempotency key. GET requests may always be repeated.
   */
  readonly repeatable?: boolean
  /** 4xx statuses that the connector handles as responses. */
  readonly expected?: readonly number[]
}

export interface VendorAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** undefined for an empty body. */
  readonly json: unknown
}

export interface VendorClient {
  /** Throws a `VendorFault`. */
  send(request: VendorRequest): Promise<VendorAnswer>
  /**
   * A client that also detects the vendor's own throttling. `wait` returns the ms to wait; undefined if there is no
   * throttling.
   */
  throttledBy(wait: (answer: VendorAnswer) => number | undefined): VendorClient
  /** Unix time, ms. */
  now(): number
  /** A client for another origin of the vendor, such as its login server. */
  at(address: string): VendorClient
}

/** Resources that one call may use. */
export interface VendorBudget {
  /** Remaining number of bytes for all responses. */
  bytes: number
  /** Aborts when the time of the call ends. */
  readonly signal: AbortSignal
}

interface VendorClientParts {
  readonly outgoing: OutgoingHttp
  readonly platform: Platform
  readonly rules: TargetRules
  readonly budget: VendorBudget
  /** Renews the lease of the running call before each attempt, so that a long wait does not look like a crash. */
  beat(): Promise<void>
}

const ANSWER_LIMIT = 8 * 1024 * 1024
/** Values of an answer. Some tills send all articles at once; to read these values takes about 0.1 s. */
const MAX_VALUES = 200_000
/** Records of a page. A connector turns them into ours in one turn. */
export const PAGE_LIMIT = 30_000
/** Characters of a text of an answer. Our longest text has 10,000. */
const MAX_TEXT = 100_000
const ANSWER_LIMITS = { maxValues: MAX_VALUES, maxItems: PAGE_LIMIT, maxText: MAX_TEXT }
const ANSWER_WITHIN_MS = 20_000
const ATTEMPTS = 5
const FIRST_WAIT_MS = 500
const LAST_WAIT_MS = 8_000
/**
 * Maximum wait before a repetition, ms. If the system requests more, the request fails and the caller may repeat it.
 */
const WAIT_LIMIT_MS = 30_000
/** Statuses of proxies, overload and restarts. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

/** Heartbeat interval, ms. */
const BEAT_MS = 15_000

/** Returns a function that runs `task` at most every 15 s. The client calls it as `beat` before each attempt. */
export function every15Seconds({ clock }: Platform, task: () => Promise<unknown>): () => Promise<void> {
  let lastMs = clock.elapsed()
  return async () => {
    if (clock.elapsed() - lastMs < BEAT_MS) return
    await task()
    lastMs = clock.elapsed()
  }
}

/** Client for the origin of `address`. */
export function vendorClient(address: string, parts: VendorClientParts): VendorClient {
  const make = (throttled?: (answer: VendorAnswer) => number | undefined): VendorClient => ({
    send: (request) => sendRequest(request, new URL(address).origin, parts, throttled),
    throttledBy: make,
    now: () => parts.platform.clock.wall(),
    at: (other) => vendorClient(other, parts),
  })
  return make()
}

type Throttled = ((answer: VendorAnswer) => number | undefined) | undefined

async function sendRequest(
  request: VendorRequest,
  origin: string,
  parts: VendorClientParts,
  throttled: Throttled,
): Promise<VendorAnswer> {
  if (!URL.canParse(request.url) || new URL(request.url).origin !== origin)
    throw new VendorFault('answer_not_understood', 'the system uses an address that does not belong to it')
  const delays = retryDelays(parts.platform.random, FIRST_WAIT_MS, LAST_WAIT_MS)
  for (let attempt = 1; ; attempt++) {
    await parts.beat()
    const outcome = await attemptOnce(request, parts, throttled)
    if ('answer' in outcome) return outcome.answer
    const { fault, waitMs, mayHaveArrived } = outcome
    const maySend = request.method === 'GET' || request.repeatable === true || !mayHaveArrived
    const wait = waitMs === undefined ? delays.next().value : waitMs + Math.round(delays.next().value / 4)
    if (attempt >= ATTEMPTS || !maySend || wait > WAIT_LIMIT_MS) throw fault
    await pause(parts.platform.timers, wait, parts.budget.signal).catch(() => {
      throw fault
    })
  }
}

type Outcome = { answer: VendorAnswer } | { fault: VendorFault; waitMs: number | undefined; mayHaveArrived: boolean }

/** Sends a request once. Throws faults that a repetition cannot fix. */
async function attemptOnce(request: VendorRequest, parts: VendorClientParts, throttled: Throttled): Promise<Outcome> {
  const { outgoing, platform, rules, budget } = parts
  const limit = deadline(platform.timers, ANSWER_WITHIN_MS, budget.signal)
  let sent: OutgoingAnswer
  try {
    const body =
      request.json !== undefined
        ? JSON.stringify(request.json)
        : request.form && new URLSearchParams(request.form).toString()
    const type = request.json !== undefined ? 'application/json' : 'application/x-www-form-urlencoded'
    const headers = {
      accept: 'application/json',
      'user-agent': 'untag-integrations/1',
      ...(body !== undefined && { 'content-type': type }),
      ...request.headers,
    }
    sent = await outgoing.send(
      {
        method: request.method,
        url: request.url,
        headers,
        ...(body !== undefined && { body }),
        answerLimit: ANSWER_LIMIT,
        rules,
      },
      limit.signal,
    )
  } catch (error) {
    if (!(error instanceof OutgoingFault)) throw error
    if (error.code === 'address_refused')
      throw new VendorFault('url_refused', `the address is not allowed: ${error.message}`)
    const never = error.code === 'name_not_found' || error.code === 'connection_refused' || error.code === 'tls_failed'
    return {
      fault: new VendorFault('system_unavailable', `the system did not respond: ${error.code}`),
      waitMs: undefined,
      mayHaveArrived: !never,
    }
  } finally {
    limit.done()
  }
  budget.bytes -= sent.body.length
  return judge(request, sent, throttled, platform.clock.wall())
}

function judge(request: VendorRequest, sent: OutgoingAnswer, throttled: Throttled, nowMs: number): Outcome {
  const { status, headers } = sent
  const isGood = (status >= 200 && status < 300) || request.expected?.includes(status) === true
  if (isGood && sent.isCut)
    throw new VendorFault(
      'answer_not_understood',
      `a response was incomplete or larger than ${ANSWER_LIMIT / 1024 / 1024} MB`,
      { status },
    )
  const json =
    sent.body.length === 0 ? undefined : readUntrustedJson(new TextDecoder().decode(sent.body), ANSWER_LIMITS)
  const answer = { status, headers, json }
  const wait = throttled?.(answer)
  if (wait !== undefined || status === 429) {
    const waitMs = retryAfterMs(headers['retry-after'], nowMs) ?? wait
    return {
      fault: new VendorFault('rate_limited', 'the system limits the number of requests', {
        status,
        retryAfter: Math.ceil((waitMs ?? 30_000) / 1_000),
      }),
      waitMs,
      mayHaveArrived: false,
    }
  }
  if (isGood) {
    if (json === undefined && sent.body.length > 0)
      throw new VendorFault(
        'answer_not_understood',
        'the response is not JSON, or has too many values or too long texts',
        { status },
      )
    return { answer }
  }
  if (RETRYABLE_STATUSES.has(status)) {
    const fault = new VendorFault('system_unavailable', `the system responded with status ${status}`, { status, json })
    return { fault, waitMs: retryAfterMs(headers['retry-after'], nowMs), mayHaveArrived: true }
  }
  if (status === 401 || status === 403)
    throw new VendorFault('credentials_refused', `the system rejects the credentials (status ${status})`, {
      status,
      json,
    })
  const path = new URL(request.url).pathname.slice(0, 100)
  throw new VendorFault('system_refused', `the system responded with status ${status} to ${request.method} ${path}`, {
    status,
    json,
  })
}

/** RFC 9110 §10.2.3: seconds or a date; some systems send fractions of a second. */
function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const seconds = /^\s*\d+(?:\.\d+)?\s*$/.test(header) ? Number(header) : (Date.parse(header) - nowMs) / 1_000
  return Number.isFinite(seconds) ? Math.max(0, Math.ceil(seconds * 1_000)) : undefined
}

/** Helpers for values in vendors' responses. */

/** Validates a response. Throws a `VendorFault` if the response is invalid. */
export function readAnswer<S extends z.ZodType>(schema: S, json: unknown, what: string): z.output<S> {
  const read = schema.safeParse(json)
  if (read.success) return read.data
  const at = read.error.issues[0]?.path.join('.') ?? ''
  throw new VendorFault(
    'answer_not_understood',
    `the response to ${what} does not match the API description${at === '' ? '' : ` (${at.slice(0, 80)})`}`,
  )
}

/** Validates and converts one record; null if it is invalid, so that only this record is rejected. */
export function readRecord<S extends z.ZodType>(
  schema: S,
  record: unknown,
  make: (read: z.output<S>) => Record<string, unknown>,
): Record<string, unknown> | null {
  const read = schema.safeParse(record)
  return read.success ? make(read.data) : null
}

/** Trims a text and cuts it to `max` characters. Cut texts before you join them: a part may be long, and join many others. */
export function fit(text: string | null | undefined, max: number): string | undefined {
  const trimmed = text?.trim()
  return trimmed === undefined || trimmed === '' ? undefined : trimmed.slice(0, max).trimEnd()
}

/** Joins a name and its variant, cut to `max` characters. */
export function fitJoined(name: string | null | undefined, variant: string | null | undefined, max: number) {
  return fit(`${fit(name, max) ?? ''} ${fit(variant, max) ?? ''}`, max)
}

/** Converts a net price to a gross price in EUR, rounded half up to a cent. */
export function grossOf(net: number, vat: number): number {
  return Math.round(net * 100 * (1 + vat / 100) + 1e-6) / 100
}

/**
 * Converts a number or a text with a decimal point to EUR. Returns other values unchanged, so that validation reports
 * them.
 */
export function amountOf(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value.trim())
    ? Math.round(Number(value) * 100) / 100
    : value
}

/** Joins base address, path and query. */
export function urlOf(base: string, path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const url = new URL(`${base.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`)
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}

/** VAT rate of articles whose system has no VAT rate. Default: the standard rate. */
export const VatSetting = z.enum(['7', '19'])
/** Address of a simulator that replaces the vendor's address. */
export const BaseUrlSetting = z.string().min(1).max(2_048).optional()
export const Secret = z.string().min(1).max(8_192)
