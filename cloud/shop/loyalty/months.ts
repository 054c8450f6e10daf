import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'

const add = prepared((db, p: Row<'loyalty_month'>) =>
  db
    .insertInto('loyalty_month')
    .values({ program_id: p.program_id, month: p.month, kind: p.kind, amount: p.amount, entries: p.entries })
    .onConflict((c) =>
      c.columns(['program_id', 'month', 'kind']).doUpdateSet((eb) => ({
        amount: eb('loyalty_month.amount', '+', eb.ref('excluded.amount')),
        entries: eb('loyalty_month.entries', '+', eb.ref('excluded.entries')),
      })),
    ),
)

/** Adds to the monthly figures of a program. Call it in the transaction of the entry or of the new member (`join`). */
export async function addToMonth(
  db: Db,
  { program_id, month, kind, amount, entries }: Row<'loyalty_month'>,
): Promise<void> {
  await add(db, { program_id, month, kind, amount, entries })
}

/** Monthly figures of programs. The number of rows depends on the number of months, not on the size of the ledger. */
export async function monthsOf(db: Db, programIds: readonly string[]): Promise<Row<'loyalty_month'>[]> {
  if (programIds.length === 0) return []
  return db
    .selectFrom('loyalty_month')
    .selectAll()
    .where('program_id', 'in', programIds)
    .orderBy('program_id')
    .orderBy('month')
    .execute()
}
