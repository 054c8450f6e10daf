import type { CloudConfig } from '../../platform/foundation/config.ts'
import { API_VERSION } from './openapi.ts'

/** A section about rules that hold for all operations. */
export interface GuideSection {
  readonly id: string
  readonly title: string
  /** Paragraphs, with code between backticks. */
  readonly text: readonly string[]
}

/** Makes the guide with the settings of this server. */
export function guideSections({
  baseUrl,
  rateLimit,
  publishableRateLimit,
}: Pick<CloudConfig, 'baseUrl' | 'rateLimit' | 'publishableRateLimit'>): GuideSection[] {
  return [
    {
      id: 'calls',
      title: 'Calls',
      text: [
        `Every operation is \`POST ${baseUrl}/operationName\` with a JSON object as its body and \`Authorization: Bearer untag_…\`. Every 200 has \`success: true\`. If an operation has an older GET form, its query has the same fields.`,
        'Test keys (`untag_test_…`) work on a sandbox with two stores of its own; live keys (`untag_live_…`) on real data. Secret keys stay on servers; publishable keys (`…_pk_…`) may be in apps and web pages. They can call only operations that list them.',
        'Web pages of any origin may call the API with a publishable key, and `getReceiptFromToken` without one (CORS, no credentials). Web pages cannot read answers to a secret key.',
        'Money is EUR with at most two decimals, times are ISO 8601 with offset, ids are opaque. Requests with unknown fields are rejected with a suggestion.',
      ],
    },
    {
      id: 'errors',
      title: 'Errors',
      text: [
        'An error is `{error, code, reason?, requiredUpgrade?, currentPackage?, details?, allowedNext?, requestId}`. `error` is for people; programs read `code` and `reason`. `details` names every wrong field: `{path, code, message}`.',
        '400 `invalid-argument` · 401 `unauthenticated` · 403 `permission-denied` · 404 `not-found` (also for data of other accounts) · 409 `already-exists` or `failed-precondition` · 413 `payload-too-large` · 415 `unsupported-media-type` · 429 `resource-exhausted` · 500 `internal` · 503 `unavailable`.',
        'With `Accept: application/problem+json` errors have the form of RFC 9457. Every answer has `X-Request-Id`: quote it when you ask for help.',
      ],
    },
    {
      id: 'paging',
      title: 'Paging',
      text: [
        'Listings take `limit` (1–500) with `offset` or `cursor`, not both. If there are more rows, the answer has `nextCursor`: send it as `cursor`. Pages by cursor skip and repeat no rows, even if rows are added meanwhile. A cursor of another listing gets 400.',
      ],
    },
    {
      id: 'idempotency',
      title: 'Idempotency',
      text: [
        'Send `Idempotency-Key` (1–255 visible characters) with every request that changes data. Requests with the same key and body within 24 hours are executed once. A repeated request gets the same bytes as answer, with `Idempotency-Replayed: true`. The same key with another body gets 409 `idempotency_key_reused`.',
      ],
    },
    {
      id: 'rate-limits',
      title: 'Rate limits',
      text: [
        rateLimit === 0
          ? 'This server sets no limit per secret key.'
          : `A secret key may send ${rateLimit} requests a second and ${rateLimit * 2} at once; a publishable key ${publishableRateLimit} a second and ${publishableRateLimit * 3} at once from one address; a caller without a key 10 a second and 30 at once.`,
        'The headers `RateLimit` and `RateLimit-Policy` show how many requests are left. A request over the limit gets 429 with `Retry-After` in seconds.',
      ],
    },
    {
      id: 'versioning',
      title: 'Versioning',
      text: [
        `This is version ${API_VERSION}. The major version is in the path. New operations, fields and events may appear at any time, so clients must ignore fields and events that they do not know.`,
      ],
    },
    {
      id: 'events',
      title: 'Events',
      text: [
        'Each operation lists the events that it emits. The cloud stores an event in the same transaction as the change. `verifyWebhook` of `untag/client` checks the signatures of deliveries.',
      ],
    },
  ]
}
