import { sql } from 'kysely'
import type { Page } from '../../platform/operations/paging.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { preparedRow, preparedRows, prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** Program of the tenant. */
export const findProgram = preparedRow((db, tenant: string, programId: string) =>
  db.selectFrom('loyalty_program').selectAll().where('program_id', '=', programId).where('tenant', '=', tenant),
)

/** Active programs of a store. */
export const activePrograms = preparedRows((db, storeId: string) =>
  db
    .selectFrom('loyalty_program')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('is_active', '=', 1)
    .orderBy('program_id'),
)

/** All programs of a store, the oldest first. */
export function programsOfStore(db: Db, storeId: string): Promise<Row<'loyalty_program'>[]> {
  return db.selectFrom('loyalty_program').selectAll().where('store_id', '=', storeId).orderBy('program_id').execute()
}

/** Programs of a tenant; `storeIds` limits them to these stores. */
interface ProgramFilter {
  tenant: string
  storeIds: readonly string[] | null
  isActive?: boolean | undefined
}

function filtered(db: Db, { tenant, storeIds, isActive }: ProgramFilter) {
  let query = db.selectFrom('loyalty_program').where('tenant', '=', tenant)
  if (storeIds) query = query.where('store_id', 'in', storeIds.length === 0 ? ['-'] : storeIds)
  if (isActive !== undefined) query = query.where('is_active', '=', isActive ? 1 : 0)
  return query
}

/** A page of programs sorted by id, which is the order of creation. */
export function listPrograms(
  db: Db,
  filter: ProgramFilter,
  { after = '', limit, offset }: Page,
): Promise<Row<'loyalty_program'>[]> {
  return filtered(db, filter)
    .selectAll()
    .where('program_id', '>', after)
    .orderBy('program_id')
    .limit(limit)
    .offset(offset)
    .execute()
}

/** Number of programs. */
export async function countPrograms(db: Db, filter: ProgramFilter): Promise<number> {
  const { count } = await filtered(db, filter)
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Inserts or updates a program. */
export async function saveProgram(db: Db, row: Row<'loyalty_program'>): Promise<void> {
  const { program_id: _id, ...change } = row
  await db
    .insertInto('loyalty_program')
    .values(row)
    .onConflict((c) => c.column('program_id').doUpdateSet(change))
    .execute()
}

/** Membership of a customer; undefined before the first earning. */
export const findMember = preparedRow((db, programId: string, userId: string) =>
  db.selectFrom('loyalty_member').selectAll().where('program_id', '=', programId).where('user_id', '=', userId),
)

/** Member of any tenant whose card has this hash. */
export const findMemberByCard = preparedRow((db, cardHash: string) =>
  db.selectFrom('loyalty_member').selectAll().where('card_hash', '=', cardHash),
)

/** Program of a member of any tenant. */
export function programOfMember(
  db: Db,
  { program_id }: Pick<Row<'loyalty_member'>, 'program_id'>,
): Promise<Row<'loyalty_program'> | undefined> {
  return db.selectFrom('loyalty_program').selectAll().where('program_id', '=', program_id).executeTakeFirst()
}

/** Stores the card of a member. It replaces the card before. */
export async function saveCard(
  db: Db,
  { program_id, user_id, card_number, card_hash }: Row<'loyalty_member'>,
): Promise<void> {
  await db
    .updateTable('loyalty_member')
    .set({ card_number, card_hash })
    .where('program_id', '=', program_id)
    .where('user_id', '=', user_id)
    .execute()
}

/** Inserts a member. Returns false if the customer is already a member. */
export async function enrolMember(db: Db, member: Row<'loyalty_member'>): Promise<boolean> {
  const made = await db
    .insertInto('loyalty_member')
    .values(member)
    .onConflict((c) => c.columns(['program_id', 'user_id']).doNothing())
    .returning('user_id')
    .execute()
  if (made.length === 0) return false
  await addToMonth(db, { program_id: member.program_id, month: member.month, kind: 'join', amount: 0, entries: 1 })
  return true
}

/**
 * Changes a balance and returns the new balance. If the new balance would be negative, changes nothing and returns
 * undefined.
 */
export async function moveBalance(
  db: Db,
  programId: string,
  userId: string,
  units: number,
  expiresMs: number | null = null,
): Promise<number | undefined> {
  const row = await db
    .updateTable('loyalty_member')
    .set((eb) => ({
      balance: eb('balance', '+', units),
      ...(expiresMs !== null && {
        next_expiry_ms: sql<number>`CASE WHEN next_expiry_ms IS NULL OR next_expiry_ms > ${expiresMs} THEN ${expiresMs} ELSE next_expiry_ms END`,
      }),
    }))
    .where('program_id', '=', programId)
    .where('user_id', '=', userId)
    .where((eb) => eb(eb('balance', '+', units), '>=', 0))
    .returning('balance')
    .executeTakeFirst()
  return row?.balance
}

/** Records a check-in. Returns false if the last check-in of this kind is too recent. */
export async function recordCheckIn(
  db: Db,
  programId: string,
  userId: string,
  column: 'last_qr_ms' | 'last_visit_ms',
  nowMs: number,
  waitMs: number,
): Promise<boolean> {
  const rows = await db
    .updateTable('loyalty_member')
    .set({ [column]: nowMs })
    .where('program_id', '=', programId)
    .where('user_id', '=', userId)
    .where((eb) => eb.or([eb(column, 'is', null), eb(column, '<=', nowMs - waitMs)]))
    .returning('user_id')
    .execute()
  return rows.length > 0
}

/** Appends an entry to the ledger. Entries never change. */
export async function insertEntry(db: Db, entry: Row<'loyalty_entry'>): Promise<void> {
  await db.insertInto('loyalty_entry').values(entry).execute()
  await addToMonth(db, { ...entry, entries: 1 })
}

/** Earning of a transaction in a program. */
export const findEarned = preparedRow((db, programId: string, transactionId: string) =>
  db
    .selectFrom('loyalty_entry')
    .selectAll()
    .where('program_id', '=', programId)
    .where('transaction_id', '=', transactionId)
    .where('kind', '=', sql.lit('earn')),
)

/** Earnings of a transaction in all programs. */
export function earnedByTransaction(db: Db, tenant: string, transactionId: string): Promise<Row<'loyalty_entry'>[]> {
  return db
    .selectFrom('loyalty_entry')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('transaction_id', '=', transactionId)
    .where('kind', '=', 'earn')
    .orderBy('program_id')
    .execute()
}

/** Units of an earning that were already reversed. */
export async function reversedOf(db: Db, earned: Row<'loyalty_entry'>): Promise<number> {
  const { sum } = await db
    .selectFrom('loyalty_entry')
    .where('reverses', '=', earned.entry_id)
    .select((eb) => eb.fn.sum<number | null>('amount').as('sum'))
    .executeTakeFirstOrThrow()
  return -Number(sum ?? 0)
}

/** Accounts that have members with due expiries. */
export async function accountsToExpire(db: Db, nowMs: number): Promise<string[]> {
  const rows = await db
    .selectFrom('loyalty_program as p')
    .select('p.tenant')
    .distinct()
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('loyalty_member as m')
          .select('m.user_id')
          .whereRef('m.program_id', '=', 'p.program_id')
          .where('m.next_expiry_ms', '<=', nowMs),
      ),
    )
    .limit(1_000)
    .execute()
  return rows.map(({ tenant }) => tenant)
}

