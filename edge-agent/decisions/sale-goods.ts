import type { ItemFacts } from '../../policy/decide.ts'
import { parseEpc } from '../../policy/gs1/epc.ts'
import { ITEM_IDENTIFIER_KINDS, type IdentifierKind, type ItemIdentifiers } from '../../policy/item-identifiers.ts'
import { RECALLED } from '../../policy/item-status.ts'
import { readUnitFacts } from '../../policy/receipts/policy-names.ts'
import { receiptEntry, SHOPPER_PRICED, type ReceiptClaims } from '../../policy/receipts/receipt-claims.ts'
import { RECEIPT_LIFE } from '../../policy/receipts/receipt-token.ts'
import { riskClassCeiling, riskClassOf, type ProtectionPolicy } from '../../policy/store-policy.ts'
import { cancelledTags } from '../../policy/cancelled-lines.ts'
import { isSoldLine, saleCentOf, tagsOf, type KeptSale } from '../../policy/till-sale.ts'
import { ITEM_STATUSES, type ItemStatus } from '../../policy/vocabulary.ts'
import { findByIdentifiers, type Replica } from '../items/replica.ts'
import type { KnownItem } from '../items/item-table.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { TillReports } from '../ledger/till-reports.ts'
import type { Trust } from '../trust/trust.ts'
import { hasComeBack } from './goods-back.ts'
import { productsOfLine } from './till-doubts.ts'
import type { KnownSale } from './sale-codes.ts'

/**
 *   receipt of the cloud: entries of its units ──────────────────────┐
 *   code of a till, known here or announced: hashes of its goods ────┴─▶ goodsOf ─▶ SaleGoods ─▶ factsOfUnit ─▶ decide
 *                                                                          │
 *      denials, recalls, reports of tills, items ──────────────────────────┘
 *
 * What this agent knows of the goods of one sale. Every rule about a receipt, or about the code of a till, reads this
 * value, so that no path forgets what another one knows.
 */
export interface SaleGoods {
  /** Identity of the sale and of its receipt in all ledgers, hex. */
  readonly key: string
  /** When the receipt expires, s since 1970. */
  readonly exp: number
  readonly riskClass: number
  /** Undefined: the sale of a code. Its goods have no rights of their own, and only some are known. */
  readonly receipt: ReceiptClaims | undefined
  /** True if the sale is void, its till or receipt was revoked, or all its goods came back. */
  readonly isOver: boolean
  /** The units of a receipt, by number. Of a code: each product and each tag that the till named, and its known items. */
  readonly units: readonly KnownUnit[]
  /** Numbers of the units of the receipt that the request is about: those that match the named tag, or all. */
  readonly covered: readonly number[]
  /** True if the receipt names the tag that the request names, not only its product. */
  readonly isOfNamedTag: boolean
  /** The item that the request names; `several`: its identifiers name different items. */
  readonly named: KnownItem | 'several' | undefined
  /** True if too many tags must stay to find those of this sale: staff look. */
  readonly isUnclear: boolean
}

/** A unit of a sale. Units of which nothing is known share one object. */
interface KnownUnit {
  /** The named item; without a named item, one whose status may stop the unit. Of a code: the item that a till sold. */
  readonly item?: KnownItem
  /** A recall of its product or lot stops the unit, although no item with a tag shows it. */
  readonly isRecalled?: true
  /** A till reported after the receipt was signed that the unit came back. */
  readonly cameBack?: true
}
const NOTHING_KNOWN: KnownUnit = {}

/** Statuses of goods that were sold and may not leave now, or not everywhere. */
const STOPPED: ReadonlySet<ItemStatus> = new Set(
  ITEM_STATUSES.filter((status) => status !== 'sellable' && status !== 'paid' && status !== 'picked_up'),
)
const HELD: ReadonlySet<ItemStatus> = new Set(['exception_hold'])
/** Statuses that a till gives goods that came back. */
const BACK: ReadonlySet<ItemStatus> = new Set(['returned', 'cancelled', 'sellable'])
/** Most tags that came back since the receipt, which one decision compares with it. */
const BACK_LIMIT = 10_000
/** Stands for a product that the agent cannot name. */
const UNKNOWN_ENTRY = 'ffffffff'
/** Characters of an entry in hex. */
export const ENTRY_CHARACTERS = 8
const KINDS = { E: 'epc', U: 'tagUid', T: 'tagId' } as const

interface ReportParts {
  trust: Pick<Trust, 'policy'>
  ledger: Pick<Ledger, 'claims' | 'till'>
}

