import { sql } from 'kysely'
import type { DenyEntry } from '../../../policy/documents/store-documents.ts'
import { PASS } from '../../../policy/receipts/receipt-claims.ts'
import type { RightClass } from '../../../policy/vocabulary.ts'
import { passOf } from './rights.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared, preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { deleteSome } from '../../platform/persistence/delete-some.ts'

/**
 * Deny list of a store: tokens, receipts and rights that its agents must not honour. Each entry has a sequence number.
 */

/** Time for which an entry outlives its token or receipt, s: clocks of agents may be slow. */
export const GUARD_SECONDS = 60
/**
 * Retention of expired entries, s. The cloud publishes only unexpired entries. If an entry expired early because the
 * clock was fast, the cloud publishes it again.
 */
const KEEP_AFTER_END = 14 * 86_400

/**
 * This query has no LIMIT, because SQLite would compile it again for each value of the limit. Compiling the query takes
 * five times as long as reading all agents.
 */
const agentsOfStore = prepared((db, p: { storeId: string }) =>
  db.selectFrom('agent').select('agent_id').where('store_id', '=', p.storeId),
)

/** True if the store ever had an agent. */
export async function hasAgents(db: Db, storeId: string): Promise<boolean> {
  return (await agentsOfStore(db, { storeId })).length > 0
}

/** Adds entries and announces them after the commit. Returns the number of the last entry. */
export async function deny(
  call: Pick<Call, 'db' | 'services' | 'afterCommit'>,
  storeId: string,
  entries: readonly DenyEntry[],
): Promise<number> {
  const { db, services } = call
  const { deny_seq: last } = await db
    .updateTable('store')
    .set((eb) => ({ deny_seq: eb('deny_seq', '+', entries.length) }))
    .where('store_id', '=', storeId)
    .returning('deny_seq')
    .executeTakeFirstOrThrow()
  const first = last - entries.length + 1
  await deleteReplaced(db, storeId, entries)
  await db
    .insertInto('deny_entry')
    .values(
      entries.map((entry, i) => ({
        store_id: storeId,
        seq: first + i,
        body: JSON.stringify(entry),
        until_s: entry.until,
        recall_cti: entry.kind === 'recall' ? entry.cti : null,
      })),
    )
    .execute()
  call.afterCommit(() => services.agents.storeChanged(storeId))
  return last
}

const ofRecalls = preparedForMany((db, ctis, p: { storeId: string }) =>
  db
    .selectFrom('deny_entry')
    .select(['seq', 'body', 'recall_cti'])
    .where('store_id', '=', p.storeId)
    .where('recall_cti', 'is not', null)
    .where('recall_cti', 'in', ctis),
)

/**
 * Deletes older entries about recalled units that the new entries replace: agents go by the newest entry of a unit. So a
 * receipt has few of them, however often its goods are recalled.
 */
async function deleteReplaced(db: Db, storeId: string, entries: readonly DenyEntry[]): Promise<void> {
  const named = new Map<string, Set<number>>()
  for (const entry of entries)
    if (entry.kind === 'recall') named.set(entry.cti, new Set([...(named.get(entry.cti) ?? []), ...entry.ordinals]))
  if (named.size === 0) return
  const replaced = (await ofRecalls(db, [...named.keys()], { storeId })).filter(({ body, recall_cti }) =>
    (JSON.parse(body) as { ordinals: number[] }).ordinals.every((each) => named.get(recall_cti ?? '')?.has(each)),
  )
  for (let n = 0; n < replaced.length; n += REPLACED_AT_ONCE)
    await db
      .deleteFrom('deny_entry')
      .where('store_id', '=', storeId)
      .where(
        'seq',
        'in',
        replaced.slice(n, n + REPLACED_AT_ONCE).map(({ seq }) => seq),
      )
      .execute()
}
const REPLACED_AT_ONCE = 500

/** Deletes entries after their retention. Their numbers are not used again. */
export function pruneDenied(db: Db, nowMs: number): Promise<number> {
  return deleteSome(
    db,
    'deny_entry',
    ['store_id', 'seq'],
    sql`until_s <= ${Math.floor(nowMs / 1_000) - KEEP_AFTER_END}`,
  )
}

/** Denies one authorization. */
export async function denyNonce(
  call: Pick<Call, 'db' | 'services' | 'afterCommit'>,
  row: Row<'protection_authorization'>,
): Promise<void> {
  await deny(call, row.store_id, [{ kind: 'nonce', nonce: row.nonce, until: row.exp + GUARD_SECONDS }])
}

/** Denies the receipt of a purchase. Returns the number of the entry; 0 if the purchase has no receipt. */
export async function denyReceipt(call: Call, purchase: Row<'purchase'>): Promise<number> {
  if (purchase.cti === null || purchase.receipt_exp === null) return 0
  return deny(call, purchase.store_id, [
    { kind: 'receipt', cti: purchase.cti, until: purchase.receipt_exp + GUARD_SECONDS },
  ])
}

/** Numbers of rights on the receipt of their purchase: of units, or of the receipt itself. */
export async function receiptOrdinals(
  db: Db,
  purchaseId: string,
  units: readonly { lineId: string; unitNo: number }[],
): Promise<number[]> {
  const rows = await db
    .selectFrom('purchase_unit')
    .select(['line_id', 'unit_no', 'receipt_index'])
    .where('purchase_id', '=', purchaseId)
    .execute()
  const indexes = new Map(rows.map((row) => [`${row.line_id}/${row.unit_no}`, row.receipt_index]))
  const pass = passOf(purchaseId)
  indexes.set(`${pass.lineId}/${pass.unitNo}`, PASS)
  return units.flatMap((unit) => indexes.get(`${unit.lineId}/${unit.unitNo}`) ?? [])
}

/** Lease of receipt rights. `ended`: the lease has ended, and the rights are free again. */
interface PublishedLease {
  nonce: string
  agentId?: string
  ended?: true
}

/** Denies receipt rights until `until` (s), because they are used or leased. */
export async function denyRights(
  call: Pick<Call, 'db' | 'services' | 'afterCommit'>,
  purchase: Row<'purchase'>,
  rightClass: RightClass,
  units: readonly { lineId: string; unitNo: number }[],
  until: number,
  lease?: PublishedLease,
): Promise<void> {
  const ordinals = await receiptOrdinals(call.db, purchase.purchase_id, units)
  if (purchase.cti === null || ordinals.length === 0) return
  const { ended, ...leasedTo } = lease ?? {}
  await deny(call, purchase.store_id, [
    {
      kind: 'right',
      cti: purchase.cti,
      rightClass,
      ordinals,
      until,
      ...(lease && { leasedTo: { nonce: lease.nonce, ...leasedTo } }),
      ...(ended && { ended }),
    },
  ])
}
