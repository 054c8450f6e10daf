import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import {
  ITEM_PAGE_LIMIT,
  PRODUCT_NAME_LIMIT,
  type ItemEntry,
  type ItemsClaims,
  type ItemsHead,
} from '../../../../policy/documents/item-documents.ts'
import { RECALLED } from '../../../../policy/item-status.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import type { ItemStatus, ProtectionTechnology } from '../../../../policy/vocabulary.ts'
import { definedFields } from '../../../platform/operations/fields.ts'
import type { Services } from '../../../platform/operations/operation.ts'
import type { Db } from '../../../platform/persistence/database.ts'
import { prepared } from '../../../platform/persistence/prepared.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { valueOf } from '../../../shop/purchases/line-value.ts'
import { recallsIn } from '../../items/recalls.ts'
import { itemHead } from '../../items/item-sequence.ts'

/** Signed pages of a store's item sequence (policy/documents/item-documents.ts). */

const ITEMS_LIFE = 80 * 3_600
/**
 * Epoch of the item sequence, 0 at first. Each restore changes the epoch, because gates may have confirmed versions
 * that the backup lacks.
 */
export function itemsEpoch({ authority }: Pick<Services, 'authority'>): number {
  return authority.cloudGeneration - 1
}

/** Maximum size of a page, characters. Base64url adds a third, and the page must fit into one signed document. */
const PAGE_CHARACTERS = 150_000

/** Head of the sequence, as `fresh+jwt` contains it. */
export async function itemsHead(db: Db, storeId: string, services: Pick<Services, 'authority'>): Promise<ItemsHead> {
  const { seq, floor } = await itemHead(db, storeId)
  return { epoch: itemsEpoch(services), ver: seq, floor }
}

/** Signs one page of item changes after sequence number `after`. */
export async function itemPage(
  db: Db,
  store: Row<'store'>,
  after: number,
  services: Services,
): Promise<{ jws: string; ver: number }> {
  const { authority } = services
  const iat = Math.floor(authority.clock.nowMs() / 1_000)
  // Reads the head before the entries, so that later changes go into the next page.
  const head = await itemHead(db, store.store_id)
  const { entries, categories, brands, names, pictures, ver } = fill(
    await entriesAfter(db, store, after, head.seq),
    Math.max(after, head.seq),
  )
  const claims: ItemsClaims = {
    aud: store.store_id,
    iat,
    exp: iat + ITEMS_LIFE,
    epoch: itemsEpoch(services),
    ver,
    after,
    floor: head.floor,
    categories,
    brands,
    names,
    ...(pictures.length > 0 && { pictures }),
    entries,
  }
  return { jws: signDocument(DOCUMENT_KINDS.items, claims, authority.freshnessSigner), ver }
}

type Text = 'category' | 'brand' | 'name' | 'picture'
type FullEntry = Omit<ItemEntry, Text> & Record<Text, string | null>

/** Reads the entries with after < seq ≤ head in order: enough for one page and at least one further entry, if any. */
async function entriesAfter(db: Db, store: Row<'store'>, after: number, head: number): Promise<FullEntry[]> {
  const storeId = store.store_id
  const recalls = await recallsIn(db, store)
  const [items, removed] = [
    await itemsWithin(db, { storeId, after, head }),
    await goneWithin(db, { storeId, after, head }),
  ]
  const itemEntries = items.map((row): FullEntry => ({
    seq: row.seq,
    ...(recalls.stop({ item: row, line: lineOf(row) }) ? RECALLED : { status: row.status as ItemStatus }),
    ...definedFields({
      epc: row.epc,
      tagUid: row.tag_uid,
      tagId: row.tag_id,
      price: soldValue(row) ?? row.price_cent ?? row.product_price,
      technology: row.protection_technology as ProtectionTechnology | null,
    }),
    category: row.category ?? row.product_category,
    brand: row.brand ?? row.product_brand,
    name: row.product_name?.slice(0, PRODUCT_NAME_LIMIT).toWellFormed() ?? null,
    picture: row.product_picture,
    ...(row.voided && { voided: true as const }),
    ...(row.paying && { paying: true as const }),
  }))
  const removedEntries = removed.map((row): FullEntry => ({
    seq: row.seq,
    [NAMES[row.kind] ?? 'epc']: row.name,
    category: null,
    brand: null,
    name: null,
    picture: null,
  }))
  return [...itemEntries, ...removedEntries].sort((a, b) => a.seq - b.seq)
}

/** What the sold line of an item states about its goods. */
function lineOf({ line_lot: lot, line_expiry: expiry, line_serial: serial }: Record<LineColumn, string | null>) {
  return { lot, expiry, serial }
}

type LineColumn = 'line_lot' | 'line_expiry' | 'line_serial'

function soldValue({ paid_price, list_price_cent }: { paid_price: number | null; list_price_cent: number | null }) {
  return paid_price === null ? undefined : valueOf({ price_cent: paid_price, list_price_cent })
}

/** Rows per query. The row beyond the page limit shows that another page follows. */
const AT_ONCE = ITEM_PAGE_LIMIT + 1

