import { sql, type SqlBool } from 'kysely'
import type { DenyEntry } from '../../../policy/documents/store-documents.ts'
import type { RightClass } from '../../../policy/vocabulary.ts'
import { runJobStep, type JobCall, inTurns } from '../../platform/operations/job-steps.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { groupBy, type Database, type Db } from '../../platform/persistence/database.ts'
import { preparedForMany } from '../../platform/persistence/prepared.ts'
import { PASS } from '../../../policy/receipts/receipt-claims.ts'
import { deny } from '../rights/deny-list.ts'
import { isPass } from '../rights/rights.ts'

/**
 * Denies every used right of a store's valid receipts, for a move of its receipt home (home-move.ts). There may be tens
 * of thousands, so the operation denies some of them and the job the others. `home_move.denied_after` says where the job
 * goes on; null: all are denied. `unit_right.denied` marks rights that the deny list has, so that another move does not
 * repeat them.
 */

const GUARD_SECONDS = 60
/** Receipts that one transaction looks at, and rights that it denies. */
const AT_ONCE = { receipts: 500, rights: 1_000 }
/** Accounts per read. Further accounts follow in the next run. */
const ACCOUNTS = 1_000

/** Starts again with the first receipt. */
export async function restartDenial({ db }: Pick<JobCall, 'db'>, storeId: string): Promise<void> {
  await db.updateTable('home_move').set({ denied_after: '' }).where('store_id', '=', storeId).execute()
}

/** True if rights are still to be denied for the store's move. */
export async function isDenying(db: Db, storeId: string): Promise<boolean> {
  const move = await db
    .selectFrom('home_move')
    .select('denied_after')
    .where('store_id', '=', storeId)
    .executeTakeFirst()
  return move !== undefined && move.denied_after !== null
}

/** Denies the next rights. Returns false if none are left. */
export async function denyNextRights(call: JobCall, storeId: string): Promise<boolean> {
  const { db } = call
  // The update locks the row, so that two processes do not deny the same rights.
  const move = await db
    .updateTable('home_move')
    .set((eb) => ({ denied_after: eb.ref('denied_after') }))
    .where('store_id', '=', storeId)
    .where('denied_after', 'is not', null)
    .returning('denied_after')
    .executeTakeFirst()
  if (!move) return false
  const { receipts, last } = await nextReceipts(call, storeId, move.denied_after ?? '')
  await denyRightsOf(call, storeId, receipts)
  await db.updateTable('home_move').set({ denied_after: last }).where('store_id', '=', storeId).execute()
  return last !== null
}

interface Receipt {
  readonly purchase_id: string
  readonly cti: string | null
  readonly receipt_exp: number | null
}

/** The next receipts with rights to deny. `last`: where to go on; null after the last receipt. */
async function nextReceipts(
  { db, nowMs }: JobCall,
  storeId: string,
  after: string,
): Promise<{ receipts: Receipt[]; last: string | null }> {
  const [exp = '0', id = ''] = after === '' ? [] : after.split(' ')
  const found = await db
    .selectFrom('purchase')
    .select(['purchase_id', 'cti', 'receipt_exp'])
    .where('store_id', '=', storeId)
    .where('receipt_exp', '>', Math.floor(nowMs / 1_000))
    .where(sql<SqlBool>`(receipt_exp, purchase_id) > (${Number(exp)}, ${id})`)
    .orderBy('receipt_exp')
    .orderBy('purchase_id')
    .limit(AT_ONCE.receipts)
    .execute()
  const counts = await countRights(
    db,
    found.map((receipt) => receipt.purchase_id),
  )
  const rightsOf = new Map(counts.map((row) => [row.purchase_id, Number(row.rights)]))
  let rights = 0
  for (const [n, { purchase_id, receipt_exp }] of found.entries()) {
    rights += rightsOf.get(purchase_id) ?? 0
    const isLast = n + 1 === found.length && found.length < AT_ONCE.receipts
    if (isLast || (rights < AT_ONCE.rights && n + 1 < found.length)) continue
    const receipts = found.slice(0, n + 1).filter((receipt) => rightsOf.has(receipt.purchase_id))
    return { receipts, last: `${receipt_exp ?? 0} ${purchase_id}` }
  }
  return { receipts: found.filter((receipt) => rightsOf.has(receipt.purchase_id)), last: null }
}

