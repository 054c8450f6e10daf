import type { Operation } from '../../platform/operations/operation.ts'

/*
 * CORS: web pages of merchants call the API with a publishable key from any origin. The API uses no cookies. So any
 * origin may read responses, and the headers never allow credentials.
 */

const ANY_ORIGIN = { 'access-control-allow-origin': '*' }
/** CORS headers of responses, with the response headers that pages may read. */
const READABLE_HEADERS = {
  ...ANY_ORIGIN,
  'access-control-expose-headers': 'Idempotency-Replayed, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id',
}
/** Lifetime of a preflight response in the browser, s. Chromium's maximum. */
const PREFLIGHT_MAX_AGE_S = 7_200
/** Operation that pages may call without a key. */
const PUBLIC_RECEIPT = 'getReceiptFromToken'

/** True if web pages may call the operation. */
function isCallableByPages(operation: Operation | undefined): operation is Operation {
  return operation !== undefined && (operation.callers.includes('publishable') || operation.name === PUBLIC_RECEIPT)
}

/** CORS headers of a response. None for requests with a secret key, because web pages must not hold a secret key. */
export function corsHeaders(
  operation: Operation | undefined,
  authorization: string | undefined,
): Readonly<Record<string, string>> {
  return isCallableByPages(operation) && !holdsSecret(authorization) ? READABLE_HEADERS : {}
}

/**
 * True for keys that are not publishable. False for texts that do not look like a key: the API rejects them, and pages
 * may read that error.
 */
function holdsSecret(authorization: string | undefined): boolean {
  return (
    authorization !== undefined &&
    /^Bearer +untag_/i.test(authorization) &&
    !/^Bearer +untag_(?:test|live)_pk_/i.test(authorization)
  )
}

/** Response to a CORS preflight; undefined if pages may not call the operation. */
export function answerPreflight(operation: Operation | undefined): Response | undefined {
  if (!isCallableByPages(operation)) return undefined
  const methods = operation.getOnly ? 'GET' : operation.get ? 'POST, GET' : 'POST'
  const headers = {
    ...ANY_ORIGIN,
    'access-control-allow-methods': methods,
    'access-control-allow-headers': 'Authorization, Content-Type, Idempotency-Key',
    'access-control-max-age': String(PREFLIGHT_MAX_AGE_S),
  }
  return new Response(null, { status: 204, headers })
}
