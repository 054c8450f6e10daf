import type { KeyRecord } from '../../../policy/documents/keys.ts'
import type { Replica } from '../../items/replica.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Denials } from './denials.ts'
import { removeRevocationsBy } from './untrusted-ledger.ts'
import type { TokenVersions } from '../time/token-versions.ts'

/**
 *   key revoked ─▶ in one transaction with the key set that says so ─▶ what it may have signed is forgotten, and heard anew
 *
 * Whoever stole a key may have given numbers that no true page and no true cloud ever reaches, acknowledged what never came to the
 * cloud, and revoked an agent that is none's to revoke.
 */
export interface KeyCompromise {
  /** These keys are now known to be revoked. Call it inside the transaction that keeps the key set. */
  onRevoked(revoked: readonly KeyRecord[]): void
  /** The items are in a file of their own: forgets them after that transaction, or at the next start. */
  discardItems(): void
}

/** Set: the items are of a key that was stolen, and not forgotten yet. */
const ITEMS_UNTRUSTED = 'items_doubted'

export interface KeyCompromiseParts {
  ledger: Pick<Ledger, 'metadata' | 'commits' | 'claims' | 'cloudGeneration' | 'journal'>
  denials: Denials
  tokenVersions: TokenVersions
  items: Replica | undefined
}

/** Undoes in this ledger what a stolen key may have done. */
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
