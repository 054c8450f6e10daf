import type { KeyRecord } from '../../../policy/documents/keys.ts'
import { EARLIER_KEY_SETS_LIMIT } from '../../../policy/documents/store-documents.ts'
import type { Metadata } from '../../ledger/file/metadata.ts'

/** All revoked keys of all key sets that this agent has accepted. */
export interface RevokedKeys {
  /** Returns the keys; each key that was ever revoked has the state `revoked`. */
  withRevocations(keys: readonly KeyRecord[]): KeyRecord[]
  /**
   * Stores the revocations of the next key set, and the former key set if it revokes keys that the next key set lists
   * as valid. Returns the newly revoked keys. Call it inside the transaction that stores the next key set.
   */
  replaceKeySet(next: Omit<RevokingKeySet, 'jws'>, former: RevokingKeySet | undefined): KeyRecord[]
  /**
   * Former signed key sets that revoke a key which the current key set lists as valid. Former key sets with a later
   * time epoch than the current key set are also included. The agent sends these key sets to a restored cloud, which
   * may have lost them.
   */
  readonly reminders: readonly string[]
}

export interface RevokingKeySet {
  jws: string
  keys: readonly KeyRecord[]
  timeEpoch?: number | undefined
}

const REVOKED_KEYS = 'revoked_kids'
const REMINDERS = 'forgotten_revocations'
const REVOKED_KEYS_LIMIT = 1_000

interface Revocation {
  jws: string
  kids: string[]
  timeEpoch: number
}

/** True if `keys` contains the key `kid` with the state `revoked`. */
export function revokes(keys: readonly KeyRecord[], kid: string | undefined): boolean {
  return keys.some((key) => key.kid === kid && key.state === 'revoked')
}

const revokedIn = (keys: readonly KeyRecord[]) => keys.filter(({ state }) => state === 'revoked').map(({ kid }) => kid)

/**
 * Opens the revocations in this metadata. The revocations stay for ever: a restored cloud may lack them, and the thief
 * still has the key.
 */
export function revokedKeys(metadata: Metadata): RevokedKeys {
  // Reads only committed state, so the values stay correct if a transaction is rolled back.
  const known = () => JSON.parse(metadata.getCached(REVOKED_KEYS) ?? '[]') as string[]
  const reminders = () => JSON.parse(metadata.getCached(REMINDERS) ?? '[]') as Revocation[]

  function note(keys: readonly KeyRecord[]): KeyRecord[] {
    const before = known()
    const news = keys.filter(({ kid, state }) => state === 'revoked' && !before.includes(kid))
    if (news.length > 0)
      metadata.set(REVOKED_KEYS, JSON.stringify([...before, ...news.map(({ kid }) => kid)].slice(-REVOKED_KEYS_LIMIT)))
    return news
  }

  return {
    withRevocations(keys) {
      const revoked = new Set(known())
      return keys.map((key) => (revoked.has(key.kid) ? { ...key, state: 'revoked' as const } : key))
    },
    replaceKeySet({ keys, timeEpoch = 0 }, former) {
      const news = note(keys)
      if (!former) return news
      const isForgotten = (kid: string) => keys.some((key) => key.kid === kid && key.state !== 'revoked')
      const before = reminders()
      const all = [...before, { jws: former.jws, kids: revokedIn(former.keys), timeEpoch: former.timeEpoch ?? 0 }]
      const next = all
        .filter((set) => set.kids.some(isForgotten) || set.timeEpoch > timeEpoch)
        .slice(-EARLIER_KEY_SETS_LIMIT)
      if (next.length > 0 || before.length > 0) metadata.set(REMINDERS, JSON.stringify(next))
      return news
    },
    get reminders() {
      return reminders().map(({ jws }) => jws)
    },
  }
}
