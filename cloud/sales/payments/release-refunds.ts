import { sql, type SqlBool } from 'kysely'
import { CLOUD_LEDGER } from '../../../policy/documents/authorization.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import { inTurns, isProcessed } from '../../platform/operations/job-steps.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { finishCancellation } from '../checkout/cancel-purchase.ts'
import { refundPayment } from './refund-payment.ts'
import { releaseHeldRefunds } from '../../shop/purchases/refunds.ts'
import { taskRunner } from './queries.ts'
import { readPurchase } from '../../shop/purchases/queries.ts'

/** Clock guard, ms: an agent with a slow clock may accept a token for this time after the token's expiry. */
const GUARD_MS = 60_000
/** Purchases that one turn of an account looks at. */
const READ_LIMIT = 50
/** Accounts per read. Further accounts follow in the next run. */
const ACCOUNTS = 1_000

/** A store whose purchases are looked at, and the last one. */
interface Place {
  readonly storeId: string
  readonly denySeq: number
  readonly purchaseId: string
}

/**
 * Releases the held refunds of a cancelled purchase after all its tokens ended and all agents acknowledged its entry in
 * the deny list. Returns true if more may be due.
 */
export function releaseRefunds(database: Database, services: Services): Promise<boolean> {
  const nowMs = services.platform.clock.wall()
  return inTurns<Place>(database, services, {
    job: JOB,
    accounts: accountsWithPending,
    async turn(tenant, place) {
      const from = place ?? (await nextStore(database.reads, tenant, ''))
      if (from === undefined) return undefined
      const page = await nextPending(database.reads, tenant, from)
      for (const purchase of page)
        await isProcessed(services.log, JOB, async () => {
          if (Number(purchase.waits) === 1 || !(await mayRelease(database.reads, purchase, nowMs))) return
          const task = taskRunner(refundPayment, purchase.tenant as Tenant, database, services)
          await task.step((call) => releaseOne(call, purchase.purchase_id))
        })
      const last = page.at(-1)
      return last && page.length === READ_LIMIT
        ? { storeId: from.storeId, denySeq: last.deny_seq ?? 0, purchaseId: last.purchase_id }
        : nextStore(database.reads, tenant, from.storeId)
    },
  })
}

const JOB = 'refunds of cancelled purchases'

// The literals let SQLite use the partial index.
const IS_PENDING = sql<SqlBool>`refund_status = 'pending'`
/** Number of the purchase's entry in the deny list; 0: it has no receipt. */
const DENY_SEQ = sql<number>`coalesce(deny_seq, 0)`

async function accountsWithPending(db: Db): Promise<string[]> {
  const rows = await db.selectFrom('purchase').select('tenant').distinct().where(IS_PENDING).limit(ACCOUNTS).execute()
  return rows.map(({ tenant }) => tenant)
}

/** The account's next store, after this one, with cancelled purchases whose cancellation is not finished. */
async function nextStore(db: Db, tenant: string, after: string): Promise<Place | undefined> {
  const row = await db
    .selectFrom('purchase')
    .select('store_id')
    .where(IS_PENDING)
    .where('tenant', '=', tenant)
    .where('store_id', '>', after)
    .orderBy('store_id')
    .limit(1)
    .executeTakeFirst()
  return row && { storeId: row.store_id, denySeq: -1, purchaseId: '' }
}

/**
 * The store's next cancelled purchases whose cancellation is not finished. `waits`: 1 if no refund is held, and one is
 * being sent. Does not read purchases of which some agent must still hear, because an agent may be switched off for
 * months.
 */
async function nextPending(db: Db, tenant: string, { storeId, denySeq, purchaseId }: Place) {
  const agents = await heardOf(db, { storeId })
  const heard = Math.min(Number.MAX_SAFE_INTEGER, ...agents.map((agent) => agent.deny_seq))
  return db
    .selectFrom('purchase')
    .selectAll()
    .select(
      sql<number>`CASE WHEN EXISTS (SELECT 1 FROM refund r
          WHERE r.purchase_id = purchase.purchase_id AND r.kind <> 'late' AND r.state = 'due')
        AND NOT EXISTS (SELECT 1 FROM refund r WHERE r.purchase_id = purchase.purchase_id AND r.state = 'held')
        THEN 1 ELSE 0 END`.as('waits'),
    )
    .where(IS_PENDING)
    .where('tenant', '=', tenant)
    .where('store_id', '=', storeId)
    .where(sql<SqlBool>`(${DENY_SEQ}, purchase_id) > (${denySeq}, ${purchaseId})`)
    .where(DENY_SEQ, '<=', heard)
    .orderBy(DENY_SEQ)
    .orderBy('purchase_id')
    .limit(READ_LIMIT)
    .execute()
}

async function releaseOne(call: Call, purchaseId: string): Promise<true | undefined> {
  const { db, nowMs } = call
  const purchase = await readPurchase(db, purchaseId)
  if (purchase.status !== 'CANCELLED' || purchase.refund_status !== 'pending') return undefined
  if (!(await mayRelease(db, purchase, nowMs))) return undefined
  const state = await releaseHeldRefunds(call, purchase)
  // All refunds are already sent, so the result of the last refund ends the cancellation.
  if (state === 'sent') return undefined
  call.changed(purchaseId)
  if (state === 'none') await finishCancellation(call, purchase)
  else call.afterCommit(() => call.services.paymentsDue.notify())
  return true
}

/** True if each token of the purchase is void, used up or expired, and all agents have acknowledged the denial. */
async function mayRelease(db: Db, purchase: Row<'purchase'>, nowMs: number): Promise<boolean> {
  return !(await hasUsableToken(db, purchase, nowMs)) && (await isDenialAcknowledged(db, purchase))
}

/**
 * True if a ledger may accept a token of the purchase again. The cloud's own ledger rejects revoked tokens. For other
 * tokens, the cloud needs evidence of all steps.
 */
async function hasUsableToken(db: Db, { purchase_id }: Row<'purchase'>, nowMs: number): Promise<boolean> {
  const token = await db
    .selectFrom('protection_authorization as a')
    .select('a.nonce')
    .where('a.purchase_id', '=', purchase_id)
    .where('a.voided_ms', 'is', null)
    .where('a.exp', '>', Math.floor((nowMs - GUARD_MS) / 1_000))
    .where(
      sql<SqlBool>`CASE WHEN a.ledger = ${CLOUD_LEDGER} THEN a.revoked_ms IS NULL
        ELSE (SELECT COUNT(DISTINCT r.step) FROM redemption r WHERE r.nonce = a.nonce) < a.count END`,
    )
    .limit(1)
    .executeTakeFirst()
  return token !== undefined
}

const heardOf = prepared((db, p: { storeId: string }) =>
  db.selectFrom('agent').select('deny_seq').where('store_id', '=', p.storeId).where('revoked_ms', 'is', null),
)

/** True if every agent of the store has received the deny list that contains this receipt. */
async function isDenialAcknowledged(db: Db, purchase: Row<'purchase'>): Promise<boolean> {
  const agents = await heardOf(db, { storeId: purchase.store_id })
  return agents.every((agent) => agent.deny_seq >= (purchase.deny_seq ?? 0))
}
