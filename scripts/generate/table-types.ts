import SqliteConnection from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { generate, RawExpressionNode, SqliteDialect as SqliteTypes } from 'kysely-codegen'
import { migrateSqlite } from '../../cloud/platform/persistence/migrate.ts'
import type { Schema } from '../../cloud/platform/persistence/schema.ts'

/** Columns that take fewer values than their SQL type, as TypeScript. */
const NARROWER: Readonly<Record<string, string>> = {
  'assistance_message.author': "'shopper' | 'staff'",
  'assistance_request.reason': "'shopper' | 'manual_assistance_required' | 'exception_hold' | 'alarm'",
  'assistance_request.status': "'open' | 'answered' | 'closed'",
  'payment.state': "'asking' | 'open' | 'paid' | 'ended'",
  'purchase.approval': "'awaiting' | 'approved' | 'refused' | null",
  'purchase.approval_reason': "'age' | 'spot_check' | null",
  'refund.kind': "'whole' | 'part' | 'late'",
  'refund.outside': "'refund' | 'dispute' | null",
  'refund.state': "'held' | 'due' | 'done' | 'failed'",
  'registration.kind': "'store' | 'account'",
  'registration.status': "'pending' | 'approved' | 'rejected'",
  'till_sale.state': "'open' | 'paid' | 'void'",
  'unit_right.denied': 'Generated<0 | 1>',
  'unit_right.was_given': '0 | 1',
  'user_session.state': "'active' | 'pending'",
}

/** Types of all tables, from a database that the migrations have just made. */
export async function tableTypes(): Promise<string> {
  const db = new Kysely<Schema>({ dialect: new SqliteDialect({ database: new SqliteConnection(':memory:') }) })
  try {
    await migrateSqlite(db)
    return await generate({
      // The library sees the same class by its CommonJS types.
      db: db as never,
      dialect: new SqliteTypes(),
      outFile: null,
      typeMapping: { bigint: 'number' },
      overrides: {
        columns: Object.fromEntries(
          Object.entries(NARROWER).map(([name, type]) => [name, new RawExpressionNode(type)]),
        ),
      },
    })
  } finally {
    await db.destroy()
  }
}