// SQL literals, because SQLite would not use the partial index with parameters.
const TO_DENY = sql<SqlBool>`unit_right.state = 'used' AND unit_right.denied = 0`

const countRights = preparedForMany((db, purchaseIds) =>
  db
    .selectFrom('unit_right')
    .select(['purchase_id', (eb) => eb.fn.countAll().as('rights')])
    .where('purchase_id', 'in', purchaseIds)
    .where(TO_DENY)
    .groupBy('purchase_id'),
)
const rightsToDeny = preparedForMany((db, purchaseIds) =>
  db
    .selectFrom('unit_right')
    .leftJoin('purchase_unit as u', (join) =>
      join.onRef('u.line_id', '=', 'unit_right.line_id').onRef('u.unit_no', '=', 'unit_right.unit_no'),
    )
    .select(['unit_right.purchase_id', 'unit_right.line_id', 'unit_right.right_class', 'u.receipt_index'])
    .where('unit_right.purchase_id', 'in', purchaseIds)
    .where(TO_DENY)
    .orderBy('u.receipt_index'),
)
const markDenied = preparedForMany((db, purchaseIds) =>
  db.updateTable('unit_right').set({ denied: 1 }).where('purchase_id', 'in', purchaseIds).where(TO_DENY),
)

async function denyRightsOf(call: JobCall, storeId: string, receipts: readonly Receipt[]): Promise<void> {
  const ids = receipts.map((receipt) => receipt.purchase_id)
  const groups = groupBy(await rightsToDeny(call.db, ids), (row) => `${row.purchase_id} ${row.right_class}`)
  const receiptOf = new Map(receipts.map((receipt) => [receipt.purchase_id, receipt]))
  const entries: DenyEntry[] = []
  for (const rights of groups.values()) {
    const [first] = rights
    const receipt = receiptOf.get(first?.purchase_id ?? '')
    const ordinals = rights.flatMap((right) => (isPass(right) ? PASS : (right.receipt_index ?? [])))
    if (!first || !receipt?.cti || !receipt.receipt_exp || ordinals.length === 0) continue
    const { cti, receipt_exp: exp } = receipt
    entries.push({
      kind: 'right',
      cti,
      rightClass: first.right_class as RightClass,
      ordinals,
      until: exp + GUARD_SECONDS,
    })
  }
  if (entries.length > 0) await deny(call, storeId, entries)
  await markDenied(call.db, ids)
}

/** Denies what the operations did not deny. `finish` runs in the transaction that denies the last rights of a store. */
export function continueDenials(
  database: Database,
  services: Services,
  finish: (call: JobCall, storeId: string) => Promise<void>,
): Promise<boolean> {
  const denying = (db: Db) =>
    db.selectFrom('home_move').select('home_move.store_id').where('denied_after', 'is not', null)
  return inTurns(database, services, {
    job: 'used rights for moves of receipt homes',
    async accounts(db) {
      const stores = db.selectFrom('store').select('tenant').distinct().where('store_id', 'in', denying(db))
      return (await stores.limit(ACCOUNTS).execute()).map(({ tenant }) => tenant)
    },
    turn: (tenant) =>
      runJobStep({ database, services, holder: tenant }, async (call) => {
        const move = await denying(call.db)
          .innerJoin('store', 'store.store_id', 'home_move.store_id')
          .where('store.tenant', '=', tenant)
          .limit(1)
          .executeTakeFirst()
        if (!move) return undefined
        if (!(await denyNextRights(call, move.store_id))) await finish(call, move.store_id)
        return true as const
      }),
  })
}
