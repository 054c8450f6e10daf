import type { KeyRecord } from '../../../policy/documents/keys.ts'
import type { Replica } from '../../items/replica.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Denials } from './denials.ts'
import { noLongerRevokedBy } from './untrusted-ledger.ts'
import type { ToldVersions } from '../time/token-versions.ts'

/**
 *   key revoked ─▶ in one transaction with the key set that says so ─▶ what it may have signed is forgotten, and heard anew
 *
 * Whoever stole a key may have given numbers that no true page and no true cloud ever reaches, acknowledged what never came to the
 * cloud, and revoked an agent that is none's to revoke.
 */
export interface AfterTheft {
  /** These keys are now known to be revoked. Call it inside the transaction that keeps the key set. */
  take(revoked: readonly KeyRecord[]): void
  /** The items are in a file of their own: forgets them after that transaction, or at the next start. */
  forgetItems(): void
}

/** Set: the items are of a key that was stolen, and not forgotten yet. */
const ITEMS_DOUBTED = 'items_doubted'

export interface AfterTheftParts {
  ledger: Pick<Ledger, 'marks' | 'commits' | 'claims' | 'cloudGeneration' | 'journal'>
  denials: Denials
  told: ToldVersions
  items: Replica | undefined
}

/** Undoes in this ledger what a stolen key may have done. */
export function afterTheft({ ledger, denials, told, items }: AfterTheftParts): AfterTheft {
  const { marks, commits, claims, cloudGeneration, journal } = ledger
  return {
    take(revoked) {
      if (revoked.length > 0) told.forget()
      noLongerRevokedBy(
        ledger,
        revoked.map(({ kid }) => kid),
      )
      if (!revoked.some(({ use }) => use === 'freshness')) return
      denials.beginAnew()
      cloudGeneration.doubt()
      claims.doubtAcknowledged(journal.acked)
      marks.set(ITEMS_DOUBTED, '1')
    },
    forgetItems() {
      if (!items || marks.recall(ITEMS_DOUBTED) !== '1') return
      items.beginAnew()
      commits.now(() => marks.set(ITEMS_DOUBTED, '0'))
    },
  }
}
