import type { Tenant } from '../operations/caller.ts'
import type { Call, Services } from '../operations/operation.ts'
import type { Database, Db } from '../persistence/database.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { authorizationsOf } from '../scan-and-go/cancel-purchase.ts'
import { refundPayment } from './refund-payment.ts'
import { releaseRefund } from './refunds.ts'
import { taskRunner } from './runner.ts'
import { settleWhole } from './settle-whole.ts'

/** Seconds after its end in which a token may still be honoured by a clock that is behind. */
const GUARD_MS = 60_000
const READ_LIMIT = 100

/** Lets the refunds of cancelled purchases go that have waited long enough: every token of theirs has ended, and so has what a home may still accept. */
export async function releaseRefunds(database: Database, services: Services): Promise<void> {
  const sent = database.reads.selectFrom('refund').select('purchase_id').where('kind', '=', 'whole').where('state', '=', 'due')
  const waiting = await database.reads.selectFrom('purchase').selectAll().where('refund_status', '=', 'pending').where('purchase_id', 'not in', sent).limit(READ_LIMIT).execute()
  for (const { purchase_id: purchaseId, tenant } of waiting) {
    await taskRunner(refundPayment, tenant as Tenant, database, services).step((call) => releaseOne(call, purchaseId))
  }
}

async function releaseOne(call: Call, purchaseId: string): Promise<true | undefined> {
  const { db, nowMs } = call
  const purchase = await db.selectFrom('purchase').selectAll().where('purchase_id', '=', purchaseId).executeTakeFirstOrThrow()
  if (purchase.status !== 'CANCELLED' || purchase.refund_status !== 'pending') return undefined
  const isOver = (await authorizationsOf(call, purchaseId)).every((row) => row.voided_ms !== null || row.exp * 1_000 + GUARD_MS <= nowMs)
  if (!isOver || !(await denialTaken(db, purchase))) return undefined
  const state = await releaseRefund(call, purchase)
  // Sent already: the provider has the word.
  if (state === 'sent') return undefined
  call.changed(purchaseId)
  if (state === 'none') await settleWhole(call, purchase)
  else call.afterCommit(() => call.services.paymentsDue.give())
  return true
}

/** Every agent of the store has taken the list of denials up to the one of this receipt. */
async function denialTaken(db: Db, purchase: PurchaseRow): Promise<boolean> {
  const agents = await db.selectFrom('agent').select('deny_seq').where('store_id', '=', purchase.store_id).where('revoked_ms', 'is', null).execute()
  return agents.every((agent) => agent.deny_seq >= (purchase.deny_seq ?? 0))
}
