import type { KeyRecord } from '../../policy/documents/keys.ts'
import type { Commits } from '../ledger/commit.ts'
import type { Marks } from '../ledger/marks.ts'

/** Keys that were ever revoked, as this agent has heard. */
export interface RevokedKeys {
  /** These keys, those that were revoked before revoked still; remembers those that are now. */
  kept(keys: readonly KeyRecord[]): KeyRecord[]
}

const MARK = 'revoked_kids'
const LIMIT = 1_000

/** Once revoked is revoked: a cloud that was restored from a backup may have forgotten it, and whoever stole the key has not. */
export function revokedKeys(marks: Marks, commits: Commits): RevokedKeys {
  const known = new Set(JSON.parse(marks.get(MARK) ?? '[]') as string[])
  return {
    kept(keys) {
      const before = known.size
      for (const { kid, state } of keys) if (state === 'revoked') known.add(kid)
      if (known.size > before) commits.now(() => marks.set(MARK, JSON.stringify([...known].slice(-LIMIT))))
      return keys.map((key) => (known.has(key.kid) ? { ...key, state: 'revoked' as const } : key))
    },
  }
}
