import { firstIdAt, newId } from '../../../policy/ids.ts'
import { unfollow } from '../../shop/analytics/engagement.ts'
import { eraseMembership } from '../../sales/customers/personal-loyalty.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { readValue, writeValue } from '../../platform/persistence/installation.ts'
import { deleteSubscription } from '../../shop/push/subscriptions.ts'
import { BATCH, type RetentionRule, oldRows, rule } from './rule.ts'

/** Rules for data that names customers. Bookkeeping stays, without the customer. */

/**
 * Replaces customers by a random pseudonym. `table` is read once, in the order of the ids: a row of `installation` stores
 * the position.
 */
function pseudonymize(table: 'purchase' | 'pickup_order'): RetentionRule {
  const [id, prefix] = table === 'purchase' ? (['purchase_id', 'pur'] as const) : (['order_id', 'ord'] as const)
  const positionName = `retention/${table}`
  return {
    kind: 'customers',
    async deleteSome({ database, platform }, beforeMs) {
      const after = await readValue(database.reads, positionName)
      const rows = await database.reads
        .selectFrom(table)
        .select(`${id} as id`)
        .where(id as 'purchase_id', '>', after ?? '')
        .where(id as 'purchase_id', '<', firstIdAt(prefix, beforeMs))
        .where('created_ms', '<', beforeMs)
        .orderBy('id')
        .limit(BATCH)
        .execute()
      const last = rows.at(-1)?.id
      if (last === undefined) return 0
      await database.write(async (db) => {
        await db
          .updateTable(table)
          .set((eb) => ({ user_id: newId('anon', platform), rev: eb('rev', '+', 1) }))
          .where(
            id as 'purchase_id',
            'in',
            rows.map((row) => row.id),
          )
          .where('user_id', 'is not', null)
          .execute()
        if (table === 'pickup_order')
          await db
            .updateTable('pickup_order')
            .set({ note: null })
            .where(
              'order_id',
              'in',
              rows.map((row) => row.id),
            )
            .execute()
        await writeValue(db, positionName, last)
      })
      return rows.length
    },
  }
}

/** The customers of old purchases. */
export const purchaseCustomers = pseudonymize('purchase')
/** The customers and notes of old pick-up orders. */
export const orderCustomers = pseudonymize('pickup_order')

/** Shopping sessions. Purchases do not need them. */
export const oldSessions = oldRows('customers', {
  table: 'shopping_session',
  id: 'session_id',
  prefix: 'ses',
  time: 'created_ms',
})

/** Members that one run looks at. The next run continues after them. */
const MEMBERS_PER_RUN = 1_000

/** Memberships without any entry in the period, with their points. */
export function inactiveMembers(): RetentionRule {
  let after = { program_id: '', user_id: '' }
  return {
    kind: 'customers',
    async deleteSome({ database }, beforeMs) {
      const members = await membersAfter(database.reads, after)
      const last = members.at(-1)
      after = last && members.length === MEMBERS_PER_RUN ? last : { program_id: '', user_id: '' }
      let erased = 0
      for (const member of members.filter((each) => isInactive(each, beforeMs)))
        erased += await database.write(async (db) => {
          const [still] = await membersAfter(db, member, true)
          return still && isInactive(still, beforeMs) ? eraseMembership(db, still, BATCH) : 0
        })
      return erased
    },
  }
}

interface MemberActivity {
  readonly program_id: string
  readonly user_id: string
  readonly enrolled_ms: number
  /** Newest entry. Ids begin with their time. */
  readonly last_entry: string | null
}

function isInactive({ enrolled_ms, last_entry }: MemberActivity, beforeMs: number): boolean {
  return enrolled_ms < beforeMs && (last_entry ?? '') < firstIdAt('lte', beforeMs)
}

/** The next members in the order of program and customer, or only this member. */
function membersAfter(
  db: Db,
  { program_id, user_id }: Pick<MemberActivity, 'program_id' | 'user_id'>,
  isOnly = false,
): Promise<MemberActivity[]> {
  return db
    .selectFrom('loyalty_member as m')
    .select(({ selectFrom }) => [
      'm.program_id',
      'm.user_id',
      'm.enrolled_ms',
      selectFrom('loyalty_entry as e')
        .select((eb) => eb.fn.max('e.entry_id').as('last'))
        .whereRef('e.program_id', '=', 'm.program_id')
        .whereRef('e.user_id', '=', 'm.user_id')
        .as('last_entry'),
    ])
    .where(({ eb, refTuple, tuple }) =>
      eb(refTuple('m.program_id', 'm.user_id'), isOnly ? '=' : '>', tuple(program_id, user_id)),
    )
    .orderBy('m.program_id')
    .orderBy('m.user_id')
    .limit(isOnly ? 1 : MEMBERS_PER_RUN)
    .execute()
}

/** Follows. The reports count the end of a follow as an unfollow. */
export const oldFollows = rule(
  'customers',
  (db, beforeMs) => db.selectFrom('follower').selectAll().where('since_ms', '<', beforeMs).limit(BATCH).execute(),
  async (db, rows, scope) => {
    for (const row of rows) await unfollow({ db, nowMs: scope.nowMs }, row, row.user_id)
  },
)

/** Favourite offers of customers. */
export const oldFavorites = rule(
  'customers',
  (db, beforeMs) => db.selectFrom('offer_favorite').selectAll().where('since_ms', '<', beforeMs).limit(BATCH).execute(),
  async (db, rows) => {
    for (const { store_id, offer_id, user_id } of rows)
      await db
        .deleteFrom('offer_favorite')
        .where('store_id', '=', store_id)
        .where('offer_id', '=', offer_id)
        .where('user_id', '=', user_id)
        .execute()
  },
)

/** Push subscriptions that no app has registered again. */
export const oldSubscriptions = rule(
  'push',
  (db, beforeMs) =>
    db
      .selectFrom('push_subscription')
      .select('subscription_id')
      .where('subscription_id', '<', firstIdAt('psu', beforeMs))
      .where('updated_ms', '<', beforeMs)
      .orderBy('subscription_id')
      .limit(BATCH)
      .execute(),
  async (db, rows) => {
    for (const row of rows) await deleteSubscription(db, row.subscription_id)
  },
)

/** Completed erasures. No backup that is kept can lack them. */
export const oldErasures = oldRows('backups', { table: 'erasure', id: 'erasure_id', prefix: 'era', time: 'done_ms' })
