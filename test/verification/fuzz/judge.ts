import { z } from 'zod'
import { ERROR_STATUS, type ErrorCode } from '../../../cloud/platform/foundation/failure.ts'
import type { Operation } from '../../../cloud/platform/operations/operation.ts'
import { isAtLeast, type Package } from '../../../cloud/platform/foundation/caller.ts'
import { idsIn, type Findings } from './scene/findings.ts'
import { canariesIn, type Party } from './scene/test-accounts.ts'
import type { KeyKind } from './scene/scene.ts'
import { mayCall } from './steps.ts'
import type { HttpReply, HttpRequest } from './scene/served-cloud.ts'

/** Rules for every answer. Each rule has a mutant in `fuzz-mutants.ts` or its own test. */
export type Rule =
  | 'server-error'
  | 'answer-schema'
  | 'error-schema'
  | 'headers'
  | 'foreign-data'
  | 'unknown-field'
  | 'package'
  | 'key-kind'
  | 'authentication'
  | 'foreign-id'
  | 'idempotency'

export interface Fault {
  readonly rule: Rule
  readonly detail: string
}

/** A request and its answer. */
export interface Exchange {
  readonly sent: HttpRequest
  readonly reply: HttpReply
  /** Errors in the log of the cloud during the request. */
  readonly errors: readonly string[]
  /** Undefined for a request to a page. */
  readonly operation: Operation | undefined
  readonly isOlderForm: boolean
  readonly as: KeyKind
  /** Undefined for administrators and callers without a key. */
  readonly party: Party | undefined
  /** False if the Authorization header belongs to no key. */
  readonly isGenuine: boolean
  /** Name of an added field that the schema does not allow. */
  readonly unknownField: string | undefined
  /** Packages of the account and of the store in the request. Undefined if the operation needs no package. */
  readonly packages: { readonly account: Package; readonly store: Package | undefined } | undefined
}

const ERROR = z.strictObject({
  error: z.string().min(1),
  code: z.enum(Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]]),
  reason: z
    .string()
    .regex(/^[a-z][a-z0-9_]*$/)
    .optional(),
  requiredUpgrade: z.string().optional(),
  currentPackage: z.string().optional(),
  details: z
    .array(z.strictObject({ path: z.string(), code: z.string().min(1), message: z.string().min(1) }))
    .optional(),
  allowedNext: z.array(z.string()).optional(),
  retryAt: z.string().optional(),
  requestId: z.string().regex(/^req_[0-9A-Z]{26}$/),
})
const PROBLEM = ERROR.extend({ type: z.string(), title: z.string(), status: z.int(), detail: z.string() })

/** Returns all faults of an answer. */
export function judge(exchange: Exchange, findings: Findings): Fault[] {
  const faults: Fault[] = []
  const found = (rule: Rule, detail: string) => void faults.push({ rule, detail })
  const { reply, errors } = exchange
  const isDone = reply.status >= 200 && reply.status < 300
  // The systems of a merchant may be at an address that nothing simulates; the cloud then reports it (merchant-systems.ts).
  const isOfMerchant = reply.status === 503 && /"reason":"(?:psp_unavailable|connection_refused)"/.test(reply.text)
  if ((reply.status >= 500 && !isOfMerchant) || errors.length > 0)
    found('server-error', `${reply.status} ${reply.text.slice(0, 300)}\n${errors.join('\n')}`)
  else {
    if (exchange.operation) checkForm(exchange, found)
    // A preflight request executes no operation.
    if (isDone && exchange.sent.method !== 'OPTIONS') checkAdmission(exchange, found)
  }
  checkSecrecy(exchange, findings, found)
  return faults
}

type Found = (rule: Rule, detail: string) => void

