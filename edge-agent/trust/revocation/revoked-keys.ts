import type { KeyRecord } from '../../../policy/documents/keys.ts'
import { EARLIER_KEY_SETS_LIMIT } from '../../../policy/documents/store-documents.ts'
import type { Metadata } from '../../ledger/file/watermark.ts'
import type { Replica } from '../../items/replica.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Denials } from './denials.ts'
import { removeRevocationsBy } from './untrusted-ledger.ts'
import type { TokenVersions } from '../time/token-versions.ts'

/**
 * Handles revoked keys. A thief of a freshness key can sign very high version numbers, false acknowledgements and false
 * revocations of agents. The agent discards everything that a revoked key may have signed, and fetches it again.
 */
export interface KeyCompromise {
  /** Undoes the effects of newly revoked keys. Call it in the transaction that stores the new key set. */
  onRevoked(revoked: readonly KeyRecord[]): void
  /**
   * Discards items that a compromised key may have signed. The items have a separate file. So call this method after
   * the transaction of `onRevoked`, and at each start.
   */
  discardItems(): void
}

/** Metadata key: `1` until items that a compromised key may have signed are discarded. */
const ITEMS_UNTRUSTED = 'items_doubted'

interface KeyCompromiseParts {
  ledger: Pick<Ledger, 'metadata' | 'commits' | 'claims' | 'cloudGeneration' | 'journal'>
  denials: Denials
  tokenVersions: TokenVersions
  items: Replica | undefined
}

/** Creates the handler for this ledger. */
export function keyCompromise({ ledger, denials, tokenVersions, items }: KeyCompromiseParts): KeyCompromise {
  const { metadata, commits, claims, cloudGeneration, journal } = ledger
  return {
    onRevoked(revoked) {
      if (revoked.length > 0) tokenVersions.clear()
      removeRevocationsBy(
        ledger,
        revoked.map(({ kid }) => kid),
      )
      if (!revoked.some(({ use }) => use === 'freshness')) return
      denials.reset()
      cloudGeneration.distrust()
      claims.resetAcknowledged(journal.acked)
      metadata.set(ITEMS_UNTRUSTED, '1')
    },
    discardItems() {
      if (!items || metadata.getCached(ITEMS_UNTRUSTED) !== '1') return
      items.reset()
      commits.now(() => metadata.set(ITEMS_UNTRUSTED, '0'))
    },
  }
}

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

interface RevokingKeySet {
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
