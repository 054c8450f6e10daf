import { RECEIPT_LIFE } from '../../policy/receipts/receipt-token.ts'
import { namesTags, tagsOf, type KeptReturn, type KeptSale } from '../../policy/till-sale.ts'
import type { SoldCode } from '../../policy/documents/till-notice.ts'
import type { Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { StoredReturn } from '../ledger/till-reports.ts'
import type { GoodsBack } from './goods-back.ts'

/** Maximum difference of clocks in a store, ms (ADR trusted-time). */
const CLOCKS_DIFFER_MS = 60_000

/** Under this key a return waits for a sale that printed the code. */
export const codeKey = (codeHash: string) => `C${codeHash}`

/** Returns that came to this agent before their sale. They stay in the ledger until the return is forgotten. */
export class WaitingReturns {
  readonly #parts: { readonly ledger: Ledger; readonly items: Replica; readonly back: GoodsBack }

  constructor(parts: { ledger: Ledger; items: Replica; back: GoodsBack }) {
    this.#parts = parts
  }

  /** Applies them to a sale that was reported here. Which piece of a line came back, only its tag can tell: all alarm. */
  apply(saleKey: string, { codeHashes, occurredAt }: KeptSale, nowMs: number, seq: number): void {
    const { items, back } = this.#parts
    const atMs = Math.min(nowMs, Date.parse(occurredAt))
    const moved = new Set<string>()
    for (const request of this.#waitingFor(saleKey, codeHashes, atMs)) {
      const named = tagsOfReturn(request)
      const pieces =
        named.length > 0 ? named.map(({ kind, id }) => items.keysOf(kind, id)) : this.#untold(saleKey, request)
      const to = { status: statusOf(request), nowMs, seq } as const
      // Several returns may name a tag, or the whole sale. The first counts.
      const fresh = pieces.filter(([name = '']) => !moved.has(name))
      for (const [name = ''] of fresh) moved.add(name)
      back.moveBack(fresh, to)
      back.countBack(saleKey, request, to)
    }
  }

  /**
   * Applies them to sales that another agent has announced. It may announce the tags of a sale in several notices, so this
   * repeats. Tags that a return names alarm since then.
   */
  applyToAnnounced(sales: Iterable<string>, codes: readonly SoldCode[], nowMs: number, seq: number): void {
    const { ledger, back } = this.#parts
    const apply = (saleKey: string, waiting: readonly KeptReturn[]) => {
      for (const request of waiting) {
        const to = { status: statusOf(request), nowMs, seq } as const
        if (tagsOfReturn(request).length === 0) back.moveBack(this.#untold(saleKey, request), to)
        const isWhole = request.lines === undefined && !namesTags(request)
        if (isWhole && ledger.till.tag(`R${saleKey}`) === undefined) back.endReceipt(saleKey, to)
      }
    }
    for (const saleKey of sales) apply(saleKey, this.#waitingFor(saleKey, [], nowMs))
    for (const { code, sale, exp } of codes) apply(sale, this.#waitingFor(sale, [code], (exp - RECEIPT_LIFE) * 1_000))
  }

  /** A till may print a code again after a day, so a sale after the return is another one. */
  #waitingFor(saleKey: string, codeHashes: readonly string[], atMs: number): KeptReturn[] {
    const { till } = this.#parts.ledger
    const ofSale = till.waitingReturns(saleKey)
    const byCode = codeHashes.flatMap((hash) => till.waitingReturns(codeKey(hash)))
    const all: StoredReturn[] = [...ofSale, ...byCode.filter(({ storedMs }) => atMs <= storedMs + CLOCKS_DIFFER_MS)]
    return all.map(({ request }) => JSON.parse(request ?? '{}') as KeptReturn)
  }

  #untold(saleKey: string, { lines }: KeptReturn): string[][] {
    const { back } = this.#parts
    return lines ? back.tagsOfLines(saleKey, new Set(lines.map(({ lineId }) => lineId))) : back.tagsOfSale(saleKey)
  }
}

const tagsOfReturn = ({ lines, ...sent }: KeptReturn) => [...tagsOf(sent), ...(lines ?? []).flatMap(tagsOf)]
const statusOf = ({ resellable }: KeptReturn) => (resellable === true ? 'sellable' : 'returned')
