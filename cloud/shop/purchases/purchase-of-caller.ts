import { assert } from '../../../policy/assert.ts'
import { knownCaller } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { ownStoreOf } from '../../platform/stores/own-store.ts'
import { findStore } from '../../platform/stores/queries.ts'
import type { WholePurchase } from './present.ts'
import { findPurchase, readLines } from './queries.ts'
import { refundsToShow } from './present-refunds.ts'

/**
 * Reads the purchase id from its synonyms (ADR 0002). Throws 400 if the request has no purchase id, or two that differ.
 */
export function purchaseIdOf(names: {
  transactionId?: string | undefined
  purchaseId?: string | undefined
  id?: string | undefined
}): string {
  const ids = [names.transactionId, names.purchaseId, names.id].filter((id) => id !== undefined)
  const [first] = ids
  if (first === undefined) throw invalid('transactionId', 'is missing', 'missing')
  if (ids.some((id) => id !== first)) throw invalid('transactionId', 'is sent twice with different values')
  return first
}

/** Finds a purchase of the caller. Throws 404 if the purchase is unknown, or if the caller may not see its store. */
export async function purchaseOfCaller(call: Call, purchaseId: string): Promise<WholePurchase> {
  const purchase = await findPurchase(call.db, knownCaller(call.caller).tenant, purchaseId)
  if (!purchase) throw notFound('purchase')
  const store = await ownStoreOf(call, purchase.store_id, 'purchase')
  return {
    purchase,
    store,
    lines: await readLines(call.db, purchaseId),
    refunds: await refundsToShow(call.db, purchase),
  }
}

/** Adds store, lines and refunds to a purchase row. */
export async function wholePurchase(call: Call, purchase: PurchaseRow): Promise<WholePurchase> {
  const store = await findStore(call.db, purchase.store_id)
  assert(store, `store ${purchase.store_id} is gone`)
  return {
    purchase,
    store,
    lines: await readLines(call.db, purchase.purchase_id),
    refunds: await refundsToShow(call.db, purchase),
  }
}
