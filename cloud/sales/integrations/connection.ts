import { z } from 'zod'
import { validationFindings, findingMessage, pathText } from '../../../policy/validation-findings.ts'
import type { CloudConfig } from '../../platform/foundation/config.ts'
import { Failure, invalid, type ErrorDetail } from '../../platform/foundation/failure.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { checkTarget, type TargetRules } from '../../platform/outgoing/address-guard.ts'
import type { IntegrationConnectionRow } from '../../platform/persistence/tables/integrations.ts'
import type { Connector } from './connector.ts'

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
  row: IntegrationConnectionRow | undefined,
): Credentials | undefined {
  if (!row || row.sealed === null) return undefined
  return Credentials.parse(JSON.parse(authority.sealer.open(row.sealed, contextOf(row.connection_id)).toString('utf8')))
}
