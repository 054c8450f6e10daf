import { newId } from '../../policy/ids.ts'
import { unfollow } from '../analytics/engagement.ts'
import { deleteRequests, messagesOf } from '../assistance/queries.ts'
import { toRequest } from '../assistance/requests.ts'
import { iso, present } from '../operations/fields.ts'
import type { Call } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { Schema } from '../persistence/schema.ts'
import { eraseFromOutbox, followsOf, likesOf, purchasesOf, requestsOf, sessionsOf, type Customer } from './queries.ts'

/** Rows that are shown or erased at once. */
export const ROWS_AT_ONCE = 200

/** A page of what is kept of a customer; `next` while there may be more. */
export interface PersonalPage {
  records: object[]
  next: string | undefined
}

/**
 * A table that holds a userId. Whoever makes another one adds it here: a test finds every column named `user_id`.
 * What a customer may see is exported under `name`; what only repeats it elsewhere has none.
 */
export interface PersonalTable {
  readonly table: keyof Schema
  readonly name?: string
  /** Rows after the one that `after` names, in the order of their ids. */
  page?(db: Db, who: Customer, after: string): Promise<PersonalPage>
  /** Erases some; answers how many. 0: none is left. */
  erase(call: Pick<Call, 'db' | 'nowMs' | 'services'>, who: Customer): Promise<number>
}

function pageOf<T>(rows: readonly T[], idOf: (row: T) => string, show: (row: T) => object): PersonalPage {
  const last = rows.at(-1)
  return { records: rows.map(show), next: rows.length === ROWS_AT_ONCE && last ? idOf(last) : undefined }
}

const purchases: PersonalTable = {
  table: 'purchase',
  name: 'purchases',
  async page(db, who, after) {
    const rows = await purchasesOf(db, who, after, ROWS_AT_ONCE)
    const ids = rows.map((row) => row.purchase_id)
    const lines = ids.length === 0 ? [] : await db.selectFrom('purchase_line').selectAll().where('purchase_id', 'in', ids).orderBy('line_no').execute()
    const items = new Map<string, typeof lines>(ids.map((id) => [id, []]))
    for (const line of lines) items.get(line.purchase_id)?.push(line)
    return pageOf(
      rows,
      (row) => row.purchase_id,
      (row) => ({
        purchaseId: row.purchase_id,
        storeId: row.store_id,
        sessionId: row.session_id,
        status: row.status,
        currency: row.currency,
        totalCent: row.total_cent,
        createdAt: iso(row.created_ms),
        ...present({ completedAt: row.completed_ms === null ? null : iso(row.completed_ms) }),
        items: (items.get(row.purchase_id) ?? []).map((line) => ({ name: line.name, ...present({ ean: line.ean }), quantity: line.quantity, priceUnit: line.price_cent, vat: line.vat })),
      }),
    )
  },
  /** Books stay as they are; who bought is replaced by chance, which nothing maps back. */
  async erase({ db, services }, who) {
    const rows = await purchasesOf(db, who, '', ROWS_AT_ONCE)
    if (rows.length === 0) return 0
    await db
      .updateTable('purchase')
      .set((eb) => ({ user_id: newId('anon', services.platform), rev: eb('rev', '+', 1) }))
      .where('purchase_id', 'in', rows.map((row) => row.purchase_id))
      .execute()
    return rows.length
  },
}

const sessions: PersonalTable = {
  table: 'shopping_session',
  name: 'sessions',
  async page(db, who, after) {
    const rows = await sessionsOf(db, who, after, ROWS_AT_ONCE)
    return pageOf(rows, (row) => row.session_id, (row) => ({ sessionId: row.session_id, storeId: row.store_id, checkedInAt: iso(row.created_ms) }))
  },
  async erase({ db }, who) {
    const rows = await sessionsOf(db, who, '', ROWS_AT_ONCE)
    if (rows.length > 0) await db.deleteFrom('shopping_session').where('session_id', 'in', rows.map((row) => row.session_id)).execute()
    return rows.length
  },
}

const follows: PersonalTable = {
  table: 'follower',
  name: 'follows',
  async page(db, who, after) {
    const rows = await followsOf(db, who, after, ROWS_AT_ONCE)
    return pageOf(rows, (row) => row.store_id, (row) => ({ storeId: row.store_id, since: iso(row.since_ms) }))
  },
  /** The store has one follower less, as when somebody leaves. */
  async erase(call, who) {
    const rows = await followsOf(call.db, who, '', ROWS_AT_ONCE)
    for (const row of rows) await unfollow(call, row, who.userId)
    return rows.length
  },
}

const likes: PersonalTable = {
  table: 'offer_favorite',
  name: 'favorites',
  async page(db, who, after) {
    const rows = await likesOf(db, who, after, ROWS_AT_ONCE)
    return pageOf(rows, (row) => `${row.store_id} ${row.offer_id}`, (row) => ({ storeId: row.store_id, offerId: row.offer_id, since: iso(row.since_ms) }))
  },
  async erase({ db }, who) {
    const rows = await likesOf(db, who, '', ROWS_AT_ONCE)
    for (const row of rows) {
      await db.deleteFrom('offer_favorite').where('store_id', '=', row.store_id).where('offer_id', '=', row.offer_id).where('user_id', '=', who.userId).execute()
    }
    return rows.length
  },
}

const assistance: PersonalTable = {
  table: 'assistance_request',
  name: 'assistanceRequests',
  async page(db, who, after) {
    const rows = await requestsOf(db, who, after, ROWS_AT_ONCE)
    const messages = await messagesOf(db, rows.map((row) => row.request_id))
    return pageOf(rows, (row) => row.request_id, (row) => toRequest(row, undefined, messages.get(row.request_id) ?? []))
  },
  async erase({ db }, who) {
    const rows = await requestsOf(db, who, '', ROWS_AT_ONCE)
    await deleteRequests(db, rows.map((row) => row.request_id))
    return rows.length
  },
}

/** Events that were sent or wait to be sent carry the userId of what they tell of. */
const events: PersonalTable = {
  table: 'outbox_event',
  erase: ({ db, services }, who) => eraseFromOutbox(db, who, newId('anon', services.platform), ROWS_AT_ONCE),
}

export const PERSONAL_TABLES: readonly PersonalTable[] = [purchases, sessions, follows, likes, assistance, events]
