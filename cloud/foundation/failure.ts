import type { Db } from '../persistence/database.ts'

/** The error codes of the API and their HTTP status (decisions §2). */
export const ERROR_STATUS = {
  'invalid-argument': 400,
  unauthenticated: 401,
  'permission-denied': 403,
  'not-found': 404,
  'already-exists': 409,
  'failed-precondition': 409,
  'payload-too-large': 413,
  'unsupported-media-type': 415,
  'resource-exhausted': 429,
  internal: 500,
  unavailable: 503,
} as const
export type ErrorCode = keyof typeof ERROR_STATUS

/** One thing that is wrong with a request: where, which rule, and what to do. */
export interface ErrorDetail {
  path: string
  code: string
  message: string
}

export interface FailureExtras {
  /** A finer word than `code`, listed in docs/reference/errors.md. */
  reason?: string
  requiredUpgrade?: string
  currentPackage?: string
  details?: ErrorDetail[]
  /** States that a refused move could have gone to. */
  allowedNext?: readonly string[]
  /** ISO 8601: from when on it is allowed again. */
  retryAt?: string
  /** Seconds after which it may work. */
  retryAfter?: number
  /** What remains of a refused call: runs in a transaction of its own after the call's was rolled back; what it answers is run once that is durable. */
  afterRefusal?: (db: Db) => Promise<void | (() => void)>
}

/** A refusal that the caller is told; everything else that is thrown becomes `internal`. */
export class Failure extends Error {
  override name = 'Failure'
  readonly code: ErrorCode
  readonly extras: FailureExtras
  constructor(code: ErrorCode, message: string, extras: FailureExtras = {}) {
    super(message)
    this.code = code
    this.extras = extras
  }
}

/** 404, in the same words for what is unknown and for what is another account's. */
export function notFound(what: string): Failure {
  return new Failure('not-found', `no such ${what}`)
}

/** 400 about one field. */
export function invalid(path: string, message: string, code = 'invalid'): Failure {
  return new Failure('invalid-argument', `${path}: ${message}`, { details: [{ path, code, message }] })
}

/** 409: the state of things does not allow it. */
export function precondition(reason: string, message: string, extras: FailureExtras = {}): Failure {
  return new Failure('failed-precondition', message, { reason, ...extras })
}
