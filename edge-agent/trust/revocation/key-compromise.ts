import type { KeyRecord } from '../../../policy/documents/keys.ts'
import type { Replica } from '../../items/replica.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Denials } from './denials.ts'
import { removeRevocationsBy } from './untrusted-ledger.ts'
import type { TokenVersions } from '../time/token-versions.ts'

/**
 *   key revoked ─▶ in one transaction with the key set that revokes it ─▶ discard what it may have signed, and fetch it again
 *
 * A thief of a freshness key can sign very high version numbers, false acknowledgements and false revocations of agents.
 */
export interface KeyCompromise {
  /** Undoes the effects of newly revoked keys. Call it in the transaction that stores the key set. */
  onRevoked(revoked: readonly KeyRecord[]): void
  /** Discards untrusted items. They have a separate file, so call it after that transaction and at each start. */
  discardItems(): void
}

/** Metadata key: `1` while items of a compromised key are still stored. */
const ITEMS_UNTRUSTED = 'items_doubted'

export interface KeyCompromiseParts {
  ledger: Pick<Ledger, 'metadata' | 'commits' | 'claims' | 'cloudGeneration' | 'journal'>
  denials: Denials
  tokenVersions: TokenVersions
  items: Replica | undefined
}

/** Handles compromised keys for this ledger. */
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
