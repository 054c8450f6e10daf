import type { CloudConfig } from '../foundation/config.ts'
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
        `Every operation is \`POST ${baseUrl}/operationName\` with a JSON object as its body and \`Authorization: Bearer untag_…\`. Every 200 carries \`success: true\`. Where an older GET form exists, its query has the same fields.`,
        'Test keys (`untag_test_…`) work on a sandbox with two stores of its own; live keys (`untag_live_…`) on real data. Secret keys stay on servers; publishable keys (`…_pk_…`) may be in apps and web pages, and can call only what says so.',
        'Web pages of any origin may call the API with a publishable key, and `getReceiptFromToken` without one (CORS, no credentials). Answers to a secret key are shown to no page.',
        'Money is EUR with at most two decimals, times are ISO 8601 with offset, ids are opaque. Unknown fields are refused with a suggestion.',
      ],
    },
    {
      id: 'errors',
      title: 'Errors',
      text: [
        'A refusal is `{error, code, reason?, requiredUpgrade?, currentPackage?, details?, allowedNext?, requestId}`. `error` is for people; programs read `code` and `reason`. `details` names every wrong field: `{path, code, message}`.',
        '400 `invalid-argument` · 401 `unauthenticated` · 403 `permission-denied` · 404 `not-found` (also for what belongs to others) · 409 `already-exists` or `failed-precondition` · 413 `payload-too-large` · 415 `unsupported-media-type` · 429 `resource-exhausted` · 500 `internal` · 503 `unavailable`.',
        'With `Accept: application/problem+json` the same comes as RFC 9457. `X-Request-Id` is on every answer: name it when you ask for help.',
      ],
    },
    {
      id: 'paging',
      title: 'Paging',
      text: [
        'Listings take `limit` (1–500) with `offset` or `cursor`, not both. While there is more, the answer carries `nextCursor`: send it as `cursor`. Pages by cursor neither skip nor repeat while others insert. One that the listing never answered is 400.',
      ],
    },
    {
      id: 'idempotency',
      title: 'Idempotency',
      text: [
        'Send `Idempotency-Key` (1–255 visible characters) with what changes something. The same key with the same body within 24 hours gets the byte-identical answer, marked `Idempotency-Replayed: true`, and is carried out once. The same key with another body is refused: 409, `idempotency_key_reused`.',
      ],
    },
    {
      id: 'rate-limits',
      title: 'Rate limits',
      text: [
        rateLimit === 0
          ? 'This server sets no limit per secret key.'
          : `A secret key may call ${rateLimit} times a second, ${rateLimit * 2} at once; a publishable key ${publishableRateLimit} times a second from one address, ${publishableRateLimit * 3} at once; without a key 10 a second, 30 at once.`,
        '`RateLimit` and `RateLimit-Policy` say what is left. Over it: 429 with `Retry-After` in seconds.',
      ],
    },
    {
      id: 'versioning',
      title: 'Versioning',
      text: [
        `This is version ${API_VERSION}. The major version is in the path. New operations, fields and events may appear at any time and break nothing that ignores what it does not know.`,
      ],
    },
    {
      id: 'events',
      title: 'Events',
      text: [
        'Operations say which events they emit. An event is recorded together with the change it tells of. `verifyWebhook` of `untag/client` checks the signatures of deliveries.',
      ],
    },
  ]
}
