import { ERROR_STATUS, type ErrorCode } from '../foundation/failure.ts'
import type { Operation } from '../operations/operation.ts'
import { PACKAGES } from '../foundation/packages.ts'
import type { ErrorBody } from '../operations/error-body.ts'

/** An error that an operation may return, for its documentation. */
export interface PossibleError {
  readonly status: number
  readonly code: ErrorCode
  /** Short name of the case: the key of its example. */
  readonly title: string
  readonly example: ErrorBody
}

const REQUEST_ID = 'req_01KANXA4B6C8D1E3F5G7H9J2K4'

function possible(code: ErrorCode, title: string, error: string, extras: Partial<ErrorBody> = {}): PossibleError {
  return { status: ERROR_STATUS[code], code, title, example: { error, code, ...extras, requestId: REQUEST_ID } }
}

/** Errors that an operation may return, in the order of the checks (ADR 0003). */
export function errorsOf(operation: Operation, fields: readonly string[]): PossibleError[] {
  const { callers, minimumPackage, name } = operation
  const open = callers.includes('anyone')
  const sends = !operation.getOnly
  return [
    ...(open
      ? []
      : [possible('unauthenticated', 'no key', 'send an API key in the header Authorization: Bearer untag_…')]),
    possible('resource-exhausted', 'too many requests', 'too many requests'),
    ...(open || callers.includes('publishable')
      ? []
      : [
          possible('permission-denied', 'wrong kind of key', `${name} needs a secret key; you sent a publishable key`, {
            reason: 'publishable_not_allowed',
          }),
        ]),
    ...(sends
      ? [possible('payload-too-large', 'body too large', `the body is larger than ${operation.bodyLimit} bytes`)]
      : []),
    ...(sends
      ? [
          possible(
            'unsupported-media-type',
            'no JSON',
            `send the body as ${operation.multipart?.alsoJson === false ? 'multipart/form-data' : 'application/json'}, not text/plain`,
          ),
        ]
      : []),
    unknownField(fields),
    ...(open || minimumPackage === PACKAGES[0] ? [] : [packageTooLow(operation)]),
    ...(fields.some((field) => /(?:Id|token|nonce)$/i.test(field))
      ? [possible('not-found', 'unknown or foreign', notFoundText(fields))]
      : []),
    ...(operation.changes && !open
      ? [
          possible('already-exists', 'Idempotency-Key used', 'this Idempotency-Key was used for another request', {
            reason: 'idempotency_key_reused',
          }),
        ]
      : []),
    ...operation.refusals.map((reason) =>
      possible('failed-precondition', reason, reason.replaceAll('_', ' '), { reason }),
    ),
    possible('internal', 'unexpected error', 'an unexpected error occurred and was logged with this requestId'),
    possible('unavailable', 'busy', 'too many requests wait; try again'),
  ]
}

function unknownField(fields: readonly string[]): PossibleError {
  const meant = fields.find((field) => field.length > 4)
  const path = meant === undefined ? 'colour' : meant.slice(0, -1)
  const message = `unknown field "${path}"${meant === undefined ? '' : `; did you mean "${meant}"?`}`
  return possible('invalid-argument', 'unknown field', message, { details: [{ path, code: 'unknown_field', message }] })
}

function packageTooLow({ name, minimumPackage }: Operation): PossibleError {
  const currentPackage = PACKAGES[PACKAGES.indexOf(minimumPackage) - 1] ?? PACKAGES[0]
  return possible('permission-denied', 'package too low', `${name} needs the package ${minimumPackage}`, {
    reason: 'package_too_low',
    requiredUpgrade: minimumPackage,
    currentPackage,
  })
}

function notFoundText(fields: readonly string[]): string {
  const id =
    fields.find((field) => field.endsWith('Id') && field !== 'storeId') ?? fields.find((field) => field.endsWith('Id'))
  const words: Record<string, string> = { transactionId: 'purchase', purchaseId: 'purchase', storeId: 'store' }
  return id === undefined ? 'no such receipt' : `no such ${words[id] ?? id.slice(0, -2)}`
}