/** Members of an account's programs with due expiries. */
export function membersToExpire(
  db: Db,
  tenant: string,
  nowMs: number,
  { limit, offset }: { limit: number; offset: number },
): Promise<Row<'loyalty_member'>[]> {
  const programs = db.selectFrom('loyalty_program').select('program_id').where('tenant', '=', tenant)
  return db
    .selectFrom('loyalty_member')
    .selectAll()
    .where('program_id', 'in', programs)
    .where('next_expiry_ms', '<=', nowMs)
    .orderBy('program_id')
    .orderBy('next_expiry_ms')
    .orderBy('user_id')
    .limit(limit)
    .offset(offset)
    .execute()
}

/** Sets the time of a member's next expiry. */
export async function setNextExpiry(
  db: Db,
  { program_id, user_id }: Row<'loyalty_member'>,
  next_expiry_ms: number | null,
): Promise<void> {
  await db
    .updateTable('loyalty_member')
    .set({ next_expiry_ms })
    .where('program_id', '=', program_id)
    .where('user_id', '=', user_id)
    .execute()
}

type MemberKey = Pick<Row<'loyalty_member'>, 'program_id' | 'user_id'>

/**
 * Units that are due to expire. Earlier spending is subtracted from the oldest earnings first. A reversal reduces the
 * earning to which it belongs.
 */
export async function expiredUnits(db: Db, { program_id, user_id }: MemberKey, nowMs: number): Promise<number> {
  const ledger = db.selectFrom('loyalty_entry').where('program_id', '=', program_id).where('user_id', '=', user_id)
  const expired = ledger.where('kind', '=', 'earn').where('expires_ms', '<=', nowMs)
  const { sum } = await ledger
    .where((eb) =>
      eb.or([
        eb('kind', 'in', ['redeem', 'expire']),
        eb.and([eb('kind', '=', 'earn'), eb('expires_ms', '<=', nowMs)]),
        eb.and([eb('kind', '=', 'reverse'), eb('reverses', 'in', expired.select('entry_id'))]),
      ]),
    )
    .select((eb) => eb.fn.sum<number | null>('amount').as('sum'))
    .executeTakeFirstOrThrow()
  return Math.max(0, Number(sum ?? 0))
}

/** Time of a member's next expiry, ms since 1970; null if there is none. */
export async function nextExpiry(db: Db, { program_id, user_id }: MemberKey, nowMs: number): Promise<number | null> {
  const ledger = db.selectFrom('loyalty_entry').where('program_id', '=', program_id).where('user_id', '=', user_id)
  const { next } = await ledger
    .where('kind', '=', 'earn')
    .where('expires_ms', '>', nowMs)
    .select((eb) => eb.fn.min<number | null>('expires_ms').as('next'))
    .executeTakeFirstOrThrow()
  return next
}

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