const itemsWithin = prepared((db, p: { storeId: string; after: number; head: number }) =>
  db
    .selectFrom('protected_item as i')
    .leftJoin('product as p', 'p.product_id', 'i.product_id')
    .leftJoin('store_product as s', (join) =>
      join.onRef('s.product_id', '=', 'i.product_id').onRef('s.store_id', '=', 'i.store_id'),
    )
    .leftJoin('product_picture as t', 't.image_url', 'p.image_url')
    // Price that decisions use for a sold item (protection/authorize/item-facts.ts).
    .leftJoin('purchase_line as l', 'l.line_id', 'i.line_id')
    .select([
      'i.item_seq as seq',
      'i.item_status as status',
      'i.epc',
      'i.tag_uid',
      'i.tag_id',
      'i.price_cent',
      'i.category',
      'i.brand',
      'i.protection_technology',
      'i.ean',
      'i.lot',
      'i.expiry',
      'i.serial',
      'l.lot as line_lot',
      'l.expiry as line_expiry',
      'l.serial as line_serial',
      'l.price_cent as paid_price',
      'l.list_price_cent',
      'p.category as product_category',
      'p.brand as product_brand',
      'p.name as product_name',
      't.hash as product_picture',
    ])
    .select((eb) => eb.fn.coalesce('s.price_cent', 'p.price_cent').as('product_price'))
    .select((eb) =>
      // True if the item belongs to a checkout that is not paid yet.
      eb
        .exists(
          eb
            .selectFrom('purchase_unit as u')
            .innerJoin('purchase as b', 'b.purchase_id', 'u.purchase_id')
            .select('u.line_id')
            .whereRef('u.item_id', '=', 'i.item_id')
            .where('b.status', 'in', ['CREATED', 'PENDING_PAYMENT']),
        )
        .as('paying'),
    )
    .select((eb) =>
      eb
        .and([
          eb('i.item_status', '=', 'cancelled'),
          eb.exists(
            eb
              .selectFrom('purchase as v')
              .select('v.purchase_id')
              .whereRef('v.purchase_id', '=', 'i.purchase_id')
              .where('v.till', 'is not', null),
          ),
        ])
        .as('voided'),
    )
    .where('i.store_id', '=', p.storeId)
    .where('i.item_seq', '>', p.after)
    .where('i.item_seq', '<=', p.head)
    // Leaves out sold items whose tag is on other goods.
    .where((eb) =>
      eb.or([eb('i.epc', 'is not', null), eb('i.tag_uid', 'is not', null), eb('i.tag_id', 'is not', null)]),
    )
    .orderBy('i.item_seq')
    .limit(AT_ONCE),
)

const goneWithin = prepared((db, p: { storeId: string; after: number; head: number }) =>
  db
    .selectFrom('item_gone')
    .selectAll()
    .where('store_id', '=', p.storeId)
    .where('seq', '>', p.after)
    .where('seq', '<=', p.head)
    .orderBy('seq')
    .limit(AT_ONCE),
)

const NAMES: Record<string, 'epc' | 'tagUid' | 'tagId'> = { epc: 'epc', tag_uid: 'tagUid', tag_id: 'tagId' }

type FilledPage = Pick<ItemsClaims, 'entries' | 'categories' | 'brands' | 'names' | 'ver'> & { pictures: string[] }

/** Fills one page. `ver` is the version of the page's last entry, or `head` on the last page. */
function fill(entries: readonly FullEntry[], head: number): FilledPage {
  const [categories, brands, names, pictures] = [textTable(), textTable(), textTable(), textTable()]
  const accepted: ItemEntry[] = []
  const page = (ver: number) => ({
    entries: accepted,
    categories: categories.texts(),
    brands: brands.texts(),
    names: names.texts(),
    pictures: pictures.texts(),
    ver,
  })
  let characters = 0
  for (const { category, brand, name, picture, ...entry } of entries) {
    const pageEntry: ItemEntry = Object.assign(
      {},
      entry,
      category !== null && { category: categories.indexOf(category) },
      brand !== null && { brand: brands.indexOf(brand) },
      name !== null && { name: names.indexOf(name) },
      picture !== null && { picture: pictures.indexOf(picture) },
    )
    characters += JSON.stringify(pageEntry).length + 1 + categories.costOf(category) + brands.costOf(brand)
    characters += names.costOf(name) + pictures.costOf(picture)
    if (accepted.length === ITEM_PAGE_LIMIT || characters > PAGE_CHARACTERS) return page(accepted.at(-1)?.seq ?? 0)
    categories.add(category)
    brands.add(brand)
    names.add(name)
    pictures.add(picture)
    accepted.push(pageEntry)
  }
  return page(head)
}

/** Table of texts. An entry contains the index of a text instead of the text. */
function textTable() {
  const indexes = new Map<string, number>()
  return {
    /** Index that the text has, or would get. */
    indexOf: (text: string) => indexes.get(text) ?? indexes.size,
    /** Characters that this text adds to the page. */
    costOf: (text: string | null) =>
      text === null || indexes.has(text) ? 0 : Buffer.byteLength(JSON.stringify(text)) + 1,
    add: (text: string | null) => void (text !== null && !indexes.has(text) && indexes.set(text, indexes.size)),
    texts: () => [...indexes.keys()],
  }
}
