import type { Call } from '../../platform/operations/operation.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { checkTarget } from '../../platform/outgoing/outgoing-http.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { applyBatch } from './apply-batch.ts'
import { faultsOf, type Credentials, type SyncError } from './connection.ts'
import { mapRecords } from './connectors/generic.ts'
import type { Connector, DataType } from './connector.ts'

/**
 * With test keys, the cloud uses no merchant system and writes nothing. The counts are invented (specification, rule
 * 5), and `warnings` lists what live mode would reject. Records in the request are validated as in live mode.
 */
export const MOCK_COUNTS: Readonly<Record<DataType, number>> = { articles: 128, stock: 128, orders: 12, suppliers: 6 }
export const MOCK_CATEGORIES = 9
export const MOCK_PRICE_UPDATES = 17

/** Errors that live mode would report for these credentials. Throws 400 for addresses that are not allowed. */
export function sandboxWarnings(
  connector: Connector | undefined,
  system: string,
  credentials: Credentials | undefined,
  call: Call,
): string[] {
  if (!credentials) return []
  const { baseUrl } = credentials
  const { allowPrivateTargets } = call.services.config
  const target =
    typeof baseUrl === 'string'
      ? checkTarget(baseUrl, { plainHttp: true, privateTargets: allowPrivateTargets })
      : undefined
  if (target && 'refusal' in target) throw invalid('credentials.baseUrl', target.refusal, 'url_refused')
  if (!connector) return [`live mode rejects this: ${system} is not available yet`]
  return faultsOf(connector, credentials).map(({ message }) => `live mode rejects this: ${message}`)
}

/** Validates the records of a request without writing. */
export async function tryRecords(
  call: Call,
  store: Row<'store'>,
  dataType: DataType,
  records: readonly unknown[],
  mapping: Credentials[string] | undefined,
): Promise<{ taken: number; categories: number; errors: SyncError[] }> {
  const mapped = mapRecords(records, dataType, typeof mapping === 'object' ? mapping : undefined)
  const { taken, categories, errors } = await applyBatch(dataType, mapped, {
    call,
    store,
    system: 'generic',
    from: 0,
    dryRun: true,
  })
  return { taken, categories: categories?.length ?? 0, errors: [...errors] }
}
