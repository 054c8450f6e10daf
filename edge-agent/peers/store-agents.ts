import { keyId, keyRing, type KeyRing } from '../../policy/documents/keys.ts'
import type { PolicyClaims } from '../../policy/documents/store-documents.ts'
import type { Trust } from '../trust/trust.ts'
import type { Clock } from '../../policy/platform.ts'

/** Rate limit per name (token buckets). */
export interface PeerRateLimit {
  /** Takes one token from the bucket of `name`. Returns 0, or the seconds until the next token. */
  take(name: string): number
  /** Returns the same number as `take`, but takes no token. */
  wait(name: string): number
}

/** Maximum names in memory. A further name replaces the name that was unused for longest. */
const NAMES_LIMIT = 1_000

/** Creates a limit of `burst` calls at once, then `perSecond`. */
export function peerRateLimit(
  clock: Pick<Clock, 'elapsed'>,
  { perSecond, burst }: { perSecond: number; burst: number },
): PeerRateLimit {
  const buckets = new Map<string, { tokens: number; atMs: number }>()

  function tokensOf(name: string): number {
    const bucket = buckets.get(name)
    return bucket ? Math.min(burst, bucket.tokens + ((clock.elapsed() - bucket.atMs) * perSecond) / 1_000) : burst
  }

  const secondsUntilOne = (tokens: number) => (tokens >= 1 ? 0 : Math.max(1, Math.ceil((1 - tokens) / perSecond)))

  return {
    take(name) {
      const tokens = tokensOf(name)
      const seconds = secondsUntilOne(tokens)
      if (seconds > 0) return seconds
      buckets.delete(name)
      const [oldest] = buckets.keys()
      if (buckets.size >= NAMES_LIMIT && oldest !== undefined) buckets.delete(oldest)
      buckets.set(name, { tokens: tokens - 1, atMs: clock.elapsed() })
      return 0
    },
    wait: (name) => secondsUntilOne(tokensOf(name)),
  }
}

type StoreAgent = NonNullable<PolicyClaims['agents']>[number]

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
