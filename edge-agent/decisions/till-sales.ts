import {
  hourOfSale,
  keptReturn,
  keptSale,
  lineIdOf,
  nameCountOf,
  OPEN_SALE_MS,
  OPEN_SALES_LIMIT,
  namesTags,
  returnContent,
  whyReturnUnclear,
  returnKeyOf,
  saleContent,
  saleKeyOf,
  saleTagHash,
  sellsGoods,
  saleValueOf,
  tagsOf,
  WAITING_RETURNS_LIMIT,
  type KeptReturn,
  type KeptSale,
  type NamedTags,
  type SaleName,
  type SaleTag,
  type TillReturn,
  type TillSale,
} from '../../policy/till-sale.ts'
import type { SoldCode } from '../../policy/documents/till-notice.ts'
import { piecesWithoutTag, productHash } from '../../policy/sold-pieces.ts'
import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { Replica } from '../items/replica.ts'
import { MAY_BE_SOLD } from '../items/till-tags.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { StoredSale } from '../ledger/till-reports.ts'
import {
  assertFits,
  assessSale,
  conflict,
  warningsFor,
  itemOfTag,
  TillRefusal,
  type ReturnAnswer,
  type SaleAnswer,
  type VoidAnswer,
} from './assess-sale.ts'
import { GoodsBack, type SoldPiece } from './goods-back.ts'
import { returnRow, saleRow, voidRow } from './till-rows.ts'
import { codeKey, WaitingReturns } from './waiting-returns.ts'
import { MAX_ENTRIES } from '../../policy/receipts/receipt-claims.ts'
import type { QueueShares } from './queue-shares.ts'
import { goodsCode, type KnownSale } from './sale-codes.ts'
import { ENTRY_CHARACTERS, soldGoods } from './sale-goods.ts'
import { givesRights, type Warning } from './till-doubts.ts'

/** What agents announce of the content of a sale. */
const contentKey = (content: string) => content.slice(0, 32)

interface TillSalesParts {
  ledger: Ledger
  items: Replica
  storeId: string
  agentId: string
  policy(): ProtectionPolicy | undefined
  /** Tills that the cloud has revoked. */
  revokedTills(): readonly string[]
  /** Layouts of the codes of the store's scales. */
  layouts(): readonly string[]
  /** Products of which all goods are recalled, GTIN-14, and recalled lots (`lotKey`). */
  recalledGoods(): readonly string[]
  /** `saleKeyOf` the sale of a scanned receipt; undefined if it is none of this store. */
  saleOfReceipt(scanned: string): string | undefined
  /** Signs the receipt of a sale; undefined without trusted time or a current policy. */
  signReceipt(sale: KnownSale): string | undefined
  shares: Pick<QueueShares, 'whyFull' | 'count'>
  nowMs(): number
  /** False: `nowMs` is only the earliest time that it can be. */
  hasTrustedTime(): boolean
  /** How long tags may pass for pieces that are sold now, s; 0 if the policy or the clock does not allow it. */
  passSeconds(): number
  /** Called after a change. */
  onChanged(): void
}

/**
 * Records what the store's tills report, also without network (ADR till-sales). Durable before the answer. Named tags
 * that the agent knows are paid at once at its gates. The journal brings the report to the cloud, and TillNotices
 * (peers/till-notices.ts) to the other agents of the store.
 *
 * A well-formed sale is never refused for its goods: the money is taken.
 */
export class TillSales {
  readonly #parts: TillSalesParts
  readonly #back: GoodsBack
  readonly #waiting: WaitingReturns

  constructor(parts: TillSalesParts) {
    this.#parts = parts
    this.#back = new GoodsBack(parts)
    this.#waiting = new WaitingReturns({ ...parts, back: this.#back })
  }

