import { comparableIdentifier, normaliseIdentifiers, type ItemIdentifiers } from '../../../policy/item-identifiers.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { assert } from '../../../policy/assert.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import { preparedForMany } from '../../platform/persistence/prepared-many.ts'
import { storeMoves, type MovedBy } from './item-moves.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import { nextChangeSeq } from './item-sequence.ts'

const byEpc = prepared((db, p: { tenant: string; id: string }) =>
  db.selectFrom('protected_item').selectAll().where('tenant', '=', p.tenant).where('epc', '=', p.id),
)
const byTagUid = prepared((db, p: { tenant: string; id: string }) =>
  db.selectFrom('protected_item').selectAll().where('tenant', '=', p.tenant).where('tag_uid', '=', p.id),
)
const byTagId = prepared((db, p: { tenant: string; id: string }) =>
  db.selectFrom('protected_item').selectAll().where('tenant', '=', p.tenant).where('tag_id_folded', '=', p.id),
)
const byItemId = prepared((db, p: { itemId: string }) =>
  db.selectFrom('protected_item').selectAll().where('item_id', '=', p.itemId),
)

const byItemIds = preparedForMany((db, ids) => db.selectFrom('protected_item').selectAll().where('item_id', 'in', ids))

/** Finds an item by its identifiers. Throws `invalid_request` if the identifiers name two items. */
export async function findItem(
  db: Db,
  tenant: string,
  { epc, tagUid, tagId }: ItemIdentifiers,
): Promise<ProtectedItemRow | undefined> {
  let found: ProtectedItemRow | undefined
  const lookUps = [
    ['epc', epc, byEpc],
    ['tagUid', tagUid, byTagUid],
    ['tagId', tagId, byTagId],
  ] as const
  for (const [field, id, query] of lookUps) {
    if (id === undefined) continue
    const [row] = await query(db, { tenant, id: comparableIdentifier(field, id) })
    if (row && found && row.item_id !== found.item_id)
      throw invalid(field, 'names another item than the other identifier')
    found = row ?? found
  }
  return found
}

const withEpcs = preparedForMany((db, ids, p: { tenant: string }) =>
  db.selectFrom('protected_item').selectAll().where('tenant', '=', p.tenant).where('epc', 'in', ids),
)
const withTagUids = preparedForMany((db, ids, p: { tenant: string }) =>
  db.selectFrom('protected_item').selectAll().where('tenant', '=', p.tenant).where('tag_uid', 'in', ids),
)
const withTagIds = preparedForMany((db, ids, p: { tenant: string }) =>
  db.selectFrom('protected_item').selectAll().where('tenant', '=', p.tenant).where('tag_id_folded', 'in', ids),
)

/** Tags that name items, each by one identifier. */
interface NamedTags {
  epcs?: readonly string[] | undefined
  tagUids?: readonly string[] | undefined
  tagIds?: readonly string[] | undefined
}

/** Reads the items with these tags with few queries. Returns a function that finds an item by one identifier. */
export async function itemsWith(
  db: Db,
  tenant: string,
  tags: readonly NamedTags[],
): Promise<(identifiers: ItemIdentifiers) => ProtectedItemRow | undefined> {
  const found = new Map<string, ProtectedItemRow>()
  const lookUps = [
    ['epc', withEpcs, (row: ProtectedItemRow) => row.epc, tags.flatMap(({ epcs = [] }) => epcs)],
    ['tagUid', withTagUids, (row: ProtectedItemRow) => row.tag_uid, tags.flatMap(({ tagUids = [] }) => tagUids)],
    ['tagId', withTagIds, (row: ProtectedItemRow) => row.tag_id_folded, tags.flatMap(({ tagIds = [] }) => tagIds)],
  ] as const
  for (const [kind, query, nameOf, texts] of lookUps) {
    const ids = texts.flatMap((text) => {
      const normal = normaliseIdentifiers({ [kind]: text })
      const id = normal.ok ? normal.identifiers[kind] : undefined
      return id === undefined ? [] : [comparableIdentifier(kind, id)]
    })
    for (const row of await query(db, ids, { tenant })) found.set(`${kind} ${nameOf(row)}`, row)
  }
  return (identifiers) => {
    for (const [kind] of lookUps) {
      const id = identifiers[kind]
      if (id !== undefined) return found.get(`${kind} ${comparableIdentifier(kind, id)}`)
    }
    return undefined
  }
}

const boundTo = prepared((db, p: { lineId: string }) =>
  db
    .selectFrom('purchase_unit as u')
    .innerJoin('protected_item as i', 'i.item_id', 'u.item_id')
    .selectAll('i')
    .where('u.line_id', '=', p.lineId)
    // Leaves out an item that was returned and sold again. Such an item belongs to another line, but its former unit
    // still names the item.
    .whereRef('i.line_id', '=', 'u.line_id')
    .whereRef('i.unit_no', '=', 'u.unit_no')
    .orderBy('u.unit_no'),
)

/** Items that a paid line is bound to. */
export function itemsOfLine(db: Db, lineId: string): Promise<ProtectedItemRow[]> {
  return boundTo(db, { lineId })
}

/** Reads an item that must exist. */
export async function readItem(db: Db, itemId: string): Promise<ProtectedItemRow> {
  const [row] = await byItemId(db, { itemId })
  assert(row, `item ${itemId} is gone`)
  return row
}

/** Reads items that must exist, by id. */
export async function readItems(db: Db, itemIds: Iterable<string>): Promise<ReadonlyMap<string, ProtectedItemRow>> {
  return new Map((await byItemIds(db, itemIds)).map((item) => [item.item_id, item]))
}

/** Updates an item with a new revision and sequence number. Stores a move if the status changed. */
export async function updateItem(
  db: Db,
  item: ProtectedItemRow,
  change: Partial<ProtectedItemRow>,
  nowMs: number,
  by?: MovedBy,
): Promise<ProtectedItemRow> {
  const seq = await nextChangeSeq(db, item, change, nowMs)
  const changed = await db
    .updateTable('protected_item')
    .set((eb) => ({ ...change, item_seq: seq, updated_ms: nowMs, rev: eb('rev', '+', 1) }))
    .where('item_id', '=', item.item_id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await storeMoves(db, [changed], item.item_status, nowMs, by)
  return changed
}
