import type { CloudConfig } from '../../platform/foundation/config.ts'
import { API_VERSION, type Description, type DescribedOperation, callersInWords } from './openapi.ts'
import { codeSamples } from './code-samples.ts'
import { basesOf, fieldsOf, type Field } from './fields.ts'
import type { JsonSchema } from '../../../policy/json-schema.ts'

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

const INTRODUCTION =
  '# untag\n\n> Decides, at the shop door and at the till, whether a security tag may come off: a retail API for stores, products, scan and go, receipts and security tags.'

function areasOf({ operations }: Description): string[] {
  return [...new Set(operations.map((o) => o.operation.area))]
}

function titled(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Overview of the API as Markdown, one line for each operation (llmstxt.org). */
export function llmsText(description: Description, guide: readonly GuideSection[]): string {
  const { origin } = new URL(description.baseUrl)
  const calls = guide.find((section) => section.id === 'calls')?.text.join('\n\n') ?? ''
  const areas = areasOf(description).map((area) => {
    const rows = description.operations
      .filter((o) => o.operation.area === area)
      .map(({ operation }) => `- [${operation.name}](${origin}/docs#${operation.name}): ${operation.summary}`)
    return `## ${titled(area)}\n\n${rows.join('\n')}`
  })
  const documents = [
    ['Everything in one page', '/llms-full.txt'],
    ['OpenAPI 3.0.3', '/openapi.json'],
    ['Reference for people', '/docs'],
    ['Postman collection', '/postman.json'],
  ]
  const more = `## Documents\n\n${documents.map(([name, path]) => `- [${name}](${origin}${path})`).join('\n')}`
  return `${[INTRODUCTION, calls, ...areas, more].join('\n\n')}\n`
}

/** The whole reference as one Markdown page. */
export function llmsFullText(description: Description, guide: readonly GuideSection[]): string {
  const sections = guide.map(({ title, text }) => `## ${title}\n\n${text.join('\n\n')}`)
  const areas = areasOf(description).map((area) => {
    const entries = description.operations
      .filter((o) => o.operation.area === area)
      .map((each) => operationText(each, description))
    return `## ${titled(area)}\n\n${entries.join('\n\n')}`
  })
  const used = new Set(Object.keys(description.shared))
  const shapes = [...used].map(
    (name) =>
      `### ${name}\n\n${fieldList(fieldsOf(description.components[name] ?? {}, description.components, false))}`,
  )
  return `${[INTRODUCTION, ...sections, ...areas, `## Shared schemas\n\n${shapes.join('\n\n')}`].join('\n\n')}\n`
}

function operationText(
  { operation, request, response, answer, errors }: DescribedOperation,
  { components, baseUrl }: Description,
): string {
  const { name, summary, minimumPackage, emits } = operation
  const about = [
    `Package ${minimumPackage}; called with ${callersInWords(operation)}.`,
    ...(operation.changes ? ['Takes an Idempotency-Key.'] : []),
    ...(operation.get ? ['GET answers the older listing form.'] : []),
    ...(emits.length > 0 ? [`Emits ${emits.join(', ')}.`] : []),
  ]
  const refusals = [...new Set(errors.map(({ status, example }) => `${status} ${example.reason ?? example.code}`))]
  return [
    `### ${name}`,
    summary,
    ...(operation.description === summary ? [] : [operation.description]),
    about.join(' '),
    `Request:\n\n${fieldListOf(request, components)}`,
    `\`\`\`sh\n${codeSamples(operation, baseUrl)[0]?.code ?? ''}\n\`\`\``,
    `Answer:\n\n${fieldListOf(response, components)}`,
    `\`\`\`json\n${JSON.stringify(answer)}\n\`\`\``,
    `Errors: ${refusals.join(', ')}.`,
  ].join('\n\n')
}

function fieldListOf(schema: JsonSchema, components: Readonly<Record<string, JsonSchema>>): string {
  const bases = basesOf(schema, components).map((base) => `- everything of ${base}`)
  return (
    [...bases, fieldList(fieldsOf(schema, components, false))].filter((part) => part !== '').join('\n') || 'nothing'
  )
}

function fieldList(fields: readonly Field[]): string {
  return fields
    .map(({ name, type, required, limits, description }) => {
      const notes = [required ? 'required' : '', limits, description].filter((note) => note !== '')
      return `- \`${name}\` ${type}${notes.length > 0 ? `: ${notes.join('; ')}` : ''}`
    })
    .join('\n')
}