  /**
   * Records a sale. `mayReturn`: the till may also void paid ones, and take goods back. `program`: id of the paired program
   * that reports it. Throws `TillRefusal`.
   */
  async sell(request: TillSale, mayReturn = true, program = ''): Promise<SaleAnswer> {
    this.#assertMayRecord(program)
    const sale = keptSale(this.#parts.storeId, request)
    assertFits(sale)
    const { ledger, nowMs } = this.#parts
    const record = () => this.#parts.shares.count(program, () => this.#sell(sale, mayReturn, nowMs()))
    const answer = await ledger.commits.durably(record, sizeOf(sale.lines))
    this.#parts.onChanged()
    const saved = ledger.till.sale(saleKeyOf(this.#parts.storeId, sale))
    // A late copy of an open sale may have other goods.
    const isPaid =
      saved?.state === 'paid' && saved.content === saleContent(sale) && givesRights(saved) && sellsGoods(sale)
    const receiptToken = isPaid
      ? this.#parts.signReceipt(this.#goodsOf(sale, saved.saleKey, saved.storedMs))
      : undefined
    return { ...answer, ...(receiptToken !== undefined && { receiptToken }) }
  }

  /** Voids a sale. Throws `TillRefusal`. */
  async void(name: SaleName, reason: string | undefined, program = ''): Promise<VoidAnswer> {
    this.#assertMayRecord(program)
    const { ledger, nowMs } = this.#parts
    const record = () => this.#parts.shares.count(program, () => this.#void(name, reason, nowMs()))
    const answer = await ledger.commits.durably(record, this.#sizeOfSale(name))
    this.#parts.onChanged()
    return answer
  }

  /** Takes goods back. Throws `TillRefusal`. */
  async takeBack(sent: TillReturn, program = ''): Promise<ReturnAnswer> {
    this.#assertMayRecord(program)
    const request = keptReturn(this.#parts.storeId, sent)
    assertFits(request)
    const { ledger, nowMs } = this.#parts
    const answer = await ledger.commits.durably(
      () => this.#parts.shares.count(program, () => this.#takeBack(request, nowMs())),
      sizeOf([request, ...(request.lines ?? [])]) + this.#sizeOfSale(request),
    )
    this.#parts.onChanged()
    return answer
  }

  /**
   * Follows what another agent announced of a sale: goods of it came back, so its receipt may end, or it is void, so that
   * goods which came back with it belong to their former sales again. Only its recorder knows those goods.
   */
  ended(saleKey: string, status: ItemStatus): void {
    const { ledger, nowMs } = this.#parts
    this.#back.endIfAllBack(saleKey, { status, nowMs: nowMs(), seq: Math.max(1, ledger.journal.head.seq) })
    const sale = ledger.till.sale(saleKey)
    const isVoid = ledger.till.tag(`R${saleKey}`)?.status === 'cancelled'
    // No row of this journal: it counts until the items show the same.
    if (isVoid && sale?.state === 'paid') this.#back.undoExchange(sale, { nowMs: nowMs(), seq: 0 })
  }

  /** Applies returns that came here before the sales, which another agent has announced. Runs inside its transaction. */
  applyWaiting(sales: Iterable<string>, codes: readonly SoldCode[]): void {
    const { ledger, nowMs } = this.#parts
    this.#waiting.applyToAnnounced(sales, codes, nowMs(), Math.max(1, ledger.journal.head.seq))
  }

  #assertMayRecord(program: string): void {
    const { agentId, policy } = this.#parts
    if (!policy()?.tillSales.agents.includes(agentId))
      throw new TillRefusal('sales_not_allowed', `the policy of the store does not name ${agentId} in tillSales.agents`)
    const whyFull = this.#parts.shares.whyFull(program)
    if (whyFull !== undefined) throw new TillRefusal('sale_queue_full', whyFull)
  }

  /** Share of a commit that a void or return of a whole sale takes. */
  #sizeOfSale({ saleId = '', tillId, series }: Pick<KeptReturn, 'saleId' | 'tillId' | 'series'>): number {
    const { ledger, storeId } = this.#parts
    const saleKey = saleKeyOf(storeId, { saleId, tillId, series })
    const characters = ledger.till.sale(saleKey)?.tags.length ?? 0
    return 1 + Math.ceil(characters / CHARACTERS_PER_SIZE + ledger.till.paidBy(saleKey).length / TAGS_PER_SIZE)
  }

  #sell(sale: KeptSale, mayReturn: boolean, nowMs: number): SaleAnswer {
    const { till, journal } = this.#parts.ledger
    const saleKey = saleKeyOf(this.#parts.storeId, sale)
    const content = saleContent(sale)
    const { state = 'paid', version = 1 } = sale
    const known = till.sale(saleKey)
    if (state === 'void' && !mayReturn && (known?.state !== 'open' || this.#known(`S${saleKey}`)))
      throw new TillRefusal('right_missing', 'this program may not void sales: pair it with --may returns')
    const isPaid = known?.state === 'paid' || (known?.state === 'void' && known.content !== '')
    if (known && (isPaid || (known.state === 'open' && state === 'open' && version <= known.version))) {
      // A late copy of an earlier state is no conflict.
      if (known.content !== content && (state !== 'open' || known.state === 'open')) throw conflict('sale')
      if (state === 'void' && known.state === 'paid') this.#void(sale, undefined, nowMs)
      return this.#answerOf(known)
    }
    if (state === 'void' && mayReturn) {
      const { items: voided, synced } = this.#void(sale, undefined, nowMs)
      return { saleId: sale.saleId, items: itemsOfLines(sale, voided), warnings: [], synced }
    }
    // A late copy of an open sale that was voided changes nothing.
    if (state === 'open' && known?.state === 'void') return this.#answerOf(known)
    const tillId = sale.tillId ?? ''
    if (state === 'open' && !known && till.openSince(tillId, nowMs - OPEN_SALE_MS) >= OPEN_SALES_LIMIT)
      throw new TillRefusal(
        'too_many_open_sales',
        `this till has ${OPEN_SALES_LIMIT} open sales: pay or void them first`,
      )
    const items = this.#parts.items.position()
    // Another agent announces a void by its receipt, and the cloud denies the receipt.
    const end = this.#known(`R${saleKey}`)
    const isDenied = end === undefined && !known && this.#parts.ledger.claims.isDenied(saleKey)
    const wasVoided = known?.state === 'void' || end?.status === 'cancelled' || isDenied
    const isVoid = state === 'void' || wasVoided
    const isPaidNow = state !== 'open' && !isVoid
    // Another agent has announced this sale: it is repeated here, and its goods may have come back since.
    const announced = isPaidNow ? this.#known(`S${saleKey}`) : undefined
    const isElsewhere = announced !== undefined
    if (announced?.sale && announced.sale !== contentKey(content)) throw conflict('sale')
    // Tags of a void sale alarm, also if another agent, which does not know the void, announces the sale.
    const becomes = isElsewhere ? undefined : isPaidNow ? 'paid' : isPaidState(state) ? 'cancelled' : undefined
    const stop = isPaidNow ? this.#whyStopped(sale, nowMs) : undefined
    const assessed = assessSale(this.#parts, sale, becomes, { stop, mayReturn, isElsewhere, nowMs })
    const { pieces, returned, left } = assessed
    const answer = { ...assessed.answer, warnings: warningsFor(sale, becomes, isElsewhere, assessed.answer.warnings) }
    const resold = becomes === 'paid' ? this.#resold(sale, pieces) : []
    const evidence = { ...saleRow(sale, items, { resold, announced, mayReturn }), ...this.#untimed() }
    const ofSale = journal.append({ atMs: nowMs, evidence })
    // The void is another agent's row, which the cloud may not have: its tags count as void until the cloud has it.
    const isVoidedElsewhere = end?.status === 'cancelled' && end.sender !== ''
    const seq = isVoidedElsewhere ? journal.append({ atMs: nowMs, evidence: voidRow(sale, undefined) }) : ofSale
    if (isPaidNow && !stop) till.saveTag(`S${saleKey}`, 'paid', nowMs, seq, contentKey(content))
    if (announced) till.noteRecorder(saleKey, announced.sender, this.#parts.agentId, nowMs)
    this.#back.exchange(returned, nowMs, seq)
    for (const name of pieces.flatMap(({ names }) => names))
      // An agent may stop before it has announced all tags of a sale. What is known of a tag may be newer.
      if (!announced || !this.#known(name))
        till.saveTag(name, becomes ?? 'paid', nowMs, seq, isPaidNow ? saleKey : null)
    const saved: StoredSale = {
      saleKey,
      tillId,
      state: isVoid ? 'void' : state,
      version: Math.max(version, known?.version ?? 1),
      // A sale that was voided while it was open was never paid: the paid one is no copy of it.
      content: state === 'void' ? '' : content,
      tags: JSON.stringify(pieces),
      returned: JSON.stringify(returned),
      answer: JSON.stringify(answer),
      remaining: JSON.stringify(left),
      valueCent: this.#valueOf(sale),
      hour: state === 'paid' ? hourOfSale(sale, nowMs) : 0,
      storedMs: nowMs,
      seq,
    }
    till.saveSale(saved)
    // Another agent has announced that the whole sale came back.
    if (isPaidNow) till.endSale(saleKey, (sender) => this.#isNamed(sender), this.#parts.items.isUnsold)
    if (isPaidNow) this.#waiting.apply(saleKey, sale, nowMs, seq)
    if (isPaidNow && givesRights(saved) && sellsGoods(sale)) this.#saveRights(sale, saleKey, nowMs, isElsewhere)
    return { synced: false, ...answer }
  }

  #goodsOf(sale: KeptSale, saleKey: string, nowMs: number) {
    return soldGoods(sale, saleKey, nowMs, this.#parts.layouts())
  }

  /** The sold tags whose goods came back before, which the items do not know yet. */
  #resold(sale: KeptSale, pieces: readonly SoldPiece[]): string[] {
    const [epoch, seq] = this.#parts.items.position()
    const isBack = (name: string) => {
      const tag = this.#known(name)
      if (!tag || !MAY_BE_SOLD.has(tag.status)) return false
      return tag.ver === null || tag.epoch > epoch || (tag.epoch === epoch && tag.ver > seq)
    }
    const back = new Set(pieces.flatMap(({ names }) => names.filter(isBack)))
    const tags = back.size === 0 ? [] : sale.lines.flatMap(tagsOf)
    const { items } = this.#parts
    return tags.filter(({ kind, id }) => items.keysOf(kind, id).some((name) => back.has(name))).map(saleTagHash)
  }

  /** What was reported here, or announced by an agent that the policy still names. */
  #known(name: string) {
    const tag = this.#parts.ledger.till.tag(name)
    return tag && (tag.sender === '' || this.#isNamed(tag.sender)) ? tag : undefined
  }

  #isNamed(agentId: string): boolean {
    return this.#parts.policy()?.tillSales.agents.includes(agentId) === true
  }

  /**
   * Notes the codes that the till printed: each opens a barrier once, also without the cloud. And the pieces whose tags
   * the till did not name: tags of the same product may pass for them. `isElsewhere`: another agent announced the pieces.
   */
  #saveRights(sale: KeptSale, saleKey: string, nowMs: number, isElsewhere: boolean): void {
    const { ledger, storeId } = this.#parts
    const sold = this.#goodsOf(sale, saleKey, nowMs)
    const codes = new Set(sale.codeHashes)
    if (sold.goods.length > MAX_ENTRIES * ENTRY_CHARACTERS) codes.add(goodsCode(saleKey))
    for (const code of codes) ledger.till.saveCode({ code, ...sold })
    const seconds = isElsewhere ? 0 : this.#parts.passSeconds()
    const expS = Math.floor(nowMs / 1_000) + seconds
    for (const [gtin, count] of seconds === 0 ? [] : piecesWithoutTag(sale, itemOfTag(this.#parts.items)))
      ledger.till.pieces.sold(saleKey, productHash(storeId, gtin), count, expS)
  }

  #answerOf({ answer, seq }: StoredSale): SaleAnswer {
    return { ...(JSON.parse(answer) as SaleAnswer), synced: seq <= this.#parts.ledger.journal.acked }
  }

  /** Why the sale releases nothing; undefined if it may. */
  #whyStopped(sale: KeptSale, nowMs: number): Warning | undefined {
    if (sale.tillId !== undefined && this.#parts.revokedTills().includes(sale.tillId))
      return { code: 'sale_of_revoked_till', message: `till ${sale.tillId} is revoked: its sales release nothing` }
    return this.#isOverLimit(sale, nowMs)
      ? {
          code: 'sale_over_limit',
          message: 'the till sold more in an hour than the policy allows: its sales release nothing',
        }
      : undefined
  }

  #isOverLimit(sale: KeptSale, nowMs: number): boolean {
    const limits = this.#parts.policy()?.tillSales
    const sold = this.#parts.ledger.till.soldIn(sale.tillId ?? '', hourOfSale(sale, nowMs))
    const valueCent = sold.valueCent + this.#valueOf(sale)
    return !limits || sold.sales + 1 > limits.salesPerHour || valueCent > limits.valuePerHour * 100
  }

  /** Value of a sale for the limits: of each line, the till's price or that of its tagged goods, whichever is higher. */
  #valueOf(sale: KeptSale): number {
    return saleValueOf(sale, ({ kind, id, isValid }) =>
      isValid ? this.#parts.items.find(kind, id)?.priceCent : undefined,
    )
  }

  #void(name: SaleName, reason: string | undefined, nowMs: number): VoidAnswer {
    const { storeId, ledger } = this.#parts
    const saleKey = saleKeyOf(storeId, name)
    const known = ledger.till.sale(saleKey)
    const { saleId, tillId } = name
    // Another agent may have announced the sale.
    const isSold = this.#known(`S${saleKey}`) !== undefined
    if (known?.state === 'void')
      return { saleId, waiting: known.content === '' && !isSold, items: [], synced: known.seq <= ledger.journal.acked }
    const evidence = voidRow(name, reason)
    const seq = ledger.journal.append({ atMs: nowMs, evidence })
    const to = { status: 'cancelled', nowMs, seq } as const
    const items = this.#back.moveBack(this.#back.tagsOfSale(saleKey), to)
    if (known) items.push(...this.#back.undoExchange(known, to))
    this.#back.endReceipt(saleKey, to)
    const empty = {
      tillId: tillId ?? '',
      version: 1,
      content: '',
      tags: '[]',
      returned: '[]',
      remaining: '{}',
      valueCent: 0,
      hour: 0,
      storedMs: nowMs,
    }
    const answer = JSON.stringify({ saleId, items: [], warnings: [] })
    // A void of an open sale waits for the paid one, which must reach the cloud.
    const paid = known?.state === 'paid' ? known : undefined
    ledger.till.saveSale({ answer, ...empty, ...paid, saleKey, state: 'void', seq })
    return { saleId, waiting: paid === undefined && !isSold, items, synced: false }
  }

  #untimed(): { untimed?: true } {
    return this.#parts.hasTrustedTime() ? {} : { untimed: true }
  }

  #takeBack(request: KeptReturn, nowMs: number): ReturnAnswer {
    const { storeId, ledger, items } = this.#parts
    const returnKey = returnKeyOf(storeId, request)
    const content = returnContent(request)
    const known = ledger.till.return(returnKey)
    if (known && known.content !== content) throw conflict('return')
    if (known) return { ...(JSON.parse(known.answer) as ReturnAnswer), synced: known.seq <= ledger.journal.acked }
    const unclear = whyReturnUnclear(request)
    if (unclear) throw new TillRefusal('invalid', unclear.message, unclear.field)
    // A till repeats it at another agent, and the goods may have been sold again since.
    const announced = this.#known(`Q${returnKey}`)
    if (announced?.sale && announced.sale !== contentKey(content)) throw conflict('return')
    const tags = this.#returnedTags(request)
    const saleKey = this.#keyOfSale(request)
    if (request.receipt !== undefined && saleKey === undefined)
      throw new TillRefusal(
        'invalid',
        'is none that this agent can verify: name the sale by saleId, or its goods by tags',
        'receipt',
      )
    const sale = saleKey === undefined ? undefined : ledger.till.sale(saleKey)
    const waitsFor = sale === undefined || sale.state === 'open' ? (saleKey ?? this.#keyOfCode(request)) : undefined
    const why = announced ? undefined : this.#back.whyNotBack(sale, request)
    if (why) throw new TillRefusal(why.code, why.message, why.path)
    if (waitsFor !== undefined && ledger.till.waitingReturns(waitsFor).length >= WAITING_RETURNS_LIMIT)
      throw new TillRefusal(
        'too_many_waiting_returns',
        `${WAITING_RETURNS_LIMIT} returns wait for this sale: send the sale first`,
      )
    const seq = ledger.journal.append({ atMs: nowMs, evidence: { ...returnRow(request, saleKey), ...this.#untimed() } })
    const status = request.resellable === true ? 'sellable' : 'returned'
    const to = { status, nowMs, seq } as const
    const statusNow = ({ kind, id }: SaleTag) => ({ tag: id, itemStatus: items.find(kind, id)?.status ?? status })
    const back = announced
      ? [request, ...(request.lines ?? [])].flatMap(tagsOf).map(statusNow)
      : 'keys' in tags
        ? this.#back.moveBack(tags.keys, to)
        : this.#back.moveBack(
            tags.named.map(({ kind, id }) => items.keysOf(kind, id)),
            to,
            true,
          )
    const isKnown = sale !== undefined || back.length > 0 || announced !== undefined
    const answer = { returnId: request.returnId, waiting: !isKnown && !namesTags(request), items: back }
    if (saleKey !== undefined && !announced) this.#back.countBack(saleKey, request, to)
    ledger.till.saveTag(`Q${returnKey}`, 'paid', nowMs, seq, contentKey(content))
    ledger.till.saveReturn({
      returnKey,
      content,
      answer: JSON.stringify(answer),
      saleKey: waitsFor ?? null,
      request: waitsFor === undefined ? null : JSON.stringify(request),
      storedMs: nowMs,
      seq,
    })
    return { synced: false, ...answer }
  }

  /** The sale that a return names; undefined if it names none that this agent can find. */
  #keyOfSale({ saleId, tillId, series, receipt, codeHash }: KeptReturn): string | undefined {
    const { storeId, ledger, saleOfReceipt } = this.#parts
    if (saleId !== undefined) return saleKeyOf(storeId, { saleId, tillId, series })
    if (receipt !== undefined) return saleOfReceipt(receipt)
    const [sold, another] = codeHash === null ? [] : ledger.till.salesWithCode(codeHash, 0)
    return another ? undefined : sold?.sale
  }

  /** Under which key a return waits for the sale that printed its code; undefined if several sales printed it. */
  #keyOfCode({ codeHash }: KeptReturn): string | undefined {
    const isUnknown = codeHash !== null && this.#parts.ledger.till.salesWithCode(codeHash, 0).length === 0
    return isUnknown ? codeKey(codeHash) : undefined
  }

  /** The tags that a return names, or all of its sale. Throws if it leaves open which tags came back. */
  #returnedTags(request: KeptReturn): { named: SaleTag[] } | { keys: string[][] } {
    const { saleId, purchaseId, receipt, codeHash, lines } = request
    const named = [...tagsOf(request), ...(lines ?? []).flatMap(tagsOf)]
    const wrong = named.find(({ isValid }) => !isValid)
    if (wrong) throw new TillRefusal('invalid', `${wrong.id} is not valid as ${wrong.kind}`, `${wrong.kind}s`)
    if (named.length > 0) return { named }
    if ((saleId ?? receipt ?? codeHash ?? undefined) === undefined)
      throw purchaseId === undefined
        ? new TillRefusal('invalid', 'is missing: name the sale, or its goods by tags', 'saleId')
        : new TillRefusal('invalid', 'is known only to the cloud: name the sale, or its goods by tags', 'purchaseId')
    const saleKey = this.#keyOfSale(request)
    const lineIds = new Set(lines?.map(({ lineId }) => lineId))
    const all =
      saleKey === undefined ? [] : lines ? this.#back.tagsOfLines(saleKey, lineIds) : this.#back.tagsOfSale(saleKey)
    // Which piece of a line came back, only its tag can tell. A till that named no tags cannot name them now, so all tags
    // that passed for pieces of the sale alarm, until the cloud knows more.
    const passed = new Set(saleKey === undefined ? [] : this.#parts.ledger.till.pieces.tagsOf(saleKey))
    if (lines && all.some((names) => !names.some((each) => passed.has(each))))
      throw new TillRefusal(
        'invalid',
        'has tagged goods: name those that came back in epcs, tagUids or tagIds',
        'lines',
      )
    return { keys: all }
  }
}

/** Tags of a till's report that take as long as a claim, and the characters of so many in the ledger. */
const TAGS_PER_SIZE = 50
const CHARACTERS_PER_SIZE = 1_500

/** Share of a commit that a report takes. */
function sizeOf(lists: readonly NamedTags[]): number {
  return 1 + Math.ceil(nameCountOf(lists) / TAGS_PER_SIZE)
}

const isPaidState = (state: KeptSale['state']) => state === 'paid' || state === undefined

/** The tags that a void ended, by the lines that name them. */
function itemsOfLines({ lines }: KeptSale, voided: VoidAnswer['items']): SaleAnswer['items'] {
  const statusOf = new Map(voided.map(({ tag, itemStatus }) => [tag, itemStatus]))
  return lines.flatMap((line, i) =>
    tagsOf(line).flatMap(({ id }) => {
      const itemStatus = statusOf.get(id)
      return itemStatus === undefined ? [] : { lineId: lineIdOf(line, i), tag: id, itemStatus }
    }),
  )
}
