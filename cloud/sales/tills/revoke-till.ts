import { REVOKED_TILLS_LIMIT } from '../../../policy/documents/store-documents.ts'
import { invalid, precondition } from '../../platform/foundation/failure.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { Call, StepContext } from '../../platform/operations/operation.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { raiseDocumentVersion } from '../../platform/stores/queries.ts'
import { findPurchase, readUnits, updatePurchase } from '../../shop/purchases/queries.ts'
import { isPaid } from '../../protection/authorize/item-facts.ts'
import { passUnitOf, returnUnits } from '../../protection/leases/leases.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { revokePurchaseRights } from '../checkout/cancel-purchase.ts'
import { revocationOf } from './queries.ts'

/** Sales per transaction. */
const AT_ONCE = 20
/** Units of the sales that a transaction holds; it ends after the sale that reaches this number. */
const UNITS_AT_ONCE = 2_000

/**
 * Revokes a till. Ends the rights of its sales since `sinceAt` (default: now) that gave some. The sales stay sales,
 * because their money was perhaps taken; `deny_seq` of a purchase marks that its rights ended.
 */
export async function revokeTillSales(
  work: StepContext,
  storeId: string,
  tillId: string,
  sinceAt: string | undefined,
): Promise<{ revokedMs: number; sinceMs: number; held: number }> {
  const times = await work.step(async (call) => {
    const store = await ownStore(call, storeId)
    const sentMs = sinceAt === undefined ? call.nowMs : Date.parse(sinceAt)
    if (sentMs > call.nowMs) throw invalid('sinceAt', 'is in the future')
    const [known] = await call.db
      .selectFrom('till_revocation')
      .select((eb) => eb.fn.countAll<number>().as('n'))
      .where('store_id', '=', store.store_id)
      .where('till_id', '<>', tillId)
      .execute()
    if (Number(known?.n ?? 0) >= REVOKED_TILLS_LIMIT)
      throw precondition('too_many_tills', `this store has ${REVOKED_TILLS_LIMIT} revoked tills`, { allowedNext: [] })
    const { since_ms: sinceMs, revoked_ms: revokedMs } = await call.db
      .insertInto('till_revocation')
      .values({
        store_id: store.store_id,
        till_id: tillId,
        tenant: store.tenant,
        since_ms: sentMs,
        revoked_ms: call.nowMs,
      })
      .onConflict((c) =>
        c.columns(['store_id', 'till_id']).doUpdateSet((eb) => ({
          since_ms: eb
            .case()
            .when('till_revocation.since_ms', '<', sentMs)
            .then(eb.ref('till_revocation.since_ms'))
            .else(sentMs)
            .end(),
        })),
      )
      .returning(['since_ms', 'revoked_ms'])
      .executeTakeFirstOrThrow()
    call.changed(store.store_id)
    // Agents learn it with their policy.
    await raiseDocumentVersion(call.db, store.store_id)
    call.afterCommit(() => call.services.agents.storeChanged(store.store_id))
    return { sinceMs: Number(sinceMs), revokedMs: Number(revokedMs) }
  })
  let held = 0
  let after: Stored = { storedMs: times.sinceMs, key: '' }
  for (;;) {
    const done = await holdSome(work, storeId, tillId, times.sinceMs, after)
    held += done.held
    if (done.last === undefined) return { ...times, held }
    after = done.last
    work.progress({ held })
  }
}

/** Place of a sale in the order in which the index has the sales of a till. */
interface Stored {
  readonly storedMs: number
  readonly key: string
}

/** The next sales of a till. Reads only these, however many it has. */
export function salesOfTill(db: Db, storeId: string, tillId: string, { storedMs, key }: Stored, limit: number) {
  return db
    .selectFrom('till_sale')
    .select(['sale_key', 'stored_ms', 'purchase_id'])
    .where('store_id', '=', storeId)
    .where('till_id', '=', tillId)
    .where(({ eb, refTuple, tuple }) => eb(refTuple('stored_ms', 'sale_key'), '>', tuple(storedMs, key)))
    .orderBy('stored_ms')
    .orderBy('sale_key')
    .limit(limit)
    .execute()
}

async function holdSome(work: StepContext, storeId: string, tillId: string, sinceMs: number, after: Stored) {
  return work.step(async (call) => {
    const store = await ownStore(call, storeId)
    const sales = await salesOfTill(call.db, store.store_id, tillId, after, AT_ONCE)
    let held = 0
    let units = 0
    let last = sales.length < AT_ONCE ? undefined : sales.at(-1)
    for (const [n, sale] of sales.entries()) {
      const { purchase_id: purchaseId } = sale
      const purchase = purchaseId === null ? undefined : await findPurchase(call.db, store.tenant, purchaseId)
      if (!purchase || !isPaid(purchase) || purchase.deny_seq !== null) continue
      const ofSale = await readUnits(call.db, purchase.purchase_id)
      await returnUnits(call, purchase, [...ofSale, passUnitOf(purchase)], `till/${tillId}`)
      const denySeq = await revokePurchaseRights(call, purchase)
      await updatePurchase(call.db, purchase, { deny_seq: denySeq })
      held++
      units += ofSale.length
      if (units < UNITS_AT_ONCE || n + 1 === sales.length) continue
      last = sale
      break
    }
    if (held > 0)
      await raiseException(
        { db: call.db, tenant: store.tenant, platform: call.services.platform, nowMs: call.nowMs },
        {
          storeId: store.store_id,
          kind: 'till_revoked',
          subject: `${tillId}/${sinceMs}`,
          detail: `sales of till ${tillId} are on hold since it was revoked: check its goods`,
        },
      )
    return { held, last: last && { storedMs: last.stored_ms, key: last.sale_key } }
  })
}

/**
 * Tells staff of a sale on hold that an agent stored before its till was revoked, as its earlier copy says. It stays on
 * hold, because its goods may have been sold again meanwhile.
 */
export async function tellOfHeldSale(
  call: Call,
  store: Row<'store'>,
  known: Row<'till_sale'>,
  earlierMs: number,
): Promise<void> {
  const sinceMs = (await revocationOf(call.db, store.store_id, known.till_id ?? undefined))?.since_ms
  if (known.state !== 'paid' || sinceMs === undefined || known.stored_ms < sinceMs || earlierMs >= sinceMs) return
  await raiseException(
    { db: call.db, tenant: store.tenant, platform: call.services.platform, nowMs: call.nowMs },
    {
      storeId: store.store_id,
      kind: 'sale_of_revoked_till',
      subject: known.sale_key,
      purchaseId: known.purchase_id ?? undefined,
      detail: `sale ${known.sale_id} is on hold, but an agent stored it before its till ${known.till_id ?? ''} was revoked: check its goods, which alarm`,
    },
  )
}
