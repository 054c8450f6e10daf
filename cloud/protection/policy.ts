import { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'

/** Policies read lately, by store and version: parsing one for each request would cost more than deciding. */
const parsed = new Map<string, ProtectionPolicy>()
const PARSED_LIMIT = 2_000

/** The store's policy; what an older release wrote gets the defaults of what has come since. */
export function policyOf(store: StoreRow): ProtectionPolicy {
  const known = parsed.get(store.policy)
  if (known) return known
  if (parsed.size >= PARSED_LIMIT) parsed.clear()
  const policy = ProtectionPolicy.parse(JSON.parse(store.policy))
  parsed.set(store.policy, policy)
  return policy
}
