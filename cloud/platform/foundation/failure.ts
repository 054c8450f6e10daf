import type { Db } from '../persistence/database.ts'

/** The error codes of the API and their HTTP status (ADR requests). */
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

/** One fault of a request: its field, the rule, and what to send instead. */
export interface ErrorDetail {
  path: string
  code: string
  message: string
}

export interface FailureExtras {
  /** Specific cause within `code`, listed in docs/reference/errors.md. */
  reason?: string
  requiredUpgrade?: string
  currentPackage?: string
  details?: ErrorDetail[]
  /** Address of a person whom the identity provider knows. Only the sign-in page shows it. */
  email?: string
  /** Names of the accounts of which the person must choose one. */
  accounts?: readonly string[]
  /** The accounts of `accounts` that the person used before. Only the sign-in page shows it. */
  usedBefore?: readonly string[]
  /** The flow with which `finishOpenIdSignIn` continues after the choice. */
  flow?: string
  /** Statuses to which the entity may change now. */
  allowedNext?: readonly string[]
  /** Earliest time of the next allowed try, ISO 8601. */
  retryAt?: string
  /** `Retry-After`, s. */
  retryAfter?: number
  /**
   * Runs in its own transaction after the rollback of the call. If it returns a function, that function runs after the
   * commit. If it returns a failure, the caller gets that one instead.
   */
  afterRefusal?: (db: Db) => Promise<void | Failure | (() => void)>
}

/** An error that the caller sees. All other errors become `internal`. */
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

/**
 * 404. Unknown entities and entities of other accounts get the same text. `field`: the field that names the entity, if it
 * is not the only one of the request, with the remedy.
 */
export function notFound(what: string, field?: { path: string; fix: string }): Failure {
  if (!field) return new Failure('not-found', `no such ${what}`)
  const { path, fix } = field
  const message = `no such ${what}: ${fix}`
  return new Failure('not-found', `${path}: ${message}`, { details: [{ path, code: 'not_found', message }] })
}

/** 400 about one field. */
export function invalid(path: string, message: string, code = 'invalid'): Failure {
  return new Failure('invalid-argument', `${path}: ${message}`, { details: [{ path, code, message }] })
}

/** 409 `failed-precondition`: the present state does not allow the change. */
export function precondition(reason: string, message: string, extras: FailureExtras = {}): Failure {
  return new Failure('failed-precondition', message, { reason, ...extras })
}
