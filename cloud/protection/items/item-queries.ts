import { sql } from 'kysely'
import {
  comparableIdentifier,
  normaliseIdentifiers,
  type ItemIdentifiers,
  type ItemIdentifierInput,
} from '../../../policy/item-identifiers.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { assert } from '../../../policy/assert.ts'
import { groupBy, type Db } from '../../platform/persistence/database.ts'
import {
  insertChunks,
  prepared,
  preparedRows,
  preparedInsert,
  preparedForMany,
} from '../../platform/persistence/prepared.ts'
import { storeMoves, type MovedBy } from './item-moves.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { nextChangeSeq, nextItemSeq } from './item-sequence.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { ProtectionAction, ProtectionTechnology, TagTechnology } from '../../../policy/vocabulary.ts'
import { definedFields } from '../../platform/operations/fields.ts'

/** Category, brand and price of an item's product, in the item's store. */

const productsById = preparedForMany((db, productIds, p: { storeId: string }) =>
  db
    .selectFrom('product as p')
    .leftJoin('store_product as s', (join) =>
      join.onRef('s.product_id', '=', 'p.product_id').on('s.store_id', '=', p.storeId),
    )
    .select([
      'p.product_id',
      'p.category',
      'p.brand',
      (eb) => eb.fn.coalesce('s.price_cent', 'p.price_cent').as('price_cent'),
    ])
    .where('p.product_id', 'in', productIds),
)

/** True if the item needs no data of its product. `priceCent`: paid price, else the item's own price. */
export function isComplete(item: Row<'protected_item'>, priceCent: number | null): boolean {
  return item.category !== null && item.brand !== null && priceCent !== null
}

export type ProductOfItem = Awaited<ReturnType<typeof productsById>>[number]

/** Category, brand and price of products in a store, by product id. */
export async function productsIn(
  db: Db,
  storeId: string,
  productIds: Iterable<string>,
): Promise<ReadonlyMap<string, ProductOfItem>> {
  return new Map((await productsById(db, productIds, { storeId })).map((product) => [product.product_id, product]))
}

/** Fault of a tag that no item of the store has. */
export const ITEM_UNKNOWN = 'is not registered in this store: check the tag, or register it with registerProtectedItems'

/** Lists of tags in a request: a line of a basket, an order, a refund. */
export interface TagLists {
  epcs?: readonly string[] | undefined
  tagUids?: readonly string[] | undefined
  tagIds?: readonly string[] | undefined
}

