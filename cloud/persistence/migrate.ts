import { sql } from 'kysely'
import type { Db } from './database.ts'
import { FIRST } from './migrations/0001-first.ts'
import { CATALOGUE } from './migrations/0002-catalogue.ts'
import { REGISTRATIONS } from './migrations/0003-registrations.ts'
import { OFFERS } from './migrations/0004-offers.ts'
import { WEBHOOKS } from './migrations/0005-webhooks.ts'
import { LOYALTY } from './migrations/0006-loyalty.ts'
import { CLICK_AND_COLLECT } from './migrations/0007-click-and-collect.ts'
import { STOCK } from './migrations/0008-stock.ts'
import { SCAN_AND_GO } from './migrations/0009-scan-and-go.ts'
import { ANALYTICS } from './migrations/0010-analytics.ts'
import { ASSISTANCE } from './migrations/0011-assistance.ts'
import { AUDIT_CHAIN } from './migrations/0012-audit-chain.ts'
import { PAYMENTS } from './migrations/0013-payments.ts'
import { INTEGRATIONS } from './migrations/0014-integrations.ts'
import { REFUNDS_SETTLED } from './migrations/0015-refunds-settled.ts'
import { DEPOSITS_AND_MOVES } from './migrations/0016-deposits-and-moves.ts'
import { ITEM_SEQUENCE } from './migrations/0017-item-sequence.ts'
import { REFUNDS_UNDER_WAY } from './migrations/0018-refunds-under-way.ts'
import { RECONCILIATION } from './migrations/0020-reconciliation.ts'
import { KEYS_AND_HOMES } from './migrations/0021-keys-and-homes.ts'
import { RESTORES } from './migrations/0022-restores.ts'
import { SUCCESSORS } from './migrations/0024-successors.ts'
import { KEPT_BY_ITEM } from './migrations/0026-kept-by-item.ts'
import { VOIDS_AND_MOVES } from './migrations/0023-voids-and-moves.ts'
import { IDS_OF_OTHERS } from './migrations/0025-ids-of-others.ts'
import { EARNED_ON } from './migrations/0027-earned-on.ts'
import { RUNNING_REQUESTS } from './migrations/0028-running-requests.ts'
import { ENDED_DENIALS } from './migrations/0029-ended-denials.ts'
import { GOODS_BACK } from './migrations/0030-goods-back.ts'
import { SPOT_CHECKS } from './migrations/0031-spot-checks.ts'
import { APPROVALS_AND_REASONS } from './migrations/0032-approvals-and-reasons.ts'
import { GIVEN_RIGHTS } from './migrations/0033-given-rights.ts'
import { RECEIPT_HOMES } from './migrations/0034-receipt-homes.ts'
import { EVENT_POSITIONS } from './migrations/0035-event-positions.ts'
import { SALE_AND_MOVE_POSITIONS } from './migrations/0036-sale-and-move-positions.ts'
import { STORE_KEYS } from './migrations/0037-store-keys.ts'
import { PUSH } from './migrations/0038-push.ts'
import { ACCOUNT_LISTS } from './migrations/0039-account-lists.ts'
import type { Migration } from './migrations/migration.ts'

/** In the order in which they are applied; one that was released is never changed. */
const MIGRATIONS: readonly Migration[] = [
  FIRST,
  CATALOGUE,
  REGISTRATIONS,
  OFFERS,
  WEBHOOKS,
  LOYALTY,
  CLICK_AND_COLLECT,
  STOCK,
  SCAN_AND_GO,
  ANALYTICS,
  ASSISTANCE,
  AUDIT_CHAIN,
  PAYMENTS,
  INTEGRATIONS,
  REFUNDS_SETTLED,
  DEPOSITS_AND_MOVES,
  ITEM_SEQUENCE,
  REFUNDS_UNDER_WAY,
  RECONCILIATION,
  KEYS_AND_HOMES,
  RESTORES,
  VOIDS_AND_MOVES,
  SUCCESSORS,
  IDS_OF_OTHERS,
  KEPT_BY_ITEM,
  EARNED_ON,
  RUNNING_REQUESTS,
  ENDED_DENIALS,
  GOODS_BACK,
  SPOT_CHECKS,
  APPROVALS_AND_REASONS,
  GIVEN_RIGHTS,
  RECEIPT_HOMES,
  EVENT_POSITIONS,
  SALE_AND_MOVE_POSITIONS,
  STORE_KEYS,
  PUSH,
  ACCOUNT_LISTS,
]

/** Any number that no other program uses as an advisory lock on this database. */
const LOCK = 7_201_120

/** Brings the schema up to date, all in one transaction: after a power cut it is the old one or the new one. */
export async function migrate(db: Db, dialect: 'sqlite' | 'postgres'): Promise<void> {
  if (dialect === 'postgres') return db.transaction().execute((tx) => applyMissing(tx, dialect))
  await sql.raw('BEGIN IMMEDIATE').execute(db)
  try {
    await applyMissing(db, dialect)
    await sql.raw('COMMIT').execute(db)
  } catch (error) {
    // After a failed commit there may be nothing left to undo: what is told is the first error.
    await sql
      .raw('ROLLBACK')
      .execute(db)
      .catch(() => undefined)
    throw error
  }
}

async function applyMissing(db: Db, dialect: 'sqlite' | 'postgres'): Promise<void> {
  if (dialect === 'postgres') await sql.raw(`SELECT pg_advisory_xact_lock(${LOCK})`).execute(db)
  await sql.raw('CREATE TABLE IF NOT EXISTS migration (name text PRIMARY KEY)').execute(db)
  const { rows } = await sql<{ name: string }>`SELECT name FROM migration`.execute(db)
  const applied = new Set(rows.map((r) => r.name))
  const unknown = [...applied].find((name) => !MIGRATIONS.some((m) => m.name === name))
  if (unknown) throw new Error(`the database was made by a newer untag (it has "${unknown}"): upgrade this one`)
  for (const { name, statements } of MIGRATIONS) {
    if (applied.has(name)) continue
    for (const statement of statements)
      await sql.raw(dialect === 'sqlite' ? forSqlite(statement) : statement).execute(db)
    await sql`INSERT INTO migration (name) VALUES (${name})`.execute(db)
  }
}

/** SQLite's strict tables know no bigint; its integers have 64 bits anyway. Text is ordered by bytes, and a clustered table is its key. */
function forSqlite(statement: string): string {
  const text = statement
    .replaceAll(/\bbigint\b/g, 'integer')
    .replaceAll('double precision', 'real')
    .replaceAll(' COLLATE "C"', '')
  if (!/^\s*CREATE TABLE/.test(text)) return text
  return text.endsWith('/* clustered */') ? `${text} STRICT, WITHOUT ROWID` : `${text} STRICT`
}
