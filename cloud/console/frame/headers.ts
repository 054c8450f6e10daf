import { UNTAG_PAGE } from '../../service/http/page.tsx'

/**
 * Headers of the console's pages. Pages load files only from their own origin, run no inline script and use no inline
 * style. htmx uses `eval` only for attributes that `allowEval: false` switches off.
 */
export const CONSOLE_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "manifest-src 'self'",
    "worker-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
  vary: 'Accept-Language, Cookie, HX-Request',
  // Answers without it are of a proxy, and pages do not show them (http/browser/connection.ts).
  ...UNTAG_PAGE,
}

/** Settings of htmx in the pages. Responses with an error replace the page like others: they contain the form. */
export const HTMX_CONFIG = JSON.stringify({
  allowEval: false,
  allowScriptTags: false,
  includeIndicatorStyles: false,
  selfRequestsOnly: true,
  historyCacheSize: 0,
  refreshOnHistoryMiss: true,
  scrollIntoViewOnBoost: false,
  // By default htmx also copies "style" while it swaps, which the security policy refuses.
  attributesToSettle: ['class', 'width', 'height'],
  responseHandling: [
    { code: '204', swap: false },
    { code: '...', swap: true },
  ],
})
