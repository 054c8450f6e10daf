import { LEDGER_DAYS } from '../../../policy/documents/store-documents.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'

/** How long agents keep acknowledged rows. The policies of all stores contain the number unless it is the default. */

const NAME = 'retention/ledger'

const daysNamed = prepared((db, p: { name: string }) =>
  db.selectFrom('installation').select('value').where('name', '=', p.name),
)

/** Days for which agents keep acknowledged rows, for a policy. Empty for the default. */
export async function ledgerDaysOf(db: Db): Promise<{ ledgerDays?: number }> {
  const [row] = await daysNamed(db, { name: NAME })
  const days = Number(row?.value ?? LEDGER_DAYS)
  return days === LEDGER_DAYS ? {} : { ledgerDays: days }
}

/** Stores the number of days. If it changed, every store gets a new policy. */
export async function publishLedgerDays(db: Db, days: number): Promise<void> {
  const [row] = await daysNamed(db, { name: NAME })
  if (Number(row?.value ?? LEDGER_DAYS) === days) return
  const value = String(days)
  await db
    .insertInto('installation')
    .values({ name: NAME, value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute()
  await db
    .updateTable('store')
    .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
    .execute()
}