export interface SaleGoodsParts extends ReportParts {
  ledger: Pick<Ledger, 'claims' | 'till' | 'journal'>
  items: Items
}

type Items = Pick<Replica, 'find' | 'findByKey' | 'keysOf' | 'namesIn'>

/** What the receipt and the codes of a sale, stored at `nowMs`, stand for. `layouts`: of the codes of the store's scales. */
export function soldGoods(
  sale: KeptSale,
  saleKey: string,
  nowMs: number,
  layouts: readonly string[],
): KnownSale & { goods: string } {
  return {
    sale: saleKey,
    exp: Math.floor(nowMs / 1_000) + RECEIPT_LIFE,
    riskClass: riskClassOf(Math.max(0, saleCentOf(sale))),
    goods: encodeGoods(saleKey, sale, layouts),
  }
}

/** The till, products and tags of a sale as entries of a receipt (ADR receipts), in hex, for agents that know its code. */
function encodeGoods(
  saleKey: string,
  { lines, tillId }: Pick<KeptSale, 'lines' | 'tillId'>,
  layouts: readonly string[],
): string {
  const cti = Buffer.from(saleKey, 'hex')
  const isCancelled = cancelledTags({ lines })
  const entries = lines.flatMap((line, i) => {
    if (!isSoldLine(line)) return []
    const { gtins, lot, isUnknown } = productsOfLine(line, layouts)
    const tags = tagsOf(line).filter((tag) => tag.isValid && !isCancelled(i, tag))
    const names = tags.map(({ kind, id }) => receiptEntry(cti, kind, id))
    const products = gtins.map((gtin) => receiptEntry(cti, 'gtin', gtin))
    if (lot !== undefined) products.push(receiptEntry(cti, 'lot', lot))
    return [...(isUnknown ? [Buffer.from(UNKNOWN_ENTRY, 'hex')] : []), ...products, ...names]
  })
  if (tillId !== undefined) entries.push(receiptEntry(cti, 'till', tillId))
  return [...new Set(entries.map(hexOf))].join('')
}

function decodeGoods(goods: string): string[] {
  return Array.from({ length: goods.length / ENTRY_CHARACTERS }, (_, n) =>
    goods.slice(n * ENTRY_CHARACTERS, (n + 1) * ENTRY_CHARACTERS),
  )
}

/** The goods of a sale by recalls and reports of tills alone: for decisions in which the status of each item follows. */
export function reportedGoods(parts: ReportParts, sale: ReceiptClaims | KnownSale): SaleGoods {
  const goods = new GoodsReader(parts, sale)
  goods.addRecalls()
  goods.addReturns()
  return goods.read()
}

/** The goods of a sale, of which the request names some, or none: then all items that must stay are compared. */
export function goodsOf(
  parts: SaleGoodsParts,
  sale: ReceiptClaims | KnownSale,
  identifiers: ItemIdentifiers,
): SaleGoods {
  const goods = new GoodsReader(parts, sale)
  goods.addRecalls()
  if (namesItem(identifiers)) return goods.read(...goods.addNamed(parts.items, identifiers))
  goods.addReturns()
  goods.addStopped(parts.items)
  goods.addSold(parts.items)
  return goods.read()
}

/** The goods of a sale whose receipt has been used at a barrier: no rule looks at them any more. */
export function unseenGoods(parts: ReportParts, sale: ReceiptClaims | KnownSale): SaleGoods {
  return new GoodsReader(parts, sale).read()
}

/** True if the sale is void, its receipt was revoked, or all its goods came back. */
export function isSaleOver({ ledger: { claims, till } }: Pick<ReportParts, 'ledger'>, saleKey: string): boolean {
  return claims.isDenied(saleKey) || hasComeBack(till, saleKey)
}

/**
 * Numbers of the units of a receipt for whose product a tag passed a gate (`tillSales.passByProduct`): one of them for
 * each tag. The cloud binds the tag to one of them.
 */
export function passedUnits({ ledger }: Pick<ReportParts, 'ledger'>, sale: ReceiptClaims | KnownSale): number[] {
  if (!('cti' in sale) || !sale.entries) return []
  const entries = sale.entries.map(hexOf)
  const passed: number[] = []
  for (const name of ledger.till.pieces.tagsOf(hexOf(sale.cti))) {
    const gtin = name.startsWith('E') ? parseEpc(name.slice(1))?.gtin14 : undefined
    const entry = gtin === undefined ? '' : hexOf(receiptEntry(sale.cti, 'gtin', gtin))
    const n = entries.findIndex((each, i) => each === entry && !passed.includes(i))
    if (n >= 0) passed.push(n)
  }
  return passed
}

