import { MAY_BE_SOLD } from './piece-history.ts'
import { newId } from '../../../policy/ids.ts'
import { UNITS_LIMIT } from '../../../policy/journal.ts'
import { cameBackAtOnce, cancelledTags } from '../../../policy/cancelled-lines.ts'
import {
  lineCentOf,
  lineIdOf,
  OPEN_SALE_MS,
  saleKeyOf,
  saleTagHash,
  isSoldLine,
  saleValueOf,
  takesBack,
  tagsOf,
  type SaleLine,
  type SaleTag,
  type KeptSale,
} from '../../../policy/till-sale.ts'
import { scannedProducts } from '../../shop/catalogue/scanned-product.ts'
import { soldPieces } from '../../shop/purchases/line-value.ts'
import { findProduct } from '../../shop/catalogue/queries.ts'
import { unitDataOf } from '../../shop/catalogue/render.ts'
import type { PricedProduct } from '../../shop/catalogue/schema.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { itemsEpoch } from '../../protection/agents/documents/item-pages.ts'
import { itemsWith } from '../../protection/items/item-queries.ts'
import { factsOfItem, productsOfItems } from '../../protection/authorize/item-facts.ts'
import { recallsIn, type StoreRecalls } from '../../protection/items/recalls.ts'
import { isSold } from '../../../policy/item-status.ts'
import type { Doubt } from './doubts.ts'
import { allPieceReports, isReturn, isWaitingReturn, soldAtTills } from './queries.ts'
import { historyOfReports, movesByOthers, timeAfterAll, type NamedPiece } from './piece-reports.ts'

/** A tag of a sale with its item, if the item exists in the store's account. */
interface TagOfLine {
  readonly lineId: string
  readonly tag: SaleTag
  readonly item: Row<'protected_item'> | undefined
}

/** The rows of a sale, what is doubtful about it, and the tags that come back with it. */
export interface SaleRows {
  readonly lines: Row<'purchase_line'>[]
  readonly units: Row<'purchase_unit'>[]
  readonly tags: TagOfLine[]
  /** Tags of lines that take them back. */
  readonly returned: TagOfLine[]
  /** Pieces of the store that the sale names. */
  readonly pieces: NamedPiece[]
  readonly doubts: Doubt[]
  /** For the limits of the till. */
  readonly valueCent: number
}

/** Takes the rights of a sale: all its tags keep their status. */
export function holdRows({ lines, units, pieces }: SaleRows): void {
  units.length = 0
  pieces.length = 0
  for (const line of lines) line.tagged = 0
}

/** Where a sale was recorded. */
export interface Recorded {
  /** When an agent or the cloud stored it, ms since 1970. */
  readonly storedMs: number
  /** The agent, and the position of the items that it knew (`Replica.position`). Undefined: the cloud. */
  readonly agent?: {
    readonly agentId: string
    readonly items: readonly [epoch: number, seq: number]
    /** Tags (`saleTagHash`) of goods that came back at an agent whose report may not be here yet. */
    readonly resold?: readonly string[] | undefined
  }
  /** True for a program without the right `returns`: it takes no tags back, and voids only open sales. */
  readonly withoutReturns?: true | undefined
  /** True if the clock of the agent does not tell that the sale is later than what the agent reported before. */
  readonly isUntimed?: boolean
  /** When goods came back in the sale; default: `storedMs`. */
  readonly returnedMs?: number
}

/**
 * Makes the rows of a sale. A sale is never refused for its goods: what does not fit is a doubt, and its tag keeps its
 * status.
 */
