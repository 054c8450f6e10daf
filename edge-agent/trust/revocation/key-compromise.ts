import type { KeyRecord } from '../../../policy/documents/keys.ts'
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

export interface KeyCompromiseParts {
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
