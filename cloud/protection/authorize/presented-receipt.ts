import { openReceipt } from '../../../policy/receipts/receipt-token.ts'
import type { Tenant } from '../../operations/caller.ts'
import type { Call } from '../../operations/operation.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import { findPurchaseOfReceipt } from '../../scan-and-go/queries.ts'

export type PresentedReceipt =
  | { ok: true; purchase: PurchaseRow }
  /** An expired one is genuine: its purchase is known. */
  | { ok: false; reason: 'token_invalid' | 'token_expired' | 'token_revoked'; purchase?: PurchaseRow }

/** The purchase behind a receipt that somebody shows, in any of the forms in which it can be read. `storeId`: where it must be from; `pastMs`: when it was shown, if not now. */
export async function readReceipt(
  call: Pick<Call, 'db' | 'services' | 'trueUntil'>,
  tenant: Tenant,
  text: string,
  { storeId, pastMs }: { storeId?: string | undefined; pastMs?: number | undefined } = {},
): Promise<PresentedReceipt> {
  const { db, services } = call
  const keys = services.authority.keysOf(tenant).ring
  const genuine = openReceipt(text, { keys, ...(storeId !== undefined && { storeId }) })
  if (!genuine.ok) return { ok: false, reason: genuine.fault === 'key_revoked' ? 'token_revoked' : 'token_invalid' }
  const purchase = await findPurchaseOfReceipt(db, Buffer.from(genuine.claims.cti).toString('hex'))
  if (purchase?.tenant !== tenant) return { ok: false, reason: 'token_invalid' }
  // In doubt about its clock the cloud says nothing of what has ended: the agent knows the time and decides alone.
  if (genuine.claims.exp * 1_000 <= (pastMs ?? services.authority.clock.nowMs()))
    return { ok: false, reason: 'token_expired', purchase }
  if (pastMs === undefined) call.trueUntil(genuine.claims.exp * 1_000)
  return { ok: true, purchase }
}