export async function rowsOfSale(
  call: Call,
  store: Row<'store'>,
  sale: KeptSale,
  purchaseId: string,
  recorded: Recorded,
): Promise<SaleRows> {
  const { db, services } = call
  const scanned = await scannedProducts(
    db,
    store,
    sale.lines.flatMap(({ ean }) => ean ?? []),
  )
  const itemOf = await itemsWith(db, store.tenant, sale.lines)
  const key = saleKeyOf(store.store_id, sale)
  const standings = await standingsOf(call, store, key, recorded, sale, itemOf)
  const recalls = await recallsIn(db, store)
  const valueCent = await valueOfSale(db, store, sale, itemOf)
  const rows: SaleRows = { lines: [], units: [], tags: [], returned: [], pieces: [], doubts: [], valueCent }
  const taken = new Set<string>()
  const itemIdOf = ({ kind, id, isValid }: SaleTag) => (isValid ? itemOf({ [kind]: id })?.item_id : undefined)
  const isCancelled = cancelledTags(sale, itemIdOf)
  const back = cameBackAtOnce(sale, itemIdOf, isCancelled)
  const tagged: { line: Row<'purchase_line'>; count: number; items: Row<'protected_item'>[] }[] = []
  for (const [i, line] of sale.lines.entries()) {
    const lineId = lineIdOf(line, i)
    const tags = tagsOf(line).map((tag) => ({
      lineId,
      tag,
      item: tag.isValid ? itemOf({ [tag.kind]: tag.id }) : undefined,
    }))
    const named = await productOf(call, store, line, scanned)
    if (!named && (line.ean ?? line.productId) !== undefined)
      rows.doubts.push({ code: 'sale_product_unknown', lineId, subject: line.ean ?? line.productId ?? '' })
    const product = named ?? (await productOfTags(call, store, tags))
    const row = lineRow(line, product, {
      tenant: store.tenant,
      purchaseId,
      lineId: newId('lin', services.platform),
      lineNo: i,
      tillLine: lineId,
      cameBack: back[i] ?? 0,
      nowMs: call.nowMs,
    })
    rows.lines.push(row)
    const left = tags.filter(({ tag }) => !isCancelled(i, tag))
    if (takesBack(line)) {
      takeBack(rows, store.store_id, left)
      continue
    }
    rows.tags.push(...tags)
    if (tags.length === 0 && recalls.stop({ line: row }))
      rows.doubts.push({ code: 'sale_of_held_item', lineId, subject: line.ean ?? row.ean ?? '' })
    const { items, stay, late } = judgeTags(rows, row, left, { store, recorded, recalls, standings, taken })
    const pieces = product?.tagged === 1 && isSoldLine(line) && Number.isInteger(line.quantity) ? soldPieces(row) : 0
    // A piece that stays gives no right to another one of its line.
    tagged.push({ line: row, count: Math.max(pieces - stay, items.length + late), items })
  }
  addUnits(rows, tagged, purchaseId)
  return rows
}

/**
 * Notes the tags of a line. Returns the items that the sale binds now, the number of those that stay as they are, and of
 * those that `settlePieces` binds.
 */
function judgeTags(
  rows: SaleRows,
  row: Row<'purchase_line'>,
  tags: readonly TagOfLine[],
  {
    store,
    recorded,
    recalls,
    standings,
    taken,
  }: {
    store: Row<'store'>
    recorded: Recorded
    recalls: StoreRecalls
    standings: ReadonlyMap<string, Standing>
    taken: Set<string>
  },
): { items: Row<'protected_item'>[]; stay: number; late: number } {
  const items: Row<'protected_item'>[] = []
  const here = new Set<string>()
  let stay = 0
  for (const each of tags) {
    const { item, lineId, tag } = each
    if (item && here.has(item.item_id)) continue // one piece named by two kinds of tag
    const isStopped = recalls.stop({ item, line: row })
    const standing = standings.get(item?.item_id ?? '')
    const isMore = here.size >= soldPieces(row)
    const code =
      whyDoubtful(store, each, isStopped, standing?.isLate) ??
      (item && doubtOf(item, row, { taken, isMore, doubt: standing?.doubt }))
    if (code !== undefined) rows.doubts.push({ code, lineId, tag: tag.id, subject: tag.id, status: item?.item_status })
    // An agent knows no products, and its gates are silent for this tag already.
    const isSoldNow = code === undefined || (code === 'sale_of_other_product' && recorded.agent !== undefined)
    if (!item) continue
    // What happened to it may change with an earlier report that follows.
    const mayChange = code === standing?.doubt || (standing?.doubt !== undefined && MAY_BE_SOLD.has(item.item_status))
    if (standing && !standing.isOften && !taken.has(item.item_id) && (isSoldNow || mayChange))
      rows.pieces.push({ item, lineId: row.line_id, isAgain: standing.isAgain, atMs: standing.atMs })
    if (!isSoldNow) {
      stay++
      continue
    }
    if (standing?.isDouble === true)
      rows.doubts.push({ code: 'item_already_paid', lineId, tag: tag.id, subject: tag.id, status: item.item_status })
    here.add(item.item_id)
    taken.add(item.item_id)
    if (standing?.isLate !== true) items.push(item)
  }
  return { items, stay, late: here.size - items.length }
}

