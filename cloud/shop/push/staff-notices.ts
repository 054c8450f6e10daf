import { sql } from 'kysely'
import { accountOf, isRoleAtLeast, type Role, type UserRole } from '../../platform/foundation/caller.ts'
import { yieldToEventLoop } from '../../platform/operations/job-steps.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { IDLE_MS, mayUseLive } from '../../platform/users/sessions.ts'
import { roleOf, storesOf } from '../../platform/users/user-queries.ts'
import { isQueueFull, topicOf } from './queue.ts'

/**
 * Notices to staff. The transaction of an event stores one row, however many browsers the account has. The sender finds
 * the browsers later, a few notices at a time.
 */

/** Life of a notice, ms. Later the person at the door cannot act any more. */
const NOTICE_LIFE_MS = 30 * 60_000
/** Maximum number of notices of an account that wait for their browsers. */
const WAITING_LIMIT = 1_000
/** Notices that the sender reads at once for an account. The last one of a topic replaces the others. */
const READ_LIMIT = 100
/** Topics for which one transaction enqueues deliveries. */
const TOPICS_AT_ONCE = 5
/** Maximum number of browsers that get one notice. */
const RECEIVERS_LIMIT = 200
/** Maximum number of subscribed browsers that the sender reads for an account. */
const BROWSERS_LIMIT = 5_000
/** Browsers that one statement reads. */
const BROWSERS_AT_ONCE = 500

/** Reason of a notice about a colleague who needs help. */
export const HELP_AT_ALARM = 'help_at_alarm'

/** What a notice to staff is about. */
export interface StaffNotice {
  /** The same id rings each browser once. */
  readonly id: string
  /** Chooses the text: a kind of exception, or `help_at_alarm`. */
  readonly reason: string
  readonly storeId: string
  /** Page of the console to open, below `/console/`. */
  readonly page: 'alarms' | 'exceptions' | 'help'
  /** Lowest role that gets it. */
  readonly lowest: Role
  /** User who gets none, because that user caused it. */
  readonly except?: string
}

/** Content of a notice. The service worker (console/browser/worker.ts) turns it into text. */
interface NoticeBody {
  readonly id: string
  /** Kind of the exception, such as `gate_alarm`, or `help_at_alarm`. */
  readonly reason: string
  readonly storeName: string
  /** Page of the console to open. */
  readonly path: string
  /** A notice with the same tag replaces this one on the phone. */
  readonly tag: string
}

export interface NoticeScope {
  readonly db: Db
  readonly tenant: string
  readonly nowMs: number
}

/** Enqueues notices for the users who may see their stores, unless too many wait or no browser gets notices. */
export async function notifyStaff({ db, tenant, nowMs }: NoticeScope, notices: readonly StaffNotice[]): Promise<void> {
  if (notices.length === 0 || !(await hasBrowsers(db, tenant)) || (await isFull(db, tenant))) return
  const rows = notices.map(({ id, reason, storeId, page, lowest, except = null }): Row<'staff_notice'> => ({
    notice_id: `stn_${topicOf(`${tenant}/${page}/${id}`)}`,
    tenant,
    about_id: id,
    reason,
    store_id: storeId,
    page,
    lowest,
    except_id: except,
    created_ms: nowMs,
  }))
  await db
    .insertInto('staff_notice')
    .values(rows)
    .onConflict((c) => c.column('notice_id').doNothing())
    .execute()
}

