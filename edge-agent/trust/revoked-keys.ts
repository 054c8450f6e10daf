import type { KeyRecord } from '../../policy/documents/keys.ts'
import { REMINDERS_LIMIT } from '../../policy/documents/store-documents.ts'
import type { Commits } from '../ledger/commit.ts'
import type { Marks } from '../ledger/marks.ts'

/** Keys that were ever revoked, as this agent has heard. */
export interface RevokedKeys {
  /** These keys, those that were revoked before revoked still; remembers those that are now. */
  kept(keys: readonly KeyRecord[]): KeyRecord[]
  /** One key set takes the place of another. */
  follow(former: KeySet, next: Pick<KeySet, 'keys'>): void
  /** Key sets that revoke what the present one does not, as the root has signed them: a restored cloud is reminded by them. */
  readonly forgotten: readonly string[]
}

export interface KeySet {
  jws: string
  keys: readonly KeyRecord[]
}

const MARK = 'revoked_kids'
const FORGOTTEN = 'forgotten_revocations'
const LIMIT = 1_000

interface Revocation {
  jws: string
  kids: string[]
}

/** Once revoked is revoked: a cloud that was restored from a backup may have forgotten it, and whoever stole the key has not. */
export function revokedKeys(marks: Marks, commits: Commits): RevokedKeys {
  const known = new Set(JSON.parse(marks.get(MARK) ?? '[]') as string[])
  let forgotten = JSON.parse(marks.get(FORGOTTEN) ?? '[]') as Revocation[]
  return {
    kept(keys) {
      const before = known.size
      for (const { kid, state } of keys) if (state === 'revoked') known.add(kid)
      if (known.size > before) commits.now(() => marks.set(MARK, JSON.stringify([...known].slice(-LIMIT))))
      return keys.map((key) => (known.has(key.kid) ? { ...key, state: 'revoked' as const } : key))
    },
    follow(former, { keys }) {
      const revokedBefore = former.keys.filter(({ state }) => state === 'revoked').map(({ kid }) => kid)
      const isForgotten = (kid: string) => keys.some((key) => key.kid === kid && key.state !== 'revoked')
      const next = [...forgotten, { jws: former.jws, kids: revokedBefore }].filter(({ kids }) => kids.some(isForgotten)).slice(-REMINDERS_LIMIT)
      if (next.length === 0 && forgotten.length === 0) return
      commits.now(() => marks.set(FORGOTTEN, JSON.stringify(next)))
      forgotten = next
    },
    get forgotten() {
      return forgotten.map(({ jws }) => jws)
    },
  }
}