function checkForm({ operation, isOlderForm, reply, sent }: Exchange, found: Found): void {
  const type = reply.headers.get('content-type') ?? ''
  if (reply.status >= 400) {
    // A browser may request the receipt, so errors of this operation may be web pages.
    if (operation?.name === 'getReceiptFromToken' && type.startsWith('text/')) return
    // A browser without a key gets a web page.
    if (sent.method === 'GET' && sent.headers['authorization'] === undefined && type.startsWith('text/html')) return
    const schema = type.includes('problem+json') ? PROBLEM : ERROR
    const read = schema.safeParse(reply.json)
    if (!read.success)
      return found('error-schema', `${reply.status} ${reply.text.slice(0, 300)}: ${read.error.message}`)
    const { code, reason, requestId, details, error } = read.data
    if (code === 'failed-precondition' && !operation?.refusals.includes(reason ?? ''))
      found('error-schema', `the documentation of ${operation?.name} lacks the refusal ${reason}: ${error}`)
    if (ERROR_STATUS[code] !== reply.status) found('error-schema', `${code} with the status ${reply.status}`)
    if (reply.headers.get('x-request-id') !== requestId)
      found('headers', 'X-Request-Id is not the requestId of the body')
    if (/\bundefined\b|\[object |\bNaN\b/.test(error) && !/undefined|object|NaN/.test(String(sent.body) + sent.path))
      found('error-schema', `the text contains a JavaScript value: ${error}`)
    if (
      code === 'invalid-argument' &&
      sent.method === 'POST' &&
      details === undefined &&
      !/valid UTF-8|multipart|Idempotency/.test(error)
    )
      found('error-schema', `400 without details: ${error}`)
  } else if (operation && type.startsWith('application/json')) {
    const response = isOlderForm ? operation.get?.response : operation.response
    const read = response?.safeParse(reply.json)
    if (read && !read.success) found('answer-schema', `${read.error.message}\n${reply.text.slice(0, 500)}`)
  }
  if (!type.includes('json')) return
  for (const [name, value] of [
    ['cache-control', 'no-store'],
    ['x-content-type-options', 'nosniff'],
  ] as const)
    if (reply.headers.get(name) !== value) found('headers', `${name} is ${reply.headers.get(name)}`)
}

/** Checks that a successful request was allowed to succeed. */
function checkAdmission(
  { operation, as, isGenuine, unknownField, packages, sent, reply }: Exchange,
  found: Found,
): void {
  if (!operation) return
  const isOpen = operation.callers.includes('anyone')
  if (!isGenuine && !isOpen) found('authentication', `succeeded with Authorization: ${sent.headers['authorization']}`)
  if (!isOpen && !mayCall(operation, as)) found('key-kind', `succeeded with a key of the kind ${as}`)
  // An operation may accept a list in part and name the rejected rows in its answer.
  const isNamed = reply.text.includes('unknown field')
  if (unknownField !== undefined && !isNamed)
    found('unknown-field', `the field ${JSON.stringify(unknownField)} was accepted`)
  for (const have of [packages?.account, packages?.store])
    if (have !== undefined && !isAtLeast(have, operation.minimumPackage))
      found('package', `needs ${operation.minimumPackage} and succeeded with ${have}`)
}

/** Checks that the answer contains no data of another party, unless the request contained it. */
function checkSecrecy({ sent, reply, party, as }: Exchange, findings: Findings, found: Found): void {
  if (as === 'admin') return
  const headers = [...reply.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
  const answer = `${headers}\n${reply.text}`
  const request = `${sent.path} ${String(sent.body ?? '')}`
  const foreign = canariesIn(answer).find(
    (word) => word.toLowerCase() !== party?.canary.toLowerCase() && !request.includes(word),
  )
  if (foreign !== undefined)
    found('foreign-data', `${foreign} in an answer to ${party?.name ?? 'anyone'}: ${around(answer, foreign)}`)
  if (!party) return
  const id = idsIn(answer).find((each) => {
    const owner = findings.ownerOf(each)
    return owner !== undefined && owner !== party.name && !findings.hasNamed(party.name, each)
  })
  if (id !== undefined)
    found('foreign-data', `${id} of ${findings.ownerOf(id)} in an answer to ${party.name}: ${around(answer, id)}`)
}

function around(text: string, word: string): string {
  const at = text.indexOf(word)
  return text.slice(Math.max(0, at - 120), at + 120)
}

/** An answer without ids, times and long texts, so that two answers can be compared. */
export function withoutNames({ status, text }: HttpReply, named: string): string {
  const plain = text
    .replaceAll(named, '<named>')
    .replace(/[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}/g, '<id>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '<time>')
    .replace(/"(?:[A-Za-z0-9_-]{16,}\.?)+"/g, '"<text>"')
  return `${status} ${plain}`
}
