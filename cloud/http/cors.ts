import type { Operation } from '../operations/operation.ts'

/*
 * Pages of merchants call the API with a publishable key, from whatever origin they have. No answer rests on cookies, so any origin
 * may read what the key in its hands may ask, and credentials are never allowed.
 */

const ANY_ORIGIN = { 'access-control-allow-origin': '*' }
/** What a browser may show to the page beside the answer. */
const READABLE_HEADERS = {
  ...ANY_ORIGIN,
  'access-control-expose-headers': 'Idempotency-Replayed, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id',
}
/** Browsers keep what they were told for this long, s; none keeps it for longer than a day, most for two hours. */
const PREFLIGHT_MAX_AGE_S = 7_200
/** Without a key, and for anyone who has its token. */
const PUBLIC_RECEIPT = 'getReceiptFromToken'

/** Whether web pages may call the operation at all. */
function isCallableByPages(operation: Operation | undefined): operation is Operation {
  return operation !== undefined && (operation.callers.includes('publishable') || operation.name === PUBLIC_RECEIPT)
}

/** The headers by which a browser hands an answer, or a refusal, to a page; none where a secret stands in the request: that must not work from a page. */
export function corsHeaders(
  operation: Operation | undefined,
  authorization: string | undefined,
): Readonly<Record<string, string>> {
  return isCallableByPages(operation) && !holdsSecret(authorization) ? READABLE_HEADERS : {}
}

/** Any credential but a publishable key: what is of no known form is refused anyway, and the page may read that. */
function holdsSecret(authorization: string | undefined): boolean {
  return (
    authorization !== undefined &&
    /^Bearer +untag_/i.test(authorization) &&
    !/^Bearer +untag_(?:test|live)_pk_/i.test(authorization)
  )
}

/** What a browser is told when it asks before it calls; undefined for what pages may not call. */
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