/** What is doubtful about an item that could be sold. `isMore`: the line has as many pieces without it. */
function doubtOf(
  item: Row<'protected_item'>,
  row: Row<'purchase_line'>,
  { taken, isMore, doubt }: { taken: ReadonlySet<string>; isMore: boolean; doubt: Standing['doubt'] },
): Doubt['code'] | undefined {
  if (taken.has(item.item_id)) return 'item_already_paid'
  if (isMore) return 'sale_of_more_items'
  if (doubt) return doubt
  return isOtherProduct(item, row) ? 'sale_of_other_product' : undefined
}

/** Notes tags that come back with the sale. Goods on hold stay there. */
function takeBack(rows: SaleRows, storeId: string, back: readonly TagOfLine[]): void {
  rows.returned.push(...back)
  for (const { lineId, tag, item } of back) {
    const about = { lineId, tag: tag.id, subject: tag.id }
    if (item?.store_id !== storeId) rows.doubts.push({ code: 'sale_tag_unknown', ...about })
    else if (item.item_status === 'exception_hold')
      rows.doubts.push({ code: 'sale_of_held_item', ...about, status: item.item_status })
  }
}

/** Value of a sale for the limits of its till: the tagged goods of the store count at least with their own price. */
async function valueOfSale(
  db: Db,
  store: Row<'store'>,
  sale: KeptSale,
  itemOf: Awaited<ReturnType<typeof itemsWith>>,
): Promise<number> {
  const itemHere = ({ kind, id, isValid }: SaleTag) => {
    const item = isValid ? itemOf({ [kind]: id }) : undefined
    return item?.store_id === store.store_id ? item : undefined
  }
  const items = sale.lines.flatMap(tagsOf).flatMap((tag) => itemHere(tag) ?? [])
  const products = await productsOfItems(
    db,
    items.map((item) => ({ item, soldCent: undefined })),
  )
  return saleValueOf(sale, (tag) => {
    const item = itemHere(tag)
    return item && factsOfItem(item, undefined, products).priceCent
  })
}

/** Adds the tagged units. If the sale has more than a receipt may name, only the pieces whose tags it names. */
function addUnits(
  rows: SaleRows,
  tagged: readonly { line: Row<'purchase_line'>; count: number; items: Row<'protected_item'>[] }[],
  purchaseId: string,
): void {
  const isTooLong = tagged.reduce((sum, { count }) => sum + count, 0) > UNITS_LIMIT
  let left = UNITS_LIMIT
  for (const { line, count, items } of tagged) {
    const units = Math.min(left, isTooLong ? items.length : count)
    left -= units
    line.tagged = units > 0 ? 1 : 0
    for (let n = 0; n < units; n++)
      rows.units.push({
        line_id: line.line_id,
        unit_no: n + 1,
        purchase_id: purchaseId,
        item_id: items[n]?.item_id ?? null,
        bound: 0,
        receipt_index: null,
        taken_back: null,
      })
  }
}

async function productOf(
  { db }: Call,
  store: Row<'store'>,
  { ean, productId }: SaleLine,
  scanned: Awaited<ReturnType<typeof scannedProducts>>,
): Promise<PricedProduct | undefined> {
  if (productId !== undefined) return findProduct(db, store.tenant, { productId }, store.store_id)
  return ean === undefined ? undefined : (await scanned(ean))?.product
}

