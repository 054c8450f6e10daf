import { sql } from 'kysely'
import type { Database } from '../persistence/database.ts'
import type { Sealer } from './sealing.ts'

/** A database column with sealed texts. Add it to `SEALED_COLUMNS` when you seal a new column. */
interface SealedColumn {
  readonly table: string
  /** Column with the id of the row. */
  readonly id: string
  readonly column: string
  /** Context that the sealed text is bound to. */
  contextOf(id: string): string
}

const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'sealed_secret', id: 'name', column: 'sealed', contextOf: (name) => name },
  { table: 'signing_key', id: 'kid', column: 'sealed', contextOf: (kid) => `signing_key/${kid}` },
  { table: 'psp_config', id: 'config_id', column: 'sealed', contextOf: (id) => `psp_config/${id}` },
  {
    table: 'integration_connection',
    id: 'connection_id',
    column: 'sealed',
    contextOf: (id) => `integration_connection/${id}`,
  },
  { table: 'erasure', id: 'erasure_id', column: 'sealed', contextOf: (id) => `erasure/${id}` },
  { table: 'store_key', id: 'store_id', column: 'sealed', contextOf: (id) => `store_key/${id}` },
  { table: 'operator', id: 'operator_id', column: 'sealed', contextOf: (id) => `operator/${id}` },
  { table: 'webhook', id: 'webhook_id', column: 'secret', contextOf: (id) => `webhook/${id}` },
  { table: 'webhook', id: 'webhook_id', column: 'old_secret', contextOf: (id) => `webhook/${id}` },
  { table: 'console_user', id: 'user_id', column: 'totp_secret', contextOf: (id) => `console_user/${id}` },
  { table: 'user_session', id: 'session_id', column: 'totp_next', contextOf: (id) => `user_session/${id}` },
  {
    table: 'push_subscription',
    id: 'subscription_id',
    column: 'sealed',
    contextOf: (id) => `push_subscription/${id}`,
  },
]

/** Maximum number of rows per transaction. */
const PAGE = 200

/** Seals each text of an older key again with the newest key. Returns the number of texts. May be repeated. */
export async function resealAll(database: Database, sealer: Sealer): Promise<number> {
  let count = 0
  for (const column of SEALED_COLUMNS) {
    let after: string | undefined = ''
    while (after !== undefined) {
      const page = await resealPage(database, column, after, sealer)
      count += page.count
      after = page.next
    }
  }
  return count
}

function resealPage(
  database: Database,
  { table, id, column, contextOf }: SealedColumn,
  after: string,
  sealer: Sealer,
): Promise<{ count: number; next: string | undefined }> {
  const [from, key, text] = [sql.table(table), sql.ref(id), sql.ref(column)]
  return database.write(async (db) => {
    const { rows } = await sql<{
      id: string
      sealed: string | null
    }>`SELECT ${key} AS id, ${text} AS sealed FROM ${from} WHERE ${key} > ${after} ORDER BY ${key} LIMIT ${PAGE}`.execute(
      db,
    )
    const old = rows.flatMap((row) =>
      row.sealed === null || sealer.isCurrent(row.sealed) ? [] : [{ id: row.id, sealed: row.sealed }],
    )
    for (const row of old) {
      const context = contextOf(row.id)
      const sealed = sealer.seal(sealer.open(row.sealed, context), context)
      // If the row changed meanwhile, this update has no effect, because the other writer sealed the text with the
      // newest key.
      await sql`UPDATE ${from} SET ${text} = ${sealed} WHERE ${key} = ${row.id} AND ${text} = ${row.sealed}`.execute(db)
    }
    return { count: old.length, next: rows.length === PAGE ? rows.at(-1)?.id : undefined }
  })
}
