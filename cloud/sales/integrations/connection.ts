import { z } from 'zod'
import { validationFindings, findingMessage, pathText } from '../../../policy/validation-findings.ts'
import type { CloudConfig } from '../../platform/foundation/config.ts'
import { Failure, invalid, type ErrorDetail } from '../../platform/foundation/failure.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { checkTarget, type TargetRules } from '../../platform/outgoing/outgoing-http.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { Connector } from './connector.ts'

/** Error of one record. */
export const SyncError = z.strictObject({
  dataType: z.string().describe('articles, stock, orders, suppliers, or the pushed data type.'),
  index: z.int().describe('Index in the list of records of its type, from 0.'),
  ean: z.string().nullable(),
  externalId: z.string().nullable().describe('Its id in the external system.'),
  field: z.string(),
  code: z.string(),
  message: z.string(),
})
export type SyncError = z.infer<typeof SyncError>

/** Maximum number of errors in a response; further errors are only counted. */
const SYNC_ERRORS_LIMIT = 1_000

/** Shortens a value to a text that all databases can store. Clients may show the text. */
export function printable(value: unknown): string | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null
  return String(value)
    .slice(0, 80)
    .toWellFormed()
    .replaceAll(/[\u0000-\u001f\u007f]/g, '\ufffd')
}

/** Credentials of a request: texts, and the field mapping of a generic system. */
export const Credentials = z.record(
  z.string().max(60),
  z.union([z.string().max(8_192), z.record(z.string().max(120), z.string().max(60))]),
)
export type Credentials = z.output<typeof Credentials>

const FIELDS_LIMIT = 40
const MAPPING_LIMIT = 100

/**
 * Rules for the address of a merchant's system. Requires HTTPS and a public address, unless the server allows private
 * targets, such as simulators.
 */
export function systemRules(config: CloudConfig): TargetRules {
  return { plainHttp: config.allowPrivateTargets, privateTargets: config.allowPrivateTargets }
}

/** Lists the errors of credentials. The texts contain no values, because these are secret. */
export function faultsOf(connector: Connector, credentials: Credentials): ErrorDetail[] {
  if (
    Object.keys(credentials).length > FIELDS_LIMIT ||
    Object.keys(credentials['mapping'] ?? {}).length > MAPPING_LIMIT
  ) {
    return [
      {
        path: 'credentials',
        code: 'too_big',
        message: `credentials: at most ${FIELDS_LIMIT} fields, and ${MAPPING_LIMIT} in a mapping`,
      },
    ]
  }
  const read = connector.credentials.safeParse(credentials)
  if (read.success) return []
  return validationFindings(read.error.issues, credentials).map((finding): ErrorDetail => {
    const located = { ...finding, path: ['credentials', ...finding.path] }
    const path = pathText(located.path)
    if (finding.code === 'unknown_field')
      return {
        path,
        code: finding.code,
        message: `${path}: ${connector.name} does not have this setting; its settings are ${connector.needs}`,
      }
    return { path, code: finding.code === 'missing' ? 'missing' : 'invalid', message: findingMessage(located) }
  })
}

/** Parses credentials for a connector. Throws 400 if the credentials are invalid or their address is not allowed. */
export function readCredentials(connector: Connector, credentials: Credentials, config: CloudConfig): unknown {
  const details = faultsOf(connector, credentials)
  if (details.length > 0)
    throw new Failure(
      'invalid-argument',
      details
        .map((d) => d.message)
        .slice(0, 3)
        .join('; '),
      { details },
    )
  const read = connector.credentials.parse(credentials)
  const target = checkTarget(connector.addressOf(read), systemRules(config))
  if ('refusal' in target) throw invalid('credentials.baseUrl', target.refusal, 'url_refused')
  return read
}

const contextOf = (connectionId: string) => `integration_connection/${connectionId}`

/** Encrypts credentials. The result can be decrypted only for this connection. */
export function sealCredentials({ authority }: Services, connectionId: string, credentials: Credentials): string {
  return authority.sealer.seal(Buffer.from(JSON.stringify(credentials)), contextOf(connectionId))
}

/** Decrypts the stored credentials. Returns undefined if no credentials are stored. */
export function storedCredentials(
  { authority }: Services,
  row: Row<'integration_connection'> | undefined,
): Credentials | undefined {
  if (!row || row.sealed === null) return undefined
  return Credentials.parse(JSON.parse(authority.sealer.open(row.sealed, contextOf(row.connection_id)).toString('utf8')))
}

/** Counts of one data type over all calls of a round. A round reads a system once from the first page to the last. */
export interface Counts {
  seen: number
  taken: number
  failed: number
  repriced: number
  /** Distinct names. */
  categories: string[]
}

/** Progress of one data type. */
export interface PullState {
  cursor: string | null
  isDone: boolean
  startedMs: number
  counts: Counts
}

/** Maximum number of distinct categories per round; further ones are not counted. */
const CATEGORIES_LIMIT = 1_000
/** Maximum age of a round, ms. After that time cursors may have expired, and the data may have changed. */
const ROUND_LIMIT_MS = 24 * 3_600_000

/** State before the first page. */
export function freshState(startedMs: number): PullState {
  return {
    cursor: null,
    isDone: false,
    startedMs,
    counts: { seen: 0, taken: 0, failed: 0, repriced: 0, categories: [] },
  }
}

/** Returns the stored state of a round. Returns a fresh state if the source differs or the round is too old. */
export function stateOf(row: Row<'integration_pull'> | undefined, source: string, nowMs: number): PullState {
  if (!row || row.source !== source || row.started_ms <= nowMs - ROUND_LIMIT_MS) return freshState(nowMs)
  return {
    cursor: row.next_cursor,
    isDone: row.is_done === 1,
    startedMs: row.started_ms,
    counts: JSON.parse(row.counts) as Counts,
  }
}

/** Counts of one batch. */
export interface BatchCounts {
  seen: number
  taken: number
  repriced?: number
  categories?: readonly string[]
  errors: readonly SyncError[]
  /** Number of records with errors. One record may have several errors. */
  failed: number
}

/** Adds the counts of a batch. */
export function addCounts(counts: Counts, batch: BatchCounts): Counts {
  return {
    seen: counts.seen + batch.seen,
    taken: counts.taken + batch.taken,
    failed: counts.failed + batch.failed,
    repriced: counts.repriced + (batch.repriced ?? 0),
    categories: batch.categories
      ? [...new Set([...counts.categories, ...batch.categories])].slice(0, CATEGORIES_LIMIT)
      : counts.categories,
  }
}

/** Adds errors up to the limit. */
export function addErrors(errors: SyncError[], more: readonly SyncError[]): void {
  errors.push(...more.slice(0, Math.max(0, SYNC_ERRORS_LIMIT - errors.length)))
}
