import { pruneAudit } from '../../platform/accounts/audit-chain.ts'
import { publishLedgerDays } from '../../protection/store-policy/policy-document.ts'
import { daysOf, deletedBeforeMs, type KeepDays } from '../../platform/foundation/config.ts'
import { yieldToEventLoop } from '../../platform/operations/job-steps.ts'
import { logJobFailure, type Log } from '../../platform/foundation/log.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
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
import { BATCH, type RetentionRule, deleteFound, type RetentionScope, oldRows, rule } from './rule.ts'
import { firstIdAt } from '../../../policy/ids.ts'

/** Rules for what the tax law makes merchants keep. */

/** Purchases with everything that belongs to them. A purchase stays while money is still on its way. */
const oldPurchases = rule(
  'purchases',
  async (db, beforeMs) => (await purchasesBefore(db, beforeMs)).map((row) => row.purchase_id),
  deletePurchases,
)

function purchasesBefore(db: Db, beforeMs: number) {
  const movesMoney = (table: 'payment' | 'refund') =>
    db.selectFrom(table).select('purchase_id').where('due_ms', 'is not', null)
  return db
    .selectFrom('purchase')
    .select('purchase_id')
    .where('purchase_id', '<', firstIdAt('pur', beforeMs))
    .where('created_ms', '<', beforeMs)
    .where('payment_by_ms', 'is', null)
    .where('purchase_id', 'not in', movesMoney('payment'))
    .where('purchase_id', 'not in', movesMoney('refund'))
    .orderBy('purchase_id')
    .limit(BATCH)
    .execute()
}

async function deletePurchases(db: Db, ids: readonly string[]): Promise<void> {
  const lines = db.selectFrom('purchase_line').select('line_id').where('purchase_id', 'in', ids)
  await db.deleteFrom('redemption').where('line_id', 'in', lines).execute()
  const authorizations = db.selectFrom('protection_authorization').select('nonce').where('purchase_id', 'in', ids)
  await deleteAuthorizations(
    db,
    (await authorizations.execute()).map((row) => row.nonce),
  )
  for (const table of ['unit_right', 'purchase_unit', 'refund', 'payment', 'purchase_line', 'purchase'] as const)
    await db.deleteFrom(table).where('purchase_id', 'in', ids).execute()
}

/** Deletes authorizations with their units and redemptions. */
async function deleteAuthorizations(db: Db, nonces: readonly string[]): Promise<void> {
  if (nonces.length === 0) return
  for (const table of ['authorization_unit', 'redemption', 'protection_authorization'] as const)
    await db.deleteFrom(table).where('nonce', 'in', nonces).execute()
}

/** Pick-up orders. An order stays while it can still expire. */
const oldOrders = rule(
  'purchases',
  (db, beforeMs) =>
    db
      .selectFrom('pickup_order')
      .select('order_id')
      .where('order_id', '<', firstIdAt('ord', beforeMs))
      .where('created_ms', '<', beforeMs)
      .where('expires_ms', 'is', null)
      .orderBy('order_id')
      .limit(BATCH)
      .execute(),
  async (db, rows) => {
    const ids = rows.map((row) => row.order_id)
    for (const table of ['pickup_order_item', 'pickup_order_line', 'pickup_order'] as const)
      await db.deleteFrom(table).where('order_id', 'in', ids).execute()
  },
)

/** Day closings. The latest closing of a store stays, because the next one continues its number and day. */
const oldClosings = rule(
  'closings',
  (db, beforeMs) =>
    db
      .selectFrom('store_closing as c')
      .select(['store_id', 'number'])
      .where('closed_ms', '<', beforeMs)
      .where(({ eb, selectFrom }) =>
        eb(
          'number',
          '<',
          selectFrom('store_closing as last')
            .select((e) => e.fn.max('last.number').as('number'))
            .whereRef('last.store_id', '=', 'c.store_id'),
        ),
      )
      .orderBy('number')
      .limit(BATCH)
      .execute(),
  async (db, rows) => {
    for (const row of rows)
      await db
        .deleteFrom('store_closing')
        .where('store_id', '=', row.store_id)
        .where('number', '=', row.number)
        .execute()
  },
)

/** Rules for records of releases, alarms and items. They name operators. */

/** Stores or agents that one run visits. A run of a larger cloud continues where the last run ended. */
const VISITED_LIMIT = 10_000

/** Deletes rows of the first stores that have old rows, until the batch is full. */
async function perStore(
  scope: RetentionScope,
  deleteOf: (storeId: string, limit: number) => Promise<number>,
): Promise<number> {
  const stores = await scope.database.reads.selectFrom('store').select('store_id').limit(VISITED_LIMIT).execute()
  let deleted = 0
  for (const { store_id: storeId } of stores) {
    deleted += await deleteOf(storeId, BATCH - deleted)
    if (deleted >= BATCH) break
    await yieldToEventLoop()
  }
  return deleted
}