/** The product that all items of a line share, if the till names no product. */
async function productOfTags(
  { db }: Call,
  store: Row<'store'>,
  tags: readonly TagOfLine[],
): Promise<PricedProduct | undefined> {
  const ids = new Set(tags.flatMap(({ item }) => (item?.store_id === store.store_id ? (item.product_id ?? []) : [])))
  const [productId] = ids
  return productId === undefined || ids.size > 1
    ? undefined
    : findProduct(db, store.tenant, { productId }, store.store_id)
}

/** Why a tag keeps its status; undefined if the sale makes it paid. `isLate`: the reports of tills tell its status. */
function whyDoubtful(
  store: Row<'store'>,
  { item }: TagOfLine,
  isStopped: boolean,
  isLate = false,
): Doubt['code'] | undefined {
  if (item?.store_id !== store.store_id) return 'sale_tag_unknown'
  if (isSold(item.item_status) && !isLate) return 'item_already_paid'
  if (isStopped) return 'sale_of_held_item'
  return item.item_status === 'sellable' || isLate ? undefined : 'sale_of_held_item'
}

/** How a sale stands among the other reports about a piece. */
interface Standing {
  readonly isAgain: boolean
  readonly atMs: number
  /** A later sale, which is here already, names the piece, too. */
  readonly isDouble: boolean
  /** The piece belongs, or belonged, to this sale, although its status tells otherwise. */
  readonly isLate: boolean
  /** Tills sold the piece so often that this sale changes nothing about it. */
  readonly isOften: boolean
  readonly doubt: 'item_already_paid' | 'item_changed' | undefined
}

/** Maximum sales of a piece within the 90 days that reports are kept. Each report about it reads all of them. */
const SALES_OF_PIECE_LIMIT = 12

/** How a sale stands among the reports about its pieces, by item. */
async function standingsOf(
  call: Call,
  store: Row<'store'>,
  key: string,
  { agent, storedMs, isUntimed }: Recorded,
  sale: KeptSale,
  itemOf: Awaited<ReturnType<typeof itemsWith>>,
): Promise<ReadonlyMap<string, Standing>> {
  const occurredMs = Math.min(storedMs, Date.parse(sale.occurredAt))
  const named = new Map<string, { item: Row<'protected_item'>; tags: SaleTag[] }>()
  for (const tag of sale.lines.flatMap(tagsOf)) {
    const item = tag.isValid ? itemOf({ [tag.kind]: tag.id }) : undefined
    if (item?.store_id !== store.store_id) continue
    const known = named.get(item.item_id)
    if (known) known.tags.push(tag)
    else named.set(item.item_id, { item, tags: [tag] })
  }
  const { reports, voided } = await allPieceReports(call.db, [...named.keys()])
  const knew = knewOf(call, agent)
  const pieces = [...named.values()].map((each) => ({ item: each.item, ...knew(each.item, each.tags) }))
  // A piece without reports, whose status the recorder knew, has the status of the item.
  const open = pieces.filter(({ item, knewStatus }) => !knewStatus || reports.has(item.item_id))
  const others = await movesByOthers(
    call,
    store,
    reports,
    open.map(({ item }) => item.item_id),
  )
  const ofTills = await soldAtTills(
    call.db,
    pieces.flatMap(({ item }) => (item.item_status === 'cancelled' ? (item.purchase_id ?? []) : [])),
  )
  return new Map(
    pieces.map(({ item, knewStatus, isAgain }) => {
      const known = reports.get(item.item_id) ?? []
      // A till may report to the cloud long after it sold, and goods may have come back since.
      const isOld = !agent && storedMs - occurredMs > OPEN_SALE_MS
      const isLater = isOld && known.some((report) => isWaitingReturn(report) && report.at_ms > occurredMs)
      // An agent reports in order, whatever its clock was.
      const own = known.filter((report) => isUntimed && isReturn(report) && report.agent_id === agent?.agentId)
      const soldMs = Math.max(storedMs, ...own.map((report) => report.at_ms + 1))
      const atMs = isLater ? occurredMs : knewStatus ? timeAfterAll(soldMs, item, known, agent?.agentId) : soldMs
      const move = others.get(item.item_id)
      const ended = voided.get(item.item_id)
      const before = historyOfReports(known, move, { voided: ended }).owner
      const next = { key, atMs, agentId: agent?.agentId, isAgain }
      const { owner, returns } = historyOfReports(known, move, { voided: ended, next })
      const isChanged = !knewStatus && move !== undefined && move.atMs > storedMs
      const isOurs = owner === key || returns.has(key)
      // A sale that arrived first may be the second sale of the piece.
      const isDouble = owner === key && before !== undefined && !returns.has(before)
      // A till rings goods up again after a void. Goods that came back are paid if a till sells them before staff checked
      // them.
      const isVoided = item.item_status === 'cancelled' && ofTills.has(item.purchase_id ?? '')
      const isSoldBefore = isAgain && isSold(item.item_status)
      const isBack = isVoided || item.item_status === 'returned'
      const isElsewhere = known.length > 0 ? item.item_status !== 'sellable' : isSoldBefore || isBack
      const isOften = known.filter((report) => !isReturn(report)).length >= SALES_OF_PIECE_LIMIT
      // Only the till's clock, which may be an hour late, says that the goods came back after this sale: staff look.
      const isUnclear = isLater && owner !== key
      const doubt = isChanged || isUnclear ? 'item_changed' : isOurs && !isOften ? undefined : 'item_already_paid'
      const isLate = isOurs && isElsewhere && item.item_status !== 'exception_hold'
      return [item.item_id, { isAgain, atMs, isLate: doubt === undefined && isLate, isDouble, isOften, doubt }]
    }),
  )
}

