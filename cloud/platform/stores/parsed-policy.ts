import { ProtectionPolicy } from '../../../policy/store-policy.ts'
import type { Row } from '../persistence/schema.ts'
import type { Call } from '../operations/operation.ts'
import { raiseDocumentVersion } from './queries.ts'

/** Raises the version of the store's signed policy, and announces it after the commit. */
export async function storeDocumentChanged(call: Call, storeId: string): Promise<void> {
  await raiseDocumentVersion(call.db, storeId)
  call.afterCommit(() => call.services.agents.storeChanged(storeId))
}

/** A parsed policy with its source text. */
interface Parsed {
  text: string
  policy: ProtectionPolicy
}

/** Parsed policies by store, oldest first. Parsing the policy for each request would take longer than the decision. */
const parsed = new Map<string, Parsed>()
/** Maximum size of the cached texts, characters. */
const CHARACTERS_LIMIT = 8 * 1024 * 1024
let characters = 0

/** Policy of a store. Fields that an older release did not store get their defaults. */
export function policyOf(store: Pick<Row<'store'>, 'store_id' | 'policy'>): ProtectionPolicy {
  const known = parsed.get(store.store_id)
  if (known?.text === store.policy) return known.policy
  const policy = ProtectionPolicy.parse(JSON.parse(store.policy))
  evict(store.store_id)
  parsed.set(store.store_id, { text: store.policy, policy })
  characters += store.policy.length
  for (const oldest of parsed.keys()) {
    if (characters <= CHARACTERS_LIMIT) break
    evict(oldest)
  }
  return policy
}

function evict(storeId: string): void {
  characters -= parsed.get(storeId)?.text.length ?? 0
  parsed.delete(storeId)
}

/** Size of the cached texts, characters. */
export function cachedPolicyCharacters(): number {
  return characters
}
