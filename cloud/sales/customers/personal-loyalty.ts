import { iso, definedFields } from '../../platform/operations/fields.ts'
import { addToMonth } from '../../shop/loyalty/queries.ts'
import { amountOf } from '../../shop/loyalty/program.ts'
import type { ProgramType } from '../../shop/loyalty/schema.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { erased, personalPage, ROWS_AT_ONCE, type Customer, type PersonalTable } from './personal-table.ts'

function membershipsOf(db: Db, { tenant, userId }: Customer, after: string) {
  const programs = db.selectFrom('loyalty_program').select('program_id').where('tenant', '=', tenant)
  const own = db
    .selectFrom('loyalty_member')
    .selectAll()
    .where('program_id', 'in', programs)
    .where('user_id', '=', userId)
  return own.where('program_id', '>', after).orderBy('program_id').limit(ROWS_AT_ONCE).execute()
}

/**
 * Ledger entries of a customer after position `{programId} {entryId}`. Filters by program, so that the query uses the
 * ledger's index.
 */
function entriesOf(db: Db, { tenant, userId }: Customer, after: string) {
  const [programId = '', entryId = ''] = after.split(' ')
  const programs = db.selectFrom('loyalty_program').select('program_id').where('tenant', '=', tenant)
  const own = db
    .selectFrom('loyalty_entry')
    .selectAll()
    .where('program_id', 'in', programs)
    .where('user_id', '=', userId)
  const rest = own.where((eb) =>
    eb.or([eb('program_id', '>', programId), eb.and([eb('program_id', '=', programId), eb('entry_id', '>', entryId)])]),
  )
  return rest.orderBy('program_id').orderBy('entry_id').limit(ROWS_AT_ONCE).execute()
}

/** Converts units to the amounts of the API, by program. */
async function amountsFor(
  db: Db,
  rows: readonly { program_id: string }[],
): Promise<(programId: string, units: number) => number> {
  const ids = [...new Set(rows.map((row) => row.program_id))]
  const programs =
    ids.length === 0
      ? []
      : await db.selectFrom('loyalty_program').select(['program_id', 'type']).where('program_id', 'in', ids).execute()
  const types = new Map(programs.map(({ program_id, type }) => [program_id, type as ProgramType]))
  return (programId, units) => amountOf(types.get(programId) ?? 'points', units)
}

const ENTRY = ['program_id', 'month', 'kind', 'amount'] as const

/** Subtracts erased entries from the monthly figures. */
async function subtractFromMonths(
  db: Db,
  erased: readonly Pick<Row<'loyalty_month'>, (typeof ENTRY)[number]>[],
): Promise<void> {
  for (const entry of erased) await addToMonth(db, { ...entry, amount: -entry.amount, entries: -1 })
}

/**
 * Ledger entries of a customer. `PERSONAL_TABLES` lists this table before the memberships, because
 * erasure follows the order of `PERSONAL_TABLES`.
 */
export const loyaltyEntries: PersonalTable = {
  table: 'loyalty_entry',
  name: 'loyaltyEntries',
  async page(db, who, after) {
    const rows = await entriesOf(db, who, after)
    const amount = await amountsFor(db, rows)
    return personalPage(
      rows,
      (row) => `${row.program_id} ${row.entry_id}`,
      (row) => ({
        entryId: row.entry_id,
        programId: row.program_id,
        kind: row.kind,
        amount: amount(row.program_id, row.amount),
        balance: amount(row.program_id, row.balance),
        at: iso(row.at_ms),
        ...definedFields({ source: row.source, transactionId: row.transaction_id, rewardId: row.reward_id }),
      }),
    )
  },
  async erase({ db }, who) {
    const ids = (await entriesOf(db, who, '')).map((row) => row.entry_id)
    if (ids.length > 0)
      await subtractFromMonths(
        db,
        await db.deleteFrom('loyalty_entry').where('entry_id', 'in', ids).returning(ENTRY).execute(),
      )
    return erased(ids.length)
  },
}

export const loyaltyMemberships: PersonalTable = {
  table: 'loyalty_member',
  name: 'loyaltyMemberships',
  async page(db, who, after) {
    const rows = await membershipsOf(db, who, after)
    const amount = await amountsFor(db, rows)
    const show = (row: (typeof rows)[number]) => ({
      programId: row.program_id,
      balance: amount(row.program_id, row.balance),
      enrolledAt: iso(row.enrolled_ms),
    })
    return personalPage(rows, (row) => row.program_id, show)
  },
  async erase({ db }, who) {
    const rows = await membershipsOf(db, who, '')
    // Erases entries that were written since the ledger was erased.
    for (const { program_id } of rows)
      while ((await eraseMembership(db, { program_id, user_id: who.userId }, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
    return erased(rows.length)
  },
}

/**
 * Erases at most `limit` entries of a member, oldest first, and after the last entry the member. Returns the number of
 * erased rows; `limit` if entries may be left.
 */
export async function eraseMembership(
  db: Db,
  { program_id, user_id }: { program_id: string; user_id: string },
  limit: number,
): Promise<number> {
  const entries = await db
    .selectFrom('loyalty_entry')
    .select('entry_id')
    .where('program_id', '=', program_id)
    .where('user_id', '=', user_id)
    .orderBy('entry_id')
    .limit(limit)
    .execute()
  const ids = entries.map((row) => row.entry_id)
  if (ids.length > 0)
    await subtractFromMonths(
      db,
      await db.deleteFrom('loyalty_entry').where('entry_id', 'in', ids).returning(ENTRY).execute(),
    )
  if (ids.length === limit) return limit
  const members = await db
    .deleteFrom('loyalty_member')
    .where('program_id', '=', program_id)
    .where('user_id', '=', user_id)
    .returning(['program_id', 'month'])
    .execute()
  await subtractFromMonths(
    db,
    members.map((member) => ({ ...member, kind: 'join', amount: 0 })),
  )
  return ids.length + members.length
}
