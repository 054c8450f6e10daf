import type { KeyRecord } from '../../../policy/documents/keys.ts'
import { EARLIER_KEY_SETS_LIMIT } from '../../../policy/documents/store-documents.ts'
import type { Marks } from '../../ledger/file/metadata.ts'

/** Keys that were ever revoked, as this agent has heard. */
export interface RevokedKeys {
  /** These keys, those that were revoked before revoked still. */
  kept(keys: readonly KeyRecord[]): KeyRecord[]
  /** One key set takes the place of another: remembers what either has revoked, and answers which keys that was news of. Call it inside the transaction that keeps the next. */
  follow(next: Omit<KeySet, 'jws'>, former: KeySet | undefined): KeyRecord[]
  /** Key sets that revoke what the present one does not, or count time in a later epoch, as the root has signed them: a restored cloud is reminded by them. */
  readonly forgotten: readonly string[]
}

export interface KeySet {
  jws: string
  keys: readonly KeyRecord[]
  timeEpoch?: number | undefined
}

const MARK = 'revoked_kids'
const FORGOTTEN = 'forgotten_revocations'
const LIMIT = 1_000

interface Revocation {
  jws: string
  kids: string[]
  timeEpoch: number
}

/** Whether these keys of a set revoke this one. */
export function takesBack(keys: readonly KeyRecord[], kid: string | undefined): boolean {
  return keys.some((key) => key.kid === kid && key.state === 'revoked')
}

const revokedIn = (keys: readonly KeyRecord[]) => keys.filter(({ state }) => state === 'revoked').map(({ kid }) => kid)

/** Once revoked is revoked: a cloud that was restored from a backup may have forgotten it, and whoever stole the key has not. */
export function revokedKeys(marks: Marks): RevokedKeys {
  // Nothing but what is written down counts: a transaction that was undone has told nothing.
  const known = () => JSON.parse(marks.recall(MARK) ?? '[]') as string[]
  const forgotten = () => JSON.parse(marks.recall(FORGOTTEN) ?? '[]') as Revocation[]

  function note(keys: readonly KeyRecord[]): KeyRecord[] {
    const before = known()
    const news = keys.filter(({ kid, state }) => state === 'revoked' && !before.includes(kid))
    if (news.length > 0) marks.set(MARK, JSON.stringify([...before, ...news.map(({ kid }) => kid)].slice(-LIMIT)))
    return news
  }

  return {
    kept(keys) {
      const revoked = new Set(known())
      return keys.map((key) => (revoked.has(key.kid) ? { ...key, state: 'revoked' as const } : key))
    },
    follow({ keys, timeEpoch = 0 }, former) {
      const news = note(keys)
      if (!former) return news
      const isForgotten = (kid: string) => keys.some((key) => key.kid === kid && key.state !== 'revoked')
      const before = forgotten()
      const all = [...before, { jws: former.jws, kids: revokedIn(former.keys), timeEpoch: former.timeEpoch ?? 0 }]
      const next = all
        .filter((kept) => kept.kids.some(isForgotten) || kept.timeEpoch > timeEpoch)
        .slice(-EARLIER_KEY_SETS_LIMIT)
      if (next.length > 0 || before.length > 0) marks.set(FORGOTTEN, JSON.stringify(next))
      return news
    },
    get forgotten() {
      return forgotten().map(({ jws }) => jws)
    },
  }
}