/** The tags of the lists in their normal form. Throws 400 at the first tag that is none. `prefix` is the path of the lists. */
export function tagsIn(
  { epcs = [], tagUids = [], tagIds = [] }: TagLists,
  prefix: string,
): { path: string; identifiers: ItemIdentifiers }[] {
  const names = [
    ...epcs.map((epc, i) => ({ path: `${prefix}epcs[${i}]`, input: { epc } })),
    ...tagUids.map((tagUid, i) => ({ path: `${prefix}tagUids[${i}]`, input: { tagUid } })),
    ...tagIds.map((tagId, i) => ({ path: `${prefix}tagIds[${i}]`, input: { tagId } })),
  ] satisfies { path: string; input: ItemIdentifierInput }[]
  return names.map(({ path, input }) => {
    const normal = normaliseIdentifiers(input)
    if (!normal.ok) throw invalid(path, normal.message)
    return { path, identifiers: normal.identifiers }
  })
}

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
): Promise<Row<'protected_item'> | undefined> {
  let found: Row<'protected_item'> | undefined
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
): Promise<(identifiers: Pick<ProtectionEvent, 'epc' | 'tagUid' | 'tagId'>) => Row<'protected_item'> | undefined> {
  const found = new Map<string, Row<'protected_item'>>()
  const lookUps = [
    ['epc', withEpcs, (row: Row<'protected_item'>) => row.epc, tags.flatMap(({ epcs = [] }) => epcs)],
    ['tagUid', withTagUids, (row: Row<'protected_item'>) => row.tag_uid, tags.flatMap(({ tagUids = [] }) => tagUids)],
    ['tagId', withTagIds, (row: Row<'protected_item'>) => row.tag_id_folded, tags.flatMap(({ tagIds = [] }) => tagIds)],
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

/** Items that a paid line is bound to. */
export const itemsOfLine = preparedRows((db, lineId: string) =>
  db
    .selectFrom('purchase_unit as u')
    .innerJoin('protected_item as i', 'i.item_id', 'u.item_id')
    .selectAll('i')
    .where('u.line_id', '=', lineId)
    // Leaves out an item that was returned and sold again. Such an item belongs to another line, but its former unit
    // still names the item.
    .whereRef('i.line_id', '=', 'u.line_id')
    .whereRef('i.unit_no', '=', 'u.unit_no')
    .orderBy('u.unit_no'),
)

/** Reads an item that must exist. */
export async function readItem(db: Db, itemId: string): Promise<Row<'protected_item'>> {
  const [row] = await byItemId(db, { itemId })
  assert(row, `item ${itemId} is gone`)
  return row
}

/** Reads items that must exist, by id. */
export async function readItems(
  db: Db,
  itemIds: Iterable<string>,
): Promise<ReadonlyMap<string, Row<'protected_item'>>> {
  return new Map((await byItemIds(db, itemIds)).map((item) => [item.item_id, item]))
}

/** Updates an item with a new revision and sequence number. Stores a move if the status changed. */
export async function updateItem(
  db: Db,
  item: Row<'protected_item'>,
  change: Partial<Row<'protected_item'>>,
  nowMs: number,
  by?: MovedBy,
): Promise<Row<'protected_item'>> {
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

/** A change of an item that keeps its tags. */
export type StatusChange = Pick<Row<'protected_item'>, 'item_status'> &
  Partial<
    Pick<
      Row<'protected_item'>,
      'product_id' | 'ean' | 'purchase_id' | 'line_id' | 'unit_no' | 'lot' | 'expiry' | 'serial'
    >
  >

const writeStatuses = preparedInsert((db, rows: readonly Row<'protected_item'>[]) =>
  db
    .insertInto('protected_item')
    .values(rows)
    .onConflict((c) =>
      c.column('item_id').doUpdateSet((eb) => ({
        item_status: eb.ref('excluded.item_status'),
        product_id: eb.ref('excluded.product_id'),
        ean: eb.ref('excluded.ean'),
        purchase_id: eb.ref('excluded.purchase_id'),
        line_id: eb.ref('excluded.line_id'),
        unit_no: eb.ref('excluded.unit_no'),
        lot: eb.ref('excluded.lot'),
        expiry: eb.ref('excluded.expiry'),
        serial: eb.ref('excluded.serial'),
        item_seq: eb.ref('excluded.item_seq'),
        updated_ms: eb.ref('excluded.updated_ms'),
        // A literal, because all parameters must be those of the rows.
        rev: sql<number>`protected_item.rev + 1`,
      })),
    )
    .returningAll(),
)

/**
 * Does for many items what `updateItem` does for one, with few statements. `changes` may contain each item once. Returns
 * the changed items by id.
 */
export async function updateStatuses(
  db: Db,
  changes: readonly { item: Row<'protected_item'>; change: StatusChange }[],
  nowMs: number,
  by?: MovedBy,
): Promise<ReadonlyMap<string, Row<'protected_item'>>> {
  const rows: Row<'protected_item'>[] = []
  for (const [storeId, ofStore] of groupBy(changes, ({ item }) => item.store_id)) {
    const first = await nextItemSeq(db, storeId, ofStore.length)
    rows.push(...ofStore.map(({ item, change }, n) => ({ ...item, ...change, item_seq: first + n, updated_ms: nowMs })))
  }
  const changed = new Map<string, Row<'protected_item'>>()
  for (const chunk of insertChunks(rows))
    for (const row of await writeStatuses(db, chunk)) changed.set(row.item_id, row)
  for (const [from, ofStatus] of groupBy(changes, ({ item }) => item.item_status))
    await storeMoves(
      db,
      ofStatus.flatMap(({ item }) => changed.get(item.item_id) ?? []),
      from,
      nowMs,
      by,
    )
  return changed
}

/** Facts about the tag that a device acted on. */
interface TagFacts extends Pick<ProtectionEvent, 'epc' | 'tagUid' | 'protectionAction'> {
  readonly item: Pick<Row<'protected_item'>, 'protection_technology' | 'tag_technology'> | undefined
  readonly device: Pick<Row<'device'>, 'technologies'> | undefined
  readonly store: Pick<Row<'store'>, 'protection_technology'> | null | undefined
}

/** Technologies of an event. A field is absent if the facts do not determine it. */
type EventTechnologies = Pick<ProtectionEvent, 'protectionTechnology' | 'tagTechnology'>

/** Possible technologies of an action if no tag was read. An action without an entry works with all technologies. */
const WITHOUT_A_TAG: Partial<Record<ProtectionAction, readonly ProtectionTechnology[]>> = {
  deactivate_label: ['am', 'rf'],
  unlock_fixture: ['mechanical_lock'],
}

/**
 * Finds the technologies of the tag in an event. Uses the registered item, else the identifier that was read, else the
 * device's only technology for this action, else the store's technology.
 */
export function technologiesOf(facts: TagFacts): EventTechnologies {
  const { item, epc, tagUid } = facts
  const registered = item?.protection_technology as ProtectionTechnology | null | undefined
  const read = epc !== undefined ? 'uhf_rfid' : tagUid !== undefined ? 'hf_nfc' : undefined
  const tagTechnology = item?.tag_technology ?? (tagUid === undefined ? undefined : technologyOfUid(tagUid))
  return definedFields({
    protectionTechnology: registered ?? read ?? technologyOfDevice(facts) ?? null,
    tagTechnology: (tagTechnology ?? null) as TagTechnology | null,
  })
}

/** Parsed technologies of device rows: all events of a batch share the row. */
const parsedTechnologies = new WeakMap<object, readonly ProtectionTechnology[]>()

function supportedBy(device: Pick<Row<'device'>, 'technologies'>): readonly ProtectionTechnology[] {
  const known = parsedTechnologies.get(device)
  if (known) return known
  const parsed = JSON.parse(device.technologies) as ProtectionTechnology[]
  parsedTechnologies.set(device, parsed)
  return parsed
}

function technologyOfDevice({ device, store, protectionAction: action }: TagFacts): ProtectionTechnology | undefined {
  if (!device || action === undefined) return undefined
  const possible = supportedBy(device).filter((each) => WITHOUT_A_TAG[action]?.includes(each) ?? true)
  return possible.length === 1 ? possible[0] : possible.find((each) => each === store?.protection_technology)
}

/**
 * Technology that follows from the form of a UID. ISO 15693 UIDs have 8 bytes and begin with E0 (ISO 15693-3 §4.1).
 * UIDs of 7 and 10 bytes exist only in ISO 14443 type A (ISO 14443-3 §6.5.4). UIDs of 4 bytes may be type A or B.
 */
export function technologyOfUid(tagUid: string): TagTechnology | undefined {
  if (/^E0[0-9A-F]{14}$/.test(tagUid)) return 'NfcV'
  return tagUid.length === 14 || tagUid.length === 20 ? 'NfcA' : undefined
}

/** The item that an event names by its tag, if registered. */
export async function itemOfEvent(
  db: Db,
  tenant: string,
  { epc, tagUid, tagId }: Pick<ProtectionEvent, 'epc' | 'tagUid' | 'tagId'>,
): Promise<Row<'protected_item'> | undefined> {
  if (epc !== undefined) return findItem(db, tenant, { epc })
  if (tagUid !== undefined) return findItem(db, tenant, { tagUid })
  return tagId === undefined ? undefined : findItem(db, tenant, { tagId })
}
