import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import { eanOfGtin14 } from '../../../policy/gs1/gtin.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** Names of products that a request has at most. */
const PRODUCTS_LIMIT = 3
/** Lines of purchases that are read for a page of requests. */
const LINES_LIMIT = 1_000

/** What a request is about, as far as it is known. `products`: names, without repetition; may be empty. */
export interface GoodsOfRequest {
  readonly tag: string | undefined
  readonly products: readonly string[]
}

/** What a request names: a purchase, a line, or a tag. */
interface Named {
  readonly purchaseId?: string
  /** Line of a purchase, or tag. */
  readonly key?: string
}

/** The goods of requests of one tenant, by request id. Requests of shoppers have none. Reads each table once. */
export async function goodsOfRequests(
  db: Db,
  tenant: string,
  rows: readonly Row<'assistance_request'>[],
): Promise<ReadonlyMap<string, GoodsOfRequest>> {
  const tagsOfAlarms = await tagsOfEvents(
    db,
    tenant,
    rows.flatMap(({ reason, subject }) => (reason === 'alarm' ? (subject ?? []) : [])),
  )
  const named = new Map(rows.map((row) => [row.request_id, namedBy(row, tagsOfAlarms)]))
  const keys = distinct([...named.values()].map(({ key }) => key))
  const lines = await linesOf(db, tenant, {
    keys: keys.filter(isLine),
    purchaseIds: distinct([...named.values()].map((each) => each.purchaseId)),
  })
  const products = await productsOfTags(
    db,
    tenant,
    keys.filter((key) => !isLine(key)),
  )
  return new Map(
    [...named].map(([requestId, { purchaseId, key }]) => {
      const ofKey = key === undefined ? [] : (lines.ofKey.get(key) ?? products.get(key) ?? [])
      const ofPurchase = purchaseId === undefined ? [] : (lines.ofPurchase.get(purchaseId) ?? [])
      const names = [...new Set(ofKey.length > 0 ? ofKey : ofPurchase)].slice(0, PRODUCTS_LIMIT)
      return [requestId, { tag: key === undefined || isLine(key) ? undefined : key, products: names }]
    }),
  )
}

function namedBy(
  { reason, subject, purchase_id: purchaseId }: Row<'assistance_request'>,
  tagsOfAlarms: ReadonlyMap<string, string>,
): Named {
  if (reason === 'shopper' || subject === null) return {}
  const about = subject.slice(subject.indexOf(' ') + 1)
  const ofPurchase = purchaseId === null ? about : about.slice(purchaseId.length + 1)
  const key = reason === 'alarm' ? tagsOfAlarms.get(subject) : ofPurchase
  return {
    ...(purchaseId !== null && { purchaseId }),
    ...(key !== undefined && key !== '' && key !== '-' && { key }),
  }
}

/** Ids of lines have this prefix, so that no line is shown as a tag. */
const isLine = (key: string) => key.startsWith('lin_')
const distinct = (ids: readonly (string | undefined)[]) => [...new Set(ids.filter((id) => id !== undefined))]

async function tagsOfEvents(db: Db, tenant: string, eventIds: readonly string[]): Promise<Map<string, string>> {
  if (eventIds.length === 0) return new Map()
  const events = await db
    .selectFrom('protection_event')
    .select(['event_id', 'body'])
    .where('tenant', '=', tenant)
    .where('event_id', 'in', [...eventIds])
    .execute()
  return new Map(
    events.flatMap(({ event_id: eventId, body }) => {
      const { epc, tagUid, tagId } = JSON.parse(body) as ProtectionEvent
      const tag = epc ?? tagUid ?? tagId
      return tag === undefined ? [] : [[eventId, tag] as const]
    }),
  )
}

/** Names of the lines with these ids, and of the lines of these purchases. */
async function linesOf(
  db: Db,
  tenant: string,
  { keys, purchaseIds }: { keys: readonly string[]; purchaseIds: readonly string[] },
): Promise<{ ofKey: ReadonlyMap<string, string[]>; ofPurchase: ReadonlyMap<string, string[]> }> {
  const ofPurchase = new Map<string, string[]>()
  const ofKey = new Map<string, string[]>()
  const lines = db.selectFrom('purchase_line').select(['line_id', 'purchase_id', 'name']).where('tenant', '=', tenant)
  if (keys.length > 0)
    for (const { line_id: lineId, name } of await lines.where('line_id', 'in', [...keys]).execute())
      ofKey.set(lineId, [name])
  if (purchaseIds.length === 0) return { ofKey, ofPurchase }
  const found = await lines
    .where('purchase_id', 'in', [...purchaseIds])
    .orderBy('purchase_id')
    .orderBy('line_no')
    .limit(LINES_LIMIT)
    .execute()
  for (const { purchase_id: purchaseId, name } of found)
    ofPurchase.set(purchaseId, [...(ofPurchase.get(purchaseId) ?? []), name])
  return { ofKey, ofPurchase }
}

/** Names of the products of tags: of the registered item, else of the GTIN in the EPC. */
async function productsOfTags(
  db: Db,
  tenant: string,
  tags: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (tags.length === 0) return new Map()
  const named = db
    .selectFrom('protected_item')
    .select(['epc', 'tag_uid', 'tag_id_folded', 'product_id', 'ean'])
    .where('tenant', '=', tenant)
  // One query for each index: with OR, SQLite would read all items of the tenant. The same holds for its products.
  const items = [
    ...(await named.where('epc', 'in', [...tags]).execute()),
    ...(await named.where('tag_uid', 'in', [...tags]).execute()),
    ...(await named.where('tag_id_folded', 'in', [...tags]).execute()),
  ]
  const itemOf = new Map(
    items.flatMap((item) => [item.epc, item.tag_uid, item.tag_id_folded].map((name) => [name, item] as const)),
  )
  const productOf = new Map(
    tags.map((tag) => {
      const gtin14 = parseEpc(tag)?.gtin14
      const ofTag = gtin14 === undefined ? undefined : eanOfGtin14(gtin14)
      return [tag, { productId: itemOf.get(tag)?.product_id ?? '', ean: itemOf.get(tag)?.ean ?? ofTag ?? '' }]
    }),
  )
  const wanted = [...productOf.values()]
  const ofTenant = db.selectFrom('product').select(['product_id', 'ean', 'name']).where('tenant', '=', tenant)
  const ids = [...new Set(wanted.map(({ productId }) => productId))]
  const eans = [...new Set(wanted.map(({ ean }) => ean))]
  const products = [
    ...(await ofTenant.where('product_id', 'in', ids).execute()),
    ...(await ofTenant.where('ean', 'in', eans).execute()),
  ]
  const nameOf = new Map(
    products.flatMap(({ product_id: productId, ean, name }) => [productId, ean].map((id) => [id, name] as const)),
  )
  return new Map(
    [...productOf].map(([tag, { productId, ean }]) => {
      const name = nameOf.get(productId) ?? nameOf.get(ean)
      return [tag, name === undefined ? [] : [name]]
    }),
  )
}