/** What the recorder of a sale knew of its pieces: their present status, and a return that may not be here (`isAgain`). */
export function knewOf(
  { services }: Call,
  agent: Recorded['agent'],
): (item: Row<'protected_item'>, tags: readonly SaleTag[]) => { knewStatus: boolean; isAgain: boolean } {
  if (!agent) return () => ({ knewStatus: true, isAgain: false })
  const [epoch, seq] = agent.items
  const resold = new Set(agent.resold)
  return (item, tags) => {
    const isAgain = tags.some((tag) => resold.has(saleTagHash(tag)))
    return { knewStatus: !isAgain && epoch === itemsEpoch(services) && item.item_seq <= seq, isAgain }
  }
}

function isOtherProduct(item: Row<'protected_item'> | undefined, line: Row<'purchase_line'>): boolean {
  const productId = item?.product_id ?? null
  return productId !== null && line.product_id !== null && productId !== line.product_id
}

const NAME = 'Artikel'

/**
 * A line of a purchase has whole pieces. So weighed goods become one piece with their weight, and goods that come back
 * become a line with a negative price.
 */
function lineRow(
  line: SaleLine,
  product: PricedProduct | undefined,
  made: {
    tenant: string
    purchaseId: string
    lineId: string
    lineNo: number
    tillLine: string
    cameBack: number
    nowMs: number
  },
): Row<'purchase_line'> {
  const { quantity, priceUnit, vat, ean, name } = line
  const isWhole = Number.isInteger(quantity)
  const priceCent = isWhole ? Math.sign(quantity) * priceUnit : lineCentOf(line)
  return {
    line_id: made.lineId,
    purchase_id: made.purchaseId,
    tenant: made.tenant,
    line_no: made.lineNo,
    name: name ?? product?.name ?? NAME,
    ean: product?.ean ?? ean ?? null,
    product_id: product?.product_id ?? null,
    price_cent: priceCent,
    list_price_cent:
      isWhole && product && priceCent >= 0 && product.price_cent !== priceCent ? product.price_cent : null,
    price_reason: 'till',
    quantity: isWhole ? Math.abs(quantity) : 1,
    vat,
    category: product?.category ?? null,
    brand: product?.brand ?? null,
    price_origin: 'client',
    serial_number: null,
    tagged: 0,
    deposit_of: null,
    barcode: null,
    weight_grams: isWhole ? null : Math.round(Math.abs(quantity) * 1_000),
    kg_price_cent: isWhole ? null : priceUnit,
    lot: null,
    expiry: null,
    serial: null,
    ...unitDataOf({ ean }, made.nowMs),
    till_line: made.tillLine,
    came_back: isWhole ? made.cameBack : Math.sign(made.cameBack),
  }
}
