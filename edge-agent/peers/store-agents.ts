import { keyId, keyRing, type KeyRing } from '../../policy/documents/keys.ts'
import type { PolicyClaims } from '../../policy/documents/store-documents.ts'
import type { Trust } from '../trust/trust.ts'

export type StoreAgent = NonNullable<PolicyClaims['agents']>[number]

/** Returns an agent of the store, as the signed policy lists it. Undefined if the policy does not list the agent. */
export function storeAgent({ policy }: Pick<Trust, 'policy'>, agentId: string): StoreAgent | undefined {
  return policy?.agents?.find((agent) => agent.agentId === agentId)
}

/** Returns the signing keys of an agent of the store. Empty if the policy does not list the agent. */
export function agentKeys(trust: Pick<Trust, 'policy'>, agentId: string): KeyRing {
  const keys = storeAgent(trust, agentId)?.keys ?? []
  return keyRing(keys.map((x) => ({ kid: keyId(x), alg: 'EdDSA', x, use: 'agent', iss: agentId, state: 'active' })))
}

/** The agent that is the receipt home, with its address. */
export interface HomeAddress {
  agentId: string
  url: string
  epoch: number
}

/**
 * Returns the receipt home that the signed policy names. Undefined if the receipt home is the cloud, this agent, or an
 * agent without an address.
 */
export function homeOf(trust: Pick<Trust, 'policy'>, agentId: string): HomeAddress | undefined {
  const policy = trust.policy?.policy
  if (!policy || policy.home === 'cloud' || policy.home === agentId) return undefined
  const url = storeAgent(trust, policy.home)?.url
  return url ? { agentId: policy.home, url, epoch: policy.homeEpoch } : undefined
}