/** True if a till reported after `sinceMs`, trusted time, that the goods with this tag came back. `keys`: its names. */
export function isBackSince(till: Pick<TillReports, 'tag'>, keys: readonly string[], sinceMs: number): boolean {
  return keys.some((key) => {
    const tag = till.tag(key)
    return tag !== undefined && BACK.has(tag.status) && tag.storedMs > sinceMs
  })
}

/**
 * True if the goods that a request names, or all goods of its receipt, came back, and the cloud may not have the report
 * of the till yet. A report counts at this agent until its items contain it (ADR till-sales).
 */
export function cameBackUnreported(
  parts: SaleGoodsParts,
  receipt: ReceiptClaims | undefined,
  identifiers: ItemIdentifiers,
): boolean {
  const { journal, till } = parts.ledger
  if (journal.waiting === 0 && !till.lacks(journal.acked)) return false
  if (receipt && namesItem(identifiers)) {
    const { covered, units } = goodsOf(parts, receipt, identifiers)
    return covered.length > 0 && covered.every((n) => units[n]?.cameBack)
  }
  if (receipt) {
    const { isOver, units } = reportedGoods(parts, receipt)
    return isOver || (units.length > 0 && units.every(({ cameBack }) => cameBack))
  }
  const reports = keysOfTag(parts.items, identifiers).flatMap((key) => till.tag(key) ?? [])
  return reports.some(({ status, ver }) => BACK.has(status) && ver === null)
}

/** Collects what is known of the units of one sale. */
class GoodsReader {
  readonly #parts: ReportParts
  readonly #cti: Uint8Array
  readonly #exp: number
  readonly #riskClass: number
  readonly #receipt: ReceiptClaims | undefined
  /** Entries in hex; empty if the receipt does not tell its goods apart. */
  readonly #entries: readonly string[]
  readonly #units: KnownUnit[]
  /** True if neither receipt nor notice names the goods: then any recall or hold may be about them. */
  readonly #isUnknown: boolean
  /** True if the sale was recorded since its till is revoked. */
  readonly #isOfRevokedTill: boolean
  #isUnclear = false
  #isOfNamedTag = false

  constructor(parts: ReportParts, sale: ReceiptClaims | KnownSale) {
    this.#parts = parts
    this.#receipt = 'cti' in sale ? sale : undefined
    this.#cti = 'cti' in sale ? sale.cti : Buffer.from(sale.sale, 'hex')
    this.#exp = sale.exp
    this.#riskClass = sale.riskClass
    this.#entries = 'cti' in sale ? (sale.entries ?? []).map(hexOf) : decodeGoods(sale.goods ?? '')
    this.#isUnknown = !('cti' in sale) && (sale.goods === undefined || this.#entries.includes(UNKNOWN_ENTRY))
    const count = 'cti' in sale ? sale.units : this.#entries.length
    this.#units = Array.from({ length: count }, () => NOTHING_KNOWN)
    const recordedS = this.#exp - RECEIPT_LIFE
    const revoked = (parts.trust.policy?.revokedTills ?? []).filter(({ since }) => since <= recordedS)
    this.#isOfRevokedTill =
      !this.#receipt && revoked.some(({ tillId }) => this.#entries.includes(this.#entryOf('till', tillId)))
    if (!('cti' in sale) && sale.goods === undefined && revoked.length > 0) this.#isUnclear = true
  }

  get #key(): string {
    return hexOf(this.#cti)
  }

  read(covered?: readonly number[], named?: SaleGoods['named']): SaleGoods {
    const isOver = this.#isOfRevokedTill || isSaleOver(this.#parts, this.#key)
    return {
      key: this.#key,
      exp: this.#exp,
      riskClass: this.#riskClass,
      receipt: this.#receipt,
      isOver,
      units: this.#units,
      covered: this.#receipt ? (covered ?? [...this.#units.keys()]) : [],
      isOfNamedTag: this.#isOfNamedTag,
      named,
      isUnclear: this.#isUnclear && !isOver,
    }
  }

