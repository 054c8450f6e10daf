import { pruneAudit } from '../accounts/prune-audit.ts'
import { publishLedgerDays } from '../protection/store-policy/ledger-days.ts'
import { daysOf, deletedBeforeMs, type KeepDays } from '../foundation/keep-days.ts'
import { logJobFailure, type Log } from '../foundation/log.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Database } from '../persistence/database.ts'
import { oldClosings, oldOrders, oldPurchases } from './books.ts'
import {
  inactiveMembers,
  oldErasures,
  oldFavorites,
  oldFollows,
  oldSessions,
  oldSubscriptions,
  orderCustomers,
  purchaseCustomers,
} from './customer-links.ts'
import {
  oldAuthorizations,
  oldExceptions,
  oldItemMoves,
  oldJournalRows,
  oldProtectionEvents,
  removedOperators,
} from './protection-records.ts'
import { BATCH, type RetentionRule } from './rule.ts'

/** Batches of one rule in one run. The next run continues, so a run stays short. */
const BATCHES_PER_RUN = 50

/** Entries of the audit log. */
const oldAuditEntries: RetentionRule = {
  kind: 'audit',
  deleteSome: ({ database, platform }, beforeMs) => pruneAudit(database, beforeMs, platform),
}

export interface RetentionParts {
  readonly database: Database
  readonly platform: Platform
  readonly log: Log
  readonly keepDays: KeepDays | undefined
}

/**
 * Deletes data whose period has ended, in small transactions. Events, deliveries and requests for staff have jobs of
 * their own, with periods of the same setting.
 */
export class Retention {
  readonly #parts: RetentionParts
  readonly #rules: readonly RetentionRule[] = [
    // The customers of purchases come first, because their period is usually shorter.
    purchaseCustomers,
    orderCustomers,
    oldSessions,
    inactiveMembers(),
    oldFollows,
    oldFavorites,
    oldSubscriptions,
    oldPurchases,
    oldOrders,
    oldClosings,
    oldProtectionEvents,
    oldItemMoves,
    oldJournalRows,
    oldAuthorizations,
    oldExceptions,
    removedOperators,
    oldErasures,
    oldAuditEntries,
  ]

  constructor(parts: RetentionParts) {
    this.#parts = parts
  }

  /** Runs each rule. If a rule fails, the others run. Several processes may run this at the same time. */
  async apply(): Promise<void> {
    const { database, platform, log, keepDays } = this.#parts
    const nowMs = platform.clock.wall()
    await database.write((db) => publishLedgerDays(db, daysOf(keepDays, 'ledger')))
    for (const { kind, deleteSome } of this.#rules) {
      const beforeMs = deletedBeforeMs(keepDays, kind, nowMs)
      try {
        let batches = 0
        while (batches++ < BATCHES_PER_RUN && (await deleteSome({ database, platform, nowMs }, beforeMs)) >= BATCH);
      } catch (error) {
        logJobFailure(log, error, `retention of ${kind}`)
      }
    }
  }
}