async function hasBrowsers(db: Db, tenant: string): Promise<boolean> {
  const row = await db
    .selectFrom('push_subscription')
    .select('session_id')
    .where('tenant', '=', tenant)
    .where('session_id', 'is not', null)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

async function isFull(db: Db, tenant: string): Promise<boolean> {
  const last = await db
    .selectFrom('staff_notice')
    .select('notice_id')
    .where('tenant', '=', tenant)
    .orderBy('created_ms')
    .offset(WAITING_LIMIT - 1)
    .limit(1)
    .executeTakeFirst()
  return last !== undefined
}

/** Lists accounts with waiting notices. The query jumps in the index from account to account. */
export async function accountsWithNotices(db: Db): Promise<string[]> {
  const { rows } = await sql<{ tenant: string }>`
    with recursive waiting (tenant) as (
      select min(tenant) from staff_notice
      union all
      select (select min(n.tenant) from staff_notice n where n.tenant > waiting.tenant) from waiting where waiting.tenant is not null
    )
    select tenant from waiting where tenant is not null order by 1`.execute(db)
  return rows.map(({ tenant }) => tenant)
}

/**
 * Turns the oldest notices of an account into deliveries to browsers. If the queue of deliveries is full, discards them.
 */
export async function expandNotices(database: Database, tenant: string, nowMs: number): Promise<void> {
  const waiting = await database.reads
    .selectFrom('staff_notice')
    .selectAll()
    .where('tenant', '=', tenant)
    .orderBy('created_ms')
    .orderBy('notice_id')
    .limit(READ_LIMIT)
    .execute()
  if (waiting.length === 0) return
  const latest = new Map(waiting.filter((row) => isAlive(row, nowMs)).map((row) => [replacedBy(row), row]))
  const chosen = [...latest].slice(0, TOPICS_AT_ONCE)
  const isDone = new Set(chosen.map(([topic]) => topic))
  const done = waiting.filter((row) => isDone.has(replacedBy(row)) || !isAlive(row, nowMs))
  const browsers =
    chosen.length === 0 || (await isQueueFull(database.reads, tenant))
      ? []
      : await browsersOf(database.reads, tenant, nowMs)
  const work = async (db: Db) => {
    const ids = done.map((row) => row.notice_id)
    const taken = await db.deleteFrom('staff_notice').where('notice_id', 'in', ids).returning('notice_id').execute()
    const isTaken = new Set(taken.map((row) => row.notice_id))
    for (const [, notice] of chosen) {
      // Another process may have taken the notice.
      if (!isTaken.has(notice.notice_id)) continue
      const receivers = browsers.filter((browser) => mayGet(browser, notice)).slice(0, RECEIVERS_LIMIT)
      if (receivers.length > 0) await enqueue(db, notice, receivers, nowMs)
    }
  }
  await database.write(work, { holder: accountOf(tenant) })
}

function isAlive({ created_ms: createdMs }: Row<'staff_notice'>, nowMs: number): boolean {
  return nowMs < createdMs + NOTICE_LIFE_MS
}

/** A notice with the same topic replaces an older one on the phone. */
function topicOfNotice({ store_id: storeId, page, reason }: Row<'staff_notice'>): string {
  return topicOf(`${storeId}/${page === 'alarms' ? 'alarm' : reason}`)
}

/** The topic and the user who gets none: only notices to the same users replace each other before they are sent. */
function replacedBy(row: Row<'staff_notice'>): string {
  return `${topicOfNotice(row)}/${row.except_id ?? ''}`
}

/** A browser with the rights of its user. */
interface Browser {
  readonly subscriptionId: string
  readonly userId: string
  readonly role: UserRole
  /** Null means all stores of the account. */
  readonly stores: ReadonlySet<string> | null
}

function mayGet({ userId, role, stores }: Browser, notice: Row<'staff_notice'>): boolean {
  const mayRead = isRoleAtLeast(role, notice.lowest as Role) && (stores?.has(notice.store_id) ?? true)
  return mayRead && userId !== notice.except_id
}

/** Browsers with an active session of a user who may see this tenant. */
async function browsersOf(db: Db, tenant: string, nowMs: number): Promise<Browser[]> {
  const browsers: Browser[] = []
  const storesByUser = new Map<string, ReadonlySet<string> | null>()
  let after = ''
  while (browsers.length < BROWSERS_LIMIT) {
    const rows = await db
      .selectFrom('push_subscription as p')
      .innerJoin('user_session as s', 's.session_id', 'p.session_id')
      .innerJoin('console_user as u', 'u.user_id', 's.user_id')
      .select(['p.session_id', 'p.subscription_id', 's.second_factor', 'u.user_id', 'u.role', 'u.store_ids'])
      .select('u.sandbox_only')
      .where('p.tenant', '=', tenant)
      .where('p.session_id', '>', after)
      .where('p.target', '=', sql<string>`'session:' || p.session_id`)
      .where('s.state', '=', 'active')
      .where('s.expires_ms', '>', nowMs)
      .where('s.seen_ms', '>', nowMs - IDLE_MS)
      .orderBy('p.session_id')
      .limit(BROWSERS_AT_ONCE)
      .execute()
    for (const row of rows) {
      if (tenant.endsWith('.live') && !mayUseLive(row, row.second_factor === 1)) continue
      // Parses the stores once for each user.
      let stores = storesByUser.get(row.user_id)
      if (stores === undefined) {
        const own = storesOf(row)
        stores = own && new Set(own)
        storesByUser.set(row.user_id, stores)
      }
      browsers.push({ subscriptionId: row.subscription_id, userId: row.user_id, role: roleOf(row), stores })
    }
    if (rows.length < BROWSERS_AT_ONCE) break
    after = rows.at(-1)?.session_id ?? ''
    await yieldToEventLoop()
  }
  return browsers
}

async function enqueue(
  db: Db,
  notice: Row<'staff_notice'>,
  receivers: readonly Browser[],
  nowMs: number,
): Promise<void> {
  const { about_id: id, tenant, store_id: storeId, reason, page } = notice
  const store = await db.selectFrom('store').select('trading_name').where('store_id', '=', storeId).executeTakeFirst()
  // A session may have ended since its browser was read.
  const ids = receivers.map(({ subscriptionId }) => subscriptionId)
  const present = await db
    .selectFrom('push_subscription')
    .select('subscription_id')
    .where('subscription_id', 'in', ids)
    .execute()
  if (present.length === 0) return
  const tag = topicOfNotice(notice)
  const mode = tenant.endsWith('.live') ? 'live' : 'test'
  const path = `/console/${page}?mode=${mode}&store=${storeId}`
  const body: NoticeBody = { id, reason, storeName: store?.trading_name ?? '', path, tag }
  const rows = present.map(({ subscription_id }): Row<'push_delivery'> => ({
    // An event that is reported again rings again only after its first notice was sent.
    delivery_id: `pdl_${topicOf(`${id}/${subscription_id}`)}`,
    tenant,
    subscription_id,
    user_id: null,
    body: JSON.stringify(body),
    urgency: 'high',
    topic: tag,
    attempts: 0,
    due_ms: nowMs,
    lease_id: null,
    expires_ms: notice.created_ms + NOTICE_LIFE_MS,
  }))
  await db
    .insertInto('push_delivery')
    .values(rows)
    .onConflict((c) => c.column('delivery_id').doNothing())
    .execute()
}
