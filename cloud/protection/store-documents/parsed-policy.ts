import { ProtectionPolicy } from '../../../policy/store-policy.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'

/** A policy that was read, and from what. */
interface Parsed {
  text: string
  policy: ProtectionPolicy
}

/** Policies read lately, by store, the oldest first: parsing one for each request would cost more than deciding. */
const parsed = new Map<string, Parsed>()
/** Of their texts together, characters. */
const MOST_CHARACTERS = 8 * 1024 * 1024
let characters = 0

/** The store's policy; what an older release wrote gets the defaults of what has come since. */
export function policyOf(store: Pick<StoreRow, 'store_id' | 'policy'>): ProtectionPolicy {
  const known = parsed.get(store.store_id)
  if (known?.text === store.policy) return known.policy
  const policy = ProtectionPolicy.parse(JSON.parse(store.policy))
  evict(store.store_id)
  parsed.set(store.store_id, { text: store.policy, policy })
  characters += store.policy.length
  for (const oldest of parsed.keys()) {
    if (characters <= MOST_CHARACTERS) break
    evict(oldest)
  }
  return policy
}

function evict(storeId: string): void {
  characters -= parsed.get(storeId)?.text.length ?? 0
  parsed.delete(storeId)
}

/** What the policies that are kept take, characters of their texts. */
export function cachedPolicyCharacters(): number {
  return characters
}
