import { brokerVersion, type BrokerAccess, type BrokerClaims } from '../../../policy/documents/broker-document.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { Services } from '../../operations/operation.ts'

type Parts = Pick<Services, 'authority' | 'config'>

const LIFE = 3_600

/** Address and credentials with which this agent logs in to the broker. */
export function brokerAccess(agentId: string, { authority, config }: Parts): BrokerAccess {
  const { mqttUrl: url, outsideBroker } = config
  return {
    url,
    username: agentId,
    ...(outsideBroker && { password: authority.brokerPassword(agentId) }),
    ...(outsideBroker?.ca !== undefined && { ca: outsideBroker.ca }),
  }
}

/**
 * Signs the broker document of this agent, unless the agent already has the current version. `have`: the version that
 * the agent has.
 */
export function brokerDocument(agentId: string, have: string, services: Parts): string | undefined {
  const access = brokerAccess(agentId, services)
  if (brokerVersion(access) === have) return undefined
  const iat = Math.floor(services.authority.clock.nowMs() / 1_000)
  const claims: BrokerClaims = { aud: agentId, iat, exp: iat + LIFE, ...access }
  return signDocument(DOCUMENT_KINDS.broker, claims, services.authority.freshnessSigner)
}