  /**
   * The policy names the products of which all goods are recalled. The deny list names the units whose line states a
   * recalled lot, and those of receipts that do not tell their goods apart.
   */
  addRecalls(): void {
    const { trust, ledger } = this.#parts
    const { recalledGtins = [], recalledLots = [] } = trust.policy ?? {}
    if (this.#isUnknown && recalledGtins.length + recalledLots.length > 0) this.#isUnclear = true
    const gtins = this.#entries.length > 0 ? recalledGtins : []
    const lots = this.#entries.length > 0 ? recalledLots : []
    const recalled = new Set([
      ...gtins.map((gtin) => this.#entryOf('gtin', gtin)),
      ...lots.map((lot) => this.#entryOf('lot', lot)),
    ])
    for (const [n, entry] of this.#entries.entries()) if (recalled.has(entry)) this.#add(n, { isRecalled: true })
    // The list also names `PASS`. The goods of a code have other numbers than the units of its receipt.
    const listed = ledger.claims.recalledOf(this.#key)
    if (!this.#receipt && listed.length > 0) this.#add(this.#units.length, { isRecalled: true })
    if (this.#receipt) for (const n of listed) if (n < this.#receipt.units) this.#add(n, { isRecalled: true })
  }

  /** Units that came back: the cloud denies their rights, but this agent may not have heard of it. */
  addReturns(): void {
    const { till } = this.#parts.ledger
    const names = this.#entries.length === 0 ? [] : till.in(BACK, this.#signedMs, BACK_LIMIT)
    if (names.length >= BACK_LIMIT) this.#isUnclear = true
    const numberOf = this.#numbers()
    for (const name of names) {
      const kind = KINDS[name[0] as keyof typeof KINDS]
      const n = kind && numberOf(kind, name.slice(1))
      if (n !== undefined && this.#isBack(name)) this.#add(n, { cameBack: true })
    }
  }

  /** Items whose status may stop a unit: a hold counts with and without the tag (ADR releases). */
  addStopped(items: Items): void {
    if (this.#isUnknown && items.namesIn(HELD)?.length !== 0) this.#isUnclear = true
    if (this.#entries.length === 0) return
    const statuses = this.#receipt ? STOPPED : HELD
    const names = items.namesIn(statuses)
    if (!names) this.#isUnclear = true
    const numberOf = this.#numbers()
    for (const { kind, name } of names ?? []) {
      const n = numberOf(kind, name)
      const item = n === undefined ? undefined : items.find(kind, name)
      if (n !== undefined && item && statuses.has(item.status)) this.#add(n, { item })
    }
  }

  /** Tagged goods of a code's sale, as tills reported them here or at other agents. */
  addSold(items: Items): void {
    if (this.#receipt) return
    for (const name of this.#parts.ledger.till.paidBy(this.#key)) {
      const item = items.findByKey(name)
      if (item) this.#add(this.#units.length, { item })
    }
    // Goods came back, and no other is known to be left.
    const isLeft = this.#units.some(({ item, cameBack }) => item?.status === 'paid' && !cameBack)
    if (!isLeft && this.#units.some(({ cameBack }) => cameBack)) this.#isUnclear = true
  }

  /** Notes what is known of the item that the request names. Returns the numbers of its units, and the item. */
  addNamed(items: Items, identifiers: ItemIdentifiers): [covered: readonly number[], named: SaleGoods['named']] {
    const found = findByIdentifiers(items, identifiers)
    const item = found === 'several' ? undefined : found
    const keys = keysOfTag(items, identifiers)
    const isBack = keys.some((key) => this.#isBack(key))
    const names = namesOf(identifiers, keys)
    const covered = this.#coveredBy(names)
    const own = new Set(names.flatMap(([kind, id]) => (kind === 'gtin' ? [] : this.#entryOf(kind, id))))
    this.#isOfNamedTag = covered.length > 0 && covered.every((n) => own.has(this.#entries[n] ?? ''))
    const known: KnownUnit = { ...(item && { item }), ...(isBack && { cameBack: true }) }
    for (const n of covered) this.#add(n, known)
    return [covered, found]
  }

  #coveredBy(names: readonly (readonly [IdentifierKind, string])[]): number[] {
    // A receipt has no entries if it has over 32 units, or if its prices come only from the shopper's app. Then no tag
    // can be matched: all units count as covered, and `factsOfUnit` requires staff.
    if (!this.#receipt?.entries) return [...this.#units.keys()]
    const wanted = new Set(names.map(([kind, id]) => this.#entryOf(kind, id)))
    return [...this.#units.keys()].filter((n) => wanted.has(this.#entries[n] ?? ''))
  }

  #isBack(key: string): boolean {
    return isBackSince(this.#parts.ledger.till, [key], this.#signedMs)
  }

  /** When the receipt was signed, or the sale of the code was stored. */
  get #signedMs(): number {
    return (this.#exp - RECEIPT_LIFE) * 1_000
  }

  #add(n: number, known: KnownUnit): void {
    const unit = this.#units[n] ?? NOTHING_KNOWN
    this.#units[n] = unit === NOTHING_KNOWN ? known : { ...unit, ...known }
  }

  #numbers(): (kind: IdentifierKind, name: string) => number | undefined {
    const numbers = new Map(this.#entries.map((entry, n) => [entry, n]))
    return (kind, name) => numbers.get(this.#entryOf(kind, name))
  }

  #entryOf(kind: IdentifierKind | 'till' | 'lot', id: string): string {
    return hexOf(receiptEntry(this.#cti, kind, id))
  }
}

/** All names of the tag that a request names, as tills report them. */
export function keysOfTag(items: Pick<Replica, 'keysOf'>, identifiers: ItemIdentifiers): string[] {
  return (['epc', 'tagUid', 'tagId'] as const).flatMap((kind) => {
    const name = identifiers[kind]
    return name === undefined ? [] : items.keysOf(kind, name)
  })
}

/** True if the request names an item, and not only a receipt. */
export function namesItem(identifiers: ItemIdentifiers): boolean {
  return ITEM_IDENTIFIER_KINDS.some((kind) => identifiers[kind] !== undefined)
}

/** All names of a tag: as the request sent them, as the items have them (`keys`), and the GTIN in its EPC. */
function namesOf(identifiers: ItemIdentifiers, keys: readonly string[]): (readonly [IdentifierKind, string])[] {
  const sent = ITEM_IDENTIFIER_KINDS.flatMap((kind) => {
    const id = identifiers[kind]
    return id === undefined ? [] : [[kind, id] as const]
  })
  const known = keys.flatMap((key) => {
    const kind = KINDS[key[0] as keyof typeof KINDS]
    return kind ? [[kind, key.slice(1)] as const] : []
  })
  const names = [...sent, ...known]
  const gtins = names.flatMap(([kind, id]) => (kind === 'epc' ? (parseEpc(id)?.gtin14 ?? []) : []))
  return [...names, ...gtins.map((gtin) => ['gtin', gtin] as const)]
}

/**
 * Facts about a unit: from its item if known, else from the receipt, else unknown. While the item is sellable, the price
 * comes from the receipt. Null if the request names several items.
 */
export function factsOfUnit(
  { receipt, riskClass, units, named }: SaleGoods,
  n: number,
  isPass: boolean,
  policy: ProtectionPolicy | undefined,
): ItemFacts | null {
  if (named === 'several') return null
  const { item, isRecalled } = units[n] ?? NOTHING_KNOWN
  const signed = receipt ? readUnitFacts(receipt, n, policy) : {}
  return {
    status: item?.status ?? null,
    recalled: item?.recalled,
    ...(isRecalled && RECALLED),
    // The items of a code's sale are paid by themselves, or have changed since.
    ...(receipt && { paidBy: 'purchase' as const }),
    category: item?.category ?? signed.category,
    brand: item?.brand ?? signed.brand,
    priceCent: item && item.status !== 'sellable' ? item.priceCent : signed.priceCent,
    priceBelowCent: riskClassCeiling(riskClass),
    technology: named?.technology,
    ...staffReasonOf({ receipt, riskClass }, isPass),
  }
}

/** A barrier needs no tags, so it opens also for receipts that do not tell their goods apart. */
export function staffReasonOf(
  { receipt, riskClass }: Pick<SaleGoods, 'receipt' | 'riskClass'>,
  isPass: boolean,
): Pick<ItemFacts, 'staffReason'> {
  if (riskClass === SHOPPER_PRICED) return { staffReason: 'only the shopper’s app states the price' }
  return receipt?.entries || isPass ? {} : { staffReason: 'the receipt has too many goods to tell them apart' }
}

/**
 * Units of a code whose facts decide at a barrier: those that must stay, if there are any. An agent does not know which
 * goods of a code carry tags, so one of them stops the code, and staff look. Else the tagged goods that are known.
 */
export function unitsOfCode({ units }: SaleGoods): number[] {
  const all = [...units.keys()]
  const isHeld = ({ item, isRecalled }: KnownUnit) => isRecalled || (item !== undefined && HELD.has(item.status))
  const held = all.filter((n) => isHeld(units[n] ?? NOTHING_KNOWN))
  return held.length > 0 ? held : all.filter((n) => units[n]?.item !== undefined)
}

/** The status of the named item for the answer, if the item must stay because of it. */
export function stoppingStatus({ named }: SaleGoods): { itemStatus?: ItemStatus } {
  return typeof named === 'object' && STOPPED.has(named.status) ? { itemStatus: named.status } : {}
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
