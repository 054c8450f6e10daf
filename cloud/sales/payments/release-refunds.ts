import { sql, type SqlBool } from 'kysely'
import { CLOUD_LEDGER } from '../../../policy/documents/authorization.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import { isProcessed } from '../../platform/operations/process-each.ts'
import { preparedRows } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { finishCancellation } from '../checkout/cancel-purchase.ts'
import { refundPayment } from './refund-payment.ts'
import { releaseHeldRefunds } from '../../shop/purchases/refunds.ts'
import { taskRunner } from './queries.ts'
import { readPurchase } from '../../shop/purchases/queries.ts'

/** Clock guard, ms: an agent with a slow clock may accept a token for this time after the token's expiry. */
const GUARD_MS = 60_000
const READ_LIMIT = 100

/**
 * Releases the held refunds of a cancelled purchase after all its tokens ended and all agents acknowledged its entry in
 * the deny list.
 */
export async function releaseRefunds(database: Database, services: Services): Promise<void> {
  const nowMs = services.platform.clock.wall()
  let after: string | undefined = ''
  while (after !== undefined) {
    const page = await waitingAfter(database.reads, after)
    for (const purchase of page) {
      const release = async () => {
        if (!(await mayRelease(database.reads, purchase, nowMs))) return
        const task = taskRunner(refundPayment, purchase.tenant as Tenant, database, services)
        await task.step((call) => releaseOne(call, purchase.purchase_id))
      }
      await isProcessed(services.log, 'refunds of cancelled purchases', release)
    }
    after = page.length === READ_LIMIT ? page.at(-1)?.purchase_id : undefined
  }
}

/**
 * Cancelled purchases whose cancellation is not finished: a refund is held, or no refund is being sent. Reads page by
 * page, so that purchases with a long wait do not delay others.
 *
 * The query runs every few seconds. The constants of the query are literals, because SQLite prepares a statement again
 * if a parameter might change its plan.
 */
const waitingAfter = preparedRows((db, after: string) =>
  db
    .selectFrom('purchase')
    .selectAll()
    .where('refund_status', '=', sql.lit('pending'))
    .where('purchase_id', '>', after)
    .where((eb) => {
      const refunds = eb
        .selectFrom('refund')
        .select('refund_id')
        .whereRef('refund.purchase_id', '=', 'purchase.purchase_id')
      const sent = refunds.where('kind', '!=', sql.lit('late')).where('state', '=', sql.lit('due'))
      return eb.or([eb.not(eb.exists(sent)), eb.exists(refunds.where('state', '=', sql.lit('held')))])
    })
    .orderBy('purchase_id')
    .limit(READ_LIMIT),
)

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

/** True if every agent of the store has received the deny list that contains this receipt. */
async function isDenialAcknowledged(db: Db, purchase: Row<'purchase'>): Promise<boolean> {
  const agents = await db
    .selectFrom('agent')
    .select('deny_seq')
    .where('store_id', '=', purchase.store_id)
    .where('revoked_ms', 'is', null)
    .execute()
  return agents.every((agent) => agent.deny_seq >= (purchase.deny_seq ?? 0))
}