/** Protection events with the assessments of their alarms. */
const oldProtectionEvents: RetentionRule = {
  kind: 'protection',
  deleteSome: (scope, beforeMs) =>
    perStore(scope, (storeId, limit) =>
      deleteFound(
        scope,
        (db) =>
          db
            .selectFrom('protection_event')
            .select(['event_id', 'tenant'])
            .where('store_id', '=', storeId)
            .where('processed_ms', '<', beforeMs)
            .orderBy('processed_ms')
            .limit(limit)
            .execute(),
        async (db, rows) => {
          for (const { event_id, tenant } of rows)
            for (const table of ['alarm_disposition', 'protection_event'] as const)
              await db.deleteFrom(table).where('event_id', '=', event_id).where('tenant', '=', tenant).execute()
        },
      ),
    ),
}

/** Status changes of items, with the operators who made them. The items stay. */
const oldItemMoves: RetentionRule = {
  kind: 'protection',
  deleteSome: (scope, beforeMs) =>
    perStore(scope, (storeId, limit) =>
      deleteFound(
        scope,
        (db) =>
          db
            .selectFrom('item_move')
            .select(['item_id', 'rev'])
            .where('store_id', '=', storeId)
            .where('at_ms', '<', beforeMs)
            .orderBy('at_ms')
            .limit(limit)
            .execute(),
        async (db, rows) => {
          for (const { item_id, rev } of rows)
            await db.deleteFrom('item_move').where('item_id', '=', item_id).where('rev', '=', rev).execute()
        },
      ),
    ),
}

/** Rows that agents reported. Each ledger is read from its oldest row, up to the first row that is young enough. */
const oldJournalRows: RetentionRule = {
  kind: 'protection',
  async deleteSome(scope, beforeMs) {
    const ledgers = await scope.database.reads.selectFrom('agent').select('ledger_id').limit(VISITED_LIMIT).execute()
    let deleted = 0
    for (const { ledger_id: ledgerId } of ledgers) {
      deleted += await deleteJournal(scope, ledgerId, beforeMs)
      if (deleted >= BATCH) break
      await yieldToEventLoop()
    }
    return deleted
  },
}

function deleteJournal(scope: RetentionScope, ledgerId: string, beforeMs: number): Promise<number> {
  return deleteFound(
    scope,
    async (db) => {
      const rows = await db
        .selectFrom('journal_row')
        .select(['generation', 'seq', 'received_ms'])
        .where('ledger_id', '=', ledgerId)
        .orderBy('generation')
        .orderBy('seq')
        .limit(BATCH)
        .execute()
      const young = rows.findIndex((row) => row.received_ms >= beforeMs)
      return young < 0 ? rows : rows.slice(0, young)
    },
    async (db, rows) => {
      for (const { generation, seq } of rows)
        await db
          .deleteFrom('journal_row')
          .where('ledger_id', '=', ledgerId)
          .where('generation', '=', generation)
          .where('seq', '=', seq)
          .execute()
    },
  )
}

/** Authorizations that belong to no purchase, such as releases by staff. Others end with their purchase. */
const oldAuthorizations = rule(
  'protection',
  async (db, beforeMs) => {
    const rows = await db
      .selectFrom('protection_authorization')
      .select('nonce')
      .where('purchase_id', 'is', null)
      .where('iat', '<', Math.floor(beforeMs / 1_000))
      .orderBy('iat')
      .limit(BATCH)
      .execute()
    return rows.map((row) => row.nonce)
  },
  deleteAuthorizations,
)

/** Exceptions that staff have acknowledged. Open exceptions stay. */
const oldExceptions = oldRows('protection', {
  table: 'protection_exception',
  id: 'exception_id',
  prefix: 'exc',
  time: 'acknowledged_ms',
})

/** Past outages of agents. */
const oldOutages = oldRows('protection', {
  table: 'agent_outage',
  id: 'outage_id',
  prefix: 'otg',
  time: 'ended_ms',
})

/** Names of removed operators. The rows stay, so that their numbers stay refused. */
const removedOperators = rule(
  'protection',
  (db, beforeMs) =>
    db
      .selectFrom('operator')
      .select('operator_id')
      .where('removed_ms', '<', beforeMs)
      .where('name', '<>', '')
      .limit(BATCH)
      .execute(),
  (db, rows) =>
    db
      .updateTable('operator')
      .set({ name: '', verifiers: '{}', sealed: null })
      .where(
        'operator_id',
        'in',
        rows.map((row) => row.operator_id),
      )
      .execute(),
)

/** Batches of one rule in one run. The next run continues, so a run stays short. */
const BATCHES_PER_RUN = 50

/** Entries of the audit log. */
const oldAuditEntries: RetentionRule = {
  kind: 'audit',
  deleteSome: ({ database, platform }, beforeMs) => pruneAudit(database, beforeMs, platform),
}

interface RetentionParts {
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
    oldOutages,
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
